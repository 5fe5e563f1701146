/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/services/table.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <linux/icmp.h>
#include <linux/if.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/rtnetlink.h>
#include <stdio.h>

#define TUN "tun0"
#define REFUSE "refuse"
#define DISCARD "discard"
#define NODE_PORTS "node-ports"
#define NODE_PORTS_OWN "node-ports-own"
#define POD "from-pods"
#define READ_TRIES 16       /* Attempts of reading while other software changes the table. */
#define CLIENTS_MAX 1000000 /* Maximum of clients with session affinity; more are balanced again. */

/* After the host ports of "ip tenet", before and after all other software's NAT of that kind. */
enum { PRIORITY_DNAT = -95, PRIORITY_SNAT = 95 };

enum set {
    FRONTENDS,
    OUTSIDE_FRONTENDS,
    ENDPOINTS,
    OUTSIDE_ENDPOINTS,
    STICKY,
    MEMBERS,
    RESTRICTED,
    ALLOWED,
    PROXY_PORTS,
    N_ELEMENTS_SETS,
};
static_assert((int) N_ELEMENTS_SETS == (int) SERVICES_N_SETS, "the header has the number");
const char *const services_sets[] = {
    "frontends", "outside-frontends", "endpoints", "outside-endpoints", "sticky",
    "members",   "restricted",        "allowed",   "proxy-ports"};

enum {
    FRONTEND_SIZE = 12,
    ENDPOINT_SIZE = 16,
    MEMBER_SIZE = 20,
    TARGET_SIZE = 8,
    ALLOWED_SIZE = 16
};
enum { PORT_SIZE = 2 };
enum { R0, R1, R2, R3, R4, R5 };

/* ---- rules ---- */

struct chain {
    struct nft_batch *batch;
    const char *name;
    struct services_digest *digest;
    size_t n;
};

static void digest_rule(struct services_digest *d, const char *chain, size_t number, uint64_t mark)
{
    struct {
        uint64_t chain, number, mark;
    } all = {hash_bytes(chain, strlen(chain)), number, mark};
    d->rules += hash_bytes(&all, sizeof all);
    d->n_rules++;
}

static void begin_chain(struct chain *c, struct nft_batch *b, const char *name,
                        const struct nft_base_chain *base, struct services_digest *d)
{
    *c = (struct chain){.batch = b, .name = name, .digest = d};
    nft_add_chain(b, name, base);
    if (d) {
        d->n_chains++;
    }
}

static struct nft_batch *rule(struct chain *c)
{
    nft_rule_begin(c->batch, c->name);
    return c->batch;
}

static void end(struct chain *c)
{
    uint64_t mark = nft_rule_end(c->batch);
    if (c->digest) {
        digest_rule(c->digest, c->name, c->n, mark);
    }
    c->n++;
}

static void end_goto(struct chain *c, const char *chain)
{
    nft_verdict(c->batch, NFT_GOTO, chain);
    end(c);
}

/* Replaces the packet's address by that of nodePorts. */
static void clear_address(struct nft_batch *b, uint32_t reg)
{
    nft_bitwise(b, reg, &(uint32_t){0}, &(uint32_t){0}, 4);
}

/* Loads the frontend of the packet into three registers. */
static void load_frontend(struct nft_batch *b, uint32_t reg, bool node)
{
    nft_load_daddr(b, reg);
    if (node) {
        clear_address(b, reg);
    }
    nft_load_meta(b, NFT_META_L4PROTO, reg + 1);
    nft_load_dport(b, reg + 2);
}

/* Looks it up twice in a row: before Linux 6.17 a lookup during a change of the same element may
 * find neither the old one nor the new one. */
static void look_up_frontend(struct chain *c, enum set map, bool node)
{
    struct nft_batch *b = rule(c);
    load_frontend(b, R0, node);
    nft_lookup_verdict(b, services_sets[map], R0);
    end(c);
}

static void match_prefix(struct nft_batch *b, struct ip4_prefix p)
{
    uint32_t mask = htonl(prefix_mask(p.len)), addr = htonl(p.addr), zero = 0;
    nft_bitwise(b, R0, &mask, &zero, sizeof mask);
    nft_compare(b, R0, NFT_CMP_EQ, &addr, sizeof addr);
}

