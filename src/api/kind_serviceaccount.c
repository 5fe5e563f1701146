/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccount (core v1): the identity of what runs in a project's pods.  Its tokens are made by the
 * subresource token. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static struct json *cell_secrets(const struct json *obj, int64_t now_ms)
{
    return json_int((int64_t) json_count(json_get(obj, "secrets")));
}

static void validate_refs(const char *field, const struct json *list, struct api_causes *c)
{
    if (api_field_array(c, field, list)) {
        for (size_t i = 0; i < json_count(list); i++) {
            const char *name = API_FIELD("%s[%zu]", field, i);
            if (api_field_object(c, name, json_at(list, i))) {
                api_field_string(c, API_FIELD("%s.name", name), json_get(json_at(list, i), "name"),
                                 false);
            }
        }
    }
}

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    validate_refs("secrets", json_get(obj, "secrets"), c);
    validate_refs("imagePullSecrets", json_get(obj, "imagePullSecrets"), c);
    api_field_bool(c, "automountServiceAccountToken",
                   json_get(obj, "automountServiceAccountToken"));
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"Secrets", "string", "", "Number of secrets that its pods may use", 0, cell_secrets},
    API_COLUMN_AGE,
};
static const char *const short_names[] = {"sa", NULL};
static const char *const create[] = {"create", NULL};
static const struct api_subresource subresources[] = {
    {"token", create, "authentication.k8s.io", "v1", "TokenRequest"},
    {0},
};

const struct api_kind api_kind_service_account = {
    .group = "",
    .version = "v1",
    .kind = "ServiceAccount",
    .plural = "serviceaccounts",
    .singular = "serviceaccount",
    .short_names = short_names,
    .namespaced = true,
    .subresources = subresources,
    .description = "ServiceAccount is the identity of what runs in pods.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .schema = &api_schema_service_account,
};
