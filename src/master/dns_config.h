/* SPDX-License-Identifier: Apache-2.0 */
/* The section "dnsConfig" of master-config.yaml, whose keys are OpenShift's where it has them.  Pure.
 *
 *     dnsConfig:
 *       bindAddress: 127.0.0.1:53       # or none; left out: the address of servingInfo, port 53
 *       bindNetwork: tcp4               # the only one: addresses are IPv4
 *       allowRecursiveQueries: false    # names that are not the cluster's for everybody, not only pods and this host
 *       domain: cluster.local
 *       isolateProjects: false          # under ovs-multitenant only names of global projects are answered here
 *       nameservers: []                 # asked for those; none given: those of /etc/resolv.conf */
#pragma once

#include "wire/json.h"

struct dns_config {
    char *bind_address; /* "none", "ADDRESS[:PORT]"; NULL: not given. */
    bool recursive, isolate;
    char *domain;      /* NULL: not given. */
    char *nameservers; /* With commas between; NULL: not given. */
};

void dns_config_done(struct dns_config *c);
/* -EINVAL names the key: "dnsConfig.bindAddress: ...".  Whether addresses are such is seen by who uses them. */
int dns_config_read(struct dns_config *c, const struct json *v, struct err *e);
