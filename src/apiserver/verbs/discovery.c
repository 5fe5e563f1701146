/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that are not resources: discovery, version, health. */
#include "apiserver/verbs/discovery.h"

#include "api/crd/crd.h"
#include "api/legacy.h"
#include "api/proto.h"
#include "apiserver/request/metrics.h"
#include "apiserver/request/respond.h"
#include "apiserver/verbs/health.h"
#include "apiserver/verbs/openapi.h"

#include <stdio.h>
#include <sys/utsname.h>

#define AGGREGATED ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

static const char *const object_verbs[] = {"create", "delete", "deletecollection", "get",
                                           "list",   "patch",  "update",           "watch"};

static struct json *strings(const char *const *list, size_t n)
{
    struct json *a = json_array();
    for (size_t i = 0; i < n; i++) {
        json_append(a, json_string(list[i]));
    }
    return a;
}

static struct json *names(const char *const *list)
{
    struct json *a = json_array();
    for (size_t i = 0; list && list[i]; i++) {
        json_append(a, json_string(list[i]));
    }
    return a;
}

/* Verbs of the kind, or of its subresource. */
static struct json *verbs(const struct api_kind *k, const struct api_subresource *part)
{
    if (part) {
        return names(part->verbs);
    }
    if (k->read_only) {
        return names(k->create_empty ? (const char *const[]){"create", "get", "list", NULL}
                                     : (const char *const[]){"get", "list", NULL});
    }
    if (k->own) {
        return names((const char *const[]){"delete", "get", "list", "watch", NULL});
    }
    if (k->composed) {
        return names((const char *const[]){"create", "delete", "get", "update", NULL});
    }
    struct json *all = json_array();
    if (k->create_only) {
        json_append(all, json_string("create"));
        if (k->probed) {
            json_append(all, json_string("list"));
        }
        return all;
    }
    for (size_t i = 0; i < ARRAY_SIZE(object_verbs); i++) {
        /* Namespaces are not deleted as a collection, as in Kubernetes. */
        if (!streq(object_verbs[i], "deletecollection") || !api_kind_is_namespace(k)) {
            json_append(all, json_string(object_verbs[i]));
        }
    }
    return all;
}

static bool is_in(const struct api_kind *k, const char *group, const char *version)
{
    return streq(k->group, group) && (!version || streq(k->version, version));
}

/* ---- one version: APIResourceList ---- */

static struct json *resource(const struct api_kind *k, const struct api_subresource *part)
{
    struct json *r = json_object();
    json_set(r, "name",
             part ? json_stringf("%s/%s", k->plural, part->name) : json_string(k->plural));
    json_set_string(r, "singularName", part ? "" : k->singular);
    json_set_bool(r, "namespaced", k->namespaced);
    /* Absent for a type of the list's own group and version. */
    if (part && part->kind && !is_in(k, part->group, part->version)) {
        json_set_string(r, "group", part->group);
        json_set_string(r, "version", part->version);
    }
    json_set_string(r, "kind", part && part->kind ? part->kind : k->kind);
    json_set(r, "verbs", verbs(k, part));
    if (!part && k->short_names) {
        json_set(r, "shortNames", names(k->short_names));
    }
    if (!part && k->categories) {
        json_set(r, "categories", names(k->categories));
    }
    return r;
}

/* NULL: no such version. */
static struct json *resource_list(const struct api_registry *known, const char *group,
                                  const char *version)
{
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "kind", "APIResourceList");
    json_set_string(o, "apiVersion", "v1");
    json_set(o, "groupVersion",
             *group ? json_stringf("%s/%s", group, version) : json_string(version));
    struct json *list = json_ensure_array(o, "resources");
    for (size_t i = 0; i < known->n; i++) {
        const struct api_kind *k = known->list[i];
        if (!is_in(k, group, version)) {
            continue;
        }
        json_append(list, resource(k, NULL));
        for (size_t s = 0; api_kind_subresource_at(k, s); s++) {
            json_append(list, resource(k, api_kind_subresource_at(k, s)));
        }
    }
    return json_count(list) ? TAKE(o) : NULL;
}

