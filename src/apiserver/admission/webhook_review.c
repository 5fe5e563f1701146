/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/webhook_review.h"

#include "api/patch/patch.h"
#include "apiserver/cache/object.h"
#include "base/base64.h"
#include "base/mem.h"

#define REVIEW_KIND "AdmissionReview"
#define REVIEW_VERSION "admission.k8s.io/v1"
#define PATCH_TYPE "JSONPatch"

/* ---- the question ---- */

static void set_kind(struct json *o, const char *key, const char *group, const char *version,
                     const char *last_key, const char *last)
{
    struct json *v = json_set(o, key, json_object());
    json_set_string(v, "group", group);
    json_set_string(v, "version", version);
    json_set_string(v, last_key, last);
}

static void set_text(struct json *o, const char *key, const char *text)
{
    if (*text) {
        json_set_string(o, key, text);
    }
}

static void write_member(struct strbuf *out, const char *key, const struct json *v)
{
    strbuf_addf(out, ",\"%s\":", key);
    if (v) {
        json_write(v, 0, out);
    } else {
        strbuf_adds(out, "null");
    }
}

void webhook_review_write(const struct webhook_review *r, struct strbuf *out)
{
    CLEANUP(json_free) struct json *o = json_object();
    CLEANUP_STRBUF struct strbuf head = STRBUF_INIT;
    json_set_string(o, "uid", r->uid);
    set_kind(o, "kind", r->group, r->version, "kind", r->kind);
    set_kind(o, "resource", r->plural_group, r->plural_version, "resource", r->plural);
    set_text(o, "subResource", r->subresource);
    set_kind(o, "requestKind", r->request_group, r->request_version, "kind", r->request_kind);
    set_kind(o, "requestResource", r->request_plural_group, r->request_plural_version, "resource",
             r->request_plural);
    set_text(o, "requestSubResource", r->subresource);
    set_text(o, "name", r->name);
    set_text(o, "namespace", r->namespace);
    json_set_string(o, "operation", webhook_operation_names[r->operation]);
    json_set(o, "userInfo", json_clone(r->user));
    json_set_bool(o, "dryRun", r->dry_run);
    json_write(o, 0, &head);
    /* The objects are written as they are, without a copy of their trees. */
    strbuf_adds(out,
                "{\"kind\":\"" REVIEW_KIND "\",\"apiVersion\":\"" REVIEW_VERSION "\",\"request\":");
    strbuf_add(out, head.data, head.size - 1);
    write_member(out, "object", r->obj);
    write_member(out, "oldObject", r->old);
    write_member(out, "options", r->options);
    strbuf_adds(out, "}}");
}

/* ---- the answer ---- */

void webhook_answer_done(struct webhook_answer *a)
{
    free(a->message);
    json_free(a->patch);
    json_free(a->warnings);
    json_free(a->annotations);
    *a = (struct webhook_answer){0};
}

/* The reasons of a Status (metav1.StatusReason); others are not passed on. */
static const char *known_reason(const char *reason)
{
    static const char *const reasons[] = {"Unauthorized",
                                          "Forbidden",
                                          "NotFound",
                                          "AlreadyExists",
                                          "Conflict",
                                          "Gone",
                                          "Invalid",
                                          "ServerTimeout",
                                          "StoreReadError",
                                          "Timeout",
                                          "TooManyRequests",
                                          "BadRequest",
                                          "MethodNotAllowed",
                                          "NotAcceptable",
                                          "UnsupportedMediaType",
                                          "InternalError",
                                          "RequestEntityTooLarge",
                                          "Expired",
                                          "ServiceUnavailable",
                                          NULL};
    for (size_t i = 0; reasons[i]; i++) {
        if (streq(reason, reasons[i])) {
            return reasons[i];
        }
    }
    return NULL;
}

/* At most WEBHOOK_MAX_TEXT bytes of 's', not cut within a character; owned. */
static char *bounded(const char *s)
{
    size_t n = strlen(s);
    if (n > WEBHOOK_MAX_TEXT) {
        n = WEBHOOK_MAX_TEXT;
        while (n > 0 && ((unsigned char) s[n] & 0xc0) == 0x80) {
            n--;
        }
    }
    return xstrndup(s, n);
}

