/* SPDX-License-Identifier: Apache-2.0 */
/* Create, update and patch. */
#include "apiserver/verbs/write.h"

#include "api/patch/patch.h"
#include "apiserver/admission/admission.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/metrics.h"
#include "apiserver/request/newest.h"
#include "apiserver/request/respond.h"
#include "apiserver/request/scale.h"
#include "apiserver/verbs/apply.h"
#include "apiserver/verbs/delete.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/lease.h"
#include "base/log.h"
#include "base/timeutil.h"

#include <inttypes.h>

LOG_MODULE("apiserver");

#define MAX_ATTEMPTS 16
/* Attempts of a write that adds to a quota: each failure means that another server has added. */
#define MAX_FENCED 64
#define MAX_NAMES 8 /* Attempts with generateName. */
/* A creation that lacks an object tries again so often, each time after a moment. */
#define MAX_WAITS 10
#define WAIT_MS 150

#define MODIFIED_TEXT \
    "the object has been modified; please apply your changes to the latest version and try again"

/* ---- writes in general ---- */

struct write *write_new(struct request *q, struct cache_kind *ck, const char *key,
                        write_attempt_fn *attempt)
{
    struct apiserver *a = q->server;
    struct write *w = NEW(struct write);
    w->server = a;
    w->q = q;
    w->ck = cache_kind_ref(ck);
    w->key = xstrdup(key);
    w->attempt = attempt;
    list_push_back(&a->writes, &w->node);
    a->inflight++;
    return w;
}

void write_free(struct write *w)
{
    list_remove(&w->node);
    w->server->inflight--;
    loop_timer_free(w->timer);
    alloc_drop(w->server->alloc, &w->alloc);
    uids_drop(w->server->uids, &w->uids);
    quota_drop(w->server->quotas, &w->quota);
    project_limit_drop(&w->project_limit);
    webhook_run_free(w->webhooks);
    write_drop_others(w);
    json_free(w->body);
    blob_unref(w->value);
    object_unref(w->base);
    free(w->key);
    cache_kind_unref(w->ck);
    free(w);
}

void write_add_other(struct write *w, const struct cache_kind *ck, const struct object *base,
                     struct blob *value)
{
    w->others = grow(w->others, &w->cap_others, w->n_others + 1, sizeof *w->others);
    w->others[w->n_others++] =
        (struct store_claim){cache_store_key(ck, base->key), value, base->revision};
}

void write_add_new(struct write *w, const struct cache_kind *ck, const char *key,
                   struct blob *value)
{
    w->others = grow(w->others, &w->cap_others, w->n_others + 1, sizeof *w->others);
    w->others[w->n_others++] = (struct store_claim){cache_store_key(ck, key), value, STORE_ABSENT};
}

void write_drop_others(struct write *w)
{
    for (size_t i = 0; i < w->n_others; i++) {
        free((char *) w->others[i].key);
        blob_unref(w->others[i].value);
    }
    free(TAKE(w->others));
    w->n_others = w->cap_others = 0;
}

int write_begin(struct request *q, struct outcome *outcome)
{
    if (fields_parse_options(q, outcome) < 0) {
        return -EINVAL;
    }
    if (q->server->lost) {
        outcome_unavailable(outcome, q);
        return -EAGAIN;
    }
    return lease_check(q, outcome);
}

static const char *name_of(const struct write *w)
{
    const char *slash = strchr(w->key, '/');
    return slash && w->ck->kind->namespaced ? slash + 1 : w->key;
}

void outcome_exists(struct outcome *o, const struct api_kind *k, const char *name)
{
    outcome_status(o, 409, "AlreadyExists", name, "%s \"%s\" already exists", RESOURCE_TEXT(k),
                   name);
}

void outcome_store_error(struct outcome *o, const struct request *q, int error)
{
    static struct log_limit limit;
    switch (error) {
    case -EAGAIN:
    case -ECANCELED:
        outcome_unavailable(o, q);
        break;
    case -EPERM:
        outcome_lease_lost(o, q);
        break;
    case -ENOSPC:
    case -EDQUOT:
        log_limited(&limit, LOG_ERROR, "write failed", "error=%s", strerror(-error));
        outcome_error(o, 507, "InsufficientStorage",
                      "the store is full, nothing was changed: make room on the disk of the "
                      "registry or delete objects, or in etcd compact, defragment and disarm the "
                      "alarm");
        break;
    case -E2BIG:
        outcome_error(o, 413, "RequestEntityTooLarge", "the object is too large to be stored");
        break;
    default:
        log_limited(&limit, LOG_ERROR, "write failed", "error=%s", strerror(-error));
        outcome_error(o, 500, "InternalError", "Internal error occurred: the store failed: %s",
                      strerror(-error));
    }
}

