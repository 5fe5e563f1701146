/* SPDX-License-Identifier: Apache-2.0 */
/* Ports that are in the bridge before a pod needs them.
 *
 * Adding a port keeps ovs-vswitchd busy for milliseconds and removing one for tens of them, all the more the more
 * ports there are, and what wants something of it meanwhile waits.  So ports stay: a pod takes one, with its
 * number, and gives it back.  The port's device is one end of a veth pair; the pod's link is on the other end (ends.h).
 *
 * Whether a port is of the pool, and whose it is, says its Interface row (rows.h); what is here follows from the
 * rows.  Devices are made on a worker thread.  On the loop's thread. */
#pragma once

#include "base/map.h"
#include "base/reconnect.h"
#include "datapath/datapath.h"
#include "datapath/ovs/ends.h"

struct ovs_dp;
struct pool_job;

struct pool {
    struct hmap ports; /* struct pool_port, by name. */
    struct list free;  /* Of them, those that a pod can have; the longest unused first. */
    size_t n_free;
    int netns_fd;         /* Where the devices are made. */
    struct ends *ends;    /* And their other ends; NULL: there, too. */
    struct pool_job *job; /* Devices that are being made; NULL: none. */
    bool inserting;       /* Rows are. */
    bool filling;         /* There were few, and are not yet many. */
    struct backoff retry; /* Also keeps the removals of ports apart. */
    uint64_t used_ms;
    uint64_t quiet_ms; /* So long after the last use ports may go again. */
};

void pool_init(struct ovs_dp *o);
/* Before the first step.  'run_dir' NULL: pods' links are always veth pairs. */
void pool_open_ends(struct ovs_dp *o, const char *run_dir);
void pool_done(struct ovs_dp *o);
void pool_adopt(struct ovs_dp *o); /* Learns what the database has. */
/* Makes free what has become so, and more of them when few are left; 'waiting' pods have none. */
void pool_step(struct ovs_dp *o, size_t waiting);
/* Whether nothing is being made or looked at. */
bool pool_is_settled(const struct ovs_dp *o);
bool pool_number_is_used(const struct ovs_dp *o, uint32_t number);

/* A free port for the pod with address 'ip', which has it from now on; NULL: there is none. */
const char *pool_take(struct ovs_dp *o, uint32_t ip);
/* Returns port 'name' after the row no longer names its pod; its flows are gone as of 'generation'.  Nothing when it
 * is not of the pool. */
void pool_put(struct ovs_dp *o, const char *name, uint32_t ip, uint64_t generation);

/* The device of a port may be gone: it is made again. */
void pool_link_gone(struct ovs_dp *o, const char *name);

/* ---- wire.c: datapath_wire and what goes with it ---- */

int wire_set(struct datapath *dp, const struct dp_wire *w, struct err *e);
int wire_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e);
int wire_check(struct datapath *dp, const struct dp_wire *w, struct err *e);
int wire_end(struct datapath *dp, const char *port, const char *host_if);
int wire_links(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e);
