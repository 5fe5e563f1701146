/* SPDX-License-Identifier: Apache-2.0 */
#include "client/discovery.h"

#include "base/mem.h"

#define ACCEPT                                                              \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," \
    "application/json"

static const char *const paths[] = {"/api", "/apis"};

struct discovered {
    struct api_kind kind;
    unsigned verbs;
    char *api_group, *version;
    char *names[3]; /* kind, plural, singular */
    char **lists[2];
};

struct discovery {
    struct api_registry registry;
};

/* ---- kinds ---- */

static char **string_list(const struct json *list)
{
    const struct json *s;
    size_t n = 0;
    char **out = json_count(list) ? xcalloc(json_count(list) + 1, sizeof(*out)) : NULL;
    JSON_FOREACH (s, list) {
        if (json_is(s, JSON_STRING)) {
            out[n++] = xstrdup(json_get_string(s));
        }
    }
    return out;
}

static void string_list_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++) {
        free(list[i]);
    }
    free(list);
}

static void discovered_free(struct discovered *k)
{
    free(k->api_group);
    free(k->version);
    for (size_t i = 0; i < ARRAY_SIZE(k->names); i++) {
        free(k->names[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(k->lists); i++) {
        string_list_free(k->lists[i]);
    }
    free(k);
}

static unsigned read_verbs(const struct json *list)
{
    static const char *const names[] = {"get",    "list",  "watch",  "create",
                                        "update", "patch", "delete", "deletecollection"};
    unsigned verbs = 0;
    const struct json *v;
    JSON_FOREACH (v, list) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            verbs |= streq_null(json_get_string(v), names[i]) ? 1u << i : 0;
        }
    }
    return verbs;
}

static void add_resource(struct discovery *d, const char *group, const char *version,
                         const struct json *r)
{
    const char *plural = json_path_string(r, "resource", NULL);
    const char *kind = json_path_string(r, "responseKind", "kind", NULL);
    const char *singular = json_path_string(r, "singularResource", NULL);
    if (!plural || !kind) {
        return;
    }
    struct discovered *k = NEW(struct discovered);
    k->api_group = xstrdup(group);
    k->version = xstrdup(version);
    k->names[0] = xstrdup(kind);
    k->names[1] = xstrdup(plural);
    k->names[2] = xstrdup(singular && *singular ? singular : plural);
    k->lists[0] = string_list(json_get(r, "shortNames"));
    k->lists[1] = string_list(json_get(r, "categories"));
    k->verbs = read_verbs(json_get(r, "verbs"));
    k->kind = (struct api_kind){
        .group = k->api_group,
        .version = k->version,
        .kind = k->names[0],
        .plural = k->names[1],
        .singular = k->names[2],
        .short_names = (const char *const *) k->lists[0],
        .categories = (const char *const *) k->lists[1],
        .namespaced = streq_null(json_path_string(r, "scope", NULL), "Namespaced"),
        .create_only = k->verbs == DISCOVERY_CREATE,
        .custom = true,
        .description = "",
    };
    api_registry_add(&d->registry, &k->kind);
}

struct discovery *discovery_new(void)
{
    return NEW(struct discovery);
}

struct discovery *discovery_free(struct discovery *d)
{
    if (d) {
        for (size_t i = 0; i < d->registry.n; i++) {
            discovered_free(CONTAINER_OF(d->registry.list[i], struct discovered, kind));
        }
        api_registry_done(&d->registry);
        free(d);
    }
    return NULL;
}

int discovery_add(struct discovery *d, const struct json *list, struct err *e)
{
    const struct json *group, *version, *r;
    if (!streq_null(json_path_string(list, "kind", NULL), "APIGroupDiscoveryList")) {
        return err_set(e, -EPROTO,
                       "the server has no aggregated discovery (apidiscovery.k8s.io/v2)");
    }
    JSON_FOREACH (group, json_get(list, "items")) {
        const char *name = json_path_string(group, "metadata", "name", NULL);
        JSON_FOREACH (version, json_get(group, "versions")) {
            const char *v = json_path_string(version, "version", NULL);
            JSON_FOREACH (r, v ? json_get(version, "resources") : NULL) {
                add_resource(d, name ? name : "", v, r);
            }
        }
    }
    return 0;
}

const struct api_registry *discovery_registry(const struct discovery *d)
{
    return &d->registry;
}

unsigned discovery_verbs(const struct api_kind *k)
{
    return CONTAINER_OF(k, struct discovered, kind)->verbs;
}

bool discovery_is_preferred(const struct discovery *d, const struct api_kind *k)
{
    size_t i = 0;
    while (!streq(d->registry.list[i]->group, k->group) ||
           !streq(d->registry.list[i]->plural, k->plural)) {
        i++;
    }
    return d->registry.list[i] == k;
}

/* ---- requests ---- */

struct discovery_call {
    struct api_client *client;
    struct api_call *call;
    size_t at; /* Index in 'paths'. */
    struct discovery *found;
    discovery_done_fn *done;
    void *ctx;
};

static void ask(struct discovery_call *c);

static void answered(void *ctx, int error, const char *text, struct json *obj)
{
    struct discovery_call *c = ctx;
    struct err e = {0};
    c->call = NULL;
    if (error == 0) {
        error = discovery_add(c->found, obj, &e);
        text = e.text;
    }
    if (error == 0 && ++c->at < ARRAY_SIZE(paths)) {
        ask(c);
        return;
    }
    struct discovery_call over = *c;
    free(c);
    if (error < 0) {
        over.found = discovery_free(over.found);
    }
    over.done(over.ctx, error, text, over.found);
}

static void ask(struct discovery_call *c)
{
    c->call = api_request_as(c->client, "GET", paths[c->at], ACCEPT, NULL, NULL, answered, c);
}

struct discovery_call *discovery_fetch(struct api_client *client, discovery_done_fn *done,
                                       void *ctx)
{
    struct discovery_call *c = NEW(struct discovery_call);
    *c = (struct discovery_call){
        .client = client, .found = discovery_new(), .done = done, .ctx = ctx};
    ask(c);
    return c;
}

void discovery_cancel(struct discovery_call *call)
{
    if (call) {
        api_call_cancel(call->call);
        discovery_free(call->found);
        free(call);
    }
}

int discovery_fetch_sync(struct api_client *c, struct discovery **ret, struct err *e)
{
    CLEANUP(discovery_free) struct discovery *d = discovery_new();
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        CLEANUP(json_free) struct json *list = NULL;
        int r = api_request_sync(c, "GET", paths[i], ACCEPT, NULL, NULL, &list, e);
        if (r == 0) {
            r = discovery_add(d, list, e);
        }
        if (r < 0) {
            return r;
        }
    }
    *ret = TAKE(d);
    return 0;
}