/* ---- attempts ---- */

/* The write is over. */
static void write_end(struct write *w, struct outcome *outcome)
{
    if (w->deletion) {
        delete_end(w, outcome);
        return;
    }
    request_answer(w->q, outcome);
    write_free(w);
}

void write_try(struct write *w)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    w->attempt(w, &outcome);
    if (outcome.type != OUTCOME_TAKEN_OVER) {
        write_end(w, &outcome);
    }
}

static void try_again(void *ctx)
{
    write_try(ctx);
}

bool write_awaits(struct write *w, const struct json *obj, struct outcome *outcome)
{
    if (w->waits == MAX_WAITS || w->server->stopping || !admission_awaits(w->q, obj)) {
        return false;
    }
    w->waits++;
    if (!w->timer) {
        w->timer = loop_timer_new(w->server->loop, try_again, w);
    }
    loop_timer_arm(w->timer, WAIT_MS);
    outcome_take_over(outcome);
    return true;
}

static void put_failed(struct write *w, int error, struct outcome *outcome)
{
    struct request *q = w->q;
    bool raced = error == -EEXIST || error == -ESTALE || error == -ENOENT;
    bool claimed = error == -EADDRINUSE; /* Another server has claimed the number first. */
    /* Another write has added to the same quota, or to the projects of the same user, first. */
    bool fenced = (w->quota.n_fences || w->project_limit.n) && (claimed || error == -ESTALE);
    if (fenced && w->attempts < MAX_FENCED) {
        w->base = object_unref(w->base);
        w->value = blob_unref(w->value);
        w->attempt(w, outcome);
        return;
    }
    if ((claimed || (raced && (w->base || w->creates_or_updates))) && w->attempts < MAX_ATTEMPTS) {
        w->base = object_unref(w->base);
        w->value = blob_unref(w->value);
        w->attempt(w, outcome);
        return;
    }
    if (error == -EEXIST && w->generated && w->attempts < MAX_NAMES) {
        w->value = blob_unref(w->value);
        w->attempt(w, outcome);
        return;
    }
    if (error == -EEXIST) {
        outcome_exists(outcome, q->kind, name_of(w));
    } else if (raced || claimed) {
        outcome_conflict(outcome, q->kind, name_of(w), MODIFIED_TEXT);
    } else {
        outcome_store_error(outcome, q, error);
    }
}

static void stored(void *ctx, int error, uint64_t revision);

static size_t append_claims(struct store_claim *to, size_t at, const struct store_claim *from,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[at + i] = from[i];
    }
    return at + n;
}

/* The other keys that change with the write; the array is owned, its contents are borrowed. */
static struct store_claim *gather_claims(const struct write *w, size_t *ret_n)
{
    size_t n =
        w->n_others + w->alloc.n_claims + w->uids.n_claims + w->quota.n_fences + w->project_limit.n;
    struct store_claim *claims = n ? xcalloc(n, sizeof *claims) : NULL;
    n = append_claims(claims, 0, w->others, w->n_others);
    n = append_claims(claims, n, w->alloc.claims, w->alloc.n_claims);
    n = append_claims(claims, n, w->uids.claims, w->uids.n_claims);
    n = append_claims(claims, n, w->quota.fences, w->quota.n_fences);
    *ret_n = append_claims(claims, n, &w->project_limit.fence, w->project_limit.n);
    return claims;
}

