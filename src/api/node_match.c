/* SPDX-License-Identifier: Apache-2.0 */
#include "api/node_match.h"

#include "base/mem.h"

size_t match_members(const struct json *v)
{
    return json_is(v, JSON_OBJECT) ? json_count(v) : 0;
}

bool match_has_effect(const struct json *taint, const char *effect)
{
    return streq(json_get_text(taint, "effect"), effect);
}

static bool tolerates_one(const struct json *t, const struct json *taint)
{
    const char *key = json_get_text(t, "key"), *operator= json_get_text(t, "operator");
    const char *effect = json_get_text(t, "effect");
    if (*effect && !match_has_effect(taint, effect)) {
        return false;
    }
    if (*key && !streq(key, json_get_text(taint, "key"))) {
        return false;
    }
    if (streq(operator, "Exists")) {
        return true;
    }
    return *key && (!*operator|| streq(operator, "Equal")) &&
           streq(json_get_text(t, "value"), json_get_text(taint, "value"));
}

bool match_tolerates(const struct json *tolerations, const struct json *taint)
{
    const struct json *t;
    JSON_FOREACH (t, tolerations) {
        if (tolerates_one(t, taint)) {
            return true;
        }
    }
    return false;
}

static bool has_value(const struct json *values, const char *value)
{
    const struct json *v;
    JSON_FOREACH (v, values) {
        if (streq_null(json_get_string(v), value)) {
            return true;
        }
    }
    return false;
}

/* 'value' NULL: the node has no such label. */
static bool holds(const struct json *requirement, const char *value)
{
    const char *operator= json_get_text(requirement, "operator");
    const struct json *values = json_get(requirement, "values");
    if (streq(operator, "In")) {
        return value && has_value(values, value);
    }
    if (streq(operator, "NotIn")) {
        return !value || !has_value(values, value);
    }
    if (streq(operator, "Exists")) {
        return value;
    }
    if (streq(operator, "DoesNotExist")) {
        return !value;
    }
    const char *limit = json_get_string(json_at(values, 0));
    int64_t a, b;
    if (!value || !limit || json_count(values) != 1 ||
        str_to_i64(value, INT64_MIN, INT64_MAX, &a) < 0 ||
        str_to_i64(limit, INT64_MIN, INT64_MAX, &b) < 0) {
        return false;
    }
    return streq(operator, "Gt") ? a > b : streq(operator, "Lt") && a < b;
}

bool match_node_term(const struct json *term, const struct json *labels, const char *name)
{
    const struct json *expressions = json_get(term, "matchExpressions");
    const struct json *fields = json_get(term, "matchFields"), *r;
    JSON_FOREACH (r, expressions) {
        if (!holds(r, json_get_string(json_get(labels, json_get_text(r, "key"))))) {
            return false;
        }
    }
    JSON_FOREACH (r, fields) {
        if (!streq(json_get_text(r, "key"), "metadata.name") || !holds(r, name)) {
            return false;
        }
    }
    return json_count(expressions) || json_count(fields);
}

bool match_node_selector(const struct json *selector, const struct json *labels, const char *name)
{
    const struct json *term;
    JSON_FOREACH (term, json_get(selector, "nodeSelectorTerms")) {
        if (match_node_term(term, labels, name)) {
            return true;
        }
    }
    return false;
}

bool match_node_required(const struct json *spec, const struct json *labels, const char *name)
{
    const struct json *wanted = json_get(spec, "nodeSelector");
    const struct json *required = json_path(spec, "affinity", "nodeAffinity",
                                            "requiredDuringSchedulingIgnoredDuringExecution", NULL);
    for (size_t i = 0; i < match_members(wanted); i++) {
        const char *have = json_get_string(json_get(labels, json_key_at(wanted, i)));
        if (!have || !streq_null(json_get_string(json_at(wanted, i)), have)) {
            return false;
        }
    }
    return !required || match_node_selector(required, labels, name);
}

/* ---- the node selector of a project ---- */

static char *trimmed(const char *s, size_t n)
{
    while (n && (*s == ' ' || *s == '\t')) {
        s++;
        n--;
    }
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) {
        n--;
    }
    return xstrndup(s, n);
}

int match_parse_node_labels(const char *text, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *out = json_object();
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ",");
        const char *equals = memchr(s, '=', n);
        if (!equals) {
            return err_set(e, -EINVAL, "\"%.80s\" is no list of label=value", text);
        }
        size_t skip = equals[1] == '=' ? 2 : 1;
        CLEANUP_FREE char *key = trimmed(s, (size_t) (equals - s));
        CLEANUP_FREE char *value = trimmed(equals + skip, n - MIN(n, (size_t) (equals - s) + skip));
        if (!*key || strchr(key, '!') || strchr(value, '=')) {
            return err_set(e, -EINVAL, "\"%.80s\" is no list of label=value", text);
        }
        json_set_string(out, key, value);
        s += n + (s[n] == ',');
    }
    *ret = TAKE(out);
    return 0;
}

bool match_has_labels(const struct json *want, const struct json *labels)
{
    for (size_t i = 0; i < json_count(want); i++) {
        const char *value = json_get_string(json_get(labels, json_key_at(want, i)));
        if (!streq_null(value, json_get_string(json_at(want, i)))) {
            return false;
        }
    }
    return true;
}
