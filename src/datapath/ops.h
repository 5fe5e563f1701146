/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a datapath implements.
 *
 * A datapath is one folder below src/datapath with one 'struct datapath_ops', which is registered
 * in the table of datapath.c by its name; nothing else in the tree compares datapath names. All
 * members must be set unless their comment says "Optional". Unless a comment says otherwise -
 * members are called on the loop's thread and must not block for long; - arguments are borrowed for
 * the call, and copied by the datapath where it needs them later; - callbacks come on the loop's
 * thread and never from within the call that was given them (outbox.h does that); - 'int' results
 * are 0 or a negative errno, with '*e' filled in.
 *
 * docs/architecture.md, "How to add a datapath", has the order in which to write one. */
#pragma once

#include "datapath/datapath.h"

/* A setting of one datapath, opaque to the agent, which passes the configuration's text. */
struct datapath_setting {
    const char *key;      /* Key in the configuration: "ovs.bridge". */
    const char *fallback; /* Value when the configuration has none; NULL: the datapath decides. */
    /* Checks a value; -EINVAL: it is wrong, and '*e' says why without the key. */
    int (*check)(const char *value, struct err *e);
};

/* Returns the text of a setting: the configured one, else its fallback. */
const char *datapath_get_setting(const struct datapath_config *cfg, const char *key);

/* Answers questions about the datapath. None of them changes how packets are forwarded. */
struct datapath_explain_ops {
    /* Counts the packets dropped so far, by cause, since the datapath was opened or longer. 'done'
     * is called once, maybe before the call returns.  With an error it gets the totals of the last
     * successful count. */
    void (*drops)(struct datapath *dp, datapath_drops_fn *done, void *ctx);
    /* Lists the rules with their counters, in the order in which packets meet them: ops->each for
     * each, then ops->done once, maybe before the call returns. The error is -EOPNOTSUPP for a
     * datapath whose rules cannot be listed. */
    void (*rules)(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx);
    /* Determines how a packet that begins a connection would be forwarded.  Nothing is sent,
     * counted or stored.  'done' is called once, maybe before the call returns. */
    void (*trace)(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                  void *ctx);
    /* Calls 'fn' for flows of packets from now on, including existing flows, soon after their
     * packets, and repeats each flow now and then. A NULL 'fn' ends the calls; watching then costs
     * nothing. -EOPNOTSUPP: the datapath does not see single flows, and the error says what to use
     * instead. */
    int (*watch)(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e);
    /* Shows the datapath's maps.  With 'name' NULL '*ret' is an array of objects with "name",
     * "type", "entries" (-1: not counted) and "max".  Else '*ret' is an object whose "entries" have
     * "key" and "value" as objects of fields: at most 'limit' of them, after the one whose key is
     * 'after' (NULL: from the beginning), and "next" if there are more.  '*ret' is the caller's.
     * -EOPNOTSUPP: the datapath has no maps; -ENOENT: no map has the name. */
    int (*maps)(struct datapath *dp, const char *name, const char *after, size_t limit,
                struct json **ret, struct err *e);
};

struct datapath_ops {
    /* The datapath's name in the configuration ("networkConfig.datapath"), and its name and reasons
     * in logs, conditions and Events. */
    const char *kind;
    struct datapath_words words;
    /* The datapath realises routed plug-ins (sdn_plugin_is_routed), and no others. */
    bool is_routed;
    /* The settings that the datapath understands, ended by a NULL key. */
    const struct datapath_setting *settings;

    /* ---- before it is opened ---- */

    /* Checks whether the datapath works on this host and can carry the network 'n'. Changes
     * nothing. Optional: without it datapath_events.fatal reports what is wrong. */
    int (*check)(const struct datapath_config *cfg, const struct sdn_network *n, struct err *e);
    /* Begins, on a worker thread, slow work that needs no network and changes nothing on the host,
     * while the agent waits for the API server. The result goes to 'open' in cfg->prepared, or is
     * freed by its 'free'. Optional. */
    struct datapath_prepared *(*prepare)(struct loop *l, const struct datapath_config *cfg);
    /* Makes the mounts below cfg->run_dir that must outlive the agent. Succeeds when they exist.
     * 'open' makes them too; this is for an agent in a mount namespace of its own, whose mounts
     * would end with it. */
    int (*make_mounts)(const struct datapath_config *cfg, struct err *e);

    /* ---- life ---- */

    /* Opens the datapath and begins to read its stored pods; 'ev' and 'ctx' are kept until 'close'.
     * Does not change packet forwarding before the first set_network. */
    int (*open)(struct loop *l, const struct datapath_config *cfg, const struct datapath_events *ev,
                void *ctx, struct datapath **ret, struct err *e);
    /* Frees the datapath; packets are forwarded as before. Calls no callback for attachments under
     * way. */
    void (*close)(struct datapath *dp);

    /* ---- the network ---- */

