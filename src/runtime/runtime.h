/* SPDX-License-Identifier: Apache-2.0 */
/* A container runtime, as the kubelet uses it: sandboxes, containers, images, their events.
 *
 * A back-end is one 'struct runtime_ops', registered by name in the table of runtime.c; the first
 * is CRI v1 over a unix socket (cri.h).  Nothing else in the tree compares names of back-ends.  The
 * words are CRI's (k8s.io/cri-api, runtime/v1): a sandbox is a pod's network and other shared
 * namespaces, and labels and annotations of sandboxes and containers are the kubelet's only record.
 *
 * Calls are asynchronous and never block the loop.  Each ends by its callback, exactly once, on the
 * loop's thread and never from within the call, also when the connection to the runtime is lost
 * (-EAGAIN: the runtime may have done the work nevertheless; list before trying again).  Arguments
 * are borrowed for the call.  Results are borrowed for the callback, which may free the runtime.
 *
 * Calls have the kubelet's limits of time, 2 minutes, and the grace more for stopping; -ETIMEDOUT
 * says nothing of what the runtime goes on with.  Three have none: runtime_run_sandbox and
 * runtime_pull_image, which a runtime may need minutes or hours for, and runtime_exec_sync with
 * 'timeout_s' 0.  A caller that wants to say that one takes long has its own timer.
 *
 * Errors: -ENOENT: no such sandbox, container or image (as good as done, when removing);
 * -EAGAIN: the runtime is away or restarting; -ETIMEDOUT; -EOPNOTSUPP: the runtime does not know
 * the call; -EINVAL: it refuses an argument; -EIO: it failed.  The text is the runtime's. */
#pragma once

#include "base/err.h"
#include "net/loop/loop.h"
#include "runtime/runtime_spec.h"

struct runtime;

struct runtime_version {
    const char *name, *version; /* "containerd", "1.6.20~ds1" */
};

/* Conditions of the runtime; a text is NULL when the condition holds. */
struct runtime_status {
    const char *runtime_reason, *runtime_message;
    const char *network_reason, *network_message;
};

/* What the runtime has, and its changes. Not called after runtime_free, nor from within a call of
 * this header.
 *
 * Events are a hint and may be lost by the runtime itself: the owner lists everything slowly in
 * addition, every few minutes.  A runtime that has no events is told as a resync every second. */
struct runtime_events {
    /* A sandbox or container has changed, and its status shows it: 'sandbox_id' or 'container_id'.
     * Both have the same id where the runtime does not say which of the two it is. */
    void (*changed)(void *ctx, const char *sandbox_id, const char *container_id);
    /* Events may have been lost, or the runtime is back: list everything.  The first comes when the
     * runtime answers for the first time, the second a second later, when its events are sure. */
    void (*resync)(void *ctx);
    /* The runtime is away, with the reason (called once until it is back), or it is back (NULL),
     * which a resync follows. */
    void (*connection)(void *ctx, const char *lost_reason);
};

/* Opens the back-end 'kind' ("cri") at 'endpoint' ("unix:///run/containerd/containerd.sock"), and
 * connects, again and again, in the background. */
int runtime_open(struct loop *l, const char *kind, const char *endpoint,
                 const struct runtime_events *ev, void *ctx, struct runtime **ret, struct err *e);
/* Ends all calls without a callback. What runs goes on. */
struct runtime *runtime_free(struct runtime *r);
DEFINE_CLEANUP(struct runtime *, runtime_free)

struct runtime_call;
/* Gives up: no callback.  The sandbox of a runtime_run_sandbox is made nevertheless, and found by a
 * list; other calls may have been done. */
struct runtime_call *runtime_cancel(struct runtime_call *c);

typedef void runtime_done_fn(void *ctx, int error, const char *text);
typedef void runtime_id_fn(void *ctx, int error, const char *text, const char *id);
typedef void runtime_version_fn(void *ctx, int error, const char *text,
                                const struct runtime_version *v);
typedef void runtime_status_fn(void *ctx, int error, const char *text,
                               const struct runtime_status *s);
typedef void runtime_sandboxes_fn(void *ctx, int error, const char *text,
                                  const struct runtime_sandbox *s, size_t n);
typedef void runtime_containers_fn(void *ctx, int error, const char *text,
                                   const struct runtime_container *c, size_t n);
typedef void runtime_exec_fn(void *ctx, int error, const char *text,
                             const struct runtime_exec_result *r);
typedef void runtime_images_fn(void *ctx, int error, const char *text,
                               const struct runtime_image *i, size_t n);
