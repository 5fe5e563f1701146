/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/gc.h"

#include "api/crd/crd.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/discovery.h"
#include "controller/obj.h"
#include "controllers/lifecycle/gc_graph.h"
#include "workload/template_process.h"

LOG_MODULE("gc");

/* Delay after a change of a definition, because other definitions may change as well. */
#define REFRESH_MS 50
#define REFRESH_RETRY_MS 1000
#define UNKNOWN_MS 30000 /* Interval between checks of an owner whose kind is unknown. */

/* The watch over one kind. */
struct monitor {
    struct gc *gc;
    char *group, *version, *plural, *kind;
    bool namespaced, listed;
    bool served;         /* The last discovery found the kind. */
    uint32_t generation; /* Generation of the list being read. */
    struct informer *informer;
};

struct gc {
    struct api_client *client;
    struct informer_set *informers;
    struct recorder *recorder;
    struct gc_graph graph;
    struct smap monitors;    /* Keyed by "plural.group". */
    struct workqueue *queue; /* Keys are uids. */
    struct smap states;      /* The intermediate results of the work on each object, by uid. */
    bool started;
    struct loop_timer *refresh;
    struct discovery_call *asking;
    struct discovery *kinds; /* NULL: not read yet. */
};

static char *path_of(const struct monitor *m, const struct gc_details *d)
{
    CLEANUP_FREE char *version =
        *m->group ? xasprintf("%s/%s", m->group, m->version) : xstrdup(m->version);
    return api_path(version, m->plural, d->ns, d->name, NULL);
}

/* ---- work on one object ---- */

/* The intermediate results of the work on one object. */
struct state {
    struct json *object; /* Its current state. */
    /* The uids of absent and of waiting owners; they point into 'object'. */
    char **absent, **waiting;
    size_t n_absent, n_waiting, n_solid, at;
    struct smap orphans; /* Dependents that still have their reference: uid to nothing. */
};

static void state_free(void *p)
{
    struct state *s = p;
    json_free(s->object);
    free(s->absent);
    free(s->waiting);
    smap_done(&s->orphans);
    free(s);
}

static void done(struct gc *g, struct work *w)
{
    smap_remove(&g->states, work_key(w));
    work_done(w);
}

static void again(struct gc *g, struct work *w, int error, const char *what, const char *text)
{
    smap_remove(&g->states, work_key(w));
    work_retry(w, error, what, text);
}

static const struct json *ref_at(const struct state *s, size_t i)
{
    return json_at(json_path(s->object, "metadata", "ownerReferences", NULL), i);
}

/* The last step of a work; an object that is gone by now needs no further step. */
static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        again(ctx, w, error, "collect garbage", text);
    } else {
        done(ctx, w);
    }
}

static void patch_last(struct gc *g, struct work *w, const struct gc_node *n, struct json *patch)
{
    CLEANUP(json_free) struct json *own = patch;
    CLEANUP_FREE char *path = path_of(n->kind, n->more);
    work_request_as(w, "PATCH", path, API_ACCEPT_METADATA, "application/merge-patch+json", own,
                    written);
}

static void delete_last(struct gc *g, struct work *w, const struct gc_node *n,
                        const struct json *object, const char *policy)
{
    CLEANUP(json_free) struct json *options = gc_delete_options(object, policy);
    CLEANUP_FREE char *path = path_of(n->kind, n->more);
    log_info("object collected", "kind=%s namespace=%s name=%s",
             ((struct monitor *) n->kind)->plural, n->more->ns ? n->more->ns : "", n->more->name);
    work_request_as(w, "DELETE", path, API_ACCEPT_METADATA, NULL, options, written);
}

/* ---- dependents of an object ---- */

struct dependents {
    struct gc *gc;
    size_t n;
    bool circle; /* A dependent waits for its own dependents: a cycle of owners. */
    bool queue;
};

