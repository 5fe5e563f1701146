/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/audit_policy.h"

#include "base/mem.h"
#include "wire/yaml.h"

#include <stdio.h>

const char *const audit_level_names[] = {"None", "Metadata", "Request", "RequestResponse", NULL};
const char *const audit_stage_names[] = {"RequestReceived", "ResponseStarted", "ResponseComplete",
                                         NULL};

#define MAX_RULES 1000

/* The document is kept and evaluated directly: its form was checked when it was parsed. */
struct audit_policy {
    struct json *doc;
    size_t n;
    struct audit_decision *rules; /* Level and stages of each rule. */
};

struct audit_policy *audit_policy_free(struct audit_policy *p)
{
    if (p) {
        json_free(p->doc);
        free(p->rules);
        free(p);
    }
    return NULL;
}

/* ---- reading ---- */

static int find(const char *const *names, const char *s)
{
    for (int i = 0; s && names[i]; i++) {
        if (streq(names[i], s)) {
            return i;
        }
    }
    return -EINVAL;
}

static int check_keys(const struct json *v, const char *field, const char *const *known,
                      struct err *e)
{
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "%s: must be an object", field);
    }
    for (size_t i = 0; i < json_count(v); i++) {
        if (find(known, json_key_at(v, i)) < 0) {
            return err_set(e, -EINVAL, "%s.%.60s: is not known", field, json_key_at(v, i));
        }
    }
    return 0;
}

static int check_strings(const struct json *v, const char *field, const char *key, struct err *e)
{
    const struct json *list = json_get(v, key), *item;
    if (list && !json_is(list, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "%s.%s: must be a list", field, key);
    }
    JSON_FOREACH (item, list) {
        if (!json_is(item, JSON_STRING)) {
            return err_set(e, -EINVAL, "%s.%s: must be a list of strings", field, key);
        }
    }
    return 0;
}

static int read_stages(const struct json *v, const char *field, unsigned *ret, struct err *e)
{
    const struct json *item;
    int r = check_strings(v, field, "omitStages", e);
    JSON_FOREACH (item, json_get(v, "omitStages")) {
        int stage = r == 0 ? find(audit_stage_names, json_get_string(item)) : r;
        if (r == 0 && stage < 0 && !streq(json_get_string(item), "Panic")) {
            r = err_set(e, -EINVAL, "%s.omitStages: \"%.40s\" is not a stage", field,
                        json_get_string(item));
        }
        *ret |= stage >= 0 ? 1u << stage : 0;
    }
    return r;
}

static int check_resources(const struct json *rule, const char *field, struct err *e)
{
    static const char *const known[] = {"group", "resources", "resourceNames", NULL};
    const struct json *list = json_get(rule, "resources"), *item;
    char name[96];
    if (list && !json_is(list, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "%s.resources: must be a list", field);
    }
    (void) snprintf(name, sizeof name, "%s.resources", field);
    JSON_FOREACH (item, list) {
        int r = check_keys(item, name, known, e);
        if (r < 0 || (r = check_strings(item, name, "resources", e)) < 0 ||
            (r = check_strings(item, name, "resourceNames", e)) < 0) {
            return r;
        }
        if (json_get(item, "group") && !json_is(json_get(item, "group"), JSON_STRING)) {
            return err_set(e, -EINVAL, "%s.group: must be a string", name);
        }
    }
    return 0;
}

static int read_rule(const struct json *rule, const char *field, struct audit_decision *ret,
                     struct err *e)
{
    static const char *const known[] = {
        "level",      "users",           "userGroups",        "verbs", "resources", "namespaces",
        "omitStages", "nonResourceURLs", "omitManagedFields", NULL};
    static const char *const lists[] = {"users", "userGroups", "verbs", "namespaces",
                                        "nonResourceURLs"};
    int r = check_keys(rule, field, known, e);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++) {
        r = check_strings(rule, field, lists[i], e);
    }
    if (r < 0 || (r = check_resources(rule, field, e)) < 0 ||
        (r = read_stages(rule, field, &ret->omit, e)) < 0) {
        return r;
    }
    int level = find(audit_level_names, json_path_string(rule, "level", NULL));
    if (level < 0) {
        return err_set(e, -EINVAL,
                       "%s.level: must be one of None, Metadata, Request, RequestResponse", field);
    }
    if (json_count(json_get(rule, "nonResourceURLs")) &&
        (json_count(json_get(rule, "resources")) || json_count(json_get(rule, "namespaces")))) {
        return err_set(e, -EINVAL,
                       "%s.nonResourceURLs: a rule is for paths or for resources, not for both",
                       field);
    }
    ret->level = (enum audit_level) level;
    return 0;
}

