/* SPDX-License-Identifier: Apache-2.0 */
/* SelfSubjectRulesReview (authorization.k8s.io/v1): what the asking user may do in a namespace. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    api_field_string(c, "spec.namespace", json_path(obj, "spec", "namespace", NULL), true);
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    API_COLUMN_AGE,
};

const struct api_kind api_kind_self_subject_rules_review = {
    .group = "authorization.k8s.io",
    .version = "v1",
    .kind = "SelfSubjectRulesReview",
    .plural = "selfsubjectrulesreviews",
    .singular = "selfsubjectrulesreview",
    .create_only = true,
    .description = "SelfSubjectRulesReview asks what the asking user may do in a namespace.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .schema = &api_schema_self_subject_rules_review,
};
