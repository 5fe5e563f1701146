/* SPDX-License-Identifier: Apache-2.0 */
/* Host ports of the pods of this node: who may have one, and from when on it leads to the pod.
 *
 * A host port never takes what the host has: ports of Tenet's own parts are refused, and each port is held by a socket of
 * this process (net/loop/hold.h) while its pod lives.  Where that fails because a process of the host listens, an ADD is
 * refused; the port of a pod that is there already, as after a restart, is closed, told of, and tried again.  Ports of
 * containers that are no pods, which podman holds itself after their ADD, are looked at then and not held.
 *
 * Pods reach host ports by their own node's datapath, which translates where the sender is still known.  The other nodes must
 * know the port for that: it is published (an annotation of the Node, which the master copies to the HostSubnet), and
 * connections from outside are let in only when that is done, because pods of other nodes would be among
 * them, looking like their node.  On the loop's thread. */
#pragma once

#include "datapath/datapath.h"
#include "net/loop/loop.h"
#include "node/host/nat.h"
#include "sdn/host_ports.h"

struct host_ports_ops {
    /* All ports that lead to pods from now on, from outside and from the host's processes ('ports' is the callee's); calls 'fn'
     * (unless NULL) when that is so, or with what went wrong. */
    void (*open)(void *ctx, struct nat_port *ports, size_t n, datapath_done_fn *fn, void *fn_ctx);
    /* What other nodes are to know; NULL: there are none. */
    void (*publish)(void *ctx, const char *text);
    /* host_ports_get is another. */
    void (*changed)(void *ctx);
    /* What of Tenet has the port; NULL: nothing. */
    const char *(*own_port)(void *ctx, const struct cni_host_port *p);
    void (*trouble)(void *ctx, const char *project, const char *pod, const char *reason,
                    const char *text);
};

struct host_ports;
struct host_ports *host_ports_new(struct loop *l, const struct host_ports_ops *ops, void *ctx);
struct host_ports *host_ports_free(struct host_ports *h);

/* Holds the ports for a pod that is about to have them.  -EADDRINUSE: one cannot be had; the error says which, why, and what to
 * do, and none is held.  Must be followed by host_ports_settled when the pod has them, or will not. */
int host_ports_reserve(struct host_ports *h, const struct cni_runtime *r, struct err *e);
void host_ports_settled(struct host_ports *h, const struct cni_runtime *r);
/* The pods of 'dp' are others, or (NULL: as before) it is time to try again.  'fn' (unless NULL) is called when the host has
 * followed.  'adding': after other nodes know them, or two seconds. */
void host_ports_update(struct host_ports *h, struct datapath *dp, bool adding, datapath_done_fn *fn,
                       void *fn_ctx);
/* The master has published these ('list' is taken over). */
void host_ports_published(struct host_ports *h, struct sdn_host_port *list, size_t n);
/* Those that lead to pods of this node, for its own pods; sorted, and valid until the next change. */
size_t host_ports_get(const struct host_ports *h, const struct sdn_host_port **ret);

struct host_ports_stats {
    size_t ports, closed; /* Of pods; closed: of those, somebody else has them. */
    size_t unpublished;   /* Not let in from outside, as the other nodes do not know them. */
};
void host_ports_get_stats(const struct host_ports *h, struct host_ports_stats *ret);