static void see_dependent(void *ctx, const struct gc_ref *ref)
{
    struct dependents *d = ctx;
    d->n++;
    d->circle |= ref->dependent->more->foreground;
    if (d->queue) {
        workqueue_add(d->gc->queue, ref->dependent->uid);
    }
}

static struct dependents see_dependents(struct gc *g, const char *uid, bool queue)
{
    struct dependents d = {.gc = g, .queue = queue};
    gc_graph_dependents(&g->graph, uid, see_dependent, &d);
    return d;
}

/* The object is removed when no dependent blocks it; the deletion of the last
 * dependent queues it again (queue_owners). */
static void wait_for_dependents(struct gc *g, struct work *w, const struct gc_node *n,
                                const struct state *s)
{
    if (gc_graph_is_blocked(&g->graph, n->uid, NULL)) {
        done(g, w);
    } else {
        patch_last(g, w, n, gc_patch_finalizer(s->object, GC_FOREGROUND));
    }
}

/* ---- orphaning ---- */

static void collect_orphan(void *ctx, const struct gc_ref *ref)
{
    struct state *s = ctx;
    smap_set(&s->orphans, ref->dependent->uid, NULL);
}

static void next_orphan(struct gc *g, struct work *w, struct state *s);

static void orphan_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct gc *g = ctx;
    if (error < 0 && error != -ENOENT) {
        again(g, w, error, "orphan a dependent", text);
    } else {
        next_orphan(g, w, smap_get(&g->states, work_key(w)));
    }
}

static void orphan_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct gc *g = ctx;
    struct state *s = smap_get(&g->states, work_key(w));
    const char *owner = work_key(w);
    struct gc_node *n = obj ? gc_graph_find(&g->graph, obj_uid(obj)) : NULL;
    if (error < 0 && error != -ENOENT) {
        again(g, w, error, "read a dependent", text);
        return;
    }
    if (!n || !n->more) {
        next_orphan(g, w, s);
        return;
    }
    CLEANUP(json_free) struct json *patch = gc_patch_owners(obj, &owner, 1);
    CLEANUP_FREE char *path = path_of(n->kind, n->more);
    work_request_as(w, "PATCH", path, API_ACCEPT_METADATA, "application/merge-patch+json", patch,
                    orphan_written);
}

/* Removes the reference of the next dependent; after the last one, the owner may be removed. */
static void next_orphan(struct gc *g, struct work *w, struct state *s)
{
    const struct gc_node *dependent = NULL, *n = gc_graph_find(&g->graph, work_key(w));
    struct smap_entry *se;
    if (!n || !n->more) {
        done(g, w);
        return;
    }
    SMAP_FOREACH (se, &s->orphans) {
        dependent = gc_graph_find(&g->graph, se->key);
        smap_remove(&s->orphans, se->key);
        if (dependent && dependent->more) {
            break;
        }
        dependent = NULL;
    }
    if (!dependent) {
        patch_last(g, w, n, gc_patch_finalizer(s->object, GC_ORPHAN));
        return;
    }
    CLEANUP_FREE char *path = path_of(dependent->kind, dependent->more);
    work_request_as(w, "GET", path, API_ACCEPT_METADATA, NULL, NULL, orphan_read);
}

/* ---- owners of an object ---- */

