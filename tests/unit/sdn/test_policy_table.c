/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy as tables: what a reader finds by the lookups of sdn/policy_table.h is what the model says, whatever has
 * happened before, and so is what the rules say that policy_decide asks; and how much a change touches.
 *
 * TENET_POLICY_CLUSTERS: how many random ones (default 300).  Each run begins with another seed, which it prints;
 * TENET_POLICY_SEED repeats one. */
#include "base/mem.h"
#include "base/str.h"
#include "random_policies.h"
#include "rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
static const struct ip4_prefix local = {IP(10, 128, 0, 0), 23};

/* ---- tables as text ---- */

struct gone_block {
    unsigned dir;
    struct ip4_prefix prefix;
    uint32_t id;
};
struct tables {
    struct smap rows;
    size_t told, done;
    struct gone_block *gone;
    size_t n_gone, cap_gone;
};

static void set(struct tables *t, char *key, char *value)
{
    t->told++;
    if (value) {
        smap_set(&t->rows, key, value);
    } else {
        smap_remove(&t->rows, key);
    }
    free(key);
}

static char *address_key(uint32_t ip)
{
    return xasprintf("address %s", IP4_TEXT(ip));
}

static char *block_key(unsigned dir, struct ip4_prefix p)
{
    return xasprintf("block %u %s", dir, PREFIX_TEXT(p));
}

static char *pair_key(unsigned dir, unsigned kind, uint32_t subject, uint32_t peer)
{
    return xasprintf("pair %u %u %u %u", dir, kind, subject, peer);
}

static char *ports_key(uint32_t id, unsigned proto, unsigned len, unsigned port)
{
    return xasprintf("ports %u %u %u/%u", id, proto, port, len);
}

static void set_address(void *ctx, uint32_t ip, const struct policy_classes *c)
{
    set(ctx, address_key(ip),
        c ? xasprintf("%u %u %u %u %d", c->subject[0], c->subject[1], c->peer[0], c->peer[1],
                      c->unknown)
          : NULL);
}

static void set_block(void *ctx, enum policy_direction d, struct ip4_prefix p, uint32_t id,
                      bool there)
{
    struct tables *t = ctx;
    if (!there) {
        t->gone = grow(t->gone, &t->cap_gone, t->n_gone + 1, sizeof *t->gone);
        t->gone[t->n_gone++] = (struct gone_block){d, p, id};
    }
    set(ctx, block_key(d, p), there ? xasprintf("%u", id) : NULL);
}

static void set_pair(void *ctx, const struct policy_pair_key *k, const struct policy_pair *v)
{
    set(ctx, pair_key(k->dir, k->kind, k->subject, k->peer),
        v ? xasprintf("%u %d", v->ports, v->isolated) : NULL);
}

static void set_ports(void *ctx, uint32_t id, const struct policy_port_verdict *rows, size_t n,
                      bool there)
{
    for (size_t i = 0; i < n; i++) {
        const struct policy_verdict *v = &rows[i].verdict;
        char *key = ports_key(id, rows[i].proto, rows[i].len, rows[i].port);
        assert_true(there == !smap_get(&((struct tables *) ctx)->rows, key));
        set(ctx, key,
            there ? xasprintf("%u %u %u %u %d", v->admin, v->admin_action, v->baseline,
                              v->baseline_action, v->allowed)
                  : NULL);
    }
}

static const char *find(const struct tables *t, char *key)
{
    const char *value = smap_get(&t->rows, key);
    free(key);
    return value;
}

static uint32_t block_of(const struct tables *t, unsigned dir, uint32_t ip, unsigned len)
{
    const char *row = NULL;
    for (len++; !row && len-- > 0;) {
        struct ip4_prefix p = {ip & prefix_mask((uint8_t) len), (uint8_t) len};
        row = find(t, block_key(dir, p));
    }
    return row ? (uint32_t) strtoul(row, NULL, 10) : 0;
}

static void set_done(void *ctx)
{
    struct tables *t = ctx;
    t->done++;
    /* Blocks that went said which is around them, if they did not come again. */
    for (size_t i = 0; i < t->n_gone; i++) {
        const struct gone_block *g = &t->gone[i];
        if (!find(t, block_key(g->dir, g->prefix))) {
            assert_int_equal(block_of(t, g->dir, g->prefix.addr, g->prefix.len), g->id);
        }
    }
    t->n_gone = 0;
}

static const struct policy_table_ops ops = {.set_address = set_address,
                                            .set_block = set_block,
                                            .set_pair = set_pair,
                                            .set_ports = set_ports,
                                            .done = set_done};

static void tables_init(struct tables *t)
{
    *t = (struct tables){0};
    smap_init(&t->rows, free);
}

static void tables_done(struct tables *t)
{
    smap_done(&t->rows);
    free(t->gone);
}

static struct policy *compiler(struct tables *t)
{
    struct policy *p = policy_new_anywhere(local, NULL, NULL);
    tables_init(t);
    policy_want_table(p, &ops, t);
    return p;
}