static void match_link(struct nft_batch *b, enum nft_meta_keys key, const char *name)
{
    char link[IFNAMSIZ] = "";
    snprintf(link, sizeof link, "%s", name);
    nft_load_meta(b, key, R0);
    nft_compare(b, R0, NFT_CMP_EQ, link, sizeof link);
}

static void match_mark(struct nft_batch *b, uint32_t mark)
{
    nft_load_meta(b, NFT_META_MARK, R0);
    nft_bitwise(b, R0, &mark, &(uint32_t){0}, sizeof mark);
    nft_compare(b, R0, NFT_CMP_EQ, &mark, sizeof mark);
}

static void match_local(struct nft_batch *b)
{
    nft_load_daddr_type(b, R0);
    nft_compare(b, R0, NFT_CMP_EQ, &(uint32_t){RTN_LOCAL}, 4);
}

static void create_fixed(struct nft_batch *b, const struct services_base *base,
                         struct services_digest *d)
{
    struct chain c;
    begin_chain(&c, b, REFUSE, NULL, d);
    rule(&c);
    nft_load_meta(b, NFT_META_L4PROTO, R0);
    nft_compare(b, R0, NFT_CMP_EQ, &(uint8_t){SDN_TCP}, 1);
    nft_reject(b, NFT_REJECT_TCP_RST, 0);
    end(&c);
    rule(&c);
    nft_reject(b, NFT_REJECT_ICMP_UNREACH, ICMP_PORT_UNREACH);
    end(&c);

    begin_chain(&c, b, DISCARD, NULL, d);
    rule(&c);
    nft_verdict(b, NF_DROP, NULL);
    end(&c);

    begin_chain(&c, b, POD, NULL, d);
    for (size_t i = 0; i < base->n_cluster && base->mode == SERVICES_NETFILTER; i++) {
        rule(&c);
        nft_load_saddr(b, R0);
        match_prefix(b, base->cluster[i]);
        end_goto(&c, REFUSE);
    }

    begin_chain(&c, b, NODE_PORTS, NULL, d);
    look_up_frontend(&c, OUTSIDE_FRONTENDS, true);
    look_up_frontend(&c, FRONTENDS, true);
    look_up_frontend(&c, FRONTENDS, true);
    begin_chain(&c, b, NODE_PORTS_OWN, NULL, d);
    look_up_frontend(&c, FRONTENDS, true);
    look_up_frontend(&c, FRONTENDS, true);
}

static void jump_node_ports(struct chain *c, const char *chain)
{
    struct nft_batch *b = rule(c);
    match_local(b);
    nft_verdict(b, NFT_JUMP, chain);
    end(c);
}

/* Rejects packets to the service network that belong to no service. */
static void refuse_unknown(struct chain *c, const struct services_base *base)
{
    if (base->service.len) {
        struct nft_batch *b = rule(c);
        nft_load_daddr(b, R0);
        match_prefix(b, base->service);
        end_goto(c, REFUSE);
    }
}

/* The frontend of the packet before it was translated. */
static void load_original(struct nft_batch *b, uint32_t reg, bool node)
{
    nft_load_ct(b, NFT_CT_DST_IP, true, reg);
    if (node) {
        clear_address(b, reg);
    }
    nft_load_meta(b, NFT_META_L4PROTO, reg + 1);
    nft_load_ct(b, NFT_CT_PROTO_DST, true, reg + 2);
}

static void remember(struct chain *c, bool node)
{
    const uint32_t dnat = IPS_DST_NAT, none = 0;
    struct nft_batch *b = rule(c);
    nft_load_ct(b, NFT_CT_STATUS, false, R0);
    nft_bitwise(b, R0, &dnat, &none, sizeof dnat);
    nft_compare(b, R0, NFT_CMP_NEQ, &none, sizeof none);
    load_original(b, R0, node);
    nft_lookup_verdict(b, services_sets[STICKY], R0);
    end(c);
}

/* Accepts only redirected packets at the proxy's UDP sockets: a client that sends there directly
 * would bypass the isolation of br0 and the source ranges. (The TCP sockets check this
 * themselves.) */
