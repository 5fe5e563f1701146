/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the "ovs" datapath; docs/ovs.md tells the whole.
 *
 * Everything is driven by one task, the pump: whatever happens (an update of the database, an
 * answer of the switch, a call of the agent, a timer) queues it, and it compares what is wanted
 * with what is there, sends what is missing, and tells the agent what became true.  Nothing depends
 * on the order of events, and a connection that broke in the middle of anything needs no special
 * case.
 *
 *     ovs.c      the pump, events, the entry points
 *     setup.c    bridge, vxlan0 and tun0
 *     pods.c     which pod has which port
 *     pool.c     ports that wait for pods
 *     network.c  groups of flows from the network
 *     compile.c  groups of flows from services and network policy
 *     settings.c what the configuration may say
 *     refresh.c  what ovs-vswitchd remembers of flows that are gone
 *     after.c    what has to wait until flows are in place
 *     explain.c  counters and traces
 *     refuse.c   ICMP errors for what the switch dropped */
#pragma once

#include "base/reconnect.h"
#include "datapath/datapath.h"
#include "datapath/ops.h"
#include "datapath/outbox.h"
#include "datapath/ovs/db.h"
#include "datapath/ovs/drops.h"
#include "datapath/ovs/of.h"
#include "datapath/ovs/plan.h"
#include "datapath/ovs/pool.h"
#include "datapath/ovs/unixctl.h"
#include "sdn/pipeline.h"
#include "sdn/policy.h"
#include "sdn/refusal.h"
#include "sdn/service_flows.h"

#define OVS_TEXT_SIZE 384

/* after.c: what waits until the flows of its generation are in place. */
struct after {
    struct list link;
    uint64_t generation;
    struct of_connection forget;
    uint64_t at_ms; /* In 'again'. */
    uint32_t port;  /* Other than 0: 'frame' goes on from there; else 'forget'. */
    size_t size;
    uint8_t frame[];
};

/* refresh.c: generations of flows. */
struct refresh {
    uint64_t wanted, asked, done;
    bool pending;
    uint64_t at_ms;
    struct unixctl_call *call;
};

struct ovs_dp {
    struct datapath dp; /* First. */
    struct loop *loop;
    struct datapath_events events;
    void *ctx;
    char *bridge, *rundir, *mgmt, *configured_type; /* The last one NULL: choose. */
    bool kernel_datapath;                           /* The kernel has the openvswitch datapath. */

    struct db *db;
    struct of *of; /* NULL until the bridge was in place once. */
    struct flow_table flows;
    struct loop_task pump;
    struct loop_timer *timer;
    uint64_t wake_ms; /* When the pump has to run again; UINT64_MAX: only when something happens. */
    size_t transactions; /* Sent to the database so far. */

    /* network.c */
    bool have_network;
    struct sdn_network net; /* Remotes sorted by cookie. */
    uint32_t refusal_meter; /* Kept from network to network. */
    size_t refusals_sent, refusals_suppressed;
    uint64_t net_generation; /* Of the last change of base and remotes. */

    /* compile.c */
    struct service_flows *services;
    size_t connections_ended;

    /* setup.c */
    bool setup_in_flight;
    bool was_in_place; /* Since this network was set: what fails now is an outage, no mistake. */
    bool given_up;     /* 'fatal' was said. */
    int64_t wait_cfg;  /* cur_cfg that says ovs-vswitchd has seen our change; 0: none made. */
    int64_t seen_cfg;
    struct backoff setup_retry;
    struct bridge_undo undo;
    struct smap foreign; /* Names of ports that are not ours, said once. */
    char obstacle[OVS_TEXT_SIZE];

    /* pods.c */
    struct hmap pods;  /* struct pod_rec, by container and interface. */
    struct hmap vnids; /* struct vnid_ref */
    uint32_t next_number;
    uint64_t remove_retry_ms;
    const struct dp_pod **pods_view;
    size_t pods_view_cap;

    struct refresh refresh;
    struct list after, again; /* By generation; by time: what is forgotten once more. */
    size_t n_after;           /* Of both. */
    struct pool pool;

    /* explain.c */
    struct list traces; /* Under way. */
    struct drop_counts drops;
    struct loop_timer *count;
    bool counting;

    struct outbox outbox;
    bool inventory_known, of_was_up;
    enum outbox_trouble trouble; /* Reported to the agent, and not over. */
    uint64_t obstacle_since_ms;  /* 0: in place. */
};

/* ---- ovs.c ---- */
uint64_t ovs_now(struct ovs_dp *o);
void ovs_wake_at(struct ovs_dp *o, uint64_t ms);
/* Reports, once until it is over, that the switch is gone or that it refuses something; pods that
 * are being attached fail for that reason. */
void ovs_report(struct ovs_dp *o, enum outbox_trouble t, const char *reason);
/* Why the network is not in place; NULL: it is. */
const char *ovs_obstacle(const struct ovs_dp *o);
void ovs_transact(struct ovs_dp *o, struct json *ops, db_done_fn *done, void *ctx);