static void tables_equal(const struct tables *a, const struct tables *b)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &a->rows) {
        const char *there = smap_get(&b->rows, e->key);
        if (!there || !streq(there, e->value)) {
            fail_msg("%s: %s, and with a past %s", e->key, there ? there : "-", (char *) e->value);
        }
    }
    assert_int_equal(smap_size(&a->rows), smap_size(&b->rows));
}

/* ---- a reader ---- */

static void add_ports(const struct tables *t, uint32_t id, uint8_t proto, uint16_t port,
                      struct policy_verdict *to)
{
    const char *row = NULL;
    for (unsigned len = 17; !row && id && len-- > 0;) {
        unsigned mask = len ? 0xffffu << (16 - len) & 0xffff : 0;
        row = find(t, ports_key(id, proto, len, port & mask));
    }
    row = row || !id ? row : find(t, ports_key(id, 0, 0, 0));
    unsigned admin, admin_action, baseline, baseline_action, allowed;
    if (row) {
        assert_int_equal(sscanf(row, "%u %u %u %u %u", &admin, &admin_action, &baseline,
                                &baseline_action, &allowed),
                         5);
        struct policy_verdict v = {.admin = (uint16_t) admin,
                                   .admin_action = (uint8_t) admin_action,
                                   .baseline = (uint16_t) baseline,
                                   .baseline_action = (uint8_t) baseline_action,
                                   .allowed = allowed};
        policy_verdict_add(to, &v);
    }
}

static bool tables_allow(const struct tables *t, unsigned dir, uint32_t subject, uint32_t peer,
                         uint8_t proto, uint16_t port)
{
    struct policy_classes s = {0}, o = {0};
    struct policy_verdict v = {0};
    unsigned unknown = 0, ports, isolated, other;
    const char *row = find(t, address_key(subject));
    if (row) {
        sscanf(row, "%u %u %u %u %u", &s.subject[0], &s.subject[1], &s.peer[0], &s.peer[1],
               &unknown);
    }
    if (unknown || !s.subject[dir]) {
        return !unknown;
    }
    row = find(t, pair_key(dir, POLICY_ANYBODY, s.subject[dir], 0));
    assert_non_null(row); /* Each subject has one. */
    assert_int_equal(sscanf(row, "%u %u", &ports, &isolated), 2);
    add_ports(t, ports, proto, port, &v);
    row = find(t, address_key(peer));
    if (row) {
        sscanf(row, "%u %u %u %u %u", &o.subject[0], &o.subject[1], &o.peer[0], &o.peer[1],
               &unknown);
    }
    row = o.peer[dir] ? find(t, pair_key(dir, POLICY_POD, s.subject[dir], o.peer[dir])) : NULL;
    if (row && sscanf(row, "%u %u", &ports, &other) == 2) {
        add_ports(t, ports, proto, port, &v);
    }
    row = find(t, pair_key(dir, POLICY_BLOCK, s.subject[dir], block_of(t, dir, peer, 32)));
    if (row && sscanf(row, "%u %u", &ports, &other) == 2) {
        add_ports(t, ports, proto, port, &v);
    }
    return policy_verdict_allows(&v, isolated);
}

/* ---- random clusters ---- */

static uint64_t seed;

/* What the rules say when they are asked one by one. */
static bool rules_allow(const struct policy *p, enum model_way way, uint32_t subject, uint32_t peer,
                        uint8_t proto, uint16_t port)
{
    bool egress = way == MODEL_EGRESS;
    struct policy_decision d =
        policy_decide(p, egress ? POLICY_EGRESS : POLICY_INGRESS, egress ? subject : peer,
                      egress ? peer : subject, proto, port);
    CLEANUP_STRBUF struct strbuf by = STRBUF_INIT;
    assert_int_equal(policy_describe_decision(p, &d, &by), d.by != 0);
    assert_true(!d.selected || policy_describe(p, d.selected, &by));
    assert_int_equal(!d.by, d.reason == POLICY_NOT_SELECTED || d.reason == POLICY_UNDECIDED);
    return d.allowed;
}

static void ask(const struct tables *t, const struct policy *p, const struct random_policies *r,
                size_t *ret_denied)
{
    static const uint8_t protocols[] = {6, 17, 132, 1};
    static const uint16_t numbers[] = {80, 81, 443, 8080, 53, 1024, 65535, 1, 0};
    const struct model_policies *m = &r->model;
    for (size_t i = 0; i < 400; i++) {
        size_t s = rng() % m->n_endpoints;
        uint32_t peer = rng() % 4 ? m->endpoints[rng() % m->n_endpoints].ip : (uint32_t) rng();
        uint8_t proto = protocols[rng() % ARRAY_SIZE(protocols)];
        uint16_t port = rng() % 4 ? numbers[rng() % ARRAY_SIZE(numbers)] : (uint16_t) rng();
        enum model_way way = rng() % 2 ? MODEL_EGRESS : MODEL_INGRESS;
        if (!r->local[s]) {
            continue;
        }
        bool want = model_policy_allows(m, way, m->endpoints[s].ip, peer, proto, port);
        bool got = tables_allow(t, way == MODEL_EGRESS ? POLICY_EGRESS : POLICY_INGRESS,
                                m->endpoints[s].ip, peer, proto, port);
        bool decided = rules_allow(p, way, m->endpoints[s].ip, peer, proto, port);
        if (want != got || want != decided) {
            fail_msg("TENET_POLICY_SEED=%lu: %s, %s and %s, protocol %u port %u: model %d, tables "
                     "%d, rules %d",
                     (unsigned long) seed, way == MODEL_EGRESS ? "egress" : "ingress",
                     IP4_TEXT(m->endpoints[s].ip), IP4_TEXT(peer), proto, port, want, got, decided);
        }
        *ret_denied += !want;
    }
}