/* The resources of /oapi/v1. */
static struct json *legacy_list(const struct api_registry *known)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "APIResourceList");
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "groupVersion", API_LEGACY_VERSION);
    struct json *list = json_ensure_array(o, "resources");
    for (size_t i = 0; i < known->n; i++) {
        const struct api_kind *k = known->list[i];
        if (!api_legacy_has(k)) {
            continue;
        }
        json_append(list, resource(k, NULL));
        for (size_t s = 0; api_kind_subresource_at(k, s); s++) {
            json_append(list, resource(k, api_kind_subresource_at(k, s)));
        }
    }
    return o;
}

/* ---- groups ---- */

/* The i-th group that is not the core's; NULL: no more. */
static const char *group_at(const struct api_registry *known, size_t i)
{
    for (size_t k = 0; k < known->n; k++) {
        const char *group = known->list[k]->group;
        bool seen = !*group;
        for (size_t j = 0; j < k && !seen; j++) {
            seen = streq(known->list[j]->group, group);
        }
        if (!seen && i-- == 0) {
            return group;
        }
    }
    return NULL;
}

static int by_version(const void *a, const void *b)
{
    return api_version_compare(*(const char *const *) a, *(const char *const *) b);
}

/* The versions of a group, the preferred one first; owned array of the kinds' strings. */
static const char **versions_of(const struct api_registry *known, const char *group, size_t *ret_n)
{
    const char **list = xcalloc(known->n + 1, sizeof(*list));
    size_t n = 0;
    for (size_t k = 0; k < known->n; k++) {
        bool seen = !is_in(known->list[k], group, NULL);
        for (size_t j = 0; j < n && !seen; j++) {
            seen = streq(list[j], known->list[k]->version);
        }
        if (!seen) {
            list[n++] = known->list[k]->version;
        }
    }
    qsort(list, n, sizeof(*list), by_version);
    *ret_n = n;
    return list;
}

static struct json *group_object(const struct api_registry *known, const char *group)
{
    size_t n;
    CLEANUP_FREE const char **versions = versions_of(known, group, &n);
    struct json *g = json_object();
    json_set_string(g, "name", group);
    struct json *list = json_ensure_array(g, "versions");
    for (size_t i = 0; i < n; i++) {
        struct json *version = json_append(list, json_object());
        json_set(version, "groupVersion", json_stringf("%s/%s", group, versions[i]));
        json_set_string(version, "version", versions[i]);
    }
    json_set(g, "preferredVersion", json_clone(json_at(list, 0)));
    return g;
}

static struct json *group_list(const struct api_registry *known)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "APIGroupList");
    json_set_string(o, "apiVersion", "v1");
    struct json *list = json_ensure_array(o, "groups");
    const char *group;
    for (size_t i = 0; (group = group_at(known, i)); i++) {
        json_append(list, group_object(known, group));
    }
    return o;
}

/* NULL: no such group. */
static struct json *group_of(const struct api_registry *known, const char *name)
{
    const char *group;
    for (size_t i = 0; (group = group_at(known, i)); i++) {
        if (streq(group, name)) {
            struct json *g = group_object(known, group);
            json_set_string(g, "kind", "APIGroup");
            json_set_string(g, "apiVersion", "v1");
            return g;
        }
    }
    return NULL;
}

static struct json *core_versions(struct request *q)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "APIVersions");
    json_set(o, "versions", list_of(json_string("v1")));
    const char *host = http_header(q->x, "host");
    struct json *cidr = json_object();
    json_set_string(cidr, "clientCIDR", "0.0.0.0/0");
    json_set_string(cidr, "serverAddress", host ? host : "");
    json_set(o, "serverAddressByClientCIDRs", list_of(cidr));
    return o;
}

