/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of node/cni/pods.h: a request under way, for the files that carry it out.
 * Everything runs on the loop's thread, except the work that op_work gives to a worker thread. */
#pragma once

#include "node/cni/link_remover.h"
#include "node/cni/pod_link.h"
#include "node/cni/pods.h"
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

    bool running;  /* False: it waits for an earlier request with the same key. */
    op_step *step; /* The step that 'run' calls. */
    struct loop_task run;
    struct loop_timer *wait; /* Armed while an ADD waits for objects of the registry; else NULL. */

    struct dp_pod *pod; /* The pod that is attached, detached or checked. */
    struct pod_link link;
    unsigned attempt; /* Input of pod_link_name. */
    bool taken;       /* Another program's link has the link's name or is on the port. */
    bool pair;        /* The link has to be a veth pair. */
    char *known;      /* Text behind link.known while a stray link is searched; owned. */
    bool cleared;     /* A stray link was searched for and removed. */
    bool made_link;   /* There is a link to remove. */
    bool in_switch;   /* There is a port to remove. */
    bool holds_ip;    /* pod->ip is marked for this request. */
    unsigned parts;   /* Parallel parts that have not ended. */
    op_step *joined;  /* The step that runs when the last parallel part has ended. */
    op_step *undone;  /* The step that runs when undo_begin has finished. */
    bool failed;
    struct cni_error error;     /* When failed. */
    struct cni_runtime runtime; /* Host ports and limits that the pod asks for. */
    bool asked;                 /* 'runtime' was looked up. */
    bool reserved;              /* Its host ports are reserved for this request. */
    op_step *unlimited;         /* The step that runs when the port has no limits any more. */
    op_step *removed;           /* The step that runs when remove_pod has finished. */

    /* Used only by the worker thread while op_work runs. */
    int (*work)(const struct pod_link *l, struct err *e);
    int work_result;
    struct err work_error;
    op_step *work_then;

    int switch_result; /* Result of the datapath's last call. */
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
    struct link_remover *link_remover;
    struct list requests;
    struct list listeners; /* struct listening */
    struct stat own_netns; /* The host's network namespace. */
    int own_netns_fd;      /* Descriptor of the host's network namespace. */
    struct pods_stats stats;
};

/* Fails the request; of several failures the first one is reported. */
void op_fail(struct op *op, enum cni_code code, const char *msg, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Fails the request with a temporary error if the network cannot be changed now: that is then the
 * cause of any other failure. */
bool op_fail_not_ready(struct op *op);
/* One of the parallel parts has ended. */
void op_part_ended(struct op *op);
/* Runs 'work' on a worker thread, then 'then' here.  One at a time. */
void op_work(struct op *op, int (*work)(const struct pod_link *, struct err *), op_step *then);
/* Fills op->link from op->pod. */
void op_fill_link(struct op *op);
/* Lists the links of this node's pods and of requests under way, for pod_link_delete_stray. */
void op_note_links(struct op *op);

/* ---- host ports and limits (pods_runtime.c) ---- */

/* Whether the pod's link has to be a veth pair because of what the runtime passes. */
bool runtime_wants_pair(const struct op *op);
/* Finds the pod's host ports and limits; a parallel part of its own when the API server has to be
 * asked. */
void runtime_find(struct op *op);
/* Whether limits were found for a pod whose link cannot have them: the pod must then be attached
 * again with a veth pair. */
bool runtime_needs_pair(struct op *op);
/* Applies the host ports and limits of the attached pod, then runs 'then'; at once when there is
 * nothing to apply. */
void runtime_apply(struct op *op, op_step *then);
/* Ends the reservation of host ports: the pod has them now, or they are free again. */
void runtime_settle(struct op *op);
/* Removes the limits from the port while the port still belongs to the pod, then runs 'then'.  On
 * failure the part ends here, and the pod keeps its port until the next DEL. */
void runtime_unlimit(struct op *op, op_step *then);
/* Removes the host ports of a pod that the switch no longer has, then runs 'then'. */
void runtime_end(struct op *op, op_step *then);
/* Whether an attached pod has the host ports and limits of this request. */
bool runtime_is_same(const struct cni_runtime *r, const struct dp_pod *pod);
