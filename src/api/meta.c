/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of objects: of the metadata that all kinds have, and of the whole. */
#include "api/apply.h"
#include "api/schema.h"

#define ANNOTATIONS_MAX ((size_t) 256 << 10)
#define FINALIZERS_MAX 1000
#define NAME_RANDOM 5 /* Characters that are appended to generateName. */

/* A string field; false after a cause was added, also for a missing 'required' one. */
static bool check_string(struct api_causes *c, const char *field, const struct json *v,
                         bool required)
{
    if (!v || json_is(v, JSON_NULL)) {
        if (required) {
            api_required(c, field, "");
        }
        return false;
    }
    if (!json_is(v, JSON_STRING)) {
        api_invalid(c, field, v, "must be a string");
        return false;
    }
    if (required && json_string_size(v) == 0) {
        api_required(c, field, "");
        return false;
    }
    return true;
}

static void validate_name(const struct api_kind *k, const struct json *meta, struct api_causes *c)
{
    const struct json *name = json_get(meta, "name"), *prefix = json_get(meta, "generateName");
    const char *(*check)(const char *) = k->check_name ? k->check_name : api_check_dns_subdomain;
    if (prefix && check_string(c, "metadata.generateName", prefix, false)) {
        /* What is valid with a suffix behind it: a dash may end it. */
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_addf(&b, "%.*s", (int) MIN(json_string_size(prefix), 253 - NAME_RANDOM),
                    json_get_string(prefix));
        if (b.size && b.data[b.size - 1] == '-') {
            strbuf_addc(&b, 'a');
        }
        const char *wrong = b.size ? check(b.data) : NULL;
        if (wrong) {
            api_invalid(c, "metadata.generateName", prefix, "%s", wrong);
        }
    }
    if (!name || json_is(name, JSON_NULL) ||
        (json_is(name, JSON_STRING) && json_string_size(name) == 0)) {
        api_required(c, "metadata.name", "name or generateName is required");
    } else if (check_string(c, "metadata.name", name, true)) {
        const char *wrong = check(json_get_string(name));
        if (wrong) {
            api_invalid(c, "metadata.name", name, "%s", wrong);
        }
    }
    const struct json *ns = json_get(meta, "namespace");
    if (!k->namespaced) {
        if (ns) {
            api_forbidden(c, "metadata.namespace", "not allowed on this type");
        }
    } else if (check_string(c, "metadata.namespace", ns, true)) {
        const char *wrong = api_check_dns_label(json_get_string(ns));
        if (wrong) {
            api_invalid(c, "metadata.namespace", ns, "%s", wrong);
        }
    }
}

static bool check_map(struct api_causes *c, const char *field, const struct json *v)
{
    if (v && !json_is(v, JSON_OBJECT) && !json_is(v, JSON_NULL)) {
        api_invalid(c, field, v, "must be an object");
        return false;
    }
    return v != NULL;
}

static void validate_labels(const struct json *labels, struct api_causes *c)
{
    if (!check_map(c, "metadata.labels", labels)) {
        return;
    }
    for (size_t i = 0; i < json_count(labels); i++) {
        const char *wrong = api_check_qualified_name(json_key_at(labels, i));
        const struct json *v = json_at(labels, i);
        if (wrong) {
            CLEANUP(json_free) struct json *key = json_string(json_key_at(labels, i));
            api_invalid(c, "metadata.labels", key, "%s", wrong);
        } else if (!json_is(v, JSON_STRING)) {
            api_invalid(c, API_FIELD("metadata.labels[%s]", json_key_at(labels, i)), v,
                        "must be a string");
        } else if ((wrong = api_check_label_value(json_get_string(v)))) {
            api_invalid(c, "metadata.labels", v, "%s", wrong);
        }
    }
}

static void validate_annotations(const struct json *map, struct api_causes *c)
{
    if (!check_map(c, "metadata.annotations", map)) {
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < json_count(map); i++) {
        const char *key = json_key_at(map, i);
        const struct json *v = json_at(map, i);
        /* Upper case is allowed in an annotation's prefix. */
        CLEANUP_STRBUF struct strbuf lower = STRBUF_INIT;
        strbuf_adds(&lower, key);
        for (size_t j = 0; j < lower.size; j++) {
            if (lower.data[j] >= 'A' && lower.data[j] <= 'Z') {
                lower.data[j] = (char) (lower.data[j] - 'A' + 'a');
            }
        }
        const char *wrong = api_check_qualified_name(strbuf_cstr(&lower));
        if (wrong) {
            CLEANUP(json_free) struct json *k = json_string(key);
            api_invalid(c, "metadata.annotations", k, "%s", wrong);
        }
        if (!json_is(v, JSON_STRING)) {
            api_invalid(c, API_FIELD("metadata.annotations[%s]", key), v, "must be a string");
        }
        total += strlen(key) + json_string_size(v);
    }
    if (total > ANNOTATIONS_MAX) {
        api_too_long(c, "metadata.annotations", ANNOTATIONS_MAX);
    }
}

