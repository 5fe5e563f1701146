/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/rows.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

void ovs_rows_init(struct ovs_rows *r)
{
    *r = (struct ovs_rows){0};
    hmap_init(&r->bridges);
    hmap_init(&r->ports);
    hmap_init(&r->ifaces);
    hmap_init(&r->ifaces_by_name);
    smap_init(&r->root_bridges, NULL);
}

static void bridge_free(struct ovs_rows *r, struct row_bridge *b)
{
    hmap_remove(&r->bridges, &b->node);
    free(b->name);
    free(b->fail_mode);
    free(b->datapath_type);
    smap_done(&b->ports);
    smap_done(&b->protocols);
    free(b);
}

static void port_free(struct ovs_rows *r, struct row_port *p)
{
    hmap_remove(&r->ports, &p->node);
    free(p->name);
    smap_done(&p->interfaces);
    free(p);
}

static void iface_free(struct ovs_rows *r, struct row_iface *i)
{
    hmap_remove(&r->ifaces, &i->node);
    if (i->name) {
        hmap_remove(&r->ifaces_by_name, &i->by_name);
    }
    free(i->name);
    free(i->type);
    free(i->mac);
    free(i->error);
    smap_done(&i->options);
    smap_done(&i->external_ids);
    dp_pod_free(i->pod);
    free(i);
}

void ovs_rows_clear(struct ovs_rows *r)
{
    struct row_bridge *b;
    HMAP_FOREACH (b, struct row_bridge, node, &r->bridges) {
        bridge_free(r, b);
    }
    struct row_port *p;
    HMAP_FOREACH (p, struct row_port, node, &r->ports) {
        port_free(r, p);
    }
    struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &r->ifaces) {
        iface_free(r, i);
    }
    smap_clear(&r->root_bridges);
    r->root[0] = '\0';
    r->bridge = NULL;
    r->next_cfg = r->cur_cfg = 0;
}

void ovs_rows_done(struct ovs_rows *r)
{
    ovs_rows_clear(r);
    hmap_done(&r->bridges);
    hmap_done(&r->ports);
    hmap_done(&r->ifaces);
    hmap_done(&r->ifaces_by_name);
    smap_done(&r->root_bridges);
}

/* ---- reading ---- */

static int read_root(struct ovs_rows *r, const struct json *row, bool diff, struct err *e)
{
    int k = ovsdb_read_set(row, "bridges", diff, &r->root_bridges, e);
    k = k < 0 ? k : ovsdb_read_int(row, "next_cfg", 0, &r->next_cfg, e);
    return k < 0 ? k : ovsdb_read_int(row, "cur_cfg", 0, &r->cur_cfg, e);
}

static int read_bridge(struct row_bridge *b, const struct json *row, bool diff, struct err *e)
{
    int k = ovsdb_read_string(row, "name", &b->name, e);
    k = k < 0 ? k : ovsdb_read_string(row, "fail_mode", &b->fail_mode, e);
    k = k < 0 ? k : ovsdb_read_string(row, "datapath_type", &b->datapath_type, e);
    k = k < 0 ? k : ovsdb_read_set(row, "protocols", diff, &b->protocols, e);
    return k < 0 ? k : ovsdb_read_set(row, "ports", diff, &b->ports, e);
}

static int read_port(struct row_port *p, const struct json *row, bool diff, struct err *e)
{
    int k = ovsdb_read_string(row, "name", &p->name, e);
    return k < 0 ? k : ovsdb_read_set(row, "interfaces", diff, &p->interfaces, e);
}

static int read_iface(struct ovs_rows *r, struct row_iface *i, const struct json *row, bool diff,
                      struct err *e)
{
    bool had_name = i->name;
    int k = had_name ? 0 : ovsdb_read_string(row, "name", &i->name, e);
    k = k < 0 ? k : ovsdb_read_string(row, "type", &i->type, e);
    k = k < 0 ? k : ovsdb_read_string(row, "mac", &i->mac, e);
    k = k < 0 ? k : ovsdb_read_string(row, "error", &i->error, e);
    k = k < 0 ? k : ovsdb_read_int(row, "ofport", 0, &i->ofport, e);
    k = k < 0 ? k : ovsdb_read_int(row, "ofport_request", 0, &i->ofport_request, e);
    k = k < 0 ? k : ovsdb_read_int(row, "mtu_request", 0, &i->mtu_request, e);
    k = k < 0 ? k : ovsdb_read_map(row, "options", diff, &i->options, e);
    k = k < 0 ? k : ovsdb_read_map(row, "external_ids", diff, &i->external_ids, e);
    if (!had_name && i->name) {
        hmap_insert(&r->ifaces_by_name, &i->by_name, hash_string(i->name));
    }
    if (k == 0 && !i->name) {
        return err_set(e, -EBADMSG, "interface without a name");
    }
    if (k == 0 && (!diff || json_get(row, "external_ids"))) {
        dp_pod_free(i->pod);
        i->pod = pod_from_ids(&i->external_ids, i->name);
        i->pooled = smap_get(&i->external_ids, POD_POOL_KEY);
    }
    return k;
}

