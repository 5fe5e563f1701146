/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of what many kinds have: metadata, selectors, conditions. */
#include "api/schema.h"

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

static const struct api_field owner_fields[] = {
    {"apiVersion", &api_schema_string, "API version of the owner", true},
    {"blockOwnerDeletion", &api_schema_boolean,
     "With foreground deletion the owner stays until this object is gone."},
    {"controller", &api_schema_boolean, "The owner is the controller that manages this object."},
    {"kind", &api_schema_string, "Kind of the owner", true},
    {"name", &api_schema_string, "Name of the owner", true},
    {"uid", &api_schema_string, "UID of the owner", true},
};
static const struct api_schema owner = {
    .type = API_OBJECT,
    .definition = META "OwnerReference",
    .description =
        "An object that this one depends on: when all owners are gone, it is deleted. An "
        "owner is in the same namespace or has none.",
    .fields = owner_fields,
    .n_fields = ARRAY_SIZE(owner_fields),
    .atomic = true,
};

static const struct api_schema fields_v1 = {
    .type = API_OBJECT,
    .definition = META "FieldsV1",
    .description =
        "A set of fields as a tree: members are f:NAME, k:KEYS (an element by its keys), "
        "v:VALUE (an element by its value), i:INDEX, and \".\" for the node itself.",
    .preserve_unknown = true,
};

static const struct api_field managed_fields[] = {
    {"apiVersion", &api_schema_string, "Version of the object that the field set applies to"},
    {"fieldsType", &api_schema_string, "Format of the field set: FieldsV1"},
    {"fieldsV1", &fields_v1, "The fields that are managed"},
    {"manager", &api_schema_string, "Who manages the fields"},
    {"operation", API_ENUM("Apply", "Update"), "How the fields were set: Apply or Update"},
    {"subresource", &api_schema_string, "Subresource they were set through; empty: the object"},
    {"time", &api_schema_time, "When the entry last changed"},
};
static const struct api_schema managed_entry =
    API_OBJECT_OF(managed_fields, META "ManagedFieldsEntry", "Who manages which fields");

static const struct api_field meta_fields[] = {
    {"annotations", &api_schema_string_map,
     "Annotations are texts that tools keep with the object; they cannot be selected by."},
    {"creationTimestamp", &api_schema_time, "When the object was created. Set by the server."},
    {"deletionGracePeriodSeconds", &api_schema_int64,
     "Seconds that the object is given to end. Set by the server when deletion is asked for."},
    {"deletionTimestamp", &api_schema_time,
     "When the object is to be gone; it goes when its finalizers are. Set by the server."},
    {"finalizers", &api_schema_string_set,
     "What has to be done before the object goes: each party removes its own."},
    {"generateName", &api_schema_string,
     "Beginning of a name to which the server adds a unique end, when no name is given"},
    {"generation", &api_schema_int64, "Counts changes of what is wanted. Set by the server."},
    {"labels", &api_schema_string_map, "Labels name what the object is, for selecting it."},
    {"managedFields", API_LIST_OF(&managed_entry),
     "Who manages which fields. Kept by the server for server-side apply."},
    {"name", &api_schema_string, "Name, unique within its namespace and kind. Cannot be changed."},
    {"namespace", &api_schema_string,
     "Namespace (project) that the object is in. Cannot be changed."},
    {"ownerReferences", API_MAP_LIST(&owner, "uid", "uid"),
     "Objects that this one depends on: when all are gone, it is deleted."},
    {"resourceVersion", &api_schema_string,
     "Version of the object, for watches and for finding conflicting changes; opaque"},
    {"selfLink", &api_schema_string, "Not set any more"},
    {"uid", &api_schema_string, "Unique in time and space. Set by the server."},
};
const struct api_schema api_schema_object_meta =
    API_OBJECT_OF(meta_fields, META "ObjectMeta", "Metadata that all objects have");

static const struct api_field requirement_fields[] = {
    {"key", &api_schema_string, "Label that the selector looks at", true},
    {"operator", &api_schema_string, "In, NotIn, Exists or DoesNotExist", true},
    {"values", &api_schema_string_list, "Values of In and NotIn; empty with the others"},
};
static const struct api_schema requirement = API_OBJECT_OF(
    requirement_fields, META "LabelSelectorRequirement", "A key, an operator and values");
static const struct api_field selector_fields[] = {
    {"matchExpressions", API_LIST_OF(&requirement), "Requirements, all of which must hold"},
    {"matchLabels", &api_schema_string_map, "Labels with values, all of which must be there"},
};
const struct api_schema api_schema_label_selector = {
    .type = API_OBJECT,
    .definition = META "LabelSelector",
    .description = "Selects objects by labels; an empty one selects all.",
    .fields = selector_fields,
    .n_fields = ARRAY_SIZE(selector_fields),
    .atomic = true,
};

static const struct api_field condition_fields[] = {
    {"lastTransitionTime", &api_schema_time, "When the status last changed", true},
    {"message", &api_schema_string, "Details for people", true},
    {"observedGeneration", &api_schema_int64, "Generation that the condition was made from"},
    {"reason", &api_schema_string, "Why it last changed, for programs, in CamelCase", true},
    {"status", &api_schema_string, "True, False or Unknown", true},
    {"type", &api_schema_string, "What the condition is about, in CamelCase", true},
};
static const struct api_schema condition =
    API_OBJECT_OF(condition_fields, META "Condition", "One aspect of an object's state");
const struct api_schema api_schema_conditions = {
    .type = API_ARRAY,
    .items = &condition,
    .list_type = API_LIST_MAP,
    .keys = (const char *const[]){"type", NULL},
    .patch_key = "type",
};
