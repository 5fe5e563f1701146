/* SPDX-License-Identifier: Apache-2.0 */
#include "program_side.h"

#include "base/mem.h"
#include "rng.h"
#include "wire_frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/pkt_cls.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

const struct devices program_devices = {.tun = 2001, .host = 2002, .vxlan = 2003};

/* ---- maps ---- */

static void put(struct table *t, struct table_row *rows, size_t n)
{
    struct err e = {0};
    size_t changes, refused;
    table_sync(t, rows, n, &changes, &refused, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(refused, 0);
}

static void commit_policies(struct program_side *s)
{
    struct err e = {0};
    assert_int_equal(policy_maps_commit(&s->policy_maps, &e), 0);
    assert_string_equal(e.text, "");
}

/* The policies by one of the ways in which a cluster may have come to them. */
static struct policy *load_policies(struct program_side *s, const struct cluster *c)
{
    struct policy *p = policy_new_anywhere(c->net.local, NULL, NULL);
    policy_want_table(p, &policy_maps_ops, &s->policy_maps);
    if (c->net.plugin == SDN_NETWORKPOLICY) {
        random_policies_mislead(&c->policies, p);
        policy_compile(p);
        commit_policies(s);
        random_policies_tell(&c->policies, p);
        policy_compile(p);
    }
    commit_policies(s);
    return p;
}

/* Where what the link receives comes in; some are limited. */
static int inlet_of(uint32_t port)
{
    return (int) (port % 3 ? port : port + 500);
}

static void load_network(struct program_side *s, const struct cluster *c)
{
    size_t n;
    struct path paths[MAX_REMOTES];
    for (size_t i = 0; i < c->net.n_remotes; i++) {
        paths[i] = c->paths[c->remotes[i].host_ip - HOST(0)];
    }
    struct table_row *rows = encode_routes(&c->net, paths, &n);
    put(&s->routes, rows, n);
    rows = encode_subnets(s->routes.rows, s->routes.n, &s->subnet_len, &n);
    put(&s->subnets, rows, n);
    rows = encode_vteps(&c->net, &n);
    put(&s->vteps, rows, n);
    struct table_row *a = xcalloc(MAX_PODS, sizeof *a), *b = xcalloc(MAX_PODS, sizeof *b);
    for (size_t i = 0; i < c->n_pods; i++) {
        const struct model_pod *p = &c->pods[i];
        struct encode_pod x = {.ip = p->ip,
                               .mac = p->mac,
                               .vnid = p->vnid,
                               .has_also_vnid = p->has_also_vnid,
                               .also_vnid = p->also_vnid,
                               .queued = chance(20),
                               .ifindex = (int) p->port,
                               .inlet = inlet_of(p->port)};
        assert_true(encode_pod(&c->net, &x, &a[i], &b[i]));
    }
    put(&s->pods, a, c->n_pods);
    put(&s->ports, b, c->n_pods);
    a = encode_pod_cache(s->pods.rows, s->pods.n, &n);
    put(&s->pod_cache, a, n);
    struct encoded_services es;
    encode_services(&c->net, NODE_NAME, c->services, c->n_services, &es);
    put(&s->services, es.services, es.n_services);
    put(&s->backends, es.backends, es.n_backends);
    put(&s->serving, es.serving, es.n_backends);
    struct ebpf_connection_key key;
    while (bpf_map_get_next_key(s->program.conns, NULL, &key) == 0) {
        bpf_map_delete_elem(s->program.conns, &key);
    }
    struct ebpf_tracked_key tracked;
    while (bpf_map_get_next_key(s->program.tracked, NULL, &tracked) == 0) {
        bpf_map_delete_elem(s->program.tracked, &tracked);
    }
    struct ebpf_fragment_key part;
    while (bpf_map_get_next_key(s->program.fragments, NULL, &part) == 0) {
        bpf_map_delete_elem(s->program.fragments, &part);
    }
    struct ebpf_affinity_key client;
    while (bpf_map_get_next_key(s->program.affinity, NULL, &client) == 0) {
        bpf_map_delete_elem(s->program.affinity, &client);
    }
    struct ebpf_settings settings = encode_settings(&c->net, &program_devices, true);
    settings.subnet_len = s->subnet_len;
    uint32_t zero = 0;
    assert_int_equal(bpf_map_update_elem(s->program.settings, &zero, &settings, BPF_ANY), 0);
}

void program_side_open(struct program_side *s, bool latest)
{
    *s = (struct program_side){0};
    struct err e = {0}, why = {0};
    struct program_features f = {0};
    if (latest && program_probe(NULL, &f, &why) < 0) {
        fail_msg("%s", why.text);
    }
    f.ringbuf = false;
    s->is_direct = f.encap;
    if (program_load(NULL, &f, true, &s->program, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(table_load(&s->routes, s->program.routes, &e), 0);
    assert_int_equal(table_load(&s->subnets, s->program.subnets, &e), 0);
    assert_int_equal(table_load(&s->vteps, s->program.vteps, &e), 0);
    assert_int_equal(table_load(&s->pods, s->program.pods, &e), 0);
    assert_int_equal(table_load(&s->pod_cache, s->program.pod_cache, &e), 0);
    assert_int_equal(table_load(&s->ports, s->program.ports, &e), 0);
    assert_int_equal(table_load(&s->services, s->program.services, &e), 0);
    assert_int_equal(table_load(&s->backends, s->program.backends, &e), 0);
    assert_int_equal(table_load(&s->serving, s->program.serving, &e), 0);
    firewall_maps_init(&s->firewalls);
    assert_int_equal(firewall_maps_load(&s->firewalls, &s->program, &e), 0);
    policy_maps_init(&s->policy_maps, NULL, NULL);
    assert_int_equal(policy_maps_load(&s->policy_maps, &s->program, &e), 0);
}

static void assert_nothing_of_policy(const struct program_side *s)
{
    const int fds[] = {s->program.classes, s->program.blocks, s->program.pairs,
                       s->program.port_sets};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        unsigned char key[16];
        assert_int_equal(bpf_map_get_next_key(fds[i], NULL, key), -ENOENT);
    }
}

void program_side_close(struct program_side *s)
{
    assert_nothing_of_policy(s);
    table_done(&s->routes);
    table_done(&s->subnets);
    table_done(&s->vteps);
    table_done(&s->pods);
    table_done(&s->pod_cache);
    table_done(&s->ports);
    table_done(&s->services);
    table_done(&s->backends);
    table_done(&s->serving);
    policy_maps_done(&s->policy_maps);
    firewall_maps_done(&s->firewalls);
    program_done(&s->program);
}

static void set_firewall(void *ctx, uint32_t vnid, const struct firewall_block *blocks, size_t n)
{
    firewall_maps_set(ctx, vnid, blocks, n);
}

/* Entries of the cluster before are replaced, or removed. */
static void load_firewalls(struct program_side *s, const struct cluster *c)
{
    for (size_t i = 0; i < s->n_firewall_vnids; i++) {
        if (chance(50)) {
            firewall_maps_set(&s->firewalls, s->firewall_vnids[i], NULL, 0);
        }
    }
    random_firewalls_tell(c->firewalls.list, c->firewalls.n, set_firewall, &s->firewalls);
    for (size_t i = 0; i < s->n_firewall_vnids; i++) {
        bool has = false;
        for (size_t k = 0; k < c->firewalls.n; k++) {
            has |= c->firewalls.list[k].vnid == s->firewall_vnids[i];
        }
        if (!has) {
            firewall_maps_set(&s->firewalls, s->firewall_vnids[i], NULL, 0);
        }
    }
    s->n_firewall_vnids = c->firewalls.n;
    for (size_t k = 0; k < c->firewalls.n; k++) {
        s->firewall_vnids[k] = c->firewalls.list[k].vnid;
    }
    assert_false(s->firewalls.closed);
    assert_int_equal(s->firewalls.refused, 0);
}

void program_side_load(struct program_side *s, const struct cluster *c)
{
    load_firewalls(s, c);
    load_network(s, c);
    s->policy = load_policies(s, c);
}

void program_side_unload(struct program_side *s)
{
    s->policy = policy_free(s->policy);
    commit_policies(s);
}

/* ---- frames ---- */

static int run(int fd, const struct frame *f, struct __sk_buff *after, struct frame *left)
{
    struct __sk_buff in = {0};
    in.cb[EBPF_CB_PORT] = (uint32_t) inlet_of(f->port);
    in.cb[EBPF_CB_OUTER_SRC] = f->outer_src;
    in.cb[EBPF_CB_TUNNEL_ID] = f->tunnel_id;
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->bytes, .data_size_in = (uint32_t) f->size,
                .data_out = left->bytes, .data_size_out = sizeof left->bytes, .ctx_in = &in,
                .ctx_size_in = sizeof in, .ctx_out = after, .ctx_size_out = sizeof *after);
    int r = bpf_prog_test_run_opts(fd, &o);
    if (r < 0) {
        fail_msg("BPF_PROG_TEST_RUN of %zu bytes: %s", f->size, strerror(-r));
    }
    left->size = o.data_size_out;
    return (int) o.retval;
}

static bool is_wired(const struct cluster *c, uint32_t ip)
{
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->pods[i].ip == ip) {
            return true;
        }
    }
    return false;
}

