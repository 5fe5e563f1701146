/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/forward.h"

#include "base/log.h"
#include "base/map.h"
#include "base/random.h"
#include "base/str.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("dns");

#define QUERIES_MAX 1024 /* Maximum of names queried at a time. */
#define WAITERS_MAX 4096
#define CLIENT_WAITERS_MAX 256
#define WRONG_MAX 4         /* Wrong answers before TCP is used. */
#define STALE_AFTER_TRIES 2 /* 1.8 s, as in RFC 8767, 5. */
#define TCP_TIMEOUT_MS 2000
/* Consecutive failures after which a server is tried after the others. */
#define FAILURES_DOWN 3
#define DOWN_MS 10000      /* Time for which it is. */
#define LOOK_AGAIN_MS 1000 /* At resolv.conf. */

/* Together less than the five seconds that resolvers wait. */
static const unsigned timeouts_ms[] = {600, 1200, 1300, 1400};

struct server {
    union dns_endpoint at;
    unsigned failures;
    uint64_t down_until_ms;
};

struct client {
    struct hmap_node node;
    uint32_t ip;
    size_t waiting;
};

struct waiter {
    struct list node;
    struct client *client;
    dns_forwarder_fn *fn;
    void *ctx;
};

struct question {
    struct hmap_node node;
    struct dns_forwarder *owner;
    struct dns_key key;
    struct list waiters;
    struct loop_timer *timer;
    int fd;
    struct loop_fd *watch;
    uint16_t id;
    bool edns, tcp;
    unsigned tries, wrong;
    size_t server;
    uint32_t tried; /* Servers, as bits. */
    struct strbuf in;
    size_t sent;
};

struct dns_forwarder {
    struct loop *loop;
    struct dns_cache *cache;
    char *resolv_conf; /* NULL: the servers are given. */
    struct stat seen;
    uint64_t looked_ms;
    struct dns_servers own;
    struct server servers[DNS_SERVERS_MAX];
    size_t n_servers;
    struct hmap questions, clients;
    size_t n_waiters;
    struct dns_forwarder_counters counters;
};

static void try_next(struct question *q);
static void try_tcp(struct question *q);

/* ---- servers ---- */

static bool is_own(const struct dns_forwarder *f, const union dns_endpoint *a)
{
    for (size_t i = 0; i < f->own.n; i++) {
        if (dns_endpoint_equal(&f->own.at[i], a)) {
            return true;
        }
    }
    return false;
}

/* Keeps the state of servers that stay. */
static void set_servers(struct dns_forwarder *f, const struct dns_servers *s)
{
    struct server old[DNS_SERVERS_MAX];
    size_t n_old = f->n_servers;
    memcpy(old, f->servers, sizeof old);
    f->n_servers = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (is_own(f, &s->at[i])) {
            continue;
        }
        struct server *to = &f->servers[f->n_servers++];
        *to = (struct server){.at = s->at[i]};
        for (size_t k = 0; k < n_old; k++) {
            if (dns_endpoint_equal(&old[k].at, &s->at[i])) {
                *to = old[k];
            }
        }
    }
}

static void look_at_file(struct dns_forwarder *f)
{
    uint64_t now = loop_now_ms(f->loop);
    struct stat st = {0};
    struct dns_servers s = {0};
    struct err e = {0};
    if (!f->resolv_conf || (f->looked_ms && now - f->looked_ms < LOOK_AGAIN_MS)) {
        return;
    }
    bool first = f->looked_ms == 0;
    f->looked_ms = now;
    if (stat(f->resolv_conf, &st) < 0) {
        memset(&st, 0, sizeof st);
    }
    if (!first && st.st_ino == f->seen.st_ino && st.st_size == f->seen.st_size &&
        st.st_mtim.tv_sec == f->seen.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == f->seen.st_mtim.tv_nsec) {
        return;
    }
    f->seen = st;
    if (dns_servers_load(f->resolv_conf, &s, &e) < 0) {
        log_warn("name servers cannot be read; only names of the cluster are answered",
                 "error=\"%s\"", e.text);
    }
    set_servers(f, &s);
    log_info("name servers read", "file=%s servers=%zu", f->resolv_conf, f->n_servers);
}

