/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/network.h"

#include "base/str.h"

static const char *const names[] = {
    [SDN_SUBNET] = "redhat/openshift-ovs-subnet",
    [SDN_MULTITENANT] = "redhat/openshift-ovs-multitenant",
    [SDN_NETWORKPOLICY] = "redhat/openshift-ovs-networkpolicy",
    [SDN_FLANNEL] = "flannel",
};
static_assert(ARRAY_SIZE(names) == SDN_N_PLUGINS, "a name for each plug-in");

int sdn_plugin_parse(const char *name, enum sdn_plugin *ret, struct err *e)
{
    static const char vendor[] = "redhat/openshift-", kind[] = "redhat/openshift-ovs-";
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        bool has_short = str_has_prefix(names[i], kind);
        if (streq(name, names[i]) || (has_short && (streq(name, names[i] + sizeof vendor - 1) ||
                                                    streq(name, names[i] + sizeof kind - 1)))) {
            *ret = (enum sdn_plugin) i;
            return 0;
        }
    }
    return err_set(
        e, -EINVAL, "\"%s\" is not a network plug-in: \"%s\", \"%s\", \"%s\" and \"%s\" are", name,
        names[SDN_SUBNET], names[SDN_MULTITENANT], names[SDN_NETWORKPOLICY], names[SDN_FLANNEL]);
}

const char *sdn_plugin_name(enum sdn_plugin p)
{
    return names[p];
}

bool sdn_addresses_add(struct sdn_addresses *a, uint32_t ip)
{
    for (size_t i = 0; i < a->n; i++) {
        if (a->ip[i] == ip) {
            return false;
        }
    }
    if (a->n == SDN_MAX_ADDRESSES) {
        return false;
    }
    a->ip[a->n++] = ip;
    return true;
}
