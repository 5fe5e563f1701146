/* SPDX-License-Identifier: Apache-2.0 */
/* RoleBinding (rbac.authorization.k8s.io/v1): gives users, groups and service accounts a role in one namespace. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    api_validate_binding(obj, old, false, c);
}

const struct api_kind api_kind_role_binding = {
    .group = API_RBAC_GROUP,
    .version = "v1",
    .kind = "RoleBinding",
    .plural = "rolebindings",
    .singular = "rolebinding",
    .namespaced = true,
    .description = "RoleBinding gives its subjects a role in its namespace.",
    .columns = api_binding_columns,
    .n_columns = ARRAY_SIZE(api_binding_columns),
    .check_name = api_check_path_segment,
    .defaults = api_binding_defaults,
    .validate = validate,
    .schema = &api_schema_role_binding,
};
