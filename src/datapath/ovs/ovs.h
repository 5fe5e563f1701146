/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of the "ovs" datapath; docs/ovs.md describes the whole.
 *
 * One task, the pump, drives everything: each event (an update of the database, an answer of the
 * switch, a call of the agent, a timer) queues it.  It compares the desired with the actual state,
 * sends the difference, and reports changed states to the agent. Nothing depends on the order of
 * events, and a broken connection needs no special case.
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
#include "net/kernel/rtnl.h"
#include "sdn/pipeline.h"
#include "sdn/policy.h"
#include "sdn/refusal.h"
#include "sdn/service_flows.h"

#define OVS_TEXT_SIZE 384

/* after.c: an action that waits until the flows of its generation are in place. */
struct after {
    struct list link;
    uint64_t generation;
    struct of_connection forget;
    uint64_t at_ms; /* Time of the action while it is in 'again'. */
    uint32_t port;  /* Not 0: forward 'frame' from this port; 0: delete the connection 'forget'. */
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

/* tunnels.c: an entry of the switch's own table, and the next hop to a remote node. */
struct tunnel_entry {
    uint32_t ip;
    struct mac mac;
};
struct tunnel_hop {
    uint32_t host;
    uint32_t ip; /* The next hop; 0: not known. */
    int ifindex; /* The link to it. */
    uint64_t looked_ms;
};
struct tunnels {
    struct rtnl *rtnl; /* NULL until the first round. */
    struct unixctl_call *call;
    uint64_t at_ms, written_ms, wait_ms;
    uint64_t generation; /* Generation of the remote nodes in 'hops'. */
    struct tunnel_hop *hops;
    size_t n_hops;
    struct rtnl_neigh *writes; /* Entries to write in this round, the last one first. */
    size_t n_writes, cap_writes;
    bool unresolved; /* The kernel has to resolve a next hop, or there is no route. */
};

struct ovs_dp {
    struct datapath dp; /* The first member. */
    struct loop *loop;
    struct datapath_events events;
    void *ctx;
    /* configured_type is NULL if the agent chooses. */
    char *bridge, *rundir, *mgmt, *configured_type;
    bool kernel_datapath; /* The kernel has the openvswitch datapath. */

    struct db *db;
    struct of *of; /* NULL until the bridge was in place for the first time. */
    struct flow_table flows;
    struct loop_task pump;
    struct loop_timer *timer;
    uint64_t wake_ms; /* When the pump has to run again; UINT64_MAX: only when something happens. */
    size_t transactions; /* Number of transactions sent to the database. */

    /* network.c */
    bool have_network;
    struct sdn_network net; /* Remotes sorted by cookie. */
    uint32_t refusal_meter; /* Kept when the network changes. */
    size_t refusals_sent, refusals_suppressed;
    uint64_t net_generation; /* Generation of the last change of base and remotes. */

    /* compile.c */
    struct service_flows *services;
    size_t connections_ended;

    /* setup.c */
    bool setup_in_flight;
    /* True once the present network was in place: a later failure is an outage, not a wrong
     * configuration. */
    bool was_in_place;
    bool given_up; /* datapath_events.fatal was called. */
    /* The cur_cfg at which ovs-vswitchd has seen the agent's change; 0: there is no change. */
    int64_t wait_cfg;
    int64_t seen_cfg;
    struct backoff setup_retry;
    struct bridge_undo undo;
    struct smap foreign; /* Names of ports of other programs, which were logged once. */
    char obstacle[OVS_TEXT_SIZE];

    /* pods.c */
    struct hmap pods;  /* struct pod_rec, by container and interface. */
    struct hmap vnids; /* struct vnid_ref */
    uint32_t next_number;
    uint64_t remove_retry_ms;
    const struct dp_pod **pods_view;
    size_t pods_view_cap;

    struct refresh refresh;
    struct tunnels tunnels;
    /* 'after' is sorted by generation; 'again', connections to delete a second time, by time. */
    struct list after, again;
    size_t n_after; /* Entries of both lists. */
    struct pool pool;

    /* explain.c */
    struct list traces; /* Traces under way. */
    struct drop_counts drops;
    struct loop_timer *count;
    bool counting;

