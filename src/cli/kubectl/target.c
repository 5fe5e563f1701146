/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/target.h"

#include "api/table/jsonpath.h"
#include "base/mem.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/print.h"

#include <stdio.h>

#define ATTEMPTS 5 /* Of a change while other clients change the same object. */
#define JSONPATH "jsonpath="

enum { OPT_ALL = OPT_FIRST_FREE + 64, OPT_DRY_RUN };

#define OUTPUT_ROW                                                                       \
    {                                                                                    \
        "output", 'o', "FORMAT", "the object as json, yaml, name, or jsonpath=TEMPLATE", \
            "json yaml name jsonpath="                                                   \
    }
#define DRY_RUN_ROW                                                                          \
    {                                                                                        \
        "dry-run", OPT_DRY_RUN, "[=client]",                                                 \
            "stores nothing; server: the server checks the request; client: it is not sent", \
            "client server none"                                                             \
    }

const struct command_option target_options[] = {
    {"filename", 'f', "FILE", "the objects of a file, a directory, or - for standard input",
     COMPLETE_FILE},
    {"selector", 'l', "SEL", "the objects with these labels: a=b,c!=d,e"},
    {"all", OPT_ALL, NULL, "all objects of the kind in the namespace"},
    DRY_RUN_ROW,
    OUTPUT_ROW,
    SESSION_OPTIONS,
    {0},
};

const struct command_option target_new_options[] = {
    DRY_RUN_ROW,
    OUTPUT_ROW,
    SESSION_OPTIONS,
    {0},
};

void targets_done(struct targets *t)
{
    for (size_t i = 0; i < t->n; i++) {
        json_free(t->list[i].object);
    }
    free(t->list);
    manifests_done(&t->m);
    session_done(&t->s);
    *t = (struct targets){0};
}

/* ---- options ---- */

static int set_dry_run(struct targets *t, const struct command *c, const char *value)
{
    static const char *const names[] = {"none", "client", "server"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (streq(value, names[i])) {
            t->dry_run = (enum target_dry_run) i;
            return -1;
        }
    }
    (void) command_usage(c, "--dry-run=%s is not none, client or server", value);
    return '?';
}

static int set_output(struct targets *t, const struct command *c, const char *value)
{
    if (streq(value, "json") || streq(value, "yaml") || streq(value, "name") ||
        str_has_prefix(value, JSONPATH)) {
        t->output = value;
        return -1;
    }
    (void) command_usage(c, "output \"%s\" is not json, yaml, name or jsonpath=TEMPLATE", value);
    return '?';
}

int targets_getopt(struct targets *t, const struct command *c, int argc, char **argv)
{
    int opt;
    while ((opt = session_getopt(&t->s, c, argc, argv, NULL)) != -1) {
        struct err e = {0};
        int r = -1;
        switch (opt) {
        case 'f':
            if (manifests_read(&t->m, optarg, &e) < 0) {
                (void) session_error("%s", e.text);
                r = '?';
            }
            break;
        case 'l':
            t->labels = optarg;
            break;
        case OPT_ALL:
            t->all = true;
            break;
        case OPT_DRY_RUN:
            r = set_dry_run(t, c, optarg ? optarg : "client");
            break;
        case 'o':
            r = set_output(t, c, optarg);
            break;
        default:
            return opt;
        }
        if (r != -1) {
            return r;
        }
    }
    return -1;
}

/* ---- reading ---- */

static void add(struct targets *t, const struct api_kind *k, struct json *object)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    /* The items of a list have neither. */
    if (!json_get(object, "kind")) {
        json_set_string(object, "apiVersion", version);
        json_set_string(object, "kind", k->kind);
    }
    t->list = grow(t->list, &t->cap, t->n + 1, sizeof(*t->list));
    t->list[t->n++] = (struct target){k, object};
}