static void decide(struct gc *g, struct work *w, struct state *s)
{
    const struct gc_node *n = gc_graph_find(&g->graph, work_key(w));
    if (!n || !n->more) {
        done(g, w);
        return;
    }
    if (s->n_solid > 0) {
        const char **gone = xcalloc(s->n_absent + s->n_waiting + 1, sizeof(*gone));
        size_t count = 0;
        for (size_t i = 0; i < s->n_absent; i++) {
            gone[count++] = s->absent[i];
        }
        for (size_t i = 0; i < s->n_waiting; i++) {
            gone[count++] = s->waiting[i];
        }
        if (count > 0) {
            patch_last(g, w, n, gc_patch_owners(s->object, gone, count));
        } else {
            done(g, w);
        }
        free(gone);
        return;
    }
    struct dependents d = see_dependents(g, n->uid, false);
    if (s->n_waiting > 0 && d.n > 0) {
        /* In a cycle of owners, an object whose dependents wait for it must not block the deletion
         * of its own owners. */
        const struct json *refs = json_path(s->object, "metadata", "ownerReferences", NULL), *ref;
        bool blocks = false;
        JSON_FOREACH (ref, refs) {
            blocks |= json_get_bool(json_get(ref, "blockOwnerDeletion"), false);
        }
        if (d.circle && blocks) {
            workqueue_add(g->queue, work_key(w));
            patch_last(g, w, n, gc_patch_unblock(s->object));
        } else {
            delete_last(g, w, n, s->object, "Foreground");
        }
        return;
    }
    delete_last(g, w, n, s->object, NULL);
}

static void next_owner(struct gc *g, struct work *w, struct state *s);

static void owner_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct gc *g = ctx;
    struct state *s = smap_get(&g->states, work_key(w));
    if (error < 0 && error != -ENOENT) {
        again(g, w, error, "read an owner", text);
        return;
    }
    char *uid = (char *) json_path_string(ref_at(s, s->at), "uid", NULL);
    switch (gc_owner_state(obj, uid)) {
    case GC_OWNER_SOLID:
        s->n_solid++;
        break;
    case GC_OWNER_ABSENT:
        s->absent[s->n_absent++] = uid;
        break;
    case GC_OWNER_WAITING:
        s->waiting[s->n_waiting++] = uid;
        break;
    }
    s->at++;
    next_owner(g, w, s);
}

static void report_invalid(struct gc *g, const struct gc_node *n, const struct json *object,
                           const struct json *ref)
{
    const struct monitor *m = n->kind;
    CLEANUP_FREE char *version =
        *m->group ? xasprintf("%s/%s", m->group, m->version) : xstrdup(m->version);
    CLEANUP_FREE char *text = xasprintf(
        "ownerRef [%.100s/%.63s, name: %.253s, uid: %.36s] is namespaced, and this object is in no "
        "namespace: it is never collected",
        json_path_string(ref, "apiVersion", NULL), json_path_string(ref, "kind", NULL),
        json_path_string(ref, "name", NULL), json_path_string(ref, "uid", NULL));
    recorder_event(g->recorder, version, m->kind, object, EVENT_WARNING, "OwnerRefInvalidNamespace",
                   text);
}

/* Reads the owners one after the other, then decides on the object. */
static void next_owner(struct gc *g, struct work *w, struct state *s)
{
    static struct log_limit limit;
    const struct gc_node *n = gc_graph_find(&g->graph, work_key(w));
    const struct json *ref = ref_at(s, s->at);
    if (!ref || !n || !n->more) {
        decide(g, w, s);
        return;
    }
    const char *version = json_path_string(ref, "apiVersion", NULL);
    const char *kind = json_path_string(ref, "kind", NULL);
    const char *name = json_path_string(ref, "name", NULL);
    const struct api_kind *k =
        version && kind ? api_registry_by_name(discovery_registry(g->kinds), version, kind) : NULL;
    const char *group =
        !k && kind && streq_null(version, "v1") ? template_legacy_group(kind) : NULL;
    CLEANUP_FREE char *renamed = group ? xasprintf("%s/v1", group) : NULL;
    if (renamed) { /* OpenShift's kinds had no group once. */
        version = renamed;
        k = api_registry_by_name(discovery_registry(g->kinds), version, kind);
    }
    if (!k || !name || !json_path_string(ref, "uid", NULL)) {
        log_limited(&limit, LOG_WARN, "owner of an unknown kind: its dependents are kept",
                    "apiVersion=%s kind=%s", version ? version : "", kind ? kind : "");
        smap_remove(&g->states, work_key(w));
        work_wait(w, UNKNOWN_MS);
        return;
    }
    if (k->namespaced && !n->more->ns) {
        report_invalid(g, n, s->object, ref);
        done(g, w);
        return;
    }
    CLEANUP_FREE char *path =
        api_path(version, k->plural, k->namespaced ? n->more->ns : NULL, name, NULL);
    work_request_as(w, "GET", path, API_ACCEPT_METADATA, NULL, NULL, owner_read);
}

