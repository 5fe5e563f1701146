/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas that several kinds of the core group share. */
#include "api/schema_core.h"

static const struct api_field reference_fields[] = {
    {"apiVersion", &api_schema_string, "API version of the object"},
    {"fieldPath", &api_schema_string, "Part of the object, as spec.containers{NAME}"},
    {"kind", &api_schema_string, "Kind of the object"},
    {"name", &api_schema_string, "Name of the object"},
    {"namespace", &api_schema_string, "Namespace of the object"},
    {"resourceVersion", &api_schema_string, "Version of the object"},
    {"uid", &api_schema_string, "UID of the object"},
};
const struct api_schema api_schema_object_reference = {
    .type = API_OBJECT,
    .definition = "io.k8s.api.core.v1.ObjectReference",
    .description = "Names an object",
    .fields = reference_fields,
    .n_fields = ARRAY_SIZE(reference_fields),
    .atomic = true,
};
