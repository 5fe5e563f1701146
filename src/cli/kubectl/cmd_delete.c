/* SPDX-License-Identifier: Apache-2.0 */
/* tenet delete: deletes objects, and waits until they are gone. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/watch.h"

#include <stdio.h>

/* Time after which the object is read again, in case the watch missed its deletion. */
#define WATCH_MS 2000

/* An object to delete, and then to wait for. */
struct target {
    const struct api_kind *kind;
    char *ns, *name;
    char *uid; /* Set once the deletion was requested. */
};

struct delete
{
    struct session s;
    struct manifests m;
    struct target *targets;
    size_t n, cap;
    const char *labels, *fields, *output;
    const char *policy; /* propagationPolicy; "Background" unless given, as kubectl has it. */
    bool all, all_namespaces, no_wait, ignore_not_found;
    int64_t grace; /* Seconds; -1: the object's own grace period. */
    uint64_t timeout_ms;
};

static const char help[] =
    "usage: tenet delete KIND NAME... [OPTIONS]\n"
    "       tenet delete KIND/NAME... [OPTIONS]\n"
    "       tenet delete KIND (-l SEL | --field-selector F | --all) [OPTIONS]\n"
    "       tenet delete -f FILE... [OPTIONS]\n"
    "\n"
    "Deletes objects, and waits until they are gone.\n";

enum {
    OPT_FIELD_SELECTOR = OPT_FIRST_FREE,
    OPT_ALL,
    OPT_IGNORE_NOT_FOUND,
    OPT_GRACE,
    OPT_NOW,
    OPT_FORCE,
    OPT_CASCADE,
    OPT_WAIT,
    OPT_TIMEOUT
};

static const struct command_option delete_options[] = {
    {"filename", 'f', "FILE",
     "the objects of a file, a directory of files, or - for standard input", COMPLETE_FILE},
    {"selector", 'l', "SEL", "objects with these labels"},
    {"field-selector", OPT_FIELD_SELECTOR, "F", "objects with these fields"},
    {"all", OPT_ALL, NULL, "all objects of the kind in the namespace"},
    {"all-namespaces", 'A', NULL, "with --all or a selector: objects of all namespaces"},
    {"ignore-not-found", OPT_IGNORE_NOT_FOUND, NULL, "no error for what does not exist"},
    {"grace-period", OPT_GRACE, "SEC", "time for the object to end; default: its own"},
    {"now", OPT_NOW, NULL, "the same as --grace-period 1"},
    {"force", OPT_FORCE, NULL, "the same as --grace-period 0"},
    {"cascade", OPT_CASCADE, "[=background]",
     "what becomes of the objects that it owns; foreground: they go first; orphan: they stay",
     "background foreground orphan"},
    {"wait", OPT_WAIT, "[=false]", "whether to wait; default: true"},
    {"timeout", OPT_TIMEOUT, "DURATION", "longest wait, such as 30s or 2m; default: no limit",
     .detail = "After it the exit status is 1."},
    {"output", 'o', "name", "prints KIND/NAME only", "name"},
    {0},
};

