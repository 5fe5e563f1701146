/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/storage/binder.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/timeutil.h"
#include "sched/sched.h"
#include "storage/plan.h"

#define LOOK_AGAIN_MS 100 /* A write that the copies lack; its event adds the key before. */

/* What was written and is not in the copies yet. */
struct behind {
    uint64_t claims, volumes;
};

struct binder {
    struct controller_env env;
    struct informer *claims, *volumes, *classes, *nodes, *pods;
    /* Names of volumes without claimRef, by class; of those with one, by the key of the claim. */
    struct smap free, reserved;
    size_t n_free;
    struct smap waiting;   /* Keys of claims that are not bound. */
    struct smap recycling; /* Names of released volumes with the policy Recycle. */
    struct smap users;     /* Key of a claim to the number of pods that use it. */
    struct smap given;     /* Name of a volume to the key of the claim of a Binding. */
    struct smap bound;     /* Keys of claims whose Binding succeeded and is not seen yet. */
    struct smap behind;    /* Keys to 'struct behind'. */
    struct smap plans;     /* Keys in work to their 'struct storage_plan'. */
    struct smap said;      /* Keys to the last Event. */
};

static bool is_claim(const char *key)
{
    return strchr(key, '/') != NULL;
}

static void plan_free(void *p)
{
    storage_plan_done(p);
    free(p);
}

static void names_free(void *p)
{
    smap_done(p);
    free(p);
}

static void said_free(void *p)
{
    said_done(p);
    free(p);
}

/* ---- indexes ---- */

static void index_add(struct smap *index, const char *key, const char *name)
{
    struct smap *names = smap_get(index, key);
    if (!names) {
        names = NEW(struct smap);
        smap_init(names, NULL);
        smap_set(index, key, names);
    }
    smap_set(names, name, index);
}

static bool index_remove(struct smap *index, const char *key, const char *name)
{
    struct smap *names = smap_get(index, key);
    bool removed = names && smap_remove(names, name);
    if (names && !smap_size(names)) {
        (void) smap_remove(index, key);
    }
    return removed;
}

static void index_volume(struct binder *b, const struct json *volume, bool add)
{
    CLEANUP_FREE char *key = storage_volume_claim_key(volume);
    struct smap *index = key ? &b->reserved : &b->free;
    const char *by = key ? key : storage_volume_class(volume);
    if (add) {
        index_add(index, by, obj_name(volume));
        b->n_free += !key;
    } else if (index_remove(index, by, obj_name(volume))) {
        b->n_free -= !key;
    }
}

/* ---- events ---- */

/* The waiting claims that the volume suits; NULL: all that wait. */
static void add_waiting(struct binder *b, const struct json *volume)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &b->waiting) {
        if (!volume ||
            storage_check(informer_get(b->claims, e->key), volume, NULL) == STORAGE_FITS) {
            workqueue_add(b->env.queue, e->key);
        }
    }
}

/* Volumes that name the claim. */
static void add_volumes_of(struct binder *b, const char *claim_key)
{
    const struct smap *names = smap_get(&b->reserved, claim_key);
    struct smap_entry *e;
    if (names) {
        SMAP_FOREACH (e, names) {
            workqueue_add(b->env.queue, e->key);
        }
    }
}

static void claim_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *claim)
{
    struct binder *b = ctx;
    if (storage_claim_is_bound(claim)) {
        (void) smap_remove(&b->bound, key);
        (void) smap_remove(&b->waiting, key);
    } else {
        smap_set(&b->waiting, key, b);
    }
    workqueue_add(b->env.queue, key);
    if (!old || !streq(obj_uid(old), obj_uid(claim)) ||
        !streq(storage_claim_volume(old), storage_claim_volume(claim))) {
        add_volumes_of(b, key);
    }
}

static void claim_deleted(void *ctx, const char *key, const struct json *claim)
{
    struct binder *b = ctx;
    (void) smap_remove(&b->bound, key);
    (void) smap_remove(&b->waiting, key);
    (void) smap_remove(&b->said, key);
    add_volumes_of(b, key);
    workqueue_add(b->env.queue, key);
}