static void guard_proxy(struct nft_batch *b, struct services_digest *d)
{
    const uint32_t dnat = IPS_DST_NAT, none = 0;
    struct chain c;
    begin_chain(&c, b, "input", &(struct nft_base_chain){"filter", NF_INET_LOCAL_IN, 0}, d);
    rule(&c);
    nft_load_meta(b, NFT_META_L4PROTO, R0);
    nft_compare(b, R0, NFT_CMP_EQ, &(uint8_t){SDN_UDP}, 1);
    nft_load_ct(b, NFT_CT_STATUS, false, R0); /* The tunnel's packets are not tracked. */
    nft_bitwise(b, R0, &dnat, &none, sizeof dnat);
    nft_compare(b, R0, NFT_CMP_EQ, &none, sizeof none);
    nft_load_dport(b, R0);
    nft_lookup(b, services_sets[PROXY_PORTS], R0, false);
    nft_verdict(b, NF_DROP, NULL);
    end(&c);
}

/* The answer to a packet whose source port is that of the tunnels would be taken for a packet of a
 * tunnel, and get lost: one connection in 64,512, if all ports were drawn from. */
static void masquerade(struct nft_batch *b, uint16_t tunnel_port)
{
    const bool high = tunnel_port < 32768;
    const uint16_t first = htons(high ? 32768 : 1024), last = htons(high ? 65535 : 32767);
    nft_load_value(b, R0, &first, sizeof first);
    nft_load_value(b, R1, &last, sizeof last);
    nft_masquerade(b, R0, R1);
}

static void create_hooks(struct nft_batch *b, const struct services_base *base,
                         struct services_digest *d)
{
    struct chain c;
    begin_chain(&c, b, "prerouting",
                &(struct nft_base_chain){"nat", NF_INET_PRE_ROUTING, PRIORITY_DNAT}, d);
    rule(&c);
    load_frontend(b, R0, false);
    nft_load_saddr(b, R3);
    nft_lookup(b, services_sets[RESTRICTED], R0, false);
    nft_lookup(b, services_sets[ALLOWED], R0, true);
    nft_verdict(b, NF_DROP, NULL);
    end(&c);
    look_up_frontend(&c, OUTSIDE_FRONTENDS, false);
    look_up_frontend(&c, FRONTENDS, false);
    look_up_frontend(&c, FRONTENDS, false);
    jump_node_ports(&c, NODE_PORTS);
    refuse_unknown(&c, base);

    begin_chain(&c, b, "output", &(struct nft_base_chain){"nat", NF_INET_LOCAL_OUT, PRIORITY_DNAT},
                d);
    look_up_frontend(&c, FRONTENDS, false);
    look_up_frontend(&c, FRONTENDS, false);
    jump_node_ports(&c, NODE_PORTS_OWN);
    refuse_unknown(&c, base);

    begin_chain(&c, b, "postrouting",
                &(struct nft_base_chain){"nat", NF_INET_POST_ROUTING, PRIORITY_SNAT}, d);
    remember(&c, false);
    remember(&c, true);
    /* The endpoint answers to the packet's source address, which must be this host's. */
    const uint32_t mark = SERVICES_MARK, all = UINT32_MAX;
    match_mark(b = rule(&c), mark);
    nft_load_meta(b, NFT_META_MARK, R0);
    nft_bitwise(b, R0, &all, &mark, sizeof mark);
    nft_store_meta(b, NFT_META_MARK, R0);
    masquerade(b, base->tunnel_port);
    end(&c);
    guard_proxy(b, d);
}

/* ---- sets ---- */

#define FRONTEND_TYPE NFT_TYPE_AND(NFT_TYPE_AND(NFT_TYPE_IP, NFT_TYPE_PROTOCOL), NFT_TYPE_PORT)
#define TARGET_TYPE NFT_TYPE_AND(NFT_TYPE_IP, NFT_TYPE_PORT)

