/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/frontend.h"

#include "base/mem.h"
#include "base/str.h"

static_assert(_Alignof(struct ip4_prefix) <= _Alignof(struct sdn_target), "ranges follow targets");

/* Kind of a service's address. */
enum kind { CLUSTER, INGRESS, EXTERNAL, NODE_PORT };

static void put_targets(struct sdn_target *to, const struct sdn_backend **from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (struct sdn_target){.ip = from[i]->endpoint->ip,
                                    .port = from[i]->port,
                                    .pod = from[i]->endpoint->pod != NULL};
    }
}

static struct sdn_frontend *make(const struct sdn_service *s, const struct sdn_service_port *p,
                                 uint32_t ip, enum kind kind, const char *node)
{
    CLEANUP_FREE const struct sdn_backend **all = NULL, **here = NULL;
    bool only_here = kind == CLUSTER && s->internal_local;
    bool split = kind != CLUSTER && s->external_local;
    size_t n_all = sdn_service_choose(s, p, NULL, &all);
    size_t n_here = only_here || split ? sdn_service_choose(s, p, node, &here) : 0;
    bool elsewhere = n_all && !n_here;
    size_t n = only_here ? n_here : n_all, n_outside = split ? n_here : 0;
    size_t n_ranges = kind == INGRESS ? s->n_source_ranges : 0;
    struct sdn_frontend *f = xcalloc(1, sizeof *f + (n + n_outside) * sizeof f->targets[0] +
                                            n_ranges * sizeof(struct ip4_prefix));
    f->refs = 1;
    f->key = (struct sdn_frontend_key){
        .ip = ip, .port = kind == NODE_PORT ? p->node_port : p->port, .protocol = p->protocol};
    f->service_port = p->port;
    f->idle = s->idle && !n_all;
    f->affinity_s = s->affinity_s;
    f->split = split;
    f->n[SDN_FROM_ANYWHERE] = (uint32_t) n;
    f->n[SDN_FROM_OUTSIDE] = (uint32_t) n_outside;
    f->elsewhere[SDN_FROM_ANYWHERE] = only_here && elsewhere;
    f->elsewhere[SDN_FROM_OUTSIDE] = split && elsewhere;
    f->restricted = kind == INGRESS && s->restricted;
    f->n_ranges = (uint32_t) n_ranges;
    put_targets(f->targets, only_here ? here : all, n);
    put_targets(f->targets + n, here, n_outside);
    if (n_ranges) {
        memcpy(f->targets + n + n_outside, s->source_ranges, n_ranges * sizeof *s->source_ranges);
    }
    return f;
}

size_t sdn_frontends_of(const struct sdn_service *s, const char *node, struct sdn_frontend ***ret)
{
    size_t n = 0, max = s->n_ports * (s->n_external_ips + 2);
    *ret = NULL;
    if (s->headless || s->type == SDN_SERVICE_EXTERNAL_NAME || !max) {
        return 0;
    }
    struct sdn_frontend **list = xcalloc(max, sizeof *list);
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct sdn_service_port *p = &s->ports[i];
        if (s->cluster_ip) {
            list[n++] = make(s, p, s->cluster_ip, CLUSTER, node);
        }
        for (size_t k = 0; k < s->n_external_ips; k++) {
            if (s->external_ips[k] != s->cluster_ip) {
                list[n++] =
                    make(s, p, s->external_ips[k], k < s->n_ingress_ips ? INGRESS : EXTERNAL, node);
            }
        }
        if (p->node_port) {
            list[n++] = make(s, p, 0, NODE_PORT, node);
        }
    }
    /* If two ports have the same number, which another API server may allow, the first counts. */
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < out && !sdn_frontend_key_equal(&list[k]->key, &list[i]->key)) {
            k++;
        }
        if (k == out) {
            list[out++] = list[i];
        } else {
            sdn_frontend_unref(list[i]);
        }
    }
    if (!out) {
        free(TAKE(list));
    }
    *ret = list;
    return out;
}

struct sdn_frontend *sdn_frontend_ref(struct sdn_frontend *f)
{
    f->refs++;
    return f;
}

struct sdn_frontend *sdn_frontend_unref(struct sdn_frontend *f)
{
    if (f && --f->refs == 0) {
        free(f);
    }
    return NULL;
}

bool sdn_frontend_equal(const struct sdn_frontend *a, const struct sdn_frontend *b)
{
    if (!sdn_frontend_key_equal(&a->key, &b->key) || a->service_port != b->service_port ||
        a->idle != b->idle || a->affinity_s != b->affinity_s || a->split != b->split ||
        a->restricted != b->restricted || a->n_ranges != b->n_ranges ||
        memcmp(a->n, b->n, sizeof a->n) != 0 ||
        memcmp(a->elsewhere, b->elsewhere, sizeof a->elsewhere) != 0) {
        return false;
    }
    for (size_t i = 0; i < a->n[0] + a->n[1]; i++) {
        if (a->targets[i].ip != b->targets[i].ip || a->targets[i].port != b->targets[i].port ||
            a->targets[i].pod != b->targets[i].pod) {
            return false;
        }
    }
    for (size_t i = 0; i < a->n_ranges; i++) {
        if (!prefix_equal(sdn_frontend_ranges(a)[i], sdn_frontend_ranges(b)[i])) {
            return false;
        }
    }
    return true;
}

bool sdn_frontend_has(const struct sdn_frontend *f, uint32_t ip, uint16_t port)
{
    for (uint32_t i = 0; f && i < f->n[SDN_FROM_ANYWHERE] + f->n[SDN_FROM_OUTSIDE]; i++) {
        if (f->targets[i].ip == ip && f->targets[i].port == port) {
            return true;
        }
    }
    return false;
}

uint32_t sdn_frontend_key_hash(const struct sdn_frontend_key *k)
{
    const uint32_t parts[] = {k->ip, (uint32_t) k->port << 8 | k->protocol};
    return hash32(parts, sizeof parts);
}
