/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/host.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROC_NET_MAX ((size_t) 16 << 20)

int host_check_privileges(struct err *e)
{
    static const struct {
        unsigned cap;
        const char *name;
    } needed[] = {{CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &head, data) < 0) {
        return err_sys(e, -errno, "ask for this process's capabilities");
    }
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        if (!(data[needed[i].cap / 32].effective >> (needed[i].cap % 32) & 1)) {
            strbuf_addf(&missing, "%s%s", missing.size ? " and " : "", needed[i].name);
        }
    }
    return missing.size ? err_set(e, -EPERM,
                                  "missing privileges: %s (run as root, in the host's namespaces)",
                                  missing.data)
                        : 0;
}

int host_default_address(struct rtnl *r, uint32_t *ret, struct err *e)
{
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    size_t n_routes, n_addrs;
    int err = rtnl_route_list(r, 0, &routes, &n_routes, e);
    for (size_t i = 0; err == 0 && i < n_routes; i++) {
        if (routes[i].dst.len > 0) {
            continue;
        }
        if (routes[i].src) {
            *ret = routes[i].src;
            return 0;
        }
        err = rtnl_addr_list(r, routes[i].ifindex, &addrs, &n_addrs, e);
        if (err == 0 && n_addrs > 0) {
            *ret = addrs[0].addr.addr;
            return 0;
        }
        free(TAKE(addrs));
    }
    return err < 0 ? err
                   : err_set(e, -ENOENT,
                             "nodeIP: not set, and no link with a default route has an address");
}

/* ---- checks ---- */

static struct ip4_prefix network_of(struct ip4_prefix address)
{
    return (struct ip4_prefix){address.addr & prefix_mask(address.len), address.len};
}

static const char *link_name(struct rtnl *r, int ifindex, struct rtnl_link *l)
{
    return rtnl_link_get_index(r, ifindex, l, NULL) == 0 ? l->name : "an unknown link";
}

/* Names the cluster or service network that 'p' overlaps with; NULL: none. */
static const struct ip4_prefix *find_clash(const struct sdn_network *n, struct ip4_prefix p,
                                           const char **ret_what)
{
    for (size_t i = 0; i < n->n_cluster; i++) {
        if (prefix_overlaps(n->cluster[i], p)) {
            *ret_what = "cluster network";
            return &n->cluster[i];
        }
    }
    if (n->service.len && prefix_overlaps(n->service, p)) {
        *ret_what = "service network";
        return &n->service;
    }
    return NULL;
}

static int check_addresses(struct rtnl *r, const struct sdn_network *n, int tun, struct err *e)
{
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    size_t n_addrs;
    struct rtnl_link l;
    int err = rtnl_addr_list(r, 0, &addrs, &n_addrs, e);
    if (err < 0) {
        return err;
    }
    const struct rtnl_addr *own = NULL;
    for (size_t i = 0; i < n_addrs; i++) {
        if (addrs[i].ifindex == tun) {
            continue;
        }
        const char *what;
        const struct ip4_prefix *clash = find_clash(n, network_of(addrs[i].addr), &what);
        if (clash) {
            return err_set(e, -EADDRINUSE, "address clash: %s of link %s overlaps with the %s %s",
                           PREFIX_TEXT(addrs[i].addr), link_name(r, addrs[i].ifindex, &l), what,
                           PREFIX_TEXT(*clash));
        }
        own = addrs[i].addr.addr == n->host_ip ? &addrs[i] : own;
    }
    if (!own) {
        return err_set(e, -EADDRNOTAVAIL, "nodeIP: %s is not an address of this host",
                       IP4_TEXT(n->host_ip));
    }
    err = rtnl_link_get_index(r, own->ifindex, &l, e);
    uint32_t more = sdn_overhead(n->plugin);
    if (err == 0 && l.mtu < n->mtu + more) {
        err =
            err_set(e, -EMSGSIZE,
                    "networkConfig.mtu: pods with MTU %u need %u on link %s (%s), whose MTU is %u; "
                    "at most %u is possible",
                    n->mtu, n->mtu + more, l.name, IP4_TEXT(n->host_ip), l.mtu,
                    l.mtu > more ? l.mtu - more : 0);
    }
    return err;
}

/* A route into the cluster's ranges would take their traffic.  A wider one through a router is
 * fine: the cluster's routes are more specific, and the rest of the wider range stays reachable. */
