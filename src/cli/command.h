/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the 'tenet' program: one file each, cmd_NAME.c, listed in main.c.
 *
 * A command parses its own options with getopt_long(3) (long options everywhere, options anywhere on the
 * line) and returns the exit status: 0 done, 1 failed (one line "tenet: ..." on standard error), 2 wrong
 * usage (the line says what is accepted and names --help).  "--help" prints 'help' to standard output. */
#pragma once

#include "base/err.h"

struct command {
    const char *name;                  /* "master" */
    const char *summary;               /* One line for "tenet --help". */
    const char *help;                  /* Whole text of "tenet NAME --help". */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name. */
};

extern const struct command cmd_master, cmd_node, cmd_lab, cmd_store, cmd_get, cmd_create,
    cmd_delete, cmd_describe, cmd_adm, cmd_token, cmd_trace, cmd_check, cmd_dns, cmd_idle,
    cmd_flows;

/* Prints "tenet: TEXT" (of 'e' when 'fmt' is NULL) to standard error; returns 1. */
int command_fail(const struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Prints "tenet NAME: TEXT; see tenet NAME --help"; returns 2. */
int command_usage(const struct command *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