static void add_claim_of(struct binder *b, const struct json *volume)
{
    CLEANUP_FREE char *key = storage_volume_claim_key(volume);
    if (key) {
        workqueue_add(b->env.queue, key);
    }
}

/* Claims that ask for the volume by name. */
static void add_claims_named(struct binder *b, const char *volume)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &b->waiting) {
        if (streq(storage_claim_volume(informer_get(b->claims, e->key)), volume)) {
            workqueue_add(b->env.queue, e->key);
        }
    }
}

static bool is_recycling(const struct json *volume)
{
    return streq(json_get_text(json_get(volume, "status"), "phase"), "Released") &&
           streq(json_get_text(json_get(volume, "spec"), "persistentVolumeReclaimPolicy"),
                 "Recycle");
}

static void volume_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *volume)
{
    struct binder *b = ctx;
    if (old) {
        index_volume(b, old, false);
        add_claim_of(b, old);
    }
    index_volume(b, volume, true);
    if (is_recycling(volume)) {
        smap_set(&b->recycling, key, b);
    } else {
        (void) smap_remove(&b->recycling, key);
    }
    workqueue_add(b->env.queue, key);
    if (json_path(volume, "spec", "claimRef", NULL)) {
        (void) smap_remove(&b->given, key);
        add_claim_of(b, volume);
    } else {
        add_waiting(b, volume);
        add_claims_named(b, key);
    }
}

static void volume_deleted(void *ctx, const char *key, const struct json *volume)
{
    struct binder *b = ctx;
    index_volume(b, volume, false);
    (void) smap_remove(&b->given, key);
    (void) smap_remove(&b->recycling, key);
    (void) smap_remove(&b->said, key);
    add_claim_of(b, volume);
    add_claims_named(b, key);
    workqueue_add(b->env.queue, key);
}

static void class_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *class)
{
    add_waiting(ctx, NULL);
}

static void class_deleted(void *ctx, const char *key, const struct json *class)
{
    add_waiting(ctx, NULL);
}

static void add_recycling(struct binder *b)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &b->recycling) {
        workqueue_add(b->env.queue, e->key);
    }
}

static void node_changed(void *ctx, const char *key, const struct json *old,
                         const struct json *node)
{
    if (!old || condition_is_true(old, "Ready") != condition_is_true(node, "Ready")) {
        add_recycling(ctx);
    }
}

static void node_deleted(void *ctx, const char *key, const struct json *node)
{
    add_recycling(ctx);
}

/* ---- pods that use claims ---- */

static bool uses_claims(const struct json *pod)
{
    const char *phase = json_get_text(json_get(pod, "status"), "phase");
    return *json_get_text(json_get(pod, "spec"), "nodeName") && !streq(phase, "Succeeded") &&
           !streq(phase, "Failed");
}

static void count_pod(struct binder *b, const struct json *pod, bool add)
{
    const struct json *v;
    if (!uses_claims(pod)) {
        return;
    }
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        CLEANUP_FREE char *name = storage_pod_claim(pod, v);
        CLEANUP_FREE char *key = name ? xasprintf("%s/%s", obj_namespace(pod), name) : NULL;
        uintptr_t n = key ? (uintptr_t) smap_get(&b->users, key) : 0;
        if (key && add) {
            smap_set(&b->users, key, (void *) (n + 1));
        } else if (key && n > 1) {
            smap_set(&b->users, key, (void *) (n - 1));
        } else if (key && smap_remove(&b->users, key)) {
            workqueue_add(b->env.queue, key);
        }
    }
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    /* The new use counts before the old one ends, so that a change frees no claim. */
    count_pod(ctx, pod, true);
    count_pod(ctx, old, false);
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    count_pod(ctx, pod, false);
}

/* ---- the view of a plan ---- */

struct found {
    const struct json **items;
    size_t n, cap;
};

static void list_add(struct found *l, const struct json *o)
{
    if (o) {
        l->items = grow(l->items, &l->cap, l->n + 1, sizeof *l->items);
        l->items[l->n++] = o;
    }
}

