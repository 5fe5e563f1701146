/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's link, complete inside the pod with its name, address and routes.  Where the datapath
 * offers it (datapath_end), the link is a macvlan on the peer device of a switch port.  Otherwise
 * it is a veth pair whose host end is wired to the port (datapath_wire).
 *
 * Calls block while the kernel works and are made on worker threads; they share nothing.  The
 * thread's own network namespace must be the host's. */
#pragma once

#include "datapath/datapath.h"

#include <net/if.h>

struct pod_link {
    int host_ns_fd;    /* Borrowed; -1: not open. */
    int netns_fd;      /* The pod's network namespace, borrowed; -1: not known. */
    const char *netns; /* While 'netns_fd' is -1: a file that may be the namespace; or NULL. */
    char host_if[IF_NAMESIZE];
    /* Input of pod_link_delete_stray: the host_if of all pods, each between blanks. */
    const char *known;
    char ifname[IF_NAMESIZE];
    char port[IF_NAMESIZE];    /* The switch's port. */
    struct datapath *datapath; /* Borrowed. */
    struct mac host_mac, mac;
    struct ip4_prefix address; /* "10.128.0.2/23" */
    uint32_t gateway;
    uint32_t mtu;
    bool userspace_switch; /* The switch runs in user space and needs complete checksums. */
    struct cni_bandwidth limits;
};

/* The name of the host's end for a container's interface: "veth" and 8 hexadecimal digits.  Each
 * 'attempt' (0, 1, 2 and so on) gives a different name. */
void pod_link_name(const char *container_id, const char *ifname, unsigned attempt,
                   char ret[IF_NAMESIZE]);
/* A MAC for the host's end, which no pod has. */
struct mac pod_link_host_mac(uint32_t pod_ip);

/* Makes the link, configures the pod's side (loopback and interface up, address, default route),
 * wires the host's end of a pair, and brings it up. An unused veth of this name, left by an earlier
 * attempt, is replaced.  -EEXIST: another program's link has the name.  -EADDRINUSE: an unknown
 * link is on the port; the datapath makes that port anew, so the caller tries another port.
 * -EBUSY: the pod has an interface 'ifname'.  After any other failure the pair may exist. */
int pod_link_create(const struct pod_link *p, struct err *e);
/* Puts the limits into effect on a link that was made. */
int pod_link_limit(const struct pod_link *p, struct err *e);
/* Removes the limits from the switch's port; those on the link end with the link. */
int pod_link_unlimit(const struct pod_link *p, struct err *e);
/* Checks that the link is as pod_link_create left it; the error names the difference. */
int pod_link_check(const struct pod_link *p, struct err *e);
/* Removes the link; 0 also when it is absent. */
int pod_link_delete(const struct pod_link *p, struct err *e);
/* Like pod_link_delete, but only for a veth pair that looks like one that an agent abandoned. */
int pod_link_delete_abandoned(const char *host_if, struct err *e);
/* Removes the pod's interface 'ifname' if it is a macvlan on a port's peer device that is not in
 * 'known'.  Returns 1 if it removed one. */
int pod_link_delete_stray(const struct pod_link *p, struct err *e);
