/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's names: what is answered for services, their endpoints and pods.
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
 * One thread changes a zone (the loop's); others may answer from it at the same time (dns/table.h).
 * A change is seen by queries as soon as the call returns.  Nothing is allocated to answer. */
#pragma once

#include "base/ip.h"
#include "dns/table.h"
#include "sdn/network.h"
#include "sdn/service.h"
#include "wire/dns.h"

#define DNS_DEFAULT_DOMAIN "cluster.local"
#define DNS_DOMAIN_MAX 62 /* Characters. */
#define DNS_TTL 30        /* Of what there is, as in OpenShift. */
#define DNS_NEGATIVE_TTL \
    5 /* A service that was just made is found soon by those who asked too early. */

struct dns_zone;

/* -EINVAL: 'domain' is not one. */
int dns_zone_new(const char *domain, struct dns_zone **ret, struct err *e);
struct dns_zone *dns_zone_free(struct dns_zone *z);
DEFINE_CLEANUP(struct dns_zone *, dns_zone_free)
struct dns_epochs *dns_zone_epochs(struct dns_zone *z);

/* 's' is copied, in place of what was known of it. */
void dns_zone_set_service(struct dns_zone *z, const struct sdn_service *s);
void dns_zone_remove_service(struct dns_zone *z, const char *ns, const char *name);
size_t dns_zone_count(const struct dns_zone *z); /* Of services. */
/* The pod at 'ip' is of the namespace 'ns' (NULL: there is none), and its resolver
 * searches, in this order, NS.svc.DOMAIN, svc.DOMAIN and DOMAIN: its first question
 * finds what a later one would. */
void dns_zone_set_pod(struct dns_zone *z, uint32_t ip, const char *ns);
/* An isolated zone has for each client only the names of services, endpoints and pods in the
 * client's own namespace and in namespaces that its VNID reaches.  For a client that is no pod of
 * this zone it has names of global namespaces only. */
void dns_zone_set_isolated(struct dns_zone *z, bool isolated);
/* Sets the VNIDs of the namespace 'ns'.  NULL: it has none, and only its own pods get its names. */
void dns_zone_set_project(struct dns_zone *z, const char *ns, const struct sdn_vnids *vnids);
/* All VNIDs are known.  Until then an isolated zone answers SERVFAIL instead of denying a name. */
void dns_zone_set_projects_complete(struct dns_zone *z);
/* Networks of pods and services: their reverse names are ours alone, and only names of pods in them
 * are answered (with none: of any address). */
void dns_zone_set_networks(struct dns_zone *z, const struct ip4_prefix *nets, size_t n);
bool dns_zone_is_own(const struct dns_zone *z, uint32_t ip);
/* All services have been set once: until then what is not known is a failure and not absent,
 * so that nobody remembers it as that. */
void dns_zone_set_complete(struct dns_zone *z);
/* The address of ns.dns.DOMAIN; 0: none. */
void dns_zone_set_server(struct dns_zone *z, uint32_t ip);

/* What became of a question. */
struct dns_lookup {
    unsigned rcode;
    bool authoritative;
    /* Records of 'target' are to be added to what was written: they are not the cluster's. */
    bool elsewhere;
    /* 'target' was searched for: if there is none such, the name in question does not
     * exist (dns_zone_deny). */
    bool searched;
    struct dns_name target;
};

/* Answers the question of 'w' (class IN, not ANY), as far as it is the cluster's.
 * 'client': who asks, an IPv4 address, or 0; 'turn': any number that is another one the
 * next time, by which addresses take turns.  Runs between dns_epochs_enter and
 * dns_epochs_leave, or on the thread that changes the zone. */
void dns_zone_answer(const struct dns_zone *z, uint32_t client, unsigned turn, struct dns_writer *w,
                     struct dns_lookup *ret);
/* Of several questions, tells the processor what answering them will read, so that it waits for
 * memory once and not once for each: all are announced first (which returns a hash), then those
 * hashes are fetched, then they are answered, as above in one reading. */
uint32_t dns_zone_announce(const struct dns_zone *z, const struct dns_query *q);
void dns_zone_fetch(const struct dns_zone *z, uint32_t hash);
/* Puts the SOA of a negative answer into 'w', which has no records. */
void dns_zone_deny(const struct dns_zone *z, struct dns_writer *w);
