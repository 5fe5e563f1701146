/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/runtime.h"

#include "base/mem.h"
#include "base/str.h"
#include "runtime/ops.h"

struct runtime {
    struct loop *loop;
    const struct runtime_ops *ops;
    void *b;
    const struct runtime_events *ev;
    void *ctx;
    struct list calls;
};

/* The table of back-ends, ended by NULL. */
static const struct runtime_ops *const kinds[] = {&runtime_cri, NULL};

static struct runtime *make(struct loop *l, const struct runtime_ops *ops,
                            const struct runtime_events *ev, void *ctx)
{
    struct runtime *r = NEW(struct runtime);
    r->loop = l;
    r->ops = ops;
    r->ev = ev;
    r->ctx = ctx;
    list_init(&r->calls);
    return r;
}

int runtime_open(struct loop *l, const char *kind, const char *endpoint,
                 const struct runtime_events *ev, void *ctx, struct runtime **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf known = STRBUF_INIT;
    for (const struct runtime_ops *const *k = kinds; *k; k++) {
        if (streq((*k)->kind, kind)) {
            struct runtime *r = make(l, *k, ev, ctx);
            int error = (*k)->open(l, endpoint, r, &r->b, e);
            if (error < 0) {
                free(r);
                return error;
            }
            *ret = r;
            return 0;
        }
        strbuf_addf(&known, "%s%s", known.size ? ", " : "", (*k)->kind);
    }
    return err_set(e, -EINVAL, "\"%s\" is not a kind of container runtime; there are: %s", kind,
                   strbuf_cstr(&known));
}

void runtime_open_with(struct loop *l, const struct runtime_ops *ops, void *b,
                       const struct runtime_events *ev, void *ctx, struct runtime **ret)
{
    struct runtime *r = make(l, ops, ev, ctx);
    r->b = b;
    *ret = r;
}

static void call_free(struct runtime_call *c)
{
    list_remove(&c->node);
    free(c);
}

struct runtime *runtime_free(struct runtime *r)
{
    if (!r) {
        return NULL;
    }
    if (r->ops->close) {
        r->ops->close(r->b);
    }
    struct runtime_call *c;
    LIST_FOREACH (c, struct runtime_call, node, &r->calls) {
        call_free(c);
    }
    free(r);
    return NULL;
}

struct runtime_call *runtime_cancel(struct runtime_call *c)
{
    if (c) {
        c->runtime->ops->cancel(c->runtime->b, c);
        call_free(c);
    }
    return NULL;
}

/* ---- what a back-end calls ---- */

/* Takes the call apart, as its callback may free the runtime. */
static struct runtime_call take(struct runtime_call *c, enum runtime_result result)
{
    assert(c->result == result);
    struct runtime_call taken = *c;
    call_free(c);
    return taken;
}

void runtime_end_done(struct runtime_call *c)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_NONE);
    t.fn.done(t.ctx, 0, NULL);
}

void runtime_end_id(struct runtime_call *c, const char *id)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_ID);
    t.fn.id(t.ctx, 0, NULL, id);
}

void runtime_end_version(struct runtime_call *c, const struct runtime_version *v)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_VERSION);
    t.fn.version(t.ctx, 0, NULL, v);
}

void runtime_end_status(struct runtime_call *c, const struct runtime_status *s)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_STATUS);
    t.fn.status(t.ctx, 0, NULL, s);
}

void runtime_end_sandboxes(struct runtime_call *c, const struct runtime_sandbox *s, size_t n)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_SANDBOXES);
    t.fn.sandboxes(t.ctx, 0, NULL, s, n);
}

void runtime_end_containers(struct runtime_call *c, const struct runtime_container *v, size_t n)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_CONTAINERS);
    t.fn.containers(t.ctx, 0, NULL, v, n);
}

void runtime_end_exec(struct runtime_call *c, const struct runtime_exec_result *r)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_EXEC);
    t.fn.exec(t.ctx, 0, NULL, r);
}

void runtime_end_images(struct runtime_call *c, const struct runtime_image *i, size_t n)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_IMAGES);
    t.fn.images(t.ctx, 0, NULL, i, n);
}

void runtime_end_usage(struct runtime_call *c, const struct runtime_filesystem *f, size_t n)
{
    struct runtime_call t = take(c, RUNTIME_RESULT_USAGE);
    t.fn.usage(t.ctx, 0, NULL, f, n);
}

