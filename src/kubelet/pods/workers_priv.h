/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the pods' workers, for the files of kubelet/pods. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "base/said.h"
#include "base/timeutil.h"
#include "kubelet/pods/action.h"
#include "kubelet/pods/images.h"
#include "kubelet/pods/workers.h"
#include "pod/env.h"
#include "pod/plan.h"
#include "pod/status.h"

struct prober;

struct workers {
    struct workers_config c;
    char *root_dir, *node_name, *host_ip, *runtime_name;
    const struct workers_ops *ops;
    void *ctx;
    struct images *images;
    struct smap workers; /* By UID. */
    struct smap ids;     /* UIDs (owned texts) by the IDs of sandboxes and containers. */
    bool synced;
    bool settled;                 /* ops->settled was called. */
    bool sweep_due;               /* workers_sweep is called after the next list. */
    bool closing;                 /* workers_free has begun. */
    struct runtime_call *orphans; /* The list of all sandboxes. */
    struct runtime_call *orphan_containers;
    struct loop_timer *timer;
    struct workers_stats stats;
};

enum op_kind { OP_MAKE_SANDBOX, OP_STOP_SANDBOX, OP_REMOVE_SANDBOX, OP_START, OP_KILL, OP_REMOVE };

/* The stages of OP_START and OP_KILL. */
enum op_stage { STAGE_IMAGE, STAGE_MOUNTS, STAGE_CREATE, STAGE_START, STAGE_HOOK, STAGE_STOP };

/* An operation of a worker under way. */
struct op {
    struct worker *worker;
    struct list node;
    enum op_kind kind;
    enum op_stage stage;
    char *name; /* Of the container; "" for sandboxes. */
    char *id;   /* Of the sandbox or container; NULL: it is being made. */
    struct runtime_call *call;
    struct image_call *image;
    struct action *action;
    struct loop_timer *timer;
    struct json *pod; /* The object when the operation began. */
    /* OP_START. */
    struct arena arena;
    const struct json *container;
    enum pod_container_kind container_kind;
    uint32_t restarts, level;
    struct runtime_sandbox_spec sandbox;
    struct runtime_container_spec spec;
    struct pod_env env;
    char *image_ref, *sandbox_id;
    const char *target_id;
    bool dead; /* A callback that cannot be cancelled frees the operation. */
    /* OP_KILL. */
    int64_t deadline_ns;
};

struct worker {
    struct workers *pods;
    char *uid, *ns, *name;
    struct json *pod;    /* The newest object; made from labels if the API has none. */
    struct json *status; /* The newest status that the worker made; NULL: none yet. */
    struct pod_observed o;
    enum pod_work work;
    bool cleaned; /* Nothing is left of it in the runtime and in directories. */
    bool cleaning;
    bool releasing, released; /* Its volumes and groups are given back, though its object stays. */
    bool admitted;            /* The node has decided whether it takes the pod. */
    bool frozen;              /* Its final status was written by an earlier agent. */
    bool is_static;           /* It has no object at the API, whatever its annotations say. */
    char *mirror_uid;         /* Of the object that has the status of a static pod; NULL: none. */

    /* What the runtime has: read when 'dirty'. */
    bool dirty, loading, read_once;
    struct pod_observed next;
    size_t next_detail;
    struct runtime_call *read, *read_list; /* Of the sandboxes, or details; of the containers. */

    struct list ops;
    struct list probes; /* struct probe */
    struct loop_task task;
    struct loop_timer *timer;
    unsigned sandbox_failures;

    /* The status at the API. */
    struct json *mirrored; /* Of a static pod's mirror, as last read or written. */
    struct api_call *patch;
    struct json *sent; /* The status of the request under way. */
    bool written;      /* The API has 'status'. */
    struct api_call *remove;
    unsigned patch_failures;
    struct loop_timer *patch_timer;
    struct said trouble, volume_trouble;
    bool started_all;
};

int64_t workers_now_ns(void);
void worker_event(struct worker *w, enum recorder_type type, const char *reason, const char *fmt,
                  ...) PRINTF_LIKE(4, 5);

/* ---- worker.c ---- */
struct worker *worker_new(struct workers *p, const struct json *pod, bool is_static);
void worker_free(void *w);
/* Decides whether the node takes the pod, once; later calls do nothing. */
void worker_admit(struct worker *w);
/* The pods that use what they request of the node: an owned list of borrowed objects. */
const struct json **workers_admitted(const struct workers *p, size_t *ret_n);
void worker_set_pod(struct worker *w, const struct json *pod);
/* The status as the API has it; that of an object of the API is a member of 'pod'. */
const struct json *worker_stored(const struct worker *w);
void worker_set_stored(struct worker *w, const struct json *status);
void worker_wake(struct worker *w);  /* Plans again. */
void worker_dirty(struct worker *w); /* Reads the runtime, then plans again. */
/* The status made of what is known, without writing it. */
void worker_make_status(struct worker *w);

/* ---- observe.c ---- */
void worker_read(struct worker *w);
void worker_read_cancel(struct worker *w);

/* ---- ops.c ---- */
struct op *op_new(struct worker *w, enum op_kind kind, const char *name, const char *id);
void op_free(struct op *op);
/* Frees it, and reads the runtime again. */
void op_end(struct op *op);
struct op *op_find(const struct worker *w, const char *name, enum op_kind kind);
void op_make_sandbox(struct worker *w, uint32_t attempt);
void op_stop_sandbox(struct worker *w, const char *id);
void op_remove_sandbox(struct worker *w, const char *id);
void op_remove_container(struct worker *w, const char *name, const char *id);
/* Begins to kill a container, or makes its end sooner. */
void op_kill(struct worker *w, const struct pod_kill *k);

/* ---- start.c ---- */
void op_start(struct worker *w, const struct pod_start *s, const char *sandbox_id);
/* Gives up what has not reached the runtime, since the pod ends. */
void op_start_abandon(struct op *op);

/* ---- status_writer.c ---- */
void status_write(struct worker *w);
bool status_is_written(const struct worker *w);
void status_delete_object(struct worker *w);

/* ---- probes.c ---- */
/* Begins and ends probes by what runs now. */
void probes_update(struct worker *w);
void probes_free(struct worker *w);
void probes_each(const struct worker *w, void (*fn)(void *ctx, const struct workers_probe *p),
                 void *ctx);

/* ---- message.c ---- */
/* Makes the file of a container's last message; the path is in 'a'.  NULL: it cannot. */
char *message_make(const struct worker *w, const char *name, uint32_t restarts, struct arena *a);
/* Reads the last message of an ended container into its reason or message. */
void message_read(const struct worker *w, struct observed_container *c);

/* ---- cgroups.c ---- */
/* Makes the pod's control group with its limits; the runtime makes those of its containers below. */
void cgroups_make(const struct worker *w);
/* Removes the pod's group in all hierarchies, which runtimes leave behind. */
void cgroups_remove(const struct worker *w);
/* Removes the groups of pods that are not here any more: an agent that was killed left them, or a
 * process was still ending in them. */
void cgroups_sweep(const struct workers *p);

/* ---- sweep.c ---- */
/* Removes the logs and the control groups of pods that are not here any more. All must be known. */
void workers_sweep(const struct workers *p);
