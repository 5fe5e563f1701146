/* SPDX-License-Identifier: Apache-2.0 */
/* Unknown keywords in the schema of a CustomResourceDefinition.
 *
 * A description cannot say what a schema may contain, since "items" and "additionalProperties" have
 * more than one type; their types are checked by crd_schema_check. The nodes here say only where
 * keywords and where names of users stand. The keywords are those of JSONSchemaProps of
 * apiextensions.k8s.io/v1. */
#include "api/crd/crd_schema.h"
#include "api/kinds.h"

static const struct api_schema keywords;
static const struct api_schema value = {.type = API_ANY, .nullable = true};
static const struct api_schema list = {.type = API_ARRAY, .items = &keywords, .nullable = true};
static const struct api_schema map = {.type = API_OBJECT, .others = &keywords, .nullable = true};

static const struct api_field keyword_fields[] = {
    {.name = "$ref", .schema = &value},
    {.name = "$schema", .schema = &value},
    {.name = "additionalItems", .schema = &keywords},
    {.name = "additionalProperties", .schema = &keywords},
    {.name = "allOf", .schema = &list},
    {.name = "anyOf", .schema = &list},
    {.name = "default", .schema = &value},
    {.name = "definitions", .schema = &map},
    {.name = "dependencies", .schema = &value},
    {.name = "description", .schema = &value},
    {.name = "enum", .schema = &value},
    {.name = "example", .schema = &value},
    {.name = "exclusiveMaximum", .schema = &value},
    {.name = "exclusiveMinimum", .schema = &value},
    {.name = "externalDocs", .schema = &value},
    {.name = "format", .schema = &value},
    {.name = "id", .schema = &value},
    {.name = "items", .schema = &keywords},
    {.name = "maxItems", .schema = &value},
    {.name = "maxLength", .schema = &value},
    {.name = "maxProperties", .schema = &value},
    {.name = "maximum", .schema = &value},
    {.name = "minItems", .schema = &value},
    {.name = "minLength", .schema = &value},
    {.name = "minProperties", .schema = &value},
    {.name = "minimum", .schema = &value},
    {.name = "multipleOf", .schema = &value},
    {.name = "not", .schema = &keywords},
    {.name = "nullable", .schema = &value},
    {.name = "oneOf", .schema = &list},
    {.name = "pattern", .schema = &value},
    {.name = "patternProperties", .schema = &map},
    {.name = "properties", .schema = &map},
    {.name = "required", .schema = &value},
    {.name = "title", .schema = &value},
    {.name = "type", .schema = &value},
    {.name = "uniqueItems", .schema = &value},
    {.name = "x-kubernetes-embedded-resource", .schema = &value},
    {.name = "x-kubernetes-int-or-string", .schema = &value},
    {.name = "x-kubernetes-list-map-keys", .schema = &value},
    {.name = "x-kubernetes-list-type", .schema = &value},
    {.name = "x-kubernetes-map-type", .schema = &value},
    {.name = "x-kubernetes-preserve-unknown-fields", .schema = &value},
    {.name = "x-kubernetes-validations", .schema = &value},
};
static const struct api_schema keywords = {.type = API_OBJECT,
                                           .fields = keyword_fields,
                                           .n_fields = ARRAY_SIZE(keyword_fields),
                                           .nullable = true};

/* Only the members on the way to the schemas; api_schema_prune has removed unknown others. */
#define THE_ONLY(member, node)                                                 \
    {                                                                          \
        .type = API_OBJECT, .others = &value, .nullable = true, .n_fields = 1, \
        .fields = (const struct api_field[])                                   \
        {                                                                      \
            {                                                                  \
                .name = (member), .schema = (node)                             \
            }                                                                  \
        }                                                                      \
    }
static const struct api_schema validation = THE_ONLY("openAPIV3Schema", &keywords);
static const struct api_schema version = THE_ONLY("schema", &validation);
static const struct api_schema versions = {.type = API_ARRAY, .items = &version, .nullable = true};
static const struct api_schema spec = THE_ONLY("versions", &versions);
static const struct api_schema definition = THE_ONLY("spec", &spec);

void kind_crd_prune(struct json *obj, struct api_paths *unknown)
{
    api_schema_prune(&definition, obj, unknown);
}
