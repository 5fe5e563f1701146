/* SPDX-License-Identifier: Apache-2.0 */
/* The service proxy of the host: keeps the nftables table (services/table.h) what the cluster's services need.
 *
 * The agent's services_watch tells it (client/services.h).  Changes that come together go to the kernel as one transaction that has only what
 * changed, on a worker thread; what comes meanwhile goes with the next one.  At the start, after an error, and when
 * somebody else touched the table, what the kernel has is read and compared, and the table is made anew, in one
 * transaction, if it is not the same.  So an agent that starts again changes nothing.  Connections that are
 * translated already go on in any case; UDP "connections" to what is no endpoint any more are forgotten.
 * Nothing is touched before the services are known, nor when the agent ends.
 *
 * Connections to services that are idle are held by the userspace proxy (services/userspace.h), in both modes.
 *
 * When two services claim one address and port, the first by namespace and name has it.
 * On the loop's thread. */
#pragma once

#include "base/prom.h"
#include "datapath/services/table.h"
#include "datapath/services/userspace.h"
#include "net/loop/loop.h"

struct host_proxy_config {
    struct loop *loop;
    const char *node_name; /* Must stay. */
    enum services_mode mode;
    /* After each transaction or check: 0, or a negative errno and what went wrong, which is tried again.  'restored':
     * the table was not what it had been. */
    void (*told)(void *ctx, int error, const char *text, bool restored);
    /* Somebody connects to port 'port' of the service, which is idle; may be called for each packet. */
    void (*wanted)(void *ctx, const char *ns, const char *name, uint8_t protocol, uint16_t port);
    void *ctx;
};

struct host_proxy;
int host_proxy_new(const struct host_proxy_config *c, struct host_proxy **ret, struct err *e);
/* Must not be busy, nor listen any more. */
struct host_proxy *host_proxy_free(struct host_proxy *p);
/* As the functions of a services_listener: a service is new ('old' NULL), changed, or gone ('s' NULL); all that changed
 * together has been told; all there is has been told. */
void host_proxy_service_changed(struct host_proxy *p, const struct sdn_service *old,
                                const struct sdn_service *s);
void host_proxy_settled(struct host_proxy *p);
void host_proxy_synced(struct host_proxy *p);
/* The networks of the cluster; nothing is done before they are known. */
void host_proxy_set_network(struct host_proxy *p, const struct sdn_network *n);
/* Somebody may have touched the table: look soon. */
void host_proxy_changed(struct host_proxy *p);
/* The netlink port of its own changes. */
uint32_t host_proxy_port(const struct host_proxy *p);
/* Whether a worker thread is at it. */
bool host_proxy_busy(const struct host_proxy *p);
/* Whether all that is known is in the kernel. */
bool host_proxy_current(const struct host_proxy *p);

struct host_proxy_stats {
    size_t services, frontends, targets;
    size_t waiting;   /* Frontends that changed and are not in the kernel. */
    size_t conflicts; /* Claims of an address and port that another service has. */
    size_t node_ports;
    uint64_t syncs, rewrites, checks, failures, restored, forgotten;
    uint64_t generation; /* Changes of services that are in the kernel. */
    struct prom_histogram duration;
    const struct userspace_stats *userspace; /* NULL: not in that mode. */
};
const struct host_proxy_stats *host_proxy_get_stats(struct host_proxy *p);
