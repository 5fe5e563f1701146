/* SPDX-License-Identifier: Apache-2.0 */
/* The service proxy of the host: keeps the nftables table (services/table.h) in line with the
 * cluster's services.
 *
 * The agent's services_watch (client/services.h) reports changes. A worker thread applies
 * changes that arrive together as one transaction with only the difference; later ones go with
 * the next transaction. At the start, after an error, and when other software changed the table,
 * the worker reads and compares it, and replaces it in one transaction if it differs. So a
 * restarted agent changes nothing. Translated connections always continue; UDP "connections" to
 * removed endpoints are deleted. The table is not changed before the services are known, nor
 * when the agent ends.
 *
 * Connections to idle services wait in the userspace proxy (services/userspace.h), in both
 * modes.
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
    /* After each transaction or check: 0, or a negative errno and its reason; failures are
     * retried. 'restored': other software had changed the table. */
    void (*on_result)(void *ctx, int error, const char *text, bool restored);
    /* A client connects to port 'port' of the service, which is idle and needs pods (Event NeedPods);
     * may be called for each packet. */
    void (*need_pods)(void *ctx, const char *ns, const char *name, uint8_t protocol, uint16_t port);
    /* Whether services of project 'ns' may have clients at an endpoint outside the cluster: asked by
     * the userspace proxy, which hides from the datapath which pod connects.  NULL: always. */
    bool (*may_leave)(void *ctx, const char *ns, uint32_t ip);
    void *ctx;
};

struct host_proxy;
int host_proxy_new(const struct host_proxy_config *c, struct host_proxy **ret, struct err *e);
/* Must not be busy, and no listener any more. */
struct host_proxy *host_proxy_free(struct host_proxy *p);
/* Callbacks of a services_listener: a service is new ('old' NULL), changed, or removed ('s'
 * NULL); a group of changes is complete; the initial list is complete. */
void host_proxy_service_changed(struct host_proxy *p, const struct sdn_service *old,
                                const struct sdn_service *s);
void host_proxy_settled(struct host_proxy *p);
void host_proxy_synced(struct host_proxy *p);
/* The networks of the cluster; the table is not changed before they are known. */
void host_proxy_set_network(struct host_proxy *p, const struct sdn_network *n);
/* Other software may have changed the table: check it soon. */
void host_proxy_changed(struct host_proxy *p);
/* The netlink port of its own changes, to recognize them in events. */
uint32_t host_proxy_port(const struct host_proxy *p);
/* Whether a job is running on a worker thread. */
bool host_proxy_busy(const struct host_proxy *p);
/* Whether all changes are in the kernel. */
bool host_proxy_current(const struct host_proxy *p);

struct host_proxy_stats {
    size_t services, frontends, targets;
    size_t waiting;   /* Changed frontends that are not in the kernel yet. */
    size_t conflicts; /* Claims of an address and port that another service has. */
    size_t node_ports;
    uint64_t syncs, rewrites, checks, failures, restored, forgotten;
    uint64_t generation; /* Number of changes of services that are in the kernel. */
    struct prom_histogram duration;
    const struct userspace_stats *userspace; /* NULL: not in that mode. */
};
const struct host_proxy_stats *host_proxy_get_stats(struct host_proxy *p);