static int load_one(struct targets *t, const struct api_kind *k, const char *ns, const char *name)
{
    CLEANUP_FREE char *path = resource_path(k, ns, name);
    struct json *o = NULL;
    struct err e = {0};
    if (api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, &o, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    add(t, k, o);
    return 0;
}

int targets_load_kind(struct targets *t, const struct api_kind *k, const char *labels)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *base = resource_path(k, t->all_namespaces ? NULL : t->s.ns, NULL);
    CLEANUP(json_free) struct json *list = NULL;
    struct err e = {0};
    strbuf_adds(&path, base);
    resource_query(&path, "labelSelector", labels);
    if (api_request_sync(t->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    const struct json *o;
    JSON_FOREACH (o, json_get(list, "items")) {
        add(t, k, json_clone(o));
    }
    return 0;
}

static int load_manifests(struct targets *t)
{
    int status = learn_manifests(&t->s, &t->m);
    for (size_t i = 0; status == 0 && i < t->m.n; i++) {
        const struct json *o = t->m.list[i].object;
        const char *ns = json_path_string(o, "metadata", "namespace", NULL);
        const char *name = json_path_string(o, "metadata", "name", NULL);
        status |= load_one(t, t->m.list[i].kind, ns && *ns ? ns : t->s.ns, name ? name : "");
    }
    return status;
}

/* The arguments, with "KIND/" before those without a slash; owned texts. */
static char **with_kind(const char *kind, int n, char *const *args)
{
    char **list = xcalloc((size_t) n + 1, sizeof(*list));
    for (int i = 0; i < n; i++) {
        list[i] = strchr(args[i], '/') ? xstrdup(args[i]) : xasprintf("%s/%s", kind, args[i]);
    }
    return list;
}

static int parse(struct targets *t, const char *kind, int n, char *const *args,
                 struct resources *ret)
{
    if (!kind || n == 0) {
        char *const only[] = {(char *) kind};
        return kind ? learn_resources(&t->s, 1, only, ret) : learn_resources(&t->s, n, args, ret);
    }
    char **list = with_kind(kind, n, args);
    int status = learn_resources(&t->s, n, list, ret);
    for (int i = 0; i < n; i++) {
        free(list[i]);
    }
    free(list);
    return status;
}

int targets_load(struct targets *t, const char *kind, int n, char *const *args)
{
    CLEANUP_RESOURCES struct resources r = {0};
    int status = session_open(&t->s);
    if (status == 0 && t->m.n > 0) {
        return n > 0 ? session_error("unexpected argument \"%s\" beside -f", args[0])
                     : load_manifests(t);
    }
    if (status == 0) {
        status = parse(t, kind, n, args, &r);
    }
    for (size_t i = 0; status == 0 && i < r.n; i++) {
        if (r.list[i].name && (t->labels || t->all)) {
            return session_error("name cannot be provided when a selector is specified");
        }
        if (!r.list[i].name && !t->labels && !t->all && !t->local_all) {
            return session_error("resource(s) were provided, but no name was specified");
        }
    }
    if (status != 0) {
        return status;
    }
    for (size_t i = 0; i < r.n; i++) {
        status |= r.list[i].name ? load_one(t, r.list[i].kind, t->s.ns, r.list[i].name)
                                 : targets_load_kind(t, r.list[i].kind, t->labels);
    }
    return status;
}

const struct api_kind *targets_kind(struct targets *t, const char *alias)
{
    CLEANUP_RESOURCES struct resources r = {0};
    char *const args[] = {(char *) alias};
    return learn_resources(&t->s, 1, args, &r) == 0 ? r.list[0].kind : NULL;
}

/* ---- words ---- */

const char *target_name(const struct target *g)
{
    const char *name = json_path_string(g->object, "metadata", "name", NULL);
    return name ? name : "";
}

char *target_path(const struct target *g, const char *subresource)
{
    CLEANUP_FREE char *version = api_kind_api_version(g->kind);
    const char *ns = json_path_string(g->object, "metadata", "namespace", NULL);
    return api_path(version, g->kind->plural, g->kind->namespaced ? ns : NULL, target_name(g),
                    subresource);
}

char *target_title(const struct target *g)
{
    return xasprintf("%s%s%s \"%s\"", g->kind->plural, *g->kind->group ? "." : "", g->kind->group,
                     target_name(g));
}

const char *target_query(const struct targets *t)
{
    return t->dry_run == DRY_RUN_SERVER ? "?dryRun=All" : "";
}

int target_print(const struct targets *t, const struct api_kind *k, const struct json *o,
                 const char *said)
{
    static const char *const dry[] = {"", " (dry run)", " (server dry run)"};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_FREE char *label = resource_label(k);
    const char *name = json_path_string(o, "metadata", "name", NULL);
    struct err e = {0};
    if (!t->output) {
        strbuf_addf(&out, "%s/%s %s%s\n", label, name ? name : "", said, dry[t->dry_run]);
    } else if (streq(t->output, "name")) {
        strbuf_addf(&out, "%s/%s\n", label, name ? name : "");
    } else if (streq(t->output, "json")) {
        print_json(o, &out);
    } else if (streq(t->output, "yaml")) {
        print_yaml(o, &out);
    } else if (jsonpath_print(t->output + strlen(JSONPATH), o, &out, &e) < 0) {
        return session_error("%s", e.text);
    }
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- changes ---- */

/* A pair of objects whose members are compared; children are added at the end, so that nothing
 * recurses. */
struct pair {
    const struct json *before, *after;
    struct json *patch;
};

struct json *target_difference(const struct json *before, const struct json *after)
{
    struct json *patch = json_object();
    struct pair *list = NULL;
    size_t n = 0, cap = 0;
    list = grow(list, &cap, 1, sizeof(*list));
    list[n++] = (struct pair){before, after, patch};
    for (size_t i = 0; i < n; i++) {
        const struct pair p = list[i];
        for (size_t k = 0; k < json_count(p.before); k++) {
            if (!json_get(p.after, json_key_at(p.before, k))) {
                json_set(p.patch, json_key_at(p.before, k), json_null());
            }
        }
        for (size_t k = 0; k < json_count(p.after); k++) {
            const char *key = json_key_at(p.after, k);
            const struct json *a = json_get(p.before, key), *b = json_at(p.after, k);
            if (json_equal(a, b) && a) {
                continue;
            }
            if (json_is(a, JSON_OBJECT) && json_is(b, JSON_OBJECT)) {
                list = grow(list, &cap, n + 1, sizeof(*list));
                list[n++] = (struct pair){a, b, json_set(p.patch, key, json_object())};
            } else {
                json_set(p.patch, key, json_clone(b));
            }
        }
    }
    free(list);
    return patch;
}

/* Sends the difference.  0, or a negative errno; -ESTALE: the object has changed meanwhile. */
static int send(struct targets *t, const struct target *g, const struct json *before,
                struct json *changed, struct json **ret, bool *ret_changed, struct err *e)
{
    CLEANUP(json_free) struct json *patch = target_difference(before, changed);
    *ret_changed = json_count(patch) > 0;
    if (!*ret_changed || t->dry_run == DRY_RUN_CLIENT) {
        *ret = json_clone(changed);
        return 0;
    }
    CLEANUP_FREE char *path = target_path(g, NULL);
    CLEANUP_FREE char *query = xasprintf("%s%s", path, target_query(t));
    json_set_string(json_ensure_object(patch, "metadata"), "resourceVersion",
                    json_path_string(before, "metadata", "resourceVersion", NULL));
    return api_request_sync(t->s.client, "PATCH", query, NULL, PATCH_MERGE, patch, ret, e);
}

int target_change(struct targets *t, const struct target *g, target_change_fn *fn, void *ctx,
                  struct json **ret, bool *ret_changed)
{
    CLEANUP(json_free) struct json *before = json_clone(g->object);
    CLEANUP_FREE char *path = target_path(g, NULL);
    CLEANUP(json_free) struct json *answer = NULL;
    struct err e = {0};
    int r = 0;
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *changed = json_clone(before);
        if (fn(ctx, g->kind, changed, &e) < 0) {
            return session_error("%s", e.text);
        }
        r = send(t, g, before, changed, &answer, ret_changed, &e);
        if (r != -ESTALE) {
            break;
        }
        struct json *now = NULL;
        r = api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, &now, &e);
        if (r < 0) {
            break;
        }
        json_free(before);
        before = now;
        r = err_set(&e, -ESTALE, "%s %s: other clients change it all the time", g->kind->singular,
                    target_name(g));
    }
    if (r < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    if (ret) {
        *ret = TAKE(answer);
    }
    return 0;
}

int targets_change(struct targets *t, target_change_fn *fn, void *ctx, const char *said)
{
    int status = 0;
    for (size_t i = 0; i < t->n; i++) {
        CLEANUP(json_free) struct json *now = NULL;
        bool changed = false;
        int r = target_change(t, &t->list[i], fn, ctx, &now, &changed);
        if (r == 0 && (changed || t->output)) {
            r = target_print(t, t->list[i].kind, now, said);
        }
        status |= r;
    }
    return status;
}

int targets_create(struct targets *t, const struct api_kind *k, const struct json *o,
                   const char *said)
{
    if (t->dry_run == DRY_RUN_CLIENT) {
        return target_print(t, k, o, said);
    }
    CLEANUP_FREE char *base = resource_path(k, t->s.ns, NULL);
    CLEANUP_FREE char *path = xasprintf("%s%s", base, target_query(t));
    CLEANUP(json_free) struct json *answer = NULL;
    struct err e = {0};
    if (api_request_sync(t->s.client, "POST", path, NULL, NULL, o, &answer, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    return target_print(t, k, answer, said);
}