static void server_failed(struct question *q)
{
    struct dns_forwarder *f = q->owner;
    struct server *s = q->server < f->n_servers ? &f->servers[q->server] : NULL;
    if (s && ++s->failures >= FAILURES_DOWN) {
        if (s->failures == FAILURES_DOWN) {
            char text[DNS_ENDPOINT_TEXT];
            dns_endpoint_format(&s->at, text);
            log_warn("a name server does not answer", "server=%s", text);
        }
        s->down_until_ms = loop_now_ms(f->loop) + DOWN_MS;
    }
}

/* The first server that is up and was not tried; else one that is down. */
static size_t choose_server(struct question *q)
{
    struct dns_forwarder *f = q->owner;
    uint64_t now = loop_now_ms(f->loop);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < f->n_servers; i++) {
            bool up = f->servers[i].down_until_ms <= now;
            if (!(q->tried & 1u << i) && (up || round % 2)) {
                return i;
            }
        }
        q->tried = round == 1 ? 0 : q->tried; /* Once more. */
    }
    return 0;
}

/* Every server was tried once, and none is up: waiting is useless. */
static bool is_hopeless(const struct question *q)
{
    const struct dns_forwarder *f = q->owner;
    uint64_t now = loop_now_ms(f->loop);
    for (size_t i = 0; i < f->n_servers; i++) {
        if (!(q->tried & 1u << i) || f->servers[i].down_until_ms <= now) {
            return false;
        }
    }
    return true;
}

/* ---- the end of a query ---- */

static void client_leave(struct dns_forwarder *f, struct client *c)
{
    f->n_waiters--;
    if (--c->waiting == 0) {
        hmap_remove(&f->clients, &c->node);
        free(c);
    }
}

static void tell(struct question *q, const struct dns_cached *answer)
{
    struct list *node;
    while ((node = list_pop_front(&q->waiters)) != NULL) {
        struct waiter *w = CONTAINER_OF(node, struct waiter, node);
        dns_forwarder_fn *fn = w->fn;
        void *ctx = w->ctx;
        client_leave(q->owner, w->client);
        free(w);
        fn(ctx, answer);
    }
}

static void hang_up(struct question *q)
{
    q->watch = loop_fd_free(q->watch);
    q->fd = fd_close(q->fd);
    strbuf_reset(&q->in);
}

static void question_free(struct question *q)
{
    hang_up(q);
    loop_timer_free(q->timer);
    strbuf_done(&q->in);
    hmap_remove(&q->owner->questions, &q->node);
    free(q);
}

static bool tell_stale(struct question *q)
{
    struct dns_cached c;
    if (list_is_empty(&q->waiters) ||
        !dns_cache_get(q->owner->cache, &q->key, loop_now_ms(q->owner->loop), true, &c)) {
        return false;
    }
    q->owner->counters.stale++;
    tell(q, &c);
    blob_unref(c.message);
    return true;
}

static void fail(struct question *q)
{
    static struct log_limit limit = {.burst = 5};
    if (!tell_stale(q)) {
        char name[DNS_NAME_TEXT];
        dns_name_format(&q->key.name, name);
        log_limited(&limit, LOG_WARN, "no name server answers", "name=%s", name);
        q->owner->counters.failed++;
        tell(q, NULL);
    }
    question_free(q);
}

/* ---- answers ---- */

