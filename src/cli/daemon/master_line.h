/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the master's daemons: their own flags, and flags that override the
 * configuration file. */
#pragma once

#include "cli/command.h"
#include "master/master_config.h"

enum { OPT_NETWORK_ONLY = OPT_FIRST_FREE };

struct master_line {
    const char *config; /* The configuration file; NULL: none. */
    bool network_only;
    const char *kubeconfig; /* NULL: the option was not given. */
};

/* Reads the file and then the flags into '*c', which has its defaults; sets the level of the log.
 * 'command' has the options.  Returns -1 to go on, else the exit status, after the error or the
 * help text was printed. */
int master_line_parse(const struct command *command, int argc, char **argv, struct master_config *c,
                      struct master_line *ret);
/* Parses the command line with master_line_parse, runs the parts of the master that 'command'
 * names, and returns the exit status. */
int master_line_run(const struct command *command, int argc, char **argv);

#define MASTER_CONFIG_OPTION                                                                   \
    {                                                                                          \
        "config", 'c', "FILE", "master-config.yaml; see tenet-master-config(5)", COMPLETE_FILE \
    }
#define MASTER_SETTINGS_HEADING                                          \
    {                                                                    \
        .help = "Options of the configuration, which override the file:" \
    }