static void create_sets(struct nft_batch *b)
{
    const struct nft_set_def frontends = {.flags = NFT_SET_MAP,
                                          .key_type = FRONTEND_TYPE,
                                          .key_size = FRONTEND_SIZE,
                                          .data_type = NFT_DATA_VERDICT,
                                          .data_size = TARGET_SIZE};
    const struct nft_set_def endpoints = {.flags = NFT_SET_MAP,
                                          .key_type = NFT_TYPE_AND(FRONTEND_TYPE, NFT_TYPE_MARK),
                                          .key_size = ENDPOINT_SIZE,
                                          .data_type = TARGET_TYPE,
                                          .data_size = TARGET_SIZE};
    const struct nft_set_def members = {
        .key_type = NFT_TYPE_AND(NFT_TYPE_AND(FRONTEND_TYPE, NFT_TYPE_IP), NFT_TYPE_PORT),
        .key_size = MEMBER_SIZE};
    const struct nft_set_def restricted = {.key_type = FRONTEND_TYPE, .key_size = FRONTEND_SIZE};
    const struct nft_set_def allowed = {.flags = NFT_SET_INTERVAL | NFT_SET_CONCAT,
                                        .key_type = NFT_TYPE_AND(FRONTEND_TYPE, NFT_TYPE_IP),
                                        .key_size = ALLOWED_SIZE,
                                        .fields = {4, 1, 2, 4},
                                        .n_fields = 4};
    const struct nft_set_def ports = {.key_type = NFT_TYPE_PORT, .key_size = PORT_SIZE};
    const struct nft_set_def *const kinds[SERVICES_N_SETS] = {
        [FRONTENDS] = &frontends,   [OUTSIDE_FRONTENDS] = &frontends,
        [ENDPOINTS] = &endpoints,   [OUTSIDE_ENDPOINTS] = &endpoints,
        [STICKY] = &frontends,      [MEMBERS] = &members,
        [RESTRICTED] = &restricted, [ALLOWED] = &allowed,
        [PROXY_PORTS] = &ports};
    for (size_t i = 0; i < SERVICES_N_SETS; i++) {
        struct nft_set_def def = *kinds[i];
        def.name = services_sets[i];
        nft_add_set(b, &def);
    }
    nft_add_set(b, &(struct nft_set_def){.name = SERVICES_AFFINITY,
                                         .flags = NFT_SET_MAP | NFT_SET_TIMEOUT | NFT_SET_EVAL,
                                         .key_type = NFT_TYPE_IP << 18 | FRONTEND_TYPE,
                                         .key_size = ENDPOINT_SIZE,
                                         .data_type = TARGET_TYPE,
                                         .data_size = TARGET_SIZE,
                                         .size = CLIENTS_MAX});
}

void services_table_create(struct nft_batch *b, const struct services_base *base,
                           struct services_digest *d)
{
    /* Creates it first, so that deleting it cannot fail: together a replacement. */
    nft_add_table(b);
    nft_delete_table(b);
    nft_add_table(b);
    create_sets(b);
    create_fixed(b, base, d);
    create_hooks(b, base, d);
}

/* ---- chains of frontends ---- */

void services_chain_name(const struct services_chain *c, char ret[SERVICES_CHAIN_SIZE])
{
    static const char *const kinds[] = {[SERVICES_TO_ENDPOINT] = "to",
                                        [SERVICES_TO_PROXY] = "port",
                                        [SERVICES_REMEMBER] = "remember"};
    snprintf(ret, SERVICES_CHAIN_SIZE, "%s-%u%s%s%s", kinds[c->kind], c->number,
             c->view == SDN_FROM_OUTSIDE ? "-out" : "", c->node ? "-node" : "",
             c->sticky ? "-sticky" : "");
}

/* False: clients of 'v' are rejected or dropped. */
static bool chain_to(const struct sdn_frontend *f, enum sdn_view v, int proxy_port,
                     struct services_chain *ret)
{
    bool waits = f->idle && proxy_port > 0; /* Sent to the proxy until there are endpoints. */
    if (!proxy_port || (!f->n[v] && !waits)) {
        return false;
    }
    *ret =
        proxy_port == SERVICES_TRANSLATED
            ? (struct services_chain){.kind = SERVICES_TO_ENDPOINT,
                                      .view = v,
                                      .sticky = f->affinity_s != 0,
                                      .node = f->key.ip == 0,
                                      .number = f->n[v]}
            : (struct services_chain){.kind = SERVICES_TO_PROXY, .number = (uint32_t) proxy_port};
    return true;
}

static struct services_chain chain_remember(const struct sdn_frontend *f)
{
    return (struct services_chain){
        .kind = SERVICES_REMEMBER, .node = f->key.ip == 0, .number = f->affinity_s};
}

