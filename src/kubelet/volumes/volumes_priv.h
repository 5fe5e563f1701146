/* SPDX-License-Identifier: Apache-2.0 */
/* State of the volumes of pods.  Internal to src/kubelet/volumes; all of it belongs to the loop's
 * thread. */
#pragma once

#include "base/backoff.h"
#include "base/map.h"
#include "base/mem.h"
#include "kubelet/volumes/claim.h"
#include "kubelet/volumes/facts.h"
#include "kubelet/volumes/growth.h"
#include "kubelet/volumes/jobs.h"
#include "kubelet/volumes/setup.h"
#include "kubelet/volumes/token.h"
#include "kubelet/volumes/volumes.h"

/* Why a container cannot have the volume '%s' as it asks, in the kubelet's words. */
#define VOLUME_IS_BLOCK "volume %s has volumeMode Block, but is specified in volumeMounts"
#define VOLUME_IS_FILES "volume %s has volumeMode Filesystem, but is specified in volumeDevices"

struct volumes {
    struct loop *loop;
    struct api_client *client;
    const struct pod_objects *objects;
    char *pods_dir, *local_dir, *cluster_domain, *node_name;
    struct csi_drivers *drivers;
    const struct volumes_ops *ops;
    void *ctx;
    struct jobs *jobs;
    struct smap pods;          /* Uid to 'struct pod_volumes'. */
    struct list removals;      /* List of 'struct removal'. */
    struct list failed_mounts; /* List of 'struct mount_call' whose failure is to be delivered. */
    /* Why the object that was looked up last has not come (borrowed for the call). */
    const char *awaited;
    bool closing;
};

struct set_up_call;

struct volume {
    struct list node; /* In the pod's list. */
    struct pod_volumes *pod;
    struct json *spec;              /* The member of spec.volumes. */
    const struct volume_type *type; /* NULL: not known yet, or refused. */
    struct json *source;            /* The value of the type's member, when the type is known. */
    bool persistent;                /* The volume outlives the pod. */
    bool block;                     /* volumeMode Block: containers get the device itself. */
    struct claim *claim;            /* NULL: none. */
    struct facts *facts;            /* NULL: none are needed, or the type is not known yet. */
    struct growth *growth;          /* Of a ready CSI volume of a claim; NULL: none. */
    struct token **tokens;
    size_t n_tokens;
    struct set_up_call *call; /* The job that runs; NULL: none. */
    bool again;               /* Its input has changed while the job runs. */
    bool ready, readonly;
    char *path;                     /* On the node, when ready. */
    struct pod_files files;         /* As last written, when ready. */
    struct volume_reading *reading; /* Of its file system, under way; NULL: none. */
    struct volume_usage usage;      /* As last read; 'time_ms' 0: never. */
    uint64_t read_ms;               /* When a reading last ended (monotonic); 0: never. */
    char *failure;
    struct loop_timer *retry;
    struct backoff backoff;
};

struct pod_volumes {
    struct volumes *all;
    char *uid;
    struct json *pod; /* NULL: only its directory is known, which is to be removed. */
    struct list volumes;
    struct list mounts;  /* List of 'struct mount_call'. */
    size_t running;      /* Jobs that work in the pod's directory. */
    struct json *in_use; /* Names of attachable volumes, for the Node's volumesInUse. */
    bool removing, removal_runs;
    char *text; /* What volumes_state returned last. */
};

/* A job in the pod's directory has ended; removal waits for all of them. */
void pod_volumes_job_ended(struct pod_volumes *p);
const struct volume *pod_volumes_find(const struct pod_volumes *p, const char *name);
/* Ends the pod's calls of volumes_mount with -ECANCELED. */
void mount_calls_cancel(struct pod_volumes *p);
/* Releases the calls whose failure was not delivered. */
void mount_calls_free(struct volumes *v);
/* The volume goes: a reading under way is dropped. */
void volume_usage_forget(struct volume *vol);
