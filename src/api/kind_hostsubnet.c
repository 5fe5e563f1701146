/* SPDX-License-Identifier: Apache-2.0 */
/* HostSubnet (network.openshift.io/v1): the pod range of a node, and the address its tunnels end at. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/schema.h"

#define ASSIGN_ANNOTATION "pod.network.openshift.io/assign-subnet"
#define FIXED_VNID_ANNOTATION "pod.network.openshift.io/fixed-vnid-host"
#define VNID_MAX 0xffffff

static void validate_annotations(const struct json *map, struct api_causes *c)
{
    const struct json *v = json_get(map, FIXED_VNID_ANNOTATION);
    uint64_t vnid;
    if (json_is(v, JSON_STRING) && str_to_u64(json_get_string(v), VNID_MAX, &vnid) < 0) {
        api_invalid(c, "metadata.annotations[" FIXED_VNID_ANNOTATION "]", v,
                    "must be a decimal number between 0 and %d, inclusive", VNID_MAX);
    }
}

void kind_host_subnet_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *host = json_get(obj, "host"), *subnet = json_get(obj, "subnet");
    const struct json *annotations = json_path(obj, "metadata", "annotations", NULL);
    struct ip4_prefix range = {0};
    uint32_t ip;

    if (api_field_string(c, "host", host, true) && !streq_null(json_get_string(host), name)) {
        api_invalid(c, "host", host, "must be the same as metadata.name: \"%s\"", name);
    }
    bool have_range = false;
    if (json_string_size(subnet) == 0 && json_get(annotations, ASSIGN_ANNOTATION)) {
        /* The master is asked to assign one. */
        api_field_string(c, "subnet", subnet, false);
    } else {
        have_range = api_field_cidr(c, "subnet", subnet, true, &range);
        if (have_range && range.len > 30) {
            api_invalid(c, "subnet", subnet, "must leave at least 2 bits for hosts");
        }
    }
    if (api_field_ip4(c, "hostIP", json_get(obj, "hostIP"), true, &ip)) {
        if (ip == 0 || ip >> 28 >= 0xe) {
            api_invalid(c, "hostIP", json_get(obj, "hostIP"), "must be the address of one host");
        } else if (have_range && prefix_contains(range, ip)) {
            api_invalid(c, "hostIP", json_get(obj, "hostIP"), "must not be in the subnet %s",
                        PREFIX_TEXT(range));
        }
    }
    api_field_ip4_list(c, "egressIPs", json_get(obj, "egressIPs"));
    api_field_cidr_list(c, "egressCIDRs", json_get(obj, "egressCIDRs"));
    validate_annotations(annotations, c);
    if (old) {
        api_field_immutable(c, "host", host, json_get(old, "host"));
        if (json_string_size(json_get(old, "subnet")) &&
            !json_equal(subnet, json_get(old, "subnet"))) {
            api_invalid(c, "subnet", subnet, "cannot change the subnet lease midflight");
        }
    }
}

struct json *kind_host_subnet_cell_egress_cidrs(const struct json *obj, int64_t now_ms)
{
    return api_cell_list(json_get(obj, "egressCIDRs"));
}

struct json *kind_host_subnet_cell_egress_ips(const struct json *obj, int64_t now_ms)
{
    return api_cell_list(json_get(obj, "egressIPs"));
}
