/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/ldap_conn.h"

#include "base/ip.h"
#include "base/mem.h"
#include "identity/secret.h"
#include "net/loop/sock.h"

#include <stdio.h>
#include <sys/socket.h>

/* Bytes of all answers on one connection. */
#define MAX_RECEIVED (256u << 20)

enum state { LOOKUP, CONNECTING, STARTING_TLS, HANDSHAKE, OPEN };

struct ldap_conn {
    struct loop *loop;
    struct ldap_server *server;
    const struct ldap_conn_ops *ops;
    void *ctx;
    enum state state;
    struct loop_lookup *lookup;
    struct loop_fd *watch;
    struct loop_task start;
    struct err start_error;
    struct tls *tls;
    struct strbuf out, in;
    uint64_t received;
    int fd;
    int32_t id; /* Number of the last request. */
    bool *gone; /* Set when the connection is freed during a callback. */
};

/* ---- servers ---- */

static int make_context(struct ldap_server *s, struct err *e)
{
    struct stat st = {0};
    if (s->ca_file && stat(s->ca_file, &st) < 0) {
        return err_sys(e, -errno, "ca: %s", s->ca_file);
    }
    if (s->context && st.st_ino == s->ca_read.st_ino && st.st_size == s->ca_read.st_size &&
        st.st_mtim.tv_sec == s->ca_read.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == s->ca_read.st_mtim.tv_nsec) {
        return 0;
    }
    CLEANUP_FREE char *ca = NULL;
    struct tls_context *made = NULL;
    int r = config_file_text(s->ca_file, &ca, e);
    if (r == 0) {
        struct tls_client_config cfg = {.ca = ca, .no_alpn = true};
        r = tls_client_new(&cfg, &made, e);
    }
    if (r < 0) {
        return err_prefix(e, "ca"), r;
    }
    tls_context_free(s->context);
    s->context = made;
    s->ca_read = st;
    return 0;
}

int ldap_server_init(struct ldap_server *s, const struct ldap_url *url, bool insecure,
                     const char *ca_file, struct err *e)
{
    *s = (struct ldap_server){.host = xstrdup(url->host),
                              .port = url->port,
                              .tls = url->tls,
                              .insecure = insecure,
                              .ca_file = ca_file && *ca_file ? xstrdup(ca_file) : NULL};
    return s->tls || !insecure ? make_context(s, e) : 0;
}

void ldap_server_done(struct ldap_server *s)
{
    free(s->host);
    free(s->ca_file);
    tls_context_free(s->context);
    *s = (struct ldap_server){0};
}

/* ---- the socket ---- */

static void wipe(struct strbuf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->cap);
    }
    strbuf_reset(b);
}

static void fail(struct ldap_conn *c, const char *what, const char *why)
{
    struct err e = {0};
    err_set(&e, -EIO, "%s:%u: %s: %s", c->server->host, c->server->port, what, why);
    c->ops->failed(c->ctx, e.text);
}

static const char *state_text(enum state s)
{
    static const char *const texts[] = {[LOOKUP] = "address",
                                        [CONNECTING] = "connect",
                                        [STARTING_TLS] = "StartTLS",
                                        [HANDSHAKE] = "TLS",
                                        [OPEN] = "connection"};
    return texts[s];
}

static void watch(struct ldap_conn *c)
{
    unsigned wanted = LOOP_READ | (c->out.size ? LOOP_WRITE : 0);
    if (c->state == CONNECTING) {
        wanted = LOOP_WRITE;
    }
    loop_fd_set(c->watch, c->tls ? tls_watch(c->tls, wanted) : wanted);
}

