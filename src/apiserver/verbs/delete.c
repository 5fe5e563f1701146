/* SPDX-License-Identifier: Apache-2.0 */
/* Deletion of one object or of a collection.
 *
 * An object with finalizers is only marked, and is removed when an update removes the last of them.
 * An object with a grace period (a pod, which its kubelet ends) is marked as well, and is removed
 * when a deletion with a grace period of 0 arrives. */
#include "apiserver/verbs/delete.h"

#include "api/condition.h"
#include "api/obj.h"
#include "apiserver/access/authz.h"
#include "apiserver/admission/admission.h"
#include "apiserver/request/respond.h"
#include "apiserver/verbs/read.h"
#include "base/timeutil.h"

#include <inttypes.h>

#define MAX_ATTEMPTS 64
#define MAX_GRACE_S INT32_MAX

/* The treatment of dependents, which the garbage collector carries out;
 * finalizers tell it the policy. */
enum propagation { POLICY_NONE, POLICY_BACKGROUND, POLICY_FOREGROUND, POLICY_ORPHAN };

/* The state that all writes of one request share. */
struct deletion {
    struct request *q;
    char *uid, *version; /* Preconditions; NULL: none. */
    enum propagation policy;
    bool has_grace;
    int64_t grace_s;
    size_t pending; /* Writes that are not finished. */
    bool evicts;    /* The answer is that of an eviction. */
    /* Members of the deletion of a collection: */
    bool collection;
    struct selection sel;
    int error;              /* The first error. */
    struct outcome refusal; /* The first refusal by a webhook. */
    struct strbuf items;
};

static struct deletion *deletion_free(struct deletion *d)
{
    free(d->uid);
    free(d->version);
    selection_done(&d->sel);
    outcome_done(&d->refusal);
    strbuf_done(&d->items);
    free(d);
    return NULL;
}
DEFINE_CLEANUP(struct deletion *, deletion_free)

void delete_drop(struct write *w)
{
    struct deletion *d = w->deletion;
    if (--d->pending == 0) {
        request_free(d->q);
        deletion_free(d);
    }
}

/* ---- options ---- */

static char *text_of(const struct json *v)
{
    return json_string_size(v) ? xstrdup(json_get_string(v)) : NULL;
}

#define OPTIONS "DeleteOptions"

static int parse_policy(struct request *q, const char *policy, enum propagation *ret,
                        struct outcome *outcome)
{
    static const char *const policies[] = {"Background", "Foreground", "Orphan", NULL};
    for (size_t i = 0; policies[i]; i++) {
        if (streq(policy, policies[i])) {
            *ret = (enum propagation)(POLICY_BACKGROUND + i);
            return 0;
        }
    }
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    CLEANUP(json_free) struct json *v = json_string(policy);
    api_unsupported(&causes, "propagationPolicy", v, policies);
    outcome_invalid_options(outcome, OPTIONS, &causes);
    return -EINVAL;
}

/* Checks dryRun of the body, and the grace period. */
static int check_options(struct deletion *d, const struct json *body, struct outcome *outcome)
{
    struct request *q = d->q;
    static const char *const runs[] = {"All", NULL};
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    const char *given = http_query(q->x, "gracePeriodSeconds");
    CLEANUP(json_free)
    struct json *seconds = given && *given ? json_number_n(given, strlen(given)) : NULL;
    const struct json *grace = seconds ? seconds : json_get(body, "gracePeriodSeconds"), *item;
    JSON_FOREACH (item, json_get(body, "dryRun")) {
        if (!streq_null(json_get_string(item), "All")) {
            api_unsupported(&causes, "dryRun", item, runs);
        }
        q->dry_run = true;
    }
    if ((given && *given && !seconds) ||
        (grace && !json_is(grace, JSON_NULL) && json_get_int(grace, &d->grace_s) < 0)) {
        api_invalid(&causes, "gracePeriodSeconds", grace, "must be a whole number");
    }
    if (causes.n) {
        outcome_invalid_options(outcome, OPTIONS, &causes);
        return -EINVAL;
    }
    d->has_grace = grace && !json_is(grace, JSON_NULL);
    return 0;
}

