/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime has of one pod: its sandboxes and its containers, by two calls at once, then the
 * details of those that are new or have changed, one at a time. */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/pods/workers_priv.h"

LOG_MODULE("pods");

#define RETRY_MS 1000

static void read_details(struct worker *w);

void worker_read_cancel(struct worker *w)
{
    w->read = runtime_cancel(w->read);
    w->read_list = runtime_cancel(w->read_list);
    w->loading = false;
}

static void read_failed(struct worker *w, const char *text)
{
    worker_read_cancel(w);
    w->dirty = true;
    if (said_is_news(&w->trouble, text)) {
        log_warn("the runtime does not tell the state of a pod", "pod=%s/%s error=\"%s\"", w->ns,
                 w->name, text);
    }
    loop_timer_arm(w->timer, RETRY_MS);
}

static void remember(struct workers *p, const char *id, const char *uid)
{
    if (!smap_get(&p->ids, id)) {
        smap_set(&p->ids, id, xstrdup(uid));
    }
}

static void forget_gone(struct worker *w)
{
    for (size_t i = 0; i < w->o.n_containers; i++) {
        if (!pod_observed_find(&w->next, w->o.containers[i].id)) {
            smap_remove(&w->pods->ids, w->o.containers[i].id);
        }
    }
    for (size_t i = 0; i < w->o.n_sandboxes; i++) {
        const char *id = w->o.sandboxes[i].id;
        bool there = false;
        for (size_t k = 0; k < w->next.n_sandboxes; k++) {
            there = there || streq(w->next.sandboxes[k].id, id);
        }
        if (!there) {
            smap_remove(&w->pods->ids, id);
        }
    }
}

/* Takes the lists of 'next', while the agent's own facts stay. */
static void publish(struct worker *w)
{
    struct pod_observed *o = &w->o, *n = &w->next;
    forget_gone(w);
    struct pod_observed old = {.sandboxes = o->sandboxes,
                               .n_sandboxes = o->n_sandboxes,
                               .containers = o->containers,
                               .n_containers = o->n_containers};
    o->sandboxes = n->sandboxes;
    o->n_sandboxes = n->n_sandboxes;
    o->cap_sandboxes = n->cap_sandboxes;
    o->containers = n->containers;
    o->n_containers = n->n_containers;
    o->cap_containers = n->cap_containers;
    *n = (struct pod_observed){0};
    pod_observed_done(&old);
    for (size_t i = 0; i < o->n_sandboxes; i++) {
        remember(w->pods, o->sandboxes[i].id, w->uid);
    }
    for (size_t i = 0; i < o->n_containers; i++) {
        remember(w->pods, o->containers[i].id, w->uid);
    }
    said_is_news(&w->trouble, NULL);
    w->loading = false;
    w->read_once = true;
    worker_wake(w);
}

static void container_read(void *ctx, int error, const char *text,
                           const struct runtime_container *c, size_t n)
{
    struct worker *w = ctx;
    w->read = NULL;
    if (error == -ENOENT || (error == 0 && n == 0)) {
        w->dirty = true; /* It was removed meanwhile; the next list says so. */
        w->next_detail++;
    } else if (error < 0) {
        read_failed(w, text);
        return;
    } else {
        struct observed_container *o = &w->next.containers[w->next_detail++];
        pod_observed_set_details(o, c);
        if (o->state == RUNTIME_EXITED) {
            message_read(w, o);
        }
    }
    read_details(w);
}

/* Copies the details of a container that are known already.  False: it must be asked. */
static bool keep_details(const struct worker *w, struct observed_container *c)
{
    const struct observed_container *o = pod_observed_find(&w->o, c->id);
    if (!o || !o->detailed || o->state != c->state || c->state == RUNTIME_CREATED) {
        return c->state == RUNTIME_CREATED;
    }
    struct runtime_container d = {.state = o->state,
                                  .created_ns = o->created_ns,
                                  .started_ns = o->started_ns,
                                  .finished_ns = o->finished_ns,
                                  .exit_code = o->exit_code,
                                  .image = o->image,
                                  .image_ref = o->image_ref,
                                  .reason = o->reason,
                                  .message = o->message,
                                  .log_path = o->log_path};
    pod_observed_set_details(c, &d);
    return true;
}

static void read_details(struct worker *w)
{
    while (w->next_detail < w->next.n_containers) {
        struct observed_container *c = &w->next.containers[w->next_detail];
        if (!keep_details(w, c)) {
            w->read = runtime_get_container(w->pods->c.runtime, c->id, container_read, w);
            return;
        }
        w->next_detail++;
    }
    publish(w);
}

/* The details are read when both lists are there. */
static void lists_read(struct worker *w)
{
    if (!w->read && !w->read_list) {
        w->next_detail = 0;
        read_details(w);
    }
}

static void containers_read(void *ctx, int error, const char *text,
                            const struct runtime_container *c, size_t n)
{
    struct worker *w = ctx;
    w->read_list = NULL;
    if (error < 0) {
        read_failed(w, text);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        pod_observed_add_container(&w->next, &c[i]);
    }
    lists_read(w);
}

static void sandbox_read(void *ctx, int error, const char *text, const struct runtime_sandbox *s,
                         size_t n)
{
    struct worker *w = ctx;
    w->read = NULL;
    if (error < 0 && error != -ENOENT) {
        read_failed(w, text);
        return;
    }
    for (size_t i = 0; error == 0 && i < w->next.n_sandboxes && n > 0; i++) {
        struct observed_sandbox *o = &w->next.sandboxes[i];
        if (streq(o->id, s->id)) {
            o->ready = s->ready;
            free(o->ip);
            o->ip = s->ip && *s->ip ? xstrdup(s->ip) : NULL;
            o->network = s->network;
        }
    }
    w->dirty = w->dirty || error == -ENOENT;
    lists_read(w);
}

static void sandboxes_read(void *ctx, int error, const char *text, const struct runtime_sandbox *s,
                           size_t n)
{
    struct worker *w = ctx;
    w->read = NULL;
    if (error < 0) {
        read_failed(w, text);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        pod_observed_add_sandbox(&w->next, &s[i]);
    }
    const struct observed_sandbox *newest = pod_observed_sandbox(&w->next);
    const struct observed_sandbox *known = pod_observed_sandbox(&w->o);
    if (newest && newest->ready && known && known->ready && streq(known->id, newest->id)) {
        /* A sandbox keeps its address. */
        struct observed_sandbox *o = &w->next.sandboxes[newest - w->next.sandboxes];
        o->ip = o->ip ? o->ip : known->ip ? xstrdup(known->ip) : NULL;
        o->network = known->network;
    } else if (newest && newest->ready) {
        w->read = runtime_get_sandbox(w->pods->c.runtime, newest->id, sandbox_read, w);
        return;
    }
    lists_read(w);
}

void worker_read(struct worker *w)
{
    if (w->loading) {
        return;
    }
    w->loading = true;
    w->dirty = false;
    pod_observed_clear(&w->next);
    w->read = runtime_list_sandboxes(w->pods->c.runtime, w->uid, sandboxes_read, w);
    w->read_list = runtime_list_containers(w->pods->c.runtime, w->uid, containers_read, w);
}
