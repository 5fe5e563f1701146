/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/policies.h"

#include "apiserver/request/respond.h"
#include "apiserver/verbs/read.h"
#include "apiserver/verbs/write.h"

#define GROUP "authorization.openshift.io"

static const struct source {
    const char *plural, *parts; /* The kind, and the one of whose objects it is made. */
    const char *list, *member;  /* The field with the parts, and that of a part in its element. */
    bool bindings;
} sources[] = {
    {"policies", "roles", "roles", "role", false},
    {"policybindings", "rolebindings", "roleBindings", "roleBinding", true},
    {"clusterpolicies", "clusterroles", "roles", "role", false},
    {"clusterpolicybindings", "clusterrolebindings", "roleBindings", "roleBinding", true},
};

static const struct source *source_of(const struct request *q)
{
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        if (q->kind == api_kind_find(GROUP, "v1", sources[i].plural)) {
            return &sources[i];
        }
    }
    return NULL;
}

bool policies_are_asked(const struct request *q)
{
    return source_of(q) != NULL;
}

/* ---- objects ---- */

/* Whether the part is of the object: policy bindings are one for local roles and one for cluster
 * roles.  'local' NULL: it takes all parts. */
static bool belongs(const struct json *part, const bool *local)
{
    return !local || *local == (*json_get_text(json_get(part, "roleRef"), "namespace") != '\0');
}

static void add_parts(const struct request *q, const struct source *s, const char *ns,
                      const bool *local, struct json *list)
{
    const struct api_kind *k = api_kind_find(GROUP, "v1", s->parts);
    const struct cache_range range = {.namespace = ns};
    const struct object *o;
    struct cache_walk w;
    cache_walk_init(&w, cache_find(&q->server->cache, k), &range, q->server->cache.revision);
    while ((o = cache_walk_next(&w))) {
        CLEANUP(json_free) struct json *part = object_parse_as(o, k);
        struct json *meta = json_get(part, "metadata");
        if (!belongs(part, local)) {
            continue;
        }
        json_remove(meta, "managedFields");
        struct json *item = json_append(list, json_object());
        json_set_string(item, "name", json_path_string(meta, "name", NULL));
        json_set(item, s->member, TAKE(part));
    }
    cache_walk_done(&w);
}

/* 'local' as in belongs().  NULL: the parts are nested too deeply. */
static struct object *make(const struct request *q, const struct source *s, const char *ns,
                           const bool *local)
{
    CLEANUP(blob_unref) struct blob *text = NULL;
    CLEANUP(json_free) struct json *obj = json_object();
    CLEANUP_FREE char *version = api_kind_api_version(q->kind);
    CLEANUP_FREE char *name =
        s->bindings ? xasprintf("%s:default", local && *local ? ns : "") : xstrdup("default");
    CLEANUP_FREE char *key = cache_key(ns, name);
    struct json *meta = json_ensure_object(obj, "metadata");
    json_set_string(obj, "kind", q->kind->kind);
    json_set_string(obj, "apiVersion", version);
    json_set_string(meta, "name", name);
    json_set_string(meta, "namespace", ns);
    if (s->bindings) {
        struct json *ref = json_ensure_object(obj, "policyRef");
        json_set_string(ref, "namespace", local && *local ? ns : NULL);
        json_set_string(ref, "name", "default");
    }
    add_parts(q, s, ns, local, json_ensure_array(obj, s->list));
    object_complete(q->kind, obj);
    return object_encode(q->kind, obj, &text) < 0
               ? NULL
               : object_new(q->kind, q->ck->head, key, text, q->server->cache.revision);
}

/* The objects of a namespace, or of the cluster. */
struct found {
    struct object **list;
    size_t n, cap;
};

static void add(const struct request *q, const struct source *s, const char *ns, const bool *local,
                const struct selection *sel, struct found *found)
{
    CLEANUP(object_unref) struct object *o = make(q, s, ns, local);
    if (o && (!sel || selection_matches(sel, o))) {
        found->list = grow(found->list, &found->cap, found->n + 1, sizeof *found->list);
        found->list[found->n++] = TAKE(o);
    }
}

/* 'sel' NULL: all. */
static void add_all(const struct request *q, const struct source *s, const char *ns,
                    const struct selection *sel, struct found *found)
{
    static const bool local = true, cluster = false;
    if (s->bindings && ns) {
        add(q, s, ns, &cluster, sel, found);
        add(q, s, ns, &local, sel, found);
    } else {
        add(q, s, ns, NULL, sel, found);
    }
}

static void found_done(struct found *f)
{
    for (size_t i = 0; i < f->n; i++) {
        object_unref(f->list[i]);
    }
    free(f->list);
}

static const struct cache_kind *namespaces(const struct request *q)
{
    return cache_find(&q->server->cache, api_kind_find("", "v1", "namespaces"));
}

/* ---- answers ---- */

static void answer_one(const struct request *q, const struct source *s, const char *name, int code,
                       struct outcome *outcome)
{
    struct found found = {0};
    size_t i = 0;
    if (!q->namespace || keyset_get(&namespaces(q)->objects, q->namespace)) {
        add_all(q, s, q->namespace, NULL, &found);
    }
    while (i < found.n && !streq(api_index_field(found.list[i]->index, 0), name)) {
        i++;
    }
    if (i < found.n) {
        outcome_object(outcome, code, blob_ref(found.list[i]->text));
    } else {
        outcome_not_found(outcome, q->kind, name);
    }
    found_done(&found);
}

static void answer_list(struct request *q, const struct source *s, struct outcome *outcome)
{
    struct selection sel = {0};
    struct found found = {0};
    if (selection_parse(q, &sel, outcome) < 0) {
        return;
    }
    if (q->namespace || !q->kind->namespaced) {
        add_all(q, s, q->namespace, &sel, &found);
    } else {
        struct keyset_pos pos = keyset_seek(&namespaces(q)->objects, "");
        const struct object *o;
        while ((o = keyset_next(&namespaces(q)->objects, &pos))) {
            add_all(q, s, o->key, &sel, &found);
        }
    }
    selection_done(&sel);
    list_answer(q, found.list, found.n, outcome);
    found_done(&found);
}

/* The creation of a PolicyBinding, which must be empty. */
static void accept_empty(struct request *q, const struct source *s, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct object_target target = {.kind = q->kind, .namespace = q->namespace};
    struct err e = {0};
    if (write_read_body(q, &body, outcome) < 0) {
        return;
    }
    if (object_check_target(body, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return;
    }
    const struct json *list = json_get(body, s->list);
    const struct json *name = json_path(body, "metadata", "name", NULL);
    CLEANUP_FREE char *local = xasprintf("%s:default", q->namespace);
    const char *text = json_get_string(name);
    if (list && !json_is(list, JSON_NULL) && !(json_is(list, JSON_ARRAY) && !json_count(list))) {
        api_forbidden(&causes, s->list, "must be empty: write %s instead", q->kind->instead);
    }
    if (!streq_null(text, local) && !streq_null(text, ":default")) {
        api_invalid(&causes, "metadata.name", name, "must be \"%s\" or \":default\"", local);
    }
    if (causes.n) {
        outcome_invalid(outcome, q->kind, text ? text : "", &causes);
        return;
    }
    answer_one(q, s, text, 201, outcome);
}

void handle_policies(struct request *q, struct outcome *outcome)
{
    const struct source *s = source_of(q);
    if (q->verb == VERB_CREATE) {
        accept_empty(q, s, outcome);
    } else if (q->verb == VERB_GET) {
        answer_one(q, s, q->name, 200, outcome);
    } else {
        answer_list(q, s, outcome);
    }
}
