/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/plan.h"

#include "base/mem.h"
#include "sdn/pipeline.h"

#include <inttypes.h>
#include <stdio.h>

void bridge_undo_clear(struct bridge_undo *u)
{
    json_free(u->updates);
    *u = (struct bridge_undo){0};
}

void bridge_undo_merge(struct bridge_undo *u, struct bridge_undo *more)
{
    u->bridge |= more->bridge;
    u->vxlan |= more->vxlan;
    u->tun |= more->tun;
    if (!u->updates) {
        /* Values of an earlier attempt, if there are any, are the older ones and stay. */
        u->updates = TAKE(more->updates);
    }
    bridge_undo_clear(more);
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

const char *plan_datapath_type(const struct ovs_rows *rows, const struct bridge_want *want)
{
    if (want->datapath_type) {
        return want->datapath_type;
    }
    if (!rows->bridge) {
        return want->fallback_type;
    }
    /* "" means system.  A bridge that works is not rebuilt because another type became
     * available. */
    const char *type = or_empty(rows->bridge->datapath_type);
    type = *type ? type : "system";
    return streq(type, "system") ? want->fallback_type : type;
}

struct json *plan_port_ref(unsigned serial)
{
    char name[32];
    snprintf(name, sizeof name, "port%u", serial);
    return ovsdb_named_uuid(name);
}

void plan_add_port(struct json *ops, const char *name, unsigned serial, struct json *iface)
{
    char iface_name[32], port_name[32];
    snprintf(iface_name, sizeof iface_name, "iface%u", serial);
    snprintf(port_name, sizeof port_name, "port%u", serial);
    json_set_string(iface, "name", name);
    json_append(ops, ovsdb_insert("Interface", iface, iface_name));
    struct json *port = json_object();
    json_set_string(port, "name", name);
    json_set(port, "interfaces", ovsdb_named_uuid(iface_name));
    json_append(ops, ovsdb_insert("Port", port, port_name));
}

struct json *plan_remove_port(const struct ovs_rows *rows, const struct row_port *p)
{
    return ovsdb_mutate("Bridge", ovsdb_where_uuid(rows->bridge->uuid), "ports", "delete",
                        ovsdb_uuid(p->uuid));
}

struct json *plan_next_cfg(const struct ovs_rows *rows)
{
    return ovsdb_mutate("Open_vSwitch", ovsdb_where_uuid(rows->root), "next_cfg",
                        "+=", json_int(1));
}

/* ---- the interfaces of ours ---- */

enum serial { SERIAL_LOCAL, SERIAL_VXLAN, SERIAL_TUN };

static struct json *vxlan_options(const struct bridge_want *want)
{
    char port[8];
    snprintf(port, sizeof port, "%u", want->vxlan_port);
    struct json *map = ovsdb_map();
    ovsdb_map_add(map, "dst_port", port);
    ovsdb_map_add(map, "key", "flow");
    return ovsdb_map_add(map, "remote_ip", "flow");
}

static struct json *vxlan_row(const struct bridge_want *want)
{
    struct json *row = json_object();
    json_set_string(row, "type", "vxlan");
    json_set(row, "options", vxlan_options(want));
    json_set_int(row, "ofport_request", PIPELINE_PORT_VXLAN);
    return row;
}

static struct json *tun_row(const struct bridge_want *want)
{
    struct json *row = json_object();
    json_set_string(row, "type", "internal");
    json_set_string(row, "mac", MAC_TEXT(want->tun_mac));
    json_set_int(row, "mtu_request", want->mtu);
    json_set_int(row, "ofport_request", PIPELINE_PORT_TUN);
    return row;
}

static struct json *optional_int(int64_t v)
{
    return v ? json_int(v) : ovsdb_set();
}

static struct json *optional_string(const char *s)
{
    return s ? json_string(s) : ovsdb_set();
}

static struct json *map_value(const struct smap *m)
{
    struct json *map = ovsdb_map();
    struct smap_entry *x;
    SMAP_FOREACH (x, m) {
        ovsdb_map_add(map, x->key, x->value);
    }
    return map;
}

/* Returns the columns of 'i' that 'wanted' has, with their present values. */
static struct json *current_row(const struct row_iface *i, const struct json *wanted)
{
    struct json *row = json_object();
    json_set_string(row, "type", or_empty(i->type));
    json_set(row, "ofport_request", optional_int(i->ofport_request));
    if (json_get(wanted, "options")) {
        json_set(row, "options", map_value(&i->options));
    }
    if (json_get(wanted, "mac")) {
        json_set(row, "mac", optional_string(i->mac));
    }
    if (json_get(wanted, "mtu_request")) {
        json_set(row, "mtu_request", optional_int(i->mtu_request));
    }
    return row;
}

static bool smap_equals_map(const struct smap *m, const struct json *map)
{
    const struct json *pairs = json_at(map, 1), *pair;
    if (smap_size(m) != json_count(pairs)) {
        return false;
    }
    JSON_FOREACH (pair, pairs) {
        const char *v = smap_get(m, json_get_string(json_at(pair, 0)));
        if (!v || !streq(v, json_get_string(json_at(pair, 1)))) {
            return false;
        }
    }
    return true;
}

static bool column_is_right(const struct row_iface *i, const struct json *now, const char *column,
                            const struct json *wanted)
{
    return streq(column, "options") ? smap_equals_map(&i->options, wanted)
                                    : json_equal(json_get(now, column), wanted);
}

/* Appends the columns of interface 'i' that differ from 'wanted' (taken over) to 'ops', and the
 * inverse to 'undo'. */
static void update_iface(const struct row_iface *i, struct json *wanted, struct json *ops,
                         struct bridge_undo *undo)
{
    CLEANUP(json_free) struct json *now = current_row(i, wanted);
    for (size_t k = json_count(wanted); k-- > 0;) {
        const char *column = json_key_at(wanted, k);
        if (column_is_right(i, now, column, json_at(wanted, k))) {
            json_remove(now, column);
            json_remove_at(wanted, k);
        }
    }
    if (!json_count(wanted)) {
        json_free(wanted);
        return;
    }
    json_append(ops, ovsdb_wait_equal("Interface", ovsdb_where_uuid(i->uuid), json_clone(now)));
    json_append(ops, ovsdb_update("Interface", ovsdb_where_uuid(i->uuid), wanted));
    if (!undo->updates) {
        undo->updates = json_array();
    }
    json_append(undo->updates, ovsdb_update("Interface", ovsdb_where_uuid(i->uuid), TAKE(now)));
}

/* Plans one of the agent's ports; a reference to it is added to 'new_ports' when it has to be
 * created. */
static int plan_port(const struct ovs_rows *rows, const char *name, enum serial serial,
                     struct json *wanted, struct json *ops, struct json *new_ports, bool *created,
                     struct bridge_undo *undo, struct err *e)
{
    const struct row_iface *i = ovs_rows_iface(rows, name);
    if (i && !i->port) {
        json_free(wanted);
        return err_set(e, -EEXIST, "interface %s is a port of another bridge", name);
    }
    if (i) {
        update_iface(i, wanted, ops, undo);
        return 0;
    }
    plan_add_port(ops, name, serial, wanted);
    ovsdb_set_add(new_ports, plan_port_ref(serial));
    *created = true;
    return 0;
}

static int check_port_numbers(const struct ovs_rows *rows, struct err *e)
{
    const struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &rows->ifaces) {
        bool ours = streq(i->name, PLAN_VXLAN) || streq(i->name, PLAN_TUN);
        if (i->port && !ours &&
            (i->ofport == PIPELINE_PORT_VXLAN || i->ofport == PIPELINE_PORT_TUN)) {
            return err_set(e, -EEXIST, "port %" PRId64 " of the bridge is taken by %s", i->ofport,
                           i->name);
        }
    }
    return 0;
}

