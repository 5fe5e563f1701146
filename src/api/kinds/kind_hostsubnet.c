/* SPDX-License-Identifier: Apache-2.0 */
/* HostSubnet (network.openshift.io/v1): the pod range of a node, and the address of its tunnels. */
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
    if (v && str_to_u64(json_get_string(v), VNID_MAX, &vnid) < 0) {
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
    uint32_t ip = 0;
    bool have_range = json_string_size(subnet) > 0;

    if (!streq_null(json_get_string(host), name)) {
        api_invalid(c, "host", host, "must be the same as metadata.name: \"%s\"", name);
    }
    if (!have_range && !json_get(annotations, ASSIGN_ANNOTATION)) {
        api_required(c, "subnet", "");
    } else if (have_range && prefix_parse(json_get_string(subnet), &range, NULL) == 0 &&
               range.len > 30) {
        api_invalid(c, "subnet", subnet, "must leave at least 2 bits for hosts");
    }
    (void) ip4_parse(json_path_string(obj, "hostIP", NULL), &ip);
    if (ip == 0 || ip >> 28 >= 0xe) {
        api_invalid(c, "hostIP", json_get(obj, "hostIP"), "must be the address of one host");
    } else if (have_range && prefix_contains(range, ip)) {
        api_invalid(c, "hostIP", json_get(obj, "hostIP"), "must not be in the subnet %s",
                    PREFIX_TEXT(range));
    }
    validate_annotations(annotations, c);
    const struct json *before = json_get(old, "subnet");
    if (json_string_size(before) && !json_equal(subnet, before)) {
        api_invalid(c, "subnet", subnet, "cannot change the subnet lease midflight");
    }
}
