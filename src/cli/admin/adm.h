/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of "tenet adm": commands whose name is "adm GROUP", and whose argv[0] is the group. */
#pragma once

#include "cli/command.h"

extern const struct command adm_pod_network;
