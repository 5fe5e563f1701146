/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinition (apiextensions.k8s.io/v1): a kind that a user adds. */
#include "api/condition.h"
#include "api/crd/crd.h"
#include "api/crd/crd_schema.h"
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/table/jsonpath.h"
#include "base/mem.h"

#include <ctype.h>

/* ---- checks ---- */

/* A label that begins with a letter (RFC 1035). */
const char *crd_check_label(const char *s)
{
    if (!api_check_dns_label(s) && islower((unsigned char) *s)) {
        return NULL;
    }
    return "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
           "an alphabetic character, and end with an alphanumeric character (e.g. 'my-name', or "
           "'abc-123')";
}

const char *crd_check_kind(const char *s)
{
    CLEANUP_FREE char *lower = xstrdup(s);
    for (char *p = lower; *p; p++) {
        *p = (char) tolower((unsigned char) *p);
    }
    return crd_check_label(lower)
               ? "may have mixed case, but should otherwise match: a DNS-1035 label"
               : NULL;
}

const char *crd_check_group(const char *s)
{
    const char *wrong = api_check_dns_subdomain(s);
    return wrong ? wrong : strchr(s, '.') ? NULL : "should be a domain with at least one dot";
}

static void validate_names(const struct json *names, struct api_causes *c)
{
    static const char *const required[] = {"plural", "kind", "listKind"};
    for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
        if (json_string_size(json_get(names, required[i])) == 0) {
            api_required(c, API_FIELD("spec.names.%s", required[i]), "");
        }
    }
    const struct json *kind = json_get(names, "kind"), *list_kind = json_get(names, "listKind");
    if (list_kind && json_equal(kind, list_kind)) {
        api_invalid(c, "spec.names.listKind", list_kind, "kind and listKind may not be the same");
    }
}

/* A path of fields only: ".spec.replicas". */
static bool is_plain_path(const char *s)
{
    return *s == '.' && s[1] && !strpbrk(s, "[]*{}()'\" \t") && !strstr(s, "..");
}

static void check_scale_path(struct api_causes *c, const char *field, const struct json *v,
                             bool in_spec, bool in_status)
{
    const char *s = json_get_string(v);
    bool fits =
        s && is_plain_path(s) &&
        ((in_spec && str_has_prefix(s, ".spec.")) || (in_status && str_has_prefix(s, ".status.")));
    if (json_string_size(v) && !fits) {
        api_invalid(c, field, v, "should be a json path under .%s%s", in_spec ? "spec" : "status",
                    in_spec && in_status ? " or .status" : "");
    }
}

static void validate_scale(const struct json *scale, const char *field, struct api_causes *c)
{
    check_scale_path(c, API_FIELD("%s.specReplicasPath", field),
                     json_get(scale, "specReplicasPath"), true, false);
    check_scale_path(c, API_FIELD("%s.statusReplicasPath", field),
                     json_get(scale, "statusReplicasPath"), false, true);
    check_scale_path(c, API_FIELD("%s.labelSelectorPath", field),
                     json_get(scale, "labelSelectorPath"), true, true);
}

static void validate_columns(const struct json *list, const char *field, struct api_causes *c)
{
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *path = json_get(json_at(list, i), "jsonPath");
        struct err e = {0};
        if (jsonpath_find(json_get_string(path), NULL, NULL, 0, &e) < 0) {
            api_invalid(c, API_FIELD("%s[%zu].jsonPath", field, i), path,
                        "is an invalid JSON path: %s", e.text);
        }
    }
}

/* The schema of the field at a plain path; NULL: there is none. */
static const struct json *schema_at(const struct json *schema, const char *path)
{
    while (schema && *path == '.') {
        size_t n = strcspn(++path, ".");
        CLEANUP_FREE char *name = xstrndup(path, n);
        schema = json_path(schema, "properties", name, NULL);
        path += n;
    }
    return schema;
}

