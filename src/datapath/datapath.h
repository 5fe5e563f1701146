/* SPDX-License-Identifier: Apache-2.0 */
/* A datapath forwards packets on a node.
 *
 * The agent states intent: what the network is, which pods are attached, which policies and
 * services apply. The datapath brings the actual state there by the smallest difference, also after
 * its switch was restarted, and never removes correct state. How it does that (flows of Open
 * vSwitch, maps of eBPF programs) is not visible here. ops.h says what each call means to the
 * datapath that implements it; the functions here call it through the table of datapaths.
 *
 * Pods are stored with their ports by the datapath itself, so that a restarted agent finds them:
 * datapath_pods is the only truth about attachments.
 *
 * All calls are made, and all callbacks come, on the loop's thread, unless ops.h says otherwise.
 * A callback never runs before the call that it was given to has returned. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "net/loop/loop.h"
#include "sdn/firewall.h"
#include "sdn/model.h"
#include "sdn/network.h"
#include "wire/cni_runtime.h"

/* A pod's interface: the agent's input of datapath_attach, and the datapath's record of it. */
struct dp_pod {
    char *container_id; /* CNI_CONTAINERID; the key, together with ifname. */
    char *ifname;       /* The interface's name in the pod: "eth0". */
    char *pod_namespace;
    char *pod_name;
    char *netns; /* The path of the network namespace from the runtime; the file may be gone. */
    /* The pod's link on the host: the host's end of a veth pair, or the port's peer of
     * datapath_end. */
    char host_if[16];
    char port[16]; /* The port that host_if leads to (output only). */
    bool pair;     /* Input of datapath_attach: require a veth pair. */
    /* Host ports and limits set by datapath_set_runtime, as texts of wire/cni_runtime.h; NULL:
     * none. */
    char *host_ports, *bandwidth;
    uint32_t ip;
    struct mac mac;
    uint32_t vnid; /* VNID of the pod's project. */
    bool
        has_also_vnid; /* While the project moves, packets with 'also_vnid' are accepted as well. */
    uint32_t also_vnid;
    bool ready; /* Packets of the pod are forwarded (output only). */
    /* The datapath's number of the port; 0: none yet (output only). */
    uint32_t port_number;
};
struct dp_pod *dp_pod_clone(const struct dp_pod *p);
struct dp_pod *dp_pod_free(struct dp_pod *p);
DEFINE_CLEANUP(struct dp_pod *, dp_pod_free)

struct datapath;

struct json;
struct policy;
struct rtnl;
struct rtnl_link;

/* Names of a datapath, and of its failures, in logs, conditions and Events. */
struct datapath_words {
    const char *title; /* "Open vSwitch" */
    /* Reason of conditions when the datapath is lost: "OpenVSwitchGone". */
    const char *lost_reason;
    /* Reason of conditions when the datapath refuses a change: "FlowsRefused". */
    const char *refused_reason;
    /* Name of the VXLAN link that the datapath makes; NULL: Open vSwitch makes the link. */
    const char *vxlan_link;
};

struct datapath_config {
    const char *kind;      /* "ovs" or "ebpf" */
    const char *node_name; /* The name of this node, for services whose traffic stays on it. */
    /* The agent's folder; files and mounts that outlive the agent are below it. */
    const char *run_dir;
    /* Settings: text by key, checked by datapath_check_setting; NULL: all have their defaults. */
    const struct smap *settings;
    /* The result of datapath_prepare; datapath_open takes it over. */
    struct datapath_prepared *prepared;
    /* Input of datapath_open: the network that datapath_set_network is about to set, as far as it
     * is known, so that slow look-ups begin early; or NULL. */
    const struct sdn_network *expected;
};

struct datapath_events {
    /* The inventory is known (datapath_pods works).  Called once. */
    void (*inventory)(void *ctx);
    /* The set network is in place.  Called each time this becomes true: after datapath_set_network,
     * and again after 'lost' or 'refused'. */
    void (*ready)(void *ctx);
    /* The switch or the programs that forward packets are gone, or do not answer; called once per
     * outage, with the reason. */
    void (*lost)(void *ctx, const char *reason);
    /* The switch or the kernel refuses a change, so that nothing new comes into effect; called once
     * until 'ready', with the reason. 'lost' may follow, or come before. */
    void (*refused)(void *ctx, const char *reason);
    /* The desired network is impossible on this host, for example because the VXLAN port is taken
     * or the kernel has no datapath of the type: a configuration error that a retry does not solve.
     * Nothing was changed. */
    void (*fatal)(void *ctx, const char *reason);
    /* A pod sent a packet to an idle service: the agent can keep the frame until the service has
     * endpoints, and then give it to datapath_release. 'port' is the number of the pod's port.
     * Optional. */
    void (*idle_packet)(void *ctx, uint32_t port, const uint8_t *frame, size_t size);
    /* No pod's link is on the peer 'name' (datapath_end) any more.  Called by the loop.
     * Optional. */
    void (*link_gone)(void *ctx, const char *name);
};

