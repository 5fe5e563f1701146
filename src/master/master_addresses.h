/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that nodes may not report as their own, from the master's
 * configuration and its host. */
#pragma once

#include "master/master_config.h"

#include <limits.h>

struct master_addresses {
    struct node_rules rules; /* Borrows 'master_nodes' of the configuration, or 'own_node'. */
    char host_name[HOST_NAME_MAX + 1];
    const char *own_node[2];
};
/* 'ret' points into itself and must not be copied.  'ip' is the address at which nodes
 * reach the master, 0: none.  'nets' are the networks of this host.  'open': the API
 * server trusts every client, including nodes. */
void master_addresses_fill(struct master_addresses *ret, const struct master_config *c,
                           const struct service_ranges *services, uint32_t ip, bool open,
                           const struct netconf_host_net *nets, size_t n);
