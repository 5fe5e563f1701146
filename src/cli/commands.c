/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands. */
#include "cli/command.h"

const struct command *const commands[] = {
    &cmd_master,   &cmd_apiserver, &cmd_controllers,
    &cmd_node,     &cmd_kubelet,   &cmd_csi_controller,
    &cmd_router,   &cmd_lab,       &cmd_setup,
    &cmd_collect,  &cmd_store,     &cmd_get,
    &cmd_create,   &cmd_process,   &cmd_delete,
    &cmd_describe, &cmd_edit,      &cmd_patch,
    &cmd_label,    &cmd_annotate,  &cmd_wait,
    &cmd_logs,     &cmd_status,    &cmd_run,
    &cmd_expose,   &cmd_rollout,   &cmd_rollback,
    &cmd_deploy,   &cmd_scale,     &cmd_autoscale,
    &cmd_set,      &cmd_idle,      &cmd_adm,
    &cmd_token,    &cmd_trace,     &cmd_flows,
    &cmd_check,    &cmd_dns,       &cmd_deployer,
    &cmd_login,    &cmd_logout,    &cmd_whoami,
    &cmd_project,  &cmd_projects,  &cmd_new_project,
    &cmd_can,      &cmd_policy,    &cmd_sa,
    &cmd_secrets,  &cmd_scc,       &cmd_export,
    NULL,
};

/* Further names of commands, as oc has them. */
static const struct {
    const char *name, *stands_for;
} words[] = {{"serviceaccounts", "sa"}, {"secret", "secrets"}};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        name = streq(name, words[i].name) ? words[i].stands_for : name;
    }
    for (size_t i = 0; commands[i]; i++) {
        if (streq(name, commands[i]->name)) {
            return commands[i];
        }
    }
    return NULL;
}
