/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/sources/static_pods.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/timeutil.h"
#include "kubelet/sources/mirrors.h"
#include "kubelet/sources/url_source.h"
#include "pod/manifest.h"
#include "pod/pod.h"

LOG_MODULE("static");

/* A manifest: a file or the URL. */
struct origin {
    const char *kind; /* "file" or "http". */
    char *text;       /* As it was read last; NULL: it was not. */
    size_t size;
    struct json *pods; /* The valid ones that were read last; NULL: none yet. */
    struct said failure;
    bool there; /* It is in the list that is looked at. */
};

/* A pod that was given to the workers. */
struct running {
    struct json *pod;
    bool wanted, ending;
};

struct static_pods {
    struct static_pods_config c;
    const struct static_pods_ops *ops;
    void *ctx;
    struct file_source *file;
    struct url_source *url;
    bool file_read, url_read, told;
    struct smap origins; /* By path or URL. */
    struct smap pods;    /* 'struct running' by UID. */
    struct smap ended;   /* UIDs of pods whose end was reported. */
    struct mirrors *mirrors;
    struct loop_task task;
    struct said conflict;
};

static void origin_free(void *v)
{
    struct origin *o = v;
    free(o->text);
    json_free(o->pods);
    said_done(&o->failure);
    free(o);
}

static void running_free(void *v)
{
    struct running *r = v;
    json_free(r->pod);
    free(r);
}

/* ---- what is to run ---- */

static bool has_name(const struct json *list, const struct json *pod)
{
    const struct json *p;
    JSON_FOREACH (p, list) {
        if (streq(pod_name(p), pod_name(pod)) && streq(pod_namespace(p), pod_namespace(pod))) {
            return true;
        }
    }
    return false;
}

/* All pods that are wanted (owned).  Of those with one name the first one counts, so that a second
 * manifest does not end the pod of another. */
static struct json *wanted_pods(struct static_pods *s)
{
    struct json *list = json_array();
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(1024);
    struct smap_entry *e;
    const struct json *pod;
    SMAP_FOREACH (e, &s->origins) {
        const struct origin *o = e->value;
        JSON_FOREACH (pod, o->pods) {
            if (has_name(list, pod)) {
                strbuf_addf(&text, "%s%s: pod %s/%s is in another manifest, too",
                            text.size ? "; " : "", e->key, pod_namespace(pod), pod_name(pod));
            } else {
                json_append(list, json_clone(pod));
            }
        }
    }
    if (said_is_news(&s->conflict, text.size ? strbuf_cstr(&text) : NULL)) {
        log_error("a static pod is left out", "error=\"%s\"", strbuf_cstr(&text));
    }
    return list;
}

static void start(struct static_pods *s, const struct json *pod)
{
    struct running *r = NEW(struct running);
    r->pod = json_clone(pod);
    r->wanted = true;
    smap_set(&s->pods, pod_uid(pod), r);
    log_info("a static pod is run", "pod=%s/%s uid=%s source=%s", pod_namespace(pod), pod_name(pod),
             pod_uid(pod), json_path_string(pod, "metadata", "annotations", POD_NOTE_SOURCE, NULL));
    workers_set_static(s->c.workers, pod);
}

/* Gives each name's mirror to the pod that has it now: the oldest one that has not ended. */
static void assign_mirrors(struct static_pods *s)
{
    CLEANUP(json_free) struct json *seen = json_array();
    struct smap_entry *e;
    SMAP_FOREACH (e, &s->pods) {
        const struct running *r = e->value;
        if (!has_name(seen, r->pod)) {
            json_append(seen, json_clone(r->pod));
            mirrors_want(s->mirrors, r->pod);
        }
    }
}

static void tell_ready(struct static_pods *s)
{
    if (!s->told && static_pods_ready(s)) {
        s->told = true;
        mirrors_complete(s->mirrors);
        s->ops->ready(s->ctx);
    }
}

/* Brings the workers from what runs to what is wanted. */
static void update(void *ctx)
{
    struct static_pods *s = ctx;
    CLEANUP(json_free) struct json *wanted = wanted_pods(s);
    const struct json *pod;
    struct smap_entry *e;
    SMAP_FOREACH (e, &s->ended) {
        struct running *r = smap_take(&s->pods, e->key);
        if (r) {
            log_info("a static pod has ended", "pod=%s/%s uid=%s", pod_namespace(r->pod),
                     pod_name(r->pod), e->key);
            mirrors_unwant(s->mirrors, r->pod);
            running_free(r);
        }
    }
    smap_clear(&s->ended);
    SMAP_FOREACH (e, &s->pods) {
        ((struct running *) e->value)->wanted = false;
    }
    JSON_FOREACH (pod, wanted) {
        struct running *r = smap_get(&s->pods, pod_uid(pod));
        if (!r) {
            start(s, pod);
        } else {
            r->wanted = true; /* One that ends begins anew afterwards. */
        }
    }
    SMAP_FOREACH (e, &s->pods) {
        struct running *r = e->value;
        if (!r->wanted && !r->ending) {
            r->ending = true;
            workers_end_static(s->c.workers, e->key);
        }
    }
    assign_mirrors(s);
    tell_ready(s);
}

/* ---- manifests ---- */

