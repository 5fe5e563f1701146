/* SPDX-License-Identifier: Apache-2.0 */
/* The commands and groups of "tenet adm": a command's name is "adm NAME", and its argv[0] is
 * NAME. */
#pragma once

#include "cli/command.h"

extern const struct command adm_clear_route_status, adm_config, adm_cordon, adm_create_master_certs,
    adm_drain, adm_groups, adm_import, adm_manage_node, adm_new_project, adm_pod_network,
    adm_policy, adm_prometheus_targets, adm_storage, adm_uncordon;
