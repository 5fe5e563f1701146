/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about this host and its networks with which the master's configuration is compared: the
 * addresses that services may get, and those that no node may have.
 *
 * Both parts of the master use them, the API server and the controllers,
 * each on its own host if they run apart. */
#pragma once

#include "master/master_addresses.h"
#include "sdn/service_ranges.h"

struct master_host {
    struct service_ranges services;
    struct master_addresses addresses;
    uint32_t ip; /* The address at which nodes reach the API; 0: only this host does. */
};
/* Reads the host's interfaces.  Their networks must not overlap the cluster's or the services'.
 * 'open': the API server trusts every client.  'c' must outlive 'ret', which points into itself and
 * must not be copied.  -EINVAL names the key. */
int master_host_read(const struct master_config *c, bool open, struct master_host *ret,
                     struct err *e);
