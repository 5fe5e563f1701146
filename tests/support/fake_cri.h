/* SPDX-License-Identifier: Apache-2.0 */
/* A container runtime without containers, on the loop of the test: it speaks CRI v1 on a unix socket
 * as containerd does, and keeps sandboxes, containers and images as records.  The test makes
 * containers end, calls fail or hang, events vanish, and the runtime itself go away and come back.
 *
 *     struct fake_cri *f = fake_cri_new(loop, "/tmp/x/cri.sock");
 *     fake_cri_add_image(f, "busybox:1");
 *     runtime_open(loop, "cri", fake_cri_endpoint(f), &events, ctx, &runtime, &e);
 *     fake_cri_fail(f, "CreateContainer", GRPC_UNKNOWN, "disk full", 1);
 *     …
 *     fake_cri_exit(f, fake_cri_container(f, "pod-uid", "c")->id, 3);
 *
 * Methods are named as in api.proto ("RunPodSandbox"); NULL means all.  Rules that the real one has
 * are kept: a sandbox's and a container's name with its attempt is reserved while it exists, a
 * container is made of an image that is there and in a sandbox that is ready, started once, and
 * removed with its sandbox.  Everything is on the loop's thread.  Mistakes of the test abort. */
#pragma once

#include "net/loop/loop.h"
#include "runtime/runtime_spec.h"
#include "wire/grpc.h"

struct fake_cri;

/* Events that the runtime serves. */
enum fake_cri_events {
    FAKE_CRI_EVENTS_CONTAINERD, /* As containerd 1.6; the default. */
    FAKE_CRI_EVENTS_CRI,
    FAKE_CRI_EVENTS_NONE,
};

/* What there is. Pointers are valid until the next call of the loop. */
struct fake_sandbox {
    const char *id;
    const struct runtime_sandbox_spec *spec;
    bool ready;
    const char *ip; /* NULL with the node's network. */
};
struct fake_container {
    const char *id, *sandbox_id;
    const struct runtime_container_spec *spec;
    const struct runtime_sandbox_spec *sandbox;
    enum runtime_state state;
    bool ending; /* Its process has ended, and the state does not show it yet. */
    int32_t exit_code;
    const char *reason;
    unsigned starts; /* 0 or 1. */
};

struct fake_cri *fake_cri_new(struct loop *l, const char *path);
struct fake_cri *fake_cri_free(struct fake_cri *f);
DEFINE_CLEANUP(struct fake_cri *, fake_cri_free)
const char *fake_cri_endpoint(const struct fake_cri *f); /* "unix:///tmp/x/cri.sock" */

/* ---- what it has ---- */

void fake_cri_add_image(struct fake_cri *f, const char *name);
/* The n-th in the order of creation; NULL: there are fewer. */
const struct fake_sandbox *fake_cri_sandbox_at(const struct fake_cri *f, size_t n);
const struct fake_container *fake_cri_container_at(const struct fake_cri *f, size_t n);
/* The newest container of the name in the pod; NULL: there is none. */
const struct fake_container *fake_cri_container(const struct fake_cri *f, const char *pod_uid,
                                                const char *name);
/* The newest sandbox of the pod; NULL: there is none. */
const struct fake_sandbox *fake_cri_sandbox(const struct fake_cri *f, const char *pod_uid);
/* Calls of the method that have begun, also those that failed. */
unsigned fake_cri_calls(const struct fake_cri *f, const char *method);

/* ---- what its containers do ---- */

/* The process of a container ends: by itself, or killed with KILL (137). Nothing, if it has ended. */
void fake_cri_exit(struct fake_cri *f, const char *container_id, int32_t code);
/* The same, with the reason OOMKilled and its event. */
void fake_cri_oom(struct fake_cri *f, const char *container_id);
/* The process of a container ends while the runtime is away, which does not find out: the status says
 * neither that it runs nor how it ended, until StopContainer makes it exited with 255. */
void fake_cri_forget_exit(struct fake_cri *f, const char *container_id);
/* The pause process of a sandbox ends: it is no longer ready, its containers go on. */
void fake_cri_kill_sandbox(struct fake_cri *f, const char *sandbox_id);
/* Containers end this long after a StopContainer, or never by themselves (UINT32_MAX: killed at the
 * end of the grace); 0 is the default. In milliseconds. */
void fake_cri_set_stop_ms(struct fake_cri *f, uint32_t ms);
struct fake_cri_ops {
    /* A container was started; it may call fake_cri_exit. Optional. */
    void (*started)(void *ctx, const struct fake_container *c);
    /* A command of ExecSync: the result, whose texts live until the next call. Optional: exit 0. */
    struct runtime_exec_result (*exec)(void *ctx, const struct fake_container *c,
                                       const struct runtime_texts *cmd);
};
void fake_cri_set_ops(struct fake_cri *f, const struct fake_cri_ops *ops, void *ctx);
/* Nanoseconds since 1970; the default is the real clock. */
void fake_cri_set_clock(struct fake_cri *f, int64_t (*now_ns)(void *ctx), void *ctx);

/* ---- faults ---- */

/* The next 'n' calls fail without being done. */
void fake_cri_fail(struct fake_cri *f, const char *method, enum grpc_status status,
                   const char *text, unsigned n);
/* The next 'n' calls are done, and fail nevertheless: their answer is lost. */
void fake_cri_fail_after(struct fake_cri *f, const char *method, enum grpc_status status,
                         const char *text, unsigned n);
/* No call fails any more, and no event vanishes. */
void fake_cri_forget_faults(struct fake_cri *f);
/* Calls that begin from now on hang, until fake_cri_go_on.  Those whose client gives up meanwhile
 * are done at fake_cri_go_on, as containerd goes on with them. */
void fake_cri_stall(struct fake_cri *f, const char *method);
void fake_cri_go_on(struct fake_cri *f);
/* Calls that hang now. */
unsigned fake_cri_hanging(const struct fake_cri *f);
/* Each call takes this long; 0 is the default. In milliseconds. */
void fake_cri_set_delay_ms(struct fake_cri *f, uint32_t ms);
/* The process of the runtime ends, and is started again: what it has stays.  An exit between the
 * two has no event. Not from within a callback of the fake. */
void fake_cri_stop(struct fake_cri *f);
void fake_cri_start(struct fake_cri *f);
void fake_cri_set_events(struct fake_cri *f, enum fake_cri_events events);
/* The next 'n' events vanish. */
void fake_cri_lose_events(struct fake_cri *f, unsigned n);
/* A status shows an exit only so long after containerd's first event of it, and half of that after
 * the second; 0 is the default. */
void fake_cri_set_exit_lag_ms(struct fake_cri *f, uint32_t ms);
/* The condition NetworkReady is false with this message; NULL: it is true. */
void fake_cri_set_network_message(struct fake_cri *f, const char *message);
