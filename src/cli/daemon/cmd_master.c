/* SPDX-License-Identifier: Apache-2.0 */
/* tenet master: the API server and the controllers in one process.
 *
 * It sets up no network device: a host that is only a master does not take part in the pod
 * network. */
#include "cli/daemon/master_line.h"

static const char help[] =
    "usage: tenet master [--config FILE] [OPTIONS]\n"
    "\n"
    "Runs the master: the cluster's registry as a Kubernetes-style API, and the controllers that\n"
    "give each node a subnet and each project a virtual network. Touches no network device.\n"
    "\n"
    "\"tenet apiserver\" and \"tenet controllers\" are its parts as processes of their own.\n";

static const struct command_option options[] = {
    MASTER_CONFIG_OPTION,
    MASTER_SETTINGS_HEADING,
    {0},
};

static int run(int argc, char **argv)
{
    return master_line_run(&cmd_master, argc, argv);
}

const struct command cmd_master = {.name = "master",
                                   .summary = "run the master: registry and controllers",
                                   .help = help,
                                   .notes = "Listening sockets passed by socket activation are "
                                            "served too.\n",
                                   .options = options,
                                   .settings = &master_options,
                                   .daemons = MASTER_WHOLE,
                                   .run = run};