void runtime_end_error(struct runtime_call *c, int error, const char *text)
{
    assert(error < 0);
    struct runtime_call t = take(c, c->result);
    switch (t.result) {
    case RUNTIME_RESULT_NONE:
        t.fn.done(t.ctx, error, text);
        break;
    case RUNTIME_RESULT_ID:
        t.fn.id(t.ctx, error, text, NULL);
        break;
    case RUNTIME_RESULT_VERSION:
        t.fn.version(t.ctx, error, text, NULL);
        break;
    case RUNTIME_RESULT_STATUS:
        t.fn.status(t.ctx, error, text, NULL);
        break;
    case RUNTIME_RESULT_SANDBOXES:
        t.fn.sandboxes(t.ctx, error, text, NULL, 0);
        break;
    case RUNTIME_RESULT_CONTAINERS:
        t.fn.containers(t.ctx, error, text, NULL, 0);
        break;
    case RUNTIME_RESULT_EXEC:
        t.fn.exec(t.ctx, error, text, NULL);
        break;
    case RUNTIME_RESULT_IMAGES:
        t.fn.images(t.ctx, error, text, NULL, 0);
        break;
    case RUNTIME_RESULT_USAGE:
        t.fn.usage(t.ctx, error, text, NULL, 0);
        break;
    }
}

void runtime_tell_changed(struct runtime *r, const char *sandbox_id, const char *container_id)
{
    r->ev->changed(r->ctx, sandbox_id, container_id);
}

void runtime_tell_resync(struct runtime *r)
{
    r->ev->resync(r->ctx);
}

void runtime_tell_connection(struct runtime *r, const char *lost_reason)
{
    r->ev->connection(r->ctx, lost_reason);
}

/* ---- what the runtime's owner calls ---- */

static struct runtime_call *begin(struct runtime *r, enum runtime_result result, void *ctx)
{
    struct runtime_call *c = NEW(struct runtime_call);
    c->runtime = r;
    c->result = result;
    c->ctx = ctx;
    list_push_back(&r->calls, &c->node);
    return c;
}

static struct runtime_call *begin_done(struct runtime *r, runtime_done_fn *done, void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_NONE, ctx);
    c->fn.done = done;
    return c;
}

static struct runtime_call *begin_id(struct runtime *r, runtime_id_fn *done, void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_ID, ctx);
    c->fn.id = done;
    return c;
}

static struct runtime_call *begin_sandboxes(struct runtime *r, runtime_sandboxes_fn *done,
                                            void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_SANDBOXES, ctx);
    c->fn.sandboxes = done;
    return c;
}

static struct runtime_call *begin_containers(struct runtime *r, runtime_containers_fn *done,
                                             void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_CONTAINERS, ctx);
    c->fn.containers = done;
    return c;
}

static struct runtime_call *begin_images(struct runtime *r, runtime_images_fn *done, void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_IMAGES, ctx);
    c->fn.images = done;
    return c;
}

struct runtime_call *runtime_version(struct runtime *r, runtime_version_fn *done, void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_VERSION, ctx);
    c->fn.version = done;
    r->ops->version(r->b, c);
    return c;
}

struct runtime_call *runtime_status(struct runtime *r, runtime_status_fn *done, void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_STATUS, ctx);
    c->fn.status = done;
    r->ops->status(r->b, c);
    return c;
}

struct runtime_call *runtime_run_sandbox(struct runtime *r, const struct runtime_sandbox_spec *s,
                                         const char *handler, runtime_id_fn *done, void *ctx)
{
    struct runtime_call *c = begin_id(r, done, ctx);
    r->ops->run_sandbox(r->b, c, s, handler);
    return c;
}

struct runtime_call *runtime_stop_sandbox(struct runtime *r, const char *id, runtime_done_fn *done,
                                          void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->stop_sandbox(r->b, c, id);
    return c;
}

struct runtime_call *runtime_remove_sandbox(struct runtime *r, const char *id,
                                            runtime_done_fn *done, void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->remove_sandbox(r->b, c, id);
    return c;
}

struct runtime_call *runtime_get_sandbox(struct runtime *r, const char *id,
                                         runtime_sandboxes_fn *done, void *ctx)
{
    struct runtime_call *c = begin_sandboxes(r, done, ctx);
    r->ops->get_sandbox(r->b, c, id);
    return c;
}

struct runtime_call *runtime_list_sandboxes(struct runtime *r, const char *pod_uid,
                                            runtime_sandboxes_fn *done, void *ctx)
{
    struct runtime_call *c = begin_sandboxes(r, done, ctx);
    r->ops->list_sandboxes(r->b, c, pod_uid);
    return c;
}