/* ---- beginning ---- */

static void object_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct gc *g = ctx;
    const struct gc_node *n = gc_graph_find(&g->graph, work_key(w));
    if (error < 0 && error != -ENOENT) {
        again(g, w, error, "read an object", text);
        return;
    }
    if (!obj || !n || !n->more || !streq(obj_uid(obj), n->uid)) {
        done(g, w); /* The object is gone; its watch reports that, too. */
        return;
    }
    struct state *s = NEW(struct state);
    size_t n_refs = json_count(json_path(obj, "metadata", "ownerReferences", NULL));
    s->object = json_clone(obj);
    s->absent = xcalloc(n_refs + 1, sizeof(*s->absent));
    s->waiting = xcalloc(n_refs + 1, sizeof(*s->waiting));
    smap_init(&s->orphans, NULL);
    smap_set(&g->states, work_key(w), s);
    if (!obj_is_terminating(obj)) {
        if (n_refs) {
            next_owner(g, w, s);
        } else {
            done(g, w);
        }
    } else if (gc_has_finalizer(obj, GC_ORPHAN)) {
        gc_graph_dependents(&g->graph, n->uid, collect_orphan, s);
        next_orphan(g, w, s);
    } else if (gc_has_finalizer(obj, GC_FOREGROUND)) {
        wait_for_dependents(g, w, n, s);
    } else {
        done(g, w);
    }
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct gc *g = ctx;
    const struct gc_node *n = gc_graph_find(&g->graph, key);
    if (!n || !n->more) {
        work_done(w);
        return;
    }
    CLEANUP_FREE char *path = path_of(n->kind, n->more);
    work_request_as(w, "GET", path, API_ACCEPT_METADATA, NULL, NULL, object_read);
}

/* ---- events of the watches ---- */

/* Queues the owners of 'n' that waited for 'n' only. */
static void queue_owners(struct gc *g, const struct gc_node *n)
{
    for (size_t i = 0; n->more && i < n->more->n_refs; i++) {
        const struct gc_node *owner = gc_graph_find(&g->graph, n->more->refs[i].uid);
        if (owner && owner->more && owner->more->foreground &&
            !gc_graph_is_blocked(&g->graph, owner->uid, n)) {
            workqueue_add(g->queue, owner->uid);
        }
    }
}

/* Whether the object 'owner' has the namespace and name that 'ref' names,
 * seen from the dependent's namespace. */
static bool is_where_said(const struct gc_node *owner, const struct gc_ref *ref)
{
    const struct monitor *m = owner->kind;
    const char *ns = m->namespaced ? ref->dependent->more->ns : NULL;
    return streq(m->kind, ref->kind) && owner->place == gc_place(ns, ref->name);
}

/* Whether an owner is absent or waits for its dependents. */
static bool misses_owner(const struct gc *g, const struct gc_node *n)
{
    for (size_t i = 0; n->more && i < n->more->n_refs; i++) {
        const struct gc_ref *ref = &n->more->refs[i];
        const struct gc_node *owner = gc_graph_find(&g->graph, ref->uid);
        if (!owner || (owner->more && owner->more->foreground) || !is_where_said(owner, ref)) {
            return true;
        }
    }
    return false;
}

