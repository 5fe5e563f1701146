/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/db.h"

#include "base/log.h"
#include "base/mem.h"
#include "datapath/ovs/conn.h"

LOG_MODULE("ovsdb");

#define DATABASE "Open_vSwitch"
#define MONITOR "tenet"
#define MAX_IN (64u << 20)
#define MAX_OUT (64u << 20)

struct transaction {
    struct list link;
    uint64_t id;
    size_t n_ops;
    db_done_fn *done;
    void *ctx;
};

struct db {
    struct conn *conn;
    char *bridge;
    const struct db_ops *ops;
    void *ctx;
    struct ovsdb_framer framer;
    struct ovs_rows rows;
    /* Transactions in flight, oldest first: the server answers in this order. */
    struct list transactions;
    uint64_t next_id, monitor_id;
    bool synced;
};

static const struct conn_ops conn_callbacks;

struct db *db_new(struct loop *l, const char *path, const char *bridge, const struct db_ops *ops,
                  void *ctx)
{
    struct db *d = NEW(struct db);
    d->bridge = xstrdup(bridge);
    d->ops = ops;
    d->ctx = ctx;
    d->next_id = 1;
    list_init(&d->transactions);
    ovs_rows_init(&d->rows);
    d->conn = conn_new(l, path, MAX_IN, MAX_OUT, &conn_callbacks, d);
    conn_start(d->conn);
    return d;
}

static void transaction_end(struct transaction *t, int r, size_t failed,
                            const struct ovsdb_msg *reply, const struct err *e)
{
    list_remove(&t->link);
    t->done(t->ctx, r, failed, reply, e);
    free(t);
}

static void transactions_abort(struct db *d)
{
    struct err e = {0};
    err_set(&e, -ENOTCONN, "the connection to ovsdb-server broke");
    struct list *link;
    while ((link = list_pop_front(&d->transactions))) {
        struct transaction *t = CONTAINER_OF(link, struct transaction, link);
        transaction_end(t, -ENOTCONN, t->n_ops, NULL, &e);
    }
}

struct db *db_free(struct db *d)
{
    if (d) {
        d->synced = false;
        transactions_abort(d);
        conn_free(d->conn);
        ovs_rows_done(&d->rows);
        free(d->bridge);
        free(d);
    }
    return NULL;
}

bool db_is_synced(const struct db *d)
{
    return d->synced;
}

struct ovs_rows *db_rows(struct db *d)
{
    return &d->rows;
}

void db_transact(struct db *d, struct json *ops, db_done_fn *done, void *ctx)
{
    assert(d->synced);
    struct transaction *t = NEW(struct transaction);
    t->id = d->next_id++;
    t->n_ops = json_count(ops);
    t->done = done;
    t->ctx = ctx;
    list_push_back(&d->transactions, &t->link);
    ovsdb_put_transact(conn_out(d->conn), t->id, DATABASE, ops);
    json_free(ops);
}

/* ---- connection ---- */

static void on_opened(void *ctx)
{
    struct db *d = ctx;
    d->framer = (struct ovsdb_framer){0};
    d->monitor_id = d->next_id++;
    CLEANUP(json_free) struct json *tables = ovs_rows_monitor();
    ovsdb_put_monitor_cond(conn_out(d->conn), d->monitor_id, DATABASE, MONITOR, tables);
}

static void on_closed(void *ctx, const char *reason)
{
    struct db *d = ctx;
    d->synced = false;
    transactions_abort(d);
    d->ops->closed(d->ctx, reason);
}

static void on_probe(void *ctx)
{
    struct db *d = ctx;
    ovsdb_put_echo(conn_out(d->conn), d->next_id++);
}

static int apply(struct db *d, const struct json *updates, struct err *e)
{
    int r = ovsdb_walk_updates(updates, ovs_rows_apply, &d->rows, e);
    ovs_rows_link(&d->rows, d->bridge);
    d->ops->changed(d->ctx);
    return r;
}

static int on_reply(struct db *d, const struct ovsdb_msg *m, struct err *e)
{
    uint64_t id;
    if (!ovsdb_msg_id(m, &id)) {
        return err_set(e, -EBADMSG, "reply to a request that was not sent");
    }
    if (id == d->monitor_id && !d->synced) {
        int r = ovsdb_reply_error(m, e);
        if (r < 0) {
            return err_prefix(e, "monitor of " DATABASE " refused");
        }
        ovs_rows_clear(&d->rows);
        d->synced = true;
        return apply(d, m->result, e);
    }
    struct transaction *t;
    LIST_FOREACH (t, struct transaction, link, &d->transactions) {
        if (t->id == id) {
            struct err te = {0};
            size_t failed = t->n_ops;
            int r = ovsdb_transact_result(m, t->n_ops, &failed, &te);
            transaction_end(t, r, failed, m, &te);
            break;
        }
    }
    return 0; /* Otherwise it is the answer to a probe. */
}

static int on_message(struct db *d, const struct ovsdb_msg *m, struct err *e)
{
    if (m->kind == OVSDB_REPLY) {
        return on_reply(d, m, e);
    }
    if (m->kind == OVSDB_REQUEST) {
        if (streq(m->method, "echo")) {
            ovsdb_put_echo_reply(conn_out(d->conn), m);
        } else {
            ovsdb_put_unknown_method(conn_out(d->conn), m);
        }
        return 0;
    }
    const struct json *updates = ovsdb_update_of(m, MONITOR);
    if (!updates) {
        log_debug("notification ignored", "method=%s", m->method);
        return 0;
    }
    if (!d->synced) {
        return err_set(e, -EBADMSG, "update before the monitor was answered");
    }
    return apply(d, updates, e);
}

static int on_received(void *ctx, const char *data, size_t size, size_t *ret_used, struct err *e)
{
    struct db *d = ctx;
    size_t used = 0, n;
    while (used < size) {
        int r = ovsdb_frame(&d->framer, data + used, size - used, &n, e);
        if (r == -EAGAIN) {
            break;
        }
        struct ovsdb_msg m = {0};
        r = r < 0 ? r : ovsdb_msg_parse(data + used, n, &m, e);
        r = r < 0 ? r : on_message(d, &m, e);
        ovsdb_msg_done(&m);
        if (r < 0) {
            return r == -EBADMSG ? err_prefix(e, "ovsdb-server sent nonsense") : r;
        }
        used += n;
    }
    *ret_used = used;
    return 0;
}

static const struct conn_ops conn_callbacks = {
    .opened = on_opened, .received = on_received, .closed = on_closed, .probe = on_probe};
