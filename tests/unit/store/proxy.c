/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/loop/sock.h"

#include <errno.h>
#include <sys/socket.h>

struct proxy {
    struct loop *loop;
    int fd, port, target_port;
    struct loop_fd *watch;
    struct list relays;
    bool cut, stall, mute;
    size_t budget; /* Of answers; 0: no limit. */
    unsigned accepted;
};

struct relay {
    struct proxy *p;
    struct list node;
    struct end {
        struct relay *r;
        int fd;
        struct loop_fd *watch;
        struct strbuf out; /* For this end; while there is some, the other is not read. */
    } end[2];              /* The client's, the server's. */
};

static void relay_free(struct relay *r)
{
    list_remove(&r->node);
    for (int i = 0; i < 2; i++) {
        loop_fd_free(r->end[i].watch);
        fd_close(r->end[i].fd);
        strbuf_done(&r->end[i].out);
    }
    free(r);
}

static void watch_what_can_move(struct relay *r)
{
    for (int i = 0; i < 2; i++) {
        loop_fd_set(r->end[i].watch, (r->end[1 - i].out.size ? 0 : LOOP_READ) |
                                         (r->end[i].out.size ? LOOP_WRITE : 0));
    }
}

/* False: the relay is gone. */
static bool end_send(struct relay *r, struct end *end)
{
    ssize_t n = send(end->fd, strbuf_cstr(&end->out), end->out.size, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != ENOTCONN) {
        relay_free(r);
        return false;
    }
    strbuf_consume(&end->out, n > 0 ? (size_t) n : 0);
    return true;
}

static bool end_receive(struct relay *r, struct end *from, struct end *to)
{
    char buf[16384];
    struct proxy *p = r->p;
    ssize_t n = recv(from->fd, buf, sizeof buf, 0);
    if (n < 0 && errno == EAGAIN) {
        return true;
    }
    if (n <= 0) {
        relay_free(r);
        return false;
    }
    bool answer = from == &r->end[1];
    if (p->stall || (p->mute && answer)) {
        return true;
    }
    if (!answer || !p->budget) {
        strbuf_add(&to->out, buf, (size_t) n);
        return end_send(r, to);
    }
    size_t pass = MIN(p->budget, (size_t) n);
    p->budget -= pass;
    strbuf_add(&to->out, buf, pass);
    if (!end_send(r, to)) {
        return false;
    }
    if (!p->budget) {
        relay_free(r);
        return false;
    }
    return true;
}

static void on_end(void *ctx, unsigned events)
{
    struct end *end = ctx;
    struct relay *r = end->r;
    struct end *other = end == &r->end[0] ? &r->end[1] : &r->end[0];
    if (events & LOOP_WRITE && !end_send(r, end)) {
        return;
    }
    if (events & LOOP_READ && !other->out.size && !end_receive(r, end, other)) {
        return;
    }
    watch_what_can_move(r);
}

static void on_accept(void *ctx, unsigned events)
{
    struct proxy *p = ctx;
    int client = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int server = -1;
    if (client < 0) {
        return;
    }
    p->accepted++;
    if (p->cut || sock_connect_tcp("127.0.0.1", (uint16_t) p->target_port, &server, NULL) < 0) {
        fd_close(client);
        return;
    }
    struct relay *r = NEW(struct relay);
    r->p = p;
    for (int i = 0; i < 2; i++) {
        struct end *end = &r->end[i];
        end->r = r;
        end->fd = i ? server : client;
        end->out = STRBUF_INIT;
        end->watch = loop_fd_new(p->loop, end->fd, LOOP_READ, on_end, end);
    }
    list_push_back(&p->relays, &r->node);
}

struct proxy *proxy_new(struct loop *l, int target_port)
{
    struct proxy *p = NEW(struct proxy);
    p->loop = l;
    p->target_port = target_port;
    list_init(&p->relays);
    if (sock_listen_tcp("127.0.0.1:0", &p->fd, NULL) < 0) {
        abort();
    }
    p->port = sock_local_port(p->fd);
    p->watch = loop_fd_new(l, p->fd, LOOP_READ, on_accept, p);
    return p;
}

static void cut_relays(struct proxy *p)
{
    struct relay *r;
    LIST_FOREACH (r, struct relay, node, &p->relays) {
        relay_free(r);
    }
}

struct proxy *proxy_free(struct proxy *p)
{
    if (p) {
        cut_relays(p);
        loop_fd_free(p->watch);
        fd_close(p->fd);
        free(p);
    }
    return NULL;
}

int proxy_port(const struct proxy *p)
{
    return p->port;
}

void proxy_cut(struct proxy *p, bool cut)
{
    p->cut = cut;
    cut_relays(p);
}

void proxy_stall(struct proxy *p, bool stall)
{
    p->stall = stall;
}

void proxy_mute(struct proxy *p, bool mute)
{
    p->mute = mute;
}

void proxy_cut_after(struct proxy *p, size_t bytes)
{
    p->budget = bytes;
}

unsigned proxy_accepted(const struct proxy *p)
{
    return p->accepted;
}
