/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands. */
#include "cli/command.h"

const struct command *const commands[] = {
    &cmd_master, &cmd_apiserver, &cmd_controllers, &cmd_node,   &cmd_kubelet, &cmd_csi_controller,
    &cmd_lab,    &cmd_setup,     &cmd_collect,     &cmd_store,  &cmd_get,     &cmd_create,
    &cmd_delete, &cmd_describe,  &cmd_idle,        &cmd_adm,    &cmd_token,   &cmd_trace,
    &cmd_flows,  &cmd_check,     &cmd_dns,         &cmd_whoami, NULL,
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++) {
        if (streq(name, commands[i]->name)) {
            return commands[i];
        }
    }
    return NULL;
}
