/* SPDX-License-Identifier: Apache-2.0 */
/* The back-end "cri": what its files share.
 *
 * cri.c has the connection and the calls of runtime.h; events.c has the streams of events.  All is
 * on the loop's thread.  A function that calls the runtime's owner says so: 'struct cri' may be
 * freed when it returns, unless the caller is between cri_enter and cri_leave. */
#pragma once

#include "base/backoff.h"
#include "base/list.h"
#include "net/grpc/rpc.h"
#include "runtime/cri/messages.h"
#include "runtime/ops.h"

/* A node with 500 pods has about 2 MiB of lists; a struct is larger than its message. */
#define CRI_STORE_MAX ((size_t) 128 << 20)

struct cri {
    struct loop *loop;
    struct runtime *owner;
    char *path; /* Of the socket. */
    struct rpc *rpc;
    bool up;           /* The runtime has answered Version since the connection was made. */
    bool told_lost;    /* The owner knows that the runtime is away. */
    char *lost_reason; /* NULL: none so far. */
    struct backoff backoff;
    struct loop_timer *retry;
    struct rpc_call *hello; /* Version, until 'up'. */
    struct list calls;      /* Of struct cri_call: in 'rpc', or also ended here. */
    struct list failed;     /* Of struct cri_call: to end with -EAGAIN. */
    struct loop_task fail;
    unsigned depth; /* In callbacks: freeing must wait. */
    bool freed;
    struct cri_events *events;
};

static inline void cri_enter(struct cri *c)
{
    c->depth++;
}
/* The last use of 'c' in a callback. */
void cri_leave(struct cri *c);

/* Begins a unary call of 'method' with '*request', whose shape is the method's. */
struct rpc_call *cri_begin(struct cri *c, enum cri_method_id method, const void *request,
                           uint64_t timeout_ms, rpc_done_fn *fn, void *ctx);

/* The runtime has noted the end of this container, or events.c does not wait for that any more:
 * begins the calls that have waited. */
void cri_end_noted(struct cri *c, const char *id);

/* The errno of runtime.h for a failure. */
int cri_errno(enum grpc_status status);

/* ---- events.c ---- */

struct cri_events *cri_events_new(struct cri *c);
struct cri_events *cri_events_free(struct cri_events *ev);
/* The runtime is back: subscribes. */
void cri_events_start(struct cri_events *ev);
/* The connection is gone, with all calls. */
void cri_events_stop(struct cri_events *ev);
/* Whether the runtime has published the end of this container and not noted it yet. */
bool cri_events_has_end(const struct cri_events *ev, const char *id);
/* Gives the containers of an answer the ends that the runtime has published and not noted yet. */
void cri_events_correct(const struct cri_events *ev, const struct cri_containers *c);
