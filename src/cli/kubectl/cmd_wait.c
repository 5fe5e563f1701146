/* SPDX-License-Identifier: Apache-2.0 */
/* tenet wait: waits until objects have a condition, a value, or are gone. */
#include "api/table/jsonpath.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/target.h"
#include "cli/kubectl/watch.h"

#include <stdio.h>
#include <strings.h>

enum wait_for { FOR_CONDITION, FOR_DELETE, FOR_CREATE, FOR_JSONPATH };

struct wait {
    enum wait_for what;
    char *name;        /* The condition's type, or the template of jsonpath; owned. */
    const char *value; /* The wanted value; NULL with jsonpath: any. */
    const char *uid;   /* The object that is to be deleted; NULL: any. */
    uint64_t deadline_ms;
};

enum { OPT_FOR = OPT_FIRST_FREE, OPT_TIMEOUT };

static const struct command_option options[] = {
    {"for", OPT_FOR, "WHAT", "condition=TYPE[=VALUE], delete, create, or jsonpath='{PATH}'[=VALUE]",
     "condition= delete create jsonpath="},
    {"timeout", OPT_TIMEOUT, "DURATION",
     "longest wait, such as 30s or 2m; default: 30s; 0: looks once; negative: a week"},
    {"all-namespaces", 'A', NULL, "with --all or a selector: objects of all namespaces"},
    {0},
};

static int set_for(struct wait *w, const char *text)
{
    static const char condition[] = "condition=", path[] = "jsonpath=";
    if (strcasecmp(text, "delete") == 0 || strcasecmp(text, "create") == 0) {
        w->what = strcasecmp(text, "delete") == 0 ? FOR_DELETE : FOR_CREATE;
        return -1;
    }
    if (str_has_prefix(text, condition)) {
        text += strlen(condition);
        const char *equals = strchr(text, '=');
        w->what = FOR_CONDITION;
        w->value = equals ? equals + 1 : "true";
        free(w->name);
        w->name = equals ? xstrndup(text, (size_t) (equals - text)) : xstrdup(text);
        return -1;
    }
    if (str_has_prefix(text, path)) {
        text += strlen(path);
        const char *end = strrchr(text, '}');
        w->what = FOR_JSONPATH;
        w->value = end && end[1] == '=' ? end + 2 : NULL;
        if (!end || (end[1] && end[1] != '=')) {
            return session_error("jsonpath wait format must be --for=jsonpath='{PATH}'=VALUE or "
                                 "--for=jsonpath='{PATH}'");
        }
        free(w->name);
        w->name = xstrndup(text, (size_t) (end + 1 - text));
        return -1;
    }
    return session_error("unrecognized condition: \"%s\"", text);
}

static bool has_condition(const struct wait *w, const struct json *object)
{
    const struct json *c;
    JSON_FOREACH (c, json_path(object, "status", "conditions", NULL)) {
        if (strcasecmp(json_get_text(c, "type"), w->name) == 0) {
            int64_t seen = json_get_int_or(json_get(c, "observedGeneration"), INT64_MAX);
            int64_t now = json_get_int_or(json_path(object, "metadata", "generation", NULL), 0);
            return seen >= now && strcasecmp(json_get_text(c, "status"), w->value) == 0;
        }
    }
    return false;
}

static int on_state(void *ctx, const struct json *object, struct err *e)
{
    const struct wait *w = ctx;
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
    if (w->what == FOR_DELETE) {
        return !object ||
               (w->uid && !streq_null(json_path_string(object, "metadata", "uid", NULL), w->uid));
    }
    if (!object) {
        return w->what == FOR_CREATE ? 0 : err_set(e, -ENOENT, "the object was deleted");
    }
    if (w->what == FOR_CONDITION) {
        return has_condition(w, object);
    }
    if (w->what == FOR_CREATE) {
        return 1;
    }
    if (jsonpath_print(w->name, object, &value, e) < 0) {
        return -EINVAL;
    }
    return w->value ? streq(strbuf_cstr(&value), w->value) : value.size > 0;
}

static int wait_one(struct targets *t, const struct api_kind *k, const char *ns, const char *name,
                    struct wait *w)
{
    struct err e = {0};
    int r = watch_object(&t->s, k, ns, name, w->deadline_ms, on_state, w, &e);
    if (r == -ETIMEDOUT) {
        return session_error("timed out waiting for the condition on %s/%s", k->plural, name);
    }
    return r == -EINVAL ? session_error("%s", e.text) : r < 0 ? session_fail(&t->s, &e, NULL) : 0;
}

