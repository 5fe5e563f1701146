/* SPDX-License-Identifier: Apache-2.0 */
/* ClusterRole (rbac.authorization.k8s.io/v1): what may be done in all namespaces, outside of them, and with paths;
 * its rules may be gathered from other roles by their labels. */
#include "api/kind_util.h"
#include "api/schema_security.h"

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *aggregation = json_get(obj, "aggregationRule");
    const struct json *list = json_get(aggregation, "clusterRoleSelectors");
    api_validate_rules(json_get(obj, "rules"), false, c);
    if (!api_field_object(c, "aggregationRule", aggregation)) {
        return;
    }
    if (json_count(list) == 0) {
        api_required(c, "aggregationRule.clusterRoleSelectors",
                     "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for (size_t i = 0; i < json_count(list); i++) {
        api_field_object(c, API_FIELD("aggregationRule.clusterRoleSelectors[%zu]", i),
                         json_at(list, i));
    }
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"Created At", "date", "", "When it was created", 0, api_cell_created},
};

const struct api_kind api_kind_cluster_role = {
    .group = API_RBAC_GROUP,
    .version = "v1",
    .kind = "ClusterRole",
    .plural = "clusterroles",
    .singular = "clusterrole",
    .description = "ClusterRole is a list of rules that say what may be done in the cluster.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .check_name = api_check_path_segment,
    .validate = validate,
    .schema = &api_schema_cluster_role,
};
