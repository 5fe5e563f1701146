/* SPDX-License-Identifier: Apache-2.0 */
/* The steps by which the objects of a TemplateInstance are created. */
#include "api/obj.h"
#include "base/base64.h"
#include "base/mem.h"
#include "base/random.h"
#include "controllers/templates/instances_priv.h"
#include "workload/template_instance.h"
#include "workload/template_process.h"

#define REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"

static const struct json *object_at(const struct instance *in)
{
    return json_at(in->objects, in->at);
}

/* "unable to WHAT RESOURCE, Name=NAME: WHY", as a line of in->text.  The first line always fits, so
 * that an empty text means that nothing is wrong. */
static void add_line(struct instance *in, const char *what, const char *why)
{
    strbuf_addf(&in->text, "%sunable to %s %s, Name=%.253s: %.1024s", in->text.size ? "\n" : "",
                what, in->targets[in->at].resource, obj_name(object_at(in)), why);
}

/* ---- creation ---- */

static void status_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "write the status of a TemplateInstance", text);
        return;
    }
    instance_note(in, obj);
    instance_go(in, w, instance_check);
}

static void step_status(struct instance *in, struct work *w)
{
    instance_set_ready(in, "False", "Waiting", "Waiting for instantiated objects to report ready");
    instance_write_status(in, w, true, status_written);
}

static void step_create(struct instance *in, struct work *w);

static void created_object(struct instance *in, struct work *w, const struct json *obj)
{
    struct json *ref = json_get(json_at(in->refs, in->at), "ref");
    json_set_string(ref, "name", obj_name(obj));
    json_set_string(ref, "uid", obj_uid(obj));
    in->at++;
    step_create(in, w);
}

/* An object of that name was there: it is ours when an answer to its creation was lost. */
static void existing(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    const char *owner = obj_label(obj, TEMPLATE_OWNER_LABEL);
    if (instance_may_retry(error)) {
        work_retry(w, error, "read an object of a TemplateInstance", text);
    } else if (error == 0 && streq_null(owner, obj_uid(in->obj))) {
        created_object(in, w, obj);
    } else {
        add_line(in, "create", "an object of this name exists already");
        instance_fail(in, w);
    }
}

static void created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    const char *name = obj_name(object_at(in));
    if (error == 0) {
        created_object(in, w, obj);
    } else if (error == -EEXIST && *name) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", in->targets[in->at].path, name);
        work_request_by(w, in->as, "GET", path, NULL, existing);
    } else if (instance_may_retry(error) && *name) {
        work_retry(w, error, "create an object of a TemplateInstance", text);
    } else {
        add_line(in, "create", text);
        instance_fail(in, w);
    }
}

static void step_create(struct instance *in, struct work *w)
{
    if (in->at == json_count(in->objects)) {
        instance_go(in, w, step_status);
        return;
    }
    work_request_by(w, in->as, "POST", in->targets[in->at].path, object_at(in), created);
}

/* ---- references, before anything exists ---- */

static void intent_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (error < 0) {
        work_retry(w, error, "write the status of a TemplateInstance", text);
        return;
    }
    instance_note(in, obj);
    instance_go(in, w, step_create);
}

static void step_intent(struct instance *in, struct work *w)
{
    const struct json *o;
    json_free(in->refs);
    in->refs = json_array();
    JSON_FOREACH (o, in->objects) {
        struct json *ref = json_ensure_object(json_append(in->refs, json_object()), "ref");
        json_set_string(ref, "apiVersion", json_get_text(o, "apiVersion"));
        json_set_string(ref, "kind", json_get_text(o, "kind"));
        if (*obj_namespace(o)) {
            json_set_string(ref, "namespace", obj_namespace(o));
        }
        if (*obj_name(o)) {
            json_set_string(ref, "name", obj_name(o));
        }
    }
    instance_set_ready(in, "False", "Waiting", "Objects are being created");
    instance_write_status(in, w, true, intent_written);
}

/* ---- dry runs ---- */

static void step_try(struct instance *in, struct work *w);

