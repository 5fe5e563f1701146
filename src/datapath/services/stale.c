/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/services/stale.h"

#include "base/mem.h"
#include "datapath/services/table.h"
#include "net/kernel/conntrack.h"
#include "net/kernel/rtnl.h"

#include <arpa/inet.h>

void stale_add(struct stale_list *l, const struct sdn_frontend_key *key, int proxy_port,
               struct sdn_frontend *now, struct sdn_frontend *old, bool old_known)
{
    l->items = grow(l->items, &l->cap, l->n + 1, sizeof *l->items);
    l->items[l->n++] = (struct stale_frontend){.key = *key,
                                               .proxy_port = proxy_port,
                                               .now = now ? sdn_frontend_ref(now) : NULL,
                                               .old = old ? sdn_frontend_ref(old) : NULL,
                                               .old_known = old_known};
}

void stale_clear(struct stale_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        sdn_frontend_unref(l->items[i].now);
        sdn_frontend_unref(l->items[i].old);
    }
    free(l->items);
    *l = (struct stale_list){0};
}

static int compare(const void *a, const void *b)
{
    const struct stale_frontend *x = a, *y = b;
    if (x->key.ip != y->key.ip) {
        return x->key.ip < y->key.ip ? -1 : 1;
    }
    return x->key.port != y->key.port ? x->key.port - y->key.port
                                      : x->key.protocol - y->key.protocol;
}

struct search {
    const struct stale_list *list;
    struct rtnl_addr *own; /* Addresses of the host, for searches of nodePorts. */
    size_t n_own, n_forgotten;
};

static const struct stale_frontend *find(const struct stale_list *l, uint32_t ip, uint16_t port,
                                         uint8_t protocol)
{
    struct stale_frontend key = {.key = {.ip = ip, .port = port, .protocol = protocol}};
    return bsearch(&key, l->items, l->n, sizeof key, compare);
}

static bool is_own(const struct search *s, uint32_t ip)
{
    for (size_t i = 0; i < s->n_own; i++) {
        if (s->own[i].addr.addr == ip) {
            return true;
        }
    }
    return false;
}

static bool is_stale(void *ctx, const struct conntrack_flow *c)
{
    struct search *s = ctx;
    const struct stale_frontend *f = find(s->list, c->to, c->to_port, SDN_UDP);
    if (!f && is_own(s, c->to)) {
        f = find(s->list, 0, c->to_port, SDN_UDP);
    }
    if (!f || sdn_frontend_has(f->now, c->answers, c->answers_port) ||
        (f->now && f->proxy_port == c->answers_port)) {
        return false;
    }
    bool translated = c->answers != c->to || c->answers_port != c->to_port;
    bool stale =
        f->now ||
        (translated && (!f->old_known || sdn_frontend_has(f->old, c->answers, c->answers_port)));
    s->n_forgotten += stale;
    return stale;
}

int stale_forget(struct stale_list *l, size_t *ret_forgotten, struct err *e)
{
    struct search s = {.list = l};
    int r = 0;
    if (!l->n) {
        *ret_forgotten = 0;
        return 0;
    }
    qsort(l->items, l->n, sizeof *l->items, compare);
    if (l->items[0].key.ip == 0) {
        CLEANUP(rtnl_close) struct rtnl *rt = NULL;
        r = rtnl_open(&rt, e);
        r = r < 0 ? r : rtnl_addr_list(rt, 0, &s.own, &s.n_own, e);
    }
    r = r < 0 ? r : conntrack_forget_udp(is_stale, &s, e);
    free(s.own);
    if (r == 0) {
        *ret_forgotten = s.n_forgotten;
    }
    return r;
}

/* ---- clients ---- */

enum { KEY_SIZE = 16 }; /* The layout in services/table.c: client, address, protocol, port. */

struct clients {
    const struct stale_list *list;
    uint8_t (*keys)[KEY_SIZE];
    size_t n, cap;
};

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return ntohl(v);
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}

static void on_client(void *ctx, const struct nft_read_element *el)
{
    struct clients *c = ctx;
    if (el->key_size != KEY_SIZE || el->data_size < 6) {
        return;
    }
    uint16_t port = get16(el->key + 12);
    const struct stale_frontend *f = find(c->list, get32(el->key + 4), port, el->key[8]);
    f = f ? f : find(c->list, 0, port, el->key[8]);
    if (f && !sdn_frontend_has(f->now, get32(el->data), get16(el->data + 4))) {
        c->keys = grow(c->keys, &c->cap, c->n + 1, sizeof *c->keys);
        memcpy(c->keys[c->n++], el->key, KEY_SIZE);
    }
}

static int delete_clients(struct nft *n, uint8_t (*keys)[KEY_SIZE], size_t n_keys, struct err *e)
{
    struct nft_batch b = {0};
    nft_batch_begin(&b, SERVICES_TABLE);
    nft_elements_begin(&b, SERVICES_AFFINITY, false);
    for (size_t i = 0; i < n_keys; i++) {
        nft_element(&b, &(struct nft_element){.key = keys[i], .key_size = KEY_SIZE});
    }
    nft_elements_end(&b);
    nft_batch_end(&b);
    int r = nft_send(n, &b, e);
    nft_batch_done(&b);
    return r;
}

int stale_forget_clients(struct stale_list *l, struct nft *n, struct err *e)
{
    struct clients c = {.list = l};
    if (!l->n) {
        return 0;
    }
    qsort(l->items, l->n, sizeof *l->items, compare);
    int r = nft_list_elements(n, SERVICES_TABLE, SERVICES_AFFINITY, on_client, &c, e);
    if (r == 0 && c.n && delete_clients(n, c.keys, c.n, NULL) < 0) {
        /* An entry expired meanwhile, and the transaction deleted nothing. */
        for (size_t i = 0; r == 0 && i < c.n; i++) {
            r = delete_clients(n, &c.keys[i], 1, e);
            r = r == -ENOENT ? 0 : r;
        }
    }
    free(c.keys);
    return r;
}
