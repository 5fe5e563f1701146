/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/netconf.h"

#include "base/mem.h"
#include "controller/obj.h"

#define MAX_OFFENDERS 10

void netconf_defaults(struct netconf *c)
{
    *c = (struct netconf){
        .ranges = {{{0x0a800000, 14}, 9}},
        .n_ranges = 1,
        .service = {0xac1e0000, 16},
        .plugin = SDN_SUBNET,
        .vxlan_port = SDN_VXLAN_PORT,
        .mtu = 1500 - SDN_VXLAN_OVERHEAD,
    };
}

static int check_foreign(const struct netconf *c, struct err *e)
{
    for (size_t i = 0; i < c->foreign.n; i++) {
        struct ip4_prefix p = c->foreign.list[i];
        for (size_t k = 0; k <= c->n_ranges; k++) {
            struct ip4_prefix own = k < c->n_ranges ? c->ranges[k].cidr : c->service;
            if (prefix_overlaps(p, own)) {
                return err_set(e, -EINVAL, "foreignPodNetworkCIDRs: %s: overlaps %s network %s",
                               PREFIX_TEXT(p), k < c->n_ranges ? "cluster" : "service",
                               PREFIX_TEXT(own));
            }
        }
        for (size_t k = 0; k < i; k++) {
            if (prefix_overlaps(p, c->foreign.list[k])) {
                return err_set(e, -EINVAL, "foreignPodNetworkCIDRs: %s: overlaps %s",
                               PREFIX_TEXT(p), PREFIX_TEXT(c->foreign.list[k]));
            }
        }
    }
    return 0;
}

int netconf_check(const struct netconf *c, struct err *e)
{
    int r = subnet_ranges_check(c->ranges, c->n_ranges, e);
    if (r < 0) {
        return err_prefix(e, "clusterNetworks"), r;
    }
    for (size_t i = 0; i < c->n_ranges; i++) {
        if (prefix_overlaps(c->ranges[i].cidr, c->service)) {
            return err_set(e, -EINVAL, "serviceNetworkCIDR: %s: overlaps cluster network %s",
                           PREFIX_TEXT(c->service), PREFIX_TEXT(c->ranges[i].cidr));
        }
    }
    r = check_foreign(c, e);
    if (r < 0) {
        return r;
    }
    if (c->vxlan_port == 0) {
        return err_set(e, -EINVAL, "vxlanPort: 0 is not in 1-65535");
    }
    if (c->mtu < NETCONF_MTU_MIN || c->mtu > NETCONF_MTU_MAX) {
        return err_set(e, -EINVAL, "mtu: %u is not in %d-%d", c->mtu, NETCONF_MTU_MIN,
                       NETCONF_MTU_MAX);
    }
    return 0;
}

bool netconf_has_address(const struct netconf *c, uint32_t addr)
{
    return netconf_has_prefix(c, (struct ip4_prefix){addr, 32});
}

bool netconf_has_prefix(const struct netconf *c, struct ip4_prefix p)
{
    for (size_t i = 0; i < c->n_ranges; i++) {
        if (p.len >= c->ranges[i].cidr.len && prefix_contains(c->ranges[i].cidr, p.addr)) {
            return true;
        }
    }
    return false;
}

void netconf_node_rules(const struct netconf *c, struct node_rules *ret)
{
    *ret = (struct node_rules){.service = c->service, .foreign = c->foreign};
    for (size_t i = 0; i < c->n_ranges; i++) {
        ret->cluster.list[ret->cluster.n++] = c->ranges[i].cidr;
    }
}

/* Sets 'key' to 'v' (taken) unless it has that value. */
static bool set_if_other(struct json *o, const char *key, struct json *v)
{
    if (json_equal(json_get(o, key), v)) {
        json_free(v);
        return false;
    }
    json_set(o, key, v);
    return true;
}

static bool apply_foreign(const struct netconf *c, struct json *object)
{
    CLEANUP_FREE char *text = address_ranges_text(&c->foreign);
    const char *had = obj_annotation(object, FOREIGN_PODS_ANNOTATION);
    if (streq(had ? had : "", text)) {
        return false;
    }
    if (*text) {
        obj_set_annotation(object, FOREIGN_PODS_ANNOTATION, text);
    } else {
        obj_remove_annotation(object, FOREIGN_PODS_ANNOTATION);
    }
    return true;
}