/* Checks the name of a datapath; -EINVAL: there is none of this name. */
int datapath_check_kind(const char *kind, struct err *e);
/* Returns the names of the datapath 'kind', which must exist. */
const struct datapath_words *datapath_words(const char *kind);
/* Checks the value of a setting of any datapath.  -ENOENT: no datapath has the key; -EINVAL: the
 * value is wrong. */
int datapath_check_setting(const char *key, const char *value, struct err *e);

/* The calls below are explained at the members of struct datapath_ops (ops.h). */
int datapath_check(const struct datapath_config *cfg, const struct sdn_network *n, struct err *e);
/* Returns NULL if the datapath has nothing to prepare. */
struct datapath_prepared *datapath_prepare(struct loop *l, const struct datapath_config *cfg);
struct datapath_prepared *datapath_prepared_free(struct datapath_prepared *p);
int datapath_make_mounts(const struct datapath_config *cfg, struct err *e);
int datapath_open(struct loop *l, const struct datapath_config *cfg,
                  const struct datapath_events *ev, void *ctx, struct datapath **ret,
                  struct err *e);
struct datapath *datapath_close(struct datapath *dp);

/* ---- intent ---- */

void datapath_set_network(struct datapath *dp, const struct sdn_network *n);
void datapath_set_vnids(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v);
void datapath_set_policy(struct datapath *dp, struct policy *p);
void datapath_set_firewall(struct datapath *dp, uint32_t vnid, const struct firewall_block *blocks,
                           size_t n);

/* All services for pods, for a datapath that compares them as a whole. */
struct datapath_services {
    /* The caller frees '*ret'; the services that it points to are valid until the next change.
     * Host ports are last. */
    size_t (*list)(void *ctx, struct sdn_project_service **ret);
    void *ctx;
};
void datapath_change_service(struct datapath *dp, const struct sdn_service *old,
                             const struct sdn_project_service *now);
void datapath_settle_services(struct datapath *dp, const struct datapath_services *all);
void datapath_release(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size);

typedef void datapath_done_fn(void *ctx, int error, const char *text);
typedef void datapath_port_fn(void *ctx, const char *port, const char *host_if);
void datapath_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                     datapath_done_fn *done, void *ctx);
void datapath_detach(struct datapath *dp, const char *container_id, const char *ifname,
                     datapath_done_fn *done, void *ctx);
void datapath_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                          const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                          void *ctx);
const struct dp_pod *const *datapath_pods(struct datapath *dp, size_t *ret_n);
/* Finds the pod of datapath_pods with this container and interface; NULL: there is none. */
const struct dp_pod *datapath_find(struct datapath *dp, const char *container_id,
                                   const char *ifname);

/* ---- links ---- */

/* The first letters of the names of bridges between a pod's link and its port. */
#define POOL_BRIDGE "tnbr"
/* Input of datapath_wire and its siblings, which connect the link of a pod to its port in the
 * kernel.  They block shortly, and may be called on any thread that is in the host's network
 * namespace. */
struct dp_wire {
    /* The link exists and is down, so that the pod sends nothing before it is wired. */
    const char *host_if;
    const char *port;
    struct mac mac; /* The pod's MAC: frames to other MACs do not reach the pod. */
    uint32_t mtu;
    /* Bandwidth limits; with limits.elsewhere, which the plug-in "bandwidth" needs, the tc ingress
     * hook of host_if stays free. */
    struct cni_bandwidth limits;
    /* Borrowed from the caller; NULL: this call opens its own socket and looks the link up. */
    struct rtnl *rtnl;            /* A netlink socket in the host's network namespace. */
    const struct rtnl_link *link; /* The link host_if, which was made just now and has no hooks. */
};
int datapath_wire(struct datapath *dp, const struct dp_wire *w, struct err *e);
int datapath_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e);
int datapath_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e);
int datapath_end(struct datapath *dp, const char *port, const char *host_if);
int datapath_links(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e);
void datapath_link_gone(struct datapath *dp, const char *name);

