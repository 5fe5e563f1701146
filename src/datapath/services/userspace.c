/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/services/userspace_priv.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/services/table.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

LOG_MODULE("proxy");

struct client {
    struct sdn_target target;
    uint64_t until_ms;
};

struct served *userspace_find(struct userspace *u, const struct sdn_frontend_key *key)
{
    struct served *s;
    HMAP_FOREACH_WITH_HASH (s, struct served, node, sdn_frontend_key_hash(key), &u->served) {
        if (sdn_frontend_key_equal(&s->frontend->key, key)) {
            return s;
        }
    }
    return NULL;
}

static bool in_cluster(const struct userspace *u, uint32_t ip)
{
    for (size_t i = 0; i < u->n_cluster; i++) {
        if (prefix_contains(u->cluster[i], ip)) {
            return true;
        }
    }
    return false;
}

enum sdn_view userspace_view(const struct userspace *u, const struct sdn_frontend *f,
                             uint32_t client, uint32_t accepted_at)
{
    /* The address to which the host's own connections are redirected. */
    bool own = accepted_at >> 24 == 127;
    return !f->split || own || in_cluster(u, client) ? SDN_FROM_ANYWHERE : SDN_FROM_OUTSIDE;
}

bool userspace_may_use(const struct served *s, const struct sdn_target *t)
{
    const struct userspace *u = s->owner;
    bool outside = !t->pod && !in_cluster(u, t->ip);
    bool allowed =
        t->pod || (outside && (!u->may_leave || u->may_leave(u->ctx, s->frontend, t->ip)));
    return t->port != u->tunnel_port && allowed;
}

uint32_t userspace_first(struct served *s, enum sdn_view v, uint32_t client)
{
    const struct sdn_frontend *f = s->frontend;
    if (f->affinity_s) {
        const struct client *c = smap_get(&s->clients, IP4_TEXT(client));
        for (uint32_t i = 0; c && c->until_ms > loop_now_ms(s->owner->loop) && i < f->n[v]; i++) {
            const struct sdn_target *t = &sdn_frontend_targets(f, v)[i];
            if (t->ip == c->target.ip && t->port == c->target.port) {
                return i;
            }
        }
    }
    return s->next[v]++ % f->n[v];
}

void userspace_remember(struct served *s, uint32_t client, const struct sdn_target *target)
{
    if (!s->frontend->affinity_s) {
        return;
    }
    uint64_t now = loop_now_ms(s->owner->loop);
    struct smap_entry *en;
    SMAP_FOREACH (en, &s->clients) {
        const struct client *c = en->value;
        if (smap_size(&s->clients) < USERSPACE_MAX_AFFINITY && c->until_ms > now) {
            break; /* The oldest are approximately first. */
        }
        smap_remove(&s->clients, en->key);
    }
    struct client *c = NEW(struct client);
    *c = (struct client){*target, now + (uint64_t) s->frontend->affinity_s * 1000};
    smap_remove(&s->clients, IP4_TEXT(client));
    smap_set(&s->clients, IP4_TEXT(client), c);
}

struct sockaddr_in userspace_address(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

int userspace_socket(int type)
{
    CLEANUP(fd_close) int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const uint32_t mark = SERVICES_PROXY_MARK;
    return fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0 ? -1
                                                                                 : fd_take(&fd);
}

int userspace_bind(int type, int *ret_fd, uint16_t *ret_port, struct err *e)
{
    struct sockaddr_in sa = userspace_address(0, 0);
    socklen_t size = sizeof sa;
    CLEANUP(fd_close) int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *) &sa, size) < 0 ||
        getsockname(fd, (struct sockaddr *) &sa, &size) < 0) {
        return err_sys(e, -errno, "open a socket of the service proxy");
    }
    *ret_fd = fd_take(&fd);
    *ret_port = ntohs(sa.sin_port);
    return 0;
}

static void served_free(struct userspace *u, struct served *s)
{
    userspace_udp_close(s);
    hmap_done(&s->sessions);
    smap_done(&s->clients);
    hmap_remove(&u->served, &s->node);
    sdn_frontend_unref(s->frontend);
    free(s);
}

uint16_t userspace_set(struct userspace *u, struct sdn_frontend *f)
{
    struct served *s = userspace_find(u, &f->key);
    if (!s) {
        s = NEW(struct served);
        s->owner = u;
        s->fd = -1;
        hmap_init(&s->sessions);
        smap_init(&s->clients, free);
        hmap_insert(&u->served, &s->node, sdn_frontend_key_hash(&f->key));
    }
    sdn_frontend_ref(f);
    sdn_frontend_unref(s->frontend);
    s->frontend = f;
    if (f->key.protocol == SDN_TCP) {
        userspace_tcp_wake(s);
        return u->port;
    }
    struct err e = {0};
    if (f->key.protocol == SDN_UDP && s->fd < 0 && userspace_udp_open(s, &e) < 0) {
        log_error("a service has no socket", "address=%s port=%u error=\"%s\"", IP4_TEXT(f->key.ip),
                  f->key.port, e.text);
    }
    return s->port;
}

void userspace_remove(struct userspace *u, const struct sdn_frontend_key *key)
{
    struct served *s = userspace_find(u, key);
    if (s) {
        served_free(u, s);
    }
}

void userspace_set_tunnel_port(struct userspace *u, uint16_t port)
{
    u->tunnel_port = port;
}

void userspace_set_cluster(struct userspace *u, const struct ip4_prefix *cluster, size_t n)
{
    u->n_cluster = MIN(n, ARRAY_SIZE(u->cluster));
    memcpy(u->cluster, cluster, u->n_cluster * sizeof *cluster);
}

/* A connection uses six descriptors. */
static void raise_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

int userspace_new(struct loop *l, userspace_need_pods_fn *need_pods, void *ctx,
                  struct userspace **ret, struct err *e)
{
    struct userspace *u = NEW(struct userspace);
    u->loop = l;
    u->need_pods = need_pods;
    u->ctx = ctx;
    u->listener = -1;
    hmap_init(&u->served);
    list_init(&u->connections);
    u->sweep = loop_timer_new(l, userspace_udp_sweep, u);
    raise_limit();
    int r = userspace_tcp_open(u, e);
    if (r < 0) {
        userspace_free(u);
        return r;
    }
    *ret = u;
    return 0;
}

void userspace_set_filter(struct userspace *u, userspace_may_leave_fn *may_leave)
{
    u->may_leave = may_leave;
}

struct userspace *userspace_free(struct userspace *u)
{
    if (!u) {
        return NULL;
    }
    userspace_tcp_close(u);
    struct served *s;
    HMAP_FOREACH (s, struct served, node, &u->served) {
        served_free(u, s);
    }
    hmap_done(&u->served);
    loop_timer_free(u->sweep);
    free(u);
    return NULL;
}

const struct userspace_stats *userspace_get_stats(const struct userspace *u)
{
    return &u->stats;
}
