/* SPDX-License-Identifier: Apache-2.0 */
/* What has to change in the database so that the bridge, vxlan0 and tun0 are as they should be.  Pure.
 *
 * Only differences are written, each guarded: an update by a wait for what was seen, an insert by the
 * uniqueness of names.  Pods' ports and foreign ones are never part of it. */
#pragma once

#include "datapath/ovs/rows.h"

#define PLAN_VXLAN "vxlan0"
#define PLAN_TUN "tun0"

struct bridge_want {
    const char *bridge;
    const char
        *datapath_type; /* "system" or "netdev"; NULL: what is there stays, else 'fallback'. */
    const char *fallback_type;
    uint16_t vxlan_port;
    struct mac tun_mac;
    uint32_t mtu;
};

/* What this run created and changed, so that it can be taken back. */
struct bridge_undo {
    bool bridge, vxlan, tun; /* Created. */
    struct json *updates;    /* Operations that write old values back (array; may be NULL). */
};
void bridge_undo_clear(struct bridge_undo *u);
/* Adds what a further attempt did ('more' is empty afterwards). */
void bridge_undo_merge(struct bridge_undo *u, struct bridge_undo *more);

/* Operations for 'rows' (owned), or NULL when all is right; '*ret_undo' says how to take them back.
 * -EEXIST: a name or a port number that we need is taken by something else. */
int bridge_plan(const struct ovs_rows *rows, const struct bridge_want *want, struct json **ret_ops,
                struct bridge_undo *ret_undo, struct err *e);
/* Operations that take back what 'u' says (owned), or NULL; 'u' is empty afterwards. */
struct json *bridge_undo_ops(const struct ovs_rows *rows, struct bridge_undo *u);
/* Removal of a port of the bridge. */
struct json *plan_remove_port(const struct ovs_rows *rows, const struct row_port *p);
/* Appends to 'ops' what creates port and interface NAME with 'iface' as further columns (taken over). */
void plan_add_port(struct json *ops, const char *name, unsigned serial, struct json *iface);
/* A reference to the port of that serial, for Bridge.ports. */
struct json *plan_port_ref(unsigned serial);
/* Makes ovs-vswitchd look at everything again, and lets one see (cur_cfg) that it did. */
struct json *plan_next_cfg(const struct ovs_rows *rows);
/* The datapath type that the plan uses. */
const char *plan_datapath_type(const struct ovs_rows *rows, const struct bridge_want *want);
