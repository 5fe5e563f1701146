/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/env.h"

#include "base/base64.h"
#include "base/map.h"
#include "base/mem.h"
#include "sdn/service_env.h"

/* ---- references in texts ---- */

typedef const char *lookup_fn(const void *ctx, const char *name);

/* Replaces the references in 'text' as Kubernetes' third_party/forked/golang/expansion does.  The
 * result is bounded: each variable may double the one before it. */
static int expand(const char *text, lookup_fn *lookup, const void *ctx, bool strict, char **ret,
                  struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(POD_ENV_TEXT_MAX);
    for (const char *s = text; *s; s++) {
        const char *end = s[0] == '$' && s[1] == '(' ? strchr(s, ')') : NULL;
        if (end) {
            CLEANUP_FREE char *name = xstrndup(s + 2, (size_t) (end - s) - 2);
            const char *value = lookup(ctx, name);
            if (value) {
                strbuf_adds(&out, value);
            } else if (strict) {
                return err_set(e, -EINVAL, "the variable %.64s is not set", name);
            } else {
                strbuf_addf(&out, "$(%s)", name);
            }
            s = end;
        } else if (s[0] == '$' && s[1]) {
            strbuf_addc(&out, '$');
            if (s[1] != '$') {
                strbuf_addc(&out, s[1]);
            }
            s++;
        } else {
            strbuf_addc(&out, *s);
        }
        if (out.failed) {
            return err_set(e, -EINVAL, "%.64s... expands to more than %d bytes", text,
                           POD_ENV_TEXT_MAX);
        }
    }
    *ret = strbuf_steal(&out);
    return 0;
}

const char *pod_env_get(struct runtime_pairs env, const char *name)
{
    for (size_t i = env.n; i > 0; i--) {
        if (streq(env.v[i - 1].key, name)) {
            return env.v[i - 1].value;
        }
    }
    return NULL;
}

static const char *lookup_pairs(const void *ctx, const char *name)
{
    return pod_env_get(*(const struct runtime_pairs *) ctx, name);
}

int pod_env_expand(const char *text, struct runtime_pairs env, char **ret, struct err *e)
{
    return expand(text, lookup_pairs, &env, false, ret, e);
}

int pod_env_expand_strict(const char *text, struct runtime_pairs env, char **ret, struct err *e)
{
    return expand(text, lookup_pairs, &env, true, ret, e);
}

int pod_env_expand_list(const struct json *list, struct runtime_pairs env, struct json **ret,
                        struct err *e)
{
    CLEANUP(json_free) struct json *out = json_array();
    const struct json *item;
    size_t size = 0;
    JSON_FOREACH (item, list) {
        CLEANUP_FREE char *text = NULL;
        const char *s = json_get_string(item);
        int r = pod_env_expand(s ? s : "", env, &text, e);
        if (r < 0) {
            return r;
        }
        size += strlen(text) + 1;
        if (size > POD_ENV_MAX) {
            return err_set(e, -EINVAL, "the list expands to more than %d bytes", POD_ENV_MAX);
        }
        json_append(out, json_string(text));
    }
    *ret = out;
    out = NULL;
    return 0;
}

/* ---- variables ---- */

struct variables {
    const struct json *pod, *container;
    const struct pod_facts *facts;
    struct smap own, services; /* Name to value. */
    size_t size;               /* Bytes of all values that were set. */
    struct json *skipped;
};

static const char *lookup_variables(const void *ctx, const char *name)
{
    const struct variables *v = ctx;
    const char *value = smap_get(&v->own, name);
    return value ? value : smap_get(&v->services, name);
}

/* Takes over 'value'. */
static int set(struct variables *v, const char *name, char *value, struct err *e)
{
    CLEANUP_FREE char *owned = value;
    size_t size = strlen(name) + strlen(value) + 2;
    if (size > POD_ENV_TEXT_MAX) {
        return err_set(e, -EINVAL, "the variable %.64s has more than %d bytes", name,
                       POD_ENV_TEXT_MAX);
    }
    if (size > POD_ENV_MAX - v->size) {
        return err_set(e, -EINVAL, "the environment has more than %d bytes", POD_ENV_MAX);
    }
    v->size += size;
    smap_set(&v->own, name, owned);
    owned = NULL;
    return 0;
}

