/* SPDX-License-Identifier: Apache-2.0 */
/* tenet controllers: the controllers alone, as clients of "tenet apiserver" or of another API
 * server. */
#include "cli/daemon/master_line.h"

static const char help[] =
    "usage: tenet controllers --kubeconfig FILE [--config FILE] [OPTIONS]\n"
    "\n"
    "Runs the controllers: subnets of nodes, networks of projects, certificates, garbage. Several\n"
    "may run, and one of them leads. They keep nothing: what they know is in the API.\n"
    "They have the key of the cluster's authority, with which they sign certificates.\n";

static const struct command_option options[] = {
    MASTER_CONFIG_OPTION,
    {"kubeconfig", OPT_KUBECONFIG, "FILE",
     "how to reach the API, as system:masters; default: $KUBECONFIG, then ~/.kube/config",
     COMPLETE_FILE},
    {"network-only", OPT_NETWORK_ONLY, NULL,
     "the API server is of another kind and has its own controllers; run only those for subnets "
     "and "
     "virtual networks"},
    MASTER_SETTINGS_HEADING,
    {0},
};

static int run(int argc, char **argv)
{
    return master_line_run(&cmd_controllers, argc, argv);
}

const struct command cmd_controllers = {.name = "controllers",
                                        .summary = "run the controllers alone",
                                        .help = help,
                                        .options = options,
                                        .settings = &master_options,
                                        .daemons = MASTER_CONTROLLERS,
                                        .run = run};
