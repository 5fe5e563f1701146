/* SPDX-License-Identifier: Apache-2.0 */
/* A datapath: what carries packets on a node.  One interface; "ovs" (Open vSwitch) and "ebpf" (programs in the kernel).
 *
 * The agent says what the network should be (datapath_set_network) and which pods are attached
 * (datapath_attach, datapath_detach); the datapath keeps moving the real thing there by the smallest
 * difference, also after its switch died and came back, and never tears down what is right.
 *
 * Pods are stored with their port by the datapath itself (ovs: external_ids of the Interface row, ebpf: a file each),
 * so that a restarted agent finds them: datapath_pods is the only truth about attachments.
 *
 * All calls are made, and all callbacks come, on the loop's thread.  No callback is called from within the
 * call that was given it. */
#pragma once

#include "base/list.h"
#include "net/loop/loop.h"
#include "sdn/model.h"
#include "sdn/network.h"
#include "sdn/policy_table.h"
#include "wire/cni_runtime.h"
#include "wire/openflow.h"

struct dp_pod {
    char *container_id; /* CNI_CONTAINERID; the key together with ifname. */
    char *ifname;       /* In the pod: "eth0". */
    char *pod_namespace;
    char *pod_name;
    char *netns; /* Path as the runtime gave it; may be gone. */
    char host_if
        [16];      /* Its link outside of it: the host's end of a veth pair, or see datapath_end. */
    char port[16]; /* Of the switch, which that leads to (output only). */
    bool pair;     /* That has to be a veth pair (input of datapath_attach only). */
    /* What datapath_set_runtime said, as texts of wire/cni_runtime.h; NULL: nothing. */
    char *host_ports, *bandwidth;
    uint32_t ip;
    struct mac mac;
    uint32_t vnid; /* Of the project. */
    bool has_also; /* The project moves to another VNID: 'also_vnid' is taken, too. */
    uint32_t also_vnid;
    bool ready;           /* Port has a number and flows are in place (output only). */
    uint32_t port_number; /* Of that port in the flows; 0: it has none (output only). */
};
struct dp_pod *dp_pod_clone(const struct dp_pod *p);
struct dp_pod *dp_pod_free(struct dp_pod *p);
DEFINE_CLEANUP(struct dp_pod *, dp_pod_free)

struct datapath;

struct json;
struct rtnl;
struct rtnl_link;

struct datapath_config {
    const char *kind;          /* "ovs" or "ebpf" */
    const char *run_dir;       /* The agent's; "ebpf" keeps there what survives it. */
    const char *ebpf_without;  /* "tcx,redirect_peer": not to be used; or NULL. */
    uint32_t ebpf_max_entries; /* Of a map that the agent fills, if less than usual; 0. */
    const char *bridge;        /* "br0" */
    const char *ovsdb;         /* Path of ovsdb-server's socket: /run/openvswitch/db.sock */
    const char *ovs_rundir;    /* Where BRIDGE.mgmt is: /run/openvswitch */
    const char *datapath_type; /* "system", "netdev", or NULL: system where the kernel has it. */
    struct datapath_prepared *prepared; /* Of datapath_prepare; datapath_open takes it over. */
    /* What datapath_set_network is going to say, as far as is known: what takes time is found out beforehand.  Or NULL;
     * needed by datapath_open alone. */
    const struct sdn_network *expected;
};

struct datapath_events {
    /* The inventory is known (datapath_pods works).  Called once. */
    void (*inventory)(void *ctx);
    /* The set network is in place: bridge, tunnel, gateway port, flows.  Called each time this becomes
     * true: after set_network, and again after a reconnection. */
    void (*ready)(void *ctx);
    /* The switch is gone or refuses; once per outage, with the reason. */
    void (*lost)(void *ctx, const char *reason);
    /* What was asked for cannot be done here (VXLAN port taken, no datapath of the type, ...): a
     * configuration error that repeating will not mend.  Nothing was changed. */
    void (*fatal)(void *ctx, const char *reason);
    /* A pod's packet that waits for the endpoints of an idle service; 'port' is what it came from. */
    void (*held)(void *ctx, uint32_t port, const uint8_t *frame, size_t size);
    /* No pod's link is on the other end 'name' (datapath_end) any more.  Comes from within the loop.  Optional. */
    void (*link_gone)(void *ctx, const char *name);
};

/* -EINVAL: 'list' has something that is not optional to the datapath ebpf (ebpf_without). */
int datapath_check_without(const char *list, struct err *e);
/* Whether a datapath of this kind can be had here, and can carry 'n'; changes nothing. */
int datapath_check(const struct datapath_config *cfg, const struct sdn_network *n, struct err *e);
/* Begins with what takes time, needs no network and changes nothing, while the agent waits for the registry; NULL: there is
 * no such thing.  What is wrong is said when the datapath is opened, or by datapath_events.fatal. */
