/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the master's daemons: their own flags, and flags that override the
 * configuration file. */
#pragma once

#include "cli/command.h"
#include "master/master_config.h"

enum { OPT_NETWORK_ONLY = OPT_FIRST_FREE };

/* The values of the daemons' own flags; zero-initialize.  Texts are borrowed from argv. */
struct master_line {
    const char *config;     /* The configuration file; NULL: none. */
    bool network_only;      /* Run only the controllers of the network. */
    const char *kubeconfig; /* How the controllers reach the API server; NULL: not given. */
};

/* Parses the flags of 'command' to '*ret', and reads the configuration file and then the flags that
 * override it into '*c', which the caller has initialized.  Sets the levels of the log.  Returns -1
 * to go on, else the exit status, after the error or the help text was printed. */
int master_line_parse(const struct command *command, int argc, char **argv, struct master_config *c,
                      struct master_line *ret);
/* Parses the command line with master_line_parse, runs the parts of the master that 'command'
 * names, and returns the exit status. */
int master_line_run(const struct command *command, int argc, char **argv);

/* Rows for the options of a daemon: --config, and the heading of the settings. */
#define MASTER_CONFIG_OPTION                                                                   \
    {                                                                                          \
        "config", 'c', "FILE", "master-config.yaml; see tenet-master-config(5)", COMPLETE_FILE \
    }
#define MASTER_SETTINGS_HEADING                                          \
    {                                                                    \
        .help = "Options of the configuration, which override the file:" \
    }