    struct outbox outbox;
    bool inventory_known, of_was_up;
    enum outbox_trouble trouble; /* Trouble that was reported to the agent and is not over. */
    /* Time at which the network ceased to be in place; 0: it is in place. */
    uint64_t obstacle_since_ms;
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
/* Brings the bridge closer to the desired state. */
void setup_step(struct ovs_dp *o);
/* The missing part of the bridge and its ports; NULL: none. */
const char *setup_obstacle(const struct ovs_dp *o);
void setup_restart(struct ovs_dp *o); /* Called when a new network was set. */

/* ---- network.c ---- */
void network_set(struct ovs_dp *o, const struct sdn_network *n);
/* Sets the meter for packets that the switch refuses; 0: the switch has none. */
void network_set_meter(struct ovs_dp *o, uint32_t meter);
void network_done(struct ovs_dp *o);

/* ---- compile.c ---- */
/* 'node_name' is this node's name. */
void compile_init(struct ovs_dp *o, const char *node_name);
void compile_done(struct ovs_dp *o);
/* Called when the network changed in more than its remotes: services are compiled for o->net from
 * now on. */
void compile_network(struct ovs_dp *o);
/* These functions implement members of struct datapath_ops. */
void compile_policy(struct ovs_dp *o, struct policy *p);
void compile_firewall(struct ovs_dp *o, uint32_t vnid, const struct firewall_block *blocks,
                      size_t n);
void compile_service(struct ovs_dp *o, const struct sdn_service *old,
                     const struct sdn_project_service *now);
void compile_settle(struct ovs_dp *o);

/* ---- pods.c ---- */
void pods_init(struct ovs_dp *o);
void pods_done(struct ovs_dp *o);
void pods_adopt(struct ovs_dp *o); /* Makes records from the database's rows. */
void pods_step(struct ovs_dp *o);  /* Sends differences to the database. */
void pods_flows(struct ovs_dp *o); /* Brings the groups of flows up to date. */
/* Makes the groups anew after the network changed; returns the generation of the changes. */
uint64_t pods_reflow(struct ovs_dp *o);
/* Completes calls that are done, and fails calls that take too long. */
void pods_finish(struct ovs_dp *o);
void pods_attach(struct ovs_dp *o, const struct dp_pod *p, datapath_port_fn *port,
                 datapath_done_fn *done, void *ctx);
void pods_detach(struct ovs_dp *o, const char *container_id, const char *ifname,
                 datapath_done_fn *done, void *ctx);
void pods_set_runtime(struct ovs_dp *o, const char *container_id, const char *ifname,
                      const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                      void *ctx);
void pods_set_vnids(struct ovs_dp *o, const char *pod_namespace, const struct sdn_vnids *v);
const struct dp_pod *const *pods_view(struct ovs_dp *o, size_t *ret_n);
/* Returns a port number that nothing uses, not even flows that are being deleted; 0: there is
 * none. */
uint32_t pods_take_number(struct ovs_dp *o);

/* Finds the pod of the port with this number, and the token bucket of its ICMP errors; NULL: the
 * port is no pod's. */
const struct dp_pod *pods_by_port(const struct ovs_dp *o, uint32_t port,
                                  struct refusal_bucket **ret_bucket);

/* ---- refuse.c ---- */
/* Answers a packet that the switch dropped with an ICMP error, if the sender may get one. */
void refuse_packet(struct ovs_dp *o, const struct of_packet_in *p);

/* ---- refresh.c ---- */
/* The userspace datapath of Open vSwitch (3.1) sometimes keeps a cached flow with outdated actions
 * for as long as packets use it: its revalidator looks the flow up by a packet and so repairs
 * another cached flow that overlaps it.  Traffic that a policy denies could go on.  So after a
 * change of network policy or VNIDs the agent makes ovs-vswitchd empty its cache
 * ("revalidator/purge"); the next packet of each kind is looked up in the flows. */
void refresh_want(struct ovs_dp *o, uint64_t generation);
void refresh_step(struct ovs_dp *o);
void refresh_done(struct ovs_dp *o);

/* ---- tunnels.c: neighbours of tunnels.
 *
 * The userspace datapath resolves the next hop of a tunnel itself, by listening to ARP replies that
 * pass its bridges, and drops packets until it has an entry.  It does not listen to replies that a
 * cached flow forwards, so it can lack an entry for long although the kernel has it; and it drops
 * entries that no packet used.  So the agent compares the switch's table (tnl/neigh/show) with the
 * kernel's neighbours, and writes what is missing or different (tnl/neigh/set). */
void tunnels_step(struct ovs_dp *o);
void tunnels_done(struct ovs_dp *o);
/* The entries in the text of tnl/neigh/show, owned by the caller and sorted by address. */
size_t tunnels_parse(const char *text, struct tunnel_entry **ret);

/* ---- after.c: connections that end when flows are in place, and frames that go on then.
 *
 * The switch installs flows before its cache follows.  For a moment packets can bring a deleted
 * connection back by the cached actions.  So the agent deletes it twice, the second time when the
 * cache has followed, unless the flows allow the connection again. */
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
void explain_close(struct ovs_dp *o); /* Called before the sessions with the switch end. */
void explain_done(struct ovs_dp *o);  /* Called after the sessions with the switch have ended. */

/* ---- kernel.c ---- */
/* Whether the kernel has Open vSwitch's datapath (loading its module if it can). */
bool kernel_has_datapath(void);

/* For tests: the number of messages sent so far. */
struct ovs_counters {
    size_t transactions, dumps, bundles, flow_mods;
};
struct ovs_counters ovs_get_counters(const struct datapath *dp);
/* For tests: how often flows are compared with the switch. */
void ovs_set_audit_ms(struct datapath *dp, uint64_t ms);
/* For tests: whether the spare ports are made. */
bool ovs_ports_are_settled(const struct datapath *dp);
/* For tests: the time without an ADD or DEL after which spare ports are made and removed. */
void ovs_set_quiet_ms(struct datapath *dp, uint64_t ms);
