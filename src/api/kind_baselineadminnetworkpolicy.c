/* SPDX-License-Identifier: Apache-2.0 */
/* BaselineAdminNetworkPolicy (policy.networking.k8s.io/v1alpha1): what holds for pods that no NetworkPolicy
 * selects.  There is one, called "default". */
#include "api/kinds.h"
#include "api/policy_fields.h"

void kind_baseline_admin_network_policy_defaults(struct json *obj)
{
    policy_default_admin_spec(json_get(obj, "spec"));
}

void kind_baseline_admin_network_policy_validate(const struct json *obj, const struct json *old,
                                                 struct api_causes *c)
{
    static const char *const actions[] = {"Allow", "Deny", NULL};
    const struct json *spec = json_get(obj, "spec"),
                      *name = json_path(obj, "metadata", "name", NULL);
    if (json_is(name, JSON_STRING) && !streq(json_get_string(name), "default")) {
        api_invalid(c, "metadata.name", name,
                    "Only one baseline admin network policy with metadata.name=\"default\" can be "
                    "created in the cluster");
    }
    if (!spec || json_is(spec, JSON_NULL)) {
        api_required(c, "spec", "");
        return;
    }
    if (api_field_object(c, "spec", spec)) {
        policy_check_admin_spec(c, spec, actions);
    }
}