static bool list_has(const struct json *list, const char *s)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), s)) {
            return true;
        }
    }
    return false;
}

static void validate_finalizers(const struct api_kind *k, const struct json *meta,
                                const struct json *old_meta, struct api_causes *c)
{
    const struct json *list = json_get(meta, "finalizers");
    if (!list || json_is(list, JSON_NULL)) {
        return;
    }
    if (!json_is(list, JSON_ARRAY)) {
        api_invalid(c, "metadata.finalizers", list, "must be a list");
        return;
    }
    if (json_count(list) > FINALIZERS_MAX) {
        api_too_many(c, "metadata.finalizers", json_count(list), FINALIZERS_MAX);
        return;
    }
    bool deleting = old_meta && json_path_string(old_meta, "deletionTimestamp", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *v = json_at(list, i);
        const char *field = API_FIELD("metadata.finalizers[%zu]", i);
        if (!check_string(c, field, v, true)) {
            continue;
        }
        const char *s = json_get_string(v), *wrong = api_check_qualified_name(s);
        if (wrong) {
            api_invalid(c, field, v, "%s", wrong);
        } else if (!*k->group && !strchr(s, '/') && !streq(s, "orphan") &&
                   !streq(s, "foregroundDeletion")) {
            /* As in Kubernetes: of its own kinds only. */
            api_invalid(c, field, v,
                        "name is neither a standard finalizer name nor is it fully qualified");
        } else if (deleting && !list_has(json_get(old_meta, "finalizers"), s)) {
            api_forbidden(c, "metadata.finalizers",
                          "no new finalizers can be added if the object is being deleted, found "
                          "new finalizers []string{\"%s\"}",
                          s);
        }
    }
}

static void validate_owners(const struct json *list, struct api_causes *c)
{
    if (!list || json_is(list, JSON_NULL)) {
        return;
    }
    if (!json_is(list, JSON_ARRAY)) {
        api_invalid(c, "metadata.ownerReferences", list, "must be a list");
        return;
    }
    bool controller = false;
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *ref = json_at(list, i);
        static const char *const required[] = {"apiVersion", "kind", "name", "uid"};
        for (size_t j = 0; j < ARRAY_SIZE(required); j++) {
            check_string(c, API_FIELD("metadata.ownerReferences[%zu].%s", i, required[j]),
                         json_get(ref, required[j]), true);
        }
        if (json_get_bool(json_get(ref, "controller"), false)) {
            if (controller) {
                api_invalid(c, "metadata.ownerReferences", NULL,
                            "only one reference can have controller set to true");
            }
            controller = true;
        }
    }
}

void api_validate_metadata(const struct api_kind *k, const struct json *obj, const struct json *old,
                           struct api_causes *c)
{
    const struct json *meta = json_get(obj, "metadata"), *old_meta = json_get(old, "metadata");
    if (!json_is(meta, JSON_OBJECT)) {
        api_required(c, "metadata", "");
        return;
    }
    validate_name(k, meta, c);
    validate_labels(json_get(meta, "labels"), c);
    validate_annotations(json_get(meta, "annotations"), c);
    validate_finalizers(k, meta, old_meta, c);
    validate_owners(json_get(meta, "ownerReferences"), c);
}

void api_validate_object(const struct api_kind *k, const struct json *obj, const struct json *old,
                         struct api_causes *c)
{
    api_schema_validate(api_kind_schema(k), obj, c);
    if (c->n) {
        return; /* The rest relies on types. */
    }
    api_validate_metadata(k, obj, old, c);
    api_managed_validate(json_path(obj, "metadata", "managedFields", NULL), c);
    if (old) {
        api_schema_check_immutable(api_kind_schema(k), obj, old, c);
    }
    if (k->validate) {
        k->validate(obj, old, c);
    }
}
