/* SPDX-License-Identifier: Apache-2.0 */
/* TokenReview (authentication.k8s.io/v1): whom a bearer token belongs to. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char field[] = "spec.audiences";
    const struct json *list = json_path(obj, "spec", "audiences", NULL);
    api_field_string(c, "spec.token", json_path(obj, "spec", "token", NULL), true);
    if (api_field_array(c, field, list)) {
        for (size_t i = 0; i < json_count(list); i++) {
            api_field_string(c, API_FIELD("%s[%zu]", field, i), json_at(list, i), true);
        }
    }
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    API_COLUMN_AGE,
};

const struct api_kind api_kind_token_review = {
    .group = "authentication.k8s.io",
    .version = "v1",
    .kind = "TokenReview",
    .plural = "tokenreviews",
    .singular = "tokenreview",
    .create_only = true,
    .description = "TokenReview asks whom a bearer token belongs to.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .schema = &api_schema_token_review,
};
