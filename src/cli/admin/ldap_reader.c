/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/ldap_reader.h"

#include "base/mem.h"
#include "identity/ldap_conn.h"
#include "identity/peer_attempt.h"
#include "identity/secret.h"

#define NO_ANSWER_MS 60000

struct reader {
    struct loop *loop;
    const struct ldap_sync *sync;
    struct ldap_server server;
    struct ldap_conn *conn;
    struct ldap_entries *into;
    struct err failure;
    bool event; /* Something came since it was last looked at. */
    bool ready, answered;
    enum ldap_operation operation; /* Of the answer. */
    uint32_t result;
    char *text;
    struct ldap_value cookie;
};

static void ready(void *ctx)
{
    struct reader *r = ctx;
    r->event = r->ready = true;
}

static void message(void *ctx, struct ldap_message *m)
{
    struct reader *r = ctx;
    r->event = true;
    if (m->operation == LDAP_ENTRY && r->into) {
        struct ldap_entries *l = r->into;
        l->list = grow(l->list, &l->cap, l->n + 1, sizeof *l->list);
        l->list[l->n++] = m->entry;
        m->entry = (struct ldap_entry){0};
    } else if (m->operation != LDAP_REFERENCE) {
        r->answered = true;
        r->operation = m->operation;
        r->result = m->result;
        free(r->text);
        r->text = TAKE(m->text);
        free(r->cookie.data);
        r->cookie = m->cookie;
        m->cookie = (struct ldap_value){0};
    }
}

static void failed(void *ctx, const char *why)
{
    struct reader *r = ctx;
    r->event = true;
    err_set(&r->failure, -EIO, "%s", why);
}

static const struct ldap_conn_ops ops = {.ready = ready, .message = message, .failed = failed};

/* Waits until '*flag'. */
static int wait(struct reader *r, const bool *flag, struct err *e)
{
    while (!*flag && !r->failure.code) {
        r->event = false;
        if (loop_run_until(r->loop, &r->event, NO_ANSWER_MS) < 0) {
            return err_set(e, -ETIMEDOUT, "%s: no answer within %d s", r->sync->host_port,
                           NO_ANSWER_MS / 1000);
        }
    }
    return r->failure.code ? err_set(e, r->failure.code, "%s", r->failure.text) : 0;
}

/* Waits for the answer to a request. */
static int answer(struct reader *r, enum ldap_operation wanted, const char *what, struct err *e)
{
    char buf[LDAP_RESULT_TEXT_SIZE];
    int x = wait(r, &r->answered, e);
    r->answered = false;
    if (x < 0) {
        return x;
    }
    if (r->operation != wanted) {
        return err_set(e, -EIO, "%s: %s: unexpected answer", r->sync->host_port, what);
    }
    if (r->result == LDAP_SIZE_LIMIT) {
        return err_set(e, -EIO,
                       "%s: %s: the server gives at most %zu entries: set pageSize, or raise the "
                       "server's limit for bindDN",
                       r->sync->host_port, what, r->into ? r->into->n : 0);
    }
    return r->result == LDAP_SUCCESS
               ? 0
               : err_set(e, -EIO, "%s: %s: %s%s%.200s", r->sync->host_port, what,
                         ldap_result_text(r->result, buf), r->text && *r->text ? ": " : "",
                         r->text ? r->text : "");
}

static int bind_as(struct reader *r, const char *dn, const char *password, struct err *e)
{
    if (!*password) { /* Servers take such a bind for an anonymous one. */
        return err_set(e, -EINVAL, "bindPassword: is empty");
    }
    ldap_conn_bind(r->conn, dn, password);
    return answer(r, LDAP_BIND_RESPONSE, "bind as bindDN", e);
}

struct names {
    const char **list;
    size_t n, cap;
};

static void add_name(void *ctx, const char *name)
{
    struct names *a = ctx;
    a->list = grow(a->list, &a->cap, a->n + 2, sizeof *a->list);
    a->list[a->n++] = name;
    a->list[a->n] = NULL;
}

static int read_query(struct reader *r, bool of_groups, struct ldap_entries *into, struct err *e)
{
    const struct ldap_sync_query *q = of_groups ? &r->sync->groups : &r->sync->users;
    struct names names = {0};
    ldap_sync_each_attribute(r->sync, of_groups, add_name, &names);
    if (!names.n) {
        add_name(&names, "1.1"); /* No attribute (RFC 4511, 4.5.1.8). */
    }
    r->into = into;
    int x;
    do {
        struct ldap_search s = {.base = q->base,
                                .scope = q->scope,
                                .deref = q->deref,
                                .time_limit = q->timeout_s,
                                .filter = q->filter,
                                .attributes = names.list,
                                .page_size = q->page_size,
                                .cookie = r->cookie.data,
                                .cookie_size = r->cookie.size};
        x = ldap_conn_search(r->conn, &s, e);
        x = x < 0 ? x : answer(r, LDAP_SEARCH_DONE, of_groups ? "groupsQuery" : "usersQuery", e);
    } while (x == 0 && q->page_size && r->cookie.size);
    free(names.list);
    free(TAKE(r->cookie.data));
    r->cookie.size = 0;
    r->into = NULL;
    return x;
}

int ldap_reader_read(struct loop *l, const struct ldap_sync *s, struct ldap_entries *groups,
                     struct ldap_entries *users, struct err *e)
{
    struct reader r = {.loop = l, .sync = s};
    const char *dn = json_get_text(s->doc, "bindDN");
    char *password = NULL;
    int x = ldap_server_init(&r.server, &s->url, s->insecure, json_get_text(s->doc, "ca"), e);
    if (x == 0 && *dn && (x = secret_read(json_get(s->doc, "bindPassword"), &password, e)) < 0) {
        err_prefix(e, "bindPassword");
    }
    if (x == 0) {
        r.conn = ldap_conn_new(l, &r.server, &ops, &r);
        x = wait(&r, &r.ready, e);
    }
    if (x == 0 && *dn) {
        x = bind_as(&r, dn, password, e);
    }
    if (x == 0 && s->schema != LDAP_SYNC_AD) {
        x = read_query(&r, true, groups, e);
    }
    x = x < 0 ? x : read_query(&r, false, users, e);
    ldap_conn_free(r.conn);
    ldap_server_done(&r.server);
    secret_text_free(password);
    free(r.text);
    free(r.cookie.data);
    return x;
}
