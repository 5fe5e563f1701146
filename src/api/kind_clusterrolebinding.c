/* SPDX-License-Identifier: Apache-2.0 */
/* ClusterRoleBinding (rbac.authorization.k8s.io/v1): gives users, groups and service accounts a role everywhere. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    api_validate_binding(obj, old, true, c);
}

const struct api_kind api_kind_cluster_role_binding = {
    .group = API_RBAC_GROUP,
    .version = "v1",
    .kind = "ClusterRoleBinding",
    .plural = "clusterrolebindings",
    .singular = "clusterrolebinding",
    .description = "ClusterRoleBinding gives its subjects a role in the whole cluster.",
    .columns = api_binding_columns,
    .n_columns = ARRAY_SIZE(api_binding_columns),
    .check_name = api_check_path_segment,
    .defaults = api_binding_defaults,
    .validate = validate,
    .schema = &api_schema_cluster_role_binding,
};
