/* SPDX-License-Identifier: Apache-2.0 */
/* tenet master: the registry and its controllers in one process.
 *
 * It sets up no network device: a host that is only a master has no part in the pod network. */
#include "cli/daemon/master_line.h"
#include "master/master.h"

static const char help[] =
    "usage: tenet master [--config FILE] [OPTIONS]\n"
    "\n"
    "Runs the master: the cluster's registry as a Kubernetes-style API, and the controllers that "
    "give\n"
    "each node a subnet and each project a virtual network. Touches no network device.\n";

static const struct command_option options[] = {
    {"config", 'c', "FILE", "master-config.yaml; see tenet-master-config(5)", COMPLETE_FILE},
    {"controllers-only", OPT_CONTROLLERS_ONLY, NULL,
     "serves no API: runs the network's controllers on another API server, of which each copy is "
     "one of several"},
    {"kubeconfig", OPT_KUBECONFIG, "FILE",
     "with --controllers-only: how to reach that API server; default: $KUBECONFIG, then "
     "~/.kube/config",
     COMPLETE_FILE},
    {.help = "Options of the configuration, which override the file:"},
    {0},
};

static int run(int argc, char **argv)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct master_line line = {0};
    int status = master_line_parse(&cmd_master, argc, argv, &c, &line);
    if (status >= 0) {
        return status;
    }
    struct master_run run = {.config = &c,
                             .config_path = line.config,
                             .parts = line.controllers_only ? MASTER_CONTROLLERS : MASTER_WHOLE,
                             .kubeconfig = line.kubeconfig,
                             .network_only = line.controllers_only};
    struct err e = {0};
    return master_run(&run, &e) < 0 ? command_fail(&e, NULL) : 0;
}

const struct command cmd_master = {.name = "master",
                                   .summary = "run the master: registry and controllers",
                                   .help = help,
                                   .notes = "Listening sockets passed by socket activation are "
                                            "served too.\n",
                                   .options = options,
                                   .settings = &master_options,
                                   .daemons = MASTER_API | MASTER_CONTROLLERS,
                                   .run = run};