static void look_at(struct gc *g, const struct gc_node *n)
{
    if (n->more && (n->more->foreground || n->more->orphan)) {
        workqueue_add(g->queue, n->uid);
    } else if (g->started && n->more && !n->more->deleting && misses_owner(g, n)) {
        workqueue_add(g->queue, n->uid);
    }
}

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct monitor *m = ctx;
    struct gc *g = m->gc;
    const struct gc_node *before = gc_graph_find(&g->graph, obj_uid(obj));
    bool was_waiting = before && before->more && before->more->foreground;
    if (before) {
        queue_owners(g, before); /* The object may have lost a reference. */
    }
    struct gc_node *n = gc_graph_set(&g->graph, m, obj);
    if (!n) {
        return;
    }
    n->generation = m->generation;
    look_at(g, n);
    if (n->more && n->more->foreground && !was_waiting) {
        (void) see_dependents(g, n->uid, true);
    }
}

static void remove_node(struct gc *g, struct gc_node *n)
{
    (void) see_dependents(g, n->uid, true);
    queue_owners(g, n);
    gc_graph_remove(&g->graph, n);
}

static void deleted(void *ctx, const char *key, const struct json *obj)
{
    struct monitor *m = ctx;
    struct gc_node *n = gc_graph_find(&m->gc->graph, obj_uid(obj));
    if (n) {
        remove_node(m->gc, n);
    }
}

static void listing(void *ctx)
{
    ((struct monitor *) ctx)->generation++;
}

/* Starts collecting when the lists of all kinds are complete. */
static void collect_if_listed(struct gc *g)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &g->monitors) {
        if (!((struct monitor *) se->value)->listed) {
            return;
        }
    }
    if (g->started) {
        return;
    }
    g->started = true;
    struct gc_node *n;
    HMAP_FOREACH (n, struct gc_node, node, &g->graph.nodes) {
        look_at(g, n);
    }
    log_info("synced", "objects=%zu kinds=%zu", g->graph.nodes.n, smap_size(&g->monitors));
    workqueue_start(g->queue);
}

/* Objects that the list did not contain are gone. */
static void listed(void *ctx)
{
    struct monitor *m = ctx;
    struct gc_node *n;
    HMAP_FOREACH (n, struct gc_node, node, &m->gc->graph.nodes) {
        if (n->kind == m && n->generation != m->generation) {
            remove_node(m->gc, n);
        }
    }
    m->listed = true;
    collect_if_listed(m->gc);
}

/* ---- kinds ---- */

static void monitor_free(void *p)
{
    struct monitor *m = p;
    informer_free(m->informer);
    free(m->group);
    free(m->version);
    free(m->plural);
    free(m->kind);
    free(m);
}

/* A Project is a view of the Namespace of the same name, and a Job of the group extensions one of
 * the Job of the group batch: they would be collected twice. */
static bool is_view(const struct api_kind *k)
{
    const struct api_kind *own = api_kind_find(k->group, k->version, k->plural);
    const struct api_kind *of = own && own->view ? own->view->of : NULL;
    return of && (!streq(of->group, k->group) || !streq(of->plural, k->plural));
}

static bool is_collected(const struct discovery *d, const struct api_kind *k)
{
    const unsigned needed = DISCOVERY_LIST | DISCOVERY_WATCH | DISCOVERY_DELETE;
    return (discovery_verbs(k) & needed) == needed && discovery_is_preferred(d, k) &&
           !streq(k->plural, "events") && !is_view(k);
}

static void watch_kind(struct gc *g, const char *key, const struct api_kind *k)
{
    static const struct informer_ops ops = {.changed = changed,
                                            .deleted = deleted,
                                            .listing = listing,
                                            .listed = listed,
                                            .transient = true,
                                            .metadata = true};
    struct monitor *m = NEW(struct monitor);
    CLEANUP_FREE char *version = api_kind_api_version(k);
    *m = (struct monitor){
        .gc = g,
        .group = xstrdup(k->group),
        .version = xstrdup(k->version),
        .plural = xstrdup(k->plural),
        .kind = xstrdup(k->kind),
        .namespaced = k->namespaced,
        .served = true,
    };
    smap_set(&g->monitors, key, m);
    m->informer = informer_set_add(g->informers, version, k->plural, NULL, &ops, m);
}

