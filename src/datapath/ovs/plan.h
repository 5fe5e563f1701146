/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the changes of the database that bring the bridge, vxlan0 and tun0 to the desired state.
 * Pure.
 *
 * Only differences are written, each guarded: an update by a "wait" operation for the values that
 * were read, an insert by the uniqueness of names. Pods' ports and foreign ones are never part of
 * it. */
#pragma once

#include "datapath/ovs/rows.h"

#define PLAN_VXLAN "vxlan0"
#define PLAN_TUN "tun0"

struct bridge_want {
    const char *bridge;
    const char
        /* "system" or "netdev"; NULL: an existing bridge keeps its type, a new one gets
         * 'fallback'. */
        *datapath_type;
    const char *fallback_type;
    uint16_t vxlan_port;
    struct mac tun_mac;
    uint32_t mtu;
};

/* The objects that this run created and changed, so that it can undo that. */
struct bridge_undo {
    bool bridge, vxlan, tun; /* UUIDs of created rows. */
    struct json *updates;    /* Operations that write old values back (array; may be NULL). */
};
void bridge_undo_clear(struct bridge_undo *u);
/* Adds the changes of a further attempt ('more' is empty afterwards). */
void bridge_undo_merge(struct bridge_undo *u, struct bridge_undo *more);

/* Operations for 'rows' (owned), or NULL when nothing differs; '*ret_undo' has what undoes them.
 * -EEXIST: another program's port has a name or a port number that the bridge needs. */
int bridge_plan(const struct ovs_rows *rows, const struct bridge_want *want, struct json **ret_ops,
                struct bridge_undo *ret_undo, struct err *e);
/* Operations that undo the changes of 'u' (owned), or NULL; 'u' is empty afterwards. */
struct json *bridge_undo_ops(const struct ovs_rows *rows, struct bridge_undo *u);
/* Appends the removal of a port of the bridge. */
struct json *plan_remove_port(const struct ovs_rows *rows, const struct row_port *p);
/* Appends operations to 'ops' that create port and interface NAME with 'iface' as further columns
 * (taken over). */
void plan_add_port(struct json *ops, const char *name, unsigned serial, struct json *iface);
/* Returns a reference to the port with this serial, for Bridge.ports. */
struct json *plan_port_ref(unsigned serial);
/* Makes ovs-vswitchd compare the whole database again, and report in cur_cfg that it did. */
struct json *plan_next_cfg(const struct ovs_rows *rows);
/* The datapath type that the plan uses. */
const char *plan_datapath_type(const struct ovs_rows *rows, const struct bridge_want *want);