static void store_send(struct write *w)
{
    CLEANUP_FREE char *key = cache_store_key(w->ck, w->key);
    CLEANUP_FREE char *guard = NULL;
    CLEANUP_FREE struct store_claim *claims = NULL;
    struct store_terms terms = {.ttl_s = w->ck->kind->ttl_s, .ending = w->deletion || w->ending};
    terms.claims = claims = gather_claims(w, &terms.n_claims);
    quota_sent(w->server->quotas, &w->quota, w->ck, w->key, w->deletes ? NULL : w->value, w->base);
    (void) lease_guard(w, &guard, &terms.guard_at);
    terms.guard = guard;
    w->attempts++;
    w->sent_ns = time_mono_ns();
    store_write(w->server->store, key, w->deletes ? NULL : w->value,
                w->base ? w->base->revision : STORE_ABSENT, &terms, stored, w);
}

static void stored(void *ctx, int error, uint64_t revision)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    struct write *w = ctx;
    metrics_count_store(w->server->metrics, w->deletes, error, time_mono_ns() - w->sent_ns);
    if (error == -EPERM && w->attempts < MAX_ATTEMPTS && lease_is_held(w)) {
        store_send(w); /* The holder has renewed the lease in the meantime. */
        return;
    }
    if (w->deletion) {
        delete_stored(w, error, revision, &outcome);
    } else if (error < 0) {
        put_failed(w, error, &outcome);
    } else if (w->then) {
        w->then(w, &outcome);
        if (outcome.type == OUTCOME_TAKEN_OVER) {
            write_free(w); /* The request is another write's by now. */
            return;
        }
    } else if (w->stored) {
        w->stored(w, revision, &outcome);
    } else {
        outcome_object(&outcome, w->base ? 200 : 201, object_text(w->ck->head, w->value, revision));
    }
    if (outcome.type != OUTCOME_TAKEN_OVER) {
        write_end(w, &outcome);
    }
}

static void send_write(struct write *w, struct object *base, struct blob *value, bool deletes,
                       struct outcome *outcome)
{
    w->base = base ? object_ref(base) : NULL;
    w->value = value;
    w->deletes = deletes;
    if (deletes) {
        alloc_settle_deletion(w->server->alloc, &w->alloc, w->ck, base);
        uids_settle_deletion(w->server->uids, &w->uids, w->ck, base);
    }
    outcome_take_over(outcome);
    store_send(w);
}

void write_put(struct write *w, struct object *base, struct blob *value, struct outcome *outcome)
{
    send_write(w, base, value, false, outcome);
}

void write_delete(struct write *w, struct object *base, struct blob *value, struct outcome *outcome)
{
    send_write(w, base, value, true, outcome);
}

void write_drop_all(struct apiserver *a)
{
    struct write *w;
    LIST_FOREACH (w, struct write, node, &a->writes) {
        if (w->deletion) {
            delete_drop(w);
        } else {
            request_free(w->q);
        }
        write_free(w);
    }
}

struct blob *write_encode(struct request *q, const struct json *obj, struct outcome *outcome)
{
    struct blob *value = NULL;
    CLEANUP(json_free) struct json *stored = NULL;
    if (q->kind->view) {
        stored = json_clone(obj);
        q->kind->view->store(stored);
    }
    if (object_encode(q->ck->kind, stored ? stored : obj, &value) < 0) {
        outcome_error(outcome, 400, "BadRequest", "the object is nested more than %d levels deep",
                      OBJECT_MAX_DEPTH);
    }
    return value;
}

/* The body of a subresource that is created, or the Scale, which webhooks are asked about.  Returns
 * NULL when it is the object itself; '*ret_scale' is then untouched, and else owned or NULL. */
static const struct webhook_part *part_of(const struct write *w, const struct json *obj,
                                          struct webhook_part *part, struct json **ret_scale)
{
    const struct request *q = w->q;
    const struct api_subresource *sub =
        *q->subresource ? api_kind_subresource(q->kind, q->subresource) : NULL;
    if (streq(q->subresource, "scale")) {
        *ret_scale = scale_of(q->kind, obj);
        *part = (struct webhook_part){API_SCALE_GROUP, API_SCALE_VERSION, "Scale", *ret_scale};
        return part;
    }
    if (q->verb == VERB_CREATE && sub && sub->kind && w->body) {
        *part = (struct webhook_part){sub->group, sub->version, sub->kind, w->body};
        return part;
    }
    return NULL;
}

/* Turns the result of asking webhooks into that of a step of the write. */
static int asked(int r, struct outcome *outcome)
{
    if (r == -EINPROGRESS) {
        outcome_take_over(outcome);
    }
    return r;
}

