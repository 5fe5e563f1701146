/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node: CNI's ADD, DEL and CHECK as the agent carries them out.
 *
 * Any number of requests run side by side; those for one container and interface run one after the
 * other. What blocks (netlink) is done on worker threads, while the switch is spoken to from the
 * loop.  A request that fails leaves nothing behind.  Which pods there are is known from the
 * datapath alone; addresses in use follow from that.
 *
 * All functions are called on the loop's thread, and so are the callbacks. */
#pragma once

#include "base/prom.h"
#include "datapath/datapath.h"
#include "node/podlistener.h"
#include "wire/cni.h"

struct pods;

typedef void pods_wants_fn(void *ctx, int error, const char *text, struct cni_runtime *wants);

struct pods_ops {
    /* VNIDs of a project; a negative errno, with the reason, when they are not known now. */
    int (*vnids)(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e);
    /* Whether the policies for a pod can be known: -ENOENT, with the reason, when its object is
     * not here yet. */
    int (*known)(void *ctx, const char *project, const char *pod, struct err *e);
    /* Asks the registry what a pod's object wants of host ports and bandwidth, and calls 'fn' once,
     * maybe from within: with -EINVAL when it wants what cannot be, with nothing wanted when that
     * is not to be known. */
    void (*look_up)(void *ctx, const char *project, const char *pod, pods_wants_fn *fn,
                    void *fn_ctx);
    /* Whether a pod that is being attached can have these host ports, which are then held for it;
     * -EADDRINUSE, with the reason: it cannot.  'settled': it has them now (its datapath_pods say
     * so), or will not. */
    int (*reserve)(void *ctx, const struct cni_runtime *r, struct err *e);
    void (*settled)(void *ctx, const struct cni_runtime *r);
    /* The pods that have host ports (datapath_pods) are others, with one more ('adding') or less:
     * calls 'fn' when the host has followed, or with what went wrong. */
    void (*host_ports)(void *ctx, bool adding, datapath_done_fn *fn, void *fn_ctx);
    /* What pods of the project are told of DNS, as CNI's "dns", for networks whose configuration
     * has none; NULL: nothing.  Optional. */
    struct json *(*dns)(void *ctx, const char *project);
    /* NULL, or why the network cannot be changed now ("Open vSwitch is gone: ..."). */
    const char *(*not_ready)(void *ctx);
    /* Something is wrong with a pod of this node: a request failed for good, or what was found at
     * the start. 'reason' is CamelCase. */
    void (*trouble)(void *ctx, const char *project, const char *pod, const char *reason,
                    const char *text);
};

struct pods_config {
    struct loop *loop;
    struct datapath *datapath;
    uint64_t
        /* How long ADD waits for the VNID of its project, and for its pod's object. */
        vnid_wait_ms;
};

struct pods *pods_new(const struct pods_config *c, const struct pods_ops *ops, void *ctx);
/* No request may be under way. */
struct pods *pods_free(struct pods *p);

/* Calls 'l' with 'ctx' for each pod that comes or goes from now on, in the order in which listeners
 * were added.  'l' and 'ctx' are borrowed; a 'ctx' that listens already stays as it is. */
void pods_listen(struct pods *p, const struct pod_listener *l, void *ctx);
/* Success when 'ctx' does not listen. */
void pods_unlisten(struct pods *p, const void *ctx);

/* Begins, once: 'n' is the network, and the datapath has it in place.  Takes over the pods that are
 * attached and sweeps. */
int pods_start(struct pods *p, const struct sdn_network *n, struct err *e);
/* Detaches pods whose link is gone (the host was started anew), or whose address is not of the
 * node's subnet.  To be called whenever the datapath became ready again. */
int pods_sweep(struct pods *p, struct err *e);
/* The network is, or is about to be, another in what concerns pods; may also be called before
 * pods_start, with the datapath's inventory known.  Its 'local' stays as it was at the start.  Must
 * be followed by pods_all_projects_changed. */
void pods_set_network(struct pods *p, const struct sdn_network *n);
/* A project's VNID is known or has changed: requests that wait for it go on, its pods follow. */
void pods_project_changed(struct pods *p, const char *project);
/* Requests that wait for an object of the project look again. */
void pods_wake(struct pods *p, const char *project);
/* As pods_project_changed, for every project that has pods here. */
void pods_all_projects_changed(struct pods *p);
/* A project of which no VNID is known though pods of it are attached, which count as global as
 * long: NULL when there is none. */
const char *pods_unknown_project(struct pods *p);
/* Keeps pods apart from everybody that count as global for no better reason than that the plug-in
 * before had no VNIDs, and whose project has none. */
void pods_isolate_unknown(struct pods *p);

/* 'text' is the line for tenet-cni, line end included; called exactly once, never from within
 * pods_request. */
typedef void pods_reply_fn(void *ctx, const char *text, size_t size);
/* Carries out 'r' (taken over, as is 'netns_fd', which may be -1). */
void pods_request(struct pods *p, struct cni_request *r, int netns_fd, pods_reply_fn *reply,
                  void *ctx);
/* The kernel announced that the link 'name' is gone. */
void pods_link_gone(struct pods *p, const char *name);

/* Since the start, by command. */
#define PODS_COMMANDS (CNI_STATUS + 1)
struct pods_stats {
    uint64_t ok[PODS_COMMANDS], failed[PODS_COMMANDS];
    struct prom_histogram duration[PODS_COMMANDS];
};
const struct pods_stats *pods_get_stats(const struct pods *p);
/* Requests under way, and links that the kernel still takes apart. */
size_t pods_busy(const struct pods *p);
