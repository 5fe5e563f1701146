/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm: commands for administrators of a cluster, in groups. */
#include "cli/admin/adm.h"

static const struct command *const groups[] = {&adm_clear_route_status,
                                               &adm_config,
                                               &adm_cordon,
                                               &adm_create_master_certs,
                                               &adm_drain,
                                               &adm_groups,
                                               &adm_import,
                                               &adm_manage_node,
                                               &adm_new_project,
                                               &adm_pod_network,
                                               &adm_policy,
                                               &adm_prometheus_targets,
                                               &adm_storage,
                                               &adm_uncordon,
                                               NULL};

static const char help[] =
    "usage: tenet adm COMMAND [OPTIONS]\n"
    "\n"
    "Administration of a cluster.\n"
    "\n"
    "  clear-route-status    remove what routers said about routes\n"
    "  config                judge a configuration file, or convert one of OpenShift\n"
    "  cordon                nodes get no new pods\n"
    "  create-master-certs   certificates and keys of an API server and controllers apart\n"
    "  drain                 empty nodes for maintenance\n"
    "  groups                groups of users and their members\n"
    "  import                the network of a cluster with openshift-sdn\n"
    "  manage-node           whether nodes get pods; list or evict their pods\n"
    "  new-project           make a project for a user\n"
    "  pod-network           networks of projects: join, isolate, make global\n"
    "  policy                roles of users and groups, use of security context constraints\n"
    "  prometheus-targets    masters and nodes as targets of Prometheus\n"
    "  storage               write objects again, so that they are encrypted anew\n"
    "  uncordon              nodes get new pods again\n";

static int run(int argc, char **argv)
{
    return command_run_group(&cmd_adm, argc, argv);
}

const struct command cmd_adm = {
    .name = "adm",
    .summary = "administration: certificates of masters, groups, networks of projects, nodes",
    .help = help,
    .notes = "tenet adm COMMAND --help prints all about a command.\n",
    .groups = groups,
    .run = run};
