/* SPDX-License-Identifier: Apache-2.0 */
/* LocalSubjectAccessReview (authorization.k8s.io/v1): whether a user may do something in one namespace. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    const struct json *ns = json_path(spec, "resourceAttributes", "namespace", NULL);
    api_validate_subject_spec(spec, c);
    if (json_get(spec, "nonResourceAttributes")) {
        api_invalid(c, "spec.nonResourceAttributes", NULL, "disallowed on this kind of request");
    }
    if (!streq_null(json_get_string(ns), json_path_string(obj, "metadata", "namespace", NULL))) {
        api_invalid(c, "spec.resourceAttributes.namespace", ns, "must match metadata.namespace");
    }
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    API_COLUMN_AGE,
};

const struct api_kind api_kind_local_subject_access_review = {
    .group = "authorization.k8s.io",
    .version = "v1",
    .kind = "LocalSubjectAccessReview",
    .plural = "localsubjectaccessreviews",
    .singular = "localsubjectaccessreview",
    .namespaced = true,
    .create_only = true,
    .description =
        "LocalSubjectAccessReview asks whether a user may do something in its namespace.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .schema = &api_schema_local_subject_access_review,
};
