/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the datapath "ovs", by their keys in the configuration. */
#pragma once

#include "datapath/ops.h"

#define OVS_DATABASE "ovs.database" /* Path of ovsdb-server's socket. */
#define OVS_DATABASE_DEFAULT "/run/openvswitch/db.sock"
#define OVS_RUN_DIR "ovs.runDir" /* Folder with BRIDGE.mgmt, the OpenFlow socket. */
#define OVS_RUN_DIR_DEFAULT "/run/openvswitch"
#define OVS_BRIDGE "ovs.bridge" /* Name of the bridge. */
#define OVS_BRIDGE_DEFAULT "br0"
#define OVS_DATAPATH_TYPE \
    "ovs.datapathType" /* "system" or "netdev"; no value: system where the kernel has it. */

extern const struct datapath_setting ovs_settings[]; /* Ends with a NULL key. */