static void list_volumes(const struct binder *b, const struct smap *names, const char *claim,
                         struct found *l)
{
    struct smap_entry *e;
    if (!names) {
        return;
    }
    SMAP_FOREACH (e, names) {
        const char *taker = smap_get(&b->given, e->key);
        if (!taker || streq(taker, claim)) {
            list_add(l, informer_get(b->volumes, e->key));
        }
    }
}

static void list_class(void *ctx, const char *key, const struct json *class)
{
    list_add(ctx, class);
}

static const struct json *find_volume(void *ctx, const char *name)
{
    const struct binder *b = ctx;
    return informer_get(b->volumes, name);
}

static bool node_works(const struct json *node)
{
    return sched_node_runs_pods(node) && condition_is_true(node, "Ready") &&
           !obj_is_terminating(node);
}

static bool is_working(void *ctx, const char *name)
{
    const struct binder *b = ctx;
    return node_works(informer_get(b->nodes, name));
}

static void take_first(void *ctx, const char *key, const struct json *node)
{
    const char **first = ctx;
    if (node_works(node) && (!*first || strcmp(obj_name(node), *first) < 0)) {
        *first = obj_name(node);
    }
}

static const char *first_node(void *ctx)
{
    const struct binder *b = ctx;
    const char *first = NULL;
    informer_each(b->nodes, take_first, &first);
    return first;
}

static struct storage_view view_of(struct binder *b)
{
    return (struct storage_view){.volume = find_volume,
                                 .node_works = is_working,
                                 .any_node = first_node,
                                 .ctx = b,
                                 .now_ms = time_wall_ms()};
}

static void plan_claim(struct binder *b, const char *key, const struct json *claim,
                       struct storage_plan *ret)
{
    struct found volumes = {0}, classes = {0};
    const char *class = storage_claim_class(claim);
    const struct smap *of_class = smap_get(&b->free, class ? class : "");
    struct storage_view v = view_of(b);
    if (!storage_claim_is_bound(claim)) {
        list_volumes(b, of_class, key, &volumes);
        list_volumes(b, smap_get(&b->reserved, key), key, &volumes);
        informer_each(b->classes, list_class, &classes);
    }
    v.volumes = volumes.items;
    v.n_volumes = volumes.n;
    v.n_other_class = b->n_free - (of_class ? smap_size(of_class) : 0);
    v.classes = classes.items;
    v.n_classes = classes.n;
    v.used = smap_get(&b->users, key) != NULL;
    storage_plan_claim(claim, &v, ret);
    free(volumes.items);
    free(classes.items);
}

static void plan_volume(struct binder *b, const struct json *volume, const struct json *live,
                        bool read, struct storage_plan *ret)
{
    CLEANUP_FREE char *key = storage_volume_claim_key(volume);
    const struct json *claim = read ? live : key ? informer_get(b->claims, key) : NULL;
    bool own = claim && storage_volume_refers_to(volume, claim, true);
    struct storage_owner owner = {.claim = own ? claim : NULL, .read = read};
    struct storage_view v = view_of(b);
    storage_plan_volume(volume, &owner, &v, ret);
}

/* ---- carrying out ---- */

static void record(struct binder *b, const char *key, const struct storage_plan *p)
{
    const char *kind = is_claim(key) ? "PersistentVolumeClaim" : "PersistentVolume";
    const struct json *o = informer_get(is_claim(key) ? b->claims : b->volumes, key);
    if (o && p->reason) {
        recorder_event(b->env.recorder, "v1", kind, o, p->warning ? EVENT_WARNING : EVENT_NORMAL,
                       p->reason, p->message);
    }
}

/* Records the Event of a state that lasts once. */
static void say(struct binder *b, const char *key, const struct storage_plan *p)
{
    struct said *s = smap_get(&b->said, key);
    CLEANUP_FREE char *text = p->reason ? xasprintf("%s: %s", p->reason, p->message) : NULL;
    if (!s && text) {
        s = NEW(struct said);
        smap_set(&b->said, key, s);
    }
    if (s && said_is_news(s, text) && text) {
        record(b, key, p);
    }
}