/* Reads the body, DeleteOptions; NULL when it is empty. */
static int read_options(struct request *q, struct json **ret, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    struct err e = {0};
    size_t size;
    http_body(q->x, &size);
    int r = size ? request_body(q, &body, &e) : 0;
    if (r == -EPROTONOSUPPORT) {
        outcome_error(outcome, 415, "UnsupportedMediaType", "%s", e.text);
        return r;
    }
    if (r < 0 || (body && !json_is(body, JSON_OBJECT))) {
        outcome_error(outcome, 400, "BadRequest", "the body of the request cannot be read: %s",
                      r < 0 ? e.text : "it is not an object");
        return -EINVAL;
    }
    const char *kind = json_path_string(body, "kind", NULL);
    if (kind && !streq(kind, "DeleteOptions")) {
        outcome_error(outcome, 400, "BadRequest",
                      "the body of a deletion is DeleteOptions, not %.80s", kind);
        return -EINVAL;
    }
    *ret = TAKE(body);
    return 0;
}

/* The deletion that the options 'body' (NULL: none) and the query ask for. */
static struct deletion *deletion_new(struct request *q, const struct json *body,
                                     struct outcome *outcome)
{
    CLEANUP(deletion_free) struct deletion *d = NEW(struct deletion);
    d->q = q;
    d->items = STRBUF_INIT;
    if (write_begin(q, outcome) < 0) {
        return NULL;
    }
    if (check_options(d, body, outcome) < 0) {
        return NULL;
    }
    const char *policy = http_query(q->x, "propagationPolicy");
    policy = policy ? policy : json_path_string(body, "propagationPolicy", NULL);
    const struct json *orphan = json_get(body, "orphanDependents"); /* The deprecated form. */
    if (policy && *policy && json_is(orphan, JSON_BOOL)) {
        outcome_error(
            outcome, 422, "Invalid",
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: orphanDependents "
            "and propagationPolicy cannot be both set");
        return NULL;
    }
    if (policy && *policy && parse_policy(q, policy, &d->policy, outcome) < 0) {
        return NULL;
    }
    if (json_is(orphan, JSON_BOOL)) {
        d->policy = json_get_bool(orphan, false) ? POLICY_ORPHAN : POLICY_BACKGROUND;
    }
    d->uid = text_of(json_path(body, "preconditions", "uid", NULL));
    d->version = text_of(json_path(body, "preconditions", "resourceVersion", NULL));
    return TAKE(d);
}

/* DeleteOptions from the body (empty: none) and the query. */
static struct deletion *parse_options(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    return read_options(q, &body, outcome) < 0 ? NULL : deletion_new(q, body, outcome);
}

/* ---- the end of a deletion ---- */

static void answer_eviction(struct outcome *outcome)
{
    outcome->type = OUTCOME_STATUS;
    outcome->code = 201;
    outcome->plain = true;
}

static void answer_collection(struct deletion *d)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    struct request *q = d->q;
    if (d->refusal.type != OUTCOME_NONE) {
        request_answer(q, &d->refusal);
        return;
    }
    if (d->error < 0) {
        outcome_store_error(&outcome, q, d->error);
        request_answer(q, &outcome);
        return;
    }
    CLEANUP_FREE char *version = request_api_version(q);
    CLEANUP_FREE char *list = api_kind_list_kind(q->kind);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_addf(&out,
                "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":"
                "\"%" PRIu64 "\"},\"items\":[",
                list, version, q->server->cache.revision);
    strbuf_add(&out, strbuf_cstr(&d->items), d->items.size);
    strbuf_adds(&out, "]}\n");
    outcome_text(&outcome, 200, NULL, &out);
    request_answer(q, &outcome);
}

