/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "api/condition.h"
#include "api/kind.h"
#include "api/obj.h"
#include "api/patch/patch.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "json_text.h"

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static void free_object(void *o)
{
    json_free(o);
}

void world_init(struct world *w)
{
    *w = (struct world){.now_ms = T0};
    smap_init(&w->objects, free_object);
}

void world_done(struct world *w)
{
    smap_done(&w->objects);
}

static char *key_of(const struct workload_kind *kind, const char *name)
{
    return xasprintf("%s/%s", kind->plural, name);
}

static void bump(struct world *w, struct json *obj)
{
    CLEANUP_FREE char *version = xasprintf("%llu", (unsigned long long) ++w->version);
    json_set_string(json_ensure_object(obj, "metadata"), "resourceVersion", version);
}

static void set_now(struct world *w, struct json *obj, const char *key)
{
    char now[TIME_TEXT_SIZE];
    time_format_s(w->now_ms, now);
    json_set_string(obj, key, now);
}

struct json *world_add(struct world *w, const struct workload_kind *kind, struct json *obj)
{
    struct json *meta = json_ensure_object(obj, "metadata");
    CLEANUP_FREE char *uid = xasprintf("uid-%llu", (unsigned long long) ++w->uids);
    if (!*obj_name(obj)) {
        CLEANUP_FREE char *name = xasprintf("%s%05llu", json_get_text(meta, "generateName"),
                                            (unsigned long long) w->uids);
        json_set_string(meta, "name", name);
    }
    CLEANUP_FREE char *key = key_of(kind, obj_name(obj));
    json_set_string(meta, "namespace", "ns");
    json_set_string(meta, "uid", uid);
    json_set_int(meta, "generation", 1);
    set_now(w, meta, "creationTimestamp");
    bump(w, obj);
    if (kind == &workload_pods) {
        json_set_string(json_ensure_object(obj, "status"), "phase", "Pending");
    }
    assert_null(smap_get(&w->objects, key));
    smap_set(&w->objects, key, obj);
    return obj;
}

struct json *world_get(const struct world *w, const struct workload_kind *kind, const char *name)
{
    CLEANUP_FREE char *key = key_of(kind, name);
    return smap_get(&w->objects, key);
}

void world_remove(struct world *w, const struct workload_kind *kind, const char *name)
{
    CLEANUP_FREE char *key = key_of(kind, name);
    (void) smap_remove(&w->objects, key);
}

void world_touch(struct world *w, struct json *obj)
{
    json_set_int(json_get(obj, "metadata"), "generation", obj_generation(obj) + 1);
    bump(w, obj);
}

static bool is_of(const struct smap_entry *e, const struct workload_kind *kind)
{
    size_t size = strlen(kind->plural);
    return strncmp(e->key, kind->plural, size) == 0 && e->key[size] == '/';
}

size_t world_children(const struct world *w, const struct workload_kind *kind,
                      const struct json *owner, struct workload_child **ret)
{
    struct smap_entry *e;
    size_t n = 0, cap = 0;
    *ret = NULL;
    SMAP_FOREACH (e, &w->objects) {
        const struct json *ref = obj_controller(e->value);
        if (is_of(e, kind) && (!ref || streq(json_get_text(ref, "uid"), obj_uid(owner)))) {
            *ret = grow(*ret, &cap, n + 1, sizeof **ret);
            (*ret)[n++] =
                (struct workload_child){.obj = e->value, .going = obj_is_terminating(e->value)};
        }
    }
    return n;
}

size_t world_count(const struct world *w, const struct workload_kind *kind,
                   bool (*counts)(const struct json *obj))
{
    struct smap_entry *e;
    size_t n = 0;
    SMAP_FOREACH (e, &w->objects) {
        n += is_of(e, kind) && (!counts || counts(e->value));
    }
    return n;
}

/* ---- plans ---- */

static const struct api_kind *api_kind_of(const struct workload_kind *kind)
{
    return api_kind_find(kind->group, "v1", kind->plural);
}

