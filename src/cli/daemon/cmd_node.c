/* SPDX-License-Identifier: Apache-2.0 */
/* tenet node: the agent of a host that runs pods. */
#include "base/str.h"
#include "cli/command.h"
#include "cli/explain/node_flows.h"
#include "cli/explain/node_maps.h"
#include "net/loop/config_file.h"
#include "node/agent/agent.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#define DEFAULT_CONFIG "/etc/tenet/node-config.yaml"

enum { OPT_CONFIG = OPT_FIRST_FREE, OPT_MOUNTS };

static const char help[] =
    "usage: tenet node [--config node-config.yaml] [OPTIONS]\n"
    "       tenet node flows [OPTIONS]     the pipeline of a running node in words; --help\n"
    "       tenet node maps [OPTIONS]      the eBPF maps of a running node; --help\n"
    "\n"
    "Joins this host to the pod network: registers it, waits for its subnet, sets up br0, vxlan0,\n"
    "tun0, routes and NAT, and attaches pods for the container runtime (CNI). Runs until it is\n"
    "stopped; packets flow on without it. Needs root, a running Open vSwitch, and nft.\n";

static const struct command_option options[] = {
    {"config", OPT_CONFIG, "FILE", "configuration; default: " DEFAULT_CONFIG ", if it exists",
     COMPLETE_FILE},
    {"make-mounts", OPT_MOUNTS, NULL,
     "makes the mounts below runDir that outlive the agent, and exits: to be run before an agent "
     "that "
     "has a mount namespace of its own"},
    {"kubeconfig", OPT_KUBECONFIG, "FILE", "the same as --master-kubeconfig", COMPLETE_FILE},
    {.help = "Options of the configuration, which override the file:"},
    {0},
};

static const struct command *const groups[] = {&cmd_node_flows, &cmd_node_maps, NULL};

struct run_options {
    const char *config; /* NULL: the default path, if the file exists. */
    bool mounts_only;
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
    while ((opt = command_getopt(&cmd_node, argc, argv, &name)) != -1) {
        switch (opt) {
        case OPT_CONFIG:
            ret->config = optarg;
            break;
        case OPT_MOUNTS:
            ret->mounts_only = true;
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
    return command_expect_end(&cmd_node, argc, argv);
}

static int run_agent(int argc, char **argv)
{
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    __attribute__((cleanup(run_options_done))) struct run_options o = {0};
    node_config_init(&c);
    int status = parse_options(argc, argv, &o);
    if (status >= 0) {
        return status;
    }
    const char *config = o.config;
    if (!config && access(DEFAULT_CONFIG, F_OK) == 0) {
        config = DEFAULT_CONFIG;
    }
    if (config && node_config_load(&c, config, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (command_settings_apply(&o.settings, &node_options, &c, &e) < 0) {
        return command_usage(&cmd_node, "%s", e.text);
    }
    if (node_config_finish(&c, &e) < 0 || config_file_set_log(c.log_level, c.log_format, &e) < 0) {
        return command_fail(&e, config ? "%s" : NULL, config);
    }
    config_file_warn(&c.findings);
    status = o.mounts_only ? agent_make_mounts(&c, &e) : agent_run(&c, config, &e);
    return status < 0 ? command_fail(&e, NULL) : status;
}

static int run(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && groups[i]; i++) {
        if (streq(argv[1], groups[i]->name + strlen("node "))) {
            return groups[i]->run(argc - 1, argv + 1);
        }
    }
    return run_agent(argc, argv);
}

const struct command cmd_node = {
    .name = "node",
    .summary = "carry pods on this host: the agent of a node",
    .help = help,
    .notes = "The file written last, in cniConfDir, is the sign that the node is ready. SIGTERM "
             "removes it "
             "and\n"
             "stops the agent; SIGHUP reads logLevel again. Exit status: 0 stopped, 1 it cannot go "
             "on (the "
             "last\n"
             "line says why), 2 wrong usage.\n",
    .options = options,
    .settings = &node_options,
    .groups = groups,
    .run = run,
};