void delete_end(struct write *w, struct outcome *outcome)
{
    struct deletion *d = w->deletion;
    if (!d->collection) {
        request_answer(d->q, outcome);
    } else if (outcome->type == OUTCOME_STATUS && d->refusal.type == OUTCOME_NONE) {
        d->refusal = *outcome;
        *outcome = (struct outcome){0};
    }
    write_free(w);
    if (--d->pending == 0) {
        if (d->collection) {
            answer_collection(d);
        }
        deletion_free(d);
    }
}

static void add_item(struct deletion *d, struct blob *stored)
{
    CLEANUP(blob_unref) struct blob *text = request_text(d->q, stored);
    if (d->items.size) {
        strbuf_addc(&d->items, ',');
    }
    request_write_item(d->q, text, &d->items);
}

/* The object was removed at 'revision'; 'base' is its last state. */
static void deleted(struct write *w, const struct object *base, uint64_t revision,
                    struct outcome *outcome)
{
    struct deletion *d = w->deletion;
    if (d->evicts) {
        answer_eviction(outcome);
    } else if (d->collection) {
        add_item(d, base->text);
    } else if (d->q->kind->returns_deleted) {
        outcome_object(outcome, 200, object_text_at(base, w->ck->head, revision));
    } else {
        CLEANUP(json_free) struct json *obj = object_parse(base);
        outcome_deleted(outcome, d->q->name, json_path_string(obj, "metadata", "uid", NULL));
    }
}

/* The object waits for finalizers or its grace period, and is marked as being deleted. */
static void marked(struct write *w, struct blob *text, struct outcome *outcome)
{
    if (w->deletion->evicts) {
        answer_eviction(outcome);
    } else if (w->deletion->collection) {
        add_item(w->deletion, text);
    } else {
        outcome_object(outcome, 200, blob_ref(text));
    }
}

static void missing(struct write *w, struct outcome *outcome)
{
    if (!w->deletion->collection) {
        outcome_not_found(outcome, w->deletion->q->kind, w->deletion->q->name);
    }
}

void delete_stored(struct write *w, int error, uint64_t revision, struct outcome *outcome)
{
    if ((error == -ESTALE || error == -ENOENT) && w->attempts < MAX_ATTEMPTS) {
        w->base = object_unref(w->base);
        w->value = blob_unref(w->value);
        w->attempt(w, outcome);
    } else if (error < 0 && w->deletion->collection) {
        w->deletion->error = w->deletion->error ? w->deletion->error : error;
    } else if (error == -ESTALE) {
        outcome_conflict(outcome, w->deletion->q->kind, w->deletion->q->name,
                         "the object keeps being modified");
    } else if (error < 0) {
        outcome_store_error(outcome, w->deletion->q, error);
    } else if (w->value) {
        CLEANUP(blob_unref) struct blob *text = object_text(w->ck->head, w->value, revision);
        marked(w, text, outcome);
    } else {
        deleted(w, w->base, revision, outcome);
    }
}

/* ---- one object ---- */

/* The preconditions of a single deletion. */
static int check_preconditions(struct deletion *d, const struct object *o, const struct json *obj,
                               struct outcome *outcome)
{
    const char *uid = json_path_string(obj, "metadata", "uid", NULL);
    uint64_t version;
    CLEANUP_FREE char *why = NULL;
    if (d->uid && !streq_null(uid, d->uid)) {
        why =
            xasprintf("the UID in the precondition (%.64s) does not match the UID in record (%s). "
                      "The object might have been deleted and then recreated",
                      d->uid, uid ? uid : "");
    } else if (d->version &&
               (str_to_u64(d->version, UINT64_MAX, &version) < 0 || version != o->revision)) {
        why = xasprintf("the ResourceVersion in the precondition (%.32s) does not match the "
                        "ResourceVersion in record (%" PRIu64 "). The object might have been "
                        "modified",
                        d->version, o->revision);
    }
    if (why) {
        outcome_conflict(outcome, d->q->kind, d->q->name, why);
        return -ESTALE;
    }
    return 0;
}

