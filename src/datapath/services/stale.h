/* SPDX-License-Identifier: Apache-2.0 */
/* Removes stale entries: UDP "connections" of the host to removed endpoints, and clients of
 * session affinity with one.
 *
 * Connection tracking sends a client's datagrams to the destination of the first one: to a
 * removed endpoint, or untranslated when the first one came before the service. After a change
 * such entries are deleted, so that the next datagram is evaluated again; those of existing
 * endpoints stay.  Likewise the map "affinity" of the table. The list is made on the loop's
 * thread and read by a worker. */
#pragma once

#include "net/kernel/nft.h"
#include "sdn/frontend.h"

struct stale_frontend {
    struct sdn_frontend_key key;
    int proxy_port;                 /* Like in services/table.h. */
    struct sdn_frontend *now, *old; /* NULL: none. */
    bool old_known;                 /* Otherwise 'old' may have been anything. */
};
struct stale_list {
    struct stale_frontend *items;
    size_t n, cap;
};
/* Takes references to 'now' and 'old'. */
void stale_add(struct stale_list *l, const struct sdn_frontend_key *key, int proxy_port,
               struct sdn_frontend *now, struct sdn_frontend *old, bool old_known);
void stale_clear(struct stale_list *l); /* Frees. */
/* Deletes the stale UDP connections of the frontends in 'l' (which it sorts). Blocks. */
int stale_forget(struct stale_list *l, size_t *ret_forgotten, struct err *e);
/* Deletes the clients' stale endpoints of the frontends in 'l' (which it sorts). Blocks. */
int stale_forget_clients(struct stale_list *l, struct nft *n, struct err *e);