/* Whether 's' is a name of a variable: Kubernetes' IsEnvVarName. */
static bool is_name(const char *s)
{
    static const char alpha[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._0123456789";
    return *s && !(*s >= '0' && *s <= '9') && !s[strspn(s, alpha)] && !streq(s, ".") &&
           !str_has_prefix(s, "..");
}

static void add_services(struct variables *v)
{
    const struct json *links = json_path(v->pod, "spec", "enableServiceLinks", NULL);
    const char *ns = json_get_text(json_get(v->pod, "metadata"), "namespace");
    CLEANUP(json_free) struct json *list = json_array();
    const struct json *item;
    service_env_add(v->facts->services, ns, json_get_bool(links, true), list);
    JSON_FOREACH (item, list) {
        const char *text = json_get_string(item), *equals = strchr(text, '=');
        CLEANUP_FREE char *name = xstrndup(text, (size_t) (equals - text));
        smap_set(&v->services, name, xstrdup(equals + 1));
    }
}

/* The value of a key; a Secret has it in base64.  -ENOENT: there is no such key. */
static int value_of(const struct json *object, enum pod_object_kind kind, const char *key,
                    char **ret, struct err *e)
{
    const struct json *item = json_get(json_get(object, "data"), key);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (!json_is(item, JSON_STRING)) {
        return -ENOENT;
    }
    if (kind == POD_CONFIG_MAP) {
        *ret = xstrdup(json_get_string(item));
        return 0;
    }
    if (base64_decode(json_get_string(item), json_string_size(item), &out) < 0) {
        return err_set(e, -EINVAL, "the value of key %s is not base64", key);
    }
    if (out.size && memchr(out.data, 0, out.size)) {
        return err_set(e, -EINVAL,
                       "the value of key %s has a zero byte, which no variable can hold", key);
    }
    *ret = strbuf_steal(&out);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void report_skipped(struct variables *v, enum pod_object_kind kind, const char *object,
                           char **keys, size_t n)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (n > 1) {
        qsort(keys, n, sizeof *keys, by_text);
    }
    strbuf_adds(&text, "Keys [");
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&text, "%s%s", i ? ", " : "", keys[i]);
    }
    strbuf_addf(&text,
                "] from the EnvFrom %s %s/%s were skipped since they are considered invalid "
                "environment variable names.",
                kind == POD_SECRET ? "secret" : "configMap",
                json_get_text(json_get(v->pod, "metadata"), "namespace"), object);
    v->skipped = v->skipped ? v->skipped : json_array();
    json_append(v->skipped, json_string(strbuf_cstr(&text)));
}

/* Adds all keys of one object of envFrom. */
static int add_object(struct variables *v, enum pod_object_kind kind, const struct json *ref,
                      const char *prefix, struct err *e)
{
    const char *name = json_get_text(ref, "name");
    const struct json *object;
    int r = pod_find_object(v->pod, kind, name, v->facts, &object, e);
    if (r < 0) {
        return r == -ENOENT && json_get_bool(json_get(ref, "optional"), false) ? 0 : r;
    }
    const struct json *data = json_get(object, "data");
    size_t n = 0;
    CLEANUP_FREE char **bad = xcalloc(json_count(data) + 1, sizeof *bad);
    for (size_t i = 0; r == 0 && i < json_count(data); i++) {
        char *value = NULL;
        CLEANUP_FREE char *variable = xasprintf("%s%s", prefix, json_key_at(data, i));
        if (!is_name(variable)) {
            bad[n++] = xstrdup(variable);
            continue;
        }
        r = value_of(object, kind, json_key_at(data, i), &value, e);
        if (r == 0) {
            r = set(v, variable, value, e);
        } else if (r == -ENOENT) {
            r = 0;
        } else {
            err_prefix(e, "%s %s", pod_object_singular(kind), name);
        }
    }
    if (n && r == 0) {
        report_skipped(v, kind, name, bad, n);
    }
    for (size_t i = 0; i < n; i++) {
        free(bad[i]);
    }
    return r;
}

