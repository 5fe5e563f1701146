/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of services' addresses and ports, from the master's configuration. Pure. */
#pragma once

#include "base/err.h"
#include "base/ip.h"

#define SERVICE_MAX_EXTERNAL 64
#define SERVICE_MAX_PODS 16
#define SERVICE_NODE_PORT_FIRST 30000
#define SERVICE_NODE_PORT_LAST 32767

struct service_ranges {
    struct ip4_prefix services; /* clusterIP */
    uint16_t first_port, last_port;
    bool has_ingress; /* LoadBalancers get addresses, from 'ingress'. */
    struct ip4_prefix ingress;
    /* externalIPs must be in one of these ranges and in no rejected one; without ranges all are
     * refused. */
    struct service_external_rule {
        struct ip4_prefix net;
        bool rejected;
    } external[SERVICE_MAX_EXTERNAL];
    size_t n_external;
    /* Cluster networks: in these and in 'services' only privileged users may place endpoints. */
    struct ip4_prefix pods[SERVICE_MAX_PODS];
    size_t n_pods;
};

/* OpenShift's: ports 30000-32767, ingress 172.29.0.0/16, no external addresses. */
void service_ranges_defaults(struct service_ranges *r);
bool service_ranges_allow_external(const struct service_ranges *r, uint32_t ip);
/* Whether 'ip' belongs to a pod or service network. */
bool service_ranges_is_inside(const struct service_ranges *r, uint32_t ip);
/* "30000-32767", or "30000+100" (-EINVAL); "": the default. */
int service_ports_parse(const char *s, uint16_t *ret_first, uint16_t *ret_last, struct err *e);
/* "10.0.0.0/8", or "!10.9.0.0/16", which rejects; -EINVAL. */
int service_external_parse(const char *s, struct service_external_rule *ret, struct err *e);
/* The networks must not overlap; -EINVAL names both. */
int service_ranges_check(const struct service_ranges *r, struct err *e);