static void delete_marked(struct write *w, struct object *base, struct outcome *outcome)
{
    struct deletion *d = w->deletion;
    if (!d->collection && api_kind_is_namespace(w->ck->kind)) {
        outcome_conflict(outcome, d->q->kind, d->q->name,
                         "The system is ensuring all content is removed from this namespace.  Upon "
                         "completion, this namespace will automatically be purged by the system.");
        return;
    }
    marked(w, base->text, outcome);
}

/* Sets the finalizers of 'obj' that the policy requires; without a policy they stay unchanged,
 * except of kinds whose dependents are left by default.  Returns whether it changed them. */
static bool set_finalizers(const struct deletion *d, struct json *obj)
{
    static const char *const ours[] = {"orphan", "foregroundDeletion"};
    struct json *meta = json_get(obj, "metadata");
    const struct json *old = json_get(meta, "finalizers"), *f;
    enum propagation policy = d->policy;
    if (policy == POLICY_NONE && d->q->kind->orphans && !obj_has_finalizer(obj, ours[0]) &&
        !obj_has_finalizer(obj, ours[1])) {
        policy = POLICY_ORPHAN;
    }
    if (policy == POLICY_NONE) {
        return false;
    }
    const char *wanted = policy == POLICY_ORPHAN       ? ours[0]
                         : policy == POLICY_FOREGROUND ? ours[1]
                                                       : NULL;
    CLEANUP(json_free) struct json *list = json_array();
    JSON_FOREACH (f, old) {
        const char *s = json_get_string(f);
        if (!streq_null(s, ours[0]) && !streq_null(s, ours[1])) {
            json_append(list, json_clone(f));
        }
    }
    if (wanted) {
        json_append(list, json_string(wanted));
    }
    if (json_count(list) == json_count(old) && (!old || json_equal(list, old))) {
        return false;
    }
    if (json_count(list)) {
        json_set(meta, "finalizers", TAKE(list));
    } else {
        json_remove(meta, "finalizers");
    }
    return true;
}

/* Stores 'obj', which is marked, or answers a dry run with it. */
static void put_marked(struct write *w, struct object *base, const struct json *obj,
                       struct outcome *outcome)
{
    struct blob *value = NULL;
    (void) object_encode(w->ck->kind, obj, &value);
    if (!w->deletion->q->dry_run) {
        write_put(w, base, value, outcome);
        return;
    }
    CLEANUP(blob_unref) struct blob *text = object_text(w->ck->head, value, base->revision);
    blob_unref(value);
    marked(w, text, outcome);
}

static int64_t wanted_grace(const struct deletion *d, const struct api_kind *k,
                            const struct json *obj)
{
    int64_t asked = MIN(d->grace_s, MAX_GRACE_S);
    return k->grace_s ? MIN(k->grace_s(obj, d->has_grace ? &asked : NULL), MAX_GRACE_S) : 0;
}

static void attempt_delete(struct write *w, struct outcome *outcome)
{
    struct deletion *d = w->deletion;
    const struct api_kind *k = w->ck->kind;
    struct object *base = keyset_get(&w->ck->objects, w->key);
    if (!base || (d->collection && !selection_matches(&d->sel, base))) {
        missing(w, outcome);
        return;
    }
    CLEANUP(json_free) struct json *obj = object_parse(base);
    if (check_preconditions(d, base, obj, outcome) < 0 ||
        (!d->evicts && write_check_deletion(w, obj, outcome) < 0)) {
        return;
    }
    bool changed = set_finalizers(d, obj),
         first = !json_path_string(obj, "metadata", "deletionTimestamp", NULL);
    int64_t grace = wanted_grace(d, k, obj), was = object_grace_s(obj);
    /* A later deletion may shorten the grace period, but not extend it. */
    bool sooner = first || grace < was;
    grace = sooner ? grace : was;
    if (grace == 0 && !object_has_finalizers(k, obj)) {
        if (d->q->dry_run) {
            deleted(w, base, base->revision, outcome);
        } else {
            write_delete(w, base, NULL, outcome);
        }
    } else if (sooner) {
        object_mark_deleted(k, obj, grace, time_wall_ms());
        if (d->evicts) {
            (void) condition_set(obj, "DisruptionTarget", "True", "EvictionByEvictionAPI",
                                 "Eviction API: evicting", time_wall_ms());
        }
        put_marked(w, base, obj, outcome);
    } else if (changed) {
        put_marked(w, base, obj, outcome);
    } else {
        delete_marked(w, base, outcome);
    }
}