/* ---- setup.c ---- */
/* Moves the bridge towards what the network needs. */
void setup_step(struct ovs_dp *o);
/* What is missing in the bridge and its ports; NULL: nothing. */
const char *setup_obstacle(const struct ovs_dp *o);
void setup_restart(struct ovs_dp *o); /* A new network was set. */

/* ---- network.c ---- */
void network_set(struct ovs_dp *o, const struct sdn_network *n);
/* The switch refuses packets by this meter from now on; 0: it has none. */
void network_set_meter(struct ovs_dp *o, uint32_t meter);
void network_done(struct ovs_dp *o);

/* ---- compile.c ---- */
/* 'node_name': of this node. */
void compile_init(struct ovs_dp *o, const char *node_name);
void compile_done(struct ovs_dp *o);
/* The network but for its remotes changed: services are compiled for o->net from now on. */
void compile_network(struct ovs_dp *o);
/* As the members of struct datapath_ops. */
void compile_policy(struct ovs_dp *o, struct policy *p);
void compile_service(struct ovs_dp *o, const struct sdn_service *old,
                     const struct sdn_project_service *now);
void compile_settle(struct ovs_dp *o);

/* ---- pods.c ---- */
void pods_init(struct ovs_dp *o);
void pods_done(struct ovs_dp *o);
void pods_adopt(struct ovs_dp *o); /* Makes records of what the database has. */
void pods_step(struct ovs_dp *o);  /* Sends what differs to the database. */
void pods_flows(struct ovs_dp *o); /* Brings the groups of flows up to date. */
/* Makes the groups anew after the network changed; returns the generation of what changed. */
uint64_t pods_reflow(struct ovs_dp *o);
void pods_finish(struct ovs_dp *o); /* Completes what is done, and what takes too long. */
void pods_attach(struct ovs_dp *o, const struct dp_pod *p, datapath_port_fn *port,
                 datapath_done_fn *done, void *ctx);
void pods_detach(struct ovs_dp *o, const char *container_id, const char *ifname,
                 datapath_done_fn *done, void *ctx);
void pods_set_runtime(struct ovs_dp *o, const char *container_id, const char *ifname,
                      const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                      void *ctx);
void pods_set_vnids(struct ovs_dp *o, const char *pod_namespace, const struct sdn_vnids *v);
const struct dp_pod *const *pods_view(struct ovs_dp *o, size_t *ret_n);
/* A port number that nothing uses, not even flows that are on their way out; 0: there is none. */
uint32_t pods_take_number(struct ovs_dp *o);

/* The pod of the port with that number, and what limits the ICMP errors it gets; NULL: no pod's. */
const struct dp_pod *pods_by_port(const struct ovs_dp *o, uint32_t port,
                                  struct refusal_bucket **ret_bucket);

/* ---- refuse.c ---- */
/* Answers a packet that the switch dropped and may refuse. */
void refuse_packet(struct ovs_dp *o, const struct of_packet_in *p);

/* ---- refresh.c ---- */
/* The userspace datapath of Open vSwitch (3.1) now and then keeps a cached flow with the actions of
 * before a change for as long as packets use it: its revalidator looks the flow up by a packet and
 * so repairs another one that overlaps it.  What a policy denies could go on.  So after a change of
 * who may reach whom, ovs-vswitchd is told to forget its cache ("revalidator/purge"); the next
 * packet of each kind is looked up in the flows. */
void refresh_want(struct ovs_dp *o, uint64_t generation);
void refresh_step(struct ovs_dp *o);
void refresh_done(struct ovs_dp *o);

/* ---- after.c: connections that end when flows are in place, and frames that go on then.
 *
 * The switch has flows in place before its cache follows: for a moment packets make a connection
 * anew that was forgotten, as it was.  So it is forgotten twice, the second time when the cache has
 * followed, unless it may be again. */
void after_forget(struct ovs_dp *o, const struct of_connection *c);
void after_keep(struct ovs_dp *o, const struct of_connection *c);
void after_send(struct ovs_dp *o, uint32_t port, const uint8_t *frame, size_t size);
void after_step(struct ovs_dp *o);
void after_done(struct ovs_dp *o);

/* ---- explain.c ---- */
void explain_init(struct ovs_dp *o);
void explain_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx);
void explain_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx);
void explain_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                   void *ctx);
void explain_close(struct ovs_dp *o); /* Before the sessions with the switch end, ... */
void explain_done(struct ovs_dp *o);  /* ... and after. */

/* ---- kernel.c ---- */
/* Whether the kernel has Open vSwitch's datapath (loading its module if it can). */
bool kernel_has_datapath(void);

/* For tests: what was sent so far. */
struct ovs_counters {
    size_t transactions, dumps, bundles, flow_mods;
};
struct ovs_counters ovs_get_counters(const struct datapath *dp);
/* For tests: how often flows are compared with the switch. */
void ovs_set_audit_ms(struct datapath *dp, uint64_t ms);
/* For tests: whether the spare ports are there. */
bool ovs_ports_are_settled(const struct datapath *dp);
/* For tests: how long no pod must have come or gone before spare ports do. */
void ovs_set_quiet_ms(struct datapath *dp, uint64_t ms);
