/* SPDX-License-Identifier: Apache-2.0 */
/* AdminNetworkPolicy and BaselineAdminNetworkPolicy (policy.networking.k8s.io/v1alpha1): the
 * administrator's rules with precedence over NetworkPolicy, and those for pods that no
 * NetworkPolicy selects. */
#include "api/kinds.h"
#include "api/kinds/policy_fields.h"

void kind_admin_network_policy_validate(const struct json *obj, const struct json *old,
                                        struct api_causes *c)
{
    policy_check_admin_spec(c, json_get(obj, "spec"));
}

/* The baseline is evaluated last, so it cannot pass traffic on. */
static void refuse_pass(const char *field, const struct json *rules, struct api_causes *c)
{
    static const char *const actions[] = {"Allow", "Deny", NULL};
    for (size_t i = 0; i < json_count(rules); i++) {
        const struct json *action = json_get(json_at(rules, i), "action");
        if (streq(json_get_string(action), "Pass")) {
            api_unsupported(c, API_FIELD("%s[%zu].action", field, i), action, actions);
        }
    }
}

void kind_baseline_admin_network_policy_validate(const struct json *obj, const struct json *old,
                                                 struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"),
                      *name = json_path(obj, "metadata", "name", NULL);
    if (name && !streq(json_get_string(name), "default")) {
        api_invalid(c, "metadata.name", name,
                    "Only one baseline admin network policy with metadata.name=\"default\" can be "
                    "created in the cluster");
    }
    refuse_pass("spec.ingress", json_get(spec, "ingress"), c);
    refuse_pass("spec.egress", json_get(spec, "egress"), c);
    policy_check_admin_spec(c, spec);
}