bool netconf_apply(const struct netconf *c, struct json *object)
{
    struct json *list = json_array();
    for (size_t i = 0; i < c->n_ranges; i++) {
        struct json *entry = json_object();
        json_set_string(entry, "CIDR", PREFIX_TEXT(c->ranges[i].cidr));
        json_set_int(entry, "hostSubnetLength", c->ranges[i].host_bits);
        json_append(list, entry);
    }
    bool changed = set_if_other(object, "clusterNetworks", list);
    /* The fields from before there were several ranges repeat the first range. */
    changed |= set_if_other(object, "network", json_string(PREFIX_TEXT(c->ranges[0].cidr)));
    changed |= set_if_other(object, "hostsubnetlength", json_int(c->ranges[0].host_bits));
    changed |= set_if_other(object, "serviceNetwork", json_string(PREFIX_TEXT(c->service)));
    changed |= set_if_other(object, "pluginName", json_string(sdn_plugin_name(c->plugin)));
    changed |= set_if_other(object, "vxlanPort", json_int(c->vxlan_port));
    changed |= set_if_other(object, "mtu", json_int(c->mtu));
    changed |= apply_foreign(c, object);
    return changed;
}

struct json *netconf_object(const struct netconf *c)
{
    struct json *o = obj_new(NETWORK_API_VERSION, "ClusterNetwork", NULL, "default");
    (void) netconf_apply(c, o);
    return o;
}

/* Appends to the list of offenders in 'text'; after ten of them appends only "and more". */
static void add_offender(struct strbuf *text, size_t *n, const char *kind, const struct json *o,
                         const char *where)
{
    if (*n == MAX_OFFENDERS) {
        strbuf_adds(text, ", and more");
    }
    if ((*n)++ >= MAX_OFFENDERS) {
        return;
    }
    const char *ns = obj_namespace(o);
    strbuf_addf(text, "%s%s %s%s%s (%s)", text->size ? ", " : "", kind, ns, *ns ? "/" : "",
                obj_name(o), where);
}

/* Whether the address lies in the current cluster networks.  A node may have
 * reported an address outside of them for its pod. */
static bool is_given_out(const struct json *current, uint32_t addr)
{
    const struct json *item;
    struct ip4_prefix p;
    const char *text = json_path_string(current, "network", NULL);
    bool has = text && prefix_parse(text, &p, NULL) == 0 && prefix_contains(p, addr);
    JSON_FOREACH (item, json_get(current, "clusterNetworks")) {
        text = json_path_string(item, "CIDR", NULL);
        has = has || (text && prefix_parse(text, &p, NULL) == 0 && prefix_contains(p, addr));
    }
    return has;
}

int netconf_check_change(const struct netconf *c, const struct json *current,
                         const struct json *hostsubnets, const struct json *pods, struct err *e)
{
    const char *service = json_path_string(current, "serviceNetwork", NULL);
    if (service && *service && !streq(service, PREFIX_TEXT(c->service))) {
        return err_set(e, -EINVAL,
                       "serviceNetworkCIDR: the cluster was made with %s, which cannot be changed "
                       "to %s",
                       service, PREFIX_TEXT(c->service));
    }
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(sizeof(e->text));
    size_t n = 0;
    const struct json *o;
    JSON_FOREACH (o, hostsubnets) {
        struct ip4_prefix p = {0};
        int r = hostsubnet_prefix(o, &p);
        if (r != -ENOENT && (r < 0 || !netconf_has_prefix(c, p))) {
            add_offender(&text, &n, "hostsubnet", o, json_path_string(o, "subnet", NULL));
        }
    }
    JSON_FOREACH (o, pods) {
        const char *ip = json_path_string(o, "status", "podIP", NULL);
        uint32_t addr = 0;
        if (ip && !json_get_bool(json_path(o, "spec", "hostNetwork", NULL), false) &&
            ip4_parse(ip, &addr) == 0 && is_given_out(current, addr) &&
            !netconf_has_address(c, addr)) {
            add_offender(&text, &n, "pod", o, ip);
        }
    }
    if (n > 0) {
        return err_set(e, -EINVAL, "clusterNetworks: these are in use and would lie outside: %s",
                       strbuf_cstr(&text));
    }
    return 0;
}

bool netconf_is_own_interface(const char *ifname)
{
    static const char *const ours[] = {"tun0", "br0", "lbr0"};
    for (size_t j = 0; j < ARRAY_SIZE(ours); j++) {
        if (streq(ifname, ours[j])) {
            return true;
        }
    }
    return false;
}

int netconf_check_host(const struct netconf *c, const struct netconf_host_net *nets, size_t n,
                       struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        bool skip = netconf_is_own_interface(nets[i].ifname);
        for (size_t j = 0; !skip && j <= c->n_ranges; j++) {
            struct ip4_prefix p = j < c->n_ranges ? c->ranges[j].cidr : c->service;
            if (prefix_overlaps(p, nets[i].net)) {
                return err_set(e, -EADDRINUSE,
                               "%s network %s overlaps network %s of this host's interface %s",
                               j < c->n_ranges ? "cluster" : "service", PREFIX_TEXT(p),
                               PREFIX_TEXT(nets[i].net), nets[i].ifname);
            }
        }
    }
    return 0;
}