static int validate(const struct request *q, const struct json *obj, const struct json *old,
                    struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    api_validate_part(q->kind, q->subresource, obj, old, &causes);
    if (causes.n) {
        const char *name = json_path_string(obj, "metadata", "name", NULL);
        outcome_invalid(outcome, q->kind, name ? name : "", &causes);
        return -EINVAL;
    }
    return 0;
}

/* write_check with webhooks. */
static int check_asking(struct write *w, struct json *obj, const struct json *old,
                        struct outcome *outcome)
{
    struct request *q = w->q;
    struct webhooks *hooks = w->server->webhooks;
    struct webhook_question question = {.q = q,
                                        .operation = old ? WEBHOOK_UPDATE : WEBHOOK_CREATE,
                                        .obj = obj,
                                        .old = old,
                                        .again = try_again,
                                        .ctx = w};
    struct webhook_part part;
    CLEANUP(json_free) struct json *scale = NULL;
    int r = 0;
    /* A run has the object as the plug-ins and the mutating webhooks have changed it. */
    if (!w->webhooks && (r = admission_admit(q, obj, old, outcome)) < 0) {
        return r;
    }
    question.part = part_of(w, obj, &part, &scale);
    if (question.part && !scale) {
        question.operation = WEBHOOK_CREATE;
    }
    bool stale = w->webhooks && webhooks_is_stale(w->webhooks, old);
    if (stale && (r = admission_admit(q, obj, old, outcome)) < 0) {
        return r;
    }
    r = webhooks_mutate(hooks, &w->webhooks, &question, outcome);
    if (r < 0) {
        return asked(r, outcome);
    }
    r = admission_validate(q, obj, old, outcome);
    r = r < 0 ? r : validate(q, obj, old, outcome);
    return r < 0 ? r : asked(webhooks_validate(hooks, &w->webhooks, &question, outcome), outcome);
}

int write_check(struct write *w, struct json *obj, const struct json *old, struct outcome *outcome)
{
    if (w->webhooks || webhooks_exist(w->server->webhooks)) {
        return check_asking(w, obj, old, outcome);
    }
    int r = admission_run(w->q, obj, old, outcome);
    return r < 0 ? r : validate(w->q, obj, old, outcome);
}

int write_check_deletion(struct write *w, const struct json *old, struct outcome *outcome)
{
    struct webhooks *hooks = w->server->webhooks;
    struct webhook_question question = {
        .q = w->q, .operation = WEBHOOK_DELETE, .old = old, .again = try_again, .ctx = w};
    if (!w->webhooks && !webhooks_exist(hooks)) {
        return 0;
    }
    int r = webhooks_mutate(hooks, &w->webhooks, &question, outcome);
    return asked(r < 0 ? r : webhooks_validate(hooks, &w->webhooks, &question, outcome), outcome);
}

int write_read_body(struct request *q, struct json **ret, struct outcome *outcome)
{
    struct err e = {0};
    int r = request_body(q, ret, &e);
    if (r == -EPROTONOSUPPORT) {
        outcome_error(outcome, 415, "UnsupportedMediaType", "%s", e.text);
    } else if (r < 0) {
        outcome_error(outcome, 400, "BadRequest", "the body of the request cannot be read: %s",
                      e.text);
    }
    return r;
}

int write_settle(struct write *w, struct json *obj, const struct json *old, struct outcome *outcome)
{
    int r = alloc_settle(w->q, &w->alloc, w->key, obj, old, outcome);
    r = r < 0 ? r : uids_settle(w->q, &w->uids, w->attempts, obj, old, outcome);
    struct quota_attempt attempt = {.q = w->q,
                                    .ck = w->ck,
                                    .key = w->key,
                                    .obj = obj,
                                    .old = old,
                                    .again = try_again,
                                    .ctx = w};
    if (r < 0) {
        return r;
    }
    quota_fill_status(w->server->quotas, w->ck, w->key, obj);
    return quota_settle(w->server->quotas, &w->quota, &attempt, outcome);
}

/* ---- create ---- */

