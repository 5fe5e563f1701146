/* SPDX-License-Identifier: Apache-2.0 */
/* tenet setup: makes real hosts masters and nodes, and the command that checks before. */
#include "base/log.h"
#include "base/mem.h"
#include "cli/setup/setup.h"

#include <getopt.h>
#include <stdio.h>

/* ---- tenet setup check ---- */

static const char check_help[] = "usage: tenet setup check [master|node] [OPTIONS]\n"
                                 "\n"
                                 "Says what would fail on this host, before anything is changed: a "
                                 "line for each check with what\n"
                                 "was found, and what to do about it.  Without an argument it "
                                 "checks for both.  Exit status 0: no\n"
                                 "check failed (warnings do not count), 1: at least one did.\n";

enum { OPT_ADDRESS = OPT_FIRST_FREE, OPT_PORT, OPT_ETCD, OPT_DATAPATH };

static const struct command_option check_options[] = {
    {"address", OPT_ADDRESS, "ADDRESS",
     "address of this host; default: that of the link with the default route"},
    {"port", OPT_PORT, "PORT", "TCP port of the master's API; default: 8443"},
    {"etcd", OPT_ETCD, "URLS", "servers of etcd, which are to answer"},
    {"datapath", OPT_DATAPATH, "ovs|ebpf", "the node's datapath; default: ovs", "ovs ebpf"},
    {0},
};

static int check_run(int argc, char **argv)
{
    CLEANUP_SETUP struct setup s = {0};
    struct netconf network;
    struct setup_wish w = {.network = &network, .api_port = 8443, .dns = true};
    const char *etcd = NULL;
    uint64_t port;
    struct err e = {0};
    int opt;
    optind = 0;
    netconf_defaults(&network);
    network.mtu = 0;
    while ((opt = command_getopt(&setup_check_command, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_ADDRESS:
            if (ip4_parse(optarg, &w.address) < 0) {
                return command_usage(&setup_check_command, "--address %s is not an IPv4 address",
                                     optarg);
            }
            break;
        case OPT_PORT:
            if (str_to_u64(optarg, UINT16_MAX, &port) < 0 || !port) {
                return command_usage(&setup_check_command, "--port %s is not in 1-65535", optarg);
            }
            w.api_port = (uint16_t) port;
            break;
        case OPT_ETCD:
            etcd = optarg;
            w.etcd = true;
            break;
        case OPT_DATAPATH:
            if (!streq(optarg, "ovs") && !streq(optarg, "ebpf")) {
                return command_usage(&setup_check_command, "--datapath must be ovs or ebpf");
            }
            w.ebpf = streq(optarg, "ebpf");
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    const char *role = optind < argc ? argv[optind++] : "";
    w.roles = streq(role, "master") ? SETUP_MASTER
              : streq(role, "node") ? SETUP_NODE
              : !*role              ? SETUP_MASTER | SETUP_NODE
                                    : 0;
    if (!w.roles) {
        return command_usage(&setup_check_command, "must be master or node, not \"%s\"", role);
    }
    int status = command_expect_end(&setup_check_command, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (setup_open(&s, false, &e) < 0) {
        return command_fail(&e, NULL);
    }
    return setup_run_checks(&s, &w, etcd, true, NULL) ? 1 : 0;
}

const struct command setup_check_command = {.name = "setup check",
                                            .summary = "what would fail on this host",
                                            .help = check_help,
                                            .options = check_options,
                                            .complete = "master node",
                                            .run = check_run};

/* ---- tenet setup ---- */

static const struct command *const groups[] = {&setup_check_command, &setup_master_command,
                                               &setup_node_command, &setup_remove_command, NULL};

static const char help[] = "usage: tenet setup COMMAND [OPTIONS]\n"
                           "\n"
                           "Makes real hosts masters and nodes of a cluster.\n"
                           "\n"
                           "  check    what would fail on this host; changes nothing\n"
                           "  master   makes this host the master of a cluster\n"
                           "  node     makes this host a node of a cluster\n"
                           "  remove   takes away what setup made; keeps data unless purged\n";

static int run(int argc, char **argv)
{
    /* The commands say what they do; the parts of daemons that they use log only what is wrong. */
    (void) log_set_levels("warn", NULL);
    for (size_t i = 0; argc > 1 && groups[i]; i++) {
        if (streq(argv[1], groups[i]->name + strlen("setup "))) {
            return groups[i]->run(argc - 1, argv + 1);
        }
    }
    if (argc < 2) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        command_help(&cmd_setup, &text);
        fputs(strbuf_cstr(&text), stdout);
        return 2;
    }
    int opt = command_getopt(&cmd_setup, argc, argv, NULL);
    return opt == OPT_HELP ? 0
           : opt == -1     ? command_usage(&cmd_setup, "unknown command \"%s\"", argv[1])
                           : 2;
}

const struct command cmd_setup = {.name = "setup",
                                  .summary = "makes this host a master or a node; checks before",
                                  .help = help,
                                  .notes =
                                      "tenet setup COMMAND --help prints all about a command.\n",
                                  .groups = groups,
                                  .run = run};
