/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/revision.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/template_hash.h"

#define HASH_LABEL "controller.kubernetes.io/hash"
#define MAX_PREFIX 223 /* Of a name, before the hash. */

static int64_t number_of(const struct json *revision)
{
    return json_get_int_or(json_get(revision, "revision"), 0);
}

static int compare(const void *x, const void *y)
{
    const struct workload_child *a = x, *b = y;
    int64_t a_no = number_of(a->obj), b_no = number_of(b->obj);
    if (a_no != b_no) {
        return a_no < b_no ? -1 : 1;
    }
    return strcmp(obj_name(a->obj), obj_name(b->obj));
}

/* What a revision keeps: a strategic merge patch of the owner; owned. */
static struct json *data_of(const struct json *owner)
{
    struct json *data = json_object(), *spec = json_ensure_object(data, "spec");
    const struct json *template = json_path(owner, "spec", "template", NULL);
    struct json *t = json_set(spec, "template", template ? json_clone(template) : json_object());
    json_set_string(t, "$patch", "replace");
    return data;
}

static char *name_with(const struct json *owner, const char *hash)
{
    return xasprintf("%.*s-%s", MAX_PREFIX, obj_name(owner), hash);
}

const char *revision_hash(const struct json *revision)
{
    const char *s = obj_label(revision, HASH_LABEL);
    s = s ? s : obj_label(revision, REVISION_LABEL);
    return s ? s : "";
}

const struct json *revision_template(const struct json *revision)
{
    return json_path(revision, "data", "spec", "template", NULL);
}

static void create(struct workload_plan *p, const struct workload_kind *owner_kind,
                   const struct json *owner, struct json *data, int64_t number, struct revisions *r)
{
    char hash[TEMPLATE_HASH_SIZE];
    const struct json *labels = json_path(owner, "spec", "template", "metadata", "labels", NULL);
    template_hash(data, json_get_int_or(json_path(owner, "status", "collisionCount", NULL), 0),
                  hash);
    CLEANUP_FREE char *name = name_with(owner, hash);
    struct json *o = obj_new(workload_revisions.api_version, workload_revisions.kind,
                             obj_namespace(owner), name);
    struct json *meta = json_get(o, "metadata");
    struct json *own = json_set(meta, "labels", labels ? json_clone(labels) : json_object());
    json_set_string(own, HASH_LABEL, hash);
    json_set_string(own, REVISION_LABEL, hash);
    json_append(json_ensure_array(meta, "ownerReferences"), workload_owner_ref(owner_kind, owner));
    json_set(o, "data", data);
    json_set_int(o, "revision", number);
    (void) workload_plan_add(p, WORKLOAD_FIRST, WORKLOAD_CREATE, &workload_revisions, name, o);
    r->update_name = TAKE(name);
    r->update_hash = xstrdup(hash);
}

/* The revision becomes the newest one: its template is the present one again. */
static void renumber(struct workload_plan *p, const struct json *revision, int64_t number)
{
    struct json *o = json_clone(revision);
    json_set_string(o, "apiVersion", workload_revisions.api_version);
    json_set_string(o, "kind", workload_revisions.kind);
    json_set_int(o, "revision", number);
    (void) workload_plan_add(p, WORKLOAD_FIRST, WORKLOAD_UPDATE, &workload_revisions,
                             obj_name(revision), o);
}

void revisions_load(struct workload_plan *p, const struct workload_kind *owner_kind,
                    const struct json *owner, struct workload_child *list, size_t n,
                    struct revisions *ret)
{
    CLEANUP(json_free) struct json *data = data_of(owner);
    n = workload_claim(p, owner_kind, owner, json_path(owner, "spec", "selector", NULL),
                       &workload_revisions, list, n);
    if (n) {
        qsort(list, n, sizeof *list, compare);
    }
    *ret = (struct revisions){.list = list, .n = n};
    p->met = revision_name_is_met;
    int64_t newest = n ? number_of(list[n - 1].obj) : 0;
    for (size_t i = n; i-- > 0;) {
        const struct json *o = list[i].obj, *has = json_get(o, "data");
        if (!list[i].going && has && json_equal(has, data)) {
            ret->update = o;
            ret->update_name = xstrdup(obj_name(o));
            ret->update_hash = xstrdup(revision_hash(o));
            if (i + 1 < n && !obj_is_terminating(owner)) {
                renumber(p, o, newest + 1);
            }
            return;
        }
    }
    create(p, owner_kind, owner, TAKE(data), newest + 1, ret);
}

void revisions_done(struct revisions *r)
{
    free(r->update_name);
    free(r->update_hash);
}

const struct json *revisions_find(const struct revisions *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++) {
        if (streq(obj_name(r->list[i].obj), name)) {
            return r->list[i].obj;
        }
    }
    return NULL;
}

void revisions_clean_up(struct workload_plan *p, const struct json *owner,
                        const struct revisions *r, bool (*lives)(void *ctx, const struct json *rev),
                        void *ctx)
{
    int64_t limit =
        json_get_int_or(json_path(owner, "spec", "revisionHistoryLimit", NULL), INT32_MAX);
    int64_t dead = 0;
    for (size_t i = 0; i < r->n; i++) {
        dead += r->list[i].obj != r->update && !lives(ctx, r->list[i].obj);
    }
    for (size_t i = 0; i < r->n && dead > limit; i++) {
        const struct json *o = r->list[i].obj;
        if (o != r->update && !lives(ctx, o)) {
            (void) workload_plan_delete(p, WORKLOAD_MAIN, &workload_revisions, o);
            dead--;
        }
    }
}

bool revision_name_is_met(struct json *object, const struct workload_write *w,
                          const struct json *live)
{
    if (w->kind != &workload_revisions) {
        return false; /* A pod or a claim that belongs to somebody else. */
    }
    const struct json *ref = obj_controller(live), *has = json_get(live, "data");
    bool own = ref && streq(json_get_text(ref, "uid"), obj_uid(object)) && has &&
               json_equal(has, json_get(w->body, "data"));
    if (!own) {
        struct json *status = json_ensure_object(object, "status");
        json_set_int(status, "collisionCount",
                     json_get_int_or(json_get(status, "collisionCount"), 0) + 1);
    }
    return true;
}