/* As it came by the wire: from_wire takes what is for a pod here, and leaves all else as it is to
 * the VXLAN device.  Whether it took it. */
static bool run_from_wire(struct program_side *s, const struct cluster *c, const struct frame *f,
                          struct __sk_buff *after, struct frame *left, int *ret_action)
{
    struct wire_ends ends = {f->outer_src, HOST(1), c->net.vxlan_port, f->tunnel_id};
    struct frame outer = *f;
    uint8_t ecn = f->bytes[WIRE_ETH + 1] & 3, tos = (uint8_t) (below(64) << 2);
    tos |= chance(50) ? ecn : chance(50) ? 2 : 0;
    outer.size = wire_put(&ends, tos, f->bytes, f->size, outer.bytes);
    bool spoiled = chance(30);
    if (spoiled) {
        wire_spoil(below(WIRE_DOUBTS), outer.bytes);
    }
    bool ours = !spoiled && get16(f, 12) == MODEL_ETH_IP4 && is_wired(c, get32(f, 30));
    *ret_action = run(s->program.from_wire, &outer, after, left);
    if (!ours) {
        assert_int_equal(*ret_action, TC_ACT_UNSPEC);
        assert_int_equal(left->size, outer.size);
        assert_memory_equal(left->bytes, outer.bytes, outer.size);
    }
    return ours;
}