static void validate_selectable(const struct json *v, const char *field, struct api_causes *c)
{
    const struct json *list = json_get(v, "selectableFields");
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *path = json_get(json_at(list, i), "jsonPath");
        const char *where = API_FIELD("%s.selectableFields[%zu].jsonPath", field, i);
        const char *s = json_get_string(path);
        const struct json *schema = json_path(v, "schema", "openAPIV3Schema", NULL);
        const char *type = json_path_string(
            is_plain_path(s) && !str_has_prefix(s, ".metadata") ? schema_at(schema, s) : NULL,
            "type", NULL);
        if (!type ||
            (!streq(type, "string") && !streq(type, "boolean") && !streq(type, "integer"))) {
            api_invalid(c, where, path,
                        "must point to a field of type string, boolean or integer. Enum string "
                        "fields and strings with formats are allowed.");
        }
    }
}

static void validate_warning(const struct json *v, const char *field, struct api_causes *c)
{
    const struct json *warning = json_get(v, "deprecationWarning");
    const char *where = API_FIELD("%s.deprecationWarning", field);
    if (!json_string_size(warning)) {
        return;
    }
    if (!json_get_bool(json_get(v, "deprecated"), false)) {
        api_invalid(c, where, warning, "can only be set for deprecated versions");
    } else if (strpbrk(json_get_string(warning), "\r\n\"\\")) {
        api_invalid(c, where, warning, "must be one line without quotes and backslashes");
    }
}

static void validate_version(const struct json *v, const char *field, struct api_causes *c)
{
    const struct json *schema = json_path(v, "schema", "openAPIV3Schema", NULL);
    validate_warning(v, field, c);
    CLEANUP_FREE char *where = xasprintf("%s.schema.openAPIV3Schema", field);
    if (!schema) {
        api_required(c, where, "schemas are required");
    } else {
        crd_schema_check(schema, where, c);
    }
    validate_scale(json_path(v, "subresources", "scale", NULL),
                   API_FIELD("%s.subresources.scale", field), c);
    validate_columns(json_get(v, "additionalPrinterColumns"),
                     API_FIELD("%s.additionalPrinterColumns", field), c);
    validate_selectable(v, field, c);
}

static void validate_versions(const struct json *spec, struct api_causes *c)
{
    const struct json *list = json_get(spec, "versions");
    size_t stored = 0;
    if (json_count(list) == 0) {
        api_required(c, "spec.versions", "must have exactly one version marked as storage version");
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *v = json_at(list, i);
        validate_version(v, API_FIELD("spec.versions[%zu]", i), c);
        stored += json_get_bool(json_get(v, "storage"), false);
        for (size_t k = 0; k < i; k++) {
            if (json_equal(json_get(json_at(list, k), "name"), json_get(v, "name"))) {
                api_invalid(c, API_FIELD("spec.versions[%zu].name", i), json_get(v, "name"),
                            "must contain unique version names");
            }
        }
    }
    if (stored != 1) {
        api_invalid(c, "spec.versions", NULL,
                    "must have exactly one version marked as storage version");
    }
}

static void validate_conversion(const struct json *spec, struct api_causes *c)
{
    const struct json *strategy = json_path(spec, "conversion", "strategy", NULL);
    if (!json_string_size(strategy) || streq(json_get_string(strategy), "None")) {
        return;
    }
    if (streq(json_get_string(strategy), "Webhook")) {
        api_forbidden(
            c, "spec.conversion.strategy",
            "this server calls no conversion webhooks: use None, which keeps the fields of "
            "all versions the same");
    } else {
        static const char *const strategies[] = {"None", NULL};
        api_unsupported(c, "spec.conversion.strategy", strategy, strategies);
    }
}

/* Objects may be stored in these versions, and must remain readable. */
static void validate_stored(const struct json *obj, struct api_causes *c)
{
    const struct json *stored = json_path(obj, "status", "storedVersions", NULL), *v;
    for (size_t i = 0; i < json_count(stored); i++) {
        bool found = false;
        JSON_FOREACH (v, json_path(obj, "spec", "versions", NULL)) {
            found |= json_equal(json_get(v, "name"), json_at(stored, i));
        }
        if (!found) {
            api_invalid(c, API_FIELD("status.storedVersions[%zu]", i), json_at(stored, i),
                        "must appear in spec.versions");
        }
    }
}

