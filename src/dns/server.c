/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/server.h"

#include "base/log.h"
#include "base/timeutil.h"
#include "dns/server_priv.h"
#include "net/loop/sock.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("dns");

#define BATCH 32
#define QUERY_SIZE 1232 /* Larger queries are not used over UDP. */
#define QUEUE_MAX 4096
#define THREADS_MAX 4
#define RECEIVE_BUFFER (1 << 20)
#define STACK_SIZE (256u << 10)
#define PORT_TRIES 16
#define ERROR_PAUSE_MS 100

/* ---- forwarding ---- */

static void job_free(struct dns_job *job)
{
    list_remove(&job->node);
    free(job);
}

/* Sends from the address that was queried: the socket alone would use that of the route. */
static void send_from(int fd, const struct dns_job *job, const uint8_t *data, size_t size)
{
    struct sockaddr_in to = job->from;
    struct iovec iov = {(void *) data, size};
    union {
        char buf[CMSG_SPACE(sizeof(struct in_pktinfo))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &iov, .msg_iovlen = 1};
    if (job->to.s_addr) {
        m.msg_control = control.buf;
        m.msg_controllen = sizeof control.buf;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = IPPROTO_IP;
        c->cmsg_type = IP_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
        struct in_pktinfo info = {.ipi_spec_dst = job->to};
        memcpy(CMSG_DATA(c), &info, sizeof info);
    }
    /* Full or unreachable: the client asks again. */
    (void) !sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void answered(void *ctx, const struct dns_cached *answer)
{
    struct dns_job *job = ctx;
    struct dns_server *s = job->server;
    struct dns_key again;
    size_t size = 0;
    struct dns_request rq = {.data = job->data,
                             .size = job->size,
                             .client = ntohl(job->from.sin_addr.s_addr),
                             .tcp = job->connection != NULL,
                             .turn = s->turn++,
                             .now_ms = loop_now_ms(s->loop),
                             .asked = true,
                             .answer = answer};
    enum dns_reply r = dns_respond(&s->responder, &s->counters, &rq, s->out, &size, &again);
    struct dns_tcp_connection *c = job->connection;
    if (r == DNS_SEND && !c) {
        send_from(job->fd, job, s->out, size);
    }
    job_free(job);
    if (c) {
        dns_tcp_answer(c, s->out, r == DNS_SEND ? size : 0);
    }
}

void dns_server_ask(struct dns_server *s, struct dns_job *job)
{
    list_push_back(&s->jobs, &job->node);
    if (dns_forwarder_ask(s->forwarder, &job->key, ntohl(job->from.sin_addr.s_addr), answered,
                          job) < 0) {
        answered(job, NULL);
    }
}

/* Takes the jobs that threads have queued. */
static void take_queue(void *ctx)
{
    struct dns_server *s = ctx;
    struct list batch, *node;
    list_init(&batch);
    pthread_mutex_lock(&s->lock);
    while ((node = list_pop_front(&s->queue)) != NULL) {
        list_push_back(&batch, node);
    }
    s->n_queue = 0;
    pthread_mutex_unlock(&s->lock);
    while ((node = list_pop_front(&batch)) != NULL) {
        dns_server_ask(s, CONTAINER_OF(node, struct dns_job, node));
    }
}

/* ---- threads ---- */

struct slot {
    uint8_t in[QUERY_SIZE], out[DNS_UDP_EDNS];
    struct dns_query query;
    int parsed; /* The result of dns_query_parse. */
    uint32_t hash;
    struct sockaddr_in from;
    struct iovec in_iov, out_iov;
    union {
        char buf[CMSG_SPACE(sizeof(struct in_pktinfo))];
        struct cmsghdr align;
    } control;
};

struct batch {
    struct slot slots[BATCH];
    struct mmsghdr in[BATCH], out[BATCH];
    unsigned n_out;
};

/* Prepares the first 'n' buffers to receive again. */
static void prepare(struct batch *b, unsigned n, bool any_address)
{
    for (unsigned i = 0; i < n; i++) {
        struct slot *s = &b->slots[i];
        s->in_iov = (struct iovec){s->in, sizeof s->in};
        b->in[i].msg_hdr =
            (struct msghdr){.msg_name = &s->from,
                            .msg_namelen = sizeof s->from,
                            .msg_iov = &s->in_iov,
                            .msg_iovlen = 1,
                            .msg_control = any_address ? s->control.buf : NULL,
                            .msg_controllen = any_address ? sizeof s->control.buf : 0};
    }
}

/* Our address that a message came to; recorded only when listening at all addresses. */
static struct in_addr *destination(struct msghdr *m)
{
    struct cmsghdr *c = m->msg_controllen ? CMSG_FIRSTHDR(m) : NULL;
    if (!c || c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO) {
        return NULL;
    }
    struct in_pktinfo *info = (struct in_pktinfo *) (void *) CMSG_DATA(c);
    info->ipi_ifindex = 0; /* The route chooses the link. */
    info->ipi_spec_dst = info->ipi_addr;
    return &info->ipi_addr;
}

static void queue_job(struct dns_worker *w, const struct slot *slot, size_t size,
                      const struct in_addr *to, const struct dns_key *key)
{
    struct dns_server *s = w->server;
    struct dns_job *job = xmalloc(sizeof *job + size);
    *job =
        (struct dns_job){.server = s, .key = *key, .from = slot->from, .fd = w->fd, .size = size};
    job->to.s_addr = to ? to->s_addr : 0;
    memcpy(job->data, slot->in, size);
    pthread_mutex_lock(&s->lock);
    bool room = s->n_queue < QUEUE_MAX, first = s->n_queue == 0;
    if (room) {
        list_push_back(&s->queue, &job->node);
        s->n_queue++;
    }
    pthread_mutex_unlock(&s->lock);
    if (!room) {
        free(job);
        dns_count(&w->counters, DNS_COUNT_DROPPED);
    } else if (first) {
        loop_wakeup_trigger(s->wakeup);
    }
}

static void respond_one(struct dns_worker *w, struct batch *b, unsigned i, uint64_t now_ms,
                        unsigned turn)
{
    struct slot *slot = &b->slots[i];
    struct msghdr *in = &b->in[i].msg_hdr;
    struct in_addr *to = destination(in);
    size_t size = b->in[i].msg_len, out = 0;
    struct dns_key key;
    struct dns_request rq = {.data = slot->in,
                             .size = size,
                             .client = ntohl(slot->from.sin_addr.s_addr),
                             .turn = turn,
                             .now_ms = now_ms};
    switch (dns_respond_parsed(&w->server->responder, &w->counters, &rq, slot->parsed, &slot->query,
                               slot->out, &out, &key)) {
    case DNS_SEND:
        slot->out_iov = (struct iovec){slot->out, out};
        b->out[b->n_out++].msg_hdr = (struct msghdr){.msg_name = &slot->from,
                                                     .msg_namelen = sizeof slot->from,
                                                     .msg_iov = &slot->out_iov,
                                                     .msg_iovlen = 1,
                                                     .msg_control = to ? in->msg_control : NULL,
                                                     .msg_controllen = to ? in->msg_controllen : 0};
        break;
    case DNS_ASK:
        queue_job(w, slot, size, to, &key);
        break;
    case DNS_SILENCE:
        break;
    }
}

/* Parses the first 'n' queries, and prefetches the data for their answers. */
static void parse_batch(const struct dns_zone *z, struct batch *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct slot *s = &b->slots[i];
        /* A truncated one is malformed: its end is missing. */
        s->parsed = dns_query_parse(s->in, b->in[i].msg_len, &s->query);
        s->hash = s->parsed < 0 ? 0 : dns_zone_announce(z, &s->query);
    }
    for (unsigned i = 0; i < n; i++) {
        dns_zone_fetch(z, b->slots[i].hash);
    }
}

static void send_batch(int fd, struct batch *b)
{
    for (unsigned at = 0; at < b->n_out;) {
        int n = sendmmsg(fd, b->out + at, b->n_out - at, MSG_NOSIGNAL);
        /* A message that cannot be sent does not delay the others. */
        at += n > 0 ? (unsigned) n : 1;
    }
}

static void *work(void *ctx)
{
    struct dns_worker *w = ctx;
    struct dns_server *s = w->server;
    struct dns_epochs *epochs = dns_zone_epochs(s->responder.zone);
    struct batch *b = xcalloc(1, sizeof *b);
    unsigned turn = (unsigned) w->reader;
    prepare(b, BATCH, s->address == 0);
    for (;;) {
        /* Waits for one message, and takes others that are queued; stop_threads ends the wait. */
        int n = recvmmsg(w->fd, b->in, BATCH, MSG_WAITFORONE, NULL);
        if (atomic_load_explicit(&s->stop, memory_order_acquire)) {
            break;
        }
        if (n <= 0) {
            if (n < 0 && errno != EINTR) {
                poll(NULL, 0, ERROR_PAUSE_MS);
            }
            continue;
        }
        uint64_t now_ms = time_mono_ms();
        b->n_out = 0;
        dns_epochs_enter(epochs, w->reader);
        parse_batch(s->responder.zone, b, (unsigned) n);
        for (int i = 0; i < n; i++) {
            respond_one(w, b, (unsigned) i, now_ms, turn++);
        }
        dns_epochs_leave(epochs, w->reader);
        send_batch(w->fd, b);
        prepare(b, (unsigned) n, s->address == 0);
    }
    free(b);
    return NULL;
}

/* ---- sockets ---- */

static int bind_udp(const struct dns_server *s, bool shared, int *ret, struct err *e)
{
    int one = 1, size = RECEIVE_BUFFER;
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(s->port), .sin_addr = {htonl(s->address)}};
    CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof one) < 0 ||
        (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0) ||
        (s->address == 0 && setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one) < 0)) {
        return err_sys(e, -errno, "make a UDP socket");
    }
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }
    if (bind(fd, (struct sockaddr *) &a, sizeof a) < 0) {
        return errno == EADDRINUSE
                   ? err_set(e, -EADDRINUSE, "UDP port %u of %s is taken by another program",
                             s->port, IP4_TEXT(s->address))
                   : err_sys(e, -errno, "listen at %s:%u", IP4_TEXT(s->address), s->port);
    }
    *ret = fd_take(&fd);
    return 0;
}

