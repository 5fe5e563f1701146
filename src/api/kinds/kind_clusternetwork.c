/* SPDX-License-Identifier: Apache-2.0 */
/* ClusterNetwork (network.openshift.io/v1): the address ranges of the cluster's pods and
 * services. Only the object "default" is used.  Its fields network and hostsubnetlength are the
 * older form of clusterNetworks' first element; each is filled in from the other. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/schema.h"
#include "base/mem.h"

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
}

/* The range "cidr" leaves 'length' bits to each node. */
static struct ip4_prefix check_range(const char *field, const struct json *cidr,
                                     const struct json *length, struct api_causes *c)
{
    struct ip4_prefix p = {0};
    (void) prefix_parse(json_get_string(cidr), &p, NULL);
    if (json_get_int_or(length, 0) > 32 - p.len) {
        api_invalid(c, field, length,
                    "subnet length is too large for %s: at most %d bits are left for hosts",
                    PREFIX_TEXT(p), 32 - p.len);
    }
    return p;
}

static void validate_networks(const struct json *obj, struct api_causes *c)
{
    const struct json *list = json_get(obj, "clusterNetworks");
    struct ip4_prefix services = {0};
    (void) prefix_parse(json_path_string(obj, "serviceNetwork", NULL), &services, NULL);
    CLEANUP_FREE struct ip4_prefix *ranges = xcalloc(json_count(list), sizeof *ranges);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *cidr = json_get(json_at(list, i), "CIDR");
        const char *field = API_FIELD("clusterNetworks[%zu].CIDR", i);
        ranges[i] = check_range(API_FIELD("clusterNetworks[%zu].hostSubnetLength", i), cidr,
                                json_get(json_at(list, i), "hostSubnetLength"), c);
        if (prefix_overlaps(ranges[i], services)) {
            api_invalid(c, field, cidr, "overlaps with the service network %s",
                        PREFIX_TEXT(services));
            continue;
        }
        for (size_t j = 0; j < i; j++) {
            if (prefix_overlaps(ranges[i], ranges[j])) {
                api_invalid(c, field, cidr, "overlaps with the cluster network %s",
                            PREFIX_TEXT(ranges[j]));
                break;
            }
        }
    }
}

/* The older pair of fields equals the list's first element, or is absent. */
static void validate_pair(const struct json *obj, struct api_causes *c)
{
    const struct json *first = json_at(json_get(obj, "clusterNetworks"), 0);
    const struct json *network = json_get(obj, "network");
    const struct json *length = json_get(obj, "hostsubnetlength");
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
    validate_networks(obj, c);
    validate_pair(obj, c);
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
