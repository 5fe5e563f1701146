/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/address.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

#define POINT_TO_POINT 31 /* Prefixes of this length and longer have no broadcast address. */

bool address_ranges_contain(const struct address_ranges *r, uint32_t ip)
{
    for (size_t i = 0; r && i < r->n; i++) {
        if (prefix_contains(r->list[i], ip)) {
            return true;
        }
    }
    return false;
}

static int parse_one(const char *s, bool hosts, struct ip4_prefix *ret, struct err *e)
{
    if (hosts && !strchr(s, '/')) {
        *ret = (struct ip4_prefix){.len = 32};
        return ip4_parse(s, &ret->addr) < 0
                   ? err_set(e, -EINVAL, "\"%.80s\" is neither an IPv4 address nor a network", s)
                   : 0;
    }
    return prefix_parse(s, ret, e);
}

int address_ranges_parse(const char *text, bool hosts, struct address_ranges *ret, struct err *e)
{
    struct address_ranges now = {.n = 0};
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ",");
        CLEANUP_FREE char *one = xstrndup(p, n);
        if (now.n == ADDRESS_MAX_RANGES) {
            return err_set(e, -EINVAL, "more than %d ranges", ADDRESS_MAX_RANGES);
        }
        int r = parse_one(one, hosts, &now.list[now.n++], e);
        if (r < 0) {
            return r;
        }
        p += n + (p[n] == ',');
    }
    *ret = now;
    return 0;
}

char *address_ranges_text(const struct address_ranges *r)
{
    struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < r->n; i++) {
        strbuf_addf(&b, "%s%s", i ? "," : "", PREFIX_TEXT(r->list[i]));
    }
    return r->n ? strbuf_steal(&b) : xstrdup("");
}

void address_ranges_of_network(const struct json *network, struct address_ranges *ret)
{
    const char *text =
        json_path_string(network, "metadata", "annotations", FOREIGN_PODS_ANNOTATION, NULL);
    *ret = (struct address_ranges){.n = 0};
    if (text) {
        (void) address_ranges_parse(text, false, ret, NULL);
    }
}

/* ---- pods ---- */

void pod_site_read(const struct json *pod, const struct json *host_subnet, struct pod_site *ret)
{
    const char *subnet = json_path_string(host_subnet, "subnet", NULL);
    const char *host = json_path_string(host_subnet, "hostIP", NULL);
    *ret = (struct pod_site){.host_network =
                                 json_get_bool(json_path(pod, "spec", "hostNetwork", NULL), false)};
    ret->has_subnet = subnet && *subnet && prefix_parse(subnet, &ret->subnet, NULL) == 0;
    if (!host || ip4_parse(host, &ret->host_ip) < 0) {
        ret->host_ip = 0;
    }
}

static int check_in_subnet(struct ip4_prefix net, uint32_t ip, struct err *e)
{
    if (!prefix_contains(net, ip)) {
        return err_set(e, -EADDRNOTAVAIL, "%s is not in %s, the subnet of the pod's node",
                       IP4_TEXT(ip), PREFIX_TEXT(net));
    }
    bool whole = net.len < POINT_TO_POINT;
    const char *what = !whole                   ? NULL
                       : ip == net.addr         ? "network"
                       : ip == net.addr + 1     ? "gateway's"
                       : ip == prefix_last(net) ? "broadcast"
                                                : NULL;
    return what ? err_set(e, -EADDRNOTAVAIL,
                          "%s is the %s address of %s, the subnet of the pod's node", IP4_TEXT(ip),
                          what, PREFIX_TEXT(net))
                : 0;
}

int pod_address_check(const struct pod_site *s, const struct address_ranges *foreign, uint32_t ip,
                      struct err *e)
{
    if (s->host_network && s->host_ip) {
        return ip == s->host_ip
                   ? 0
                   : err_set(e, -EADDRNOTAVAIL,
                             "%s is not %s, the address of the node whose network the pod shares",
                             IP4_TEXT(ip), IP4_TEXT(s->host_ip));
    }
    if (!s->host_network && address_ranges_contain(foreign, ip)) {
        return 0;
    }
    if (s->host_network || !s->has_subnet) {
        return err_set(e, -EADDRNOTAVAIL,
                       "%s cannot be checked: the pod's node has no HostSubnet with a subnet yet",
                       IP4_TEXT(ip));
    }
    return check_in_subnet(s->subnet, ip, e);
}

/* ---- nodes ---- */

int host_address_check(uint32_t ip, struct err *e)
{
    static const struct {
        struct ip4_prefix net;
        const char *what;
    } special[] = {
        {{0x00000000, 8}, "not an address of a host"}, {{0x7f000000, 8}, "a loopback address"},
        {{0xa9fe0000, 16}, "a link-local address"},    {{0xe0000000, 4}, "a multicast address"},
        {{0xf0000000, 4}, "not an address of a host"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
        if (prefix_contains(special[i].net, ip)) {
            return err_set(e, -EADDRNOTAVAIL, "%s is %s", IP4_TEXT(ip), special[i].what);
        }
    }
    return 0;
}

static bool is_on_a_master(const struct node_rules *r, const char *name)
{
    for (size_t i = 0; r->master_nodes && r->master_nodes[i]; i++) {
        if (streq(r->master_nodes[i], name)) {
            return true;
        }
    }
    return false;
}

int node_address_check(const struct node_rules *r, const char *name, uint32_t ip, struct err *e)
{
    int error = host_address_check(ip, e);
    if (error < 0) {
        return error;
    }
    if (r->service.len && prefix_contains(r->service, ip)) {
        return err_set(e, -EADDRNOTAVAIL, "%s lies in the service network %s", IP4_TEXT(ip),
                       PREFIX_TEXT(r->service));
    }
    const struct {
        bool is;
        const char *what;
    } others[] = {
        {address_ranges_contain(&r->cluster, ip), "lies in the cluster network"},
        {address_ranges_contain(&r->ingress, ip),
         "lies in the range of services' ingress addresses"},
        {address_ranges_contain(&r->foreign, ip), "lies in networkConfig.foreignPodNetworkCIDRs"},
        {address_ranges_contain(&r->reserved, ip),
         "is reserved by networkConfig.reservedAddresses"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (others[i].is) {
            return err_set(e, -EADDRNOTAVAIL, "%s %s", IP4_TEXT(ip), others[i].what);
        }
    }
    if (address_ranges_contain(&r->masters, ip) && !is_on_a_master(r, name)) {
        return err_set(e, -EADDRNOTAVAIL,
                       "%s is an address of a master; a node that runs on a master's host must be "
                       "named in kubernetesMasterConfig.masterNodes",
                       IP4_TEXT(ip));
    }
    return 0;
}