/* ---- rows by uuid ---- */

static struct row_bridge *find_bridge(const struct ovs_rows *r, const char *uuid)
{
    struct row_bridge *b;
    HMAP_FOREACH_WITH_HASH (b, struct row_bridge, node, hash_string(uuid), &r->bridges) {
        if (streq(b->uuid, uuid)) {
            return b;
        }
    }
    return NULL;
}

struct row_port *ovs_rows_port(const struct ovs_rows *r, const char *uuid)
{
    struct row_port *p;
    HMAP_FOREACH_WITH_HASH (p, struct row_port, node, hash_string(uuid), &r->ports) {
        if (streq(p->uuid, uuid)) {
            return p;
        }
    }
    return NULL;
}

static struct row_iface *find_iface(const struct ovs_rows *r, const char *uuid)
{
    struct row_iface *i;
    HMAP_FOREACH_WITH_HASH (i, struct row_iface, node, hash_string(uuid), &r->ifaces) {
        if (streq(i->uuid, uuid)) {
            return i;
        }
    }
    return NULL;
}

struct row_iface *ovs_rows_iface(const struct ovs_rows *r, const char *name)
{
    struct row_iface *i;
    HMAP_FOREACH_WITH_HASH (i, struct row_iface, by_name, hash_string(name), &r->ifaces_by_name) {
        if (streq(i->name, name)) {
            return i;
        }
    }
    return NULL;
}

/* ---- updates ---- */

static int out_of_step(const char *table, const char *uuid, enum ovsdb_change change, struct err *e)
{
    return err_set(e, -EBADMSG, "table %s: row %s is %s", table, uuid,
                   change == OVSDB_INSERT ? "inserted twice" : "changed but unknown");
}

static int apply_root(struct ovs_rows *r, const char *uuid, enum ovsdb_change change,
                      const struct json *row, struct err *e)
{
    if (change == OVSDB_INSERT) {
        snprintf(r->root, sizeof r->root, "%s", uuid);
        smap_clear(&r->root_bridges);
        r->next_cfg = r->cur_cfg = 0;
    } else if (!streq(r->root, uuid)) {
        return out_of_step("Open_vSwitch", uuid, change, e);
    } else if (change == OVSDB_DELETE) {
        r->root[0] = '\0';
        return 0;
    }
    return read_root(r, row, change == OVSDB_MODIFY, e);
}

static int apply_bridge(struct ovs_rows *r, const char *uuid, enum ovsdb_change change,
                        const struct json *row, struct err *e)
{
    struct row_bridge *b = find_bridge(r, uuid);
    if ((b == NULL) != (change == OVSDB_INSERT)) {
        return out_of_step("Bridge", uuid, change, e);
    }
    if (change == OVSDB_DELETE) {
        bridge_free(r, b);
        return 0;
    }
    if (!b) {
        b = NEW(struct row_bridge);
        memcpy(b->uuid, uuid, OVSDB_UUID_SIZE);
        smap_init(&b->ports, NULL);
        smap_init(&b->protocols, NULL);
        hmap_insert(&r->bridges, &b->node, hash_string(uuid));
    }
    return read_bridge(b, row, change == OVSDB_MODIFY, e);
}

static int apply_port(struct ovs_rows *r, const char *uuid, enum ovsdb_change change,
                      const struct json *row, struct err *e)
{
    struct row_port *p = ovs_rows_port(r, uuid);
    if ((p == NULL) != (change == OVSDB_INSERT)) {
        return out_of_step("Port", uuid, change, e);
    }
    if (change == OVSDB_DELETE) {
        port_free(r, p);
        return 0;
    }
    if (!p) {
        p = NEW(struct row_port);
        memcpy(p->uuid, uuid, OVSDB_UUID_SIZE);
        smap_init(&p->interfaces, NULL);
        hmap_insert(&r->ports, &p->node, hash_string(uuid));
    }
    return read_port(p, row, change == OVSDB_MODIFY, e);
}

