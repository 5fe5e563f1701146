/* SPDX-License-Identifier: Apache-2.0 */
/* Namespace (core v1), and Project (project.openshift.io/v1): the same objects, of which a user sees the own. */
#include "api/kind_util.h"
#include "api/schema_core.h"

#define NAME_LABEL "kubernetes.io/metadata.name"

static struct json *cell_status(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "status", "phase", NULL), "Active");
}

static void prepare(struct json *obj, const struct json *old)
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
    const struct json *given = json_get(obj, "spec");
    if (given && !json_is(given, JSON_OBJECT) && !json_is(given, JSON_NULL)) {
        return; /* For validation to refuse. */
    }
    struct json *list = json_ensure_array(json_ensure_object(obj, "spec"), "finalizers"), *item;
    bool has = false;
    JSON_FOREACH (item, list) {
        has |= streq_null(json_get_string(item), "kubernetes");
    }
    if (!has) {
        json_append(list, json_string("kubernetes"));
    }
    json_set_string(json_set(obj, "status", json_object()), "phase", "Active");
}

static void defaults(struct json *obj)
{
    struct json *meta = json_ensure_object(obj, "metadata");
    const char *name = json_path_string(meta, "name", NULL);
    const struct json *labels = json_get(meta, "labels");
    /* Labels of another type stay for validation to refuse. */
    if (name && (!labels || json_is(labels, JSON_NULL) || json_is(labels, JSON_OBJECT))) {
        json_set_string(json_ensure_object(meta, "labels"), NAME_LABEL, name);
    }
}

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *list = json_path(obj, "spec", "finalizers", NULL);
    api_field_object(c, "spec", json_get(obj, "spec"));
    if (api_field_array(c, "spec.finalizers", list)) {
        for (size_t i = 0; i < json_count(list); i++) {
            const char *field = API_FIELD("spec.finalizers[%zu]", i);
            const struct json *v = json_at(list, i);
            if (api_field_checked(c, field, v, true, api_check_qualified_name) &&
                !strchr(json_get_string(v), '/') && !streq(json_get_string(v), "kubernetes")) {
                api_invalid(c, field, v,
                            "name is neither a standard finalizer name nor is it fully qualified");
            }
        }
    }
    const struct json *phase = json_path(obj, "status", "phase", NULL);
    static const char *const phases[] = {"Active", "Terminating", NULL};
    if (api_field_enum(c, "status.phase", phase, false, phases)) {
        bool deleting = json_path(obj, "metadata", "deletionTimestamp", NULL) != NULL;
        if (deleting != streq(json_get_string(phase), "Terminating")) {
            api_invalid(c, "status.phase", phase,
                        deleting ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                                 : "may only be 'Active' if `deletionTimestamp` is empty");
        }
    }
}

/* ---- schema ---- */

#define CORE "io.k8s.api.core.v1."

static const struct api_field namespace_spec_fields[] = {
    {"finalizers", &api_schema_string_list, "Who has to be done before the namespace goes"},
};
static const struct api_schema namespace_spec =
    API_OBJECT_OF(namespace_spec_fields, CORE "NamespaceSpec", "What a namespace is to be");

static const struct api_field namespace_condition_fields[] = {
    {"lastTransitionTime", &api_schema_time, "When the status last changed"},
    {"message", &api_schema_string, "Details for people"},
    {"reason", &api_schema_string, "Why it last changed, in CamelCase"},
    {"status", &api_schema_string, "True, False or Unknown", true},
    {"type", &api_schema_string, "Type of the condition", true},
};
static const struct api_schema namespace_condition = API_OBJECT_OF(
    namespace_condition_fields, CORE "NamespaceCondition", "One aspect of a namespace's state");

static const struct api_field namespace_status_fields[] = {
    {"conditions", API_MAP_LIST(&namespace_condition, "type", "type"), "Aspects of its state"},
    {"phase", API_ENUM("Active", "Terminating"), "Active or Terminating"},
};
static const struct api_schema namespace_status =
    API_OBJECT_OF(namespace_status_fields, CORE "NamespaceStatus", "What a namespace is");
static const struct api_field root_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &namespace_spec, "What the namespace is to be"},
    {"status", &namespace_status, "What the namespace is"},
};
static const struct api_schema root =
    API_OBJECT_OF(root_fields, CORE "Namespace",
                  "Namespace provides a scope for names; a project is a namespace.");

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"Status", "string", "", "The status of the namespace", 0, cell_status},
    API_COLUMN_AGE,
};
static const char *const short_names[] = {"ns", NULL};
static const struct api_field_label selectable[] = {
    {"status.phase"},
    {0},
};

const struct api_kind api_kind_namespace = {
    .group = "",
    .version = "v1",
    .kind = "Namespace",
    .plural = "namespaces",
    .singular = "namespace",
    .short_names = short_names,
    .status_subresource = true,
    .description = "Namespace provides a scope for names; a project is a namespace.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .check_name = api_check_dns_label,
    .defaults = defaults,
    .prepare = prepare,
    .validate = validate,
    .selectable = selectable,
    .schema = &root,
};

/* ---- Project ---- */

static struct json *cell_display_name(const struct json *obj, int64_t now_ms)
{
    const char *name =
        json_path_string(obj, "metadata", "annotations", "openshift.io/display-name", NULL);
    return api_cell_text(name, "");
}

static void same_form(struct json *obj)
{
}

static const struct api_schema project_root = API_OBJECT_OF(
    root_fields, "com.github.openshift.api.project.v1.Project",
    "Project is a namespace with the people who work in it, and a network of its own.");

static const struct api_column project_columns[] = {
    API_COLUMN_NAME,
    {"Display Name", "string", "", "The project's name for people", 0, cell_display_name},
    {"Status", "string", "", "The status of the project", 0, cell_status},
};
static const struct api_view project_view = {
    .of = &api_kind_namespace, .show = same_form, .store = same_form};

const struct api_kind api_kind_project = {
    .group = "project.openshift.io",
    .version = "v1",
    .kind = "Project",
    .plural = "projects",
    .singular = "project",
    .status_subresource = true,
    .personal = true,
    .description =
        "Project is a namespace with the people who work in it, and a network of its own.",
    .view = &project_view,
    .columns = project_columns,
    .n_columns = ARRAY_SIZE(project_columns),
    .check_name = api_check_dns_label,
    .defaults = defaults,
    .prepare = prepare,
    .validate = validate,
    .selectable = selectable,
    .schema = &project_root,
};
