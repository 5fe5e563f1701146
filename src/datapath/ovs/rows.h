/* SPDX-License-Identifier: Apache-2.0 */
/* A replica of the rows of the Open_vSwitch database that the agent needs, updated by update2
 * notifications. Pure.
 *
 * Columns are those of ovs-vswitchd.conf.db(5). Rows belong to the replica; pointers are valid
 * until the next ovs_rows_apply or ovs_rows_clear. After a batch of updates ovs_rows_link finds the
 * ports of the agent's bridge. */
#pragma once

#include "base/map.h"
#include "datapath/datapath.h"
#include "wire/ovsdb.h"

struct row_bridge {
    struct hmap_node node;
    char uuid[OVSDB_UUID_SIZE];
    char *name, *fail_mode, *datapath_type; /* NULL: empty. */
    struct smap ports;                      /* Uuids. */
    struct smap protocols;                  /* For example "OpenFlow14". */
};

struct row_port {
    struct hmap_node node;
    char uuid[OVSDB_UUID_SIZE];
    char *name;
    struct smap interfaces; /* Uuids. */
};

struct row_iface {
    struct hmap_node node, by_name;
    char uuid[OVSDB_UUID_SIZE];
    char *name;               /* Never NULL. */
    char *type, *mac, *error; /* NULL: empty. */
    struct smap options, external_ids;
    int64_t ofport;                      /* 0: none yet, -1: Open vSwitch could not add it. */
    int64_t ofport_request, mtu_request; /* 0: none. */
    struct row_port *port; /* Set by ovs_rows_link: its port, if that is in the agent's bridge. */
    struct dp_pod *pod;    /* The pod that external_ids describe; NULL: no pod of the agent. */
    bool pooled;           /* A port of the pool; without a pod it is free. */
    /* Set by the module's user: the removal of the port, or of its pod, was sent. */
    bool removing;
};

struct ovs_rows {
    struct hmap bridges, ports, ifaces, ifaces_by_name;
    char root[OVSDB_UUID_SIZE]; /* UUID of the row of table Open_vSwitch; "": none received. */
    struct smap root_bridges;   /* Uuids. */
    int64_t next_cfg, cur_cfg;
    struct row_bridge *bridge; /* The agent's bridge, found by ovs_rows_link; NULL: absent. */
};

void ovs_rows_init(struct ovs_rows *r);
void ovs_rows_done(struct ovs_rows *r);
void ovs_rows_clear(struct ovs_rows *r);
/* Returns the monitor request for these tables and columns (owned). */
struct json *ovs_rows_monitor(void);
/* An ovsdb_row_fn; 'ctx' is the struct ovs_rows. -EBADMSG: a changed row is unknown, or a new row
 * exists already.  The replica then differs from the server's view, and must be fetched again. */
int ovs_rows_apply(void *ctx, const char *table, const char *uuid, enum ovsdb_change change,
                   const struct json *row, struct err *e);
void ovs_rows_link(struct ovs_rows *r, const char *bridge);

struct row_port *ovs_rows_port(const struct ovs_rows *r, const char *uuid);
struct row_iface *ovs_rows_iface(const struct ovs_rows *r, const char *name);

/* ---- pods as external_ids ---- */

#define POD_POOL_KEY "tenet-pool" /* The port is of the pool. */

/* Reads the pod whose port is 'port' from 'ids' (values are strings); NULL when they describe no
 * pod or are not readable. */
struct dp_pod *pod_from_ids(const struct smap *ids, const char *port);
/* Returns an OVSDB map.  A port whose name differs from the pod's link is of the pool. */
struct json *pod_to_ids(const struct dp_pod *p);
/* Returns mutations of external_ids that replace any pod by 'p' and keep other keys. */
struct json *pod_update_ids(const char *iface_uuid, const struct dp_pod *p);
/* Returns a mutation that makes a port of the pool free again. */
struct json *pod_clear_ids(const char *iface_uuid);
/* Compares all stored members (all except 'ready'). */
bool pod_equal(const struct dp_pod *a, const struct dp_pod *b);
