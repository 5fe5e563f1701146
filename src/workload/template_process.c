/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/template_process.h"

#include "base/map.h"
#include "base/mem.h"

/* The nesting of an object that can still be stored and be within a list. */
#define MAX_DEPTH (JSON_MAX_DEPTH - 4)
#define JSON_COST 8

struct process {
    struct smap values; /* Name of a parameter to its value, a borrowed JSON text. */
    size_t left;        /* Bytes of substituted text that are still allowed. */
    const char *wrong;  /* What the current object exceeds; NULL: nothing. */
};

/* ---- texts ---- */

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The value of the parameter "${NAME}" at 's', and the length of the reference; NULL: there is no
 * reference to a known parameter. */
static const struct json *reference(const struct process *p, const char *s, size_t *ret_size)
{
    size_t n = 0;
    if (s[0] != '$' || s[1] != '{') {
        return NULL;
    }
    while (is_name(s[2 + n])) {
        n++;
    }
    if (!n || s[2 + n] != '}') {
        return NULL;
    }
    CLEANUP_FREE char *name = xstrndup(s + 2, n);
    *ret_size = n + 3;
    return smap_get(&p->values, name);
}

/* The value of the parameter when 's' as a whole is "${{NAME}}"; NULL: it is something else. */
static const struct json *whole_reference(const struct process *p, const char *s)
{
    size_t n = strlen(s), size;
    if (n < 6 || strncmp(s, "${{", 3) != 0 || s[n - 1] != '}') {
        return NULL;
    }
    CLEANUP_FREE char *inner = xasprintf("${%.*s", (int) (n - 4), s + 3);
    const struct json *v = reference(p, inner, &size);
    return v && !inner[size] ? v : NULL;
}

static bool spend(struct process *p, size_t n)
{
    if (n > p->left) {
        p->wrong = "its values are too large";
        return false;
    }
    p->left -= n;
    return true;
}

/* Appends 's' with the values of its references; false: they are too large. */
static bool substitute(struct process *p, const char *s, struct strbuf *out)
{
    while (*s) {
        size_t plain = strcspn(s, "$"), size = 0;
        strbuf_add(out, s, plain);
        s += plain;
        const struct json *v = reference(p, s, &size);
        if (v) {
            if (!spend(p, json_string_size(v) + 1)) {
                return false;
            }
            strbuf_add(out, json_get_string(v), json_string_size(v));
            s += size;
        } else if (*s) {
            strbuf_addc(out, *s++);
        }
    }
    return true;
}

/* Owned; NULL: the values are too large. */
static char *substituted_text(struct process *p, const char *s)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *v = whole_reference(p, s);
    if (v) { /* In the name of a member there is text only. */
        return spend(p, json_string_size(v)) ? xstrdup(json_get_string(v)) : NULL;
    }
    return substitute(p, s, &b) ? strbuf_steal(&b) : NULL;
}

/* ---- values ---- */

static size_t depth_of(const struct json *v)
{
    size_t deepest = 0;
    for (size_t i = 0; i < json_count(v); i++) {
        size_t d = depth_of(json_at(v, i));
        deepest = MAX(deepest, d);
    }
    return deepest + 1;
}

static struct json *substituted_string(struct process *p, const char *s, size_t depth)
{
    struct json *parsed = NULL;
    const struct json *v = whole_reference(p, s);
    if (!v) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        return substitute(p, s, &b) ? json_string_n(strbuf_cstr(&b), b.size) : NULL;
    }
    if (!spend(p, JSON_COST * json_string_size(v))) {
        return NULL;
    }
    if (json_parse(json_get_string(v), json_string_size(v), &parsed, NULL) < 0) {
        return json_clone(v);
    }
    if (depth + depth_of(parsed) > MAX_DEPTH) {
        p->wrong = "it is nested too deeply";
        return json_free(parsed);
    }
    return parsed;
}

/* An owned copy of 'v' with values for its references; NULL: p->wrong says why there is none.  The
 * depth of the tree is limited by its parser. */