/* ---- looking ---- */

struct datapath_status {
    bool connected, in_place;
    size_t pods, remotes;
    /* The number of desired rules; 0 if the datapath's rules cannot be listed. */
    size_t rules;
    size_t spare_ports; /* Ports that are ready for new pods. */
    /* The variant, for people: "system", "netdev", "ebpf/tcx"; NULL: not known yet. */
    const char *variant;
    /* A process forwards packets, not the kernel: checksums must be complete, and the kernel
     * resolves no VTEP by itself. */
    bool in_userspace;
    bool refuses; /* Pods get ICMP errors for dropped packets that honest pods may send. */
    /* Objects that did not fit, since the start: pods (ADDs), nodes, addresses and endpoints of
     * services, rows of network policy (whose pods are cut off until the rows fit). */
    size_t pods_refused, nodes_refused, services_refused, policy_refused;
    /* Since the start: sessions with the switch, transactions that stored pods, batches of rules
     * sent and refused, single changes in them. */
    size_t sessions, transactions, batches, batches_refused, rule_changes;
    /* Since the start: ICMP errors sent, and those not sent because of the limit of one pod. */
    size_t refusals_sent, refusals_suppressed;
    /* Since the start: UDP connections, by address and endpoint, that ended with their endpoint. */
    size_t connections_ended;
};
void datapath_get_status(struct datapath *dp, struct datapath_status *ret);

/* ---- explaining (struct datapath_explain_ops) ---- */

typedef void datapath_drops_fn(void *ctx, int error, const uint64_t totals[MODEL_N_CAUSES]);
void datapath_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx);

/* A rule by which packets are judged. */
struct dp_rule {
    const char *place; /* Name of the table or map that has the rule. */
    uint64_t origin;   /* Number of the object that the rule serves: a group of sdn/pipeline.h. */
    /* Name of that object, if the datapath knows it ("service red/web"); NULL: see 'origin'. */
    const char *object;
    bool is_service;      /* The rule serves the service that the packet was sent to. */
    const char *match;    /* The match as text; "" matches everything. */
    const char *actions;  /* The rule's verdict on the packet. */
    const char *meaning;  /* The rule's actions as text. */
    struct json *details; /* Fields that only this datapath's rules have, for people; NULL: none. */
    enum model_cause cause;
};

struct datapath_rules_ops {
    void (*each)(void *ctx, const struct dp_rule *rule, uint64_t packets, uint64_t bytes);
    void (*done)(void *ctx, int error,
                 /* A negative 'error' comes with the reason why there are no rules. */
                 const char *text);
};
void datapath_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx);

/* How the datapath forwards a packet. */
struct dp_trace {
    /* Rules that the packet met, in this order; the last one decided. */
    const struct dp_rule *steps;
    size_t n;
    enum model_action action;
    /* The cause of MODEL_DROP; MODEL_NOT_DROPPED: no rule of Tenet dropped the packet. */
    enum model_cause cause;
    /* The packet was for a service; this is the endpoint that was chosen. */
    bool translated;
    uint32_t endpoint_ip;
    uint16_t endpoint_port;
    const char *remark; /* The switch's own trace; NULL: none. */
};
/* Called with a negative 'error' and the reason, or with the trace. */
typedef void datapath_trace_fn(void *ctx, int error, const char *text, const struct dp_trace *t);
void datapath_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                    void *ctx);

/* A packet that was judged just now, the first of its flow. */
struct dp_event {
    enum model_entry entry;
    uint32_t port;      /* MODEL_FROM_PORT: the pod's port. */
    uint32_t outer_src; /* MODEL_FROM_TUNNEL: the sending node. */
    uint32_t vnid;      /* The VNID with which the packet came by the tunnel or leaves by it. */
    uint16_t eth_type;
    uint32_t src, dst; /* The packet's value at the verdict; 0: it has none. */
    uint8_t proto;
    uint16_t src_port, dst_port;
    /* The service's address that 'dst' was before translation to an endpoint; 0: none. */
    uint32_t asked;
    uint16_t asked_port; /* The service's port before translation; 0: none. */
    uint32_t size;       /* Size of the frame. */
    enum model_action action;
    enum model_cause cause;
    uint32_t remote; /* MODEL_TUNNEL: the VTEP that the packet is sent to. */
};
/* 'lost': how many more events there were since the last call. */
typedef void datapath_events_fn(void *ctx, const struct dp_event *events, size_t n, uint64_t lost);
int datapath_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e);
int datapath_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                  struct json **ret, struct err *e);