struct runtime_call *runtime_create_container(struct runtime *r, const char *sandbox_id,
                                              const struct runtime_container_spec *spec,
                                              const struct runtime_sandbox_spec *s,
                                              runtime_id_fn *done, void *ctx)
{
    struct runtime_call *c = begin_id(r, done, ctx);
    r->ops->create_container(r->b, c, sandbox_id, spec, s);
    return c;
}

struct runtime_call *runtime_start_container(struct runtime *r, const char *id,
                                             runtime_done_fn *done, void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->start_container(r->b, c, id);
    return c;
}

struct runtime_call *runtime_stop_container(struct runtime *r, const char *id, uint32_t grace_s,
                                            runtime_done_fn *done, void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->stop_container(r->b, c, id, grace_s);
    return c;
}

struct runtime_call *runtime_remove_container(struct runtime *r, const char *id,
                                              runtime_done_fn *done, void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->remove_container(r->b, c, id);
    return c;
}

struct runtime_call *runtime_get_container(struct runtime *r, const char *id,
                                           runtime_containers_fn *done, void *ctx)
{
    struct runtime_call *c = begin_containers(r, done, ctx);
    r->ops->get_container(r->b, c, id);
    return c;
}

struct runtime_call *runtime_list_containers(struct runtime *r, const char *pod_uid,
                                             runtime_containers_fn *done, void *ctx)
{
    struct runtime_call *c = begin_containers(r, done, ctx);
    r->ops->list_containers(r->b, c, pod_uid);
    return c;
}

struct runtime_call *runtime_update_resources(struct runtime *r, const char *id,
                                              const struct runtime_resources *res,
                                              runtime_done_fn *done, void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->update_resources(r->b, c, id, res);
    return c;
}

struct runtime_call *runtime_reopen_log(struct runtime *r, const char *id, runtime_done_fn *done,
                                        void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->reopen_log(r->b, c, id);
    return c;
}

struct runtime_call *runtime_exec_sync(struct runtime *r, const char *id, const char *const *cmd,
                                       size_t n_cmd, uint32_t timeout_s, runtime_exec_fn *done,
                                       void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_EXEC, ctx);
    c->fn.exec = done;
    r->ops->exec_sync(r->b, c, id, cmd, n_cmd, timeout_s);
    return c;
}

struct runtime_call *runtime_exec(struct runtime *r, const char *id,
                                  const struct runtime_streams *s, const char *const *cmd,
                                  size_t n_cmd, runtime_id_fn *done, void *ctx)
{
    struct runtime_call *c = begin_id(r, done, ctx);
    r->ops->exec(r->b, c, id, s, cmd, n_cmd);
    return c;
}

struct runtime_call *runtime_attach(struct runtime *r, const char *id,
                                    const struct runtime_streams *s, runtime_id_fn *done, void *ctx)
{
    struct runtime_call *c = begin_id(r, done, ctx);
    r->ops->attach(r->b, c, id, s);
    return c;
}

struct runtime_call *runtime_port_forward(struct runtime *r, const char *sandbox_id,
                                          const uint16_t *ports, size_t n_ports,
                                          runtime_id_fn *done, void *ctx)
{
    struct runtime_call *c = begin_id(r, done, ctx);
    r->ops->port_forward(r->b, c, sandbox_id, ports, n_ports);
    return c;
}

struct runtime_call *runtime_list_images(struct runtime *r, runtime_images_fn *done, void *ctx)
{
    struct runtime_call *c = begin_images(r, done, ctx);
    r->ops->list_images(r->b, c);
    return c;
}

struct runtime_call *runtime_get_image(struct runtime *r, const char *image,
                                       runtime_images_fn *done, void *ctx)
{
    struct runtime_call *c = begin_images(r, done, ctx);
    r->ops->get_image(r->b, c, image);
    return c;
}

struct runtime_call *runtime_pull_image(struct runtime *r, const char *image,
                                        const struct runtime_auth *auth,
                                        const struct runtime_sandbox_spec *s, runtime_id_fn *done,
                                        void *ctx)
{
    struct runtime_call *c = begin_id(r, done, ctx);
    r->ops->pull_image(r->b, c, image, auth, s);
    return c;
}

struct runtime_call *runtime_remove_image(struct runtime *r, const char *image,
                                          runtime_done_fn *done, void *ctx)
{
    struct runtime_call *c = begin_done(r, done, ctx);
    r->ops->remove_image(r->b, c, image);
    return c;
}

struct runtime_call *runtime_image_filesystems(struct runtime *r, runtime_usage_fn *done, void *ctx)
{
    struct runtime_call *c = begin(r, RUNTIME_RESULT_USAGE, ctx);
    c->fn.usage = done;
    r->ops->image_filesystems(r->b, c);
    return c;
}
