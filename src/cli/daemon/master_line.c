/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/daemon/master_line.h"

#include "master/master.h"
#include "net/loop/config_file.h"

#include <getopt.h>

/* Returns -1 to go on, else the exit status. */
static int parse_flags(const struct command *command, int argc, char **argv,
                       struct command_settings *settings, struct master_line *ret)
{
    int opt;
    const char *name = NULL;
    optind = 0;
    while ((opt = command_getopt(command, argc, argv, &name)) != -1) {
        switch (opt) {
        case 'c':
            ret->config = optarg;
            break;
        case OPT_NETWORK_ONLY:
            ret->network_only = true;
            break;
        case OPT_KUBECONFIG:
            ret->kubeconfig = optarg;
            break;
        case OPT_SETTING:
            command_settings_add(settings, name, optarg);
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return command_expect_end(command, argc, argv);
}

int master_line_parse(const struct command *command, int argc, char **argv, struct master_config *c,
                      struct master_line *ret)
{
    CLEANUP_SETTINGS struct command_settings settings = {0};
    struct err e = {0};
    int status = parse_flags(command, argc, argv, &settings, ret);
    if (status >= 0) {
        return status;
    }
    if (ret->config && master_config_load(ret->config, c, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (command_settings_apply(&settings, &master_options, c, &e) < 0) {
        return command_usage(command, "%s", e.text);
    }
    if (config_file_set_log(c->log_level, c->log_format, &e) == 0 &&
        master_config_check(c, command->daemons, &e) == 0) {
        config_file_warn(&c->findings);
        return -1;
    }
    return ret->config ? command_fail(&e, "%s", ret->config) : command_fail(&e, NULL);
}

int master_line_run(const struct command *command, int argc, char **argv)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct master_line line = {0};
    int status = master_line_parse(command, argc, argv, &c, &line);
    if (status >= 0) {
        return status;
    }
    struct master_run run = {.config = &c,
                             .config_path = line.config,
                             .parts = (enum master_part) command->daemons,
                             .kubeconfig = line.kubeconfig,
                             .network_only = line.network_only};
    struct err e = {0};
    return master_run(&run, &e) < 0 ? command_fail(&e, NULL) : 0;
}
