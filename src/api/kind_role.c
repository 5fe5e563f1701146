/* SPDX-License-Identifier: Apache-2.0 */
/* Role (rbac.authorization.k8s.io/v1): what may be done in one namespace. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    api_validate_rules(json_get(obj, "rules"), true, c);
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"Created At", "date", "", "When it was created", 0, api_cell_created},
};

const struct api_kind api_kind_role = {
    .group = API_RBAC_GROUP,
    .version = "v1",
    .kind = "Role",
    .plural = "roles",
    .singular = "role",
    .namespaced = true,
    .description = "Role is a list of rules that say what may be done in its namespace.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .check_name = api_check_path_segment,
    .validate = validate,
    .schema = &api_schema_role,
};
