/* SPDX-License-Identifier: Apache-2.0 */
/* AdminNetworkPolicy (policy.networking.k8s.io/v1alpha1): the administrator's rules, before NetworkPolicy. */
#include "api/policy_fields.h"

#define PRIORITY_MAX 1000 /* 0 comes first. */

static void defaults(struct json *obj)
{
    policy_default_admin_spec(json_get(obj, "spec"));
}

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const actions[] = {"Allow", "Deny", "Pass", NULL};
    const struct json *spec = json_get(obj, "spec");
    int64_t priority;
    if (!spec || json_is(spec, JSON_NULL)) {
        api_required(c, "spec", "");
        return;
    }
    if (!api_field_object(c, "spec", spec)) {
        return;
    }
    api_field_int(c, "spec.priority", json_get(spec, "priority"), true, 0, PRIORITY_MAX, &priority);
    policy_check_admin_spec(c, spec, actions);
}

static struct json *cell_priority(const struct json *obj, int64_t now_ms)
{
    const char *text = json_number_text(json_path(obj, "spec", "priority", NULL));
    return json_string(text ? text : "");
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"Priority", "string", "", "Its rank: 0 comes first", 0, cell_priority},
    API_COLUMN_AGE,
};
static const char *const short_names[] = {"anp", NULL};

const struct api_kind api_kind_admin_network_policy = {
    .group = "policy.networking.k8s.io",
    .version = "v1alpha1",
    .kind = "AdminNetworkPolicy",
    .plural = "adminnetworkpolicies",
    .singular = "adminnetworkpolicy",
    .short_names = short_names,
    .status_subresource = true,
    .description = "AdminNetworkPolicy is a cluster level resource that is part of the "
                   "AdminNetworkPolicy API.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .defaults = defaults,
    .validate = validate,
    .schema = &policy_admin_schema,
};
