/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of ports that are in the bridge before a pod needs them.
 *
 * Adding a port keeps ovs-vswitchd busy for milliseconds and removing one for tens of them, more so
 * with many ports, and other requests to it wait meanwhile.  So ports stay: a pod takes one, with
 * its number, and gives it back. The port's device is one end of a veth pair; the pod's link is on
 * the other end (port_peers.h).
 *
 * The Interface row of a port (rows.h) says whether it belongs to the pool, and to which pod; the
 * state here follows from the rows. Devices are made on a worker thread. On the loop's thread. */
#pragma once

#include "base/map.h"
#include "base/reconnect.h"
#include "datapath/datapath.h"
#include "datapath/ovs/port_peers.h"

struct ovs_dp;
struct pool_job;

struct pool {
    struct hmap ports; /* struct pool_port, by name. */
    struct list free;  /* The ports that a pod can have; the longest unused first. */
    size_t n_free;
    int netns_fd;            /* The network namespace in which devices are made. */
    struct port_peers *ends; /* The namespace of their peers; NULL: the same namespace. */
    struct pool_job *job;    /* The worker's job that makes devices; NULL: none. */
    bool inserting;          /* A transaction that makes rows is under way. */
    bool filling;            /* Free ports were below 'low', and are not at 'high' yet. */
    struct backoff retry;    /* The next attempt; also separates removals of ports. */
    uint64_t used_ms;
    uint64_t quiet_ms; /* Time after the last use from which ports may be removed. */
};

void pool_init(struct ovs_dp *o);
/* Opens the pool before the first step.  'run_dir' NULL: pods' links are always veth pairs. */
void pool_open_ends(struct ovs_dp *o, const char *run_dir);
void pool_done(struct ovs_dp *o);
void pool_adopt(struct ovs_dp *o); /* Reads the ports from the database. */
/* Frees ports that have become free, and makes more when few are left; 'waiting' is the number of
 * pods without a port. */
void pool_step(struct ovs_dp *o, size_t waiting);
/* Whether no port is being made or checked. */
bool pool_is_settled(const struct ovs_dp *o);
bool pool_number_is_used(const struct ovs_dp *o, uint32_t number);

/* Takes a free port for the pod with address 'ip'; NULL: there is none. */
const char *pool_take(struct ovs_dp *o, uint32_t ip);
/* Returns port 'name' after the row no longer names its pod; its flows are gone as of 'generation'.
 * Does nothing when it is not of the pool. */
void pool_put(struct ovs_dp *o, const char *name, uint32_t ip, uint64_t generation);

/* Called when the device of a port may be gone: checks it, and makes it again. */
void pool_link_gone(struct ovs_dp *o, const char *name);

/* ---- wire.c: datapath_wire and what goes with it ---- */

int wire_set(struct datapath *dp, const struct dp_wire *w, struct err *e);
int wire_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e);
int wire_check(struct datapath *dp, const struct dp_wire *w, struct err *e);
int wire_end(struct datapath *dp, const char *port, const char *host_if);
int wire_links(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e);
