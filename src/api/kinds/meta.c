/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of objects: of the metadata of all kinds, and of the whole. */
#include "api/kind_util.h"
#include "api/patch/apply.h"
#include "api/schema.h"

#define ANNOTATIONS_MAX ((size_t) 256 << 10)
#define FINALIZERS_MAX 1000
#define NAME_RANDOM 5 /* Number of characters appended to generateName. */

static void validate_name(const struct api_kind *k, const struct json *meta, struct api_causes *c)
{
    const struct json *name = json_get(meta, "name"), *prefix = json_get(meta, "generateName");
    const char *(*check)(const char *) = k->check_name ? k->check_name : api_check_dns_subdomain;
    if (prefix) {
        /* Checked with a suffix appended: the prefix may end with a dash. */
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
    if (json_string_size(name) == 0) {
        api_required(c, "metadata.name", "name or generateName is required");
    } else {
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
    } else if (json_string_size(ns) == 0) {
        api_required(c, "metadata.namespace", "");
    } else {
        const char *wrong = api_check_dns_label(json_get_string(ns));
        if (wrong) {
            api_invalid(c, "metadata.namespace", ns, "%s", wrong);
        }
    }
}

void api_validate_labels(struct api_causes *c, const char *field, const struct json *labels)
{
    for (size_t i = 0; i < json_count(labels); i++) {
        const char *wrong = api_check_qualified_name(json_key_at(labels, i));
        const struct json *v = json_at(labels, i);
        if (wrong) {
            CLEANUP(json_free) struct json *key = json_string(json_key_at(labels, i));
            api_invalid(c, field, key, "%s", wrong);
        } else if ((wrong = api_check_label_value(json_get_string(v)))) {
            api_invalid(c, field, v, "%s", wrong);
        }
    }
}

void api_validate_annotations(struct api_causes *c, const char *field, const struct json *map)
{
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
            api_invalid(c, field, k, "%s", wrong);
        }
        total += strlen(key) + json_string_size(v);
    }
    if (total > ANNOTATIONS_MAX) {
        api_too_long(c, field, ANNOTATIONS_MAX);
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
    if (json_count(list) > FINALIZERS_MAX) {
        api_too_many(c, "metadata.finalizers", json_count(list), FINALIZERS_MAX);
        return;
    }
    bool deleting = old_meta && json_path_string(old_meta, "deletionTimestamp", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *v = json_at(list, i);
        const char *field = API_FIELD("metadata.finalizers[%zu]", i);
        const char *s = json_get_string(v), *wrong = api_check_qualified_name(s);
        if (!*s) {
            api_required(c, field, "");
        } else if (wrong) {
            api_invalid(c, field, v, "%s", wrong);
        } else if (!*k->group && !strchr(s, '/') && !streq(s, "orphan") &&
                   !streq(s, "foregroundDeletion")) {
            /* Kubernetes checks this for its own kinds only. */
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
    bool controller = false;
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *ref = json_at(list, i);
        if (streq_null(json_path_string(ref, "apiVersion", NULL), "v1") &&
            streq_null(json_path_string(ref, "kind", NULL), "Event")) {
            api_invalid(c, "metadata.ownerReferences", ref,
                        "/v1, Kind=Event is disallowed from being an owner");
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

/* Names, labels, annotations, finalizers, owners. */
static void validate_metadata(const struct api_kind *k, const struct json *obj,
                              const struct json *old, struct api_causes *c)
{
    const struct json *meta = json_get(obj, "metadata"), *old_meta = json_get(old, "metadata");
    if (!meta) {
        api_required(c, "metadata", "");
        return;
    }
    validate_name(k, meta, c);
    api_validate_labels(c, "metadata.labels", json_get(meta, "labels"));
    api_validate_annotations(c, "metadata.annotations", json_get(meta, "annotations"));
    validate_finalizers(k, meta, old_meta, c);
    validate_owners(json_get(meta, "ownerReferences"), c);
}

/* Whether no cause is about metadata, so that its types are valid. */
static bool metadata_fits(const struct api_causes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (str_has_prefix(c->list[i].field, "metadata")) {
            return false;
        }
    }
    return c->n < API_MAX_CAUSES;
}

void api_validate_object(const struct api_kind *k, const struct json *obj, const struct json *old,
                         struct api_causes *c)
{
    api_validate_part(k, "", obj, old, c);
}

void api_validate_part(const struct api_kind *k, const char *subresource, const struct json *obj,
                       const struct json *old, struct api_causes *c)
{
    api_schema_validate(api_kind_schema(k), obj, c);
    bool fits = c->n == 0;
    if (metadata_fits(c)) {
        validate_metadata(k, obj, old, c);
        api_managed_validate(json_path(obj, "metadata", "managedFields", NULL), c);
    }
    if (!fits) {
        return; /* The further checks rely on types and values. */
    }
    if (old) {
        api_schema_check_immutable(api_kind_schema(k), obj, old, c);
    }
    if (*subresource && k->validate_part) {
        k->validate_part(subresource, obj, old, c);
    } else if (k->validate) {
        k->validate(obj, old, c);
    }
}