static void read_refusal(const struct json *status, struct webhook_answer *a)
{
    int64_t code = json_get_int_or(json_get(status, "code"), 0);
    const char *message = json_get_text(status, "message"),
               *reason = json_get_text(status, "reason");
    /* A refusal never looks like success, as in Kubernetes. */
    a->code = code >= 400 && code <= 599 ? (int) code : 400;
    a->reason = known_reason(reason);
    a->message = bounded(*message ? message : reason);
}

static int read_patch(const struct json *response, bool mutates, struct json **ret, struct err *e)
{
    const struct json *patch = json_get(response, "patch"), *type = json_get(response, "patchType");
    bool has_type = type && !json_is(type, JSON_NULL);
    CLEANUP_STRBUF struct strbuf text = {.max = WEBHOOK_MAX_ANSWER};
    struct err why = {0};
    if (patch && !json_is(patch, JSON_NULL) && !json_is(patch, JSON_STRING)) {
        return err_set(e, -EPROTO, "response.patch is not a text in base64");
    }
    if (!mutates && (json_string_size(patch) || has_type)) {
        return err_set(e, -EPROTO, "a patch is not accepted in this answer");
    }
    if (!json_string_size(patch) && !has_type) {
        return 0;
    }
    if (!json_string_size(patch)) {
        return err_set(e, -EPROTO, "webhook returned response.patchType but not response.patch");
    }
    if (!has_type) {
        return err_set(e, -EPROTO, "webhook returned response.patch but not response.patchType");
    }
    if (!streq_null(json_get_string(type), PATCH_TYPE)) {
        return err_set(e, -EPROTO, "webhook returned invalid response.patchType of \"%.40s\"",
                       json_get_string(type) ? json_get_string(type) : "");
    }
    if (base64_decode(json_get_string(patch), json_string_size(patch), &text) < 0) {
        return err_set(e, -EPROTO, "response.patch is not base64");
    }
    if (json_parse(strbuf_cstr(&text), text.size, ret, &why) < 0) {
        return err_set(e, -EPROTO, "response.patch is not JSON: %.200s", why.text);
    }
    return 0;
}

static void read_warnings(const struct json *response, struct webhook_answer *a)
{
    const struct json *list = json_get(response, "warnings"), *v;
    JSON_FOREACH (v, list) {
        if (json_string_size(v) && json_count(a->warnings) < WEBHOOK_MAX_WARNINGS) {
            CLEANUP_FREE char *text = bounded(json_get_string(v));
            a->warnings = a->warnings ? a->warnings : json_array();
            json_append(a->warnings, json_string(text));
        }
    }
}

/* Annotations of the audit log; keys that are no names of annotations are left out. */
static void read_annotations(const struct json *response, struct webhook_answer *a)
{
    const struct json *map = json_get(response, "auditAnnotations");
    for (size_t i = 0; json_is(map, JSON_OBJECT) && i < json_count(map); i++) {
        const char *key = json_key_at(map, i), *value = json_get_string(json_at(map, i));
        if (value && !strchr(key, '/') && !api_check_qualified_name(key) &&
            json_count(a->annotations) < WEBHOOK_MAX_ANNOTATIONS) {
            CLEANUP_FREE char *text = bounded(value);
            a->annotations = a->annotations ? a->annotations : json_object();
            json_set_string(a->annotations, key, text);
        }
    }
}