static struct json *substituted(struct process *p, const struct json *v, size_t depth)
{
    if (json_is(v, JSON_STRING)) {
        return strchr(json_get_string(v), '$') ? substituted_string(p, json_get_string(v), depth)
                                               : json_clone(v);
    }
    if (!json_is(v, JSON_ARRAY) && !json_is(v, JSON_OBJECT)) {
        return json_clone(v);
    }
    bool object = json_is(v, JSON_OBJECT);
    CLEANUP(json_free) struct json *out = object ? json_object() : json_array();
    for (size_t i = 0; i < json_count(v); i++) {
        struct json *item = substituted(p, json_at(v, i), depth + 1);
        if (!item) {
            return NULL;
        }
        if (!object) {
            json_append(out, item);
            continue;
        }
        CLEANUP_FREE char *key = substituted_text(p, json_key_at(v, i));
        if (!key || json_get(out, key)) {
            p->wrong = key ? "a member is there twice after its name got its value" : p->wrong;
            json_free(item);
            return NULL;
        }
        json_set(out, key, item);
    }
    return TAKE(out);
}

/* ---- parameters ---- */

bool template_set_parameter(struct json *template, const char *name, const char *value)
{
    struct json *list = json_get(template, "parameters"), *p;
    JSON_FOREACH (p, list) {
        if (streq(json_get_text(p, "name"), name)) {
            json_set_string(p, "value", value);
            (void) json_remove(p, "generate");
            return true;
        }
    }
    return false;
}

/* Makes the value of a parameter that has a generator. */
static void generate(struct json *param, const char *field, template_random_fn *random,
                     struct api_causes *c)
{
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
    struct err e = {0};
    if (!streq(json_get_text(param, "generate"), "expression")) {
        api_invalid(c, field, json_get(param, "generate"),
                    "Unknown generator name '%s' for parameter %s",
                    json_get_text(param, "generate"), json_get_text(param, "name"));
    } else if (template_generate(json_get_text(param, "from"), random, &value, &e) < 0) {
        api_invalid(c, field, json_get(param, "from"), "parameter %s: %s",
                    json_get_text(param, "name"), e.text);
    } else {
        json_set(param, "value", json_string_n(strbuf_cstr(&value), value.size));
    }
}

static void settle_parameters(struct process *p, struct json *template, template_random_fn *random,
                              struct api_causes *c)
{
    static const char no_value[] = "";
    struct json *list = json_get(template, "parameters");
    for (size_t i = 0; i < json_count(list); i++) {
        struct json *param = json_at(list, i);
        const char *name = json_get_text(param, "name");
        const char *field = API_FIELD("template.parameters[%zu]", i);
        size_t causes = c->n;
        if (!json_is(param, JSON_OBJECT)) {
            api_invalid(c, field, param, "it is not an object");
            continue;
        }
        if (!*json_get_text(param, "value") && *json_get_text(param, "generate")) {
            generate(param, field, random, c);
        }
        if (c->n == causes && !*json_get_text(param, "value") &&
            json_get_bool(json_get(param, "required"), false)) {
            api_required(c, field, "%s: parameter %s is required and must be specified", field,
                         name);
        }
        if (!json_is(json_get(param, "value"), JSON_STRING)) {
            json_set_string(param, "value", no_value);
        }
        smap_set(&p->values, name, json_get(param, "value"));
    }
}

/* ---- objects ---- */

const char *template_legacy_group(const char *kind)
{
    static const struct {
        const char *group, *kinds;
    } groups[] = {
        {"apps.openshift.io", " DeploymentConfig DeploymentConfigRollback "},
        {"authorization.openshift.io", " ClusterRole ClusterRoleBinding Role RoleBinding "},
        {"build.openshift.io", " Build BuildConfig BuildLog BuildRequest "},
        {"image.openshift.io",
         " Image ImageSignature ImageStream ImageStreamImage ImageStreamImport ImageStreamMapping "
         "ImageStreamTag "},
        {"network.openshift.io", " ClusterNetwork EgressNetworkPolicy HostSubnet NetNamespace "},
        {"oauth.openshift.io",
         " OAuthAccessToken OAuthAuthorizeToken OAuthClient OAuthClientAuthorization "},
        {"project.openshift.io", " Project ProjectRequest "},
        {"quota.openshift.io", " AppliedClusterResourceQuota ClusterResourceQuota "},
        {"route.openshift.io", " Route "},
        {"security.openshift.io", " PodSecurityPolicyReview PodSecurityPolicySelfSubjectReview "
                                  "PodSecurityPolicySubjectReview SecurityContextConstraints "},
        {TEMPLATE_GROUP, " BrokerTemplateInstance Template TemplateInstance "},
        {"user.openshift.io", " Group Identity User UserIdentityMapping "},
    };
    CLEANUP_FREE char *word = xasprintf(" %s ", kind);
    for (size_t i = 0; *kind && i < ARRAY_SIZE(groups); i++) {
        if (strstr(groups[i].kinds, word)) {
            return groups[i].group;
        }
    }
    return NULL;
}