static int apply_iface(struct ovs_rows *r, const char *uuid, enum ovsdb_change change,
                       const struct json *row, struct err *e)
{
    struct row_iface *i = find_iface(r, uuid);
    if ((i == NULL) != (change == OVSDB_INSERT)) {
        return out_of_step("Interface", uuid, change, e);
    }
    if (change == OVSDB_DELETE) {
        iface_free(r, i);
        return 0;
    }
    if (!i) {
        i = NEW(struct row_iface);
        memcpy(i->uuid, uuid, OVSDB_UUID_SIZE);
        smap_init(&i->options, free);
        smap_init(&i->external_ids, free);
        hmap_insert(&r->ifaces, &i->node, hash_string(uuid));
    }
    int k = read_iface(r, i, row, change == OVSDB_MODIFY, e);
    if (!i->name) {
        iface_free(r, i); /* Keep no row without a name: the index by name needs one. */
    }
    return k;
}

static const struct {
    const char *name;
    const char *columns[10];
    int (*apply)(struct ovs_rows *r, const char *uuid, enum ovsdb_change change,
                 const struct json *row, struct err *e);
} tables[] = {
    {"Open_vSwitch", {"bridges", "next_cfg", "cur_cfg"}, apply_root},
    {"Bridge", {"name", "fail_mode", "datapath_type", "protocols", "ports"}, apply_bridge},
    {"Port", {"name", "interfaces"}, apply_port},
    {"Interface",
     {"name", "type", "mac", "error", "ofport", "ofport_request", "mtu_request", "options",
      "external_ids"},
     apply_iface},
};

struct json *ovs_rows_monitor(void)
{
    struct json *request = json_object();
    for (size_t t = 0; t < ARRAY_SIZE(tables); t++) {
        struct json *list = json_set(request, tables[t].name, json_array());
        struct json *one = json_append(list, json_object());
        struct json *columns = json_set(one, "columns", json_array());
        for (const char *const *c = tables[t].columns; *c; c++) {
            json_append(columns, json_string(*c));
        }
    }
    return request;
}

int ovs_rows_apply(void *ctx, const char *table, const char *uuid, enum ovsdb_change change,
                   const struct json *row, struct err *e)
{
    for (size_t t = 0; t < ARRAY_SIZE(tables); t++) {
        if (streq(tables[t].name, table)) {
            return tables[t].apply(ctx, uuid, change, row, e);
        }
    }
    return err_set(e, -EBADMSG, "update of table %s, which is not monitored", table);
}

void ovs_rows_link(struct ovs_rows *r, const char *bridge)
{
    struct row_iface *i;
    HMAP_FOREACH (i, struct row_iface, node, &r->ifaces) {
        i->port = NULL;
    }
    r->bridge = NULL;
    struct row_bridge *b;
    HMAP_FOREACH (b, struct row_bridge, node, &r->bridges) {
        if (b->name && streq(b->name, bridge)) {
            r->bridge = b;
        }
    }
    if (!r->bridge) {
        return;
    }
    struct smap_entry *pe, *ie;
    SMAP_FOREACH (pe, &r->bridge->ports) {
        struct row_port *p = ovs_rows_port(r, pe->key);
        if (!p) {
            continue;
        }
        SMAP_FOREACH (ie, &p->interfaces) {
            i = find_iface(r, ie->key);
            if (i) {
                i->port = p;
            }
        }
    }
}

/* ---- pods as external_ids ---- */

