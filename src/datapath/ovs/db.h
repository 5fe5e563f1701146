/* SPDX-License-Identifier: Apache-2.0 */
/* The OVSDB session: connection, monitor with its replica, and transactions.
 *
 * After each (re)connection the monitored tables are fetched whole; from then on the replica
 * follows the server.  The server sends the update that a transaction causes before its reply, so
 * when a callback says "committed" the replica has it.  Callbacks come on the loop's thread;
 * db_free may not be called from them. */
#pragma once

#include "datapath/ovs/rows.h"
#include "net/loop/loop.h"

struct db;

struct db_ops {
    void (*changed)(void *ctx); /* The replica changed; also when it was fetched again. */
    /* Called once per lost connection or failed attempt. */
    void (*closed)(void *ctx, const char *reason);
};

struct db *db_new(struct loop *l, const char *path, const char *bridge, const struct db_ops *ops,
                  void *ctx);
struct db *db_free(struct db *d); /* Callbacks of transactions in flight are called (-ENOTCONN). */
/* Whether connected and the replica is that of the server. */
bool db_is_synced(const struct db *d);
/* The replica's rows, as last received, also while not synced. */
struct ovs_rows *db_rows(struct db *d);

/* 'failed' is the index of the operation that failed, or the number of operations.  When r < 0,
 * '*e' has the reason (see ovsdb_transact_result); -ENOTCONN: the connection broke, and the outcome
 * is unknown. 'reply' is valid during the call. */
typedef void db_done_fn(void *ctx, int r, size_t failed, const struct ovsdb_msg *reply,
                        const struct err *e);
/* Sends a transaction of 'ops' (taken over).  Only while synced. */
void db_transact(struct db *d, struct json *ops, db_done_fn *done, void *ctx);