static ssize_t send_some(struct ldap_conn *c, struct err *e)
{
    if (c->tls) {
        return tls_write(c->tls, c->out.data, c->out.size, e);
    }
    ssize_t n = send(c->fd, c->out.data, c->out.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : err_sys(e, -errno, "send");
}

/* Sends what can be sent; errors show when reading. */
static void flush(struct ldap_conn *c)
{
    while (c->out.size) {
        ssize_t n = send_some(c, NULL);
        if (n <= 0) {
            break;
        }
        explicit_bzero(c->out.data, (size_t) n);
        strbuf_consume(&c->out, (size_t) n);
    }
    if (!c->out.size) {
        wipe(&c->out); /* It had passwords. */
    }
    watch(c);
}

/* Passes the message; false: the connection is freed. */
static bool give(struct ldap_conn *c, struct ldap_message *m)
{
    bool gone = false;
    c->gone = &gone;
    c->ops->message(c->ctx, m);
    if (!gone) {
        c->gone = NULL;
    }
    return !gone;
}

static void become_ready(struct ldap_conn *c)
{
    c->state = OPEN;
    c->ops->ready(c->ctx);
}

static void handshake(struct ldap_conn *c)
{
    struct err e = {0};
    int r = tls_handshake(c->tls, &e);
    if (r == -EAGAIN) {
        watch(c);
    } else if (r < 0) {
        fail(c, "TLS", e.text);
    } else {
        watch(c);
        become_ready(c);
    }
}

static void begin_tls(struct ldap_conn *c)
{
    c->state = HANDSHAKE;
    c->tls = tls_connect(c->server->context, c->fd, c->server->host);
    handshake(c);
}

/* The answer to StartTLS; false: the connection may be freed. */
static bool tls_answer(struct ldap_conn *c, const struct ldap_message *m)
{
    char buf[LDAP_RESULT_TEXT_SIZE];
    if (m->operation != LDAP_EXTENDED_RESPONSE || m->result != LDAP_SUCCESS) {
        fail(c, "StartTLS",
             m->operation != LDAP_EXTENDED_RESPONSE ? "unexpected answer"
                                                    : ldap_result_text(m->result, buf));
    } else if (c->in.size) {
        fail(c, "StartTLS", "bytes after the answer that are not encrypted");
    } else {
        begin_tls(c);
    }
    return false;
}

/* Takes one message from the buffer; false: there is none, or the connection may be freed. */
static bool take_message(struct ldap_conn *c)
{
    CLEANUP(ldap_message_done) struct ldap_message m = {0};
    struct err e = {0};
    ssize_t n = ldap_message_size(strbuf_cstr(&c->in), c->in.size);
    if (n == 0) {
        return false;
    }
    if (n < 0 || ldap_parse(c->in.data, (size_t) n, &m, &e) < 0) {
        fail(c, state_text(c->state),
             n == -EMSGSIZE ? "the answer is too large" : "malformed LDAP");
        return false;
    }
    strbuf_consume(&c->in, (size_t) n);
    if (m.id == 0) {
        fail(c, "notice of the server", *m.text ? m.text : "it disconnects");
        return false;
    }
    if (m.id != c->id) {
        fail(c, state_text(c->state), "an answer to another request");
        return false;
    }
    return c->state == STARTING_TLS ? tls_answer(c, &m) : give(c, &m);
}

static ssize_t receive(struct ldap_conn *c, char *buf, size_t size, struct err *e)
{
    if (c->tls) {
        return tls_read(c->tls, buf, size, e);
    }
    ssize_t n = recv(c->fd, buf, size, MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : err_sys(e, -errno, "receive");
}

static void read_some(struct ldap_conn *c)
{
    char buf[TLS_RECORD_SIZE];
    struct err e = {0};
    ssize_t n = receive(c, buf, sizeof buf, &e);
    if (n == -EAGAIN) {
        watch(c);
        return;
    }
    c->received += n > 0 ? (uint64_t) n : 0;
    if (n <= 0 || c->received > MAX_RECEIVED) {
        fail(c, state_text(c->state),
             n == 0  ? "the server closed it"
             : n < 0 ? e.text
                     : "the server sends too much");
        return;
    }
    strbuf_add(&c->in, buf, (size_t) n);
    explicit_bzero(buf, (size_t) n);
    watch(c);
    while (take_message(c)) {
    }
}

static void connected(struct ldap_conn *c)
{
    int r = sock_connect_result(c->fd);
    if (r < 0) {
        fail(c, "connect", strerror(-r));
    } else if (c->server->tls) {
        begin_tls(c);
    } else if (!c->server->insecure) {
        c->state = STARTING_TLS;
        ldap_write_start_tls(&c->out, ++c->id);
        flush(c);
    } else {
        c->state = OPEN;
        watch(c);
        become_ready(c);
    }
}

static void socket_ready(void *ctx, unsigned events)
{
    struct ldap_conn *c = ctx;
    if (c->state == CONNECTING) {
        connected(c);
        return;
    }
    if (c->state == HANDSHAKE) {
        handshake(c);
        return;
    }
    unsigned what = c->tls ? tls_ready(c->tls, events) : events;
    if (what & LOOP_WRITE) {
        flush(c);
    }
    if (what & LOOP_READ) {
        read_some(c);
    }
}

static void looked_up(void *ctx, uint32_t ip, const char *why)
{
    struct ldap_conn *c = ctx;
    struct err e = {0};
    c->lookup = NULL;
    if (why) {
        fail(c, "address", why);
        return;
    }
    if (sock_connect_tcp(IP4_TEXT(ip), c->server->port, &c->fd, &e) < 0) {
        fail(c, "connect", e.text);
        return;
    }
    c->state = CONNECTING;
    c->watch = loop_fd_new(c->loop, c->fd, LOOP_WRITE, socket_ready, c);
}

static void start(void *ctx)
{
    struct ldap_conn *c = ctx;
    struct err e = {0};
    if ((c->server->tls || !c->server->insecure) && make_context(c->server, &e) < 0) {
        fail(c, "TLS", e.text);
        return;
    }
    c->lookup = loop_lookup_new(c->loop, c->server->host, looked_up, c);
}

struct ldap_conn *ldap_conn_new(struct loop *l, struct ldap_server *s,
                                const struct ldap_conn_ops *ops, void *ctx)
{
    struct ldap_conn *c = NEW(struct ldap_conn);
    *c = (struct ldap_conn){.loop = l,
                            .server = s,
                            .ops = ops,
                            .ctx = ctx,
                            .fd = -1,
                            .in = STRBUF_INIT,
                            .out = STRBUF_INIT};
    loop_task_init(&c->start, l, start, c);
    loop_task_queue(&c->start);
    return c;
}

struct ldap_conn *ldap_conn_free(struct ldap_conn *c)
{
    if (!c) {
        return NULL;
    }
    if (c->gone) {
        *c->gone = true;
    }
    if (c->state == OPEN && !c->out.size) {
        ldap_write_unbind(&c->out, ++c->id);
        (void) send_some(c, NULL);
    }
    loop_task_cancel(&c->start);
    loop_lookup_cancel(c->lookup);
    loop_fd_free(c->watch);
    if (c->tls) {
        tls_shutdown(c->tls);
    }
    tls_free(c->tls);
    fd_close(c->fd);
    wipe(&c->in);
    wipe(&c->out);
    strbuf_done(&c->in);
    strbuf_done(&c->out);
    free(c);
    return NULL;
}

/* ---- requests ---- */

void ldap_conn_bind(struct ldap_conn *c, const char *dn, const char *password)
{
    ldap_write_bind(&c->out, ++c->id, dn, password);
    flush(c);
}

int ldap_conn_search(struct ldap_conn *c, const struct ldap_search *s, struct err *e)
{
    int r = ldap_write_search(&c->out, c->id + 1, s, e);
    if (r == 0) {
        c->id++;
        flush(c);
    }
    return r;
}
