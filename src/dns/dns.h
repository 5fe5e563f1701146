/* SPDX-License-Identifier: Apache-2.0 */
/* Cluster DNS as a whole: the zone, updated by a services_watch, a server, and a forwarder.
 *
 * The same in an agent, a master and `tenet dns`.  While the API server is unavailable the last
 * known state is answered; the metrics show it.  All calls on the loop's thread. */
#pragma once

#include "base/prom.h"
#include "client/services.h"
#include "dns/forward.h"
#include "dns/resolv.h"
#include "dns/server.h"

struct dns;

struct dns_options {
    const char *domain; /* NULL: DNS_DEFAULT_DOMAIN. */
    const struct dns_servers
        *servers;            /* NULL: those in 'resolv_conf'; empty: nothing is forwarded. */
    const char *resolv_conf; /* NULL: DNS_RESOLV_CONF. */
    bool recurse_all;        /* See dns/respond.h. */
    unsigned threads;        /* 0: the default of dns_server_options. */
};

int dns_new(struct loop *l, const struct dns_options *o, struct dns **ret, struct err *e);
struct dns *dns_free(struct dns *d);
DEFINE_CLEANUP(struct dns *, dns_free)
struct dns_zone *dns_zone_of(struct dns *d); /* For setting pods and networks. */
/* Services come from 'w', which must live longer. */
void dns_follow(struct dns *d, struct services_watch *w);
/* Asks the other name servers for the IPv4 addresses of a name outside the cluster.  'fn' is called
 * once, never from within this call, unless an error is returned: those of dns_forwarder_ask,
 * -EINVAL: it is no name. */
int dns_ask(struct dns *d, const char *name, dns_forwarder_fn *fn, void *ctx);
void dns_forget(struct dns *d, void *ctx); /* 'fn' is not called for 'ctx' any more. */
/* The answer to the same question that is fresh now; the caller owns its message.  False: none. */
bool dns_known(struct dns *d, const char *name, struct dns_cached *ret);
/* Listens there, and no longer at an earlier address; does nothing when it listens there
 * already. After a failure it continues at the earlier address. The errors are those of
 * dns_server_new. */
int dns_listen(struct dns *d, uint32_t address, uint16_t port, struct err *e);
/* 0: does not listen. */
uint16_t dns_port(const struct dns *d);
void dns_write_metrics(struct dns *d, struct strbuf *out);
/* Their rows. */
#define DNS_METRIC_TABLES 3
extern const struct prom_table dns_metric_tables[DNS_METRIC_TABLES];