    /* Sets the desired network, and applies the difference to the one before. datapath_events.ready
     * reports when it is in place, which may need the services, too (settle_services). */
    void (*set_network)(struct datapath *dp, const struct sdn_network *n);
    /* Changes the VNIDs of all pods of a project in one step, in the forwarding state and in the
     * pods' records. */
    void (*set_vnids)(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v);
    /* Takes network policy from 'p', in the form that the datapath asks for (policy_want_flows,
     * policy_want_table). Changes that a policy_compile hands out are in place no later than any
     * later request. The caller ends it by policy_leave or policy_free, before 'close'. */
    void (*set_policy)(struct datapath *dp, struct policy *p);
    /* Sets the egress firewall of the pods with a VNID: which destinations outside the cluster
     * their packets may have, by the longest prefix; 'n' 0: all.  The blocks are sorted by address
     * and length.  In place no later than any later request.  All firewalls are set before the first
     * set_network; those of an earlier agent process that are not set again end then. */
    void (*set_firewall)(struct datapath *dp, uint32_t vnid, const struct firewall_block *blocks,
                         size_t n);
    /* A service, or the VNIDs of its project, changed.  'old' NULL: the service is new; 'now' NULL:
     * it is gone; the same one in both: the caller repeats it, since set_network changed more than
     * remotes.  It is in place with the next settle_services. */
    void (*change_service)(struct datapath *dp, const struct sdn_service *old,
                           const struct sdn_project_service *now);
    /* The changes of services are complete for now: they are in place no later than any later
     * request. Called after each set_network that changed more than remotes. The datapath may read
     * all services from 'all', then and later, until 'close'. */
    void (*settle_services)(struct datapath *dp, const struct datapath_services *all);
    /* Forwards a frame of datapath_events.idle_packet as if its pod had sent it just now, once the
     * service changes before this call are in place. */
    void (*release)(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size);

    /* ---- pods ---- */

    /* Attaches 'p'.  Calls 'port' with the names of the pod's port and link, so that the caller
     * makes the link and wires it while the datapath goes on; then 'done' with 0 when all but the
     * link is in place.  A pod that cannot be served fails at once: 'done' gets a negative errno
     * and the reason, maybe without 'port' before, and nothing of the pod stays.  An attached pod
     * of the same container and interface is replaced. */
    void (*attach)(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                   datapath_done_fn *done, void *ctx);
    /* Detaches a pod; succeeds when there is none. Calls 'done' when the stored state no longer has
     * it. Packets may be forwarded for some milliseconds more, but never to a pod that is attached
     * later. The caller deletes the link. */
    void (*detach)(struct datapath *dp, const char *container_id, const char *ifname,
                   datapath_done_fn *done, void *ctx);
    /* Stores host ports and limits with an attached pod, as texts of wire/cni_runtime.h (NULL:
     * none); 'pods' lists them at once. Calls 'done' when they are stored. -ENOENT: the pod is not
     * attached. */
    void (*set_runtime)(struct datapath *dp, const char *container_id, const char *ifname,
                        const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                        void *ctx);
    /* Returns the pods that are attached or being attached.  The array and its members are the
     * datapath's, and valid until the next call into it. */
    const struct dp_pod *const *(*pods)(struct datapath *dp, size_t *ret_n);

    /* ---- links of pods, in the kernel ---- */

    /* Connects the link of a pod to its port, with its limits.  Blocks shortly; on any thread that
     * is in the host's network namespace. */
    int (*wire)(struct datapath *dp, const struct dp_wire *w, struct err *e);
    /* Removes the limits from the port, which stays; those of the link, which may be gone, end with
     * the link.  Like 'wire', on any thread. */
    int (*unlimit)(struct datapath *dp, const struct dp_wire *w, struct err *e);
    /* Checks that the link is as 'wire' left it; the error names the difference.  Like 'wire', on
     * any thread. */
    int (*check_wire)(struct datapath *dp, const struct dp_wire *w, struct err *e);
    /* Returns the network namespace of 'host_if' if that is the peer of a port which the datapath
     * made and keeps: the pod's link is then a macvlan on it (rtnl_macvlan_add).  Else -1.  'port'
     * NULL: the namespace of all such peers. On any thread. Optional: pods have veth pairs. */
    int (*end)(struct datapath *dp, const char *port, const char *host_if);
    /* Lists all links that lead to a pod, and maybe others: a pod whose host_if is not among them
     * has no link any more. '*ret' is the caller's.  Optional: they are links of the host. */
    int (*links)(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e);
    /* The kernel announced that the link 'name' is gone. */
    void (*link_gone)(struct datapath *dp, const char *name);

    /* ---- looking ---- */

    void (*get_status)(struct datapath *dp, struct datapath_status *ret);
    struct datapath_explain_ops explain;
};

/* First member of each datapath's own struct. */
struct datapath {
    const struct datapath_ops *ops;
};

/* First member of what 'prepare' returns. */
struct datapath_prepared {
    void (*free)(struct datapath_prepared *p);
};

extern const struct datapath_ops datapath_ovs, datapath_ebpf, datapath_hostgw;
