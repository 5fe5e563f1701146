/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/obj.h"

#include "sdn/network.h"

const char *node_internal_ip(const struct json *node)
{
    const struct json *a;
    JSON_FOREACH (a, json_path(node, "status", "addresses", NULL)) {
        const char *type = json_path_string(a, "type", NULL);
        if (type && streq(type, "InternalIP")) {
            return json_path_string(a, "address", NULL);
        }
    }
    return NULL;
}

int hostsubnet_prefix(const struct json *hs, struct ip4_prefix *ret)
{
    const struct json *v = json_get(hs, "subnet");
    const char *s = json_get_string(v);
    if (!v || (s && !*s)) {
        return -ENOENT;
    }
    return s ? prefix_parse(s, ret, NULL) : -EINVAL;
}

int netnamespace_vnid(const struct json *nn, uint32_t *ret)
{
    int64_t id = -1;
    if (json_get_int(json_get(nn, "netid"), &id) < 0 || id < 0 || id > SDN_VNID_MAX) {
        return -EINVAL;
    }
    return *ret = (uint32_t) id, 0;
}