static void forget_kind(struct gc *g, struct monitor *m)
{
    struct gc_node *n;
    HMAP_FOREACH (n, struct gc_node, node, &g->graph.nodes) {
        if (n->kind == m) {
            remove_node(g, n);
        }
    }
}

static void discovered(void *ctx, int error, const char *text, struct discovery *d)
{
    struct gc *g = ctx;
    struct smap_entry *se;
    g->asking = NULL;
    if (error < 0) {
        log_warn("the kinds of the server cannot be read", "error=\"%s\"", text);
        loop_timer_arm(g->refresh, REFRESH_RETRY_MS);
        return;
    }
    SMAP_FOREACH (se, &g->monitors) {
        ((struct monitor *) se->value)->served = false;
    }
    discovery_free(g->kinds);
    g->kinds = d;
    const struct api_registry *r = discovery_registry(d);
    for (size_t i = 0; i < r->n; i++) {
        const struct api_kind *k = r->list[i];
        CLEANUP_FREE char *key = xasprintf("%s.%s", k->plural, k->group);
        struct monitor *m = smap_get(&g->monitors, key);
        if (!is_collected(d, k)) {
            continue;
        }
        if (m && (!streq(m->version, k->version) || m->namespaced != k->namespaced)) {
            forget_kind(g, m);
            smap_remove(&g->monitors, key);
            m = NULL;
        }
        if (m) {
            m->served = true;
        } else {
            watch_kind(g, key, k);
        }
    }
    SMAP_FOREACH (se, &g->monitors) {
        struct monitor *m = se->value;
        if (!m->served) {
            forget_kind(g, m);
            smap_remove(&g->monitors, se->key);
        }
    }
    collect_if_listed(g);
}

static void refresh(void *ctx)
{
    struct gc *g = ctx;
    if (g->asking) {
        loop_timer_arm(g->refresh, REFRESH_MS);
    } else {
        g->asking = discovery_fetch(g->client, discovered, g);
    }
}

static void definition_changed(void *ctx, const char *key, const struct json *old,
                               const struct json *obj)
{
    loop_timer_arm(((struct gc *) ctx)->refresh, REFRESH_MS);
}

/* The definition's name is the kind's. */
static void definition_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct gc *g = ctx;
    struct monitor *m = smap_get(&g->monitors, key);
    if (m) {
        forget_kind(g, m);
        smap_remove(&g->monitors, key);
    }
    loop_timer_arm(g->refresh, REFRESH_MS);
}

static void definitions_listed(void *ctx)
{
    loop_timer_arm(((struct gc *) ctx)->refresh, 0);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct gc *g = NEW(struct gc);
    g->client = env->client;
    g->informers = env->informers;
    g->recorder = env->recorder;
    g->queue = env->queue;
    gc_graph_init(&g->graph);
    smap_init(&g->monitors, monitor_free);
    smap_init(&g->states, state_free);
    g->refresh = loop_timer_new(env->loop, refresh, g);
    *ret = g;
    return 0;
}

static void stop(void *state)
{
    struct gc *g = state;
    discovery_cancel(g->asking);
    loop_timer_free(g->refresh);
    smap_done(&g->monitors);
    smap_done(&g->states);
    gc_graph_done(&g->graph);
    discovery_free(g->kinds);
    free(g);
}

static const struct controller_watch watches[] = {
    {.api_version = CRD_API_VERSION,
     .plural = CRD_PLURAL,
     .changed = definition_changed,
     .deleted = definition_deleted,
     .listed = definitions_listed,
     .transient = true,
     .metadata = true},
};

/* The queue waits for the lists of all kinds. */
const struct controller gc_controller = {
    .name = "gc",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .start = start,
    .starts_queue = true,
    .reconcile = begin,
    .stop = stop,
};