/* The copies must have what was answered before the next plan for the key. */
static void note(struct binder *b, const char *key, const struct json *obj, bool claim)
{
    const char *text = json_path_string(obj, "metadata", "resourceVersion", NULL);
    uint64_t version;
    if (!text || str_to_u64(text, UINT64_MAX, &version) < 0) {
        return;
    }
    struct behind *n = smap_get(&b->behind, key);
    if (!n) {
        n = NEW(struct behind);
        smap_set(&b->behind, key, n);
    }
    uint64_t *at = claim ? &n->claims : &n->volumes;
    *at = MAX(*at, version);
}

static bool is_current(struct binder *b, const char *key)
{
    const struct behind *n = smap_get(&b->behind, key);
    if (n &&
        (informer_version(b->claims) < n->claims || informer_version(b->volumes) < n->volumes)) {
        return false;
    }
    (void) smap_remove(&b->behind, key);
    return true;
}

static void end(struct binder *b, struct work *w)
{
    (void) smap_remove(&b->plans, work_key(w));
    work_done(w);
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct binder *b = ctx;
    CLEANUP_FREE char *key = xstrdup(work_key(w));
    const struct storage_plan *p = smap_get(&b->plans, key);
    bool claim = p->act == STORAGE_PUT_CLAIM || p->act == STORAGE_PUT_CLAIM_STATUS ||
                 p->act == STORAGE_RELEASE_CLAIM;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "write a volume or claim", text);
        return;
    }
    if (error == 0) {
        note(b, key, obj, claim);
        if (p->when_written) {
            record(b, key, p);
        }
    }
    end(b, w);
}

static void send_put(struct work *w, const struct storage_plan *p)
{
    bool claim = p->act == STORAGE_PUT_CLAIM || p->act == STORAGE_PUT_CLAIM_STATUS ||
                 p->act == STORAGE_RELEASE_CLAIM;
    bool status = p->act == STORAGE_PUT_CLAIM_STATUS || p->act == STORAGE_PUT_VOLUME_STATUS;
    CLEANUP_FREE char *path = api_path("v1", claim ? "persistentvolumeclaims" : "persistentvolumes",
                                       claim ? obj_namespace(p->body) : NULL, obj_name(p->body),
                                       status ? "status" : NULL);
    work_request(w, "PUT", path, p->body, written);
}

/* ---- a Binding ---- */

static void bound(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct binder *b = ctx;
    CLEANUP_FREE char *key = xstrdup(work_key(w));
    const struct storage_plan *p = smap_get(&b->plans, key);
    if (error < 0) {
        (void) smap_remove(&b->given, json_path_string(p->body, "target", "name", NULL));
    }
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "bind a claim", text);
        return;
    }
    if (error == 0 && !storage_claim_is_bound(informer_get(b->claims, key))) {
        smap_set(&b->bound, key, b);
    }
    end(b, w);
}

static void send_binding(struct binder *b, struct work *w, const struct storage_plan *p)
{
    const char *volume = json_path_string(p->body, "target", "name", NULL);
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumeclaims", obj_namespace(p->body),
                                       obj_name(p->body), "binding");
    if (!json_path(informer_get(b->volumes, volume), "spec", "claimRef", NULL)) {
        smap_set(&b->given, volume, xstrdup(work_key(w)));
    }
    work_request(w, "POST", path, p->body, bound);
}

/* ---- objects that are read first ---- */

static void carry_out(struct binder *b, struct work *w);

static void claim_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct binder *b = ctx;
    const struct json *volume = informer_get(b->volumes, work_key(w));
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the claim of a volume", text);
        return;
    }
    if (!volume) {
        end(b, w);
        return;
    }
    struct storage_plan *p = NEW(struct storage_plan);
    plan_volume(b, volume, error < 0 ? NULL : obj, true, p);
    smap_set(&b->plans, work_key(w), p);
    carry_out(b, w);
}

