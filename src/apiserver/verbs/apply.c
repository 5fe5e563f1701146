/* SPDX-License-Identifier: Apache-2.0 */
/* Server-side apply: a patch with the fields that its manager wants an object to have;
 * the object is created if it does not exist. */
#include "apiserver/verbs/apply.h"

#include "apiserver/request/filter.h"
#include "apiserver/request/scale.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/write.h"
#include "base/timeutil.h"

/* The result of applying the body to 'old' (NULL: the object does not
 * exist); NULL: the outcome is filled. */
static struct json *applied(struct write *w, const struct json *old, struct outcome *outcome)
{
    struct request *q = w->q;
    struct err e = {0};
    CLEANUP(api_causes_done) struct api_causes conflicts = {0};
    CLEANUP_FREE char *text = NULL;
    struct json *obj = NULL;
    struct api_manager m = fields_manager(q, true);
    int r =
        api_apply(q->kind, old, w->body, &m, request_flag(q, "force"), &obj, &conflicts, &text, &e);
    if (r == -EEXIST) {
        outcome_status(outcome, 409, "Conflict", NULL, "%s", text);
        outcome->plain = true;
        outcome_take_causes(outcome, &conflicts);
    } else if (r == -E2BIG) {
        outcome_error(outcome, 403, "Forbidden", "%s", e.text);
    } else if (r < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
    }
    if (obj) {
        object_conform(q->kind, obj);
    }
    return obj;
}

/* The bytes of the new object; NULL: the outcome is filled. */
static struct blob *compute_new(struct write *w, struct outcome *outcome)
{
    struct request *q = w->q;
    if (*q->subresource) {
        outcome_not_found(outcome, q->kind, q->name);
        return NULL;
    }
    if (filter_may_create(q, outcome) < 0) {
        return NULL;
    }
    if (q->ck->crd && crd_is_terminating(q->ck->crd)) {
        outcome_error(outcome, 405, "MethodNotAllowed",
                      "create not allowed while custom resource definition is terminating");
        return NULL;
    }
    if (json_string_size(json_path(w->body, "metadata", "uid", NULL)) ||
        json_string_size(json_path(w->body, "metadata", "resourceVersion", NULL))) {
        outcome_conflict(outcome, q->kind, q->name,
                         "a uid or resourceVersion was given, and no existing object was found");
        return NULL;
    }
    CLEANUP(json_free) struct json *obj = applied(w, NULL, outcome);
    if (!obj) {
        return NULL;
    }
    object_prepare_create(q->kind, obj, time_wall_ms());
    return write_awaits(w, obj, outcome) || write_check(w, obj, NULL, outcome) < 0 ||
                   write_settle(w, obj, NULL, outcome) < 0
               ? NULL
               : write_encode(q, obj, outcome);
}

/* The bytes to be stored; NULL: the outcome is filled. */
static struct blob *compute(struct write *w, const struct object *base, bool *ret_same,
                            struct outcome *outcome)
{
    struct request *q = w->q;
    CLEANUP(json_free) struct json *old = object_parse_as(base, q->kind);
    if (write_check_preconditions(q, w->body, old, outcome) < 0) {
        return NULL;
    }
    CLEANUP(json_free) struct json *obj = applied(w, old, outcome);
    if (!obj) {
        return NULL;
    }
    if (*q->subresource && !streq(q->subresource, "scale")) {
        struct json *part = object_prepare_part(q->kind, q->subresource, old, obj);
        json_free(obj);
        obj = part;
    } else {
        object_prepare_update(q->kind, old, obj);
    }
    return write_finish(w, obj, old, ret_same, outcome);
}

static void attempt_apply(struct write *w, struct outcome *outcome)
{
    struct object *base = keyset_get(&w->ck->objects, w->key);
    bool same;
    if (!base && w->ck->gone) {
        outcome_conflict(outcome, w->q->kind, w->q->name, DEFINITION_CHANGED_TEXT);
    } else if (!base) {
        write_send_new(w, compute_new(w, outcome), outcome);
    } else {
        struct blob *value = compute(w, base, &same, outcome);
        if (value) {
            write_send_update(w, base, value, same, outcome);
        }
    }
}

/* Checks that the configuration names its type: the type says how its fields are owned, and an
 * empty document is more likely a mistake than the wish to give up all fields.  The texts are
 * those of Kubernetes. */
static int check_type(const struct request *q, const struct json *config, bool scale,
                      struct outcome *outcome)
{
    CLEANUP_FREE char *own = api_kind_api_version(q->kind);
    const char *want = scale ? API_SCALE_GROUP "/" API_SCALE_VERSION : own;
    const char *version = json_path_string(config, "apiVersion", NULL);
    if (!version || !streq(version, want)) {
        outcome_error(outcome, 400, "BadRequest",
                      "Incorrect version specified in apply patch. Specified patch version: "
                      "%.80s, expected: %s",
                      version ? version : "", want);
        return -EINVAL;
    }
    if (json_string_size(json_get(config, "kind")) == 0) {
        const char *slash = strchr(want, '/') ? "" : "/";
        outcome_error(outcome, 400, "BadRequest",
                      "failed to create typed patch object (%s/%s; %s%s, Kind=): no corresponding "
                      "type for %s%s, Kind=",
                      q->namespace ? q->namespace : "", q->name, slash, want, slash, want);
        return -EINVAL;
    }
    return 0;
}

void handle_apply(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *config = NULL;
    struct err e = {0};
    if (write_begin(q, outcome) < 0 || write_read_body(q, &config, outcome) < 0) {
        return;
    }
    struct object_target target = {.kind = q->kind, .namespace = q->namespace, .name = q->name};
    bool scale = streq(q->subresource, "scale");
    if (check_type(q, config, scale, outcome) < 0) {
        return;
    }
    if ((scale ? scale_check_target : object_check_target)(config, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return;
    }
    if (scale) {
        CLEANUP(json_free) struct json *body = TAKE(config);
        config = scale_config(q->kind, body);
    } else if (fields_prune(q, config, false, outcome) < 0) {
        return;
    }
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct write *w = write_new(q, q->ck, key, attempt_apply);
    w->body = TAKE(config);
    w->creates_or_updates = true;
    outcome_take_over(outcome);
    write_try(w);
}