/* Also called for another attempt with another generated name. */
static void attempt_create(struct write *w, struct outcome *outcome)
{
    if (w->attempts && w->generated) {
        object_generate_name(w->body);
        if (w->q->kind->defaults) {
            w->q->kind->defaults(w->body); /* The defaults may depend on the name. */
        }
        free(w->key);
        w->key = cache_key(w->q->namespace, json_path_string(w->body, "metadata", "name", NULL));
    }
    /* Numbers chosen now may belong to another object at the next attempt. */
    CLEANUP(json_free)
    struct json *copy =
        alloc_concerns(w->server->alloc, w->ck) || uids_concerns(w->server->uids, w->ck)
            ? json_clone(w->body)
            : NULL;
    struct json *obj = copy ? copy : w->body;
    CLEANUP(blob_unref) struct blob *value = NULL;
    if (write_settle(w, obj, NULL, outcome) < 0 || !(value = write_encode(w->q, obj, outcome))) {
        return;
    }
    if (!w->q->dry_run) {
        write_put(w, NULL, TAKE(value), outcome);
    } else if (keyset_get(&w->ck->objects, w->key)) {
        outcome_exists(outcome, w->q->kind, name_of(w));
    } else {
        outcome_object(outcome, 201, TAKE(value));
    }
}

/* The first attempt: admission may change the object once. */
static void attempt_new(struct write *w, struct outcome *outcome)
{
    if (write_awaits(w, w->body, outcome) || write_check(w, w->body, NULL, outcome) < 0) {
        return;
    }
    fields_record(w->q, NULL, w->body);
    free(w->key);
    w->key = cache_key(w->q->namespace, json_path_string(w->body, "metadata", "name", NULL));
    w->attempt = attempt_create;
    attempt_create(w, outcome);
}

void handle_create(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *obj = NULL;
    struct err e = {0};
    const struct api_kind *k = q->kind;
    if (write_begin(q, outcome) < 0 || write_read_body(q, &obj, outcome) < 0) {
        return;
    }
    if (q->ck->crd && crd_is_terminating(q->ck->crd)) {
        outcome_error(outcome, 405, "MethodNotAllowed",
                      "create not allowed while custom resource definition is terminating");
        return;
    }
    struct object_target target = {.kind = k, .namespace = q->namespace};
    if (object_check_target(obj, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return;
    }
    if (json_string_size(json_path(obj, "metadata", "resourceVersion", NULL))) {
        outcome_error(outcome, 400, "BadRequest",
                      "resourceVersion should not be set on objects to be created");
        return;
    }
    bool named = json_string_size(json_path(obj, "metadata", "name", NULL)) > 0;
    bool generates = json_string_size(json_path(obj, "metadata", "generateName", NULL)) > 0;
    if (fields_prune(q, obj, false, outcome) < 0) {
        return;
    }
    object_conform(k, obj);
    object_prepare_create(k, obj, time_wall_ms());
    struct write *w = write_new(q, q->ck, "", attempt_new); /* A valid object has a name. */
    w->generated = !named && generates;
    w->body = TAKE(obj);
    outcome_take_over(outcome);
    write_try(w);
}

/* ---- update and patch ---- */

int write_check_preconditions(struct request *q, const struct json *obj, const struct json *old,
                              struct outcome *outcome)
{
    const struct json *version = json_path(obj, "metadata", "resourceVersion", NULL);
    const struct json *uid = json_path(obj, "metadata", "uid", NULL);
    bool versioned = q->kind->custom || q->kind->versioned_update;
    if (versioned && json_count(old) && q->verb == VERB_UPDATE && json_string_size(version) == 0 &&
        !streq(q->subresource, "scale")) {
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        api_invalid(&causes, "metadata.resourceVersion", NULL,
                    "0x0: must be specified for an update");
        outcome_invalid(outcome, q->kind, q->name, &causes);
        return -EINVAL;
    }
    if (json_string_size(version) &&
        !json_equal(version, json_path(old, "metadata", "resourceVersion", NULL))) {
        outcome_conflict(outcome, q->kind, q->name, MODIFIED_TEXT);
        return -ESTALE;
    }
    const char *has = json_path_string(old, "metadata", "uid", NULL);
    if (json_string_size(uid) && !json_equal(uid, json_path(old, "metadata", "uid", NULL))) {
        CLEANUP_FREE char *why =
            xasprintf("Precondition failed: UID in precondition: %.64s, UID in object meta: %s",
                      json_get_string(uid), has ? has : "");
        outcome_conflict(outcome, q->kind, q->name, why);
        return -ESTALE;
    }
    return 0;
}

/* The object as the client wants it; NULL: the outcome is filled. */
static struct json *desired(struct write *w, const struct json *old, struct outcome *outcome)
{
    struct err e = {0};
    if (!w->patch) {
        return json_clone(w->body);
    }
    CLEANUP(json_free)
    struct json *obj =
        streq(w->q->subresource, "scale") ? scale_of(w->q->kind, old) : json_clone(old);
    int r = w->patch(w, &obj, &e);
    if (r == 0) {
        return TAKE(obj);
    }
    if (r == -EINVAL) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
    } else if (r == -E2BIG) {
        outcome_error(outcome, 413, "RequestEntityTooLarge", "%s", e.text);
    } else {
        outcome_error(outcome, 422, "Invalid", "%s", e.text);
    }
    return NULL;
}

