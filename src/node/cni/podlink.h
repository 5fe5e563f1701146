/* SPDX-License-Identifier: Apache-2.0 */
/* The link of a pod, in the pod with its final name, address and routes: a macvlan on the other end of a port of the switch,
 * where the datapath has such (datapath_end), else a veth pair, whose end in the host is wired to the port
 * (datapath_wire).
 *
 * Calls block while the kernel works and are made on worker threads; they share nothing.  The thread's own
 * network namespace must be the host's. */
#pragma once

#include "datapath/datapath.h"

#include <net/if.h>

struct podlink {
    int host_ns_fd;    /* Borrowed; -1: not open. */
    int netns_fd;      /* Of the pod; borrowed; -1: not known ... */
    const char *netns; /* ... but the file of this name may be it; or NULL. */
    char host_if[IF_NAMESIZE];
    const char *known; /* Of podlink_delete_stray: the host_if of all pods, each between blanks. */
    char ifname[IF_NAMESIZE];
    char port[IF_NAMESIZE];    /* Of the switch. */
    struct datapath *datapath; /* Borrowed. */
    struct mac host_mac, mac;
    struct ip4_prefix address; /* "10.128.0.2/23" */
    uint32_t gateway;
    uint32_t mtu;
    bool userspace_switch; /* It needs whole checksums. */
    struct cni_bandwidth limits;
};

/* The name of the host's end for a container's interface: "veth" and 8 hexadecimal digits.  'attempt' 0, 1, ...
 * gives another name each. */
void podlink_name(const char *container_id, const char *ifname, unsigned attempt,
                  char ret[IF_NAMESIZE]);
/* A MAC for the host's end, which no pod has. */
struct mac podlink_host_mac(uint32_t pod_ip);

/* Makes the link, configures the pod's side (loopback and interface up, address, default route), wires the host's
 * end of a pair, and brings it up.  A veth of the name that nothing uses, left by an earlier attempt, is replaced; -EEXIST:
 * the name is somebody else's; -EADDRINUSE: a link that nobody knows is on the port, which is made anew, so another port
 * will do; -EBUSY: the pod has an interface 'ifname'.  After another failure the pair may be there. */
int podlink_create(const struct podlink *p, struct err *e);
/* Puts the limits into effect on a link that was made. */
int podlink_limit(const struct podlink *p, struct err *e);
/* Takes them off the switch's port; off the link they go with it. */
int podlink_unlimit(const struct podlink *p, struct err *e);
/* Whether all is as podlink_create leaves it; the error names what is not. */
int podlink_check(const struct podlink *p, struct err *e);
/* Removes the link; 0 also when it is absent. */
int podlink_delete(const struct podlink *p, struct err *e);
/* As podlink_delete, but only a veth pair that looks like an abandoned one of ours. */
int podlink_delete_abandoned(const char *host_if, struct err *e);
/* Removes an interface 'ifname' from the pod that is a macvlan on an end of ours, unless that is in 'known'; 1: there was
 * one. */
int podlink_delete_stray(const struct podlink *p, struct err *e);