/* The values "true" and "false" are those of kubectl before 1.20. */
static int set_cascade(struct delete *d, const char *value)
{
    static const struct {
        const char *value, *policy;
    } rows[] = {{"background", "Background"},
                {"true", "Background"},
                {"foreground", "Foreground"},
                {"orphan", "Orphan"},
                {"false", "Orphan"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (streq(value, rows[i].value)) {
            d->policy = rows[i].policy;
            return -1;
        }
    }
    return command_usage(&cmd_delete, "--cascade=%s is not background, foreground or orphan",
                         value);
}

/* Returns -1 to go on, else the exit status. */
static int set_option(struct delete *d, int opt)
{
    struct err e = {0};
    int64_t ns = 0;
    switch (opt) {
    case 'f':
        return manifests_read(&d->m, optarg, &e) < 0 ? session_error("%s", e.text) : -1;
    case 'l':
        d->labels = optarg;
        return -1;
    case OPT_FIELD_SELECTOR:
        d->fields = optarg;
        return -1;
    case OPT_ALL:
        d->all = true;
        return -1;
    case 'A':
        d->all_namespaces = true;
        return -1;
    case OPT_IGNORE_NOT_FOUND:
        d->ignore_not_found = true;
        return -1;
    case OPT_GRACE:
        return str_to_i64(optarg, -1, INT32_MAX, &d->grace) < 0
                   ? command_usage(&cmd_delete, "--grace-period \"%s\" is not a number of seconds",
                                   optarg)
                   : -1;
    case OPT_NOW:
        d->grace = 1;
        return -1;
    case OPT_FORCE:
        d->grace = 0;
        return -1;
    case OPT_CASCADE:
        return set_cascade(d, optarg ? optarg : "background");
    case OPT_WAIT:
        d->no_wait = optarg && streq(optarg, "false");
        return optarg && !streq(optarg, "false") && !streq(optarg, "true")
                   ? command_usage(&cmd_delete, "--wait=%s is not true or false", optarg)
                   : -1;
    case OPT_TIMEOUT:
        if (time_parse_duration(optarg, &ns) < 0 || ns < 0) {
            return command_usage(&cmd_delete, "--timeout \"%s\" is not a time such as 30s", optarg);
        }
        d->timeout_ms = (uint64_t) ns / 1000000;
        return -1;
    case 'o':
        d->output = optarg;
        return streq(optarg, "name")
                   ? -1
                   : command_usage(&cmd_delete, "output \"%s\" is not name", optarg);
    case OPT_HELP:
        return 0;
    default:
        return 2;
    }
}

static void add_target(struct delete *d, const struct api_kind *k, const char *ns, const char *name)
{
    d->targets = grow(d->targets, &d->cap, d->n + 1, sizeof(*d->targets));
    d->targets[d->n++] =
        (struct target){k, k->namespaced ? xstrdup(ns) : NULL, xstrdup(name), NULL};
}

static int report(const struct delete *d, const struct err *e)
{
    return e->code == -ENOENT && d->ignore_not_found ? 0 : session_fail(&d->s, e, NULL);
}

/* Adds all objects of kind 'k' that match the selectors. */
static int add_selected(struct delete *d, const struct api_kind *k)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *base = resource_path(k, d->all_namespaces ? NULL : d->s.ns, NULL);
    strbuf_adds(&path, base);
    resource_query(&path, "labelSelector", d->labels);
    resource_query(&path, "fieldSelector", d->fields);
    CLEANUP(json_free) struct json *list = NULL;
    struct err e = {0};
    if (api_request_sync(d->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(&d->s, &e, NULL);
    }
    const struct json *o;
    JSON_FOREACH (o, json_get(list, "items")) {
        const char *ns = json_path_string(o, "metadata", "namespace", NULL);
        const char *name = json_path_string(o, "metadata", "name", NULL);
        if (name) {
            add_target(d, k, ns ? ns : "", name);
        }
    }
    return 0;
}

static int add_resources(struct delete *d, const struct resources *r)
{
    bool select = d->labels || d->fields || d->all;
    for (size_t i = 0; i < r->n; i++) {
        const char *name = r->list[i].name;
        if (name && select) {
            return session_error("name cannot be provided when a selector is specified");
        }
        if (!name && !select) {
            return session_error("resource(s) were provided, but no name was specified");
        }
        if (name) {
            add_target(d, r->list[i].kind, d->s.ns, name);
        } else if (add_selected(d, r->list[i].kind) != 0) {
            return 1;
        }
    }
    return 0;
}

static void add_manifests(struct delete *d)
{
    for (size_t i = 0; i < d->m.n; i++) {
        const struct json *o = d->m.list[i].object;
        const char *ns = json_path_string(o, "metadata", "namespace", NULL);
        const char *name = json_path_string(o, "metadata", "name", NULL);
        add_target(d, d->m.list[i].kind, ns && *ns ? ns : d->s.ns, name ? name : "");
    }
}

static int delete_target(struct delete *d, struct target *t)
{
    CLEANUP_FREE char *path = resource_path(t->kind, t->ns, t->name);
    CLEANUP_FREE char *label = resource_label(t->kind);
    CLEANUP(json_free) struct json *options = json_object();
    CLEANUP(json_free) struct json *answer = NULL;
    struct err e = {0};
    json_set_string(options, "apiVersion", "v1");
    json_set_string(options, "kind", "DeleteOptions");
    json_set_string(options, "propagationPolicy", d->policy);
    if (d->grace >= 0) {
        json_set_int(options, "gracePeriodSeconds", d->grace);
    }
    if (api_request_sync(d->s.client, "DELETE", path, NULL, NULL, options, &answer, &e) < 0) {
        return report(d, &e);
    }
    const char *uid = json_path_string(answer, "metadata", "uid", NULL);
    if (!uid) {
        uid = json_path_string(answer, "details", "uid", NULL);
    }
    t->uid = xstrdup(uid ? uid : "");
    if (d->output) {
        printf("%s/%s\n", label, t->name);
    } else {
        printf("%s \"%s\" %sdeleted\n", label, t->name, d->grace == 0 ? "force " : "");
    }
    fflush(stdout);
    return 0;
}

static bool deleted(void *ctx, const char *type, const struct json *object)
{
    return !streq(type, "DELETED");
}

/* Waits until the object is gone, or another one has its name. */
static int wait_for(struct delete *d, const struct target *t, uint64_t deadline)
{
    CLEANUP_FREE char *path = resource_path(t->kind, t->ns, t->name);
    CLEANUP_FREE char *all = resource_path(t->kind, t->ns, NULL);
    CLEANUP_FREE char *field = xasprintf("metadata.name=%s", t->name);
    CLEANUP_STRBUF struct strbuf watch = STRBUF_INIT;
    strbuf_adds(&watch, all);
    resource_query(&watch, "fieldSelector", field);
    for (;;) {
        CLEANUP(json_free) struct json *o = NULL;
        struct err e = {0};
        int r = api_request_sync(d->s.client, "GET", path, NULL, NULL, NULL, &o, &e);
        if (r == -ENOENT) {
            return 0;
        }
        if (r < 0) {
            return session_fail(&d->s, &e, NULL);
        }
        const char *uid = json_path_string(o, "metadata", "uid", NULL);
        if (*t->uid && uid && !streq(uid, t->uid)) {
            return 0;
        }
        uint64_t now = time_mono_ms(), ms = WATCH_MS;
        if (deadline && now >= deadline) {
            return session_error("timed out waiting for the condition on %s/%s", t->kind->plural,
                                 t->name);
        }
        ms = deadline ? MIN(ms, deadline - now) : ms;
        const char *version = json_path_string(o, "metadata", "resourceVersion", NULL);
        r = watch_run(&d->s, strbuf_cstr(&watch), NULL, version ? version : "", ms, deleted, NULL,
                      &e);
        if (r < 0 && r != -ETIMEDOUT && r != -ESTALE) {
            return session_fail(&d->s, &e, NULL);
        }
    }
}

static void delete_done(struct delete *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->targets[i].ns);
        free(d->targets[i].name);
        free(d->targets[i].uid);
    }
    free(d->targets);
    manifests_done(&d->m);
    session_done(&d->s);
}

