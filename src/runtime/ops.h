/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a back-end of a container runtime implements, and those by which it answers.
 *
 * A back-end is one 'struct runtime_ops' in the table of runtime.c, or one that a test passes to
 * runtime_open_with.  All members must be set unless their comment says "Optional".  They are
 * called on the loop's thread, do not block, and borrow their arguments for the call.
 *
 * runtime.c owns each 'struct runtime_call' from the start of the call to its end.  The back-end
 * ends it once, later and never from within the member that began it, with the runtime_end_*
 * function of the call's result or with runtime_end_error; both free the call.  After 'cancel' the
 * back-end must not use the call.  The callbacks of an end may free the runtime. */
#pragma once

#include "base/list.h"
#include "runtime/runtime.h"

/* What the callback of a call takes. */
enum runtime_result {
    RUNTIME_RESULT_NONE,
    RUNTIME_RESULT_ID,
    RUNTIME_RESULT_VERSION,
    RUNTIME_RESULT_STATUS,
    RUNTIME_RESULT_SANDBOXES,
    RUNTIME_RESULT_CONTAINERS,
    RUNTIME_RESULT_EXEC,
    RUNTIME_RESULT_IMAGES,
    RUNTIME_RESULT_USAGE,
};

struct runtime_call {
    struct runtime *runtime;
    struct list node; /* In runtime.c's list of calls. */
    void *data;       /* For the back-end. */
    union {           /* By 'result'. */
        runtime_done_fn *done;
        runtime_id_fn *id;
        runtime_version_fn *version;
        runtime_status_fn *status;
        runtime_sandboxes_fn *sandboxes;
        runtime_containers_fn *containers;
        runtime_exec_fn *exec;
        runtime_images_fn *images;
        runtime_usage_fn *usage;
    } fn;
    enum runtime_result result;
    void *ctx; /* Of the callback. */
};

/* Ends of a call that succeeded.  The result is borrowed. */
void runtime_end_done(struct runtime_call *c);
void runtime_end_id(struct runtime_call *c, const char *id);
void runtime_end_version(struct runtime_call *c, const struct runtime_version *v);
void runtime_end_status(struct runtime_call *c, const struct runtime_status *s);
void runtime_end_sandboxes(struct runtime_call *c, const struct runtime_sandbox *s, size_t n);
void runtime_end_containers(struct runtime_call *c, const struct runtime_container *v, size_t n);
void runtime_end_exec(struct runtime_call *c, const struct runtime_exec_result *r);
void runtime_end_images(struct runtime_call *c, const struct runtime_image *i, size_t n);
void runtime_end_usage(struct runtime_call *c, const struct runtime_filesystem *f, size_t n);
/* The end of any call that failed, with one of the errors of runtime.h. */
void runtime_end_error(struct runtime_call *c, int error, const char *text);

/* Events of the back-end for the runtime's owner; not from within 'open'. */
void runtime_tell_changed(struct runtime *r, const char *sandbox_id, const char *container_id);
void runtime_tell_resync(struct runtime *r);
void runtime_tell_connection(struct runtime *r, const char *lost_reason);

/* 'b' is what 'open' returned, or the argument of runtime_open_with. */
struct runtime_ops {
    const char *kind; /* The back-end's name: "cri". */
    /* Optional with runtime_open_with. */
    int (*open)(struct loop *l, const char *endpoint, struct runtime *r, void **ret_b,
                struct err *e);
    /* Frees the back-end; calls that have not ended stay without an end. Optional with
     * runtime_open_with. */
    void (*close)(void *b);
    void (*cancel)(void *b, struct runtime_call *c);

    void (*version)(void *b, struct runtime_call *c);
    void (*status)(void *b, struct runtime_call *c);

    void (*run_sandbox)(void *b, struct runtime_call *c, const struct runtime_sandbox_spec *s,
                        const char *handler);
    void (*stop_sandbox)(void *b, struct runtime_call *c, const char *id);
    void (*remove_sandbox)(void *b, struct runtime_call *c, const char *id);
    void (*get_sandbox)(void *b, struct runtime_call *c, const char *id);
    void (*list_sandboxes)(void *b, struct runtime_call *c, const char *pod_uid);

    void (*create_container)(void *b, struct runtime_call *c, const char *sandbox_id,
                             const struct runtime_container_spec *spec,
                             const struct runtime_sandbox_spec *s);
    void (*start_container)(void *b, struct runtime_call *c, const char *id);
    void (*stop_container)(void *b, struct runtime_call *c, const char *id, uint32_t grace_s);
    void (*remove_container)(void *b, struct runtime_call *c, const char *id);
    void (*get_container)(void *b, struct runtime_call *c, const char *id);
    void (*list_containers)(void *b, struct runtime_call *c, const char *pod_uid);
    void (*update_resources)(void *b, struct runtime_call *c, const char *id,
                             const struct runtime_resources *res);
    void (*reopen_log)(void *b, struct runtime_call *c, const char *id);

    void (*exec_sync)(void *b, struct runtime_call *c, const char *id, const char *const *cmd,
                      size_t n_cmd, uint32_t timeout_s);
    void (*exec)(void *b, struct runtime_call *c, const char *id, const struct runtime_streams *s,
                 const char *const *cmd, size_t n_cmd);
    void (*attach)(void *b, struct runtime_call *c, const char *id,
                   const struct runtime_streams *s);
    void (*port_forward)(void *b, struct runtime_call *c, const char *sandbox_id,
                         const uint16_t *ports, size_t n_ports);

    void (*list_images)(void *b, struct runtime_call *c);
    void (*get_image)(void *b, struct runtime_call *c, const char *image);
    void (*pull_image)(void *b, struct runtime_call *c, const char *image,
                       const struct runtime_auth *auth, const struct runtime_sandbox_spec *s);
    void (*remove_image)(void *b, struct runtime_call *c, const char *image);
    void (*image_filesystems)(void *b, struct runtime_call *c);
};

/* CRI v1 at the address of a unix socket; cri/cri_priv.h. */
extern const struct runtime_ops runtime_cri;

/* Makes a runtime of the given functions, without 'open'; for doubles in tests. */
void runtime_open_with(struct loop *l, const struct runtime_ops *ops, void *b,
                       const struct runtime_events *ev, void *ctx, struct runtime **ret);
