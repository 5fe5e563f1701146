/* SPDX-License-Identifier: Apache-2.0 */
/* A replica of the rows of the Open_vSwitch database that we need, kept by update2 notifications.  Pure.
 *
 * Columns are those of ovs-vswitchd.conf.db(5).  Rows belong to the replica; pointers are valid until the
 * next ovs_rows_apply or ovs_rows_clear.  After a batch of updates ovs_rows_link says what is in our
 * bridge. */
#pragma once

#include "base/map.h"
#include "datapath/datapath.h"
#include "wire/ovsdb.h"

struct row_bridge {
    struct hmap_node node;
    char uuid[OVSDB_UUID_SIZE];
    char *name, *fail_mode, *datapath_type; /* NULL: empty. */
    struct smap ports;                      /* Uuids. */
    struct smap protocols;                  /* "OpenFlow14" ... */
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
    struct row_port *port; /* Set by ovs_rows_link: its port, when that is in our bridge. */
    struct dp_pod *pod;    /* What external_ids say; NULL: not a pod of ours. */
    bool pooled;           /* A port of the pool; when it has no pod it is free. */
    bool removing;         /* For the user: its removal, or that of its pod, was sent. */
};

struct ovs_rows {
    struct hmap bridges, ports, ifaces, ifaces_by_name;
    char root[OVSDB_UUID_SIZE]; /* The row of table Open_vSwitch; "": none seen. */
    struct smap root_bridges;   /* Uuids. */
    int64_t next_cfg, cur_cfg;
    struct row_bridge *bridge; /* Ours, by ovs_rows_link; NULL: absent. */
};

void ovs_rows_init(struct ovs_rows *r);
void ovs_rows_done(struct ovs_rows *r);
void ovs_rows_clear(struct ovs_rows *r);
/* Monitor request for these tables and columns (owned). */
struct json *ovs_rows_monitor(void);
/* An ovsdb_row_fn; 'ctx' is the struct ovs_rows.  A row that is unknown or there already is -EBADMSG:
 * then the replica is not what the server thinks it is, and must be fetched again. */
int ovs_rows_apply(void *ctx, const char *table, const char *uuid, enum ovsdb_change change,
                   const struct json *row, struct err *e);
void ovs_rows_link(struct ovs_rows *r, const char *bridge);

struct row_port *ovs_rows_port(const struct ovs_rows *r, const char *uuid);
struct row_iface *ovs_rows_iface(const struct ovs_rows *r, const char *name);

/* ---- pods as external_ids ---- */

#define POD_POOL_KEY "tenet-pool" /* The port is of the pool. */

/* The pod whose port is 'port'; NULL when 'ids' (values: strings) are not those of a pod, or not
 * readable. */
struct dp_pod *pod_from_ids(const struct smap *ids, const char *port);
/* An OVSDB map.  A port that is not the link itself is of the pool. */
struct json *pod_to_ids(const struct dp_pod *p);
/* Mutations of external_ids that make 'p' of whatever is there, other keys being kept. */
struct json *pod_update_ids(const char *iface_uuid, const struct dp_pod *p);
/* A mutation that makes the port of the pool free again. */
struct json *pod_clear_ids(const char *iface_uuid);
/* All that is stored (so without 'ready'). */
bool pod_equal(const struct dp_pod *a, const struct dp_pod *b);