static int delete_all(struct delete *d)
{
    int status = 0;
    uint64_t deadline = d->timeout_ms ? time_mono_ms() + d->timeout_ms : 0;
    for (size_t i = 0; i < d->n; i++) {
        status |= delete_target(d, &d->targets[i]);
    }
    for (size_t i = 0; !d->no_wait && i < d->n; i++) {
        if (d->targets[i].uid) {
            status |= wait_for(d, &d->targets[i], deadline);
        }
    }
    if (d->n == 0) {
        puts("No resources found");
    }
    return status;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(delete_done))) struct delete d = {.policy = "Background", .grace = -1};
    CLEANUP_RESOURCES struct resources r = {0};
    int opt, status = -1;
    while (status < 0 && (opt = session_getopt(&d.s, &cmd_delete, argc, argv, NULL)) != -1) {
        status = set_option(&d, opt);
    }
    if (status >= 0) {
        return status;
    }
    int n = argc - optind;
    if (d.m.n > 0 && n > 0) {
        return command_usage(&cmd_delete, "unexpected argument \"%s\" beside -f", argv[optind]);
    }
    status = session_open(&d.s);
    if (status == 0) {
        status = d.m.n ? learn_manifests(&d.s, &d.m) : learn_resources(&d.s, n, argv + optind, &r);
    }
    if (status != 0) {
        return status;
    }
    add_manifests(&d);
    status = add_resources(&d, &r);
    return status ? status : delete_all(&d);
}

const struct command cmd_delete = {.name = "delete",
                                   .summary = "delete objects and wait until they are gone",
                                   .help = help,
                                   .options = delete_options,
                                   .shared = session_options,
                                   .complete = COMPLETE_KIND,
                                   .run = run};