static void tried(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    if (instance_may_retry(error)) {
        work_retry(w, error, "try to create an object of a TemplateInstance", text);
        return;
    }
    if (error < 0) {
        add_line(in, "create", text);
    }
    in->at++;
    step_try(in, w);
}

static void step_try(struct instance *in, struct work *w)
{
    while (in->at < json_count(in->objects) && template_object_depends(in->objects, in->at)) {
        in->at++;
    }
    if (in->at < json_count(in->objects)) {
        CLEANUP_FREE char *path = xasprintf("%s?dryRun=All", in->targets[in->at].path);
        work_request_by(w, in->as, "POST", path, object_at(in), tried);
    } else if (in->text.size) {
        instance_fail(in, w);
    } else {
        instance_go(in, w, step_intent);
    }
}

/* ---- access reviews ---- */

static void step_review(struct instance *in, struct work *w);

static void reviewed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    const struct json *status = json_get(obj, "status");
    if (error < 0) {
        work_retry(w, error, "review the access of a TemplateInstance's requester", text);
        return;
    }
    if (!json_get_bool(json_get(status, "allowed"), false)) {
        const char *reason = json_get_text(status, "reason");
        CLEANUP_FREE char *why =
            xasprintf("user \"%s\" has no right to it%s%s",
                      json_get_text(json_path(in->obj, "spec", "requester", NULL), "username"),
                      *reason ? ": " : "", reason);
        add_line(in, "authorize user to create", why);
    }
    in->at++;
    step_review(in, w);
}

static void step_review(struct instance *in, struct work *w)
{
    const struct json *requester = json_path(in->obj, "spec", "requester", NULL);
    static const char *const same[] = {"uid", "groups", "extra"};
    if (in->at == json_count(in->objects)) {
        if (in->text.size) {
            instance_fail(in, w);
        } else {
            instance_go(in, w, step_try);
        }
        return;
    }
    CLEANUP(json_free) struct json *review = json_object();
    json_set_string(review, "apiVersion", "authorization.k8s.io/v1");
    json_set_string(review, "kind", "SubjectAccessReview");
    struct json *spec = json_ensure_object(review, "spec");
    json_set_string(spec, "user", json_get_text(requester, "username"));
    for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
        const struct json *v = json_get(requester, same[i]);
        json_set(spec, same[i], v ? json_clone(v) : NULL);
    }
    const char *version = json_get_text(object_at(in), "apiVersion"), *slash = strchr(version, '/');
    struct json *a = json_ensure_object(spec, "resourceAttributes");
    json_set_string(a, "verb", "create");
    json_set(a, "group", json_string_n(version, slash ? (size_t) (slash - version) : 0));
    json_set_string(a, "version", slash ? slash + 1 : version);
    json_set_string(a, "resource", in->targets[in->at].plural);
    json_set_string(a, "namespace", obj_namespace(object_at(in)));
    json_set_string(a, "name", obj_name(object_at(in)));
    work_request(w, "POST", REVIEWS, review, reviewed);
}

/* ---- kinds ---- */

static void set_target(struct instance *in, struct json *o, const struct api_kind *k)
{
    struct target *t = &in->targets[in->at];
    struct json *meta = json_ensure_object(o, "metadata");
    if (!k->namespaced) {
        (void) json_remove(meta, "namespace");
    } else if (!*obj_namespace(o)) {
        json_set_string(meta, "namespace", obj_namespace(in->obj));
    }
    t->path = api_path(json_get_text(o, "apiVersion"), k->plural,
                       k->namespaced ? obj_namespace(o) : NULL, NULL, NULL);
    t->plural = xstrdup(k->plural);
    t->resource = xasprintf("%s%s%s", k->plural, *k->group ? "." : "", k->group);
}

