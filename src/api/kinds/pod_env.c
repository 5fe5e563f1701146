/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of environment variables, and of references to a pod's own fields and resources, which
 * variables and files show. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/pod_priv.h"
#include "api/quantity.h"
#include "base/mem.h"

#define LETTERS "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

const char *pod_check_env_name(const char *s)
{
    if (!*s || (*s >= '0' && *s <= '9') || s[strspn(s, LETTERS "0123456789")]) {
        return "a valid environment variable name must consist of alphabetic characters, digits, "
               "'_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or "
               "'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
               "'[-._a-zA-Z][-._a-zA-Z0-9]*')";
    }
    return streq(s, ".")             ? "must not be '.'"
           : streq(s, "..")          ? "must not be '..'"
           : str_has_prefix(s, "..") ? "must not start with '..'"
                                     : NULL;
}

/* ---- fields of the pod ---- */

static bool is_one_of(const char *const *list, const char *s)
{
    while (*list && !streq(*list, s)) {
        list++;
    }
    return *list;
}

/* The key of "PATH['KEY']", which is cut off; NULL: the text is no such path. */
static const char *cut_subscript(char *s)
{
    char *open = strstr(s, "['"), *end = s + strlen(s) - 2;
    if (!open || open == s || end < open + 2 || !streq(end, "']")) {
        return NULL;
    }
    *open = *end = '\0';
    return open + 2;
}

static void check_subscript(const struct pod_rules *r, const char *field, const struct json *given,
                            const char *path, const char *key)
{
    bool notes = streq(path, "metadata.annotations");
    if (!notes && !streq(path, "metadata.labels")) {
        api_invalid(r->c, API_FIELD("%s.fieldPath", field), given,
                    "error converting fieldPath: field label does not support subscript: %.253s",
                    json_get_string(given));
        return;
    }
    CLEANUP(json_free) struct json *name = json_string(key);
    CLEANUP_STRBUF struct strbuf lower = STRBUF_INIT;
    for (const char *p = key; *p; p++) {
        strbuf_addc(&lower, notes && *p >= 'A' && *p <= 'Z' ? (char) (*p - 'A' + 'a') : *p);
    }
    const char *wrong = api_check_qualified_name(strbuf_cstr(&lower));
    if (wrong) {
        api_invalid(r->c, field, name, "%s", wrong);
    }
}

void pod_check_field_ref(const struct pod_rules *r, const char *field, const struct json *ref,
                         bool in_volume)
{
    static const char *const known[] = {"metadata.annotations",
                                        "metadata.labels",
                                        "metadata.name",
                                        "metadata.namespace",
                                        "metadata.uid",
                                        "spec.host",
                                        "spec.nodeName",
                                        "spec.restartPolicy",
                                        "spec.serviceAccountName",
                                        "spec.schedulerName",
                                        "status.phase",
                                        "status.hostIP",
                                        "status.hostIPs",
                                        "status.podIP",
                                        "status.podIPs",
                                        NULL};
    static const char *const of_env[] = {"metadata.name",
                                         "metadata.namespace",
                                         "metadata.uid",
                                         "spec.nodeName",
                                         "spec.serviceAccountName",
                                         "status.hostIP",
                                         "status.hostIPs",
                                         "status.podIP",
                                         "status.podIPs",
                                         NULL};
    static const char *const of_volume[] = {"metadata.annotations", "metadata.labels",
                                            "metadata.name",        "metadata.namespace",
                                            "metadata.uid",         NULL};
    const struct json *given = json_get(ref, "fieldPath");
    const char *version = json_get_text(ref, "apiVersion"), *key;
    const char *at = API_FIELD("%s.fieldPath", field);
    const char *const *allowed = in_volume ? of_volume : of_env;
    CLEANUP_FREE char *path = xstrdup(json_get_text(ref, "fieldPath"));
    if (!streq(version, "v1")) {
        api_invalid(r->c, at, given, "error converting fieldPath: unsupported pod version: %.80s",
                    version);
    } else if ((key = cut_subscript(path))) {
        check_subscript(r, field, given, path, key);
    } else if (!is_one_of(known, path)) {
        api_invalid(r->c, at, given,
                    "error converting fieldPath: field label not supported: %.253s", path);
    } else if (!is_one_of(allowed, path) && (in_volume || !streq(path, "spec.host"))) {
        api_unsupported(r->c, at, given, allowed);
    }
}

/* ---- resources of a container ---- */

static bool is_huge(const char *resource)
{
    return str_has_prefix(resource, "limits.hugepages-") ||
           str_has_prefix(resource, "requests.hugepages-");
}

static void check_divisor(const struct pod_rules *r, const char *field, const struct json *ref)
{
    static const char *const of_cpu[] = {"1m", "1", NULL};
    static const char *const of_bytes[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P",  "1E",
                                           "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", NULL};
    static const struct {
        const char *suffix, *text;
    } resources[] = {
        {".cpu", "cpu"}, {".memory", "memory"}, {".ephemeral-storage", "local ephemeral storage"}};
    const struct json *name = json_get(ref, "resource");
    const char *resource = json_get_text(ref, "resource"), *text = NULL;
    const char *divisor = json_get_text(ref, "divisor");
    for (size_t i = 0; i < ARRAY_SIZE(resources) && !text; i++) {
        text = str_has_suffix(resource, resources[i].suffix) ? resources[i].text : NULL;
    }
    text = is_huge(resource) ? "hugepages" : text;
    bool cpu = streq_null(text, "cpu");
    if (!text || api_quantity_compare(divisor, "0") == 0 ||
        is_one_of(cpu ? of_cpu : of_bytes, divisor)) {
        return;
    }
    api_invalid(r->c, API_FIELD("%s.divisor", field), name,
                "only divisor's values %s are supported with the %s resource",
                cpu ? "1m and 1" : "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei", text);
}

