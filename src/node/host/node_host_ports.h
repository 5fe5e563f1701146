/* SPDX-License-Identifier: Apache-2.0 */
/* Host ports of the pods of this node: reserves, opens and publishes them.
 *
 * A host port never takes a port that the host uses.  Ports of Tenet's own parts are refused, and a
 * socket of this process (net/loop/hold.h) occupies each port while its pod lives.  If a process of
 * the host listens on the port, an ADD is refused; the port of a pod that is attached already, as
 * after a restart, is closed, reported and tried again.  Ports of containers that are no pods are
 * only checked: podman itself occupies them after their ADD.
 *
 * Pods reach host ports through their own node's datapath, which translates the address while the
 * sender is still known.  The other nodes need to know the port for that, so it is published (an
 * annotation of the Node, which the master copies to the HostSubnet).  Connections from outside are
 * accepted only after that: before, pods of other nodes would be among them with their node's
 * address.  On the loop's thread. */
#pragma once

#include "datapath/datapath.h"
#include "net/loop/loop.h"
#include "node/host/nat.h"
#include "sdn/host_ports.h"

struct host_ports_ops {
    /* Sets all ports that lead to pods, for clients outside and for the host's processes; takes
     * over 'ports'.  Calls 'fn' (unless NULL) when they are in effect, or with the error. */
    void (*open)(void *ctx, struct nat_port *ports, size_t n, datapath_done_fn *fn, void *fn_ctx);
    /* Publishes the ports to other nodes; NULL: there are none. */
    void (*publish)(void *ctx, const char *text);
    /* The result of host_ports_get has changed. */
    void (*changed)(void *ctx);
    /* Names the part of Tenet that uses the port; NULL: none. */
    const char *(*own_port)(void *ctx, const struct cni_host_port *p);
    void (*trouble)(void *ctx, const char *project, const char *pod, const char *reason,
                    const char *text);
};

struct host_ports;
struct host_ports *host_ports_new(struct loop *l, const struct host_ports_ops *ops, void *ctx);
struct host_ports *host_ports_free(struct host_ports *h);

/* Reserves the ports for a pod that is being attached.  -EADDRINUSE: one is taken; the error names
 * the port, the reason and the remedy, and no port is reserved.  The caller ends the reservation
 * with host_ports_settled when the pod has the ports, or will not get them. */
int host_ports_reserve(struct host_ports *h, const struct cni_runtime *r, struct err *e);
void host_ports_settled(struct host_ports *h, const struct cni_runtime *r);
/* Takes the ports from the pods of 'dp'; NULL: the pods are unchanged, and failed ports are tried
 * again.  Calls 'fn' (unless NULL) when the host's rules match; with 'adding', after other nodes
 * know the ports, or two seconds. */
void host_ports_update(struct host_ports *h, struct datapath *dp, bool adding, datapath_done_fn *fn,
                       void *fn_ctx);
/* The master has published these ('list' is taken over). */
void host_ports_published(struct host_ports *h, struct sdn_host_port *list, size_t n);
/* The host ports that lead to pods of this node, as this node's pods reach them; sorted, and valid
 * until the next change. */
size_t host_ports_get(const struct host_ports *h, const struct sdn_host_port **ret);

struct host_ports_stats {
    /* 'ports' counts the pods' ports; 'closed' those of them that another program uses. */
    size_t ports, closed;
    size_t unpublished; /* Closed to clients outside, because the other nodes do not know them. */
};
void host_ports_get_stats(const struct host_ports *h, struct host_ports_stats *ret);
