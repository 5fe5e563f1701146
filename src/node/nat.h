/* SPDX-License-Identifier: Apache-2.0 */
/* The node's nftables table "ip tenet": NAT of pods to the outside, and what must not pass the host.
 *
 * The table is ours alone and always replaced as a whole, in one transaction of "nft -f -".  Whether
 * somebody changed it is asked cheaply: the kernel counts the changes of all rules, and only when that
 * number moved is the table listed and compared with what it was when we had just written it.
 * A 'struct nat' is used by one thread at a time; its functions block (a worker thread calls them). */
#pragma once

#include "base/str.h"
#include "sdn/network.h"
#include "wire/cni_runtime.h"

#define NAT_TUN "tun0"

/* A port of the host that leads to a pod. */
struct nat_port {
    struct cni_host_port port;
    uint32_t pod_ip;
};

/* Appends the nft commands that make the table what 'n' and the ports need.  Pure. */
void nat_write_rules(const struct sdn_network *n, const struct nat_port *ports, size_t n_ports,
                     struct strbuf *out);

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
