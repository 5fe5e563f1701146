/* SPDX-License-Identifier: Apache-2.0 */
/* EgressNetworkPolicy (network.openshift.io/v1): what the pods of a project may reach outside the
 * cluster. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/schema.h"

#define MAX_RULES 50 /* OpenShift 3's limit. */

static void validate_destination(const struct json *to, const char *field, struct api_causes *c)
{
    const struct json *cidr = json_get(to, "cidrSelector"), *name = json_get(to, "dnsName");
    struct err e = {0};
    bool has_cidr = json_string_size(cidr) > 0, has_name = json_string_size(name) > 0;
    if (!has_cidr && !has_name) {
        api_required(c, field, "must specify cidrSelector or dnsName");
    } else if (has_cidr && has_name) {
        api_invalid(c, field, to, "either specify cidrSelector or dnsName but not both");
    }
    if (has_cidr && api_parse_cidr4(json_get_string(cidr), &e) < 0) {
        api_invalid(c, API_FIELD("%s.cidrSelector", field), cidr, "%s", e.text);
    }
}

void kind_egress_network_policy_validate(const struct json *obj, const struct json *old,
                                         struct api_causes *c)
{
    const struct json *rules = json_path(obj, "spec", "egress", NULL);
    for (size_t i = 0; i < json_count(rules); i++) {
        validate_destination(json_get(json_at(rules, i), "to"), API_FIELD("spec.egress[%zu].to", i),
                             c);
    }
    if (json_count(rules) > MAX_RULES) {
        api_invalid(c, "spec.egress", NULL, "too many egress rules (max %d)", MAX_RULES);
    }
}
