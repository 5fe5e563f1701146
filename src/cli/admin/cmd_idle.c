/* SPDX-License-Identifier: Apache-2.0 */
/* tenet idle: scales the pods behind services to none, until the first connection wakes the service
 * up. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/resource.h"
#include "cli/session.h"
#include "controllers/services/idling.h"

#include <stdio.h>

#define OWNERS_MAX 8 /* The longest chain of owners: a pod's owner, its owner, and so on. */
#define MERGE "application/merge-patch+json"

/* Kinds that make pods and can be scaled. */
struct target {
    const struct api_kind *kind;
    char *name;
    struct json *scale;
    int64_t replicas;
};

struct idle {
    struct session s;
    const char *labels;
    bool all, dry_run;
    char now[TIME_TEXT_SIZE];
    struct target *targets; /* The scalable objects behind all services, each once. */
    size_t n, cap;
};

static const char help[] =
    "usage: tenet idle SERVICE... [OPTIONS]\n"
    "       tenet idle --all [OPTIONS]\n"
    "       tenet idle -l SELECTOR [OPTIONS]\n"
    "\n"
    "Scales what makes the pods of services to none, whatever its kind, as long as it has the\n"
    "subresource scale. What there was is kept in annotations of the service, and comes back with\n"
    "the first connection to it.\n";

enum { OPT_ALL = OPT_FIRST_FREE, OPT_DRY_RUN };

static const struct command_option options[] = {
    {"selector", 'l', "SEL", "the services with these labels"},
    {"all", OPT_ALL, NULL, "all services of the namespace that have pods"},
    {"dry-run", OPT_DRY_RUN, NULL, "only prints what would be idled"},
    {0},
};

static void idle_done(struct idle *i)
{
    for (size_t k = 0; k < i->n; k++) {
        free(i->targets[k].name);
        json_free(i->targets[k].scale);
    }
    free(i->targets);
    session_done(&i->s);
}

static int get(struct idle *i, const char *path, struct json **ret, struct err *e)
{
    return api_request_sync(i->s.client, "GET", path, NULL, NULL, NULL, ret, e);
}

static int merge(struct idle *i, const char *path, const struct json *patch)
{
    struct err e = {0};
    return api_request_sync(i->s.client, "PATCH", path, NULL, MERGE, patch, NULL, &e) < 0
               ? session_fail(&i->s, &e, NULL)
               : 0;
}

static char *object_path(const struct idle *i, const struct api_kind *k, const char *name,
                         const char *subresource)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    return api_path(version, k->plural, i->s.ns, name, subresource);
}

/* ---- who makes the pods ---- */

static const struct json *controller_of(const struct json *obj)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(obj, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(ref, "controller"), false)) {
            return ref;
        }
    }
    return NULL;
}

static const struct api_kind *kind_of(struct idle *i, const struct json *ref)
{
    const char *version = json_path_string(ref, "apiVersion", NULL);
    const char *kind = json_path_string(ref, "kind", NULL);
    return version && kind ? api_registry_by_name(discovery_registry(i->s.kinds), version, kind)
                           : NULL;
}

static struct target *target_add(struct idle *i, const struct api_kind *k, const char *name,
                                 struct json *scale)
{
    i->targets = grow(i->targets, &i->cap, i->n + 1, sizeof *i->targets);
    i->targets[i->n] =
        (struct target){.kind = k,
                        .name = xstrdup(name),
                        .scale = scale,
                        .replicas = json_get_int_or(json_path(scale, "spec", "replicas", NULL), 0)};
    return &i->targets[i->n++];
}

static size_t target_find(const struct idle *i, const struct api_kind *k, const char *name)
{
    size_t at = 0;
    while (at < i->n && (i->targets[at].kind != k || !streq(i->targets[at].name, name))) {
        at++;
    }
    return at;
}

/* The last object of the chain of owners of 'obj' (taken over) that can be scaled: its index;
 * SIZE_MAX: none can. */
