/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include <stdlib.h>
#include <string.h>

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

static const char *text(const struct json *o, const char *key)
{
    return json_get_text(o, key);
}

static const struct json *labels_of(const struct json *o)
{
    return json_path(o, "metadata", "labels", NULL);
}

/* Quantities of the test are plain numbers, "Nm" for cpu. */
static long amount(const struct json *list, const char *name)
{
    const char *s = text(list, name);
    char *end;
    long n = *s ? strtol(s, &end, 10) : 0;
    return *s && *end == 'm' ? n : strcmp(name, "cpu") ? n : n * 1000;
}

static long request(const struct json *pod, const char *name)
{
    const struct json *spec = json_get(pod, "spec"), *c;
    long sum = 0, sidecars = 0, most = 0;
    JSON_FOREACH (c, json_get(spec, "containers")) {
        sum += amount(json_path(c, "resources", "requests", NULL), name);
    }
    JSON_FOREACH (c, json_get(spec, "initContainers")) {
        long n = amount(json_path(c, "resources", "requests", NULL), name);
        long at_once = sidecars + n;
        most = at_once > most ? at_once : most;
        sidecars += strcmp(text(c, "restartPolicy"), "Always") == 0 ? n : 0;
    }
    sum += sidecars;
    return (sum > most ? sum : most) + amount(json_get(spec, "overhead"), name);
}

static bool on(const struct json *pod, const struct json *node)
{
    return strcmp(text(json_get(pod, "spec"), "nodeName"),
                  text(json_get(node, "metadata"), "name")) == 0;
}

/* ---- the node alone ---- */

static bool in_values(const struct json *values, const char *value)
{
    const struct json *v;
    JSON_FOREACH (v, values) {
        if (strcmp(json_get_string(v), value) == 0) {
            return true;
        }
    }
    return false;
}

static bool requirement(const struct json *r, const char *have)
{
    const char *op = text(r, "operator");
    const struct json *values = json_get(r, "values");
    if (strcmp(op, "In") == 0) {
        return have && in_values(values, have);
    }
    if (strcmp(op, "NotIn") == 0) {
        return !(have && in_values(values, have));
    }
    if (strcmp(op, "Exists") == 0) {
        return have != NULL;
    }
    if (strcmp(op, "DoesNotExist") == 0) {
        return have == NULL;
    }
    char *end = NULL;
    long a = have ? strtol(have, &end, 10) : 0;
    if (!have || end == have || *end) {
        return false;
    }
    long b = strtol(json_get_string(json_at(values, 0)), NULL, 10);
    return strcmp(op, "Gt") == 0 ? a > b : a < b;
}

static bool node_term(const struct json *t, const struct json *node)
{
    const struct json *r;
    size_t n = 0;
    JSON_FOREACH (r, json_get(t, "matchExpressions")) {
        n++;
        if (!requirement(r, json_get_string(json_get(labels_of(node), text(r, "key"))))) {
            return false;
        }
    }
    JSON_FOREACH (r, json_get(t, "matchFields")) {
        n++;
        if (!requirement(r, text(json_get(node, "metadata"), "name"))) {
            return false;
        }
    }
    return n > 0;
}

static bool selector_fits(const struct json *pod, const struct json *node)
{
    const struct json *want = json_path(pod, "spec", "nodeSelector", NULL), *t;
    const struct json *required =
        json_path(pod, "spec", "affinity", "nodeAffinity", REQUIRED, NULL);
    for (size_t i = 0; i < json_count(want); i++) {
        const char *have = json_get_string(json_get(labels_of(node), json_key_at(want, i)));
        if (!have || strcmp(have, json_get_string(json_at(want, i))) != 0) {
            return false;
        }
    }
    if (!required) {
        return true;
    }
    JSON_FOREACH (t, json_get(required, "nodeSelectorTerms")) {
        if (node_term(t, node)) {
            return true;
        }
    }
    return false;
}

static bool tolerated(const struct json *pod, const char *key, const char *value,
                      const char *effect)
{
    const struct json *t;
    JSON_FOREACH (t, json_path(pod, "spec", "tolerations", NULL)) {
        bool effects = !*text(t, "effect") || strcmp(text(t, "effect"), effect) == 0;
        bool exists = strcmp(text(t, "operator"), "Exists") == 0;
        bool keys = *text(t, "key") ? strcmp(text(t, "key"), key) == 0 : exists;
        if (effects && keys && (exists || strcmp(text(t, "value"), value) == 0)) {
            return true;
        }
    }
    return false;
}

static bool taints_fit(const struct json *pod, const struct json *node)
{
    const struct json *t;
    JSON_FOREACH (t, json_path(node, "spec", "taints", NULL)) {
        if (strcmp(text(t, "effect"), "PreferNoSchedule") != 0 &&
            !tolerated(pod, text(t, "key"), text(t, "value"), text(t, "effect"))) {
            return false;
        }
    }
    return true;
}

