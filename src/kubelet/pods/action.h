/* SPDX-License-Identifier: Apache-2.0 */
/* An action of a hook or a probe: a command in a container, a request by HTTP, a connection by TCP, a
 * health check by gRPC, or a pause.
 *
 * All but commands run on the loop.  Connections are not reused.  HTTP is judged as in the kubelet
 * (pkg/probe/http): 200 to 399 is success, the server's certificate is not verified.  A redirect is
 * followed up to ten times, and to the same host alone: a pod must not send the node's requests
 * elsewhere.  Everything runs on the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "runtime/runtime.h"
#include "wire/json.h"

enum action_outcome {
    ACTION_SUCCESS,
    ACTION_WARNING, /* A success that the user may not have meant: a redirect to another host. */
    ACTION_FAILURE, /* The answer is no. */
    ACTION_ERROR,   /* It could not be asked. */
};

static inline bool action_succeeded(enum action_outcome o)
{
    return o == ACTION_SUCCESS || o == ACTION_WARNING;
}

struct action;
/* 'text': what was answered or failed. */
typedef void action_done_fn(void *ctx, enum action_outcome outcome, const char *text);

struct action_target {
    const struct json *container; /* For names of ports. */
    const char *container_id;
    const char *ip; /* NULL: the pod has no address. */
};

/* 'handler' has one of exec, httpGet, tcpSocket, grpc, sleep.  Ends by 'done' exactly once and later,
 * unless it is freed; 'timeout_ms' bounds it (ACTION_FAILURE).  All arguments are borrowed for the
 * call. */
struct action *action_begin(struct loop *l, struct runtime *r, const struct json *handler,
                            const struct action_target *target, uint64_t timeout_ms,
                            action_done_fn *done, void *ctx);
struct action *action_free(struct action *a); /* NULL is fine. */