static int read_policy(struct audit_policy *p, struct err *e)
{
    static const char *const known[] = {
        "apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields", NULL};
    unsigned omit = 0;
    const struct json *rules = json_get(p->doc, "rules");
    int r = check_keys(p->doc, "policy", known, e);
    if (r < 0 || (r = read_stages(p->doc, "policy", &omit, e)) < 0) {
        return r;
    }
    if (!streq_null(json_path_string(p->doc, "kind", NULL), "Policy") ||
        !streq_null(json_path_string(p->doc, "apiVersion", NULL), "audit.k8s.io/v1")) {
        return err_set(e, -EINVAL, "policy: is not a Policy of audit.k8s.io/v1");
    }
    if (!json_is(rules, JSON_ARRAY) || !json_count(rules) || json_count(rules) > MAX_RULES) {
        return err_set(e, -EINVAL, "policy.rules: must be a list of 1 to %d rules", MAX_RULES);
    }
    p->rules = xcalloc(json_count(rules), sizeof *p->rules);
    for (p->n = 0; r == 0 && p->n < json_count(rules); p->n++) {
        char field[32];
        (void) snprintf(field, sizeof field, "rules[%zu]", p->n);
        p->rules[p->n].omit = omit;
        r = read_rule(json_at(rules, p->n), field, &p->rules[p->n], e);
    }
    return r;
}

int audit_policy_parse(const char *text, size_t size, struct audit_policy **ret, struct err *e)
{
    CLEANUP(audit_policy_free) struct audit_policy *p = NEW(struct audit_policy);
    int r = yaml_parse(text, size, &p->doc, e);
    if (r == 0 && (r = read_policy(p, e)) == 0) {
        *ret = TAKE(p);
    }
    return r;
}

struct audit_policy *audit_policy_default(void)
{
    static const char text[] = "{\"kind\":\"Policy\",\"apiVersion\":\"audit.k8s.io/v1\","
                               "\"omitStages\":[\"RequestReceived\"],"
                               "\"rules\":[{\"level\":\"Metadata\"}]}";
    struct audit_policy *p = NULL;
    return audit_policy_parse(text, sizeof text - 1, &p, NULL) == 0 ? p : NULL;
}

/* ---- evaluation ---- */

/* Whether 's' is in the list 'key' of 'v'; an absent or empty list matches everything. */
static bool listed(const struct json *v, const char *key, const char *s)
{
    const struct json *list = json_get(v, key), *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), s)) {
            return true;
        }
    }
    return !json_count(list);
}

static bool user_matches(const struct json *rule, const struct user_info *u)
{
    const struct json *groups = json_get(rule, "userGroups"), *item;
    if (!listed(rule, "users", u ? u->name : "")) {
        return false;
    }
    JSON_FOREACH (item, groups) {
        if (u && user_in_group(u, json_get_string(item))) {
            return true;
        }
    }
    return !json_count(groups);
}

/* "pods", "pods/log", "pods/" + "*", "*" + "/log", "*". */
static bool resource_matches(const char *pattern, const struct attributes *a)
{
    size_t n = strlen(a->resource);
    if (streq(pattern, "*")) {
        return true;
    }
    if (strncmp(pattern, "*/", 2) == 0) {
        return *a->subresource && streq(pattern + 2, a->subresource);
    }
    if (strncmp(pattern, a->resource, n) != 0) {
        return false;
    }
    return pattern[n] == '/' ? streq(pattern + n + 1, "*") ||
                                   (*a->subresource && streq(pattern + n + 1, a->subresource))
                             : !pattern[n] && !*a->subresource;
}

static bool resources_match(const struct json *rule, const struct attributes *a)
{
    const struct json *list = json_get(rule, "resources"), *item, *name;
    JSON_FOREACH (item, list) {
        const char *group = json_path_string(item, "group", NULL);
        const struct json *names = json_get(item, "resources");
        bool match = !json_count(names);
        JSON_FOREACH (name, names) {
            match |= resource_matches(json_get_string(name), a);
        }
        if (match && streq(group ? group : "", a->group) &&
            listed(item, "resourceNames", a->name)) {
            return true;
        }
    }
    return !json_count(list);
}

static bool path_matches(const struct json *rule, const struct attributes *a)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(rule, "nonResourceURLs")) {
        const char *s = json_get_string(item);
        size_t n = strlen(s);
        if (streq(s, a->path) || (n && s[n - 1] == '*' && strncmp(s, a->path, n - 1) == 0)) {
            return true;
        }
    }
    return false;
}

static bool matches(const struct json *rule, const struct user_info *u, const struct attributes *a)
{
    bool paths = json_count(json_get(rule, "nonResourceURLs"));
    bool resources =
        json_count(json_get(rule, "resources")) || json_count(json_get(rule, "namespaces"));
    if (!user_matches(rule, u) || !listed(rule, "verbs", a->verb)) {
        return false;
    }
    if (paths || resources) {
        return a->is_resource ? resources && listed(rule, "namespaces", a->namespace) &&
                                    resources_match(rule, a)
                              : paths && path_matches(rule, a);
    }
    return true;
}

struct audit_decision audit_policy_decide(const struct audit_policy *p,
                                          const struct user_info *user, const struct attributes *a)
{
    for (size_t i = 0; i < p->n; i++) {
        if (matches(json_at(json_get(p->doc, "rules"), i), user, a)) {
            return p->rules[i];
        }
    }
    return (struct audit_decision){.level = AUDIT_NONE};
}