/* ---- the bridge ---- */

static void create_bridge(const struct ovs_rows *rows, const struct bridge_want *want,
                          struct json *ports, struct json *ops)
{
    struct json *row = json_object();
    json_set_string(row, "name", want->bridge);
    json_set_string(row, "fail_mode", "secure");
    json_set_string(row, "datapath_type", plan_datapath_type(rows, want));
    json_set(row, "ports", ports);
    json_append(ops, ovsdb_insert("Bridge", row, "bridge"));
    json_append(ops, ovsdb_mutate("Open_vSwitch", ovsdb_where_uuid(rows->root), "bridges", "insert",
                                  ovsdb_named_uuid("bridge")));
}

static void update_bridge(const struct row_bridge *b, const char *type, struct json *ports,
                          struct json *ops, struct bridge_undo *undo)
{
    struct json *row = json_object(), *now = json_object();
    if (!b->fail_mode || !streq(b->fail_mode, "secure")) {
        json_set_string(row, "fail_mode", "secure");
        json_set(now, "fail_mode", optional_string(b->fail_mode));
    }
    const char *have = or_empty(b->datapath_type);
    if (!streq(*have ? have : "system", type)) {
        json_set_string(row, "datapath_type", type);
        json_set_string(now, "datapath_type", have);
    }
    if (json_count(row)) {
        json_append(ops, ovsdb_wait_equal("Bridge", ovsdb_where_uuid(b->uuid), json_clone(now)));
        json_append(ops, ovsdb_update("Bridge", ovsdb_where_uuid(b->uuid), row));
        if (!undo->updates) {
            undo->updates = json_array();
        }
        json_append(undo->updates, ovsdb_update("Bridge", ovsdb_where_uuid(b->uuid), now));
    } else {
        json_free(row);
        json_free(now);
    }
    /* An empty set means all versions. */
    if (smap_size(&b->protocols) && !smap_get(&b->protocols, "OpenFlow14")) {
        json_append(ops, ovsdb_mutate("Bridge", ovsdb_where_uuid(b->uuid), "protocols", "insert",
                                      json_string("OpenFlow14")));
    }
    if (ovsdb_set_count(ports)) {
        json_append(ops,
                    ovsdb_mutate("Bridge", ovsdb_where_uuid(b->uuid), "ports", "insert", ports));
    } else {
        json_free(ports);
    }
}