/* ---- resources and ports ---- */

static bool resources_fit(const struct naive_cluster *c, const struct json *pod,
                          const struct json *node)
{
    static const char *const names[] = {"cpu", "memory", "example.com/card"};
    const struct json *offered = json_path(node, "status", "allocatable", NULL);
    long pods = 1;
    for (size_t k = 0; k < c->n_pods; k++) {
        pods += on(c->pods[k], node);
    }
    if (pods > amount(offered, "pods")) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        long sum = request(pod, names[i]);
        if (!sum) {
            continue;
        }
        for (size_t k = 0; k < c->n_pods; k++) {
            sum += on(c->pods[k], node) ? request(c->pods[k], names[i]) : 0;
        }
        if (sum > amount(offered, names[i])) {
            return false;
        }
    }
    return true;
}

static bool port_clash(const struct json *a, const struct json *b)
{
    const char *x = *text(a, "hostIP") ? text(a, "hostIP") : "0.0.0.0";
    const char *y = *text(b, "hostIP") ? text(b, "hostIP") : "0.0.0.0";
    int64_t port = json_get_int_or(json_get(a, "hostPort"), 0);
    return port && port == json_get_int_or(json_get(b, "hostPort"), 0) &&
           strcmp(text(a, "protocol"), text(b, "protocol")) == 0 &&
           (strcmp(x, y) == 0 || strcmp(x, "0.0.0.0") == 0 || strcmp(y, "0.0.0.0") == 0);
}