static enum sdn_view end_of_views(const struct sdn_frontend *f)
{
    return f->split ? SDN_N_VIEWS : SDN_FROM_OUTSIDE;
}

size_t services_chains_of(const struct sdn_frontend *f, int proxy_port,
                          struct services_chain ret[SERVICES_MAX_CHAINS])
{
    size_t n = 0;
    for (enum sdn_view v = 0; v < end_of_views(f); v++) {
        n += chain_to(f, v, proxy_port, &ret[n]);
    }
    if (f->affinity_s && proxy_port == SERVICES_TRANSLATED) {
        ret[n++] = chain_remember(f);
    }
    return n;
}

static enum set of_view(enum set first, enum sdn_view v)
{
    return (enum set)((unsigned) first + (unsigned) v);
}

/* The packet goes to an endpoint of a sticky frontend. */
static void create_remember(struct chain *c, const struct services_chain *of)
{
    struct nft_batch *b;
    for (int stale = 1; stale >= 0; stale--) {
        b = rule(c);
        if (stale) {
            load_original(b, R0, of->node);
            nft_load_daddr(b, R3);
            nft_load_dport(b, R4);
            nft_lookup(b, services_sets[MEMBERS], R0, true);
        }
        nft_load_ct(b, NFT_CT_SRC_IP, true, R0);
        load_original(b, R1, false);
        nft_load_daddr(b, R4);
        nft_load_dport(b, R5);
        nft_update_element(b, SERVICES_AFFINITY,
                           stale ? NFT_DYNSET_OP_DELETE : NFT_DYNSET_OP_UPDATE, R0, R4,
                           stale ? 0 : (uint64_t) of->number * 1000);
        if (stale) {
            nft_verdict(b, NF_DROP, NULL);
        }
        end(c);
    }
}

static void jump_from_pods(struct chain *c)
{
    struct nft_batch *b = rule(c);
    match_link(b, NFT_META_IIFNAME, TUN);
    nft_verdict(b, NFT_JUMP, POD);
    end(c);
}

static void create_to_proxy(struct chain *c, const struct services_chain *of)
{
    jump_from_pods(c);
    struct nft_batch *b = rule(c);
    nft_load_value(b, R0, &(uint16_t){htons((uint16_t) of->number)}, 2);
    nft_redirect(b, R0);
    end(c);
}

static void create_to_endpoint(struct chain *c, const struct services_chain *of)
{
    const uint32_t keep = ~SERVICES_MARK, mark = SERVICES_MARK;
    struct nft_batch *b = c->batch;
    jump_from_pods(c);
    if (of->view == SDN_FROM_ANYWHERE) {
        rule(c);
        nft_load_meta(b, NFT_META_MARK, R0);
        nft_bitwise(b, R0, &keep, &mark, sizeof mark);
        nft_store_meta(b, NFT_META_MARK, R0);
        end(c);
    }
    if (of->sticky) {
        rule(c);
        nft_load_saddr(b, R0);
        load_frontend(b, R1, false);
        nft_lookup_value(b, SERVICES_AFFINITY, R0, R4);
        nft_dnat(b, R4, R5);
        end(c);
    }
    /* The second pass is for packets during a change: old chain, new endpoints. */
    for (int again = 0; again < 2; again++) {
        rule(c);
        load_frontend(b, R0, of->node);
        nft_load_random(b, again ? 1 : of->number, R3);
        nft_lookup_value(b, services_sets[of_view(ENDPOINTS, of->view)], R0, R4);
        nft_dnat(b, R4, R5);
        end(c);
    }
    rule(c);
    nft_verdict(b, NF_DROP, NULL);
    end(c);
}

void services_chain_create(struct nft_batch *b, const struct services_chain *of,
                           struct services_digest *d)
{
    static void (*const create[])(struct chain * c, const struct services_chain *of) = {
        [SERVICES_TO_ENDPOINT] = create_to_endpoint,
        [SERVICES_TO_PROXY] = create_to_proxy,
        [SERVICES_REMEMBER] = create_remember};
    char name[SERVICES_CHAIN_SIZE];
    struct chain c;
    services_chain_name(of, name);
    begin_chain(&c, b, name, NULL, d);
    create[of->kind](&c, of);
}

/* ---- elements ---- */

static void put32(uint8_t *p, uint32_t v)
{
    v = htonl(v);
    memcpy(p, &v, sizeof v);
}

