/* SPDX-License-Identifier: Apache-2.0 */
/* The types of volumes: how each is set up below a pod's directory.
 *
 * A type is one row of the table in setup.c, found by the member of the volume that names its source.
 * Its function runs on a thread of its own (jobs.h), works only on its job, and may be called again
 * for a volume that is there already, also after a restart.  A new type (CSI, other file servers) is
 * a new row. */
#pragma once

#include "kubelet/csi/drivers.h"
#include "kubelet/volumes/atomic_writer.h"
#include "kubelet/volumes/device_plan.h"
#include "kubelet/volumes/facts.h"
#include "pod/files.h"

struct volume_job;

struct volume_type {
    const char *member; /* "emptyDir": the member of a Volume or PersistentVolume. */
    const char *plugin; /* "kubernetes.io~empty-dir": a directory's name. */
    /* Sets the volume up and stores its path on the node in j->path. */
    int (*set_up)(struct volume_job *j, struct err *e);
    /* Finds or makes the block device of a volume of the mode Block, and stores its path in j->path; NULL:
     * the type has no such volumes. */
    int (*set_up_block)(struct volume_job *j, struct err *e);
    device_plan_fn *plan; /* Of a block device. */
    need_fn *need;        /* Further objects that it needs; NULL: none. */
    bool has_files;       /* Its files are those of pod_files_make. */
    bool is_on_host;      /* It has no directory of its own in the pod's. */
    bool is_readonly;     /* Containers cannot write to it. */
    bool only_in_pv;      /* A pod cannot name it directly. */
    const char *refusal;  /* Why it is refused; NULL: it is not. */
};

/* The type of a Volume, or of a PersistentVolume's spec ('in_pv').  -EOPNOTSUPP: this kubelet does not
 * know or refuses it, with the reason. */
int volume_type_of(const struct json *volume, bool in_pv, const struct volume_type **ret,
                   struct err *e);

/* The input and the result of a set-up.  The owner is the thread, from the start to the end. */
struct volume_job {
    const struct volume_type *type;
    char *pods_dir;        /* ROOT/pods, absolute and without links. */
    char *local_dir;       /* ROOT/local-volumes: volumes of the class "local". */
    char *uid, *name;      /* Names of directories. */
    struct json *source;   /* The value of the type's member. */
    bool in_pv;            /* The source is of a PersistentVolume. */
    bool block;            /* volumeMode Block. */
    struct json *options;  /* mountOptions of a PersistentVolume; NULL: none. */
    struct json *modes;    /* accessModes of a PersistentVolume; NULL: none. */
    struct json *facts;    /* Objects that the type needs; NULL: none. */
    struct json *pod_info; /* What a CSI driver may be told about the pod. */
    struct csi_drivers *drivers;
    bool readonly;             /* Of a claim. */
    struct atomic_owner owner; /* fsGroup. */
    bool on_root_mismatch;
    uint64_t memory_max; /* Bytes of a volume in memory; 0: no bound is known. */
    bool in_memory;      /* Files belong in memory. */
    struct pod_files files;
    int error;
    struct err err;
    char *path; /* NULL: failed. */
};
void volume_job_run(void *job);
void volume_job_free(struct volume_job *j);

/* "PODS/UID/volumes/PLUGIN/NAME" (owned). */
char *volume_dir(const char *pods_dir, const char *uid, const char *plugin, const char *name);
/* Whether the text can be the name of a directory: not empty, not "." or "..", without "/". */
bool volume_name_is_safe(const char *s);
/* Makes and opens a directory of the pod, of components joined by "/", with 0750 each. */
int volume_make_dir(const char *pods_dir, const char *path, int *ret_fd, struct err *e);
