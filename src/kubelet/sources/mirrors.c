/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/sources/mirrors.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/said.h"
#include "pod/manifest.h"
#include "pod/pod.h"

LOG_MODULE("static");

#define RETRY_MIN_MS 500
#define RETRY_MAX_MS 60000

/* What there is of one name. */
struct mirror {
    struct mirrors *all;
    char *ns, *name;
    struct json *pod;           /* The static pod; NULL: none is wanted. */
    struct json *object;        /* NULL: the API has none. */
    char *deleted_uid;          /* Of the object that was deleted last; NULL: none. */
    struct json *labels, *spec; /* Of the object when it was first seen. */
    struct api_call *call;
    struct loop_timer *timer;
    struct backoff backoff;
    struct said failure;
};

struct mirrors {
    struct loop *loop;
    struct api_client *client;
    char *node, *node_path;
    const struct mirrors_ops *ops;
    void *ctx;
    bool listed, complete;
    struct smap names; /* "NAMESPACE/NAME" to 'struct mirror'. */
};

static void mirror_free(void *v)
{
    struct mirror *m = v;
    if (m->call) {
        api_call_cancel(m->call);
    }
    loop_timer_free(m->timer);
    json_free(m->pod);
    json_free(m->object);
    json_free(m->labels);
    json_free(m->spec);
    free(m->deleted_uid);
    said_done(&m->failure);
    free(m->ns);
    free(m->name);
    free(m);
}

static void reconcile(void *ctx);

static struct mirror *find(struct mirrors *all, const struct json *pod, bool make)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", pod_namespace(pod), pod_name(pod));
    struct mirror *m = smap_get(&all->names, key);
    if (!m && make) {
        m = NEW(struct mirror);
        m->all = all;
        m->ns = xstrdup(pod_namespace(pod));
        m->name = xstrdup(pod_name(pod));
        m->timer = loop_timer_new(all->loop, reconcile, m);
        m->backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
        smap_set(&all->names, key, m);
    }
    return m;
}

/* Looks at it again, unless a request is under way or a failure's delay goes on. */
static void wake(struct mirror *m)
{
    if (!m->call && backoff_is_due(&m->backoff, loop_now_ms(m->all->loop))) {
        loop_timer_arm(m->timer, 0);
    }
}

static void succeeded(struct mirror *m)
{
    backoff_reset(&m->backoff);
    said_is_news(&m->failure, NULL);
}

static void failed(struct mirror *m, const char *what, const char *text)
{
    uint64_t now = loop_now_ms(m->all->loop);
    if (said_is_news(&m->failure, text)) {
        log_warn(what, "pod=%s/%s error=\"%s\"", m->ns, m->name, text);
    }
    loop_timer_arm(m->timer, backoff_fail(&m->backoff, now, hash_string(m->name)));
}

/* ---- the object ---- */

static void forget_object(struct mirror *m)
{
    const char *of = manifest_mirror_of(m->object);
    if (of) {
        m->all->ops->changed(m->all->ctx, of, NULL);
    }
    m->object = json_free(m->object);
    m->labels = json_free(m->labels);
    m->spec = json_free(m->spec);
}

static struct json *copy_of(const struct json *v)
{
    return v ? json_clone(v) : json_object();
}

static void set_object(struct mirror *m, const struct json *object)
{
    if (!m->object || !streq(pod_uid(m->object), pod_uid(object))) {
        forget_object(m);
        m->labels = copy_of(json_path(object, "metadata", "labels", NULL));
        m->spec = copy_of(json_get(object, "spec"));
    }
    json_free(m->object);
    m->object = json_clone(object);
    if (m->pod && streq_null(manifest_mirror_of(object), pod_uid(m->pod))) {
        m->all->ops->changed(m->all->ctx, pod_uid(m->pod), object);
    }
}

/* Somebody has changed it since it was made: it would show what does not run. */
static bool is_edited(const struct mirror *m)
{
    CLEANUP(json_free)
    struct json *labels = copy_of(json_path(m->object, "metadata", "labels", NULL));
    return !json_equal(labels, m->labels) || !json_equal(json_get(m->object, "spec"), m->spec);
}

/* ---- requests ---- */

static void deleted(void *ctx, int error, const char *text, struct json *obj)
{
    struct mirror *m = ctx;
    m->call = NULL;
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        failed(m, "a mirror pod was not deleted", text);
        return;
    }
    succeeded(m);
    if (m->object && streq_null(m->deleted_uid, pod_uid(m->object))) {
        forget_object(m); /* The informer may still report its last changes. */
    }
    wake(m);
}

static void delete (struct mirror *m, const char *why)
{
    CLEANUP(json_free) struct json *options = json_object();
    CLEANUP_FREE char *path = api_path("v1", "pods", m->ns, m->name, NULL);
    json_set_string(options, "kind", "DeleteOptions");
    json_set_string(options, "apiVersion", "v1");
    json_set_int(options, "gracePeriodSeconds", 0);
    json_set_string(json_ensure_object(options, "preconditions"), "uid", pod_uid(m->object));
    free(m->deleted_uid);
    m->deleted_uid = xstrdup(pod_uid(m->object));
    log_info("a mirror pod is deleted", "pod=%s/%s reason=\"%s\"", m->ns, m->name, why);
    m->call = api_request(m->all->client, "DELETE", path, NULL, options, deleted, m);
}