static void put16(uint8_t *p, uint16_t v)
{
    v = htons(v);
    memcpy(p, &v, sizeof v);
}

static void put_target(uint8_t *p, const struct sdn_target *t)
{
    put32(p, t->ip);
    put16(p + 4, t->port);
}

static struct services_element new_element(enum set set, const struct sdn_frontend *f,
                                           size_t key_size)
{
    struct services_element el = {.set = (uint8_t) set, .key_size = (uint8_t) key_size};
    put32(el.key, f->key.ip);
    el.key[4] = f->key.protocol;
    put16(el.key + 8, f->key.port);
    return el;
}

static void set_chain(struct services_element *el, const struct services_chain *c)
{
    char *name = (char *) el->data;
    services_chain_name(c, name);
    el->data_size = (uint8_t) strlen(name);
}

static void each_frontend(const struct sdn_frontend *f, enum sdn_view v, int proxy_port,
                          services_element_fn *fn, void *ctx)
{
    struct services_element el = new_element(of_view(FRONTENDS, v), f, FRONTEND_SIZE);
    struct services_chain c;
    if (chain_to(f, v, proxy_port, &c)) {
        set_chain(&el, &c);
    } else {
        const char *name = f->elsewhere[v] ? DISCARD : REFUSE;
        el.data_size = (uint8_t) strlen(name);
        memcpy(el.data, name, el.data_size);
    }
    fn(ctx, &el);
}

static void each_endpoint(const struct sdn_frontend *f, enum sdn_view v, services_element_fn *fn,
                          void *ctx)
{
    for (uint32_t i = 0; i < f->n[v]; i++) {
        struct services_element el = new_element(of_view(ENDPOINTS, v), f, ENDPOINT_SIZE);
        memcpy(el.key + FRONTEND_SIZE, &i, sizeof i);
        put_target(el.data, &sdn_frontend_targets(f, v)[i]);
        el.data_size = TARGET_SIZE;
        fn(ctx, &el);
    }
}

static void each_member(const struct sdn_frontend *f, unsigned sets, services_element_fn *fn,
                        void *ctx)
{
    struct services_element el = new_element(STICKY, f, FRONTEND_SIZE);
    struct services_chain c = chain_remember(f);
    set_chain(&el, &c);
    if (sets >> STICKY & 1) {
        fn(ctx, &el);
    }
    /* Clients from outside have a subset of the others' targets. */
    for (uint32_t i = 0; sets >> MEMBERS & 1 && i < f->n[SDN_FROM_ANYWHERE]; i++) {
        el = new_element(MEMBERS, f, MEMBER_SIZE);
        put_target(el.key + FRONTEND_SIZE, &f->targets[i]);
        fn(ctx, &el);
    }
}

static void each_range(const struct sdn_frontend *f, unsigned sets, services_element_fn *fn,
                       void *ctx)
{
    struct services_element el = new_element(RESTRICTED, f, FRONTEND_SIZE);
    if (sets >> RESTRICTED & 1) {
        fn(ctx, &el);
    }
    for (uint32_t i = 0; sets >> ALLOWED & 1 && i < f->n_ranges; i++) {
        el = new_element(ALLOWED, f, 2 * ALLOWED_SIZE);
        memcpy(el.key + ALLOWED_SIZE, el.key, FRONTEND_SIZE);
        put32(el.key + FRONTEND_SIZE, sdn_frontend_ranges(f)[i].addr);
        put32(el.key + ALLOWED_SIZE + FRONTEND_SIZE, prefix_last(sdn_frontend_ranges(f)[i]));
        fn(ctx, &el);
    }
}

void services_elements(const struct sdn_frontend *f, int proxy_port, unsigned sets,
                       services_element_fn *fn, void *ctx)
{
    bool translated = proxy_port == SERVICES_TRANSLATED;
    for (enum sdn_view v = 0; v < end_of_views(f); v++) {
        if (sets >> of_view(FRONTENDS, v) & 1) {
            each_frontend(f, v, proxy_port, fn, ctx);
        }
        if (translated && sets >> of_view(ENDPOINTS, v) & 1) {
            each_endpoint(f, v, fn, ctx);
        }
    }
    if (translated && f->affinity_s) {
        each_member(f, sets, fn, ctx);
    }
    if (f->restricted) {
        each_range(f, sets, fn, ctx);
    }
    if (f->key.protocol == SDN_UDP && proxy_port > 0 && sets >> PROXY_PORTS & 1) {
        struct services_element el = {.set = PROXY_PORTS, .key_size = PORT_SIZE};
        put16(el.key, (uint16_t) proxy_port);
        fn(ctx, &el);
    }
}