/* The value of a configMapKeyRef or secretKeyRef; NULL: it is optional and absent. */
static int key_value(struct variables *v, enum pod_object_kind kind, const struct json *ref,
                     char **ret, struct err *e)
{
    const char *name = json_get_text(ref, "name"), *key = json_get_text(ref, "key");
    bool optional = json_get_bool(json_get(ref, "optional"), false);
    const struct json *object;
    int r = pod_find_object(v->pod, kind, name, v->facts, &object, e);
    if (r < 0) {
        return r == -ENOENT && optional ? 0 : r;
    }
    r = value_of(object, kind, key, ret, e);
    if (r == -ENOENT) {
        return optional ? 0
                        : err_set(e, r, "couldn't find key %s in %s %s/%s", key,
                                  kind == POD_SECRET ? "Secret" : "ConfigMap",
                                  json_get_text(json_get(v->pod, "metadata"), "namespace"), name);
    }
    return r < 0 ? err_prefix(e, "%s %s", pod_object_singular(kind), name) : 0;
}

/* The value of one member of env; NULL: it is not set. */
static int value_from(struct variables *v, const struct json *from, char **ret, struct err *e)
{
    const struct json *ref;
    if ((ref = json_get(from, "fieldRef"))) {
        return pod_field_value(v->pod, json_get_text(ref, "fieldPath"), v->facts, ret, e);
    }
    if ((ref = json_get(from, "resourceFieldRef"))) {
        return pod_resource_value(v->pod, v->container, ref, v->facts, ret, e);
    }
    if ((ref = json_get(from, "configMapKeyRef"))) {
        return key_value(v, POD_CONFIG_MAP, ref, ret, e);
    }
    if ((ref = json_get(from, "secretKeyRef"))) {
        return key_value(v, POD_SECRET, ref, ret, e);
    }
    return err_set(e, -EINVAL, "valueFrom has no source that this kubelet knows");
}

static int add_variables(struct variables *v, struct err *e)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(v->container, "envFrom")) {
        const char *prefix = json_get_text(item, "prefix");
        const struct json *map = json_get(item, "configMapRef");
        const struct json *secret = json_get(item, "secretRef");
        int r = map      ? add_object(v, POD_CONFIG_MAP, map, prefix, e)
                : secret ? add_object(v, POD_SECRET, secret, prefix, e)
                         : 0;
        if (r < 0) {
            return r;
        }
    }
    JSON_FOREACH (item, json_get(v->container, "env")) {
        const char *text = json_get_text(item, "value");
        const struct json *from = json_get(item, "valueFrom");
        char *value = NULL;
        int r = *text || !from ? 0 : value_from(v, from, &value, e);
        if (r < 0) {
            return r;
        }
        if (*text || !from) {
            r = expand(text, lookup_variables, v, false, &value, e);
        }
        r = value && r == 0 ? set(v, json_get_text(item, "name"), value, e) : r;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void take(struct pod_env *env, const struct smap *m, const struct smap *hidden)
{
    struct smap_entry *en;
    SMAP_FOREACH (en, m) {
        if (!hidden || !smap_get(hidden, en->key)) {
            env->v[env->n++] = (struct runtime_pair){xstrdup(en->key), xstrdup(en->value)};
        }
    }
}

int pod_env_make(const struct json *pod, const struct json *container, const struct pod_facts *f,
                 struct pod_env *ret, struct err *e)
{
    struct variables v = {.pod = pod, .container = container, .facts = f};
    smap_init(&v.own, free);
    smap_init(&v.services, free);
    add_services(&v);
    int r = add_variables(&v, e);
    if (r == 0) {
        size_t n = smap_size(&v.own) + smap_size(&v.services);
        *ret = (struct pod_env){.v = xcalloc(n + 1, sizeof *ret->v), .skipped = v.skipped};
        take(ret, &v.services, &v.own);
        take(ret, &v.own, NULL);
        v.skipped = NULL;
    }
    json_free(v.skipped);
    smap_done(&v.own);
    smap_done(&v.services);
    return r;
}

void pod_env_done(struct pod_env *env)
{
    for (size_t i = 0; i < env->n; i++) {
        free((char *) env->v[i].key);
        free((char *) env->v[i].value);
    }
    free(env->v);
    json_free(env->skipped);
    *env = (struct pod_env){0};
}