static size_t top_owner(struct idle *i, struct json *obj)
{
    size_t found = SIZE_MAX;
    for (unsigned level = 0; obj && level < OWNERS_MAX; level++) {
        const struct json *ref = controller_of(obj);
        const struct api_kind *k = ref ? kind_of(i, ref) : NULL;
        const char *name = json_path_string(ref, "name", NULL);
        struct json *scale = NULL, *owner = NULL;
        if (!k || !k->namespaced || !name) {
            break;
        }
        CLEANUP_FREE char *path = object_path(i, k, name, NULL);
        CLEANUP_FREE char *scale_path = object_path(i, k, name, "scale");
        size_t at = target_find(i, k, name);
        if (at < i->n) {
            found = at;
        } else if (get(i, scale_path, &scale, NULL) == 0) {
            found = i->n;
            (void) target_add(i, k, name, scale);
        }
        (void) get(i, path, &owner, NULL);
        json_free(obj);
        obj = owner;
    }
    json_free(obj);
    return found;
}

static bool is_listed(const struct json *list, size_t at)
{
    const struct json *v;
    JSON_FOREACH (v, list) {
        if (json_get_int_or(v, -1) == (int64_t) at) {
            return true;
        }
    }
    return false;
}

/* Adds to 'list' the indexes of the scalable objects behind the addresses. */
static void add_targets(struct idle *i, const struct json *addresses, struct json *list)
{
    const struct json *a;
    JSON_FOREACH (a, addresses) {
        const char *kind = json_path_string(a, "targetRef", "kind", NULL);
        const char *name = json_path_string(a, "targetRef", "name", NULL);
        struct json *pod = NULL;
        if (!name || !streq_null(kind, "Pod")) {
            continue;
        }
        CLEANUP_FREE char *path = api_path("v1", "pods", i->s.ns, name, NULL);
        if (get(i, path, &pod, NULL) == 0) {
            size_t at = top_owner(i, pod);
            if (at != SIZE_MAX && !is_listed(list, at)) {
                json_append(list, json_int((int64_t) at));
            }
        }
    }
}

/* ---- idling ---- */

static void print_kind(const struct api_kind *k, struct strbuf *out)
{
    strbuf_addf(out, "%s%s%s", k->kind, *k->group ? "." : "", k->group);
}

/* Builds the annotation's list, and the text for the user. */
static struct json *recorded(const struct idle *i, const char *service, const struct json *list,
                             struct strbuf *text)
{
    struct json *out = json_array();
    const struct json *v;
    JSON_FOREACH (v, list) {
        const struct target *t = &i->targets[json_get_int_or(v, 0)];
        if (t->replicas <= 0) {
            continue;
        }
        struct json *o = json_append(out, json_object());
        json_set_string(o, "kind", t->kind->kind);
        json_set_string(o, "name", t->name);
        json_set_string(o, "group", t->kind->group);
        json_set_int(o, "replicas", t->replicas);
        strbuf_addf(text, "The service \"%s/%s\" will unidle ", i->s.ns, service);
        print_kind(t->kind, text);
        strbuf_addf(text, " \"%s/%s\" to %lld replicas once it receives traffic\n", i->s.ns,
                    t->name, (long long) t->replicas);
    }
    return out;
}

/* Marks the service and its Endpoints as idle; does nothing if no object could bring the pods
 * back. */
static int mark_service(struct idle *i, const char *name)
{
    struct err e = {0};
    CLEANUP(json_free) struct json *endpoints = NULL;
    CLEANUP(json_free) struct json *list = json_array();
    CLEANUP_FREE char *ep_path = api_path("v1", "endpoints", i->s.ns, name, NULL);
    CLEANUP_FREE char *svc_path = api_path("v1", "services", i->s.ns, name, NULL);
    if (get(i, svc_path, NULL, &e) < 0 || get(i, ep_path, &endpoints, &e) < 0) {
        return session_fail(&i->s, &e, NULL);
    }
    const struct json *s;
    JSON_FOREACH (s, json_get(endpoints, "subsets")) {
        add_targets(i, json_get(s, "addresses"), list);
        add_targets(i, json_get(s, "notReadyAddresses"), list);
    }
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *targets = recorded(i, name, list, &text);
    if (!json_count(targets)) {
        return i->all ? 0
                      : session_error("the service \"%s/%s\" has nothing to be idled: none of its "
                                      "pods has an owner that can be scaled",
                                      i->s.ns, name);
    }
    CLEANUP(json_free) struct json *patch = idle_patch(i->now, targets);
    if (!i->dry_run && (merge(i, ep_path, patch) || merge(i, svc_path, patch))) {
        return 1;
    }
    printf("The service \"%s/%s\" has been marked as idled%s\n%s", i->s.ns, name,
           i->dry_run ? " (dry run)" : "", strbuf_cstr(&text));
    return 0;
}

