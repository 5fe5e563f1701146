/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands of "tenet setup": where things are, what is printed, and the steps that
 * the master's and the node's setup have in common.
 *
 * Each step looks at what is there and does what is missing, so that a setup that was interrupted
 * is finished by running it again, and one that is complete changes nothing.  All is on one thread
 * and blocks. */
#pragma once

#include "cli/command.h"
#include "cli/setup/setup_checks.h"
#include "cli/setup/setup_files.h"

extern const struct command setup_check_command, setup_master_command, setup_node_command,
    setup_remove_command;

struct setup {
    const char *prefix; /* "": the host itself; else the folder in which all files are made. */
    bool ignore_checks, no_start;
    char *etc;   /* PREFIX/etc/tenet */
    char *state; /* PREFIX/var/lib/tenet */
    char *run;   /* PREFIX/run/tenet */
    char *cni;   /* PREFIX/etc/cni/net.d */
    struct setup_files *files;
    /* Values of --set, in their order. */
    const char **sets;
    size_t n_sets, sets_cap;
};
/* Fills in the paths, and creates folders.  'prefix' is kept. */
int setup_open(struct setup *s, bool make, struct err *e);
void setup_done(struct setup *s);
#define CLEANUP_SETUP __attribute__((cleanup(setup_done)))

/* The options that master and node share; their ids are below SETUP_OPT_FREE. */
enum {
    SETUP_OPT_PREFIX = OPT_FIRST_FREE,
    SETUP_OPT_SET,
    SETUP_OPT_IGNORE,
    SETUP_OPT_NO_START,
    SETUP_OPT_FREE,
};
extern const struct command_option setup_options[];
/* Takes an option of setup_options; false: it is another one. */
bool setup_take_option(struct setup *s, int opt);

/* Prints "  text". */
void setup_say(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Gathers the facts, and prints the findings: all of them, or those that are not well.  Returns the
 * number of failures; 'ret_facts' (may be NULL) is the caller's. */
size_t setup_run_checks(const struct setup *s, struct setup_wish *w, const char *endpoints,
                        bool all, struct setup_facts *ret_facts);

/* Sets 'path' of a configuration document to a value, by the row that describes it: texts as they
 * are, lists with commas between, other values as YAML.  -EINVAL: there is no such key, or the
 * value is of another form; whether it is allowed is checked when the document is read.  Pure. */
int setup_config_set(struct json *doc, const struct option_table *t, const char *path,
                     const char *value, struct err *e);
/* Applies all values of --set. */
int setup_config_sets(const struct setup *s, struct json *doc, const struct option_table *t,
                      struct err *e);
/* The text of the file: a comment that names the command, and the document.  Pure. */
void setup_config_text(const struct json *doc, const char *command, const char *manual,
                       struct strbuf *out);

/* ---- services ---- */

/* Whether systemd runs and has the unit. */
bool setup_has_unit(const struct setup *s, const char *unit);
/* Enables and starts the unit, and restarts it if 'changed'.  The error has systemd's words. */
int setup_start_unit(const char *unit, bool changed, struct err *e);
/* Stops and disables it. */
int setup_stop_unit(const char *unit, struct err *e);

/* Owned text: how to open 'ports' ("8443/tcp") in this host's firewall, one line each. */
void setup_firewall_text(const struct setup_facts *f, const char *const *ports, struct strbuf *out);