static int check_routes(struct rtnl *r, const struct sdn_network *n, int tun, char warning[256],
                        struct err *e)
{
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    size_t n_routes;
    struct rtnl_link l;
    int err = rtnl_route_list(r, 0, &routes, &n_routes, e);
    for (size_t i = 0; err == 0 && i < n_routes; i++) {
        const struct rtnl_route *rt = &routes[i];
        const char *what;
        const struct ip4_prefix *clash = find_clash(n, rt->dst, &what);
        bool own = sdn_plugin_is_routed(n->plugin) && rt->gateway && clash &&
                   rt->dst.len >= clash->len; /* A route to another node's subnet. */
        if (rt->ifindex == tun || rt->dst.len == 0 || !clash || own) {
            continue;
        }
        if (rt->dst.len < clash->len && rt->gateway) {
            snprintf(warning, 256, "the route %s via %s holds the %s %s, which now goes to pods",
                     PREFIX_TEXT(rt->dst), IP4_TEXT(rt->gateway), what, PREFIX_TEXT(*clash));
            continue;
        }
        err =
            err_set(e, -EADDRINUSE, "address clash: the route %s dev %s overlaps with the %s %s",
                    PREFIX_TEXT(rt->dst), link_name(r, rt->ifindex, &l), what, PREFIX_TEXT(*clash));
    }
    return err;
}

bool host_udp_port_taken(const char *text, uint16_t port)
{
    /* A line is " 421: 00000000:12B5 00000000:0000 07 ...": slot, then address and port in
     * hexadecimal digits. */
    char want[8];
    snprintf(want, sizeof want, ":%04X ", port);
    for (const char *line = strchr(text, '\n'); line; line = strchr(line, '\n')) {
        line++;
        const char *local = strstr(line, ": ");
        if (local && local < strchrnul(line, '\n')) {
            local += strlen(": ");
            local += strspn(local, "0123456789ABCDEF");
            if (str_has_prefix(local, want)) {
                return true;
            }
        }
    }
    return false;
}

/* 'own' is the datapath's link, which may have the port; NULL: the link that Open vSwitch makes. */
static int check_vxlan_port(struct rtnl *r, uint16_t port, const char *own, struct err *e)
{
    CLEANUP_FREE struct rtnl_link *links = NULL;
    size_t n;
    int err = rtnl_link_list(r, &links, &n, e);
    if (err < 0) {
        return err;
    }
    char ovs_name[IF_NAMESIZE + 8]; /* The kernel's Open vSwitch owns this link and its socket. */
    snprintf(ovs_name, sizeof ovs_name, "vxlan_sys_%u", port);
    for (size_t i = 0; i < n; i++) {
        if (!streq(links[i].kind, "vxlan") || links[i].vxlan_port != port) {
            continue;
        }
        if (streq(links[i].name, own ? own : ovs_name)) {
            return 0;
        }
        return err_set(e, -EADDRINUSE, "VXLAN port %u is taken by the link %s", port,
                       links[i].name);
    }
    static const char *const files[] = {"/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        if (file_read(files[i], PROC_NET_MAX, &text, NULL) == 0 &&
            host_udp_port_taken(strbuf_cstr(&text), port)) {
            return err_set(e, -EADDRINUSE,
                           "VXLAN port %u is taken by a UDP socket of another program "
                           "(\"ss -ulpn sport = :%u\" names it)",
                           port, port);
        }
    }
    return 0;
}

int host_check(struct rtnl *r, const struct sdn_network *n, const char *own_vxlan,
               char ret_warning[256], struct err *e)
{
    struct rtnl_link tun;
    int ifindex = rtnl_link_get(r, sdn_gateway_link(n->plugin), &tun, NULL) == 0 ? tun.ifindex : -1;
    ret_warning[0] = '\0';
    int err = check_addresses(r, n, ifindex, e);
    if (err == 0) {
        err = check_routes(r, n, ifindex, ret_warning, e);
    }
    return err < 0 || sdn_plugin_is_routed(n->plugin)
               ? err
               : check_vxlan_port(r, n->vxlan_port, own_vxlan, e);
}

/* ---- keeping the gateway's link ---- */

/* 'optional': no error if the kernel does not have the setting. */
static int ensure_sysctl(const char *path, const char *value, bool optional, unsigned *changes,
                         struct err *e)
{
    CLEANUP_FREE char *file = xasprintf("/proc/sys/%s", path);
    CLEANUP_STRBUF struct strbuf now = STRBUF_INIT;
    int err = file_read(file, 4096, &now, e);
    if (err == -ENOENT && optional) {
        return 0;
    }
    if (err < 0) {
        return err;
    }
    size_t n = strcspn(strbuf_cstr(&now), "\n");
    if (n == strlen(value) && memcmp(now.data, value, n) == 0) {
        return 0;
    }
    *changes += 1;
    return sysctl_set(path, value, e);
}

static int ensure_link_sysctl(const char *family, const char *link, const char *name,
                              const char *value, bool optional, unsigned *changes, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("net/%s/conf/%s/%s", family, link, name);
    return ensure_sysctl(path, value, optional, changes, e);
}

int host_route_loopback(const struct sdn_network *n, unsigned *changes, struct err *e)
{
    return ensure_link_sysctl("ipv4", sdn_gateway_link(n->plugin), "route_localnet", "1", false,
                              changes, e);
}