static void pods_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct binder *b = ctx;
    const struct storage_plan *p = smap_get(&b->plans, work_key(w));
    const struct json *pod, *v;
    bool used = false;
    if (error < 0) {
        work_retry(w, error, "read the pods that may use a claim", text);
        return;
    }
    JSON_FOREACH (pod, json_get(obj, "items")) {
        JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
            CLEANUP_FREE char *name = uses_claims(pod) ? storage_pod_claim(pod, v) : NULL;
            used = used || streq_null(name, obj_name(p->body));
        }
    }
    if (used) {
        end(b, w); /* The event of the pod comes, and later that of its end. */
    } else {
        send_put(w, p);
    }
}

static void carry_out(struct binder *b, struct work *w)
{
    const struct storage_plan *p = smap_get(&b->plans, work_key(w));
    if (!p->when_written) {
        say(b, work_key(w), p);
    }
    if (p->act == STORAGE_REST) {
        end(b, w);
    } else if (p->act == STORAGE_BIND) {
        send_binding(b, w, p);
    } else if (p->act == STORAGE_READ_CLAIM) {
        const struct json *volume = informer_get(b->volumes, work_key(w));
        const struct json *ref = json_path(volume, "spec", "claimRef", NULL);
        CLEANUP_FREE char *path =
            api_path("v1", "persistentvolumeclaims", json_get_text(ref, "namespace"),
                     json_get_text(ref, "name"), NULL);
        work_request(w, "GET", path, NULL, claim_read);
    } else if (p->act == STORAGE_RELEASE_CLAIM) {
        CLEANUP_FREE char *path = api_path("v1", "pods", obj_namespace(p->body), NULL, NULL);
        work_request(w, "GET", path, NULL, pods_read);
    } else {
        send_put(w, p);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct binder *b = ctx;
    const struct json *o = informer_get(is_claim(key) ? b->claims : b->volumes, key);
    if (!o || smap_get(&b->bound, key)) {
        work_done(w);
        return;
    }
    if (!is_current(b, key)) {
        work_wait(w, LOOK_AGAIN_MS);
        return;
    }
    struct storage_plan *p = NEW(struct storage_plan);
    if (is_claim(key)) {
        plan_claim(b, key, o, p);
    } else {
        plan_volume(b, o, NULL, false, p);
    }
    smap_set(&b->plans, key, p);
    carry_out(b, w);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct binder *b = NEW(struct binder);
    b->env = *env;
    smap_init(&b->free, names_free);
    smap_init(&b->reserved, names_free);
    smap_init(&b->waiting, NULL);
    smap_init(&b->recycling, NULL);
    smap_init(&b->users, NULL);
    smap_init(&b->given, free);
    smap_init(&b->bound, NULL);
    smap_init(&b->behind, free);
    smap_init(&b->plans, plan_free);
    smap_init(&b->said, said_free);
    *ret = b;
    return 0;
}

static void stop(void *state)
{
    struct binder *b = state;
    smap_done(&b->free);
    smap_done(&b->reserved);
    smap_done(&b->waiting);
    smap_done(&b->recycling);
    smap_done(&b->users);
    smap_done(&b->given);
    smap_done(&b->bound);
    smap_done(&b->behind);
    smap_done(&b->plans);
    smap_done(&b->said);
    free(b);
}

#define ROW(version, name, short, member)                                                   \
    {                                                                                       \
        .api_version = (version), .plural = (name),                                         \
        .informer = CONTROLLER_INFORMER(struct binder, member), .changed = short##_changed, \
        .deleted = short##_deleted                                                          \
    }

static const struct controller_watch watches[] = {
    ROW("v1", "persistentvolumeclaims", claim, claims),
    ROW("v1", "persistentvolumes", volume, volumes),
    ROW("storage.k8s.io/v1", "storageclasses", class, classes),
    ROW("v1", "nodes", node, nodes),
    ROW("v1", "pods", pod, pods),
};

const struct controller binder_controller = {
    .name = "binder",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 16,
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