int bridge_plan(const struct ovs_rows *rows, const struct bridge_want *want, struct json **ret_ops,
                struct bridge_undo *ret_undo, struct err *e)
{
    CLEANUP(json_free) struct json *ops = json_array();
    CLEANUP(json_free) struct json *ports = ovsdb_set();
    struct bridge_undo u = {.updates = NULL};
    const struct row_iface *local = ovs_rows_iface(rows, want->bridge);
    if (!local) {
        struct json *iface = json_object();
        json_set_string(iface, "type", "internal");
        plan_add_port(ops, want->bridge, SERIAL_LOCAL, iface);
        ovsdb_set_add(ports, plan_port_ref(SERIAL_LOCAL));
    }
    int r = check_port_numbers(rows, e);
    if (r == 0 && local && !local->port) {
        r = err_set(e, -EEXIST, "interface %s is a port of another bridge", want->bridge);
    }
    if (r == 0) {
        r = plan_port(rows, PLAN_VXLAN, SERIAL_VXLAN, vxlan_row(want), ops, ports, &u.vxlan, &u, e);
    }
    if (r == 0) {
        r = plan_port(rows, PLAN_TUN, SERIAL_TUN, tun_row(want), ops, ports, &u.tun, &u, e);
    }
    if (r < 0) {
        bridge_undo_clear(&u);
        return r;
    }
    if (rows->bridge) {
        update_bridge(rows->bridge, plan_datapath_type(rows, want), TAKE(ports), ops, &u);
    } else {
        create_bridge(rows, want, TAKE(ports), ops);
        u.bridge = true;
    }
    if (!json_count(ops)) {
        return 0;
    }
    json_append(ops, plan_next_cfg(rows));
    json_append(ops, ovsdb_comment("tenet: set up the bridge"));

    *ret_undo = u;
    *ret_ops = TAKE(ops);
    return 0;
}

static void undo_port(const struct ovs_rows *rows, const char *name, struct json *ops)
{
    const struct row_iface *i = ovs_rows_iface(rows, name);
    if (i && i->port) {
        json_append(ops, plan_remove_port(rows, i->port));
    }
}

struct json *bridge_undo_ops(const struct ovs_rows *rows, struct bridge_undo *u)
{
    struct json *ops = json_array();
    if (u->bridge && rows->bridge) {
        json_append(ops, ovsdb_mutate("Open_vSwitch", ovsdb_where_uuid(rows->root), "bridges",
                                      "delete", ovsdb_uuid(rows->bridge->uuid)));
    } else if (rows->bridge) {
        if (u->vxlan) {
            undo_port(rows, PLAN_VXLAN, ops);
        }
        if (u->tun) {
            undo_port(rows, PLAN_TUN, ops);
        }
        const struct json *op;
        JSON_FOREACH (op, u->updates) {
            json_append(ops, json_clone(op));
        }
    }
    bridge_undo_clear(u);
    return json_count(ops) ? ops : json_free(ops);
}
