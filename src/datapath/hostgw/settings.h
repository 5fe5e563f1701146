/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the datapath "hostgw", by their keys in the configuration. */
#pragma once

#include "datapath/ops.h"

/* The file in which flannel names the node's subnet, for programs that read it. */
#define HOSTGW_SUBNET_FILE "hostgw.subnetFile"
#define HOSTGW_SUBNET_FILE_DEFAULT "/run/flannel/subnet.env"

extern const struct datapath_setting hostgw_settings[]; /* Ends with a NULL key. */
