/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of pods by the nodes that they may use, as in OpenShift 3.
 *
 * OriginPodNodeEnvironment: a pod gets its project's node selector, which is the annotation
 * openshift.io/node-selector of the namespace, or the default of the configuration when there is no
 * annotation; an empty annotation is no selector.  A pod that asks for another value of one of its
 * labels is refused, and so is one that names a node without these labels.
 *
 * PodNodeConstraints: users without the right to bind pods ("create" on pods/binding) may not name
 * certain labels in nodeSelector, nor a node, when the configuration lists labels. */
#include "apiserver/admission/plugins.h"

#include "api/kinds/pod_restrictions.h"
#include "api/node_match.h"
#include "apiserver/access/authz.h"
#include "apiserver/cache/object.h"

/* ---- the project's node selector ---- */

int admission_check_node_selector(const char *text, struct err *e)
{
    CLEANUP(json_free) struct json *out = NULL;
    return match_parse_node_labels(text, &out, e);
}

/* The selector of the request's project as an object of texts; NULL: it cannot be read, and the
 * outcome is filled. */
static struct json *project_selector(const struct request *q, const struct json *pod,
                                     struct outcome *outcome)
{
    const char *text = json_path_string(admission_namespace(q), "metadata", "annotations",
                                        MATCH_PROJECT_NODES, NULL);
    const char *dflt = q->server->cfg.default_node_selector;
    struct json *out = NULL;
    struct err e = {0};
    if (match_parse_node_labels(text ? text : dflt ? dflt : "", &out, &e) < 0) {
        CLEANUP_FREE char *why =
            xasprintf("the node selector of its project cannot be read: %s", e.text);
        admission_refuse(q, pod, why, outcome);
    }
    return out;
}

/* A node makes the mirrors of the pods that run on it already. */
static bool is_of_node(const struct request *q)
{
    return !q->server->security->always_allow && user_node(q->user);
}

int node_selector_admit(struct request *q, struct json *obj, const struct json *old,
                        struct outcome *outcome)
{
    if (old || is_of_node(q) || *q->subresource) {
        return 0;
    }
    CLEANUP(json_free) struct json *want = project_selector(q, obj, outcome);
    if (!want) {
        return -EACCES;
    }
    if (!json_count(want)) {
        return 0;
    }
    struct json *have = json_ensure_object(json_ensure_object(obj, "spec"), "nodeSelector");
    for (size_t i = 0; i < json_count(want); i++) {
        const struct json *v = json_get(have, json_key_at(want, i));
        if (v && !json_equal(v, json_at(want, i))) {
            return admission_refuse(
                q, obj, "pod node label selector conflicts with its project node label selector",
                outcome);
        }
        json_set(have, json_key_at(want, i), json_clone(json_at(want, i)));
    }
    return 1;
}

/* Whether the node exists and has the labels. */
static bool node_has(const struct request *q, const char *name, const struct json *labels)
{
    const struct cache_kind *ck = cache_find(&q->server->cache, api_kind_find("", "v1", "nodes"));
    struct object *o = keyset_get(&ck->objects, name);
    for (size_t i = 0; i < json_count(labels); i++) {
        const char *value = o ? api_index_label(o->index, json_key_at(labels, i)) : NULL;
        if (!streq_null(value, json_get_string(json_at(labels, i)))) {
            return false;
        }
    }
    return true;
}

int node_selector_validate(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome)
{
    const char *node = json_path_string(obj, "spec", "nodeName", NULL);
    if (old || is_of_node(q) || *q->subresource || !node || !*node) {
        return 0;
    }
    CLEANUP(json_free) struct json *want = project_selector(q, obj, outcome);
    if (!want) {
        return -EACCES;
    }
    return node_has(q, node, want)
               ? 0
               : admission_refuse(q, obj,
                                  "the node that spec.nodeName names does not have the labels of "
                                  "the project's node selector",
                                  outcome);
}

/* ---- constraints of users ---- */

static bool same_member(const struct json *a, const struct json *b, const char *key)
{
    const struct json *x = json_get(a, key), *y = json_get(b, key);
    return (!x && !y) || (x && y && json_equal(x, y));
}

/* Appends the listed labels that the selector names. */
static void named_labels(const struct request *q, const struct json *spec, struct strbuf *out)
{
    const char *const *labels = q->server->cfg.node_selector_blacklist;
    const struct json *selector = json_get(spec, "nodeSelector");
    for (size_t i = 0; labels[i]; i++) {
        if (json_get(selector, labels[i])) {
            strbuf_addf(out, "%s%s", out->size ? "," : "", labels[i]);
        }
    }
}

int node_constraints_validate(struct request *q, const struct json *obj, const struct json *old,
                              struct outcome *outcome)
{
    const struct api_kind *k = q->kind;
    const char *path = pod_restrictions_path(k->group, k->plural);
    const struct json *spec = path ? json_get(pod_restrictions_find(obj, path), "spec") : NULL;
    const struct json *before = path && old ? pod_restrictions_find(old, path) : NULL;
    const struct json *was = json_get(before, "spec");
    CLEANUP_STRBUF struct strbuf names = STRBUF_INIT;
    if (!q->server->cfg.node_selector_blacklist || !spec || !k->namespaced || *q->subresource ||
        is_of_node(q)) {
        return 0;
    }
    bool names_node = *json_get_text(spec, "nodeName") && !same_member(spec, was, "nodeName");
    if (!same_member(spec, was, "nodeSelector")) {
        named_labels(q, spec, &names);
    }
    if ((!names_node && !names.size) ||
        authz_may(q->server->security, q->user, "create", "", "pods/binding", q->namespace, NULL)) {
        return 0;
    }
    if (names_node) {
        return admission_refuse(
            q, obj, "node selection by nodeName is prohibited by policy for your role", outcome);
    }
    CLEANUP_FREE char *why = xasprintf(
        "node selection by label(s) [%s] is prohibited by policy for your role", names.data);
    return admission_refuse(q, obj, why, outcome);
}