static void created(void *ctx, int error, const char *text, struct json *obj)
{
    struct mirror *m = ctx;
    m->call = NULL;
    if (error < 0) {
        failed(m, "a mirror pod was not created", text);
        return;
    }
    succeeded(m);
    log_info("a mirror pod was created", "pod=%s/%s", m->ns, m->name);
    set_object(m, obj);
    wake(m);
}

/* The Node is read each time, since the API takes its present UID only. */
static void node_read(void *ctx, int error, const char *text, struct json *obj)
{
    struct mirror *m = ctx;
    m->call = NULL;
    if (error < 0) {
        failed(m, "a mirror pod was not created: its Node cannot be read", text);
        return;
    }
    if (!m->pod || m->object) {
        wake(m);
        return;
    }
    CLEANUP(json_free)
    struct json *object = manifest_mirror(m->pod, m->all->node, pod_uid(obj));
    CLEANUP_FREE char *path = api_path("v1", "pods", m->ns, NULL, NULL);
    m->call = api_request(m->all->client, "POST", path, NULL, object, created, m);
}

static void reconcile(void *ctx)
{
    struct mirror *m = ctx;
    struct mirrors *all = m->all;
    if (m->call) {
        return;
    }
    if (m->object && !m->pod) {
        if (all->complete) {
            delete (m, "there is no such static pod");
        }
    } else if (m->object && !streq_null(manifest_mirror_of(m->object), pod_uid(m->pod))) {
        delete (m, "it shows another content");
    } else if (m->object && pod_is_deleted(m->object)) {
        delete (m, "its deletion was asked for; it is made anew");
    } else if (m->object && is_edited(m)) {
        delete (m, "it was edited; it is made anew");
    } else if (m->pod && !m->object && all->listed) {
        m->call = api_request(all->client, "GET", all->node_path, NULL, NULL, node_read, m);
    } else if (!m->pod && !m->object) {
        CLEANUP_FREE char *key = xasprintf("%s/%s", m->ns, m->name);
        smap_remove(&all->names, key); /* Frees it. */
    }
}

/* ---- what the caller says ---- */

void mirrors_want(struct mirrors *all, const struct json *pod)
{
    struct mirror *m = find(all, pod, true);
    if (m->pod && streq(pod_uid(m->pod), pod_uid(pod))) {
        return;
    }
    json_free(m->pod);
    m->pod = json_clone(pod);
    if (m->object && streq_null(manifest_mirror_of(m->object), pod_uid(pod))) {
        all->ops->changed(all->ctx, pod_uid(pod), m->object);
    }
    backoff_reset(&m->backoff);
    wake(m);
}

void mirrors_unwant(struct mirrors *all, const struct json *pod)
{
    struct mirror *m = find(all, pod, false);
    if (m && m->pod && streq(pod_uid(m->pod), pod_uid(pod))) {
        m->pod = json_free(m->pod);
        backoff_reset(&m->backoff);
        wake(m);
    }
}

void mirrors_seen(struct mirrors *all, const struct json *object)
{
    struct mirror *m = find(all, object, true);
    if (m->call || !streq_null(m->deleted_uid, pod_uid(object))) {
        set_object(m, object);
    }
    wake(m);
}

void mirrors_gone(struct mirrors *all, const struct json *object)
{
    struct mirror *m = find(all, object, false);
    if (m && m->object && streq(pod_uid(m->object), pod_uid(object))) {
        forget_object(m);
    }
    if (m) {
        backoff_reset(&m->backoff); /* The name may be free now. */
        wake(m);
    }
}

static void wake_all(struct mirrors *all)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &all->names) {
        wake(e->value);
    }
}

void mirrors_listed(struct mirrors *all)
{
    all->listed = true;
    wake_all(all);
}

void mirrors_complete(struct mirrors *all)
{
    all->complete = true;
    wake_all(all);
}

void mirrors_retry(struct mirrors *all)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &all->names) {
        struct mirror *m = e->value;
        backoff_reset(&m->backoff);
        wake(m);
    }
}

struct mirrors *mirrors_new(struct loop *l, struct api_client *c, const char *node,
                            const struct mirrors_ops *ops, void *ctx)
{
    struct mirrors *all = NEW(struct mirrors);
    all->loop = l;
    all->client = c;
    all->node = xstrdup(node);
    all->node_path = api_path("v1", "nodes", NULL, node, NULL);
    all->ops = ops;
    all->ctx = ctx;
    smap_init(&all->names, mirror_free);
    return all;
}

struct mirrors *mirrors_free(struct mirrors *all)
{
    if (all) {
        smap_done(&all->names);
        free(all->node);
        free(all->node_path);
        free(all);
    }
    return NULL;
}