void pod_check_resource_ref(const struct pod_rules *r, const char *field, const struct json *ref,
                            bool in_volume)
{
    static const char *const resources[] = {"limits.cpu",
                                            "limits.ephemeral-storage",
                                            "limits.memory",
                                            "requests.cpu",
                                            "requests.ephemeral-storage",
                                            "requests.memory",
                                            NULL};
    const char *resource = json_get_text(ref, "resource");
    if (in_volume && json_string_size(json_get(ref, "containerName")) == 0) {
        api_required(r->c, API_FIELD("%s.containerName", field), "");
    } else if (!*resource) {
        api_required(r->c, API_FIELD("%s.resource", field), "");
    } else if (!is_one_of(resources, resource) && !is_huge(resource)) {
        api_unsupported(r->c, API_FIELD("%s.resource", field), json_get(ref, "resource"),
                        resources);
    }
    check_divisor(r, field, ref);
}

/* ---- variables ---- */

static void check_object_name(const struct pod_rules *r, const char *field, const struct json *name)
{
    CLEANUP(json_free) struct json *empty = json_string("");
    const struct json *v = name ? name : empty;
    const char *wrong = api_check_dns_subdomain(json_get_string(v));
    if (wrong) {
        api_invalid(r->c, field, v, "%s", wrong);
    }
}

static void check_key_ref(const struct pod_rules *r, const char *field, const struct json *ref)
{
    const struct json *key = json_get(ref, "key");
    check_object_name(r, API_FIELD("%s.name", field), json_get(ref, "name"));
    const char *wrong = json_string_size(key) ? api_check_config_key(json_get_string(key)) : NULL;
    if (json_string_size(key) == 0) {
        api_required(r->c, API_FIELD("%s.key", field), "");
    } else if (wrong) {
        api_invalid(r->c, API_FIELD("%s.key", field), key, "%s", wrong);
    }
}

static void check_sources(const struct pod_rules *r, const char *field, const struct json *from,
                          bool has_value)
{
    static const char *const keys[] = {"configMapKeyRef", "secretKeyRef"};
    const struct json *field_ref = json_get(from, "fieldRef"), *ref;
    const struct json *resource_ref = json_get(from, "resourceFieldRef");
    CLEANUP(json_free) struct json *empty = json_string("");
    size_t n = (field_ref != NULL) + (resource_ref != NULL);
    if (field_ref) {
        pod_check_field_ref(r, API_FIELD("%s.fieldRef", field), field_ref, false);
    }
    if (resource_ref) {
        pod_check_resource_ref(r, API_FIELD("%s.resourceFieldRef", field), resource_ref, false);
    }
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if ((ref = json_get(from, keys[i]))) {
            check_key_ref(r, API_FIELD("%s.%s", field, keys[i]), ref);
            n++;
        }
    }
    if (n == 0) {
        api_invalid(r->c, field, empty,
                    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
                    "`secretKeyRef`");
    } else if (has_value) {
        api_invalid(r->c, field, empty, "may not be specified when `value` is not empty");
    } else if (n > 1) {
        api_invalid(r->c, field, empty, "may not have more than one field specified at a time");
    }
}

static void check_from(const struct pod_rules *r, const char *field, const char *list_field,
                       const struct json *from)
{
    static const char *const refs[] = {"configMapRef", "secretRef"};
    CLEANUP(json_free) struct json *empty = json_string("");
    const struct json *ref;
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(refs); i++) {
        if (!(ref = json_get(from, refs[i]))) {
            continue;
        }
        const char *at = API_FIELD("%s.%s.name", field, refs[i]);
        n++;
        if (json_string_size(json_get(ref, "name")) == 0) {
            api_required(r->c, at, "");
        } else {
            check_object_name(r, at, json_get(ref, "name"));
        }
    }
    if (n == 0) {
        api_invalid(r->c, list_field, empty, "must specify one of: `configMapRef` or `secretRef`");
    } else if (n > 1) {
        api_invalid(r->c, list_field, empty,
                    "may not have more than one field specified at a time");
    }
}

void pod_check_env(const struct pod_rules *r, const char *field, const struct json *container)
{
    const struct json *env = json_get(container, "env"), *from = json_get(container, "envFrom");
    for (size_t i = 0; i < json_count(env); i++) {
        const struct json *var = json_at(env, i), *source = json_get(var, "valueFrom");
        if (source) {
            check_sources(r, API_FIELD("%s.env[%zu].valueFrom", field, i), source,
                          json_string_size(json_get(var, "value")) > 0);
        }
    }
    for (size_t i = 0; i < json_count(from); i++) {
        check_from(r, API_FIELD("%s.envFrom[%zu]", field, i), API_FIELD("%s.envFrom", field),
                   json_at(from, i));
    }
}