static int ensure_sysctls(const char *link, unsigned *changes, struct err *e)
{
    static const struct {
        const char *family, *name, *value;
        bool optional;
    } wanted[] = {
        {"ipv4", "rp_filter", "0", false},
        /* Pods reach each other by br0; the host must not send them ICMP redirects. */
        {"ipv4", "send_redirects", "0", false},
        {"ipv4", "accept_redirects", "0", false},
        /* Pods may not choose routes through the host (RFC 791, source routes) or its
         * neighbours. */
        {"ipv4", "accept_source_route", "0", false},
        {"ipv4", "accept_local", "0", false},
        {"ipv4", "arp_accept", "0", false},
        {"ipv4", "drop_gratuitous_arp", "1", true},
        {"ipv4", "proxy_arp", "0", false},
        {"ipv4", "bc_forwarding", "0", true},
        /* The pod network has no IPv6.  If another program enables it, the settings above hold
         * until the next check. */
        {"ipv6", "disable_ipv6", "1", true},
        {"ipv6", "accept_ra", "0", true},
        {"ipv6", "accept_redirects", "0", true},
        {"ipv6", "accept_source_route", "0", true},
    };
    int err = ensure_sysctl("net/ipv4/ip_forward", "1", false, changes, e);
    for (size_t i = 0; err == 0 && i < ARRAY_SIZE(wanted); i++) {
        err = ensure_link_sysctl(wanted[i].family, link, wanted[i].name, wanted[i].value,
                                 wanted[i].optional, changes, e);
    }
    return err;
}

static int ensure_address(struct rtnl *r, const struct sdn_network *n, int tun, unsigned *changes,
                          struct err *e)
{
    struct ip4_prefix want = {sdn_gateway(n), n->local.len};
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    size_t n_addrs;
    bool there = false;
    int err = rtnl_addr_list(r, tun, &addrs, &n_addrs, e);
    for (size_t i = 0; err == 0 && i < n_addrs; i++) {
        if (prefix_equal(addrs[i].addr, want)) {
            there = true;
        } else {
            *changes += 1;
            err = rtnl_addr_del(r, tun, addrs[i].addr, e);
        }
    }
    if (err == 0 && !there) {
        *changes += 1;
        /* A routed network needs the kernel's route to the local pods, and no wider one. */
        err = rtnl_addr_add(r, tun, want, !sdn_plugin_is_routed(n->plugin), e);
    }
    return err;
}

/* The cluster's networks and the service network.  A packet of the host for a service leaves its
 * socket by tun0 and is translated; the kernel then routes it again, and its source is the
 * gateway's address. */
static int ensure_routes(struct rtnl *r, const struct sdn_network *n, int tun, unsigned *changes,
                         struct err *e)
{
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    size_t n_routes, n_wanted = 0;
    struct ip4_prefix wanted[SDN_MAX_CLUSTER_NETWORKS + 1];
    bool there[ARRAY_SIZE(wanted)] = {0};
    for (size_t i = 0; i < n->n_cluster; i++) {
        wanted[n_wanted++] = n->cluster[i];
    }
    if (n->service.len) {
        wanted[n_wanted++] = n->service;
    }
    int err = rtnl_route_list(r, tun, &routes, &n_routes, e);
    for (size_t i = 0; err == 0 && i < n_routes; i++) {
        size_t k = 0;
        while (k < n_wanted &&
               !(prefix_equal(wanted[k], routes[i].dst) && routes[i].gateway == 0)) {
            k++;
        }
        if (k < n_wanted) {
            there[k] = true;
        } else {
            *changes += 1;
            err = rtnl_route_del(r, &routes[i], e);
        }
    }
    for (size_t k = 0; err == 0 && k < n_wanted; k++) {
        if (!there[k]) {
            *changes += 1;
            err = rtnl_route_add(r, &(struct rtnl_route){.dst = wanted[k], .ifindex = tun}, e);
        }
    }
    return err;
}

int host_apply(const struct sdn_network *n, unsigned *ret_changes, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    const char *link = sdn_gateway_link(n->plugin);
    struct rtnl_link tun;
    unsigned changes = 0;
    int err = rtnl_open(&r, e);
    if (err == 0) {
        err = rtnl_link_get(r, link, &tun, e);
    }
    if (err == 0) {
        err = ensure_sysctls(link, &changes, e);
    }
    if (err == 0 && !(tun.flags & IFF_UP)) {
        struct rtnl_link_set up = RTNL_LINK_SET_INIT(link);
        up.up = 1;
        changes++;
        err = rtnl_link_set(r, &up, e);
    }
    if (err == 0) {
        err = ensure_address(r, n, tun.ifindex, &changes, e);
    }
    if (err == 0 && !sdn_plugin_is_routed(n->plugin)) {
        err = ensure_routes(r, n, tun.ifindex, &changes, e);
    }
    *ret_changes = changes;
    return err;
}
