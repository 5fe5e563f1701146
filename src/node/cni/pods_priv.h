/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of node/cni/pods.h: a request under way, for the files that carry it out.  Everything runs
 * on the loop's thread, but for the work that a worker has. */
#pragma once

#include "node/cni/podlink.h"
#include "node/cni/pods.h"
#include "node/cni/reaper.h"
#include "sdn/ipam.h"

#include <sys/stat.h>

struct op;
typedef void op_step(struct op *op);

struct op {
    struct list node; /* In pods.requests, in order of arrival. */
    struct pods *pods;
    struct cni_request req;
    int netns_fd;
    pods_reply_fn *reply;
    void *reply_ctx;
    uint64_t started_ms, started_ns;

    bool running;  /* Else it waits for one before it with the same key. */
    op_step *step; /* The step that 'run' calls. */
    struct loop_task run;
    struct loop_timer *wait; /* Armed while an ADD waits for objects of the registry; else NULL. */

    struct dp_pod *pod; /* What is being made, removed or looked at. */
    struct podlink link;
    unsigned attempt; /* Which name the link has. */
    bool taken;       /* That, or the port, by a link that is not ours. */
    bool pair;        /* The link has to be a veth pair. */
    char *known;      /* Of link, when a stray one is looked for, ... */
    bool cleared;     /* ... which was done. */
    bool made_link;   /* There is a link to remove. */
    bool in_switch;   /* There is a port to remove. */
    bool holds_ip;    /* pod->ip is marked for this request. */
    unsigned parts;   /* Parallel parts that have not ended ... */
    op_step *joined;  /* ... and what comes when the last has. */
    op_step *undone;  /* What comes when undo_begin is through. */
    bool failed;
    struct cni_error error;     /* When failed. */
    struct cni_runtime runtime; /* What is wanted beyond the attachment ... */
    bool asked;                 /* ... was looked for. */
    bool reserved;              /* Its host ports are held for this request. */
    op_step *unlimited;         /* What comes when the port has no limits any more, ... */
    op_step *removed;           /* ... and when remove_pod is through. */

    /* Of the worker thread while it has the request. */
    int (*work)(const struct podlink *l, struct err *e);
    int work_result;
    struct err work_error;
    op_step *work_then;

    int switch_result; /* Of the datapath's last call. */
};

struct listening {
    struct list link;
    const struct pod_listener *listener;
    void *ctx;
};

struct pods {
    struct loop *loop;
    struct datapath *datapath;
    uint64_t vnid_wait_ms;
    const struct pods_ops *ops;
    void *ctx;
    struct sdn_network net; /* Without remotes. */
    bool userspace_switch;
    struct ipam *ipam;
    struct reaper *reaper;
    struct list requests;
    struct list listeners; /* struct listening */
    struct stat own_netns; /* The host's, ... */
    int own_netns_fd;      /* ... and open. */
    struct pods_stats stats;
};

/* The first failure is the one that is told. */
void op_fail(struct op *op, enum cni_code code, const char *msg, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* When the switch is away every failure is for that reason, and passes. */
bool op_fail_not_ready(struct op *op);
/* One of the parallel parts has ended. */
void op_part_ended(struct op *op);
/* Runs 'work' on a worker thread, then 'then' here.  One at a time. */
void op_work(struct op *op, int (*work)(const struct podlink *, struct err *), op_step *then);
/* From op->pod. */
void op_fill_link(struct op *op);
/* Writes down which links the pods of this node have, of requests under way too, for
 * podlink_delete_stray. */
void op_note_links(struct op *op);

/* ---- host ports and limits (pods_runtime.c) ---- */

/* Whether the pod's link has to be a pair, for all that the runtime says. */
bool runtime_wants_pair(const struct op *op);
/* Finds out what the pod wants: a part of its own when somebody has to be asked. */
void runtime_find(struct op *op);
/* Whether limits were found for a pod whose link cannot have them: the attachment is to be made
 * again, with a pair. */
bool runtime_needs_pair(struct op *op);
/* Puts it into effect for the attached pod, then goes on with 'then'; at once when there is
 * nothing to do. */
void runtime_apply(struct op *op, op_step *then);
/* What was reserved for the request is the pod's by now, or free again. */
void runtime_settle(struct op *op);
/* Takes the limits off the port while that is still the pod's alone, then goes on with 'then'; a
 * part that fails ends here, and the pod keeps its port until it is deleted once more. */
void runtime_unlimit(struct op *op, op_step *then);
/* The pod is out of the switch: takes its host ports away, then goes on with 'then'. */
void runtime_end(struct op *op, op_step *then);
/* Whether an attached pod has what this request says. */
bool runtime_is_same(const struct cni_runtime *r, const struct dp_pod *pod);
