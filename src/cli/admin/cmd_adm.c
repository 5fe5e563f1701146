/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm: commands for administrators of a cluster, in groups. */
#include "base/str.h"
#include "cli/admin/adm.h"

#include <stdio.h>

static const struct command *const groups[] = {&adm_cordon,      &adm_create_master_certs,
                                               &adm_drain,       &adm_groups,
                                               &adm_manage_node, &adm_pod_network,
                                               &adm_policy,      &adm_prometheus_targets,
                                               &adm_uncordon,    NULL};

static const char help[] =
    "usage: tenet adm COMMAND [OPTIONS]\n"
    "\n"
    "Administration of a cluster.\n"
    "\n"
    "  cordon                nodes get no new pods\n"
    "  create-master-certs   certificates and keys of an API server and controllers apart\n"
    "  drain                 empty nodes for maintenance\n"
    "  groups                groups of users and their members\n"
    "  manage-node           whether nodes get pods; list or evict their pods\n"
    "  pod-network           networks of projects: join, isolate, make global\n"
    "  policy                who may use security context constraints\n"
    "  prometheus-targets    masters and nodes as targets of Prometheus\n"
    "  uncordon              nodes get new pods again\n";

static int run(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && groups[i]; i++) {
        if (streq(argv[1], groups[i]->name + strlen("adm "))) {
            return groups[i]->run(argc - 1, argv + 1);
        }
    }
    if (argc < 2) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        command_help(&cmd_adm, &text);
        fputs(strbuf_cstr(&text), stdout);
        return 2;
    }
    int opt = command_getopt(&cmd_adm, argc, argv, NULL);
    return opt == OPT_HELP ? 0
           : opt == -1     ? command_usage(&cmd_adm, "unknown command \"%s\"", argv[1])
                           : 2;
}

const struct command cmd_adm = {
    .name = "adm",
    .summary = "administration: certificates of masters, groups, networks of projects, nodes",
    .help = help,
    .notes = "tenet adm COMMAND --help prints all about a command.\n",
    .groups = groups,
    .run = run};
