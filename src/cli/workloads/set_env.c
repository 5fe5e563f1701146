/* SPDX-License-Identifier: Apache-2.0 */
/* tenet set env: environment variables of containers. */
#include "base/mem.h"
#include "cli/workloads/set.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <unistd.h>

#define INPUT_MAX (1u << 20)

struct env_change {
    const char *containers, *from, *prefix, *keys;
    bool list, keep;          /* keep: --overwrite=false */
    struct json *set;         /* NAME: VALUE, or an object "valueFrom". */
    struct json *remove;      /* Names. */
    struct json *object_data; /* Keys of the object of --from; NULL: none. */
};

enum { OPT_LIST = OPT_FIRST_FREE, OPT_FROM, OPT_PREFIX, OPT_KEYS, OPT_OVERWRITE };

static const struct command_option options[] = {
    {"containers", 'c', "NAME", "the containers, such as web or web*; default: *"},
    {"env", 'e', "NAME=VALUE", "a variable; may be repeated"},
    {"list", OPT_LIST, NULL, "prints the variables"},
    {"from", OPT_FROM, "KIND/NAME", "variables for all keys of a configmap or secret"},
    {"prefix", OPT_PREFIX, "TEXT", "with --from: put before the names"},
    {"keys", OPT_KEYS, "KEY[,KEY]", "with --from: these keys only"},
    {"overwrite", OPT_OVERWRITE, "[=false]", "whether variables that exist change; default: true",
     "true false"},
    {0},
};

/* ---- arguments ---- */

static bool is_variable(const char *arg)
{
    return strchr(arg, '=') || (str_has_suffix(arg, "-") && !strchr(arg, '/'));
}

/* "NAME=VALUE" or "NAME-"; -EINVAL: neither. */
static int take_argument(struct env_change *c, const char *arg, struct err *e)
{
    const char *equals = strchr(arg, '=');
    size_t n = equals ? (size_t) (equals - arg) : strlen(arg) - 1;
    CLEANUP_FREE char *name = xstrndup(arg, n);
    if (n == 0 || strspn(name, "0123456789") == 1 || strchr(name, ' ')) {
        return err_set(e, -EINVAL, "invalid parameter %.100s, must be in the form of NAME=VALUE",
                       arg);
    }
    if (equals) {
        json_set_string(c->set, name, equals + 1);
    } else {
        json_append(c->remove, json_string(name));
    }
    return 0;
}

/* Reads NAME=VALUE lines from standard input. */
static int take_input(struct env_change *c, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(INPUT_MAX);
    char buf[4096];
    ssize_t n;
    while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0) {
        if (strbuf_add(&text, buf, (size_t) n) < 0) {
            return err_set(e, -EFBIG, "standard input: more than %u bytes", INPUT_MAX);
        }
    }
    char *p = (char *) strbuf_cstr(&text);
    for (char *next; p; p = next) {
        next = strchr(p, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (*p && *p != '#' && take_argument(c, p, e) < 0) {
            return -EINVAL;
        }
    }
    return 0;
}

/* ---- --from ---- */

/* The name of the variable for a key: as oc, upper case, other characters become "_". */
static char *variable_name(const char *prefix, const char *key)
{
    char *name = xasprintf("%s%s", prefix ? prefix : "", key);
    for (char *p = name + (prefix ? strlen(prefix) : 0); *p; p++) {
        *p = isalnum((unsigned char) *p) ? (char) toupper((unsigned char) *p) : '_';
    }
    return name;
}

static bool is_chosen(const char *keys, const char *key)
{
    size_t size = strlen(key);
    for (const char *p = keys; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (strncmp(p, key, size) == 0 && (!p[size] || p[size] == ',')) {
            return true;
        }
    }
    return !keys;
}

