/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's names: the DNS records of services, their endpoints and pods.
 *
 * The names are those of the Kubernetes DNS specification (1.1.0) and of OpenShift 3,
 * see docs/dns.md:
 *
 *     SERVICE.NAMESPACE.svc.DOMAIN, and the older SERVICE.NAMESPACE.DOMAIN address, SRV, CNAME
 *     any name below those of a service with an address                    the same address
 *     _PORT._PROTOCOL.SERVICE.NAMESPACE.svc.DOMAIN                         SRV
 *     ENDPOINT.SERVICE.NAMESPACE.svc.DOMAIN, of a headless service         one endpoint
 *     NAME.NAMESPACE.endpoints.DOMAIN                                      endpoints of any service
 *     ENDPOINT.NAME.NAMESPACE.endpoints.DOMAIN                             one of them
 *     A-B-C-D.NAMESPACE.pod.DOMAIN                                         A.B.C.D
 *     the reverse names of cluster addresses and of headless endpoints     PTR
 *     dns-version.DOMAIN                                                   TXT
 *
 * One thread changes a zone (the loop's); others may answer from it at the same time
 * (dns/table.h). Queries see a change as soon as the call returns. Answering allocates no
 * memory. */
#pragma once

#include "base/ip.h"
#include "dns/table.h"
#include "sdn/network.h"
#include "sdn/service.h"
#include "wire/dns.h"

#define DNS_DEFAULT_DOMAIN "cluster.local"
#define DNS_DOMAIN_MAX 62 /* Characters. */
#define DNS_TTL 30        /* TTL of existing records, as in OpenShift. */
/* Short, so that clients that asked too early soon find a new service. */
#define DNS_NEGATIVE_TTL 5

struct dns_zone;

/* -EINVAL: 'domain' is not a valid domain. */
int dns_zone_new(const char *domain, struct dns_zone **ret, struct err *e);
struct dns_zone *dns_zone_free(struct dns_zone *z);
DEFINE_CLEANUP(struct dns_zone *, dns_zone_free)
struct dns_epochs *dns_zone_epochs(struct dns_zone *z);

/* 's' is copied and replaces the former state. */
void dns_zone_set_service(struct dns_zone *z, const struct sdn_service *s);
void dns_zone_remove_service(struct dns_zone *z, const char *ns, const char *name);
size_t dns_zone_count(const struct dns_zone *z); /* Number of services. */
/* The pod at 'ip' belongs to the namespace 'ns' (NULL: there is none), and its resolver
 * searches, in this order, NS.svc.DOMAIN, svc.DOMAIN and DOMAIN: the answer to its first
 * question includes the later ones. */
void dns_zone_set_pod(struct dns_zone *z, uint32_t ip, const char *ns);
/* An isolated zone has for each client only the names of services, endpoints and pods in the
 * client's own namespace and in namespaces that its VNID reaches.  For a client that is no pod of
 * this zone it has names of global namespaces only. */
void dns_zone_set_isolated(struct dns_zone *z, bool isolated);
/* Sets the VNIDs of the namespace 'ns'.  NULL: it has none, and only its own pods get its names. */
void dns_zone_set_project(struct dns_zone *z, const char *ns, const struct sdn_vnids *vnids);
/* All VNIDs are known.  Until then an isolated zone answers SERVFAIL instead of denying a name. */
void dns_zone_set_projects_complete(struct dns_zone *z);
/* Networks of pods and services: only this server answers their reverse names, and only names of
 * pods in them are answered (with none: of any address). */
void dns_zone_set_networks(struct dns_zone *z, const struct ip4_prefix *nets, size_t n);
bool dns_zone_is_own(const struct dns_zone *z, uint32_t ip);
/* All services have been set once: until then an unknown name is a failure and not absent, so
 * that resolvers do not cache its absence. */
void dns_zone_set_complete(struct dns_zone *z);
/* The address of ns.dns.DOMAIN; 0: none. */
void dns_zone_set_server(struct dns_zone *z, uint32_t ip);

/* The outcome of a question. */
struct dns_lookup {
    unsigned rcode;
    bool authoritative;
    /* The records of 'target', which is outside the cluster, have to be added. */
    bool elsewhere;
    /* 'target' comes from the search list: if it does not exist, the name in question does not
     * exist (dns_zone_deny). */
    bool searched;
    struct dns_name target;
};

/* Answers the question of 'w' (class IN, not ANY), as far as it is about the cluster. 'client':
 * IPv4 address of the client, or 0; 'turn': a number that differs from call to call, by which
 * addresses rotate.  Runs between dns_epochs_enter and dns_epochs_leave, or on the thread that
 * changes the zone. */
void dns_zone_answer(const struct dns_zone *z, uint32_t client, unsigned turn, struct dns_writer *w,
                     struct dns_lookup *ret);
/* Prefetches the data for several questions, so that memory latency is paid once: first all are
 * announced (which returns a hash), then those hashes are fetched, then they are answered, as
 * above in one read section. */
uint32_t dns_zone_announce(const struct dns_zone *z, const struct dns_query *q);
void dns_zone_fetch(const struct dns_zone *z, uint32_t hash);
/* Puts the SOA of a negative answer into 'w', which has no records. */
void dns_zone_deny(const struct dns_zone *z, struct dns_writer *w);