/* Verdict by which elements of a set refer to chains; 0: none. */
static int verdict_of(uint8_t set)
{
    return set == FRONTENDS || set == OUTSIDE_FRONTENDS ? NFT_GOTO : set == STICKY ? NFT_JUMP : 0;
}

void services_element_put(struct nft_batch *b, const struct services_element *el)
{
    bool interval = el->set == ALLOWED;
    struct nft_element out = {.key = el->key,
                              .key_end = interval ? el->key + ALLOWED_SIZE : NULL,
                              .key_size = interval ? ALLOWED_SIZE : el->key_size};
    if (verdict_of(el->set)) {
        out.verdict = verdict_of(el->set);
        out.chain = (const char *) el->data;
    } else if (el->data_size) {
        out.data = el->data;
        out.data_size = el->data_size;
    }
    nft_element(b, &out);
}

void services_element_digest(struct services_digest *d, const struct services_element *el)
{
    d->elements += hash_bytes(el, sizeof *el);
    d->n_elements++;
}

/* ---- reading the kernel's table ---- */

struct reading {
    struct services_digest *digest;
    uint8_t set;
    char chain[NFT_NAME_MAX]; /* Chain of the previous rule. */
    size_t n;
};

static void on_chain(void *ctx, const char *name, bool drops)
{
    struct reading *rd = ctx;
    rd->digest->n_chains++;
    rd->digest->odd = rd->digest->odd || drops;
}

static void on_rule(void *ctx, const char *chain, uint64_t mark)
{
    struct reading *rd = ctx;
    if (!streq(rd->chain, chain)) {
        snprintf(rd->chain, sizeof rd->chain, "%s", chain);
        rd->n = 0;
    }
    digest_rule(rd->digest, chain, rd->n++, mark);
}

static void on_element(void *ctx, const struct nft_read_element *in)
{
    struct reading *rd = ctx;
    struct services_element el = {.set = rd->set};
    size_t chain_size = in->chain ? strlen(in->chain) : 0;
    if (in->key_size + in->key_end_size > sizeof el.key || in->data_size > sizeof el.data ||
        chain_size >= sizeof el.data || (in->chain && in->verdict != verdict_of(rd->set))) {
        rd->digest->odd = true;
        return;
    }
    el.key_size = (uint8_t) (in->key_size + in->key_end_size);
    memcpy(el.key, in->key, in->key_size);
    if (in->key_end_size) {
        memcpy(el.key + in->key_size, in->key_end, in->key_end_size);
    }
    el.data_size = (uint8_t) (in->chain ? chain_size : in->data_size);
    if (el.data_size) {
        memcpy(el.data, in->chain ? (const void *) in->chain : in->data, el.data_size);
    }
    services_element_digest(rd->digest, &el);
}

static int read_once(struct nft *n, struct services_digest *ret, struct err *e)
{
    struct services_digest d = {0};
    struct reading rd = {.digest = &d};
    uint32_t flags = 0;
    int r = nft_table_flags(n, SERVICES_TABLE, &flags, e);
    d.odd = flags != 0;
    r = r < 0 ? r : nft_list_chains(n, SERVICES_TABLE, on_chain, &rd, e);
    r = r < 0 ? r : nft_list_rules(n, SERVICES_TABLE, on_rule, &rd, e);
    for (uint8_t i = 0; r == 0 && i < SERVICES_N_SETS; i++) {
        rd.set = i;
        r = nft_list_elements(n, SERVICES_TABLE, services_sets[i], on_element, &rd, e);
    }
    if (r == 0) {
        *ret = d;
    }
    return r;
}

int services_table_read(struct nft *n, struct services_digest *ret, struct err *e)
{
    int r = -EINTR;
    for (int i = 0; r == -EINTR && i < READ_TRIES; i++) {
        r = read_once(n, ret, e);
    }
    return r;
}