static void a_reader_of_the_tables_says_what_the_model_says(void **state)
{
    (void) state;
    uint64_t n = rng_setting("TENET_POLICY_CLUSTERS", 300);
    uint64_t first = rng_first_seed("TENET_POLICY_SEED", n, "clusters");
    size_t denied = 0;
    for (seed = first; seed < first + n; seed++) {
        struct random_policies r;
        struct tables used, fresh;
        rng_start(seed);
        random_policies_init(&r, rng);
        for (uint32_t i = 0; i < 6; i++) {
            random_policies_add(&r, local.addr + 2 + i, true, false);
        }
        for (uint32_t i = 0; i < 10; i++) {
            random_policies_add(&r, IP(10, 128, 4 + 2 * (i % 3), 3 + i), false, false);
        }
        random_policies_add(&r, IP(192, 168, 100, 2), false, true);
        random_policies_make(&r);
        struct policy *p = compiler(&used), *q = compiler(&fresh);
        random_policies_mislead(&r, p);
        random_policies_tell(&r, p);
        random_policies_tell(&r, q);
        policy_compile(p);
        policy_compile(q);
        tables_equal(&used, &fresh);
        ask(&used, p, &r, &denied);
        policy_free(p);
        policy_free(q);
        assert_int_equal(smap_size(&used.rows) + smap_size(&fresh.rows), 0);
        tables_done(&used);
        tables_done(&fresh);
    }
    assert_true(denied > n);
}

/* ---- how much ---- */

static void tell(struct policy *p, const char *text,
                 void (*fn)(struct policy *p, const char *ns, const char *name,
                            const struct json *obj),
                 const char *name)
{
    CLEANUP(json_free) struct json *obj = NULL;
    struct err e = {0};
    assert_int_equal(json_parse(text, strlen(text), &obj, &e), 0);
    fn(p, "red", name, obj);
}

static void tell_policy(struct policy *p, const char *ns, const char *name, const struct json *obj)
{
    struct err e = {0};
    assert_int_equal(policy_set_object(p, POLICY_NETWORK, ns, name, obj, &e), 0);
}

static void tell_pod(struct policy *p, unsigned i, bool here, const char *app)
{
    char name[16];
    uint32_t ip = here ? IP(10, 128, 0, 2) + i : IP(10, 128, 2, 2) + i;
    snprintf(name, sizeof name, "%c%u", here ? 'a' : 'b', i);
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"labels\":{\"app\":\"%s\",\"pod\":\"%s\"}},\"status\":{"
                  "\"podIP\":\"%s\"}}",
                  app, name, IP4_TEXT(ip));
    tell(p, text, policy_set_pod, name);
    if (here) {
        policy_attach(p, ip, "red", name);
    }
}

#define FROM_B                                                                            \
    "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"app\":\"a\"}},\"ingress\":[{\"from\"" \
    ":[{\"podSelector\":{\"matchLabels\":{\"app\":\"b\"}}}],\"ports\":[{\"port\":80}]}]}}"

static void rows_are_the_sum_of_pods_and_a_change_touches_its_own(void **state)
{
    (void) state;
    struct tables t;
    struct policy *p = compiler(&t);
    CLEANUP(json_free) struct json *ns = NULL;
    struct err e = {0};
    assert_int_equal(json_parse("{\"metadata\":{}}", 15, &ns, &e), 0);
    policy_set_namespace(p, "red", ns);
    for (unsigned i = 0; i < 200; i++) {
        tell_pod(p, i, true, "a");
        tell_pod(p, i, false, "b");
    }
    tell(p, FROM_B, tell_policy, "p");
    policy_compile(p);
    assert_int_equal(t.done, 1);
    /* 400 addresses; two pairs, of the subject with anybody and with the peer; one port. */
    assert_int_equal(smap_size(&t.rows), 403);
    t.told = 0;
    tell_pod(p, 7, false, "c");
    policy_compile(p);
    assert_int_equal(t.told, 1);
    tell_pod(p, 7, false, "b");
    policy_compile(p);
    assert_int_equal(t.told, 2);
    policy_compile(p);
    assert_int_equal(t.told, 2);
    policy_leave(p); /* Nobody hears what follows. */
    policy_free(p);
    assert_int_equal(smap_size(&t.rows), 403);
    tables_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_of_the_tables_says_what_the_model_says),
        cmocka_unit_test(rows_are_the_sum_of_pods_and_a_change_touches_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
