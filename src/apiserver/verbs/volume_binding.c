/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/volume_binding.h"

#include "api/obj.h"
#include "api/schema.h"
#include "apiserver/cache/object.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/write.h"
#include "base/timeutil.h"
#include "storage/bind.h"

#define PART "binding"

static const struct api_kind *claim_kind(void)
{
    return api_kind_find("", "v1", "persistentvolumeclaims");
}

bool volume_binding_is_asked(const struct request *q)
{
    return q->verb == VERB_CREATE && q->kind == claim_kind() && streq(q->subresource, PART);
}

/* Success without an object, as a pod's Binding is answered. */
static void outcome_bound(struct outcome *outcome)
{
    outcome->type = OUTCOME_STATUS;
    outcome->code = 201;
    outcome->plain = true;
}

static void bind_stored(struct write *w, uint64_t revision, struct outcome *outcome)
{
    outcome_bound(outcome);
}

static void outcome_refused(const struct write *w, const char *why, struct outcome *outcome)
{
    const char *name = w->q->name;
    outcome_status(outcome, 409, "Conflict", name,
                   "Operation cannot be fulfilled on persistentvolumeclaims/binding \"%s\": %s",
                   name, why);
    outcome->kind = xstrdup("persistentvolumeclaims/binding");
}

/* Adds the volume's new state to the write.  Negative: the outcome is filled. */
static int add_volume(struct write *w, const struct cache_kind *volumes, const struct object *base,
                      const struct json *old, struct json *volume, struct outcome *outcome)
{
    struct api_manager m = fields_manager(w->q, false);
    struct blob *value = NULL;
    json_remove(json_get(volume, "metadata"), "resourceVersion");
    api_managed_update(volumes->kind, old, volume, &m);
    if (object_encode(volumes->kind, volume, &value) < 0) {
        outcome_error(outcome, 500, "InternalError",
                      "persistentvolumes \"%s\" is nested too deeply", base->key);
        return -E2BIG;
    }
    write_add_other(w, volumes, base, value);
    return 0;
}

static void attempt_bind(struct write *w, struct outcome *outcome)
{
    struct request *q = w->q;
    const struct cache_kind *volumes =
        cache_find(&q->server->cache, api_kind_find("", "v1", "persistentvolumes"));
    const struct json *target = json_get(w->body, "target");
    const char *uid = json_get_text(target, "uid");
    struct object *base = keyset_get(&w->ck->objects, w->key);
    struct object *volume_base = keyset_get(&volumes->objects, json_get_text(target, "name"));
    struct err e = {0};
    write_drop_others(w);
    if (!base) {
        outcome_not_found(outcome, q->kind, q->name);
        return;
    }
    CLEANUP(json_free) struct json *old = object_parse_as(base, q->kind);
    CLEANUP(json_free)
    struct json *volume_old = volume_base ? object_parse_as(volume_base, volumes->kind) : NULL;
    if (write_check_preconditions(q, w->body, old, outcome) < 0) {
        return;
    }
    if (!volume_old || (*uid && !streq(uid, obj_uid(volume_old)))) {
        outcome_refused(w, "the volume does not exist", outcome);
        return;
    }
    if (storage_may_bind(old, volume_old, &e) < 0) {
        outcome_refused(w, e.text, outcome);
        return;
    }
    CLEANUP(json_free) struct json *obj = json_clone(old);
    CLEANUP(json_free) struct json *volume = json_clone(volume_old);
    storage_bind(obj, volume, time_wall_ms());
    bool same;
    CLEANUP(blob_unref) struct blob *value = write_finish(w, obj, old, &same, outcome);
    if (!value || add_volume(w, volumes, volume_base, volume_old, volume, outcome) < 0) {
        return;
    }
    if (q->dry_run) {
        outcome_bound(outcome);
    } else {
        write_put(w, base, TAKE(value), outcome);
    }
}

/* Checks the body, a Binding; the request is one for its kind meanwhile. */
static int check_body(struct request *q, struct json *body, struct outcome *outcome)
{
    const struct api_kind *claims = q->kind;
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct err e = {0};
    int r = -EINVAL;
    q->kind = api_kind_find("", "v1", "bindings");
    struct object_target target = {.kind = q->kind, .namespace = q->namespace, .name = q->name};
    if (object_check_target(body, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
    } else if (fields_prune(q, body, false, outcome) == 0) {
        const struct json *kind = json_path(body, "target", "kind", NULL);
        if (!streq_null(json_get_string(kind), "PersistentVolume")) {
            api_invalid(&causes, "target.kind", kind, "must be PersistentVolume");
        }
        if (!*json_get_text(json_get(body, "target"), "name")) {
            api_required(&causes, "target.name", "name of the volume");
        }
        r = causes.n ? -EINVAL : 0;
        if (r < 0) {
            outcome_invalid(outcome, q->kind, q->name, &causes);
        }
    }
    q->kind = claims;
    return r;
}

void handle_volume_binding(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    if (write_begin(q, outcome) < 0 || write_read_body(q, &body, outcome) < 0 ||
        check_body(q, body, outcome) < 0) {
        return;
    }
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct write *w = write_new(q, q->ck, key, attempt_bind);
    w->body = TAKE(body);
    w->stored = bind_stored;
    outcome_take_over(outcome);
    write_try(w);
}
