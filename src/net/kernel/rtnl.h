/* SPDX-License-Identifier: Apache-2.0 */
/* rtnetlink requests (rtnetlink(7)) through libmnl: links, addresses, routes, neighbours.
 *
 * Calls are synchronous: the kernel answers at once. A 'struct rtnl' is one socket in one
 * network namespace (that of the thread that opened it, which it keeps after the thread moved
 * on); one thread uses it at a time. Errors carry the kernel's extended ack. "add" functions are
 * idempotent: adding an equal object is success, and so is "del" of an absent one. */
#pragma once

#include "base/err.h"
#include "base/ip.h"

#include <net/if.h>

struct rtnl;
int rtnl_open(struct rtnl **ret, struct err *e);               /* In the current namespace. */
int rtnl_open_at(int ns_fd, struct rtnl **ret, struct err *e); /* In 'ns_fd'. */
int rtnl_open_from(int home, int ns_fd, struct rtnl **ret, struct err *e); /* netns_enter_from */
struct rtnl *rtnl_close(struct rtnl *r);
DEFINE_CLEANUP(struct rtnl *, rtnl_close)

struct rtnl_link {
    int ifindex;
    char name[IF_NAMESIZE];
    char kind[16]; /* "veth", "vxlan", "bridge", "tun", "" ... */
    struct mac mac;
    uint32_t mtu;
    unsigned type;       /* ARPHRD_ETHER ... */
    unsigned flags;      /* IFF_UP ... */
    int master;          /* ifindex or 0 */
    int peer;            /* IFLA_LINK: peer of a veth (in its own namespace); 0: not reported. */
    uint16_t vxlan_port; /* Kind vxlan: UDP port, host byte order. */
};
/* -ENODEV: no such link. */
int rtnl_link_get(struct rtnl *r, const char *name, struct rtnl_link *ret, struct err *e);
int rtnl_link_get_index(struct rtnl *r, int ifindex, struct rtnl_link *ret, struct err *e);
/* All links; '*ret' is an owned array. */
int rtnl_link_list(struct rtnl *r, struct rtnl_link **ret, size_t *ret_n, struct err *e);

struct rtnl_veth {
    const char *name; /* This end. */
    const char *peer_name;
    int peer_ns_fd;                   /* Namespace of the peer; -1: this one. */
    uint32_t mtu;                     /* MTU of both ends; 0: default. */
    const struct mac *mac, *peer_mac; /* NULL: kernel's choice. */
    bool up;                          /* Bring this end up. */
};
int rtnl_veth_add(struct rtnl *r, const struct rtnl_veth *v,
                  struct err *e); /* -EEXIST is an error here. */
/* The same, and '*ret' is this end, read from the kernel at once. */
int rtnl_veth_add_get(struct rtnl *r, const struct rtnl_veth *v, struct rtnl_link *ret,
                      struct err *e);
/* A link on top of 'lower' that gets all of its frames ("macvlan mode passthru"); the kernel
 * lets a link have one of them, and no other link on top beside it: then -EINVAL or -EBUSY.
 * -EOPNOTSUPP: the kernel has none. When it is removed, the kernel restores the former MAC of
 * 'lower'. */
struct rtnl_macvlan {
    const char *name;
    int lower; /* ifindex in the namespace of 'r' */
    int ns_fd; /* Namespace in which it is made. */
    uint32_t mtu;
};
int rtnl_macvlan_add(struct rtnl *r, const struct rtnl_macvlan *m, struct err *e);
/* Whether the kernel has this kind of link. */
bool rtnl_has_macvlan(struct rtnl *r);
int rtnl_bridge_add(struct rtnl *r, const char *name, struct err *e);
/* Lets frames leave by the bridge's port 'ifindex' by which they came (bridge(8), hairpin). */
int rtnl_bridge_set_hairpin(struct rtnl *r, int ifindex, struct err *e);
/* A VXLAN device whose tunnel ids and ends come from each packet's metadata ("external"); one
 * per UDP port. -EEXIST is an error here. */
