/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/binding.h"

#include "api/condition.h"
#include "api/schema.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/write.h"
#include "base/timeutil.h"

#define PART "binding"

static const struct api_kind *binding_kind(void)
{
    return api_kind_find("", "v1", "bindings");
}

bool binding_is_asked(const struct request *q)
{
    return q->verb == VERB_CREATE && (q->kind == binding_kind() || streq(q->subresource, PART));
}

/* Success without an object, as in Kubernetes. */
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

/* Why the pod cannot get a node, owned; NULL: it can. */
static char *why_not(const struct json *pod, const char *name)
{
    const char *node = json_path_string(pod, "spec", "nodeName", NULL);
    if (json_path(pod, "metadata", "deletionTimestamp", NULL)) {
        return xasprintf("pod %s is being deleted, cannot be assigned to a host", name);
    }
    if (node && *node) {
        return xasprintf("pod %s is already assigned to node \"%s\"", name, node);
    }
    return json_count(json_path(pod, "spec", "schedulingGates", NULL))
               ? xasprintf("pod %s has non-empty .spec.schedulingGates", name)
               : NULL;
}

static int refuse(const struct write *w, const struct json *pod, struct outcome *outcome)
{
    const char *name = w->q->name;
    CLEANUP_FREE char *why = why_not(pod, name);
    if (!why) {
        return 0;
    }
    outcome_status(outcome, 409, "Conflict", name,
                   "Operation cannot be fulfilled on pods/binding \"%s\": %s", name, why);
    outcome->kind = xstrdup("pods/binding");
    return -EBUSY;
}

/* The pod on the node that the Binding names, with the Binding's annotations. */
static struct json *bound(const struct json *pod, const struct json *binding)
{
    struct json *obj = json_clone(pod);
    const struct json *notes = json_path(binding, "metadata", "annotations", NULL);
    json_set_string(json_ensure_object(obj, "spec"), "nodeName",
                    json_path_string(binding, "target", "name", NULL));
    for (size_t i = 0; i < json_count(notes); i++) {
        json_set(json_ensure_object(json_get(obj, "metadata"), "annotations"),
                 json_key_at(notes, i), json_clone(json_at(notes, i)));
    }
    (void) condition_set(obj, "PodScheduled", "True", NULL, NULL, time_wall_ms());
    return obj;
}

static void attempt_bind(struct write *w, struct outcome *outcome)
{
    struct request *q = w->q;
    struct object *base = keyset_get(&w->ck->objects, w->key);
    if (!base) {
        outcome_not_found(outcome, q->kind, q->name);
        return;
    }
    CLEANUP(json_free) struct json *old = object_parse_as(base, q->kind);
    if (write_check_preconditions(q, w->body, old, outcome) < 0 || refuse(w, old, outcome) < 0) {
        return;
    }
    CLEANUP(json_free) struct json *obj = bound(old, w->body);
    bool same;
    CLEANUP(blob_unref) struct blob *value = write_finish(w, obj, old, &same, outcome);
    if (value && q->dry_run) {
        outcome_bound(outcome);
    } else if (value) {
        write_put(w, base, TAKE(value), outcome);
    }
}

/* Checks the body, a Binding; the request is one for its kind. */
static int check_body(struct request *q, struct json *body, struct outcome *outcome)
{
    struct object_target target = {.kind = q->kind, .namespace = q->namespace, .name = q->name};
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct err e = {0};
    if (object_check_target(body, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return -EINVAL;
    }
    if (fields_prune(q, body, false, outcome) < 0) {
        return -EINVAL;
    }
    api_validate_object(q->kind, body, NULL, &causes);
    if (causes.n) {
        const char *name = json_path_string(body, "metadata", "name", NULL);
        outcome_invalid(outcome, q->kind, name ? name : "", &causes);
        return -EINVAL;
    }
    return 0;
}

void handle_binding(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    if (write_begin(q, outcome) < 0 || write_read_body(q, &body, outcome) < 0) {
        return;
    }
    q->kind = binding_kind();
    if (check_body(q, body, outcome) < 0) {
        return;
    }
    /* From here it is a change of the pod, whichever path was taken. */
    q->kind = api_kind_find("", "v1", "pods");
    cache_kind_unref(q->ck);
    q->ck = cache_kind_ref(cache_find(&q->server->cache, q->kind));
    q->subresource = PART;
    q->name = json_path_string(body, "metadata", "name", NULL);
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct write *w = write_new(q, q->ck, key, attempt_bind);
    w->body = TAKE(body);
    w->stored = bind_stored;
    outcome_take_over(outcome);
    write_try(w);
}