/* ---- aggregated discovery: everything in one answer ---- */

static struct json *response_kind(const char *group, const char *version, const char *kind)
{
    struct json *o = json_object();
    json_set_string(o, "group", group);
    json_set_string(o, "version", version);
    json_set_string(o, "kind", kind);
    return o;
}

static struct json *aggregated_resource(const struct api_kind *k)
{
    struct json *r = json_object(), *own = response_kind(k->group, k->version, k->kind);
    json_set_string(r, "resource", k->plural);
    json_set(r, "responseKind", own);
    json_set_string(r, "scope", k->namespaced ? "Namespaced" : "Cluster");
    json_set_string(r, "singularResource", k->singular);
    json_set(r, "verbs", verbs(k, NULL));
    if (k->short_names) {
        json_set(r, "shortNames", names(k->short_names));
    }
    if (k->categories) {
        json_set(r, "categories", names(k->categories));
    }
    const struct api_subresource *part;
    for (size_t i = 0; (part = api_kind_subresource_at(k, i)); i++) {
        struct json *s = json_object();
        json_set_string(s, "subresource", part->name);
        json_set(s, "responseKind",
                 part->kind ? response_kind(part->group, part->version, part->kind)
                            : json_clone(own));
        json_set(s, "verbs", verbs(k, part));
        json_append(json_ensure_array(r, "subresources"), s);
    }
    return r;
}

static struct json *aggregated_group(const struct api_registry *known, const char *group)
{
    struct json *g = json_object(), *meta = json_ensure_object(g, "metadata");
    struct json *list = json_ensure_array(g, "versions");
    size_t n;
    CLEANUP_FREE const char **versions = versions_of(known, group, &n);
    if (*group) {
        json_set_string(meta, "name", group);
    }
    json_set(meta, "creationTimestamp", json_null());
    for (size_t v = 0; v < n; v++) {
        struct json *version = json_append(list, json_object());
        json_set_string(version, "version", versions[v]);
        struct json *resources = json_ensure_array(version, "resources");
        for (size_t i = 0; i < known->n; i++) {
            if (is_in(known->list[i], group, versions[v])) {
                json_append(resources, aggregated_resource(known->list[i]));
            }
        }
        json_set_string(version, "freshness", "Current");
    }
    return g;
}

static struct json *aggregated(const struct api_registry *known, bool core)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "APIGroupDiscoveryList");
    json_set_string(o, "apiVersion", "apidiscovery.k8s.io/v2");
    json_set(o, "metadata", json_object());
    struct json *items = json_ensure_array(o, "items");
    if (core) {
        json_append(items, aggregated_group(known, ""));
    }
    const char *group;
    for (size_t i = 0; !core && (group = group_at(known, i)); i++) {
        json_append(items, aggregated_group(known, group));
    }
    return o;
}

static void answer_aggregated(const struct request *q, bool core, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *all = aggregated(&q->server->cache.registry, core);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (q->accept.protobuf && api_proto_put_object(all, &text) == 0) {
        outcome_text(outcome, 200, API_PROTO_TYPE AGGREGATED, &text);
    } else {
        outcome_json(outcome, 200, "application/json" AGGREGATED, TAKE(all));
    }
}

/* ---- version ---- */

static struct json *version_object(void)
{
    struct utsname u;
    struct json *o = json_object();
    json_set_string(o, "major", KUBERNETES_MAJOR);
    json_set_string(o, "minor", KUBERNETES_MINOR);
    json_set_string(o, "gitVersion",
                    "v" KUBERNETES_MAJOR "." KUBERNETES_MINOR ".0+tenet-" TENET_VERSION);
    json_set_string(o, "gitCommit", "");
    json_set_string(o, "gitTreeState", "clean");
    json_set_string(o, "buildDate", "1970-01-01T00:00:00Z");
    json_set_string(o, "goVersion", "");
    json_set_string(o, "compiler", "cc");
    json_set(o, "platform",
             uname(&u) == 0 ? json_stringf("linux/%s", u.machine) : json_string("linux"));
    return o;
}