struct dp_pod *pod_from_ids(const struct smap *ids, const char *port)
{
    const char *link = smap_get(ids, "tenet-link");
    const char *container = smap_get(ids, "tenet-container");
    const char *ifname = smap_get(ids, "tenet-ifname");
    const char *ip = smap_get(ids, "tenet-ip");
    const char *mac = smap_get(ids, "tenet-mac");
    const char *vnid = smap_get(ids, "tenet-vnid");
    struct dp_pod p = {0};
    uint64_t v;
    if (!container || !*container || !ifname || !*ifname || !ip || ip4_parse(ip, &p.ip) < 0 ||
        !mac || mac_parse(mac, &p.mac) < 0 || !vnid || str_to_u64(vnid, SDN_VNID_MAX, &v) < 0 ||
        strlen(port) >= sizeof p.port || (link && strlen(link) >= sizeof p.host_if)) {
        return NULL;
    }
    p.vnid = (uint32_t) v;
    const char *also = smap_get(ids, "tenet-also-vnid");
    if (also && str_to_u64(also, SDN_VNID_MAX, &v) == 0) {
        p.has_also_vnid = true;
        p.also_vnid = (uint32_t) v;
    }
    snprintf(p.port, sizeof p.port, "%s", port);
    snprintf(p.host_if, sizeof p.host_if, "%s", link ? link : port);
    p.container_id = smap_get(ids, "tenet-container");
    p.ifname = smap_get(ids, "tenet-ifname");
    p.pod_namespace = smap_get(ids, "tenet-namespace");
    p.pod_name = smap_get(ids, "tenet-pod");
    p.netns = smap_get(ids, "tenet-netns");
    p.host_ports = smap_get(ids, "tenet-host-ports");
    p.bandwidth = smap_get(ids, "tenet-bandwidth");
    return dp_pod_clone(&p);
}

static const char *const pod_keys[] = {"tenet-container",
                                       "tenet-ifname",
                                       "tenet-namespace",
                                       "tenet-pod",
                                       "tenet-netns",
                                       "tenet-ip",
                                       "tenet-mac",
                                       "tenet-vnid",
                                       "tenet-also-vnid",
                                       "sandbox",
                                       "ip",
                                       "tenet-link",
                                       "tenet-host-ports",
                                       "tenet-bandwidth"};

struct json *pod_to_ids(const struct dp_pod *p)
{
    char vnid[16], also[16];
    snprintf(vnid, sizeof vnid, "%" PRIu32, p->vnid);
    snprintf(also, sizeof also, "%" PRIu32, p->also_vnid);
    bool pooled = !streq(p->port, p->host_if);
    /* In the order of pod_keys.  "sandbox" and "ip" are the keys that openshift-sdn's tools
     * read. */
    const char *values[] = {
        p->container_id,
        p->ifname,
        p->pod_namespace,
        p->pod_name,
        p->netns,
        IP4_TEXT(p->ip),
        MAC_TEXT(p->mac),
        vnid,
        p->has_also_vnid ? also : NULL,
        p->container_id,
        IP4_TEXT(p->ip),
        pooled ? p->host_if : NULL,
        p->host_ports,
        p->bandwidth,
    };
    struct json *map = ovsdb_map();
    for (size_t i = 0; i < ARRAY_SIZE(pod_keys); i++) {
        if (values[i]) {
            ovsdb_map_add(map, pod_keys[i], values[i]);
        }
    }
    return pooled ? ovsdb_map_add(map, POD_POOL_KEY, "true") : map;
}

struct json *pod_clear_ids(const char *iface_uuid)
{
    struct json *keys = ovsdb_set();
    for (size_t i = 0; i < ARRAY_SIZE(pod_keys); i++) {
        ovsdb_set_add(keys, json_string(pod_keys[i]));
    }
    return ovsdb_mutate("Interface", ovsdb_where_uuid(iface_uuid), "external_ids", "delete", keys);
}

struct json *pod_update_ids(const char *iface_uuid, const struct dp_pod *p)
{
    return ovsdb_mutate_add(pod_clear_ids(iface_uuid), "external_ids", "insert", pod_to_ids(p));
}

bool pod_equal(const struct dp_pod *a, const struct dp_pod *b)
{
    return a->ip == b->ip && a->vnid == b->vnid && a->has_also_vnid == b->has_also_vnid &&
           (!a->has_also_vnid || a->also_vnid == b->also_vnid) && mac_equal(a->mac, b->mac) &&
           streq(a->host_if, b->host_if) && streq(a->port, b->port) &&
           streq_null(a->container_id, b->container_id) && streq_null(a->ifname, b->ifname) &&
           streq_null(a->pod_namespace, b->pod_namespace) && streq_null(a->pod_name, b->pod_name) &&
           streq_null(a->netns, b->netns) && streq_null(a->host_ports, b->host_ports) &&
           streq_null(a->bandwidth, b->bandwidth);
}
