/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the master's configuration about services, which the rows
 * in master_options.c read.  Pure. */
#pragma once

#include "controllers/network/netconf.h"
#include "sdn/service_ranges.h"

struct service_config {
    struct service_ranges ranges; /* Without the networks, which are in struct netconf. */
    bool ingress_given;
    uint32_t master_ip; /* 0: not given. */
};

void service_config_init(struct service_config *c);
/* Store the values of rows; -EINVAL says why the value is refused. */
int service_config_set_external(struct service_config *c, const char *list, struct err *e);
int service_config_set_ports(struct service_config *c, const char *range, struct err *e);
int service_config_set_ingress(struct service_config *c, const char *cidr, struct err *e);

int service_config_set_master_ip(struct service_config *c, const char *ip, struct err *e);
/* The address at which pods and nodes reach this master, which listens on 'bind'
 * ("HOST:PORT"); 0: only this host can reach it. */
uint32_t service_config_master_ip(const struct service_config *c, const char *bind,
                                  const struct netconf_host_net *nets, size_t n);

/* All ranges.  The default range of ingress addresses is left out when it overlaps the
 * cluster's own networks or one of 'nets'. */
struct service_ranges service_config_ranges(const struct service_config *c,
                                            const struct netconf *network,
                                            const struct netconf_host_net *nets, size_t n);
/* Checks that the ranges overlap no other network; -EINVAL names the key
 * below networkConfig, and both networks. */
int service_config_check(const struct service_config *c, const struct netconf *network,
                         const struct netconf_host_net *nets, size_t n, struct err *e);