int webhook_answer_read(const char *body, size_t size, const char *uid, bool mutates,
                        struct webhook_answer *ret, struct err *e)
{
    CLEANUP(json_free) struct json *review = NULL;
    CLEANUP(webhook_answer_done) struct webhook_answer a = {0};
    struct err why = {0};
    if (size > WEBHOOK_MAX_ANSWER) {
        return err_set(e, -EPROTO, "the answer has more than %zu bytes", WEBHOOK_MAX_ANSWER);
    }
    if (json_parse(body, size, &review, &why) < 0) {
        return err_set(e, -EPROTO, "the answer is not JSON: %.200s", why.text);
    }
    const struct json *response = json_get(review, "response");
    const struct json *allowed = json_get(response, "allowed");
    if (!streq(json_get_text(review, "kind"), REVIEW_KIND) ||
        !streq(json_get_text(review, "apiVersion"), REVIEW_VERSION)) {
        return err_set(e, -EPROTO,
                       "expected webhook response of " REVIEW_VERSION ", Kind=" REVIEW_KIND
                       ", got %.60s, Kind=%.60s",
                       json_get_text(review, "apiVersion"), json_get_text(review, "kind"));
    }
    if (!json_is(response, JSON_OBJECT)) {
        return err_set(e, -EPROTO, "webhook response was absent");
    }
    if (!streq(json_get_text(response, "uid"), uid)) {
        return err_set(e, -EPROTO, "expected response.uid=\"%s\", got \"%.60s\"", uid,
                       json_get_text(response, "uid"));
    }
    if (!json_is(allowed, JSON_BOOL)) {
        return err_set(e, -EPROTO, "response.allowed is not true or false");
    }
    a.allowed = json_get_bool(allowed, false);
    int r = read_patch(response, mutates, &a.patch, e);
    if (r < 0) {
        return r;
    }
    if (!a.allowed) {
        read_refusal(json_get(response, "status"), &a);
    }
    read_warnings(response, &a);
    read_annotations(response, &a);
    *ret = a;
    a = (struct webhook_answer){0};
    return 0;
}

/* ---- the patch ---- */

/* Checks that the patch leaves the object where and what it is. */
static int check_identity(const struct json *was, const struct json *is, struct err *e)
{
    static const char *const top[] = {"apiVersion", "kind", NULL};
    static const char *const meta[] = {"name",
                                       "generateName",
                                       "namespace",
                                       "uid",
                                       "resourceVersion",
                                       "generation",
                                       "creationTimestamp",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "selfLink",
                                       NULL};
    const struct json *old_meta = json_get(was, "metadata"), *new_meta = json_get(is, "metadata");
    if (!json_is(is, JSON_OBJECT) || !json_is(new_meta, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "its patch leaves no object with metadata");
    }
    for (size_t i = 0; top[i]; i++) {
        const struct json *a = json_get(was, top[i]), *b = json_get(is, top[i]);
        if ((a || b) && !(a && b && json_equal(a, b))) {
            return err_set(e, -EINVAL, "its patch changes %s, which no webhook may change", top[i]);
        }
    }
    for (size_t i = 0; meta[i]; i++) {
        const struct json *a = json_get(old_meta, meta[i]), *b = json_get(new_meta, meta[i]);
        if ((a || b) && !(a && b && json_equal(a, b))) {
            return err_set(e, -EINVAL, "its patch changes metadata.%s, which no webhook may change",
                           meta[i]);
        }
    }
    return 0;
}

/* Puts the member of 'from' back into 'to'. */
static void restore(struct json *to, const struct json *from, const char *key)
{
    const struct json *v = json_get(from, key);
    if (v) {
        json_set(to, key, json_clone(v));
    } else {
        json_remove(to, key);
    }
}

int webhook_patch(const struct api_kind *k, const char *subresource, const struct json *obj,
                  const struct json *patch, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *made = json_clone(obj);
    CLEANUP_STRBUF struct strbuf text = {.max = WEBHOOK_MAX_OBJECT};
    struct err why = {0};
    int r = api_patch_json(&made, patch, &why);
    if (r < 0) {
        return err_set(e, r == -E2BIG ? r : -EINVAL, "its patch does not apply: %.300s", why.text);
    }
    r = check_identity(obj, made, e);
    if (r < 0) {
        return r;
    }
    restore(json_get(made, "metadata"), json_get(obj, "metadata"), "managedFields");
    if (k->status_subresource && !streq(subresource, "status")) {
        restore(made, obj, "status");
    }
    object_conform(k, made);
    json_write(made, 0, &text);
    if (text.failed) {
        return err_set(e, -E2BIG, "its patch makes the object larger than %zu bytes",
                       WEBHOOK_MAX_OBJECT);
    }
    *ret = TAKE(made);
    return 0;
}
