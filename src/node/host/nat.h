/* SPDX-License-Identifier: Apache-2.0 */
/* The node's nftables table "ip tenet": NAT from pods to the outside, and drops of packets that
 * must not pass the host.
 *
 * The agent owns the table and always replaces it as a whole, in one transaction of "nft -f -".
 * Detecting changes of other programs is cheap: the kernel counts the changes of all rules, and
 * only when that number has changed does the agent list the table and compare it with the listing
 * made right after its own last write. A 'struct nat' is used by one thread at a time; its
 * functions block (a worker thread calls them). */
#pragma once

#include "base/str.h"
#include "sdn/host_ports.h"

#define NAT_TUN "tun0"

/* A port of the host that leads to a pod, for clients outside and for the host's processes. */
struct nat_port {
    struct sdn_host_port is;
    bool not_at_loopback; /* The port at 127.0.0.0/8 stays the host's. */
};

/* Appends the nft commands that make the table what 'n' and the ports need.  Pure. */
void nat_write_rules(const struct sdn_network *n, const struct nat_port *ports, size_t n_ports,
                     struct strbuf *out);

/* Why the table drops packets; each has a counter of that name in it. */
enum nat_drop {
    NAT_DROP_TUNNEL,   /* A pod's packet to the VXLAN port of another host. */
    NAT_DROP_LOOPBACK, /* A pod's packet to 127.0.0.0/8. */
    NAT_DROP_SPOOFED,  /* The source is a cluster's address, but it did not come from br0. */
    NAT_DROP_INVALID,  /* A pod's packet that conntrack cannot place. */
    /* Another host's packet forwarded into br0, where it would count as the node's own. */
    NAT_DROP_INBOUND,
    NAT_DROP_BYPASS,      /* To a cluster's address by another link than tun0. */
    NAT_DROP_FORGED_ICMP, /* A pod's ICMP error about a connection that no pod has. */
    NAT_N_DROPS
};
const char *nat_drop_name(enum nat_drop d);
/* Totals of the table's counters, which go on when the table, and so its counters, are made
 * anew. */
struct nat_drops {
    uint64_t seen[NAT_N_DROPS], total[NAT_N_DROPS];
};
/* Adds the packets that the kernel has counted in this network namespace. Blocks for one answer of
 * the kernel; does nothing where there is no table. */
int nat_drops_update(struct nat_drops *d);

struct nat {
    char *applied; /* The commands last run; NULL: none yet. */
    char *listing; /* The listing of the table right after these commands. */
    uint32_t generation;
};
void nat_done(struct nat *nat);
/* Replaces the table if it differs from 'rules'; '*ret_changed' says whether it was replaced. */
int nat_sync(struct nat *nat, const char *rules, bool *ret_changed, struct err *e);
/* Checks that nft is installed and the kernel accepts 'rules'; changes nothing. */
int nat_check(const char *rules, struct err *e);