static int take_object(struct targets *t, struct env_change *c)
{
    CLEANUP(json_free) struct json *o = NULL;
    const char *slash = strchr(c->from, '/');
    CLEANUP_FREE char *alias = slash ? xstrndup(c->from, (size_t) (slash - c->from)) : NULL;
    const struct api_kind *k = alias ? api_kind_by_alias(alias) : NULL;
    bool secret = k && kind_is(k, "", "Secret");
    struct err e = {0};
    if (!k || (!secret && !kind_is(k, "", "ConfigMap"))) {
        return session_error("--from: \"%s\" is not configmap/NAME or secret/NAME", c->from);
    }
    CLEANUP_FREE char *path = resource_path(k, t->s.ns, slash + 1);
    if (api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, &o, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    const struct json *data = json_get(o, "data");
    for (size_t i = 0; i < json_count(data); i++) {
        const char *key = json_key_at(data, i);
        if (!is_chosen(c->keys, key)) {
            continue;
        }
        CLEANUP_FREE char *name = variable_name(c->prefix, key);
        struct json *from = json_set(c->set, name, json_object());
        struct json *ref = json_ensure_object(from, secret ? "secretKeyRef" : "configMapKeyRef");
        json_set_string(ref, "name", slash + 1);
        json_set_string(ref, "key", key);
    }
    return 0;
}

/* ---- changes ---- */

static int change_container(void *ctx, struct json *container, struct err *e)
{
    const struct env_change *c = ctx;
    const struct json *name;
    struct json *env = json_ensure_array(container, "env");
    for (size_t i = 0; i < json_count(c->set); i++) {
        const char *key = json_key_at(c->set, i);
        const struct json *value = json_at(c->set, i);
        struct json *entry = template_named(env, key);
        if (entry && c->keep) {
            return err_set(e, -EINVAL, "'%s' already has a value (%s), and --overwrite is false",
                           key, json_get_text(entry, "value"));
        }
        if (!entry) {
            entry = json_append(env, json_object());
            json_set_string(entry, "name", key);
        }
        json_remove(entry, "value");
        json_remove(entry, "valueFrom");
        json_set(entry, json_is(value, JSON_STRING) ? "value" : "valueFrom", json_clone(value));
    }
    JSON_FOREACH (name, c->remove) {
        template_remove_named(env, json_get_string(name));
    }
    if (json_count(env) == 0) {
        json_remove(container, "env");
    }
    return 0;
}

static int change_env(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    struct env_change *c = ctx;
    struct json *template = template_of(k, object);
    if (!template) {
        return set_no_template(k, object, e);
    }
    int r = template_each_container(template, c->containers, true, change_container, c, e);
    return r == 0 ? set_no_container(c->containers, e) : MIN(r, 0);
}

/* ---- --list ---- */

static void print_variable(const struct json *v)
{
    static const struct {
        const char *member, *kind;
    } refs[] = {{"configMapKeyRef", "configmap"}, {"secretKeyRef", "secret"}};
    const struct json *from = json_get(v, "valueFrom");
    const char *name = json_get_text(v, "name");
    for (size_t i = 0; i < ARRAY_SIZE(refs); i++) {
        const struct json *ref = json_get(from, refs[i].member);
        if (ref) {
            printf("# %s from %s %s, key %s\n", name, refs[i].kind, json_get_text(ref, "name"),
                   json_get_text(ref, "key"));
            return;
        }
    }
    if (json_get(from, "fieldRef")) {
        printf("# %s from field path %s\n", name,
               json_get_text(json_get(from, "fieldRef"), "fieldPath"));
    } else if (json_get(from, "resourceFieldRef")) {
        printf("# %s from resource field %s\n", name,
               json_get_text(json_get(from, "resourceFieldRef"), "resource"));
    } else {
        printf("%s=%s\n", name, json_get_text(v, "value"));
    }
}

struct env_title {
    const struct target *target;
};

static int print_container(void *ctx, struct json *container, struct err *e)
{
    const struct env_title *title = ctx;
    const struct json *v;
    printf("# %s %s, container %s\n", title->target->kind->plural, target_name(title->target),
           json_get_text(container, "name"));
    JSON_FOREACH (v, json_get(container, "env")) {
        print_variable(v);
    }
    return 0;
}

static int print_all(const struct targets *t, const struct env_change *c)
{
    struct err e = {0};
    for (size_t i = 0; i < t->n; i++) {
        struct env_title title = {&t->list[i]};
        struct json *template = template_of(t->list[i].kind, t->list[i].object);
        if (!template) {
            (void) set_no_template(t->list[i].kind, t->list[i].object, &e);
            return session_error("%s", e.text);
        }
        (void) template_each_container(template, c->containers, true, print_container, &title, &e);
    }
    return 0;
}

/* ---- the command ---- */

static void change_done(struct env_change *c)
{
    json_free(c->set);
    json_free(c->remove);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(struct targets *t, struct env_change *c, int argc, char **argv)
{
    struct err e = {0};
    int opt;
    while ((opt = targets_getopt(t, &set_env, argc, argv)) != -1) {
        switch (opt) {
        case 'c':
            c->containers = optarg;
            break;
        case 'e':
            if (take_argument(c, optarg, &e) < 0) {
                return session_error("%s", e.text);
            }
            break;
        case OPT_LIST:
            c->list = true;
            break;
        case OPT_FROM:
            c->from = optarg;
            break;
        case OPT_PREFIX:
            c->prefix = optarg;
            break;
        case OPT_KEYS:
            c->keys = optarg;
            break;
        case OPT_OVERWRITE:
            c->keep = optarg && streq(optarg, "false");
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return -1;
}

static int run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    __attribute__((cleanup(change_done))) struct env_change c = {
        .containers = "*", .set = json_object(), .remove = json_array()};
    struct err e = {0};
    int status = parse_options(&t, &c, argc, argv);
    if (status >= 0) {
        return status;
    }
    int n = argc - optind, objects = set_split(n, argv + optind, is_variable);
    for (int i = objects; i < n; i++) {
        const char *arg = argv[optind + i];
        if ((streq(arg, "-") ? take_input(&c, &e) : take_argument(&c, arg, &e)) < 0) {
            return session_error("%s", e.text);
        }
    }
    if (!c.list && !c.from && json_count(c.set) == 0 && json_count(c.remove) == 0) {
        return session_error("at least one environment variable must be provided");
    }
    status = targets_load(&t, NULL, objects, argv + optind);
    if (status == 0 && c.from) {
        status = take_object(&t, &c);
    }
    if (status != 0) {
        return status;
    }
    return c.list ? print_all(&t, &c) : targets_change(&t, change_env, &c, "env updated");
}

const struct command set_env = {
    .name = "set env",
    .summary = "environment variables of containers",
    .help = "usage: tenet set env KIND/NAME... NAME=VALUE... NAME-... [OPTIONS]\n"
            "       tenet set env KIND/NAME... --from (configmap | secret)/NAME [OPTIONS]\n"
            "       tenet set env KIND/NAME... --list\n"
            "\n"
            "Sets and removes (NAME-) environment variables, or prints them. \"-\" among the\n"
            "variables reads more of them from standard input, one a line.\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run};