struct rtnl_vxlan {
    const char *name;
    struct mac mac;
    uint32_t mtu;
    uint16_t port; /* Host byte order. */
};
int rtnl_vxlan_add(struct rtnl *r, const struct rtnl_vxlan *v, struct err *e);
int rtnl_link_del(struct rtnl *r, const char *name, struct err *e);

struct rtnl_link_set {
    const char *name; /* Name of the link; NULL: use 'ifindex'. */
    int ifindex;
    const char *new_name; /* NULL: unchanged. */
    const struct mac *mac;
    uint32_t mtu; /* 0: unchanged */
    int master;   /* ifindex; 0: unchanged; -1: none */
    int ns_fd;    /* Move there; -1 (RTNL_LINK_SET_INIT): stay */
    int up;       /* 1 up, 0 down, -1 unchanged */
    bool promisc; /* Accepts frames to any address; false: unchanged. */
};
#define RTNL_LINK_SET_INIT(n) ((struct rtnl_link_set){.name = (n), .ns_fd = -1, .up = -1})
int rtnl_link_set(struct rtnl *r, const struct rtnl_link_set *s, struct err *e);

/* 'addr' is the address with its prefix length ("10.128.0.1/23"). 'noprefixroute': the kernel
 * adds no route for the prefix. */
int rtnl_addr_add(struct rtnl *r, int ifindex, struct ip4_prefix addr, bool noprefixroute,
                  struct err *e);
int rtnl_addr_del(struct rtnl *r, int ifindex, struct ip4_prefix addr, struct err *e);
struct rtnl_addr {
    int ifindex;
    struct ip4_prefix addr;
};
/* IPv4 addresses of 'ifindex' (0: of all links). */
int rtnl_addr_list(struct rtnl *r, int ifindex, struct rtnl_addr **ret, size_t *ret_n,
                   struct err *e);

struct rtnl_route {
    struct ip4_prefix dst; /* len 0: default */
    uint32_t gateway;      /* 0: on-link (scope link) */
    int ifindex;
    uint32_t src; /* Preferred source; 0: none */
    uint32_t mtu; /* 0: none */
    /* RTPROT_BOOT (ip-route(8) shows no protocol) and others; 0: RTPROT_STATIC.  Input only. */
    uint8_t protocol;
};
int rtnl_route_add(struct rtnl *r, const struct rtnl_route *rt, struct err *e); /* Replaces. */
int rtnl_route_del(struct rtnl *r, const struct rtnl_route *rt, struct err *e);
/* Main-table IPv4 routes of 'ifindex' (0: all). */
int rtnl_route_list(struct rtnl *r, int ifindex, struct rtnl_route **ret, size_t *ret_n,
                    struct err *e);
/* The route to 'dst': next hop ('gateway' 0 = on-link), link and source. */
int rtnl_route_get(struct rtnl *r, uint32_t dst, struct rtnl_route *ret, struct err *e);
/* A link that is to be used by the only host behind it: loopback up, the link's MAC (NULL:
 * stays) and the link up, address, default route; all in one message to the kernel. */
struct rtnl_endpoint {
    int ifindex;
    const struct mac *mac;
    struct ip4_prefix address;
    uint32_t gateway;
};
int rtnl_endpoint_set(struct rtnl *r, const struct rtnl_endpoint *p, struct err *e);
/* Makes the kernel resolve 'addr' on 'ifindex' now (NTF_USE), without sending a packet of ours. */
int rtnl_neigh_probe(struct rtnl *r, int ifindex, uint32_t addr, struct err *e);
int rtnl_neigh_add(struct rtnl *r, int ifindex, uint32_t addr, struct mac mac,
                   struct err *e); /* Permanent. */

struct rtnl_neigh {
    int ifindex;
    uint32_t addr;
    struct mac mac;
};
/* The IPv4 neighbours whose address is resolved, of all links. */
int rtnl_neigh_list(struct rtnl *r, struct rtnl_neigh **ret, size_t *ret_n, struct err *e);

/* Turns transmit checksum offload (and with it TSO) of a link on or off: ethtool ioctl
 * ETHTOOL_STXCSUM. Works in the current namespace of the thread. */
int ethtool_tx_checksum(const char *ifname, bool on, struct err *e);
