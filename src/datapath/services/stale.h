/* SPDX-License-Identifier: Apache-2.0 */
/* What leads where no service leads any more: UDP "connections" of the host, and clients of session affinity.
 *
 * Connection tracking keeps on sending a client's datagrams to where the first one went: to an endpoint that is gone,
 * or, untranslated, nowhere, when the first one came before the service.  After a change such entries are forgotten,
 * so that the next datagram is judged anew; those of living endpoints stay.  Likewise the map "affinity" of the table.
 * The list is made on the loop's thread and read by a worker. */
#pragma once

#include "net/kernel/nft.h"
#include "sdn/frontend.h"

struct stale_frontend {
    struct sdn_frontend_key key;
    int proxy_port;                 /* As in services/table.h. */
    struct sdn_frontend *now, *old; /* NULL: none. */
    bool old_known;                 /* Else 'old' may have been anything. */
};
struct stale_list {
    struct stale_frontend *items;
    size_t n, cap;
};
/* 'now' and 'old' get references. */
void stale_add(struct stale_list *l, const struct sdn_frontend_key *key, int proxy_port,
               struct sdn_frontend *now, struct sdn_frontend *old, bool old_known);
void stale_clear(struct stale_list *l); /* Frees. */
/* Forgets the UDP connections that are stale, of the frontends in 'l' (which it sorts).  Blocks. */
int stale_forget(struct stale_list *l, size_t *ret_forgotten, struct err *e);
/* Forgets the clients' endpoints that are none any more, of the frontends in 'l' (which it sorts).  Blocks. */
int stale_forget_clients(struct stale_list *l, struct nft *n, struct err *e);
