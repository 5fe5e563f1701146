/* SPDX-License-Identifier: Apache-2.0 */
/* The node's nftables table "ip tenet": NAT of pods to the outside, and what must not pass the host.
 *
 * The table is ours alone and always replaced as a whole, in one transaction of "nft -f -".  Whether
 * somebody changed it is asked cheaply: the kernel counts the changes of all rules, and only when that
 * number moved is the table listed and compared with what it was when we had just written it.
 * A 'struct nat' is used by one thread at a time; its functions block (a worker thread calls them). */
#pragma once

#include "base/str.h"
#include "sdn/host_ports.h"

#define NAT_TUN "tun0"

/* A port of the host that leads to a pod, for who connects from outside and for the host's processes. */
struct nat_port {
    struct sdn_host_port is;
    bool not_at_loopback; /* The port at 127.0.0.0/8 stays the host's. */
};

/* Appends the nft commands that make the table what 'n' and the ports need.  Pure. */
void nat_write_rules(const struct sdn_network *n, const struct nat_port *ports, size_t n_ports,
                     struct strbuf *out);

/* Why the table drops packets; each has a counter of that name in it. */
enum nat_drop {
    NAT_DROP_TUNNEL,      /* A pod's packet to the VXLAN port of another host. */
    NAT_DROP_LOOPBACK,    /* A pod's packet to 127.0.0.0/8. */
    NAT_DROP_SPOOFED,     /* The source is a cluster's address, but it did not come from br0. */
    NAT_DROP_INVALID,     /* A pod's packet that conntrack cannot place. */
    NAT_DROP_INBOUND,     /* Forwarded into br0 for others, as if it were the node's own. */
    NAT_DROP_BYPASS,      /* To a cluster's address by another link than tun0. */
    NAT_DROP_FORGED_ICMP, /* A pod's ICMP error about a connection that no pod has. */
    NAT_N_DROPS
};
const char *nat_drop_name(enum nat_drop d);
/* The counters are made anew with the table; these go on. */
struct nat_drops {
    uint64_t seen[NAT_N_DROPS], total[NAT_N_DROPS];
};
/* Takes in what the kernel has counted in this network namespace.  Blocks for one answer of the kernel; does nothing
 * where there is no table. */
int nat_drops_update(struct nat_drops *d);

struct nat {
    char *applied; /* Commands that were last run; NULL: none yet. */
    char *listing; /* The table just after that. */
    uint32_t generation;
};
void nat_done(struct nat *nat);
/* Makes the table what 'rules' say, if it is not; '*ret_changed' says whether something was done. */
int nat_sync(struct nat *nat, const char *rules, bool *ret_changed, struct err *e);
/* Whether nft is there and the kernel takes 'rules'; changes nothing. */
int nat_check(const char *rules, struct err *e);
