/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes of this node's pods: their directories, mounts and files below ROOT/pods/UID, and
 * what a container mounts of them.
 *
 * The layout is the kubelet's: volumes/kubernetes.io~TYPE/NAME, volume-subpaths/NAME/CONTAINER/INDEX
 * and etc-hosts.  The rest of the pod's directory belongs to the caller, and goes with it in
 * volumes_remove.  Nothing is recorded elsewhere: after a restart the state is what the directories
 * and /proc/self/mountinfo show.
 *
 * Everything runs on the loop's thread.  Work that touches a volume's files runs on a thread of its
 * own for each volume, so that a dead file server holds up one pod only (jobs.h). */
#pragma once

#include "kubelet/csi/drivers.h"
#include "kubelet/objects.h"
#include "runtime/runtime_spec.h"

struct volumes;

struct volumes_config {
    const char *root_dir;        /* "/var/lib/tenet-kubelet"; copied. */
    const char *cluster_domain;  /* "cluster.local"; copied. */
    const char *node_name;       /* Copied. */
    struct csi_drivers *drivers; /* The drivers of the node; a reference is added.  NULL: none. */
};

struct volumes_ops {
    /* volumes_state of the pod may have changed. */
    void (*changed)(void *ctx, const char *uid);
    /* The Node's status.allocatable (borrowed); NULL: not known.  It bounds memory volumes, and is
     * the limit that resourceFieldRef shows for a container without one. */
    const struct json *(*allocatable)(void *ctx);
    /* volumes_in_use may have changed; NULL: not wanted.  It must not call a function of this header but
     * that one. */
    void (*in_use_changed)(void *ctx);
};

/* Makes ROOT/pods.  'objects' and the client must outlive it.  The caller tells of changed objects by
 * volumes_objects_changed, and of pods to 'objects' itself. */
int volumes_new(struct loop *l, struct api_client *c, const struct pod_objects *objects,
                const struct volumes_config *conf, const struct volumes_ops *ops, void *ctx,
                struct volumes **ret, struct err *e);
/* Mounts and files stay, and callbacks that are due are not called.  Work that does not end within 5
 * seconds is left to its thread. */
struct volumes *volumes_free(struct volumes *v);
DEFINE_CLEANUP(struct volumes *, volumes_free)

/* The pod is wanted: prepares its volumes, and follows changes of its labels and annotations.  'pod'
 * is copied.  Without effect when volumes_remove was called for its uid and has not ended.  Read
 * volumes_state afterwards: a pod without volumes is READY at once, without a call of 'changed'. */
void volumes_set_pod(struct volumes *v, const struct json *pod);
/* A CSI driver has come: volumes that wait for one are tried at once. */
void volumes_drivers_changed(struct volumes *v);
/* An object that the pod refers to has changed (pod_objects_ops): updates the files. */
void volumes_objects_changed(struct volumes *v, const char *uid);

enum volumes_phase {
    VOLUMES_NONE,     /* The pod is not known. */
    VOLUMES_WAITING,  /* Not all volumes are mounted. */
    VOLUMES_READY,    /* All are mounted; this stays so until volumes_remove. */
    VOLUMES_REMOVING, /* volumes_remove is under way. */
};
/* The pod's state.  '*ret_text' is the message of an Event FailedMount, in the kubelet's words, or
 * NULL when there is no failure; it is valid until the next turn of the loop.  A READY pod has a
 * text when its files could not be updated. */
enum volumes_phase volumes_state(const struct volumes *v, const char *uid, const char **ret_text);

/* The Node's status.volumesInUse (owned): the attachable volumes of the pods, until those pods' volumes are
 * removed.  The attach/detach controller detaches none of them. */
struct json *volumes_in_use(const struct volumes *v);

/* How full the file system of a claim's volume is; names are borrowed for the call. */
struct volume_usage {
    const char *volume, *claim; /* Its name in the pod, and the claim in the pod's namespace. */
    int64_t time_ms;            /* When it was read. */
    int64_t capacity, available, used; /* Bytes. */
    int64_t inodes, inodes_free, inodes_used;
};
typedef void volume_usage_fn(void *ctx, const struct volume_usage *u);
/* Calls 'fn' for each ready volume of a claim that has been read.  Readings older than a minute are
 * renewed on threads of their own, so the first call of a volume finds nothing. */
void volumes_each_usage(struct volumes *v, const char *uid, volume_usage_fn *fn, void *ctx);

struct volumes_container {
    const struct json *container; /* A member of the pod, of any of its three lists. */
    struct runtime_pairs env;     /* For subPathExpr. */
    struct runtime_texts pod_ips; /* For /etc/hosts. */
};
/* What a container gets: its volumeMounts, /etc/hosts, and its volumeDevices. */
struct volumes_mounts {
    const struct runtime_mount *mounts;
    size_t n_mounts;
    const struct runtime_device *devices;
    size_t n_devices;
};
/* 'error' 0: '*m' is borrowed for the call.  Otherwise it is empty, and 'text' is the message of the waiting
 * reason CreateContainerConfigError. */
typedef void volumes_mounts_fn(void *ctx, int error, const char *text,
                               const struct volumes_mounts *m);
/* Prepares what the container mounts, among it subPaths, devices and /etc/hosts, and ends by 'done', exactly
 * once and later; with -ECANCELED, from within volumes_remove, when the volumes are removed meanwhile.
 * The volumes must be READY, else -EAGAIN.  Volumes made of API objects are always read-only. */
void volumes_mount(struct volumes *v, const char *uid, const struct volumes_container *c,
                   volumes_mounts_fn *done, void *ctx);

typedef void volumes_done_fn(void *ctx, int error, const char *text);
/* Unmounts all below the pod's directory and removes it, never crossing a mount.  The pod's containers
 * must be gone.  Ends by 'done', exactly once and later; after a failure it may be called again.  A
 * pod that is not known is removed, too. */
void volumes_remove(struct volumes *v, const char *uid, volumes_done_fn *done, void *ctx);
/* Removes all directories of ROOT/pods but those of 'uids': once, when the pods are known. */
void volumes_sweep(struct volumes *v, const char *const *uids, size_t n, volumes_done_fn *done,
                   void *ctx);