static struct json *root_paths(void)
{
    static const char *const paths[] = {"/api",        "/api/v1",     "/apis",   "/healthz",
                                        "/livez",      "/metrics",    "/oapi",   "/oapi/v1",
                                        "/openapi/v2", "/openapi/v3", "/readyz", "/version"};
    return object_of("paths", strings(paths, ARRAY_SIZE(paths)));
}

/* ---- */

static void fail_not_allowed(struct outcome *outcome)
{
    outcome_error(outcome, 405, "MethodNotAllowed",
                  "the server does not allow this method on the requested resource");
}

/* 'v' is taken over; NULL: 404. */
static void fill(struct outcome *outcome, struct json *v)
{
    if (v) {
        outcome_json(outcome, 200, NULL, v);
    } else {
        outcome_error(outcome, 404, "NotFound", "the server could not find the requested resource");
    }
}

/* "GROUP" and "GROUP/VERSION" below /apis; false: something deeper, a resource. */
static bool handle_group(struct request *q, const char *rest, struct outcome *outcome)
{
    size_t n = strcspn(rest, "/"), m = rest[n] ? strcspn(rest + n + 1, "/") : 0;
    if (n == 0 || (rest[n] && rest[n + 1 + m] && rest[n + 1 + m + 1])) {
        return false;
    }
    if (!streq(http_method(q->x), "GET")) {
        fail_not_allowed(outcome);
        return true;
    }
    const struct api_registry *known = &q->server->cache.registry;
    CLEANUP_FREE char *group = xstrndup(rest, n);
    CLEANUP_FREE char *version = m ? xstrndup(rest + n + 1, m) : NULL;
    fill(outcome, version ? resource_list(known, group, version) : group_of(known, group));
    return true;
}

bool handle_path(struct request *q, struct outcome *outcome)
{
    const struct api_registry *known = &q->server->cache.registry;
    CLEANUP_FREE char *path = xstrdup(http_path(q->x));
    size_t n = strlen(path);
    if (n > 1 && path[n - 1] == '/') {
        path[n - 1] = '\0';
    }
    bool health = str_has_prefix(path, "/healthz") || str_has_prefix(path, "/readyz") ||
                  str_has_prefix(path, "/livez");
    bool ours = health || streq(path, "/metrics") || streq(path, "/version") || streq(path, "/") ||
                streq(path, "/api") || streq(path, "/apis") || streq(path, "/api/v1") ||
                streq(path, "/oapi") || streq(path, "/oapi/v1") ||
                str_has_prefix(path, "/openapi/v");
    bool group = str_has_prefix(path, "/apis/");
    if (!ours && !group) {
        return false;
    }
    if (ours && !streq(http_method(q->x), "GET")) {
        fail_not_allowed(outcome);
    } else if (group) {
        return handle_group(q, path + strlen("/apis/"), outcome);
    } else if (health) {
        return handle_health(q, path, outcome);
    } else if (streq(path, "/metrics")) {
        handle_metrics(q, outcome);
    } else if (streq(path, "/version")) {
        fill(outcome, version_object());
    } else if (streq(path, "/")) {
        fill(outcome, root_paths());
    } else if (streq(path, "/api/v1")) {
        fill(outcome, resource_list(known, "", "v1"));
    } else if (streq(path, "/oapi/v1")) {
        fill(outcome, legacy_list(known));
    } else if (streq(path, "/oapi")) {
        fill(outcome, core_versions(q));
    } else if (str_has_prefix(path, "/openapi/v")) {
        handle_openapi(q, path, outcome);
    } else if (q->accept.aggregated) {
        answer_aggregated(q, streq(path, "/api"), outcome);
    } else {
        fill(outcome, streq(path, "/api") ? core_versions(q) : group_list(known));
    }
    return true;
}
