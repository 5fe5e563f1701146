/* SPDX-License-Identifier: Apache-2.0 */
/* Create, update and patch. */
#include "apiserver/write.h"

#include "api/patch.h"
#include "apiserver/filter.h"
#include "base/log.h"
#include "base/timeutil.h"

#include <inttypes.h>

LOG_MODULE("apiserver");

#define MAX_ATTEMPTS 16
#define MAX_NAMES 8 /* Tries of generateName. */

#define MODIFIED_TEXT \
    "the object has been modified; please apply your changes to the latest version and try again"

/* ---- writes in general ---- */

struct write *write_new(struct request *q, struct cache_kind *ck, const char *key,
                        void (*attempt)(struct write *w))
{
    struct apiserver *a = q->server;
    struct write *w = NEW(struct write);
    w->server = a;
    w->q = q;
    w->ck = ck;
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
    json_free(w->body);
    blob_unref(w->value);
    object_unref(w->base);
    free(w->key);
    free(w);
}

int write_begin(struct request *q)
{
    const char *s = http_query(q->x, "dryRun");
    if (s && *s && !streq(s, "All")) {
        respond_error(q, 400, "BadRequest",
                      "dryRun: Unsupported value: \"%.40s\": supported values: \"All\"", s);
        return -EINVAL;
    }
    q->dry_run = s && *s;
    if (q->server->lost) {
        respond_error(q, 503, "ServiceUnavailable", "the store is not available");
        return -EAGAIN;
    }
    return 0;
}

static const char *name_of(const struct write *w)
{
    const char *slash = strchr(w->key, '/');
    return slash && w->ck->kind->namespaced ? slash + 1 : w->key;
}

static void respond_exists(struct request *q, const char *name)
{
    CLEANUP_FREE char *message =
        xasprintf("%s \"%s\" already exists", RESOURCE_TEXT(q->ck->kind), name);
    respond_status(
        q,
        &(struct status){.code = 409, .reason = "AlreadyExists", .message = message, .name = name});
}

void respond_store_error(struct request *q, int error)
{
    static struct log_limit limit;
    switch (error) {
    case -EAGAIN:
    case -ECANCELED:
        respond_error(q, 503, "ServiceUnavailable", "the store is not available");
        break;
    case -E2BIG:
        respond_error(q, 413, "RequestEntityTooLarge", "the object is too large to be stored");
        break;
    default:
        log_limited(&limit, LOG_ERROR, "write failed", "error=%s", strerror(-error));
        respond_error(q, 500, "InternalError", "Internal error occurred: the store failed: %s",
                      strerror(-error));
    }
}

static void put_failed(struct write *w, int error)
{
    struct request *q = w->q;
    bool raced = error == -EEXIST || error == -ESTALE || error == -ENOENT;
    if (raced && w->base && w->attempts < MAX_ATTEMPTS) {
        w->base = object_unref(w->base);
        w->value = blob_unref(w->value);
        w->attempt(w);
        return;
    }
    if (error == -EEXIST && w->generated && w->attempts < MAX_NAMES) {
        w->value = blob_unref(w->value);
        w->attempt(w);
        return;
    }
    if (error == -EEXIST) {
        respond_exists(q, name_of(w));
    } else if (raced) {
        respond_conflict(q, name_of(w), MODIFIED_TEXT);
    } else {
        respond_store_error(q, error);
    }
    write_free(w);
}

static void stored(void *ctx, int error, uint64_t revision)
{
    struct write *w = ctx;
    metrics_count_store(w->server->metrics, w->deletes, error, time_mono_ns() - w->sent_ns);
    if (w->deletion) {
        delete_stored(w, error, revision);
        return;
    }
    if (error < 0) {
        put_failed(w, error);
        return;
    }
    CLEANUP(blob_unref) struct blob *text = object_text(w->ck->head, w->value, revision);
    respond_object(w->q, w->base ? 200 : 201, text);
    write_free(w);
}

static void send_write(struct write *w, struct object *base, struct blob *value, bool deletes)
{
    CLEANUP_FREE char *key = cache_store_key(w->ck, w->key);
    w->base = base ? object_ref(base) : NULL;
    w->value = value;
    w->attempts++;
    w->deletes = deletes;
    w->sent_ns = time_mono_ns();
    if (deletes) {
        store_delete(w->server->store, key, base->revision, stored, w);
    } else {
        store_put(w->server->store, key, value, base ? base->revision : STORE_ABSENT, stored, w);
    }
}

void write_put(struct write *w, struct object *base, struct blob *value)
{
    send_write(w, base, value, false);
}