static void rewrite_version(struct json *obj)
{
    const char *group = streq(json_get_text(obj, "apiVersion"), "v1")
                            ? template_legacy_group(json_get_text(obj, "kind"))
                            : NULL;
    if (group) {
        json_set(obj, "apiVersion", json_stringf("%s/v1", group));
    }
}

/* Whether the text has a reference, to a known parameter or not. */
static bool has_reference(const char *s)
{
    for (; (s = strstr(s, "${")); s++) {
        size_t n = 2;
        while (is_name(s[n])) {
            n++;
        }
        if (n > 2 && s[n] == '}') {
            return true;
        }
    }
    return false;
}

/* A copy of the object without a fixed namespace: the template is for any project. */
static struct json *without_namespace(const struct json *obj)
{
    struct json *out = json_clone(obj), *meta = json_get(out, "metadata");
    const struct json *ns = json_get(meta, "namespace");
    if (ns && !(json_is(ns, JSON_STRING) && has_reference(json_get_string(ns)))) {
        (void) json_remove(meta, "namespace");
    }
    return out;
}

/* Adds the labels to those of the metadata of 'o'; false: one of the two is not an object. */
static bool add_labels(struct json *o, const struct json *labels)
{
    const struct json *meta = json_get(o, "metadata"), *own = json_get(meta, "labels");
    if ((meta && !json_is(meta, JSON_OBJECT) && !json_is(meta, JSON_NULL)) ||
        (own && !json_is(own, JSON_OBJECT) && !json_is(own, JSON_NULL))) {
        return false;
    }
    for (size_t i = 0; i < json_count(labels); i++) {
        json_set(json_ensure_object(json_ensure_object(o, "metadata"), "labels"),
                 json_key_at(labels, i), json_clone(json_at(labels, i)));
    }
    return true;
}

/* The processed object; NULL: a cause was added. */
static struct json *process_object(struct process *p, const struct json *obj, size_t i,
                                   const struct json *labels, struct api_causes *c)
{
    const char *field = API_FIELD("template.objects[%zu]", i);
    if (!json_is(obj, JSON_OBJECT)) {
        api_invalid(c, field, obj, "unable to handle object: it is not an object");
        return NULL;
    }
    CLEANUP(json_free) struct json *bare = without_namespace(obj);
    CLEANUP(json_free) struct json *out = substituted(p, bare, 1);
    if (!out) {
        api_invalid(c, field, NULL, "%s", p->wrong);
        return NULL;
    }
    rewrite_version(out);
    struct json *pod = json_path(out, "spec", "template", NULL);
    bool config = streq(json_get_text(out, "kind"), "DeploymentConfig") &&
                  streq(json_get_text(out, "apiVersion"), "apps.openshift.io/v1");
    if (!add_labels(out, labels) ||
        (config && json_is(pod, JSON_OBJECT) && !add_labels(pod, labels))) {
        api_invalid(c, field, NULL,
                    "label could not be applied: metadata and its labels must be "
                    "objects");
        return NULL;
    }
    return TAKE(out);
}

static void process_parts(struct process *p, struct json *t, struct api_causes *c)
{
    static const char *const parts[] = {"message", "labels"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const struct json *part = json_get(t, parts[i]);
        struct json *v = part ? substituted(p, part, 1) : NULL;
        if (part && !v) {
            api_invalid(c, API_FIELD("template.%s", parts[i]), NULL, "%s", p->wrong);
            return;
        }
        json_set(t, parts[i], v);
    }
    const struct json *objects = json_get(t, "objects");
    CLEANUP(json_free) struct json *list = json_array();
    for (size_t i = 0; i < json_count(objects) && c->n < API_MAX_CAUSES; i++) {
        json_append(list, process_object(p, json_at(objects, i), i, json_get(t, "labels"), c));
    }
    json_set(t, "objects", TAKE(list));
}

int template_process(const struct json *template, template_random_fn *random, struct json **ret,
                     struct api_causes *causes)
{
    CLEANUP(json_free) struct json *t = json_clone(template);
    struct process p = {.left = TEMPLATE_MAX_EXPANSION};
    smap_init(&p.values, NULL);
    size_t before = causes->n;
    settle_parameters(&p, t, random, causes);
    if (causes->n == before) {
        process_parts(&p, t, causes);
    }
    smap_done(&p.values);
    if (causes->n > before) {
        return -EINVAL;
    }
    *ret = TAKE(t);
    return 0;
}
