/* SPDX-License-Identifier: Apache-2.0 */
/* ClusterNetwork (network.openshift.io/v1): the ranges that the cluster's pods and services live in.
 * The one that counts is called "default".  Its fields network and hostsubnetlength are the older form of
 * clusterNetworks' first element; each is filled in from the other. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/schema.h"
#include "base/mem.h"

#define MAX_NETWORKS 16
#define DEFAULT_VXLAN_PORT 4789
#define DEFAULT_MTU 1450

void kind_cluster_network_defaults(struct json *obj)
{
    struct json *list = json_get(obj, "clusterNetworks");
    const struct json *network = json_get(obj, "network");
    const struct json *length = json_get(obj, "hostsubnetlength");
    if (json_is(list, JSON_ARRAY) && json_count(list) &&
        streq_null(json_path_string(obj, "metadata", "name", NULL), "default")) {
        const struct json *first = json_at(list, 0);
        if ((!network || json_is(network, JSON_NULL)) && json_get(first, "CIDR")) {
            json_set(obj, "network", json_clone(json_get(first, "CIDR")));
        }
        if ((!length || json_is(length, JSON_NULL)) && json_get(first, "hostSubnetLength")) {
            json_set(obj, "hostsubnetlength", json_clone(json_get(first, "hostSubnetLength")));
        }
    } else if ((!list || json_is(list, JSON_NULL) ||
                (json_is(list, JSON_ARRAY) && json_count(list) == 0)) &&
               network && length) {
        struct json *entry = json_object();
        json_set(entry, "CIDR", json_clone(network));
        json_set(entry, "hostSubnetLength", json_clone(length));
        json_append(json_set(obj, "clusterNetworks", json_array()), entry);
    }
    api_default_int(obj, "vxlanPort", DEFAULT_VXLAN_PORT);
    api_default_int(obj, "mtu", DEFAULT_MTU);
}

/* The element's range and host subnet length: "CIDR", or "network" of the older form. */
static bool validate_range(const char *cidr_field, const struct json *cidr,
                           const char *length_field, const struct json *length,
                           struct ip4_prefix *ret, struct api_causes *c)
{
    struct ip4_prefix p;
    int64_t bits;
    bool good = api_field_cidr(c, cidr_field, cidr, true, &p);
    if (api_field_int(c, length_field, length, true, 2, 30, &bits) && good && bits > 32 - p.len) {
        api_invalid(c, length_field, length,
                    "subnet length is too large for %s: at most %d bits are left for hosts",
                    PREFIX_TEXT(p), 32 - p.len);
    }
    if (good) {
        *ret = p;
    }
    return good;
}

static void validate_networks(const struct json *obj, struct api_causes *c)
{
    const struct json *list = json_get(obj, "clusterNetworks");
    struct ip4_prefix ranges[MAX_NETWORKS + 1];
    CLEANUP_FREE char *service_text = NULL;
    size_t n = 0;
    if (api_field_cidr(c, "serviceNetwork", json_get(obj, "serviceNetwork"), true, &ranges[0])) {
        service_text = xasprintf("the service network %s", PREFIX_TEXT(ranges[0]));
        n = 1;
    }
    if (json_count(list) > MAX_NETWORKS) {
        api_too_many(c, "clusterNetworks", json_count(list), MAX_NETWORKS);
        return;
    }
    if (!json_is(list, JSON_ARRAY)) {
        if (list && !json_is(list, JSON_NULL)) {
            api_invalid(c, "clusterNetworks", list, "must be a list");
        }
        struct ip4_prefix p;
        if (validate_range("network", json_get(obj, "network"), "hostsubnetlength",
                           json_get(obj, "hostsubnetlength"), &p, c) &&
            n && prefix_overlaps(p, ranges[0])) {
            api_invalid(c, "network", json_get(obj, "network"), "overlaps with %s", service_text);
        }
        return;
    }
    if (json_count(list) == 0) {
        api_required(c, "clusterNetworks", "at least one range is needed");
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *item = json_at(list, i);
        struct ip4_prefix p;
        if (!validate_range(API_FIELD("clusterNetworks[%zu].CIDR", i), json_get(item, "CIDR"),
                            API_FIELD("clusterNetworks[%zu].hostSubnetLength", i),
                            json_get(item, "hostSubnetLength"), &p, c)) {
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            if (prefix_overlaps(p, ranges[j])) {
                bool service = service_text && j == 0;
                api_invalid(c, API_FIELD("clusterNetworks[%zu].CIDR", i), json_get(item, "CIDR"),
                            "overlaps with %s%s", service ? service_text : "the cluster network ",
                            service ? "" : PREFIX_TEXT(ranges[j]));
                break;
            }
        }
        ranges[n++] = p;
    }
}

/* The older pair says what the list's first element says, or nothing. */
static void validate_pair(const struct json *obj, struct api_causes *c)
{
    const struct json *first = json_at(json_get(obj, "clusterNetworks"), 0);
    const struct json *network = json_get(obj, "network");
    const struct json *length = json_get(obj, "hostsubnetlength");
    if (!first) {
        return;
    }
    if (!streq_null(json_path_string(obj, "metadata", "name", NULL), "default")) {
        if (network && !json_equal(network, json_get(first, "CIDR"))) {
            api_invalid(c, "network", network, "must be identical to clusterNetworks[0].CIDR");
        }
    } else if (!network || !json_equal(network, json_get(first, "CIDR"))) {
        api_invalid(c, "network", network, "must be identical to clusterNetworks[0].CIDR");
    }
    if (length && !json_equal(length, json_get(first, "hostSubnetLength"))) {
        api_invalid(c, "hostsubnetlength", length,
                    "must be identical to clusterNetworks[0].hostSubnetLength");
    }
}

void kind_cluster_network_validate(const struct json *obj, const struct json *old,
                                   struct api_causes *c)
{
    static const char *const plugins[] = {"redhat/openshift-ovs-subnet",
                                          "redhat/openshift-ovs-multitenant",
                                          "redhat/openshift-ovs-networkpolicy", NULL};
    int64_t n;
    validate_networks(obj, c);
    validate_pair(obj, c);
    api_field_enum(c, "pluginName", json_get(obj, "pluginName"), false, plugins);
    api_field_int(c, "vxlanPort", json_get(obj, "vxlanPort"), false, 1, 65535, &n);
    api_field_int(c, "mtu", json_get(obj, "mtu"), false, 576, 65536, &n);
    if (old) {
        api_field_immutable(c, "serviceNetwork", json_get(obj, "serviceNetwork"),
                            json_get(old, "serviceNetwork"));
    }
}

struct json *kind_cluster_network_cell_networks(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, json_get(obj, "clusterNetworks")) {
        const char *cidr = json_path_string(item, "CIDR", NULL);
        const char *bits = json_number_text(json_get(item, "hostSubnetLength"));
        strbuf_addf(&b, "%s%s:%s", b.size ? ", " : "", cidr ? cidr : "?", bits ? bits : "?");
    }
    return json_string(strbuf_cstr(&b));
}

static struct json *number_cell(const struct json *v)
{
    const char *text = json_number_text(v);
    return json_string(text ? text : "");
}

struct json *kind_cluster_network_cell_port(const struct json *obj, int64_t now_ms)
{
    return number_cell(json_get(obj, "vxlanPort"));
}

struct json *kind_cluster_network_cell_mtu(const struct json *obj, int64_t now_ms)
{
    return number_cell(json_get(obj, "mtu"));
}