/* Its outer header is right, and comes off, if it is to have one. */
static void take_outer(struct program_side *s, const struct cluster *c, size_t size, uint32_t vtep,
                       uint32_t vnid, struct strbuf *out, struct frame *left)
{
    struct wire_ends ends = {HOST(1), vtep, c->net.vxlan_port, vnid};
    const struct path *path = &c->paths[vtep - HOST(0)];
    if (!s->is_direct || !path->ifindex || size - WIRE_ETH + WIRE_OUTER > path->mtu) {
        return;
    }
    struct frame inner = {.size = size};
    memcpy(inner.bytes, left->bytes + WIRE_OUTER, inner.size);
    const char *wrong = wire_check(&ends, inner.bytes, inner.size, left->bytes, left->size);
    if (wrong) {
        strbuf_addf(out, ", but %s of the outer header is wrong", wrong);
        return;
    }
    memcpy(left->bytes, inner.bytes, inner.size);
    left->size = inner.size;
    s->sent++;
}

void program_side_observe(struct program_side *s, const struct cluster *c, const struct frame *f,
                          struct strbuf *out, struct frame *left)
{
    struct __sk_buff after = {0};
    int action, fd = f->entry == MODEL_FROM_PORT     ? s->program.from_pod
                     : f->entry == MODEL_FROM_TUNNEL ? s->program.from_tunnel
                                                     : s->program.from_host;
    bool by_wire = s->is_direct && f->entry == MODEL_FROM_TUNNEL &&
                   run_from_wire(s, c, f, &after, left, &action);
    if (by_wire) {
        s->taken++;
    } else {
        action = run(fd, f, &after, left);
    }
    uint32_t verdict = after.cb[EBPF_CB_VERDICT] & 0xffff, target = after.cb[EBPF_CB_TARGET];
    uint32_t id = after.cb[EBPF_CB_TUNNEL_ID];
    if (verdict == EBPF_DROP || verdict == EBPF_REFUSED) {
        assert_int_equal(action, verdict == EBPF_DROP ? TC_ACT_SHOT : TC_ACT_REDIRECT);
        strbuf_addf(out, "drop: %s%s",
                    model_cause_name(encode_cause(after.cb[EBPF_CB_VERDICT] >> 16)),
                    verdict == EBPF_DROP ? "" : ", refused");
        return;
    }
    assert_int_equal(action, TC_ACT_REDIRECT);
    if (verdict == EBPF_DELIVER) {
        strbuf_addf(out, "deliver to %u", target);
    } else if (verdict == EBPF_HOST) {
        strbuf_addf(out, "host by %u", target);
    } else if (verdict == EBPF_TUNNEL || f->entry == MODEL_FROM_TUNNEL) {
        strbuf_addf(out, "%s to %s id %u", verdict == EBPF_TUNNEL ? "tunnel" : "answer by tunnel",
                    IP4_TEXT(target), id);
        if (verdict == EBPF_TUNNEL) {
            take_outer(s, c, f->size, target, id, out, left);
        }
    } else {
        strbuf_addf(out, "answer to %u", target);
    }
}
