/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about this host and its networks that the master's configuration is compared with: which addresses services may
 * get, and which no node may have.
 *
 * Both of the master's parts work by them, the API server and the controllers, each on its own host if they run apart. */
#pragma once

#include "master/master_addresses.h"
#include "sdn/service_ranges.h"

struct master_host {
    struct service_ranges services;
    struct master_addresses addresses;
    uint32_t ip; /* At which nodes reach the API; 0: only this host does. */
};
/* Reads the host's interfaces.  The networks that they are in must not be the cluster's or the services'.  'open': the API
 * server trusts every client.  'c' must outlive 'ret', which points into itself and must not be copied.  -EINVAL names
 * the key. */
int master_host_read(const struct master_config *c, bool open, struct master_host *ret,
                     struct err *e);