static void report(struct static_pods *s, const char *path, struct origin *o, const char *text)
{
    if (!said_is_news(&o->failure, text)) {
        return;
    }
    CLEANUP_FREE char *message = xasprintf("manifest %s of static pods: %s", path, text);
    CLEANUP(json_free) struct json *node = json_object();
    struct json *metadata = json_ensure_object(node, "metadata");
    log_error("a manifest of static pods is not valid", "path=%s error=\"%s\"", path, text);
    json_set_string(metadata, "name", s->c.cfg->node_name);
    json_set_string(metadata, "uid", s->c.cfg->node_name);
    recorder_event(s->c.recorder, "v1", "Node", node, EVENT_WARNING, "InvalidManifest", message);
}

static void read_origin(struct static_pods *s, const struct manifest_text *m, const char *kind)
{
    struct origin *o = smap_get(&s->origins, m->path);
    struct err e = {0};
    if (!o) {
        o = NEW(struct origin);
        o->kind = kind;
        smap_set(&s->origins, m->path, o);
    }
    o->there = true;
    if (m->error) {
        free(TAKE(o->text)); /* What comes next is read, also if it is the same as before. */
        report(s, m->path, o, m->error);
        return;
    }
    if (o->text && o->size == m->size && memcmp(o->text, m->text, m->size) == 0) {
        return;
    }
    free(o->text);
    o->text = xmemdup(m->text, m->size);
    o->size = m->size;
    struct manifest_source source = {.node = s->c.cfg->node_name,
                                     .kind = kind,
                                     .path = m->path,
                                     .list = streq(kind, "http"),
                                     .now_ms = time_wall_ms()};
    struct json *pods = NULL;
    if (manifest_read(&source, m->text, m->size, &pods, &e) < 0) {
        report(s, m->path, o, e.text);
        return;
    }
    json_free(o->pods);
    o->pods = pods;
    said_is_news(&o->failure, NULL);
}

/* The manifests of one kind are these. */
static void read_all(struct static_pods *s, const struct manifest_text *v, size_t n,
                     const char *kind)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &s->origins) {
        ((struct origin *) e->value)->there = false;
    }
    for (size_t i = 0; i < n; i++) {
        read_origin(s, &v[i], kind);
    }
    SMAP_FOREACH (e, &s->origins) {
        const struct origin *o = e->value;
        if (!o->there && streq(o->kind, kind)) {
            smap_remove(&s->origins, e->key);
        }
    }
    loop_task_queue(&s->task);
}

static void files_read(void *ctx, const struct manifest_text *v, size_t n)
{
    struct static_pods *s = ctx;
    s->file_read = true;
    read_all(s, v, n, "file");
}

static void url_read(void *ctx, const struct manifest_text *v, size_t n)
{
    struct static_pods *s = ctx;
    s->url_read = true;
    read_all(s, v, n, "http");
}

/* ---- what others say ---- */

void static_pods_ended(struct static_pods *s, const char *uid)
{
    smap_set(&s->ended, uid, s);
    loop_task_queue(&s->task);
}

void static_pods_mirror(struct static_pods *s, const struct json *object)
{
    mirrors_seen(s->mirrors, object);
}

void static_pods_gone(struct static_pods *s, const struct json *object)
{
    mirrors_gone(s->mirrors, object);
}

void static_pods_mirrors_listed(struct static_pods *s)
{
    mirrors_listed(s->mirrors);
}

void static_pods_connected(struct static_pods *s)
{
    mirrors_retry(s->mirrors);
}

bool static_pods_ready(const struct static_pods *s)
{
    return s->file_read && s->url_read;
}

static void mirror_changed(void *ctx, const char *uid, const struct json *object)
{
    struct static_pods *s = ctx;
    workers_set_mirror(s->c.workers, uid, object);
}

/* ---- its life ---- */

struct static_pods *static_pods_new(const struct static_pods_config *c,
                                    const struct static_pods_ops *ops, void *ctx)
{
    static const struct mirrors_ops mirror_ops = {.changed = mirror_changed};
    struct static_pods *s = NEW(struct static_pods);
    const struct kubelet_config *cfg = c->cfg;
    uint64_t file_ms = 0, http_ms = 0;
    s->c = *c;
    s->ops = ops;
    s->ctx = ctx;
    smap_init(&s->origins, origin_free);
    smap_init(&s->pods, running_free);
    smap_init(&s->ended, NULL);
    loop_task_init(&s->task, c->loop, update, s);
    s->mirrors = mirrors_new(c->loop, c->client, cfg->node_name, &mirror_ops, s);
    /* The options were checked when they were read. */
    kubelet_config_duration(cfg->file_check, &file_ms, NULL);
    kubelet_config_duration(cfg->http_check, &http_ms, NULL);
    s->file_read = !cfg->manifest_path;
    s->url_read = !cfg->manifest_url;
    if (cfg->manifest_path) {
        s->file = file_source_new(c->loop, cfg->manifest_path, file_ms, files_read, s);
    }
    if (cfg->manifest_url) {
        s->url =
            url_source_new(c->loop, cfg->manifest_url, cfg->manifest_headers, http_ms, url_read, s);
    }
    loop_task_queue(&s->task);
    return s;
}

struct static_pods *static_pods_free(struct static_pods *s)
{
    if (s) {
        file_source_free(s->file);
        url_source_free(s->url);
        loop_task_cancel(&s->task);
        mirrors_free(s->mirrors);
        smap_done(&s->origins);
        smap_done(&s->pods);
        smap_done(&s->ended);
        said_done(&s->conflict);
        free(s);
    }
    return NULL;
}
