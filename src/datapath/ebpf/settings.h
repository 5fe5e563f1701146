/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the datapath "ebpf", by their keys in the configuration. */
#pragma once

#include "datapath/ops.h"

#define EBPF_WITHOUT \
    "ebpf.without" /* "tcx,redirect_peer": features of the kernel that are not used. */
#define EBPF_MAX_ENTRIES \
    "ebpf.maxEntries" /* Upper limit of the entries of a map that the agent fills. */

extern const struct datapath_setting ebpf_settings[]; /* Ends with a NULL key. */
/* The number of EBPF_MAX_ENTRIES; 0: no limit. */
uint32_t ebpf_max_entries(const struct datapath_config *cfg);
