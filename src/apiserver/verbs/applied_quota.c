/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/applied_quota.h"

#include "apiserver/admission/quota.h"
#include "apiserver/verbs/read.h"

#define GROUP "quota.openshift.io"

bool applied_quota_is_asked(const struct request *q)
{
    return q->kind == api_kind_find(GROUP, "v1", "appliedclusterresourcequotas");
}

static const struct cache_kind *clusters(const struct request *q)
{
    return cache_find(&q->server->cache, api_kind_find(GROUP, "v1", "clusterresourcequotas"));
}

/* Leaves only the namespace's own entry. */
static void hide_others(struct json *obj, const char *namespace)
{
    struct json *status = json_ensure_object(obj, "status"), *own = json_array();
    const struct json *item;
    JSON_FOREACH (item, json_get(status, "namespaces")) {
        if (streq(json_get_text(item, "namespace"), namespace)) {
            json_append(own, json_clone(item));
        }
    }
    json_set(status, "namespaces", own);
}

static struct object *make(const struct request *q, const struct object *of, const char *namespace)
{
    CLEANUP(blob_unref) struct blob *text = NULL;
    CLEANUP(json_free) struct json *obj = object_parse(of);
    CLEANUP_FREE char *version = api_kind_api_version(q->kind);
    CLEANUP_FREE char *key = cache_key(namespace, of->key);
    struct json *meta = json_ensure_object(obj, "metadata");
    json_set_string(obj, "kind", q->kind->kind);
    json_set_string(obj, "apiVersion", version);
    json_set_string(meta, "namespace", namespace);
    json_remove(meta, "managedFields");
    hide_others(obj, namespace);
    return object_encode(q->kind, obj, &text) < 0
               ? NULL
               : object_new(q->kind, q->ck->head, key, text, of->revision);
}

static void get_one(const struct request *q, struct outcome *outcome)
{
    CLEANUP_FREE const char **names = quotas_of_namespace(q->server->quotas, q->namespace);
    size_t i = 0;
    while (names[i] && !streq(names[i], q->name)) {
        i++;
    }
    const struct object *of = names[i] ? keyset_get(&clusters(q)->objects, names[i]) : NULL;
    CLEANUP(object_unref) struct object *o = of ? make(q, of, q->namespace) : NULL;
    if (o) {
        outcome_object(outcome, 200, blob_ref(o->text));
    } else {
        outcome_not_found(outcome, q->kind, q->name);
    }
}

/* The selected objects of one namespace. */
struct found {
    struct object **list;
    size_t n, cap;
};

static void add_namespace(const struct request *q, const char *namespace,
                          const struct selection *sel, struct found *found)
{
    CLEANUP_FREE const char **names = quotas_of_namespace(q->server->quotas, namespace);
    for (size_t i = 0; names[i]; i++) {
        const struct object *of = keyset_get(&clusters(q)->objects, names[i]);
        CLEANUP(object_unref) struct object *o = of ? make(q, of, namespace) : NULL;
        if (o && selection_matches(sel, o)) {
            found->list = grow(found->list, &found->cap, found->n + 1, sizeof *found->list);
            found->list[found->n++] = TAKE(o);
        }
    }
}

static void get_list(struct request *q, struct outcome *outcome)
{
    struct selection sel = {0};
    struct found found = {0};
    if (selection_parse(q, &sel, outcome) < 0) {
        return;
    }
    if (q->namespace) {
        add_namespace(q, q->namespace, &sel, &found);
    } else {
        const struct cache_kind *ck =
            cache_find(&q->server->cache, api_kind_find("", "v1", "namespaces"));
        struct keyset_pos pos = keyset_seek(&ck->objects, "");
        const struct object *o;
        while ((o = keyset_next(&ck->objects, &pos))) {
            add_namespace(q, o->key, &sel, &found);
        }
    }
    selection_done(&sel);
    list_answer(q, found.list, found.n, outcome);
    for (size_t i = 0; i < found.n; i++) {
        object_unref(found.list[i]);
    }
    free(found.list);
}

void handle_applied_quota(struct request *q, struct outcome *outcome)
{
    if (q->verb == VERB_GET) {
        get_one(q, outcome);
    } else {
        get_list(q, outcome);
    }
}