static int scale_down(struct idle *i, struct target *t)
{
    struct err e = {0};
    CLEANUP_FREE char *path = object_path(i, t->kind, t->name, NULL);
    CLEANUP_FREE char *scale_path = object_path(i, t->kind, t->name, "scale");
    CLEANUP(json_free) struct json *patch = idle_target_patch(i->now, t->replicas);
    CLEANUP(json_free) struct json *down = json_object();
    CLEANUP_STRBUF struct strbuf kind = STRBUF_INIT;
    if (t->replicas <= 0) {
        return 0;
    }
    json_set_int(json_ensure_object(down, "spec"), "replicas", 0);
    if (!i->dry_run) {
        if (merge(i, path, patch)) {
            return 1;
        }
        if (api_request_sync(i->s.client, "PATCH", scale_path, NULL, MERGE, down, NULL, &e) < 0) {
            return session_fail(&i->s, &e, NULL);
        }
    }
    print_kind(t->kind, &kind);
    printf("%s \"%s/%s\" has been idled%s\n", strbuf_cstr(&kind), i->s.ns, t->name,
           i->dry_run ? " (dry run)" : "");
    return 0;
}

/* Finds the services of the namespace that have the labels. */
static int mark_all(struct idle *i)
{
    struct err e = {0};
    CLEANUP(json_free) struct json *list = NULL;
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *base = api_path("v1", "services", i->s.ns, NULL, NULL);
    strbuf_adds(&path, base);
    resource_query(&path, "labelSelector", i->labels);
    if (get(i, strbuf_cstr(&path), &list, &e) < 0) {
        return session_fail(&i->s, &e, NULL);
    }
    int status = 0;
    const struct json *s;
    i->all = true;
    JSON_FOREACH (s, json_get(list, "items")) {
        status |= mark_service(i, json_path_string(s, "metadata", "name", NULL));
    }
    if (!i->n && !status) {
        fprintf(stderr, "No service has anything to be idled\n");
    }
    return status;
}

static int run_idle(struct idle *i, int n, char **names)
{
    struct err e = {0};
    int status = session_open(&i->s);
    if (status) {
        return status;
    }
    if (!i->s.kinds && discovery_fetch_sync(i->s.client, &i->s.kinds, &e) < 0) {
        return session_fail(&i->s, &e, NULL);
    }
    time_format_s(time_wall_ms(), i->now);
    if (!n) {
        status = mark_all(i);
    }
    for (int k = 0; k < n; k++) {
        status |= mark_service(i, names[k]);
    }
    for (size_t k = 0; k < i->n && !status; k++) {
        status = scale_down(i, &i->targets[k]);
    }
    return status;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(idle_done))) struct idle i = {0};
    int opt;
    while ((opt = session_getopt(&i.s, &cmd_idle, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'l':
            i.labels = optarg;
            break;
        case OPT_ALL:
            i.all = true;
            break;
        case OPT_DRY_RUN:
            i.dry_run = true;
            break;
        case OPT_HELP:
            return 0;
        default:
            return 2;
        }
    }
    int n = argc - optind;
    if ((n > 0) + (i.labels != NULL) + i.all != 1) {
        return command_usage(&cmd_idle, "say which services: names, --selector, or --all");
    }
    return run_idle(&i, n, argv + optind);
}

const struct command cmd_idle = {.name = "idle",
                                 .summary = "scale services to none until they are wanted",
                                 .help = help,
                                 .options = options,
                                 .shared = session_options,
                                 .complete = COMPLETE_SERVICE,
                                 .run = run};