static void patch(struct world *w, const struct workload_write *wr)
{
    struct json *obj = world_get(w, wr->kind, wr->name);
    const char *uid = json_path_string(wr->body, "metadata", "uid", NULL);
    struct err e = {0};
    if (!obj || (uid && !streq(uid, obj_uid(obj)))) {
        return;
    }
    CLEANUP_FREE char *key = key_of(wr->kind, wr->name);
    struct json *o = smap_take(&w->objects, key);
    if (api_patch_strategic(api_kind_of(wr->kind), &o, wr->body, &e) < 0) {
        fail_msg("%s", e.text);
    }
    bump(w, o);
    smap_set(&w->objects, key, o);
    if (obj_is_terminating(o) && !json_count(json_path(o, "metadata", "finalizers", NULL)) &&
        json_get_bool(json_get(o, "gone"), false)) {
        world_remove(w, wr->kind, wr->name);
    }
}

static void update(struct world *w, const struct workload_write *wr)
{
    struct json *old = world_get(w, wr->kind, wr->name);
    assert_non_null(old);
    assert_string_equal(json_get_text(wr->body, "apiVersion"), wr->kind->api_version);
    assert_string_equal(json_get_text(wr->body, "kind"), wr->kind->kind);
    assert_string_equal(json_path_string(old, "metadata", "resourceVersion", NULL),
                        json_path_string(wr->body, "metadata", "resourceVersion", NULL));
    CLEANUP_FREE char *key = key_of(wr->kind, wr->name);
    struct json *o = json_clone(wr->body);
    bool same = json_equal(json_get(old, "spec"), json_get(o, "spec"));
    CLEANUP(json_free) struct json *status = json_clone(json_get(old, "status"));
    if (status) {
        json_set(o, "status", TAKE(status));
    }
    int64_t generation = obj_generation(old) + !same;
    smap_set(&w->objects, key, o);
    json_set_int(json_get(o, "metadata"), "generation", generation);
    bump(w, o);
}

static void remove_object(struct world *w, const struct workload_write *wr)
{
    struct json *obj = world_get(w, wr->kind, wr->name);
    if (!obj || !streq(obj_uid(obj), wr->uid)) {
        return;
    }
    if (wr->kind == &workload_pods) {
        w->deleted++;
        world_end_pod(w, obj);
    } else {
        world_remove(w, wr->kind, wr->name);
    }
}

/* What went wrong; NULL: nothing. */
static const char *carry_out(struct world *w, const struct workload_plan *plan, struct json *status,
                             const struct workload_write *wr)
{
    if (chance(w->failing)) {
        return "the network is down";
    }
    if (wr->verb == WORKLOAD_CREATE && wr->kind == &workload_pods && w->refusal) {
        return w->refusal;
    }
    if (wr->verb == WORKLOAD_CREATE && wr->name && world_get(w, wr->kind, wr->name)) {
        if (plan->met) {
            (void) plan->met(status, wr, world_get(w, wr->kind, wr->name));
        }
        return "it exists";
    }
    switch (wr->verb) {
    case WORKLOAD_CREATE:
        w->created += wr->kind == &workload_pods;
        (void) world_add(w, wr->kind, json_clone(wr->body));
        break;
    case WORKLOAD_PATCH:
        patch(w, wr);
        break;
    case WORKLOAD_UPDATE:
        assert_string_equal(json_get_text(wr->body, "apiVersion"), wr->kind->api_version);
        assert_string_equal(json_get_text(wr->body, "kind"), wr->kind->kind);
        update(w, wr);
        break;
    case WORKLOAD_DELETE:
        remove_object(w, wr);
        break;
    }
    return NULL;
}

static void write_status(struct world *w, const struct workload_kind *kind, const char *name,
                         struct json *planned)
{
    struct json *live = world_get(w, kind, name);
    const struct json *status = json_get(planned, "status");
    if (live && status && !json_equal(status, json_get(live, "status"))) {
        json_set(live, "status", json_clone(status));
        bump(w, live);
    }
}