static int bind_all(struct dns_server *s, struct err *e)
{
    /* The threads share the port, and other processes could do so, too: first checks that no
     * process has it. */
    CLEANUP(fd_close) int alone = -1;
    int r = dns_tcp_listen(s, e);
    if (r < 0 || (r = bind_udp(s, false, &alone, e)) < 0) {
        return r;
    }
    alone = fd_close(alone);
    for (unsigned i = 0; i < s->n_workers; i++) {
        if ((r = bind_udp(s, true, &s->workers[i].fd, e)) < 0) {
            return r;
        }
    }
    return 0;
}

static int start_threads(struct dns_server *s, struct err *e)
{
    sigset_t all, before;
    pthread_attr_t attr;
    int r = 0;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* Signals belong to the loop's thread. */
    for (unsigned i = 0; i < s->n_workers && r == 0; i++) {
        struct dns_worker *w = &s->workers[i];
        r = w->reader = dns_epochs_add_reader(dns_zone_epochs(s->responder.zone));
        r = r < 0 ? r : -pthread_create(&w->thread, &attr, work, w);
        w->started = r == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return r < 0 ? err_sys(e, r, "start a thread") : 0;
}

/* ---- public ---- */

static unsigned default_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return (unsigned) MAX(1, MIN(n / 2, THREADS_MAX));
}