struct datapath_prepared *datapath_prepare(struct loop *l, const struct datapath_config *cfg);
struct datapath_prepared *datapath_prepared_free(struct datapath_prepared *p);
/* Makes the mounts below run_dir that outlive the agent, as far as they are not there.  datapath_open does the same; this
 * is for an agent in a mount namespace of its own, whose mounts would end with it. */
int datapath_make_mounts(const struct datapath_config *cfg, struct err *e);
int datapath_open(struct loop *l, const struct datapath_config *cfg,
                  const struct datapath_events *ev, void *ctx, struct datapath **ret,
                  struct err *e);
/* Closes connections; leaves the switch as it is, so that traffic goes on. */
struct datapath *datapath_close(struct datapath *dp);

/* Desired network; copied.  Until the first call nothing is changed in the switch.  Later calls apply the
 * difference. */
void datapath_set_network(struct datapath *dp, const struct sdn_network *n);

typedef void datapath_done_fn(void *ctx, int error, const char *text);
typedef void datapath_port_fn(void *ctx, const char *port, const char *host_if);
/* Attaches 'p' (copied).  First calls 'port' with the name of the port that the pod has, and of its link, which is that of
 * 'p' if it is a veth pair: the caller makes it and wires it to the port, while the datapath goes on.  Then calls 'done' when all but the link is in place, or
 * with a negative errno when not, maybe without 'port' before, and then nothing of it is left in the
 * switch.  An attached pod of the same container_id and ifname is replaced. */
void datapath_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                     datapath_done_fn *done, void *ctx);
/* Removes flows and port; success when it is absent.  'done' is called when the port is out of the stored
 * configuration; a switch that is busy may forward for some milliseconds more, but nothing attached later
 * can meet what is left.  The host_if link itself is the caller's. */
void datapath_detach(struct datapath *dp, const char *container_id, const char *ifname,
                     datapath_done_fn *done, void *ctx);
/* What else belongs to an attached pod, stored with it; datapath_pods has it at once.  'done' is called when it is
 * stored.  NULL: nothing. */
void datapath_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                          const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                          void *ctx);
/* The project of some pods got other VNIDs: changes their flows in one step and what is stored with the
 * ports. */
void datapath_set_vnids(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v);

/* Flows of network policy (sdn/policy.h) and services (sdn/service_flows.h): the group 'cookie' is now 'flows', which
 * is emptied.  They are in place with or before what is asked for afterwards, as in one bundle. */
void datapath_set_flows(struct datapath *dp, uint64_t cookie, struct of_flow_list *flows);
/* The same policy, for a datapath that has no flows: what it gets as tables instead; NULL: it wants flows.  They,
 * too, are in place with or before what is asked for afterwards. */
const struct policy_table_ops *datapath_policy_table(struct datapath *dp, void **ret_ctx);
/* A datapath without flows: all services for the pods of this node, 'node', after each datapath_set_network, which is not
 * in place before, and when they changed.  What they point to is not kept. */
bool datapath_wants_services(const struct datapath *dp);
void datapath_set_services(struct datapath *dp, const char *node, const struct model_service *list,
                           size_t n);
/* Once these are in place: the connections to services that are like 'c' are forgotten, ... */
void datapath_forget(struct datapath *dp, const struct of_connection *c);
/* ... or not any more, as there may be such again, ... */
void datapath_keep(struct datapath *dp, const struct of_connection *c);
/* ... and a frame that was held goes on as if it came from its port just now. */
void datapath_send_held(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size);

/* What names of bridges begin with that stand between a pod's link and its port. */
#define POOL_BRIDGE "tnbr"
/* Connects the link of a pod to its port, in the kernel.  Blocks shortly; may be called on any thread that is in the
 * host's network namespace. */
struct dp_wire {
    const char *host_if; /* Exists, and is down: nothing comes from the pod before it is wired. */
    const char *port;
    struct mac mac; /* Of the pod: frames to others do not reach it. */
    uint32_t mtu;
    struct cni_bandwidth limits; /* 'elsewhere': the tc hook of what host_if receives stays free. */
    /* If the caller has them, both borrowed; else NULL, and they are looked for. */
    struct rtnl *rtnl;            /* In the host's network namespace. */
    const struct rtnl_link *link; /* host_if, which was made just now and has nothing on it. */
};
int datapath_wire(struct datapath *dp, const struct dp_wire *w, struct err *e);
/* Takes the limits off the port, which stays; they go from host_if with that.  host_if may be gone. */
int datapath_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e);
/* Whether it is as datapath_wire leaves it; the error names what is not. */
int datapath_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e);

/* Where host_if is the other end of a port, made and kept by the datapath, and the pod's link is to be a macvlan on top of it
 * (rtnl_macvlan_add): the network namespace in which it is; else -1.  'port' NULL: where such are.  On any thread. */
int datapath_end(struct datapath *dp, const char *port, const char *host_if);
/* All links that lead to a pod, and others: whose host_if is not among them has no link any more.  '*ret' is an owned
 * array. */