static void validate_update(const struct json *spec, const struct json *old, struct api_causes *c)
{
    const struct json *before = json_get(old, "spec");
    api_field_immutable(c, "spec.group", json_get(spec, "group"), json_get(before, "group"));
    api_field_immutable(c, "spec.names.plural", json_path(spec, "names", "plural", NULL),
                        json_path(before, "names", "plural", NULL));
    if (condition_is_true(old, "Established")) {
        api_field_immutable(c, "spec.scope", json_get(spec, "scope"), json_get(before, "scope"));
        api_field_immutable(c, "spec.names.kind", json_path(spec, "names", "kind", NULL),
                            json_path(before, "names", "kind", NULL));
    }
}

/* Groups of Kubernetes' own have definitions only with an approval, whose value is the address of
 * a pull request, or says that there is none. */
static void validate_approval(const struct json *obj, const char *group, struct api_causes *c)
{
    static const char key[] = "api-approved.kubernetes.io";
    if (!group || !(streq(group, "k8s.io") || str_has_suffix(group, ".k8s.io") ||
                    streq(group, "kubernetes.io") || str_has_suffix(group, ".kubernetes.io"))) {
        return;
    }
    const struct json *value = json_path(obj, "metadata", "annotations", key, NULL);
    const char *text = json_get_string(value);
    if (json_string_size(value) == 0) {
        api_required(c, "metadata.annotations[api-approved.kubernetes.io]",
                     "protected groups must have approval annotation \"%s\", see "
                     "https://github.com/kubernetes/enhancements/pull/1111",
                     key);
    } else if (!str_has_prefix(text, "unapproved") && !strstr(text, "://")) {
        api_invalid(c, "metadata.annotations[api-approved.kubernetes.io]", value,
                    "protected groups must have approval annotation \"%s\" with either a URL or a "
                    "reason starting with \"unapproved\", see "
                    "https://github.com/kubernetes/enhancements/pull/1111",
                    key);
    }
}

void kind_crd_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    const char *plural = json_path_string(spec, "names", "plural", NULL);
    const char *group = json_path_string(spec, "group", NULL);
    validate_names(json_get(spec, "names"), c);
    if (!old) {
        validate_approval(obj, group, c);
    }
    CLEANUP_FREE char *name = xasprintf("%s.%s", plural ? plural : "", group ? group : "");
    const struct json *own = json_path(obj, "metadata", "name", NULL);
    if (!streq_null(json_get_string(own), name)) {
        api_invalid(c, "metadata.name", own, "must be spec.names.plural+\".\"+spec.group");
    }
    if (json_get_bool(json_get(spec, "preserveUnknownFields"), false)) {
        api_invalid(c, "spec.preserveUnknownFields", json_get(spec, "preserveUnknownFields"),
                    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                    "spec.versions[*].schema instead");
    }
    validate_conversion(spec, c);
    validate_versions(spec, c);
    validate_stored(obj, c);
    if (old) {
        validate_update(spec, old, c);
    }
}

/* ---- defaults ---- */

void kind_crd_prepare(struct json *obj, const struct json *old)
{
    if (old) {
        return;
    }
    json_remove(obj, "status");
    struct json *list = json_get(json_get(obj, "metadata"), "finalizers"), *item;
    if (list && !json_is(list, JSON_ARRAY)) {
        return; /* Left to validation, which refuses it. */
    }
    list = json_ensure_array(json_get(obj, "metadata"), "finalizers");
    bool has = false;
    JSON_FOREACH (item, list) {
        has |= streq_null(json_get_string(item), CRD_FINALIZER);
    }
    if (!has) {
        json_append(list, json_string(CRD_FINALIZER));
    }
}

void kind_crd_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *names = json_get(spec, "names");
    const char *kind = json_path_string(names, "kind", NULL);
    if (json_is(spec, JSON_OBJECT) && !json_get(spec, "conversion")) {
        json_set_string(json_ensure_object(spec, "conversion"), "strategy", "None");
    }
    if (!json_is(names, JSON_OBJECT) || !kind) {
        return;
    }
    CLEANUP_FREE char *singular = xstrdup(kind);
    CLEANUP_FREE char *list = xasprintf("%sList", kind);
    for (char *p = singular; *p; p++) {
        *p = (char) tolower((unsigned char) *p);
    }
    api_default_string(names, "singular", singular);
    api_default_string(names, "listKind", list);
}