typedef void runtime_usage_fn(void *ctx, int error, const char *text,
                              const struct runtime_filesystem *f, size_t n);

struct runtime_call *runtime_version(struct runtime *r, runtime_version_fn *done, void *ctx);
struct runtime_call *runtime_status(struct runtime *r, runtime_status_fn *done, void *ctx);

/* 'handler': of a RuntimeClass; "" is the default. */
struct runtime_call *runtime_run_sandbox(struct runtime *r, const struct runtime_sandbox_spec *s,
                                         const char *handler, runtime_id_fn *done, void *ctx);
struct runtime_call *runtime_stop_sandbox(struct runtime *r, const char *id, runtime_done_fn *done,
                                          void *ctx);
struct runtime_call *runtime_remove_sandbox(struct runtime *r, const char *id,
                                            runtime_done_fn *done, void *ctx);
/* One sandbox with its addresses. */
struct runtime_call *runtime_get_sandbox(struct runtime *r, const char *id,
                                         runtime_sandboxes_fn *done, void *ctx);
/* 'pod_uid' NULL: those of all pods.  Addresses are absent from a list. */
struct runtime_call *runtime_list_sandboxes(struct runtime *r, const char *pod_uid,
                                            runtime_sandboxes_fn *done, void *ctx);

struct runtime_call *runtime_create_container(struct runtime *r, const char *sandbox_id,
                                              const struct runtime_container_spec *c,
                                              const struct runtime_sandbox_spec *s,
                                              runtime_id_fn *done, void *ctx);
struct runtime_call *runtime_start_container(struct runtime *r, const char *id,
                                             runtime_done_fn *done, void *ctx);
/* The image's stop signal, and KILL after 'grace_s' seconds. */
struct runtime_call *runtime_stop_container(struct runtime *r, const char *id, uint32_t grace_s,
                                            runtime_done_fn *done, void *ctx);
struct runtime_call *runtime_remove_container(struct runtime *r, const char *id,
                                              runtime_done_fn *done, void *ctx);
/* One container with exit code, times, reason and message. */
struct runtime_call *runtime_get_container(struct runtime *r, const char *id,
                                           runtime_containers_fn *done, void *ctx);
/* 'pod_uid' NULL: those of all pods.  A list has id, sandbox, metadata, image, state, creation,
 * labels and annotations; the other members are zero. */
struct runtime_call *runtime_list_containers(struct runtime *r, const char *pod_uid,
                                             runtime_containers_fn *done, void *ctx);
struct runtime_call *runtime_update_resources(struct runtime *r, const char *id,
                                              const struct runtime_resources *res,
                                              runtime_done_fn *done, void *ctx);
struct runtime_call *runtime_reopen_log(struct runtime *r, const char *id, runtime_done_fn *done,
                                        void *ctx);

/* Runs a command to its end; 'timeout_s' 0: no limit. */
struct runtime_call *runtime_exec_sync(struct runtime *r, const char *id, const char *const *cmd,
                                       size_t n_cmd, uint32_t timeout_s, runtime_exec_fn *done,
                                       void *ctx);
/* These answer a URL that speaks SPDY/3.1 and WebSocket, once, for a minute. */
struct runtime_call *runtime_exec(struct runtime *r, const char *id,
                                  const struct runtime_streams *s, const char *const *cmd,
                                  size_t n_cmd, runtime_id_fn *done, void *ctx);
struct runtime_call *runtime_attach(struct runtime *r, const char *id,
                                    const struct runtime_streams *s, runtime_id_fn *done,
                                    void *ctx);
struct runtime_call *runtime_port_forward(struct runtime *r, const char *sandbox_id,
                                          const uint16_t *ports, size_t n_ports,
                                          runtime_id_fn *done, void *ctx);

struct runtime_call *runtime_list_images(struct runtime *r, runtime_images_fn *done, void *ctx);
/* -ENOENT: the image is absent. */
struct runtime_call *runtime_get_image(struct runtime *r, const char *image,
                                       runtime_images_fn *done, void *ctx);
/* The result is the reference to run it by. 'auth' NULL: none. */
struct runtime_call *runtime_pull_image(struct runtime *r, const char *image,
                                        const struct runtime_auth *auth,
                                        const struct runtime_sandbox_spec *s, runtime_id_fn *done,
                                        void *ctx);
struct runtime_call *runtime_remove_image(struct runtime *r, const char *image,
                                          runtime_done_fn *done, void *ctx);
struct runtime_call *runtime_image_filesystems(struct runtime *r, runtime_usage_fn *done,
                                               void *ctx);