int datapath_links(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e);
/* The kernel announced that the link 'name' is gone. */
void datapath_link_gone(struct datapath *dp, const char *name);

/* Attached pods; the array and its members are the datapath's and valid until the next call into it. */
const struct dp_pod *const *datapath_pods(struct datapath *dp, size_t *ret_n);
const struct dp_pod *datapath_find(struct datapath *dp, const char *container_id,
                                   const char *ifname);

struct datapath_status {
    bool connected, in_place;
    size_t flows, pods, remotes;
    size_t spare_ports; /* Ready for pods to come. */
    const char *datapath_type;
    uint32_t refusal_meter; /* As in struct sdn_network. */
    /* What did not fit, since the start: pods (ADDs), nodes, addresses and endpoints of services, rows of network policy
     * (whose pods are cut off until they do). */
    size_t pods_refused, nodes_refused, services_refused, policy_refused;
    /* Since the start. */
    size_t connections, transactions, bundles, bundles_refused, flow_mods;
    size_t refusals_sent,
        refusals_suppressed; /* ICMP errors; the latter for a pod that had enough. */
};
void datapath_get_status(struct datapath *dp, struct datapath_status *ret);

/* ---- explaining ---- */

/* The answer to a question may come from within the call that asks it. */

/* Packets dropped so far, by cause, since the datapath was opened or longer.  'totals' is valid with an error, too: as
 * they were when it could be asked last. */
typedef void datapath_drops_fn(void *ctx, int error, const uint64_t totals[MODEL_N_CAUSES]);
void datapath_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx);

/* A rule by which packets are judged: a flow of a switch, or an entry of a map. */
struct dp_rule {
    const char *table; /* Name of the table or map. */
    int number;        /* Of the table; -1: it has none, and the rule no priority and cookie. */
    uint16_t priority;
    uint64_t cookie;     /* What it comes from is its group's (sdn/pipeline.h). */
    bool is_service;     /* It comes from the service that the packet asked. */
    const char *match;   /* "" matches everything. */
    const char *actions; /* What it says about the packet. */
    const char *meaning; /* In words. */
    enum model_cause cause;
};

/* Tells the rules with what they counted, as packets meet them: 'each' for each, then 'done' once, with a negative
 * 'error' and why if there was none.  -EOPNOTSUPP: rules of this datapath cannot be listed. */
struct datapath_rules_ops {
    void (*each)(void *ctx, const struct dp_rule *rule, uint64_t packets, uint64_t bytes);
    void (*done)(void *ctx, int error, const char *text);
};
void datapath_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx);

/* What becomes of a packet here. */
struct dp_trace {
    const struct dp_rule *steps; /* Rules that it met, in this order; the last one settled it. */
    size_t n;
    enum model_action action;
    enum model_cause cause; /* MODEL_DROP; MODEL_NOT_DROPPED: by no rule of ours. */
    bool translated;        /* To a service: this is the endpoint that it gets. */
    uint32_t endpoint_ip;
    uint16_t endpoint_port;
    const char *remark; /* Of the switch; NULL: none. */
};
/* Asks what would become of a packet, which begins a connection; none is sent, and nothing is counted or remembered.
 * 'done' is called once, with a negative 'error' and why, or with the trace. */
typedef void datapath_trace_fn(void *ctx, int error, const char *text, const struct dp_trace *t);
void datapath_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                    void *ctx);

/* A packet that was judged just now, the first of its flow. */
struct dp_event {
    enum model_entry entry;
    uint32_t port;      /* MODEL_FROM_PORT */
    uint32_t outer_src; /* MODEL_FROM_TUNNEL */
    uint32_t vnid;      /* With which it came by the tunnel or leaves by it. */
    uint16_t eth_type;
    uint32_t src, dst; /* As it is when it is judged; 0: it has none. */
    uint8_t proto;
    uint16_t src_port, dst_port;
    uint32_t asked;      /* The service's address ... */
    uint16_t asked_port; /* ... before 'dst' became an endpoint; 0: it was for none. */
    uint32_t size;       /* Of the frame. */
    enum model_action action;
    enum model_cause cause;
    uint32_t remote; /* MODEL_TUNNEL: where to. */
};
/* From now on 'fn' hears of flows, those that exist among them, soon after their packets; and of each again now and
 * then.  'lost': so many events there were more since the last call.  NULL: nobody watches any more, which costs nothing.
 * -EOPNOTSUPP: this datapath cannot tell, and the error says what can. */
typedef void datapath_events_fn(void *ctx, const struct dp_event *events, size_t n, uint64_t lost);
int datapath_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e);

/* The maps of the datapath: an array of objects with "name", "type", "entries" (-1: not counted) and "max"; or of the map
 * 'name' the entries, as "entries" of one object, with "key" and "value" as objects of fields: at most 'limit' behind the one whose key is 'after' (NULL: from the beginning); "next" is what to continue
 * after.  -EOPNOTSUPP: a datapath without maps; -ENOENT: none of this name. */
int datapath_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                  struct json **ret, struct err *e);
