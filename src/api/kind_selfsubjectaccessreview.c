/* SPDX-License-Identifier: Apache-2.0 */
/* SelfSubjectAccessReview (authorization.k8s.io/v1): whether the asking user may do something. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    api_validate_access_spec(json_get(obj, "spec"), c);
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    API_COLUMN_AGE,
};

const struct api_kind api_kind_self_subject_access_review = {
    .group = "authorization.k8s.io",
    .version = "v1",
    .kind = "SelfSubjectAccessReview",
    .plural = "selfsubjectaccessreviews",
    .singular = "selfsubjectaccessreview",
    .create_only = true,
    .description = "SelfSubjectAccessReview asks whether the asking user may do something.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .schema = &api_schema_self_subject_access_review,
};
