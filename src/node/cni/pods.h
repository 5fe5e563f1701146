/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node: CNI's ADD, DEL and CHECK as the agent carries them out.
 *
 * Any number of requests run side by side; those for one container and interface run one after the
 * other. Blocking netlink work runs on worker threads; the loop's thread sends requests to the
 * switch.  A request that fails leaves nothing behind.  The datapath's inventory is the only list
 * of pods; the addresses in use follow from it.
 *
 * All functions are called on the loop's thread, and so are the callbacks. */
#pragma once

#include "base/prom.h"
#include "datapath/datapath.h"
#include "node/pod_listener.h"
#include "wire/cni.h"

struct pods;

typedef void pods_wants_fn(void *ctx, int error, const char *text, struct cni_runtime *wants);

struct pods_ops {
    /* VNIDs of a project; a negative errno, with the reason, when they are not known now. */
    int (*vnids)(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e);
    /* Whether the policies for a pod can be known: -ENOENT, with the reason, when the agent does
     * not have its object yet. */
    int (*known)(void *ctx, const char *project, const char *pod, struct err *e);
    /* Reads the host ports and bandwidth that a pod's object asks for, and calls 'fn' once, perhaps
     * before it returns.  'fn' gets -EINVAL when the object asks for something impossible, and
     * empty wants when the object cannot be read. */
    void (*look_up)(void *ctx, const char *project, const char *pod, pods_wants_fn *fn,
                    void *fn_ctx);
    /* Reserves these host ports for a pod that is being attached; -EADDRINUSE, with the reason,
     * when one is taken.  'settled' ends the reservation: the pod has the ports now (datapath_pods
     * lists them), or will not get them. */
    int (*reserve)(void *ctx, const struct cni_runtime *r, struct err *e);
    void (*settled)(void *ctx, const struct cni_runtime *r);
    /* The set of pods with host ports (datapath_pods) has one pod more ('adding') or less: calls
     * 'fn' when the host's rules match, or with the error. */
    void (*host_ports)(void *ctx, bool adding, datapath_done_fn *fn, void *fn_ctx);
    /* The DNS settings for pods of the project, as CNI's "dns", for networks whose configuration
     * has none; NULL: no settings.  Optional. */
    struct json *(*dns)(void *ctx, const char *project);
    /* NULL, or why the network cannot be changed now ("Open vSwitch is gone: ..."). */
    const char *(*not_ready)(void *ctx);
    /* Reports a problem of a pod of this node: a request that failed for good, or one found at the
     * start. 'reason' is CamelCase. */
    void (*trouble)(void *ctx, const char *project, const char *pod, const char *reason,
                    const char *text);
};

struct pods_config {
    struct loop *loop;
    struct datapath *datapath;
    /* How long ADD waits for the VNID of its project, and for its pod's object. */
    uint64_t vnid_wait_ms;
};

struct pods *pods_new(const struct pods_config *c, const struct pods_ops *ops, void *ctx);
/* No request may be under way. */
struct pods *pods_free(struct pods *p);

/* Calls 'l' with 'ctx' for each pod that is attached or detached from now on, in the order in which
 * listeners were added.  'l' and 'ctx' are borrowed; a 'ctx' that is registered already stays as it
 * is. */
void pods_listen(struct pods *p, const struct pod_listener *l, void *ctx);
/* Ends the calls for 'ctx'; does nothing when it is not registered. */
void pods_unlisten(struct pods *p, const void *ctx);

/* Begins; called once, when the datapath has the network 'n' in effect.  Takes over the attached
 * pods, and calls pods_sweep. */
int pods_start(struct pods *p, const struct sdn_network *n, struct err *e);
/* Detaches pods whose link is gone (the host was started anew), or whose address is not of the
 * node's subnet. The agent calls it each time the datapath becomes ready again. */
int pods_sweep(struct pods *p, struct err *e);
/* Sets a network that differs, or is about to differ, in the members that concern pods.  It may
 * also be called before pods_start, once the datapath's inventory is known.  'n->local' must not
 * change.  The caller calls pods_all_projects_changed next. */
void pods_set_network(struct pods *p, const struct sdn_network *n);
/* A project's VNID is known or has changed: requests that wait for it go on, its pods follow. */
void pods_project_changed(struct pods *p, const char *project);
/* Requests that wait for an object of the project look again. */
void pods_wake(struct pods *p, const char *project);
/* Calls pods_project_changed for every project that has pods on this node. */
void pods_all_projects_changed(struct pods *p);
/* A project that has attached pods and no known VNID; these pods count as global meanwhile.  NULL
 * when there is none. */
const char *pods_unknown_project(struct pods *p);
/* Isolates the pods that count as global only because the previous plug-in had no VNIDs, and whose
 * project still has no VNID. */
void pods_isolate_unknown(struct pods *p);

/* Takes the answer: 'text' is the line for tenet-cni with its line end.  Called exactly once, never
 * before pods_request returns. */
typedef void pods_reply_fn(void *ctx, const char *text, size_t size);
/* Carries out 'r'.  Takes over 'r' and 'netns_fd', which may be -1. */
void pods_request(struct pods *p, struct cni_request *r, int netns_fd, pods_reply_fn *reply,
                  void *ctx);
/* The kernel announced that the link 'name' is gone. */
void pods_link_gone(struct pods *p, const char *name);

/* Counters since the start, by command. */
#define PODS_COMMANDS (CNI_STATUS + 1)
struct pods_stats {
    uint64_t ok[PODS_COMMANDS], failed[PODS_COMMANDS];
    struct prom_histogram duration[PODS_COMMANDS];
};
const struct pods_stats *pods_get_stats(const struct pods *p);
/* Requests under way, and links that the kernel has not destroyed yet. */
size_t pods_busy(const struct pods *p);
