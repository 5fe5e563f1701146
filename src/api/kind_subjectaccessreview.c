/* SPDX-License-Identifier: Apache-2.0 */
/* SubjectAccessReview (authorization.k8s.io/v1): whether a user may do something. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    api_validate_subject_spec(json_get(obj, "spec"), c);
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    API_COLUMN_AGE,
};

const struct api_kind api_kind_subject_access_review = {
    .group = "authorization.k8s.io",
    .version = "v1",
    .kind = "SubjectAccessReview",
    .plural = "subjectaccessreviews",
    .singular = "subjectaccessreview",
    .create_only = true,
    .description = "SubjectAccessReview asks whether a user may do something.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .schema = &api_schema_subject_access_review,
};
