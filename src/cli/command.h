/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the 'tenet' program: one file each, cmd_NAME.c, with a struct command that
 * commands.c lists.
 *
 * A command describes its options as rows (struct command_option).  The parser and "--help" use
 * them, and the manual and shell completion are generated from them; "make generate" rewrites the
 * files.  Its function 'run' returns the exit status: 0 done, 1 failed (one line "tenet: ..." on
 * standard error), 2 wrong usage (the line says what is accepted and names --help). */
#pragma once

#include "wire/options.h"

/* Values of 'complete' for names that exist when the shell completes. */
#define COMPLETE_FILE "@file"
#define COMPLETE_NAMESPACE "@namespaces"
#define COMPLETE_SERVICE "@services"
#define COMPLETE_NODE "@nodes"
#define COMPLETE_KIND "@kinds" /* A kind, and then names of that kind. */

/* One row: an option of the command line. */
struct command_option {
    const char *name; /* "output"; NULL with a help text: a heading among the options. */
    int id;           /* The letter of the short option, or a number from OPT_HELP on. */
    /* "FORMAT"; "[=false]": the value may be left out; NULL: the option takes no value. */
    const char *arg;
    const char *help;     /* A phrase: lower case at its start, without a full stop. */
    const char *complete; /* Values with blanks between, or COMPLETE_...; NULL: none. */
    const char *detail;   /* Sentences for the manual; NULL: nothing more to say. */
};

enum {
    OPT_HELP = 256,
    OPT_KUBECONFIG,
    OPT_SETTING,
    OPT_CONTEXT,
    OPT_BEARER,
    OPT_AS,
    OPT_AS_GROUP,
    OPT_LOGLEVEL,
    OPT_FIRST_FREE
};

struct command {
    const char *name;    /* "master", "node flows" */
    const char *summary; /* The line in "tenet --help". */
    const char *help;    /* Usage and description. */
    const char *notes;   /* Text after the options in "--help"; NULL: none. */
    /* The command's own options; ends with zeros; NULL: none. */
    const struct command_option *options;
    /* Options that several commands share; ends with zeros; NULL: none. */
    const struct command_option *shared;
    /* The keys of a configuration file that are also flags. */
    const struct option_table *settings;
    /* The daemons whose settings apply, as in option_row.daemons. */
    unsigned daemons;
    /* Values of the command's arguments, in the form of command_option.complete; NULL: none. */
    const char *complete;
    const struct command *const *groups; /* Subcommands; ends with NULL. */
    int (*run)(int argc, char **argv);   /* argv[0] is the command's name. */
};

extern const struct command cmd_master, cmd_apiserver, cmd_controllers, cmd_csi_controller,
    cmd_node, cmd_kubelet, cmd_lab, cmd_setup, cmd_collect, cmd_store, cmd_get, cmd_create,
    cmd_delete, cmd_describe, cmd_process, cmd_deployer, cmd_adm, cmd_token, cmd_trace, cmd_check,
    cmd_dns, cmd_idle, cmd_flows, cmd_whoami, cmd_rollout, cmd_rollback, cmd_deploy, cmd_scale,
    cmd_autoscale, cmd_set, cmd_status, cmd_wait, cmd_logs, cmd_edit, cmd_patch, cmd_label,
    cmd_annotate, cmd_expose, cmd_run, cmd_login, cmd_logout, cmd_project, cmd_projects,
    cmd_new_project, cmd_can, cmd_policy, cmd_sa, cmd_secrets, cmd_scc, cmd_export, cmd_router;

extern const struct command *const commands[]; /* All commands; ends with NULL. */
/* Finds a command by its name; NULL: there is none. */
const struct command *command_find(const char *name);

/* Returns the next option of the command line: its id, with the value in optarg and the long name
 * in '*ret_name' (may be NULL); OPT_SETTING for a flag of 'settings'. -1: the end.  '?': a wrong
 * option, which was reported (exit with 2). OPT_HELP: the help text was printed (exit with 0). */
int command_getopt(const struct command *c, int argc, char **argv, const char **ret_name);
/* Runs the subcommand that argv[1] names, of a command with 'groups'.  Returns the exit status. */
int command_run_group(const struct command *c, int argc, char **argv);
/* The arguments after "--", and '*argc' without them; NULL: there is no "--". */
char **command_take_rest(int *argc, char **argv);
/* After the options: -1 when no argument is left at 'optind', else 2 after the first one was
 * reported. */
int command_expect_end(const struct command *c, int argc, char **argv);
/* Appends the whole text of "tenet NAME --help". */
void command_help(const struct command *c, struct strbuf *out);
/* Calls 'fn' for each option: the command's own options, shared ones, flags of settings, --help. */
void command_each_option(const struct command *c,
                         void (*fn)(void *ctx, const struct command_option *o), void *ctx);

/* Flags of settings in the order of the command line: they override the configuration file, which
 * is read later. Zero-initialize; the texts are borrowed from the command line. */
struct command_settings {
    struct command_setting {
        const char *flag, *value;
    } * items;
    size_t n, cap;
};
void command_settings_add(struct command_settings *s, const char *flag, const char *value);
/* Stores all in '*config'.  -EINVAL names the flag. */
int command_settings_apply(const struct command_settings *s, const struct option_table *t,
                           void *config, struct err *e);
void command_settings_done(struct command_settings *s);
#define CLEANUP_SETTINGS __attribute__((cleanup(command_settings_done)))

/* The name by which the program was called: "tenet", "oc", "kubectl tenet".  Texts that tell what
 * to type next have it. */
const char *command_program(void);
void command_set_program(const char *name); /* 'name' must stay. */

/* Takes a secret out of the command line, which other users of the machine may see; owned. */
char *command_take_secret(char *value);

/* Prints "tenet: TEXT" to standard error; TEXT is the error's when 'fmt' is NULL.  Returns 1. */
int command_fail(const struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Prints "tenet NAME: TEXT; see tenet NAME --help"; returns 2. */
int command_usage(const struct command *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