static void step_kinds(struct instance *in, struct work *w)
{
    if (!in->targets) {
        in->n_targets = json_count(in->objects);
        in->targets = xcalloc(in->n_targets + 1, sizeof *in->targets);
    }
    for (; in->at < json_count(in->objects); in->at++) {
        struct json *o = json_at(in->objects, in->at);
        const char *version = json_get_text(o, "apiVersion"), *kind = json_get_text(o, "kind");
        bool waits = false;
        const struct api_kind *k = instance_kind(in, w, version, kind, &waits);
        if (waits) {
            return;
        }
        if (k && (discovery_verbs(k) & DISCOVERY_CREATE)) {
            set_target(in, o, k);
        } else {
            strbuf_addf(&in->text,
                        "%sunable to identify the resource mapping for %.253s, Kind=%.253s: %s",
                        in->text.size ? "\n" : "", version, kind,
                        k ? "its objects cannot be created"
                          : "the server has no such kind in this version");
        }
    }
    if (in->text.size) {
        instance_fail(in, w);
    } else {
        instance_go(in, w, step_review);
    }
}

/* ---- processing ---- */

static void step_process(struct instance *in, struct work *w)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    CLEANUP(json_free) struct json *processed = NULL;
    struct json *o;
    if (template_process(in->template, random_bytes, &processed, &causes) < 0) {
        for (size_t i = 0; i < causes.n; i++) {
            strbuf_addf(&in->text, "%sunable to process Template objects: %s: %.1024s",
                        i ? "\n" : "", causes.list[i].field, causes.list[i].message);
        }
        instance_fail(in, w);
        return;
    }
    in->objects = json_take(processed, "objects");
    JSON_FOREACH (o, in->objects) {
        json_set_string(json_ensure_object(json_ensure_object(o, "metadata"), "labels"),
                        TEMPLATE_OWNER_LABEL, obj_uid(in->obj));
    }
    instance_go(in, w, step_kinds);
}

/* ---- the Secret ---- */

/* Whether the bytes are text of UTF-8 without NUL: they come back from JSON as they were. */
static bool is_text(const struct strbuf *b)
{
    CLEANUP_STRBUF struct strbuf quoted = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = NULL;
    json_write_string(strbuf_cstr(b), b->size, &quoted);
    return json_parse(quoted.data, quoted.size, &v, NULL) == 0 && json_string_size(v) == b->size &&
           memcmp(json_get_string(v), strbuf_cstr(b), b->size) == 0;
}

static void got_secret(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct instance *in = instance_of(ctx, w);
    const struct json *data = json_get(obj, "data");
    if (instance_may_retry(error)) {
        work_retry(w, error, "read the Secret of a TemplateInstance", text);
        return;
    }
    if (error < 0) {
        strbuf_addf(&in->text, "unable to retrieve TemplateInstance Secret: %.1024s", text);
    }
    for (size_t i = 0; i < json_count(data) && !in->text.size; i++) {
        CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
        const struct json *v = json_at(data, i);
        if (base64_decode(json_get_string(v), json_string_size(v), &value) < 0 ||
            !is_text(&value)) {
            strbuf_addf(&in->text,
                        "the value of the key %s of the TemplateInstance Secret is not "
                        "text",
                        json_key_at(data, i));
        } else {
            (void) template_set_parameter(in->template, json_key_at(data, i), strbuf_cstr(&value));
        }
    }
    if (in->text.size) {
        instance_fail(in, w);
    } else {
        instance_go(in, w, step_process);
    }
}

void instantiate(struct instance *in, struct work *w)
{
    const struct json *spec = json_get(in->obj, "spec");
    const char *secret = json_get_text(json_get(spec, "secret"), "name");
    struct err e = {0};
    if (!in->template) {
        in->template = json_clone(json_get(spec, "template"));
    }
    if (!instance_as(in, &e)) {
        strbuf_addf(&in->text, "spec.requester: %s", e.text);
        instance_fail(in, w);
    } else if (*secret) {
        CLEANUP_FREE char *path = api_path("v1", "secrets", obj_namespace(in->obj), secret, NULL);
        work_request_by(w, in->as, "GET", path, NULL, got_secret);
    } else {
        instance_go(in, w, step_process);
    }
}
