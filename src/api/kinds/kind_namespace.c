/* SPDX-License-Identifier: Apache-2.0 */
/* Namespace (core v1), and Project (project.openshift.io/v1): the same objects, where a user
 * sees only permitted projects. */
#include "api/kind_util.h"
#include "api/kinds.h"

#define NAME_LABEL "kubernetes.io/metadata.name"

/* Returns false when the spec has another type, which validation refuses. */
static bool add_finalizer(struct json *obj, const char *name)
{
    const struct json *given = json_get(obj, "spec");
    if (given && !json_is(given, JSON_OBJECT) && !json_is(given, JSON_NULL)) {
        return false;
    }
    struct json *list = json_ensure_array(json_ensure_object(obj, "spec"), "finalizers"), *item;
    bool has = false;
    JSON_FOREACH (item, list) {
        has |= streq_null(json_get_string(item), name);
    }
    if (!has) {
        json_append(list, json_string(name));
    }
    return true;
}

void kind_namespace_prepare(struct json *obj, const struct json *old)
{
    if (old) {
        /* Only the finalize subresource changes these. */
        const struct json *finalizers = json_path(old, "spec", "finalizers", NULL);
        struct json *spec = json_ensure_object(obj, "spec");
        json_remove(spec, "finalizers");
        if (finalizers) {
            json_set(spec, "finalizers", json_clone(finalizers));
        }
        return;
    }
    if (add_finalizer(obj, "kubernetes")) {
        json_set_string(json_set(obj, "status", json_object()), "phase", "Active");
    }
}

void kind_project_prepare(struct json *obj, const struct json *old)
{
    if (!old) {
        (void) add_finalizer(obj, "openshift.io/origin");
    }
    kind_namespace_prepare(obj, old);
}

void kind_namespace_defaults(struct json *obj)
{
    struct json *meta = json_ensure_object(obj, "metadata");
    const char *name = json_path_string(meta, "name", NULL);
    const struct json *labels = json_get(meta, "labels");
    /* Labels of another type are left to validation, which refuses them. */
    if (name && (!labels || json_is(labels, JSON_NULL) || json_is(labels, JSON_OBJECT))) {
        json_set_string(json_ensure_object(meta, "labels"), NAME_LABEL, name);
    }
}

void kind_namespace_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *list = json_path(obj, "spec", "finalizers", NULL);
    const struct json *phase = json_path(obj, "status", "phase", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const char *name = json_get_string(json_at(list, i));
        if (!strchr(name, '/') && !streq(name, "kubernetes")) {
            api_invalid(c, API_FIELD("spec.finalizers[%zu]", i), json_at(list, i),
                        "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
    bool deleting = json_path(obj, "metadata", "deletionTimestamp", NULL) != NULL;
    if (json_string_size(phase) && deleting != streq(json_get_string(phase), "Terminating")) {
        api_invalid(c, "status.phase", phase,
                    deleting ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                             : "may only be 'Active' if `deletionTimestamp` is empty");
    }
}

/* ---- Project ---- */

struct json *kind_namespace_cell_display_name(const struct json *obj, int64_t now_ms)
{
    const char *name =
        json_path_string(obj, "metadata", "annotations", "openshift.io/display-name", NULL);
    return api_cell_text(name, "");
}

static void same_form(struct json *obj)
{
}

const struct api_view kind_project_view = {
    .of = &api_kind_namespace, .show = same_form, .store = same_form};

/* A project's administrator may change its display name and description by the Project. Labels
 * and other annotations decide about the project's rights: the cluster administrator changes
 * them by the Namespace. */
static const char *const changeable[] = {"openshift.io/display-name", "openshift.io/description",
                                         NULL};
static const char *const no_members[] = {NULL};

static bool is_in(const char *const *list, const char *s)
{
    while (*list && !streq(*list, s)) {
        list++;
    }
    return *list != NULL;
}

static void refuse_change(struct api_causes *c, const char *field, const struct json *v)
{
    CLEANUP(json_free) struct json *none = json_string("");
    api_invalid(c, field, v ? v : none, "field is immutable, try updating the namespace");
}

/* The members of metadata[part] must not change, except for those in 'may_change'. */
static void check_members(struct api_causes *c, const struct json *obj, const struct json *old,
                          const char *part, const char *const *may_change)
{
    const struct json *now = json_path(obj, "metadata", part, NULL);
    const struct json *before = json_path(old, "metadata", part, NULL);
    for (size_t i = 0; i < json_count(now); i++) {
        const char *key = json_key_at(now, i);
        const struct json *was = json_get(before, key);
        if (!is_in(may_change, key) && !(was && json_equal(was, json_at(now, i)))) {
            refuse_change(c, API_FIELD("metadata.%s[%s]", part, key), json_at(now, i));
        }
    }
    for (size_t i = 0; i < json_count(before); i++) {
        const char *key = json_key_at(before, i);
        if (!is_in(may_change, key) && !json_get(now, key)) {
            refuse_change(c, API_FIELD("metadata.%s[%s]", part, key), NULL);
        }
    }
}

static void check_list(struct api_causes *c, const struct json *obj, const struct json *old,
                       const char *part)
{
    const struct json *now = json_path(obj, "metadata", part, NULL);
    const struct json *before = json_path(old, "metadata", part, NULL);
    if ((json_count(now) || json_count(before)) && !(now && before && json_equal(now, before))) {
        refuse_change(c, API_FIELD("metadata.%s", part), now);
    }
}

/* A project's name has two characters or more; clients show the other texts in one line. */
static void check_name(const struct json *obj, struct api_causes *c)
{
    const struct json *name = json_path(obj, "metadata", "name", NULL);
    if (json_string_size(name) == 1) {
        api_invalid(c, "metadata.name", name, "must be at least 2 characters long");
    }
}

static void check_line(const struct json *text, const char *field, struct api_causes *c)
{
    if (json_is(text, JSON_STRING) && strpbrk(json_get_string(text), "\n\t")) {
        api_invalid(c, field, text, "may not contain a new line or tab");
    }
}

void kind_project_request_validate(const struct json *obj, const struct json *old,
                                   struct api_causes *c)
{
    check_name(obj, c);
    check_line(json_get(obj, "displayName"), "displayName", c);
}

void kind_project_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    kind_namespace_validate(obj, old, c);
    const struct json *shown = json_path(obj, "metadata", "annotations", changeable[0], NULL);
    const struct json *was = json_path(old, "metadata", "annotations", changeable[0], NULL);
    /* A text that the Namespace was given before does not stop other changes. */
    if (shown && !(was && json_equal(was, shown))) {
        check_line(shown, API_FIELD("metadata.annotations[%s]", changeable[0]), c);
    }
    if (!old) {
        check_name(obj, c);
    } else {
        check_members(c, obj, old, "labels", no_members);
        check_members(c, obj, old, "annotations", changeable);
        check_list(c, obj, old, "finalizers");
        check_list(c, obj, old, "ownerReferences");
    }
}