/* The answer in our own encoding, without hop-by-hop fields. NULL: malformed. */
static struct blob *rewrite(const struct question *q, const struct dns_reader *from)
{
    uint8_t question[DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE];
    CLEANUP_FREE uint8_t *buf = xmalloc(DNS_MESSAGE_MAX);
    struct dns_query dq;
    struct dns_writer w;
    struct dns_reader r = *from;
    struct dns_record rec;
    size_t size = dns_query_write(0, &q->key.name, q->key.type, false, false, question);
    int more;
    if (dns_query_parse(question, size, &dq) < 0) {
        return NULL;
    }
    dns_writer_answer(&w, &dq, question + DNS_HEADER, buf, DNS_MESSAGE_MAX);
    while ((more = dns_reader_next(&r, &rec)) > 0) {
        w.section = rec.section;
        if (rec.type != DNS_OPT && rec.class == DNS_CLASS_IN &&
            dns_copy_record(&w, &r, &rec, rec.ttl) == -EBADMSG) {
            return NULL;
        }
    }
    if (more < 0) {
        return NULL;
    }
    return blob_new(buf, dns_writer_finish(&w, 0, r.flags & DNS_RCODE));
}

static void done(struct question *q, struct blob *message)
{
    struct dns_forwarder *f = q->owner;
    struct dns_cached c = {.message = message};
    struct dns_reader r;
    if (q->server < f->n_servers) {
        f->servers[q->server].failures = 0;
        f->servers[q->server].down_until_ms = 0;
    }
    f->counters.answered++;
    uint32_t ttl = dns_reader_init(&r, (const uint8_t *) message->data, message->size) < 0
                       ? 0
                       : dns_message_ttl(&r);
    if (ttl) {
        dns_cache_put(f->cache, &q->key, message, ttl, loop_now_ms(f->loop));
    }
    tell(q, &c);
    question_free(q);
}

static void wrong_answer(struct question *q)
{
    q->owner->counters.wrong++;
    q->wrong++;
    if (q->tcp) {
        try_next(q);
    } else if (q->wrong >= WRONG_MAX) {
        try_tcp(q);
    }
}

static void check_answer(struct question *q, const uint8_t *data, size_t size)
{
    struct dns_reader r;
    struct dns_name name;
    if (dns_reader_init(&r, data, size) < 0 || !(r.flags & DNS_QR) || r.id != q->id) {
        wrong_answer(q);
        return;
    }
    unsigned rcode = r.flags & DNS_RCODE;
    bool refused = rcode != DNS_NOERROR && rcode != DNS_NXDOMAIN;
    name = r.question;
    if (name.size || !refused) { /* A server that cannot read the question may leave it out. */
        if (!dns_name_equal(&name, &q->key.name) || r.type != q->key.type ||
            r.class != DNS_CLASS_IN) {
            wrong_answer(q);
            return;
        }
    }
    if (refused && q->edns && (rcode == DNS_FORMERR || rcode == DNS_NOTIMP)) {
        q->edns = false; /* A server without EDNS: repeat without it. */
        q->tried &= ~(1u << q->server);
        try_next(q);
        return;
    }
    if (refused) {
        try_next(q);
        return;
    }
    if (r.flags & DNS_TC && !q->tcp) {
        try_tcp(q);
        return;
    }
    struct blob *message = rewrite(q, &r);
    if (!message) {
        wrong_answer(q);
        return;
    }
    done(q, message);
    blob_unref(message);
}

/* ---- UDP ---- */

static size_t write_question(struct question *q, uint8_t *out)
{
    random_bytes(&q->id, sizeof q->id);
    return dns_query_write(q->id, &q->key.name, q->key.type, q->edns, q->key.dnssec_ok, out);
}

static void on_udp(void *ctx, unsigned events)
{
    (void) events;
    struct question *q = ctx;
    uint8_t buf[4096];
    ssize_t n = recv(q->fd, buf, sizeof buf, MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n < 0) {
        server_failed(q);
        try_next(q);
        return;
    }
    check_answer(q, buf, MIN((size_t) n, sizeof buf));
}