int dns_server_new(struct loop *l, const struct dns_server_options *o, uint32_t address,
                   uint16_t port, struct dns_server **ret, struct err *e)
{
    CLEANUP(dns_server_free) struct dns_server *s = NEW(struct dns_server);
    s->loop = l;
    s->responder = o->responder;
    s->responder.forwards = o->forwarder != NULL;
    s->forwarder = o->forwarder;
    s->address = address;
    /* Half of all reader slots: the next server begins before the last one ends. */
    s->n_workers = MIN(o->threads ? o->threads : default_threads(), DNS_READERS_MAX / 2);
    s->workers = xcalloc(s->n_workers, sizeof *s->workers);
    s->out = xmalloc(DNS_MESSAGE_MAX);
    s->tcp_fd = -1;
    for (unsigned i = 0; i < s->n_workers; i++) {
        s->workers[i] = (struct dns_worker){.server = s, .reader = -1, .fd = -1};
    }
    list_init(&s->queue);
    list_init(&s->jobs);
    list_init(&s->connections);
    pthread_mutex_init(&s->lock, NULL);
    s->wakeup = loop_wakeup_new(l, take_queue, s);
    int r;
    for (int i = 0; i < PORT_TRIES; i++) {
        s->port = port;
        r = bind_all(s, e);
        if (r == 0 || port != 0) {
            break;
        }
        dns_tcp_close(s); /* Free for UDP, but not for TCP. */
    }
    if (r < 0 || (r = start_threads(s, e)) < 0) {
        return r;
    }
    log_info("answers DNS", "address=%s:%u threads=%u", IP4_TEXT(address), s->port, s->n_workers);
    *ret = TAKE(s);
    return 0;
}

static void stop_threads(struct dns_server *s)
{
    atomic_store(&s->stop, true);
    for (unsigned i = 0; i < s->n_workers; i++) {
        if (s->workers[i].started) {
            /* Reports that it is not connected, but wakes threads that wait for messages. */
            (void) shutdown(s->workers[i].fd, SHUT_RD);
            pthread_join(s->workers[i].thread, NULL);
        }
        dns_epochs_remove_reader(dns_zone_epochs(s->responder.zone), s->workers[i].reader);
    }
}

struct dns_server *dns_server_free(struct dns_server *s)
{
    struct list *node;
    if (!s) {
        return NULL;
    }
    stop_threads(s);
    dns_tcp_close(s);
    while ((node = list_pop_front(&s->queue)) != NULL) {
        free(CONTAINER_OF(node, struct dns_job, node));
    }
    while ((node = list_pop_front(&s->jobs)) != NULL) {
        struct dns_job *job = CONTAINER_OF(node, struct dns_job, node);
        dns_forwarder_forget(s->forwarder, job);
        free(job);
    }
    for (unsigned i = 0; i < s->n_workers; i++) {
        fd_close(s->workers[i].fd);
    }
    loop_wakeup_free(s->wakeup);
    pthread_mutex_destroy(&s->lock);
    free(s->workers);
    free(s->out);
    free(s);
    return NULL;
}

uint16_t dns_server_port(const struct dns_server *s)
{
    return s->port;
}

void dns_server_count(const struct dns_server *s, uint64_t sum[DNS_COUNTERS])
{
    for (size_t i = 0; i < DNS_COUNTERS; i++) {
        sum[i] += atomic_load_explicit(&s->counters.n[i], memory_order_relaxed);
        for (unsigned w = 0; w < s->n_workers; w++) {
            sum[i] += atomic_load_explicit(&s->workers[w].counters.n[i], memory_order_relaxed);
        }
    }
}
