/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/webhook_match.h"

#include "api/label_selector.h"
#include "api/obj.h"
#include "base/base64.h"
#include "base/mem.h"

#define DEFAULT_TIMEOUT_S 10
#define MAX_TIMEOUT_S 30
#define HTTPS_PORT 443
#define MAX_CA ((size_t) 1 << 20)

const char *const webhook_operation_names[WEBHOOK_OPERATION_MAX] = {"CREATE", "UPDATE", "DELETE",
                                                                    "CONNECT"};

/* ---- lists ---- */

struct webhook_list *webhook_list_new(bool mutates)
{
    struct webhook_list *l = NEW(struct webhook_list);
    l->refs = 1;
    l->mutates = mutates;
    return l;
}

struct webhook_list *webhook_list_ref(struct webhook_list *l)
{
    l->refs++;
    return l;
}

static void webhook_done(struct webhook *h)
{
    free(h->configuration);
    free(h->name);
    free(h->host);
    free(h->service);
    free(h->namespace);
    free(h->path);
    free(h->location);
    free(h->ca);
}

struct webhook_list *webhook_list_unref(struct webhook_list *l)
{
    if (l && --l->refs == 0) {
        for (size_t i = 0; i < l->n; i++) {
            webhook_done(&l->hooks[i]);
        }
        for (size_t i = 0; i < l->n_trees; i++) {
            json_free(l->trees[i]);
        }
        free(l->hooks);
        free(l->trees);
        free(l);
    }
    return NULL;
}

/* "https://host[:port][/path]", which validation has accepted. */
static void read_url(struct webhook *h, const char *url)
{
    const char *host = url + strlen("https://");
    size_t n = strcspn(host, "/?#");
    CLEANUP_FREE char *authority = xstrndup(host, n);
    char *colon = strrchr(authority, ':');
    uint64_t port = HTTPS_PORT;
    if (colon && str_to_u64(colon + 1, UINT16_MAX, &port) == 0) {
        *colon = '\0';
    }
    h->host = xstrdup(authority);
    h->port = (uint16_t) port;
    h->path = host[n] == '/' ? xstrdup(host + n) : xstrdup("/");
}

static void read_service(struct webhook *h, const struct json *service)
{
    const char *path = json_get_text(service, "path");
    h->by_service = true;
    h->service = xstrdup(json_get_text(service, "name"));
    h->namespace = xstrdup(json_get_text(service, "namespace"));
    h->host = xasprintf("%s.%s.svc", h->service, h->namespace);
    h->port = (uint16_t) json_get_int_or(json_get(service, "port"), HTTPS_PORT);
    h->path = xstrdup(*path == '/' ? path : "/");
}

static void read_place(struct webhook *h, const struct json *config)
{
    const char *url = json_get_string(json_get(config, "url"));
    const struct json *ca = json_get(config, "caBundle");
    CLEANUP_STRBUF struct strbuf pem = {.max = MAX_CA};
    if (url && str_has_prefix(url, "https://")) {
        read_url(h, url);
    } else {
        read_service(h, json_get(config, "service"));
    }
    h->location = xasprintf("https://%s:%u%s", h->host, h->port, h->path);
    /* A bundle that cannot be read leaves no authority, and not the system's. */
    if (json_string_size(ca)) {
        (void) base64_decode(json_get_string(ca), json_string_size(ca), &pem);
        h->ca = strbuf_steal(&pem);
    }
}

void webhook_list_add(struct webhook_list *l, struct json *configuration)
{
    const struct json *hooks = json_get(configuration, "webhooks"), *spec;
    l->trees = xreallocarray(l->trees, l->n_trees + 1, sizeof *l->trees);
    l->trees[l->n_trees++] = configuration;
    JSON_FOREACH (spec, hooks) {
        l->hooks = grow(l->hooks, &l->cap, l->n + 1, sizeof *l->hooks);
        int64_t timeout = json_get_int_or(json_get(spec, "timeoutSeconds"), DEFAULT_TIMEOUT_S);
        struct webhook *h = &l->hooks[l->n++];
        *h = (struct webhook){
            .configuration = xstrdup(obj_name(configuration)),
            .name = xstrdup(json_get_text(spec, "name")),
            .spec = spec,
            .mutates = l->mutates,
            .ignores = streq(json_get_text(spec, "failurePolicy"), "Ignore"),
            .equivalent = !streq(json_get_text(spec, "matchPolicy"), "Exact"),
            .reinvoked = streq(json_get_text(spec, "reinvocationPolicy"), "IfNeeded"),
            .timeout_s = (unsigned) MAX(1, MIN(timeout, MAX_TIMEOUT_S)),
        };
        read_place(h, json_get(spec, "clientConfig"));
    }
}

/* ---- rules ---- */

static bool lists(const struct json *list, const char *value)
{
    const struct json *v;
    JSON_FOREACH (v, list) {
        const char *s = json_get_string(v);
        if (s && (streq(s, "*") || streq(s, value))) {
            return true;
        }
    }
    return false;
}

/* "pods", "pods/status"; "*" stands for any resource, or any subresource behind the slash. */
static bool names_resource(const char *rule, const char *plural, const char *part)
{
    const char *slash = strchr(rule, '/'), *rule_part = slash ? slash + 1 : "";
    size_t n = slash ? (size_t) (slash - rule) : strlen(rule);
    bool resource = (n == 1 && *rule == '*') || (strlen(plural) == n && !strncmp(rule, plural, n));
    return resource && (streq(rule_part, "*") || streq(rule_part, part));
}

static bool lists_resource(const struct json *list, const char *plural, const char *part)
{
    const struct json *v;
    JSON_FOREACH (v, list) {
        const char *s = json_get_string(v);
        if (s && names_resource(s, plural, part)) {
            return true;
        }
    }
    return false;
}

/* A Namespace has no namespace. */
static bool is_in_scope(const struct json *rule, const struct api_kind *k)
{
    const char *scope = json_get_text(rule, "scope");
    return !(streq(scope, "Namespaced") && !k->namespaced) &&
           !(streq(scope, "Cluster") && k->namespaced);
}

bool webhook_has_rule(const struct webhook *h, const struct api_kind *k,
                      const struct webhook_target *t)
{
    const struct json *rule;
    JSON_FOREACH (rule, json_get(h->spec, "rules")) {
        if (lists(json_get(rule, "operations"), webhook_operation_names[t->operation]) &&
            lists(json_get(rule, "apiGroups"), k->group) &&
            lists(json_get(rule, "apiVersions"), k->version) &&
            lists_resource(json_get(rule, "resources"), k->plural, t->subresource) &&
            is_in_scope(rule, k)) {
            return true;
        }
    }
    return false;
}

static bool selects_object(const struct json *selector, const struct json *obj)
{
    return obj && label_selector_matches(selector, json_path(obj, "metadata", "labels", NULL));
}

bool webhook_selects(const struct webhook *h, const struct webhook_target *t)
{
    const struct json *namespaces = json_get(h->spec, "namespaceSelector");
    const struct json *objects = json_get(h->spec, "objectSelector");
    if (t->namespace && !label_selector_is_empty(namespaces) &&
        !label_selector_matches(namespaces, t->namespace_labels)) {
        return false;
    }
    return label_selector_is_empty(objects) || selects_object(objects, t->obj) ||
           selects_object(objects, t->old);
}
