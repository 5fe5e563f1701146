/* SPDX-License-Identifier: Apache-2.0 */
/* SelfSubjectReview (authentication.k8s.io/v1): who the asking user is to the server. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    api_field_object(c, "status", json_get(obj, "status"));
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    API_COLUMN_AGE,
};

const struct api_kind api_kind_self_subject_review = {
    .group = "authentication.k8s.io",
    .version = "v1",
    .kind = "SelfSubjectReview",
    .plural = "selfsubjectreviews",
    .singular = "selfsubjectreview",
    .create_only = true,
    .description = "SelfSubjectReview tells who the asking user is.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .schema = &api_schema_self_subject_review,
};
