/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/devices.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <stdio.h>

/* The address of tun0's peer and of the VXLAN device: no pod has it, and vxlan drops inner
 * frames from its own address. */
static struct mac own_mac(uint32_t gateway)
{
    struct mac m = mac_from_ip4(gateway);
    m.b[0] = 0xee;
    return m;
}

/* ---- checks ---- */

static const struct rtnl_link *find(const struct rtnl_link *links, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (streq(links[i].name, name)) {
            return &links[i];
        }
    }
    return NULL;
}

static int check_name(const struct rtnl_link *links, size_t n, const char *name, const char *kind,
                      struct err *e)
{
    const struct rtnl_link *l = find(links, n, name);
    if (!l || streq(l->kind, kind)) {
        return 0;
    }
    return err_set(
        e, -EEXIST,
        "there is a link %s of kind %s, where the datapath ebpf needs its own; remove it "
        "(one of the datapath ovs goes with its bridge: ovs-vsctl del-br br0)",
        name, l->kind[0] ? l->kind : "unknown");
}

int devices_check(const struct sdn_network *n, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    size_t count = 0;
    int err = rtnl_open(&r, e);
    err = err < 0 ? err : rtnl_link_list(r, &links, &count, e);
    err = err < 0 ? err : check_name(links, count, DEVICE_TUN, "veth", e);
    err = err < 0 ? err : check_name(links, count, DEVICE_HOST, "veth", e);
    err = err < 0 ? err : check_name(links, count, DEVICE_VXLAN, "vxlan", e);
    for (size_t i = 0; err == 0 && i < count; i++) {
        if (streq(links[i].kind, "vxlan") && links[i].vxlan_port == n->vxlan_port &&
            !streq(links[i].name, DEVICE_VXLAN)) {
            err = err_set(e, -EADDRINUSE,
                          "VXLAN port %u is taken by the link %s: remove that, or give the cluster "
                          "another vxlanPort",
                          n->vxlan_port, links[i].name);
        }
    }
    return err;
}

/* ---- making ---- */

/* Changes the link 'l' where it differs; 'up' -1: its state stays. */
static int adjust(struct rtnl *r, const struct rtnl_link *l, struct mac mac, uint32_t mtu, int up,
                  struct err *e)
{
    struct rtnl_link_set s = RTNL_LINK_SET_INIT(l->name);
    s.mac = mac_equal(l->mac, mac) ? NULL : &mac;
    s.mtu = l->mtu == mtu ? 0 : mtu;
    s.up = up == 1 && (l->flags & IFF_UP) ? -1 : up;
    return s.mac || s.mtu || s.up != -1 ? rtnl_link_set(r, &s, e) : 0;
}

static int ensure_pair(struct rtnl *r, const struct sdn_network *n, struct devices *d,
                       struct err *e)
{
    struct mac tun_mac = mac_from_ip4(sdn_gateway(n)), host_mac = own_mac(sdn_gateway(n));
    struct rtnl_link tun, host;
    bool there = rtnl_link_get(r, DEVICE_TUN, &tun, NULL) == 0 &&
                 rtnl_link_get(r, DEVICE_HOST, &host, NULL) == 0 && tun.peer == host.ifindex;
    int err = 0;
    if (!there) {
        struct rtnl_veth v = {.name = DEVICE_TUN,
                              .peer_name = DEVICE_HOST,
                              .peer_ns_fd = -1,
                              .mtu = n->mtu,
                              .mac = &tun_mac,
                              .peer_mac = &host_mac};
        /* One end only, or one of two pairs: ours by name and kind (devices_check). */
        err = rtnl_link_del(r, DEVICE_TUN, e);
        err = err < 0 ? err : rtnl_link_del(r, DEVICE_HOST, e);
        err = err < 0 ? err : rtnl_veth_add(r, &v, e);
        err = err < 0 ? err : rtnl_link_get(r, DEVICE_TUN, &tun, e);
        err = err < 0 ? err : rtnl_link_get(r, DEVICE_HOST, &host, e);
    }
    err = err < 0 ? err : sysctl_silence(DEVICE_HOST, e);
    err = err < 0 ? err : adjust(r, &tun, tun_mac, n->mtu, -1, e);
    err = err < 0 ? err : adjust(r, &host, host_mac, n->mtu, 1, e);
    if (err == 0) {
        d->tun = tun.ifindex;
        d->host = host.ifindex;
    }
    return err;
}

static int ensure_vxlan(struct rtnl *r, const struct sdn_network *n, struct devices *d,
                        struct err *e)
{
    struct rtnl_vxlan v = {
        .name = DEVICE_VXLAN, .mac = own_mac(sdn_gateway(n)), .mtu = n->mtu, .port = n->vxlan_port};
    struct rtnl_link l;
    int err = 0;
    if (rtnl_link_get(r, DEVICE_VXLAN, &l, NULL) < 0 || l.vxlan_port != n->vxlan_port) {
        err = rtnl_link_del(r, DEVICE_VXLAN, e);
        err = err < 0 ? err : rtnl_vxlan_add(r, &v, e);
        err = err < 0 ? err : sysctl_silence(DEVICE_VXLAN, e);
        err = err < 0 ? err : rtnl_link_get(r, DEVICE_VXLAN, &l, e);
    }
    err = err < 0 ? err : adjust(r, &l, v.mac, v.mtu, 1, e);
    if (err == 0) {
        d->vxlan = l.ifindex;
    }
    return err;
}

int devices_ensure(const struct sdn_network *n, struct devices *ret, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct devices d = {0};
    int err = rtnl_open(&r, e);
    err = err < 0 ? err : ensure_pair(r, n, &d, e);
    err = err < 0 ? err : ensure_vxlan(r, n, &d, e);
    if (err == 0) {
        *ret = d;
    }
    return err;
}