void write_delete(struct write *w, struct object *base, struct blob *value)
{
    send_write(w, base, value, true);
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

/* Encodes 'obj'; after a failure the request was answered. */
static struct blob *encode(struct request *q, const struct json *obj)
{
    struct blob *value = NULL;
    if (object_encode(q->ck->kind, obj, &value) < 0) {
        respond_error(q, 400, "BadRequest", "the object is nested more than %d levels deep",
                      OBJECT_MAX_DEPTH);
    }
    return value;
}

/* Causes were found: answers. */
static bool invalid(struct request *q, const struct json *obj, const struct json *old)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    object_validate(q->ck->kind, obj, old, &causes);
    if (causes.n) {
        const char *name = json_path_string(obj, "metadata", "name", NULL);
        respond_invalid(q, name ? name : "", &causes);
    }
    return causes.n > 0;
}

int read_body(struct request *q, struct json **ret)
{
    struct err e = {0};
    int r = request_body(q, ret, &e);
    if (r == -EPROTONOSUPPORT) {
        respond_error(q, 415, "UnsupportedMediaType", "%s", e.text);
    } else if (r < 0) {
        respond_error(q, 400, "BadRequest", "the body of the request cannot be read: %s", e.text);
    }
    return r;
}

/* ---- create ---- */

/* The namespace of a new object must be there, and not on its way out. */
static int check_namespace(struct request *q, const char *name)
{
    const char *ns = q->namespace;
    if (!ns) {
        return 0;
    }
    struct cache_kind *namespaces =
        cache_find(&q->server->cache, api_kind_find("", "v1", "namespaces"));
    const struct object *o = keyset_get(&namespaces->objects, ns);
    if (!o) {
        CLEANUP_FREE char *message = xasprintf("namespaces \"%s\" not found", ns);
        respond_status(q, &(struct status){.code = 404,
                                           .reason = "NotFound",
                                           .message = message,
                                           .name = ns,
                                           .kind = "namespaces"});
        return -ENOENT;
    }
    int phase = api_field_find(namespaces->kind, "status.phase");
    if (!streq(api_index_field(o->index, (size_t) phase), "Terminating")) {
        return 0;
    }
    CLEANUP_FREE char *why = xasprintf("namespace %s is being terminated", ns);
    CLEANUP_FREE char *message =
        xasprintf("%s \"%s\" is forbidden: unable to create new content in namespace %s because it "
                  "is being terminated",
                  RESOURCE_TEXT(q->ck->kind), name ? name : "", ns);
    struct api_cause cause = {
        .field = (char *) "metadata.namespace", .reason = "NamespaceTerminating", .message = why};
    struct api_causes causes = {.list = &cause, .n = 1};
    respond_status(q, &(struct status){.code = 403,
                                       .reason = "Forbidden",
                                       .message = message,
                                       .name = name,
                                       .causes = &causes});
    return -EACCES;
}

/* Also tried again under another generated name. */
static void attempt_create(struct write *w)
{
    if (w->attempts) {
        object_generate_name(w->body);
        if (w->ck->kind->defaults) {
            w->ck->kind->defaults(w->body); /* They may depend on the name. */
        }
        free(w->key);
        w->key = cache_key(w->q->namespace, json_path_string(w->body, "metadata", "name", NULL));
    }
    struct blob *value = encode(w->q, w->body);
    if (!value) {
        write_free(w);
        return;
    }
    if (w->q->dry_run) {
        const struct json *name = json_path(w->body, "metadata", "name", NULL);
        if (keyset_get(&w->ck->objects, w->key)) {
            respond_exists(w->q, json_get_string(name));
        } else {
            respond_object(w->q, 201, value);
        }
        blob_unref(value);
        write_free(w);
        return;
    }
    write_put(w, NULL, value);
}

void handle_create(struct request *q)
{
    CLEANUP(json_free) struct json *obj = NULL;
    struct err e = {0};
    const struct api_kind *k = q->ck->kind;
    if (write_begin(q) < 0 || read_body(q, &obj) < 0) {
        return;
    }
    struct object_target target = {.kind = k, .namespace = q->namespace};
    if (object_check_target(obj, &target, &e) < 0) {
        respond_error(q, 400, "BadRequest", "%s", e.text);
        return;
    }
    if (json_string_size(json_path(obj, "metadata", "resourceVersion", NULL))) {
        respond_error(q, 400, "BadRequest",
                      "resourceVersion should not be set on objects to be created");
        return;
    }
    if (check_namespace(q, json_path_string(obj, "metadata", "name", NULL)) < 0) {
        return;
    }
    bool named = json_string_size(json_path(obj, "metadata", "name", NULL)) > 0;
    object_prepare_create(k, obj, time_wall_ms());
    if (filter_admit(q, obj, NULL) < 0 || invalid(q, obj, NULL)) {
        return;
    }
    CLEANUP_FREE char *key =
        cache_key(q->namespace, json_path_string(obj, "metadata", "name", NULL));
    struct write *w = write_new(q, q->ck, key, attempt_create);
    w->generated = !named;
    w->body = TAKE(obj);
    w->attempt(w);
}

