/* SPDX-License-Identifier: Apache-2.0 */
/* The commands and groups of "tenet adm": a command's name is "adm NAME", and its argv[0] is
 * NAME. */
#pragma once

#include "cli/command.h"

extern const struct command adm_create_master_certs, adm_pod_network;