struct blob *write_finish(struct write *w, struct json *obj, const struct json *old, bool *ret_same,
                          struct outcome *outcome)
{
    if (write_check(w, obj, old, outcome) < 0) {
        return NULL;
    }
    if (write_settle(w, obj, old, outcome) < 0) {
        return NULL;
    }
    json_remove(json_get(obj, "metadata"), "resourceVersion");
    CLEANUP(json_free) struct json *before = json_clone(old);
    json_remove(json_get(before, "metadata"), "resourceVersion");
    *ret_same = json_equal(before, obj);
    w->finished = object_is_finished(w->ck->kind, obj);
    w->ending = json_path_string(obj, "metadata", "deletionTimestamp", NULL) != NULL;
    return write_encode(w->q, obj, outcome);
}

/* The bytes to be stored; NULL: the outcome is filled. */
static struct blob *compute(struct write *w, const struct object *base, bool *ret_same,
                            struct outcome *outcome)
{
    struct request *q = w->q;
    const struct api_kind *k = q->kind;
    struct err e = {0};
    CLEANUP(json_free) struct json *old = object_parse_as(base, k);
    CLEANUP(json_free) struct json *obj = desired(w, old, outcome);
    if (!obj) {
        return NULL;
    }
    struct object_target target = {.kind = k, .namespace = q->namespace, .name = q->name};
    bool scale = streq(q->subresource, "scale");
    if ((scale ? scale_check_target : object_check_target)(obj, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return NULL;
    }
    if (write_check_preconditions(q, obj, old, outcome) < 0 ||
        (!scale && fields_prune(q, obj, w->attempts > 0, outcome) < 0)) {
        return NULL;
    }
    if (scale) {
        CLEANUP(json_free) struct json *wish = TAKE(obj);
        obj = json_clone(old);
        scale_put(k, wish, obj);
        json_remove(json_get(obj, "metadata"), "resourceVersion");
    }
    object_conform(k, obj);
    if (scale) {
        object_prepare_update(k, old, obj);
    } else if (*q->subresource) {
        struct json *part = object_prepare_part(k, q->subresource, old, obj);
        json_free(obj);
        obj = part;
    } else {
        object_prepare_update(k, old, obj);
    }
    fields_record(q, old, obj);
    return write_finish(w, obj, old, ret_same, outcome);
}

void write_send_update(struct write *w, struct object *base, struct blob *value, bool same,
                       struct outcome *outcome)
{
    CLEANUP(blob_unref) struct blob *own = value;
    CLEANUP_FREE char *key = cache_store_key(w->ck, w->key);
    /* A value that is to be encrypted anew is stored although it does not change. */
    if (!w->finished && same && !store_is_stale(w->server->store, key)) {
        outcome_object(outcome, 200, blob_ref(base->text));
    } else if (w->q->dry_run) {
        outcome_object(outcome, 200, object_text(w->ck->head, value, base->revision));
    } else {
        send_write(w, base, TAKE(own), w->finished, outcome);
    }
}

/* The bytes of the object that a PUT creates; NULL: the outcome is filled. */
static struct blob *compute_new(struct write *w, struct outcome *outcome)
{
    struct request *q = w->q;
    struct err e = {0};
    CLEANUP(json_free) struct json *obj = json_clone(w->body);
    struct object_target target = {.kind = q->kind, .namespace = q->namespace, .name = q->name};
    if (filter_may_create(q, outcome) < 0) {
        return NULL;
    }
    if (object_check_target(obj, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return NULL;
    }
    CLEANUP(json_free) struct json *nothing = json_object();
    if (write_check_preconditions(q, obj, nothing, outcome) < 0 ||
        fields_prune(q, obj, w->attempts > 0, outcome) < 0) {
        return NULL;
    }
    object_conform(q->kind, obj);
    object_prepare_create(q->kind, obj, time_wall_ms());
    if (write_check(w, obj, NULL, outcome) < 0) {
        return NULL;
    }
    fields_record(q, NULL, obj);
    return write_settle(w, obj, NULL, outcome) < 0 ? NULL : write_encode(q, obj, outcome);
}

void write_send_new(struct write *w, struct blob *value, struct outcome *outcome)
{
    if (value && w->q->dry_run) {
        outcome_object(outcome, 201, value);
    } else if (value) {
        write_put(w, NULL, value, outcome);
    }
}

static void attempt_update(struct write *w, struct outcome *outcome)
{
    struct object *base = keyset_get(&w->ck->objects, w->key);
    bool same;
    if (!base && w->ck->gone) {
        outcome_conflict(outcome, w->q->kind, w->q->name, DEFINITION_CHANGED_TEXT);
    } else if (!base && w->creates_or_updates) {
        write_send_new(w, compute_new(w, outcome), outcome);
    } else if (!base) {
        outcome_not_found(outcome, w->q->kind, w->q->name);
    } else {
        struct blob *value = compute(w, base, &same, outcome);
        if (value) {
            write_send_update(w, base, value, same, outcome);
        }
    }
}

static struct write *update_new(struct request *q, struct json *body)
{
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct write *w = write_new(q, q->ck, key, attempt_update);
    w->body = body;
    return w;
}

void handle_update(struct request *q, struct outcome *outcome)
{
    struct json *obj;
    if (write_begin(q, outcome) < 0 || write_read_body(q, &obj, outcome) < 0) {
        return;
    }
    struct write *w = update_new(q, obj);
    w->creates_or_updates = q->kind->create_on_update && !*q->subresource;
    outcome_take_over(outcome);
    write_try(w);
}

static int patch_json(struct write *w, struct json **obj, struct err *e)
{
    return api_patch_json(obj, w->body, e);
}

static int patch_merge(struct write *w, struct json **obj, struct err *e)
{
    if (!json_is(w->body, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "a merge patch is an object");
    }
    api_patch_merge(obj, w->body);
    return 0;
}

static int patch_strategic(struct write *w, struct json **obj, struct err *e)
{
    return api_patch_strategic(w->q->kind, obj, w->body, e);
}

void handle_patch(struct request *q, struct outcome *outcome)
{
    static const struct {
        const char *type;
        int (*patch)(struct write *w, struct json **obj, struct err *e);
    } types[] = {
        {"application/json-patch+json", patch_json},
        {"application/merge-patch+json", patch_merge},
        {"application/strategic-merge-patch+json", patch_strategic},
    };
    struct json *body;
    CLEANUP_FREE char *type = request_content_type(q);
    if (streq(type, APPLY_TYPE)) {
        handle_apply(q, outcome);
        return;
    }
    /* Custom resources have no strategic merge patch, as in Kubernetes: they do not say how
     * their lists are merged. */
    size_t i = 0, n = ARRAY_SIZE(types) - q->kind->custom;
    while (i < n && !streq(type, types[i].type)) {
        i++;
    }
    if (i == n) {
        outcome_error(outcome, 415, "UnsupportedMediaType",
                      "the body of the request was in an unknown format - accepted media types "
                      "include: %s, %s%s%s, " APPLY_TYPE,
                      types[0].type, types[1].type, n > 2 ? ", " : "", n > 2 ? types[2].type : "");
        return;
    }
    if (write_begin(q, outcome) < 0 || write_read_body(q, &body, outcome) < 0) {
        return;
    }
    struct write *w = update_new(q, body);
    w->patch = types[i].patch;
    outcome_take_over(outcome);
    write_try(w);
}