/* ---- update and patch ---- */

/* What the client demands of the object it changes; after a failure the request was answered. */
static int check_preconditions(struct request *q, const struct json *obj, const struct json *old)
{
    const struct json *version = json_path(obj, "metadata", "resourceVersion", NULL);
    const struct json *uid = json_path(obj, "metadata", "uid", NULL);
    if (json_string_size(version) &&
        !json_equal(version, json_path(old, "metadata", "resourceVersion", NULL))) {
        respond_conflict(q, q->name, MODIFIED_TEXT);
        return -ESTALE;
    }
    if (json_string_size(uid) && !json_equal(uid, json_path(old, "metadata", "uid", NULL))) {
        CLEANUP_FREE char *why =
            xasprintf("Precondition failed: UID in precondition: %.64s, UID in object meta: %s",
                      json_get_string(uid), json_path_string(old, "metadata", "uid", NULL));
        respond_conflict(q, q->name, why);
        return -ESTALE;
    }
    return 0;
}

/* The object that the client wants; NULL: the request was answered. */
static struct json *wanted(struct write *w, const struct json *old)
{
    struct err e = {0};
    if (!w->patch) {
        return json_clone(w->body);
    }
    CLEANUP(json_free) struct json *obj = json_clone(old);
    int r = w->patch(w, &obj, &e);
    if (r == 0) {
        return TAKE(obj);
    }
    if (r == -EINVAL) {
        respond_error(w->q, 400, "BadRequest", "%s", e.text);
    } else if (r == -E2BIG) {
        respond_error(w->q, 413, "RequestEntityTooLarge", "%s", e.text);
    } else {
        respond_error(w->q, 422, "Invalid", "%s", e.text);
    }
    return NULL;
}

/* The bytes to be stored, '*ret_finished' when the object goes with them; NULL: the request was answered. */
static struct blob *compute(struct write *w, const struct object *base, bool *ret_finished)
{
    struct request *q = w->q;
    const struct api_kind *k = w->ck->kind;
    struct err e = {0};
    CLEANUP(json_free) struct json *old = object_parse(base);
    CLEANUP(json_free) struct json *obj = wanted(w, old);
    if (!obj) {
        return NULL;
    }
    struct object_target target = {.kind = k, .namespace = q->namespace, .name = q->name};
    if (object_check_target(obj, &target, &e) < 0) {
        respond_error(q, 400, "BadRequest", "%s", e.text);
        return NULL;
    }
    if (check_preconditions(q, obj, old) < 0) {
        return NULL;
    }
    if (*q->subresource) {
        struct json *part = object_prepare_part(k, q->subresource, old, obj);
        json_free(obj);
        obj = part;
    } else {
        object_prepare_update(k, old, obj);
    }
    if (filter_admit(q, obj, old) < 0 || invalid(q, obj, old)) {
        return NULL;
    }
    *ret_finished = object_is_finished(k, obj);
    return encode(q, obj);
}

static void attempt_update(struct write *w)
{
    struct object *base = keyset_get(&w->ck->objects, w->key);
    if (!base) {
        respond_not_found(w->q, w->q->name);
        write_free(w);
        return;
    }
    bool finished;
    CLEANUP(blob_unref) struct blob *value = compute(w, base, &finished);
    if (!value) {
        write_free(w);
        return;
    }
    if (!finished && object_same(base, w->ck->head, value)) {
        respond_object(w->q, 200, base->text);
        write_free(w);
    } else if (w->q->dry_run) {
        CLEANUP(blob_unref) struct blob *text = object_text(w->ck->head, value, base->revision);
        respond_object(w->q, 200, text);
        write_free(w);
    } else {
        send_write(w, base, TAKE(value), finished);
    }
}

static struct write *update_new(struct request *q, struct json *body)
{
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct write *w = write_new(q, q->ck, key, attempt_update);
    w->body = body;
    return w;
}

void handle_update(struct request *q)
{
    struct json *obj;
    if (write_begin(q) < 0 || read_body(q, &obj) < 0) {
        return;
    }
    attempt_update(update_new(q, obj));
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
    return api_patch_strategic(w->ck->kind, obj, w->body, e);
}

void handle_patch(struct request *q)
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
    size_t i = 0;
    while (i < ARRAY_SIZE(types) && !streq(type, types[i].type)) {
        i++;
    }
    if (i == ARRAY_SIZE(types)) {
        respond_error(q, 415, "UnsupportedMediaType",
                      "the body of the request was in an unknown format - accepted media types "
                      "include: %s, %s, %s",
                      types[0].type, types[1].type, types[2].type);
        return;
    }
    if (write_begin(q) < 0 || read_body(q, &body) < 0) {
        return;
    }
    struct write *w = update_new(q, body);
    w->patch = types[i].patch;
    attempt_update(w);
}