static bool ports_clash(const struct json *a, const struct json *b)
{
    const struct json *ca, *cb, *pa, *pb;
    JSON_FOREACH (ca, json_path(a, "spec", "containers", NULL)) {
        JSON_FOREACH (pa, json_get(ca, "ports")) {
            JSON_FOREACH (cb, json_path(b, "spec", "containers", NULL)) {
                JSON_FOREACH (pb, json_get(cb, "ports")) {
                    if (port_clash(pa, pb)) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

/* ---- other pods ---- */

static bool labels_match(const struct json *selector, const struct json *labels)
{
    const struct json *equal = json_get(selector, "matchLabels"), *r;
    if (!selector) {
        return false;
    }
    for (size_t i = 0; i < json_count(equal); i++) {
        const char *have = json_get_string(json_get(labels, json_key_at(equal, i)));
        if (!have || strcmp(have, json_get_string(json_at(equal, i))) != 0) {
            return false;
        }
    }
    JSON_FOREACH (r, json_get(selector, "matchExpressions")) {
        if (!requirement(r, json_get_string(json_get(labels, text(r, "key"))))) {
            return false;
        }
    }
    return true;
}

static const char *space(const struct json *pod)
{
    return text(json_get(pod, "metadata"), "namespace");
}

/* Whether the term, which 'owner' has, is about 'other'. */
static bool term_about(const struct naive_cluster *c, const struct json *term,
                       const struct json *owner, const struct json *other)
{
    const struct json *list = json_get(term, "namespaces");
    const struct json *by_label = json_get(term, "namespaceSelector");
    bool in = !json_count(list) && !by_label ? strcmp(space(owner), space(other)) == 0
                                             : in_values(list, space(other));
    for (size_t i = 0; i < c->n_namespaces && by_label && !in; i++) {
        in = strcmp(text(json_get(c->namespaces[i], "metadata"), "name"), space(other)) == 0 &&
             labels_match(by_label, labels_of(c->namespaces[i]));
    }
    return in && labels_match(json_get(term, "labelSelector"), labels_of(other));
}

static const struct json *node_of(const struct naive_cluster *c, const struct json *pod)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (on(pod, c->nodes[i])) {
            return c->nodes[i];
        }
    }
    return NULL;
}

/* Whether both nodes have the key with the same value. */
static bool together(const struct json *a, const struct json *b, const char *key)
{
    const char *x = json_get_string(json_get(labels_of(a), key));
    const char *y = json_get_string(json_get(labels_of(b), key));
    return x && y && strcmp(x, y) == 0;
}

static const struct json *terms_of(const struct json *pod, const char *sort)
{
    return json_path(pod, "spec", "affinity", sort, REQUIRED, NULL);
}

static bool about_all(const struct naive_cluster *c, const struct json *pod,
                      const struct json *other)
{
    const struct json *t;
    JSON_FOREACH (t, terms_of(pod, "podAffinity")) {
        if (!term_about(c, t, pod, other)) {
            return false;
        }
    }
    return true;
}

static bool affinity_fits(const struct naive_cluster *c, const struct json *pod,
                          const struct json *node)
{
    const struct json *terms = terms_of(pod, "podAffinity"), *t;
    bool beside_all = true, any = false;
    JSON_FOREACH (t, terms) {
        const char *key = text(t, "topologyKey");
        bool beside = false;
        if (!json_get(labels_of(node), key)) {
            return false;
        }
        for (size_t i = 0; i < c->n_pods; i++) {
            const struct json *there = node_of(c, c->pods[i]);
            if (there && json_get(labels_of(there), key) && about_all(c, pod, c->pods[i])) {
                any = true;
                beside = beside || together(there, node, key);
            }
        }
        beside_all = beside_all && beside;
    }
    return beside_all || (!any && about_all(c, pod, pod));
}

static bool anti_affinity_fits(const struct naive_cluster *c, const struct json *pod,
                               const struct json *node)
{
    const struct json *t;
    for (size_t i = 0; i < c->n_pods; i++) {
        const struct json *there = node_of(c, c->pods[i]);
        JSON_FOREACH (t, terms_of(pod, "podAntiAffinity")) {
            if (there && together(there, node, text(t, "topologyKey")) &&
                term_about(c, t, pod, c->pods[i])) {
                return false;
            }
        }
        JSON_FOREACH (t, terms_of(c->pods[i], "podAntiAffinity")) {
            if (there && together(there, node, text(t, "topologyKey")) &&
                term_about(c, t, c->pods[i], pod)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- spreading ---- */

static bool runs(const struct json *node)
{
    return *json_get_text(json_path(node, "status", "nodeInfo", NULL), "containerRuntimeVersion");
}

static bool is_hard(const struct json *constraint)
{
    return strcmp(text(constraint, "whenUnsatisfiable"), "DoNotSchedule") == 0;
}

static bool eligible(const struct json *pod, const struct json *constraint, const struct json *node)
{
    const struct json *k;
    JSON_FOREACH (k, json_path(pod, "spec", "topologySpreadConstraints", NULL)) {
        if (is_hard(k) && !json_get(labels_of(node), text(k, "topologyKey"))) {
            return false;
        }
    }
    return runs(node) &&
           (strcmp(text(constraint, "nodeAffinityPolicy"), "Ignore") == 0 ||
            selector_fits(pod, node)) &&
           (strcmp(text(constraint, "nodeTaintsPolicy"), "Honor") != 0 || taints_fit(pod, node));
}

static long spread_pods(const struct naive_cluster *c, const struct json *pod,
                        const struct json *constraint, const struct json *domain)
{
    long n = 0;
    for (size_t i = 0; i < c->n_pods; i++) {
        const struct json *p = c->pods[i], *there = node_of(c, p);
        n += there && eligible(pod, constraint, there) &&
             together(there, domain, text(constraint, "topologyKey")) &&
             strcmp(space(p), space(pod)) == 0 &&
             !json_path(p, "metadata", "deletionTimestamp", NULL) &&
             labels_match(json_get(constraint, "labelSelector"), labels_of(p));
    }
    return n;
}

static bool constraint_fits(const struct naive_cluster *c, const struct json *pod,
                            const struct json *constraint, const struct json *node)
{
    const char *key = text(constraint, "topologyKey");
    long least = -1, domains = 0;
    for (size_t i = 0; i < c->n_nodes; i++) {
        bool first = true;
        if (!eligible(pod, constraint, c->nodes[i])) {
            continue;
        }
        for (size_t k = 0; k < i; k++) {
            first = first && !(eligible(pod, constraint, c->nodes[k]) &&
                               together(c->nodes[k], c->nodes[i], key));
        }
        domains += first;
        long n = spread_pods(c, pod, constraint, c->nodes[i]);
        least = least < 0 || n < least ? n : least;
    }
    if (domains < json_get_int_or(json_get(constraint, "minDomains"), 0)) {
        least = 0;
    }
    if (!json_get(labels_of(node), key)) {
        return false;
    }
    if (least < 0) {
        return true;
    }
    long self = labels_match(json_get(constraint, "labelSelector"), labels_of(pod));
    return spread_pods(c, pod, constraint, node) + self - least <=
           json_get_int_or(json_get(constraint, "maxSkew"), 1);
}

bool naive_fits(const struct naive_cluster *c, const struct json *pod, const struct json *node)
{
    const struct json *k;
    bool off = json_get_bool(json_path(node, "spec", "unschedulable", NULL), false);
    if (!runs(node) || !selector_fits(pod, node) || !taints_fit(pod, node) ||
        (off && !tolerated(pod, "node.kubernetes.io/unschedulable", "", "NoSchedule")) ||
        !resources_fit(c, pod, node) || !affinity_fits(c, pod, node) ||
        !anti_affinity_fits(c, pod, node)) {
        return false;
    }
    for (size_t i = 0; i < c->n_pods; i++) {
        if (on(c->pods[i], node) && ports_clash(pod, c->pods[i])) {
            return false;
        }
    }
    JSON_FOREACH (k, json_path(pod, "spec", "topologySpreadConstraints", NULL)) {
        if (is_hard(k) && !constraint_fits(c, pod, k, node)) {
            return false;
        }
    }
    return true;
}
