/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of an egress firewall: what the pods of a project may reach outside the cluster.
 *
 * A firewall is an ordered list of rules; the first rule that has the destination decides, and a
 * destination that no rule has is allowed (EgressNetworkPolicy of network.openshift.io/v1).  A
 * datapath gets the same as a set of blocks, of which the longest prefix decides, so that it needs
 * no order.  Pure. */
#pragma once

#include "base/ip.h"

struct firewall_rule {
    bool allow;
    struct ip4_prefix *to; /* Destinations; a name that has no address has none. */
    size_t n_to;
};

struct firewall_block {
    struct ip4_prefix to;
    bool allow;
};

/* Index of the first rule that has 'ip'; 'n': none. */
size_t firewall_find(const struct firewall_rule *rules, size_t n, uint32_t ip);
/* Makes blocks of the rules: '*ret', which the caller owns, is sorted by address and length, each
 * prefix occurs once, and each block differs from the one around it.  Returns their number. */
size_t firewall_flatten(const struct firewall_rule *rules, size_t n, struct firewall_block **ret);
