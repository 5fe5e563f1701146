/* SPDX-License-Identifier: Apache-2.0 */
/* tenet rollout: the rollouts of Deployments, DaemonSets, StatefulSets and DeploymentConfigs. */
#include "cli/workloads/rollout.h"

static const struct command *const groups[] = {
    &rollout_cancel, &rollout_history, &rollout_latest, &rollout_pause, &rollout_restart,
    &rollout_resume, &rollout_retry,   &rollout_status, &rollout_undo,  NULL};

static const char help[] = "usage: tenet rollout COMMAND KIND/NAME [OPTIONS]\n"
                           "\n"
                           "Rollouts of Deployments, DaemonSets, StatefulSets and "
                           "DeploymentConfigs.\n"
                           "\n"
                           "  cancel     ends the rollout of a DeploymentConfig that is under way\n"
                           "  history    the revisions, or the pod template of one\n"
                           "  latest     starts a rollout of a DeploymentConfig\n"
                           "  pause      changes of the template start no rollout\n"
                           "  restart    makes all pods anew\n"
                           "  resume     changes of the template start rollouts again\n"
                           "  retry      tries the failed rollout of a DeploymentConfig again\n"
                           "  status     waits until the rollout is complete\n"
                           "  undo       goes back to an earlier revision\n";

static int run(int argc, char **argv)
{
    return command_run_group(&cmd_rollout, argc, argv);
}

const struct command cmd_rollout = {
    .name = "rollout",
    .summary = "rollouts of workloads: status, history, undo, pause, resume, restart",
    .help = help,
    .notes = "tenet rollout COMMAND --help prints all about a command.\n",
    .groups = groups,
    .run = run};
