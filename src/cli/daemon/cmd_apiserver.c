/* SPDX-License-Identifier: Apache-2.0 */
/* tenet apiserver: the API server alone.  Controllers run in a process of their own ("tenet
 * controllers"). */
#include "cli/daemon/master_line.h"

static const char help[] =
    "usage: tenet apiserver [--config FILE] [OPTIONS]\n"
    "\n"
    "Serves the cluster's registry as a Kubernetes-style API, and nothing else of a master: until\n"
    "\"tenet controllers\" runs, on any host, nodes get no subnet and projects no network.\n"
    "It has the data and the key that signs the tokens of service accounts, but not the key of\n"
    "the cluster's authority: \"tenet adm create-master-certs\" makes its certificate.\n";

static const struct command_option options[] = {
    MASTER_CONFIG_OPTION,
    MASTER_SETTINGS_HEADING,
    {0},
};

static int run(int argc, char **argv)
{
    return master_line_run(&cmd_apiserver, argc, argv);
}

const struct command cmd_apiserver = {.name = "apiserver",
                                      .summary = "run the API server alone: the registry",
                                      .help = help,
                                      .notes = "Listening sockets passed by socket activation are "
                                               "served too.\n",
                                      .options = options,
                                      .settings = &master_options,
                                      .daemons = MASTER_API,
                                      .run = run};