void world_run(struct world *w, const struct workload_kind *kind, struct json *owner,
               struct workload_plan *plan)
{
    CLEANUP_FREE char *name = xstrdup(obj_name(owner));
    bool failed = false, wrote = false;
    for (size_t i = 0; i <= plan->n_writes; i++) {
        const struct workload_write *wr = i < plan->n_writes ? &plan->writes[i] : NULL;
        bool after = !wr || wr->stage == WORKLOAD_AFTER_STATUS;
        if ((after || failed) && !wrote) {
            wrote = true;
            if (!failed && plan->status && plan->outcome) {
                plan->outcome(plan->status, NULL, NULL, w->now_ms);
            }
            if (plan->status && !(failed && plan->only_success) && !chance(w->failing)) {
                write_status(w, kind, name, plan->status);
            }
        }
        if (!wr || failed) {
            continue;
        }
        const char *why = carry_out(w, plan, plan->status, wr);
        if (why) {
            failed = true;
            if (plan->outcome && plan->status) {
                plan->outcome(plan->status, wr, why, w->now_ms);
            }
        }
    }
    workload_plan_done(plan);
}

/* ---- kubelets ---- */

void world_end_pod(struct world *w, struct json *pod)
{
    if (!obj_is_terminating(pod)) {
        set_now(w, json_get(pod, "metadata"), "deletionTimestamp");
        bump(w, pod);
    }
}

void world_set_ready(struct world *w, struct json *pod, bool ready)
{
    if (condition_set(pod, "Ready", ready ? "True" : "False", NULL, NULL, w->now_ms)) {
        bump(w, pod);
    }
}

void world_set_phase(struct world *w, struct json *pod, const char *phase)
{
    json_set_string(json_ensure_object(pod, "status"), "phase", phase);
    if (!streq(phase, "Running")) {
        world_set_ready(w, pod, false);
    }
    bump(w, pod);
}

static const char *image_of(const struct json *pod)
{
    return json_get_text(json_at(json_path(pod, "spec", "containers", NULL), 0), "image");
}

static void advance(struct world *w, struct json *pod, const char *broken)
{
    struct json *spec = json_ensure_object(pod, "spec");
    if (!*workload_pod_node(pod)) {
        static const char *const nodes[] = {"n1", "n2", "n3"};
        json_set_string(spec, "nodeName", PICK(nodes));
        bump(w, pod);
    } else if (workload_pod_has_phase(pod, "Pending")) {
        world_set_phase(w, pod, "Running");
    } else if (workload_pod_has_phase(pod, "Running")) {
        world_set_ready(w, pod, !broken || !streq(image_of(pod), broken));
    }
}

/* The pod's containers have ended: it is removed, if nothing holds it. */
static void finish(struct world *w, struct json *pod)
{
    if (json_count(json_path(pod, "metadata", "finalizers", NULL))) {
        if (workload_pod_has_phase(pod, "Pending") || workload_pod_has_phase(pod, "Running")) {
            world_set_phase(w, pod, "Failed");
        }
        json_set_bool(pod, "gone", true);
    } else {
        world_remove(w, &workload_pods, obj_name(pod));
    }
}

static void act(struct world *w, unsigned share, const char *broken)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w->objects) {
        struct json *pod = e->value;
        if (!is_of(e, &workload_pods) || !chance(share)) {
            continue;
        }
        if (obj_is_terminating(pod)) {
            finish(w, pod);
        } else {
            advance(w, pod, broken);
        }
    }
}

void world_kubelets(struct world *w, const char *broken)
{
    w->now_ms += 1000 * (int64_t) below(4);
    act(w, 40, broken);
}

void world_settle_pods(struct world *w, const char *broken)
{
    for (int i = 0; i < 3; i++) {
        w->now_ms += 1000;
        act(w, 100, broken);
    }
}

void world_check_controllers(const struct world *w)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w->objects) {
        const struct json *ref;
        size_t n = 0;
        JSON_FOREACH (ref, json_path(e->value, "metadata", "ownerReferences", NULL)) {
            n += json_get_bool(json_get(ref, "controller"), false);
        }
        assert_true(n <= 1);
    }
}