static int wait_target(struct targets *t, const struct target *g, struct wait *w)
{
    const char *ns = json_path_string(g->object, "metadata", "namespace", NULL);
    w->uid = json_path_string(g->object, "metadata", "uid", NULL);
    int status = wait_one(t, g->kind, ns, target_name(g), w);
    return status ? status : target_print(t, g->kind, g->object, "condition met");
}

/* Waits for the objects that the arguments name, which need not be there yet, or any more. */
static int wait_by_name(struct targets *t, const struct resources *r, struct wait *w)
{
    int status = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct resource *one = &r->list[i];
        CLEANUP(json_free) struct json *o = NULL;
        CLEANUP_FREE char *path = resource_path(one->kind, t->s.ns, one->name);
        const char *ns = one->kind->namespaced ? t->s.ns : NULL;
        struct err e = {0};
        int found = api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, &o, &e);
        if (found < 0 &&
            (found != -ENOENT || w->what == FOR_CONDITION || w->what == FOR_JSONPATH)) {
            status |= session_fail(&t->s, &e, NULL);
            continue;
        }
        if (found < 0) {
            o = json_object();
            json_set_string(json_ensure_object(o, "metadata"), "name", one->name);
        }
        w->uid = found < 0 ? NULL : json_path_string(o, "metadata", "uid", NULL);
        int result =
            found < 0 && w->what == FOR_DELETE ? 0 : wait_one(t, one->kind, ns, one->name, w);
        status |= result ? result : target_print(t, one->kind, o, "condition met");
    }
    return status;
}

static void wait_done(struct wait *w)
{
    free(w->name);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(struct targets *t, struct wait *w, int argc, char **argv, bool *ret_given)
{
    int64_t timeout = 30 * NS_PER_S;
    int opt, status = -1;
    while (status < 0 && (opt = targets_getopt(t, &cmd_wait, argc, argv)) != -1) {
        switch (opt) {
        case OPT_FOR:
            status = set_for(w, optarg);
            *ret_given = true;
            break;
        case OPT_TIMEOUT:
            if (time_parse_duration(optarg, &timeout) < 0) {
                return command_usage(&cmd_wait, "--timeout \"%s\" is not a time such as 30s",
                                     optarg);
            }
            break;
        case 'A':
            t->all_namespaces = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    timeout = timeout < 0 ? 7 * 24 * 3600 * NS_PER_S : timeout;
    w->deadline_ms = MAX(time_mono_ms() + (uint64_t) (timeout / NS_PER_MS), 1);
    return status;
}

static bool has_names(int n, char *const *args)
{
    return n > 1 || (n == 1 && strchr(args[0], '/'));
}

static int run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    CLEANUP_RESOURCES struct resources r = {0};
    __attribute__((cleanup(wait_done))) struct wait w = {0};
    bool given = false;
    int status = parse_options(&t, &w, argc, argv, &given);
    if (status >= 0) {
        return status;
    }
    if (!given) {
        return session_error("--for is required: condition=TYPE, delete, create or jsonpath=");
    }
    int n = argc - optind;
    if (has_names(n, argv + optind) && !t.labels && !t.all && t.m.n == 0) {
        status = session_open(&t.s);
        if (status == 0) {
            status = learn_resources(&t.s, n, argv + optind, &r);
        }
        return status ? status : wait_by_name(&t, &r, &w);
    }
    status = targets_load(&t, NULL, n, argv + optind);
    if (status == 0 && t.n == 0) {
        return w.what == FOR_DELETE ? 0 : session_error("no matching resources found");
    }
    for (size_t i = 0; i < t.n; i++) {
        status |= wait_target(&t, &t.list[i], &w);
    }
    return status;
}

const struct command cmd_wait = {
    .name = "wait",
    .summary = "wait for a condition of objects",
    .help = "usage: tenet wait KIND/NAME... --for WHAT [OPTIONS]\n"
            "       tenet wait KIND (-l SEL | --all) --for WHAT [OPTIONS]\n"
            "\n"
            "Waits until objects have a condition (condition=Ready, condition=Ready=false), a\n"
            "value (jsonpath='{.status.phase}'=Running), exist (create), or are gone (delete).\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run};
