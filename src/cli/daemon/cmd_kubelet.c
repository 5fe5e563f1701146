/* SPDX-License-Identifier: Apache-2.0 */
/* tenet kubelet: the agent of a host that runs containers. */
#include "base/str.h"
#include "cli/command.h"
#include "kubelet/agent/agent.h"
#include "net/loop/config_file.h"

#include <getopt.h>
#include <unistd.h>

#define DEFAULT_CONFIG "/etc/tenet/kubelet-config.yaml"

enum { OPT_CONFIG = OPT_FIRST_FREE };

static const char help[] = "usage: tenet kubelet [--config kubelet-config.yaml] [OPTIONS]\n"
                           "\n"
                           "Runs the pods of this host's Node through a container runtime (CRI v1: "
                           "containerd, CRI-O), with\n"
                           "any CNI plug-in, and tells the master how they are. Runs until it is "
                           "stopped; containers go on\n"
                           "without it, and it takes them over when it is back. Needs root.\n";

static const struct command_option options[] = {
    {"config", OPT_CONFIG, "FILE", "configuration; default: " DEFAULT_CONFIG ", if it exists",
     COMPLETE_FILE},
    {"kubeconfig", OPT_KUBECONFIG, "FILE", "the same as --master-kubeconfig", COMPLETE_FILE},
    {.help = "Options of the configuration, which override the file:"},
    {0},
};

struct run_options {
    const char *config; /* NULL: the default path, if the file exists. */
    struct command_settings settings;
};

static void run_options_done(struct run_options *o)
{
    command_settings_done(&o->settings);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char **argv, struct run_options *ret)
{
    int opt;
    const char *name = NULL;
    optind = 0;
    while ((opt = command_getopt(&cmd_kubelet, argc, argv, &name)) != -1) {
        switch (opt) {
        case OPT_CONFIG:
            ret->config = optarg;
            break;
        case OPT_KUBECONFIG:
            command_settings_add(&ret->settings, "master-kubeconfig", optarg);
            break;
        case OPT_SETTING:
            command_settings_add(&ret->settings, name, optarg);
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return command_expect_end(&cmd_kubelet, argc, argv);
}

static int run(int argc, char **argv)
{
    CLEANUP(kubelet_config_done) struct kubelet_config c;
    struct err e = {0};
    __attribute__((cleanup(run_options_done))) struct run_options o = {0};
    kubelet_config_init(&c);
    int status = parse_options(argc, argv, &o);
    if (status >= 0) {
        return status;
    }
    const char *config = o.config;
    if (!config && access(DEFAULT_CONFIG, F_OK) == 0) {
        config = DEFAULT_CONFIG;
    }
    if (config && kubelet_config_load(&c, config, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (command_settings_apply(&o.settings, &kubelet_options, &c, &e) < 0) {
        return command_usage(&cmd_kubelet, "%s", e.text);
    }
    if (kubelet_config_finish(&c, &e) < 0 ||
        config_file_set_log(c.log_level, c.log_format, &e) < 0) {
        return command_fail(&e, config ? "%s" : NULL, config);
    }
    config_file_warn(&c.findings);
    status = kubelet_run(&c, config, &e);
    return status < 0 ? command_fail(&e, NULL) : status;
}

const struct command cmd_kubelet = {
    .name = "kubelet",
    .summary = "run this host's pods as containers",
    .help = help,
    .notes =
        "SIGTERM stops it; SIGHUP reads logLevel again. Exit status: 0 stopped, 1 it cannot go\n"
        "on (the last line says why), 2 wrong usage.\n",
    .options = options,
    .settings = &kubelet_options,
    .run = run,
};