static struct write *delete_new(struct deletion *d, const char *key)
{
    struct write *w = write_new(d->q, d->q->ck, key, attempt_delete);
    w->deletion = d;
    d->pending++;
    return w;
}

/* 'd' NULL: the outcome is filled. */
static void delete_one(struct deletion *d, struct outcome *outcome)
{
    if (d) {
        CLEANUP_FREE char *key = cache_key(d->q->namespace, d->q->name);
        outcome_take_over(outcome);
        write_try(delete_new(d, key));
    }
}

/* Every user may delete tokens (system:oauth-token-deleter), which was safe as long as the name was
 * the token.  Names are hashes: a user who may not list tokens deletes the user's own. */
static bool may_delete_token(struct request *q, const struct object *o)
{
    const struct api_kind *k = q->kind;
    int user = api_field_find(k, "userName");
    return streq(api_index_field(o->index, (size_t) user), q->user->name) ||
           authz_may(q->server->security, q->user, "list", k->group, k->plural, NULL, NULL);
}

/* Whether the kind's objects belong to users, who delete their own. */
static bool is_of_users(const struct api_kind *k)
{
    return k->own || (streq(k->group, OAUTH_GROUP) && (streq(k->plural, "oauthaccesstokens") ||
                                                       streq(k->plural, "oauthauthorizetokens")));
}

void handle_delete(struct request *q, struct outcome *outcome)
{
    bool of_users = is_of_users(q->kind);
    const struct object *o = of_users ? keyset_get(&q->ck->objects, q->name) : NULL;
    if (of_users && (!o || !(q->kind->own ? own_sees(q, o) : may_delete_token(q, o)))) {
        outcome_not_found(outcome, q->kind, q->name);
        return;
    }
    if (admission_run(q, NULL, NULL, outcome) < 0) {
        return;
    }
    delete_one(parse_options(q, outcome), outcome);
}

int delete_read_preconditions(struct request *q, struct json **ret, struct outcome *outcome)
{
    CLEANUP(deletion_free) struct deletion *d = parse_options(q, outcome);
    if (!d) {
        return -EINVAL;
    }
    *ret = json_object();
    struct json *meta = json_ensure_object(*ret, "metadata");
    json_set_string(meta, "uid", d->uid);
    json_set_string(meta, "resourceVersion", d->version);
    return 0;
}

void delete_evicted(struct request *q, const struct json *options, struct outcome *outcome)
{
    if (admission_run(q, NULL, NULL, outcome) < 0) {
        return;
    }
    struct deletion *d = deletion_new(q, options, outcome);
    if (d) {
        d->evicts = true;
    }
    delete_one(d, outcome);
}

/* ---- a collection ---- */

void handle_delete_collection(struct request *q, struct outcome *outcome)
{
    struct deletion *d = parse_options(q, outcome);
    if (!d) {
        return;
    }
    if (selection_parse(q, &d->sel, outcome) < 0) {
        deletion_free(d);
        return;
    }
    d->collection = true;
    d->pending = 1; /* Counts the collection itself until all writes have begun. */
    outcome_take_over(outcome);
    struct cache_walk walk;
    struct object *o;
    struct cache_range range = selection_range(q, &d->sel);
    cache_walk_init(&walk, q->ck, &range, q->server->cache.revision);
    while ((o = cache_walk_next(&walk))) {
        if (selection_matches(&d->sel, o)) {
            write_try(delete_new(d, o->key));
        }
    }
    cache_walk_done(&walk);
    if (--d->pending == 0) {
        answer_collection(d);
        deletion_free(d);
    }
}
