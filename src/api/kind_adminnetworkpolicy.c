/* SPDX-License-Identifier: Apache-2.0 */
/* AdminNetworkPolicy (policy.networking.k8s.io/v1alpha1): the administrator's rules, before NetworkPolicy. */
#include "api/kinds.h"
#include "api/policy_fields.h"

#define PRIORITY_MAX 1000 /* 0 comes first. */

void kind_admin_network_policy_defaults(struct json *obj)
{
    policy_default_admin_spec(json_get(obj, "spec"));
}

void kind_admin_network_policy_validate(const struct json *obj, const struct json *old,
                                        struct api_causes *c)
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

struct json *kind_admin_network_policy_cell_priority(const struct json *obj, int64_t now_ms)
{
    const char *text = json_number_text(json_path(obj, "spec", "priority", NULL));
    return json_string(text ? text : "");
}
