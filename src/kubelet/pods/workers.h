/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node: a worker for each, which makes the runtime have what the pod's object says.
 *
 * A worker keeps what the runtime has of its pod (lists, and events that say when to list again),
 * compares it with the object by pod/plan.h, and begins the actions: at most one at a time for the
 * sandbox and for each container name, and none that another pod could wait for.  It writes the
 * pod's status, and deletes the object when nothing of the pod runs any more.  Sandboxes of pods
 * that the API does not have are ended, too.
 *
 * A new pod is admitted by pod/admit.h against those that were admitted before.  After a start of
 * the agent these are the pods that have a status.startTime, and the others follow by age.
 *
 * A static pod has no object at the API: it ends when the caller says so, and its status goes to its
 * mirror pod, if the API has one.
 *
 * The caller gives it the pods of the node and passes the runtime's events on.  Everything runs on
 * the loop's thread. */
#pragma once

#include "base/prom.h"
#include "client/client.h"
#include "controller/recorder.h"
#include "kubelet/objects.h"
#include "kubelet/volumes/volumes.h"
#include "pod/admit.h"
#include "pod/spec.h"
#include "runtime/runtime.h"

struct workers;

struct workers_config {
    struct loop *loop;
    struct api_client *client;
    struct runtime *runtime;
    struct recorder *recorder;
    struct pod_objects *objects; /* NULL: no pod may refer to objects (tests). */
    struct volumes *volumes;     /* NULL: no pod may have volumes (tests). */
    const struct pod_node *node; /* Must stay valid; its members may change. */
    const char *root_dir;        /* "/var/lib/tenet-kubelet"; copied. */
    const char *node_name, *host_ip;
    const char *runtime_name; /* "containerd": in container IDs. */
    unsigned parallel_pulls;
    int64_t pids_max; /* Of each pod; 0: no limit. */
};

struct workers_ops {
    /* Service objects, for the environment; NULL: they are not known yet.  'now': there must be an
     * answer, for a static pod, which does not wait for the master. */
    const struct json *(*services)(void *ctx, bool now);
    const struct json *(*allocatable)(void *ctx); /* The Node's; NULL: not known. */
    /* What pods are admitted by; its members are borrowed until the loop goes on.  Optional. */
    void (*admission)(void *ctx, struct pod_admit_node *ret);
    /* The runtime's handler for the RuntimeClass of this name: 0; -ENOENT: there is no such class;
     * -EAGAIN: the classes are not known yet.  Optional: no pod may have a class. */
    int (*handler)(void *ctx, const char *runtime_class, const char **ret);
    /* All pods are known, also those that only the runtime has.  Called once; optional. */
    void (*settled)(void *ctx);
    /* Nothing is left of a static pod.  Optional without static pods. */
    void (*static_ended)(void *ctx, const char *uid);
};

struct workers *workers_new(const struct workers_config *c, const struct workers_ops *ops,
                            void *ctx);
/* What runs goes on. */
struct workers *workers_free(struct workers *p);

/* The pod is there, or has changed; or its object is gone. */
void workers_set(struct workers *p, const struct json *pod);
void workers_gone(struct workers *p, const char *uid);
/* A static pod is to run (kubelet/sources); one of the same name begins when the one before has
 * ended. */
void workers_set_static(struct workers *p, const struct json *pod);
/* It is wanted no more, and ends with its grace and then by ops->static_ended. */
void workers_end_static(struct workers *p, const char *uid);
/* The object of the API that shows the static pod; NULL: there is none. */
void workers_set_mirror(struct workers *p, const char *uid, const struct json *mirror);
/* All pods of the node have been set once: sandboxes of other pods are ended. */
void workers_synced(struct workers *p);

/* Events of the runtime (runtime.h). */
void workers_runtime_changed(struct workers *p, const char *sandbox_id, const char *container_id);
void workers_runtime_resync(struct workers *p);
/* The pod's volumes have changed. NULL: those of all. */
void workers_wake(struct workers *p, const char *uid);
/* A ConfigMap or Secret of the pod, or what else its environment is made of, has changed: what could not
 * be started without it is tried at once. NULL: of all. */
void workers_objects_changed(struct workers *p, const char *uid);

/* ---- what others ask ---- */

size_t workers_count(const struct workers *p);
/* Calls 'fn' for each pod with its present object and status (borrowed). */
void workers_each(const struct workers *p,
                  void (*fn)(void *ctx, const struct json *pod, const struct json *status),
                  void *ctx);
/* The pod's object and status; false: there is none. 'uid' NULL: any; that of a mirror pod is as good
 * as that of its static pod.  Without it a pod of the API comes before a static one: the API server
 * has judged the request by the object that it has. */
bool workers_find(const struct workers *p, const char *ns, const char *name, const char *uid,
                  const struct json **ret_pod, const struct json **ret_status);
/* What is known of the pod's sandbox and containers; NULL: the pod is not here. */
const struct pod_observed *workers_observed(const struct workers *p, const char *uid);
/* Whether the pod is admitted and kept running. */
bool workers_is_kept(const struct workers *p, const char *uid);
/* Whether nothing of the pod runs. */
bool workers_has_ended(const struct workers *p, const char *uid);
/* Whether nothing of the pod runs and the API has its last status. */
bool workers_is_settled(const struct workers *p, const char *uid);
/* The node evicts the pod, which ends as Failed with this reason, after at most 'grace_s' seconds (-1:
 * the pod's own grace).  False: it is being ended already. */
bool workers_evict(struct workers *p, const char *uid, const char *reason, const char *message,
                   int64_t grace_s);
/* A probe of a container that runs, and how often it ended so. */
struct workers_probe {
    const char *namespace, *pod, *uid, *container;
    const char *type; /* "Startup", "Liveness", "Readiness" */
    uint64_t successful, failed, unknown;
};
void workers_each_probe(const struct workers *p,
                        void (*fn)(void *ctx, const struct workers_probe *p), void *ctx);

struct workers_stats {
    uint64_t starts, restarts, kills, sandboxes, status_writes, status_errors;
    uint64_t action_errors, probes, probe_failures;
    uint64_t image_pulls, image_failures;
    unsigned pods, running, pulling;
    struct prom_histogram start_ns; /* From when the pod was first seen to its containers' start. */
};
void workers_get_stats(const struct workers *p, struct workers_stats *ret);