/* A socket to the next server; false: it cannot be reached. */
static bool open_socket(struct question *q, int type)
{
    const union dns_endpoint *to = &q->owner->servers[q->server].at;
    hang_up(q);
    q->fd = socket(to->any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return q->fd >= 0 &&
           (connect(q->fd, &to->any, dns_endpoint_size(to)) == 0 || errno == EINPROGRESS);
}

static bool send_udp(struct question *q)
{
    uint8_t msg[DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE];
    size_t size = write_question(q, msg);
    q->tcp = false;
    if (!open_socket(q, SOCK_DGRAM) || send(q->fd, msg, size, MSG_NOSIGNAL) < 0) {
        return false;
    }
    q->watch = loop_fd_new(q->owner->loop, q->fd, LOOP_READ, on_udp, q);
    return true;
}

static void try_next(struct question *q)
{
    struct dns_forwarder *f = q->owner;
    for (;;) {
        if (q->tries >= ARRAY_SIZE(timeouts_ms) || f->n_servers == 0 ||
            (q->tries && is_hopeless(q))) {
            fail(q);
            return;
        }
        unsigned timeout_ms = timeouts_ms[q->tries++];
        q->server = choose_server(q);
        q->tried |= 1u << q->server;
        f->counters.asked++;
        if (send_udp(q)) {
            loop_timer_arm(q->timer, timeout_ms);
            return;
        }
        server_failed(q);
    }
}

static void on_timeout(void *ctx)
{
    struct question *q = ctx;
    q->owner->counters.timeouts++;
    server_failed(q);
    if (q->tries >= STALE_AFTER_TRIES) {
        tell_stale(q);
    }
    try_next(q);
}

/* ---- TCP ---- */

static bool write_tcp(struct question *q)
{
    while (q->sent < q->in.size) {
        ssize_t n = send(q->fd, q->in.data + q->sent, q->in.size - q->sent, MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
        }
        q->sent += (size_t) n;
    }
    strbuf_reset(&q->in);
    q->sent = SIZE_MAX;
    loop_fd_set(q->watch, LOOP_READ);
    return true;
}

static void on_tcp(void *ctx, unsigned events)
{
    (void) events;
    struct question *q = ctx;
    char buf[16384];
    if (q->sent != SIZE_MAX) {
        if (!write_tcp(q)) {
            server_failed(q);
            try_next(q);
        }
        return;
    }
    ssize_t n = recv(q->fd, buf, sizeof buf, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0 || strbuf_add(&q->in, buf, (size_t) n) < 0) {
        server_failed(q);
        try_next(q);
        return;
    }
    const uint8_t *p = (const uint8_t *) q->in.data;
    if (q->in.size >= 2 && q->in.size - 2 >= dns_get16(p)) {
        check_answer(q, p + 2, dns_get16(p));
    }
}

static void try_tcp(struct question *q)
{
    uint8_t msg[2 + DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE];
    size_t size = write_question(q, msg + 2);
    dns_put16(msg, (unsigned) size);
    q->tcp = true;
    q->owner->counters.tcp++;
    if (!open_socket(q, SOCK_STREAM)) {
        server_failed(q);
        try_next(q);
        return;
    }
    strbuf_add(&q->in, msg, size + 2);
    q->sent = 0;
    q->watch = loop_fd_new(q->owner->loop, q->fd, LOOP_WRITE, on_tcp, q);
    loop_timer_arm(q->timer, TCP_TIMEOUT_MS);
}

/* ---- asking ---- */

static struct client *get_client(struct dns_forwarder *f, uint32_t ip)
{
    struct client *c;
    uint32_t hash = hash32(&ip, sizeof ip);
    HMAP_FOREACH_WITH_HASH (c, struct client, node, hash, &f->clients) {
        if (c->ip == ip) {
            return c;
        }
    }
    c = NEW(struct client);
    c->ip = ip;
    hmap_insert(&f->clients, &c->node, hash);
    return c;
}

static struct question *find_question(struct dns_forwarder *f, const struct dns_key *k)
{
    struct question *q;
    HMAP_FOREACH_WITH_HASH (q, struct question, node, dns_key_hash(k), &f->questions) {
        if (dns_key_equal(&q->key, k)) {
            return q;
        }
    }
    return NULL;
}

static void begin(void *ctx)
{
    struct question *q = ctx;
    loop_timer_free(q->timer);
    q->timer = loop_timer_new(q->owner->loop, on_timeout, q);
    try_next(q);
}

static struct question *question_new(struct dns_forwarder *f, const struct dns_key *k)
{
    struct question *q = NEW(struct question);
    q->owner = f;
    q->key = *k;
    q->fd = -1;
    q->edns = true;
    q->in = STRBUF_INIT_MAX(DNS_MESSAGE_MAX + 2);
    list_init(&q->waiters);
    hmap_insert(&f->questions, &q->node, dns_key_hash(k));
    /* It may fail at once, and callbacks never come from within the call. */
    q->timer = loop_timer_new(f->loop, begin, q);
    loop_timer_arm(q->timer, 0);
    return q;
}

int dns_forwarder_ask(struct dns_forwarder *f, const struct dns_key *k, uint32_t client,
                      dns_forwarder_fn *fn, void *ctx)
{
    look_at_file(f);
    if (f->n_servers == 0) {
        f->counters.failed++;
        return -EHOSTUNREACH;
    }
    struct question *q = find_question(f, k);
    if (f->n_waiters >= WAITERS_MAX || (!q && f->questions.n >= QUERIES_MAX)) {
        f->counters.refused++;
        return -EBUSY;
    }
    struct client *c = get_client(f, client);
    if (c->waiting >= CLIENT_WAITERS_MAX) {
        f->counters.refused++;
        return -EBUSY;
    }
    c->waiting++;
    f->n_waiters++;
    struct waiter *w = NEW(struct waiter);
    w->client = c;
    w->fn = fn;
    w->ctx = ctx;
    q = q ? q : question_new(f, k);
    list_push_back(&q->waiters, &w->node);
    return 0;
}

void dns_forwarder_forget(struct dns_forwarder *f, void *ctx)
{
    struct question *q;
    struct waiter *w;
    HMAP_FOREACH (q, struct question, node, &f->questions) {
        LIST_FOREACH (w, struct waiter, node, &q->waiters) {
            if (w->ctx == ctx) {
                list_remove(&w->node);
                client_leave(f, w->client);
                free(w);
            }
        }
    }
}

struct dns_forwarder *dns_forwarder_new(struct loop *l, struct dns_cache *cache,
                                        const struct dns_servers *servers, const char *resolv_conf)
{
    struct dns_forwarder *f = NEW(struct dns_forwarder);
    f->loop = l;
    f->cache = cache;
    hmap_init(&f->questions);
    hmap_init(&f->clients);
    if (servers) {
        set_servers(f, servers);
    } else {
        f->resolv_conf = xstrdup(resolv_conf);
    }
    return f;
}

struct dns_forwarder *dns_forwarder_free(struct dns_forwarder *f)
{
    if (!f) {
        return NULL;
    }
    struct question *q;
    HMAP_FOREACH (q, struct question, node, &f->questions) {
        tell(q, NULL);
        question_free(q);
    }
    hmap_done(&f->questions);
    hmap_done(&f->clients);
    free(f->resolv_conf);
    free(f);
    return NULL;
}

void dns_forwarder_set_own(struct dns_forwarder *f, const struct dns_servers *own)
{
    f->own = *own;
    f->looked_ms = 0; /* The file may name our own addresses. */
    struct dns_servers now = {.n = f->n_servers};
    for (size_t i = 0; i < f->n_servers; i++) {
        now.at[i] = f->servers[i].at;
    }
    set_servers(f, &now);
}

const struct dns_forwarder_counters *dns_forwarder_counters(const struct dns_forwarder *f)
{
    return &f->counters;
}

size_t dns_forwarder_servers(struct dns_forwarder *f, size_t *ret_up)
{
    uint64_t now = loop_now_ms(f->loop);
    look_at_file(f);
    *ret_up = 0;
    for (size_t i = 0; i < f->n_servers; i++) {
        *ret_up += f->servers[i].down_until_ms <= now;
    }
    return f->n_servers;
}
