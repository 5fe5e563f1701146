/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF programs against the model: random networks, and frames as bytes, honest,
 * forged and malformed, which the kernel runs through the programs (BPF_PROG_TEST_RUN)
 * without any link.  They and sdn/model.c must say the same, down to the cause of a drop
 * and the bytes with which a frame leaves.
 *
 * TENET_EBPF_CLUSTERS: how many networks, 100 frames each (default 600).  Each run begins with
 * another seed, which it prints; TENET_EBPF_SEED repeats one.
 *
 * And all three ways: the same frames are given to a real Open vSwitch with our flows
 * (ofproto/trace), too.  TENET_THREE_FRAMES: how many (default 3,000; "make model"
 * takes a million). */
#include "base/mem.h"
#include "base/str.h"
#include "ebpf_fixture.h"
#include "frame_reader.h"
#include "program_side.h"
#include "random_frames.h"
#include "rng.h"
#include "third_side.h"
#include "tracked_frames.h"

#include <stdio.h>
#include <string.h>

#include "leave_out.h"

enum {
    DEFAULT_CLUSTERS = 600,
    FRAMES = 100,
};

static uint64_t seed;

/* ---- what the model says of bytes ---- */

static bool is_honest(const struct cluster *c, const struct frame *f)
{
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->pods[i].port == f->port) {
            return mac_equal(get_mac(f, 6), c->pods[i].mac) && get32(f, 26) == c->pods[i].ip;
        }
    }
    return false;
}

/* What is refused aloud: what has ports, and no options before them; a service that
 * sleeps is not dead. */
static bool may_be_told(const struct cluster *c, const struct frame *f,
                        const struct model_verdict *v)
{
    bool udp = f->bytes[23] == MODEL_PROTO_UDP;
    return (f->bytes[14] & 15) == 5 && (udp || f->bytes[23] == 6) && !(get16(f, 20) & 0x1fff) &&
           has_whole_l4(f) && v->cause != MODEL_SERVICE_IDLE && is_honest(c, f);
}

/* How it leaves, in words; and, changed in '*left', as what. */
static void expect(const struct cluster *c, const struct frame *f, const struct model_verdict *v,
                   struct strbuf *out, struct frame *left)
{
    switch (v->action) {
    case MODEL_DROP:
        strbuf_addf(out, "drop: %s", model_cause_name(v->cause));
        if (v->refused && may_be_told(c, f, v)) {
            strbuf_adds(out, ", refused");
        }
        break;
    case MODEL_DELIVER:
        strbuf_addf(out, "deliver to %u", v->port);
        memcpy(left->bytes, v->eth_dst.b, 6);
        break;
    case MODEL_TRANSLATE: /* The caller asks again with what it became. */
        fail();
        break;
    case MODEL_HOST:
        strbuf_addf(out, "host by %d", program_devices.tun);
        memcpy(left->bytes, v->eth_dst.b, 6);
        break;
    case MODEL_TUNNEL:
        strbuf_addf(out, "tunnel to %s id %u", IP4_TEXT(v->remote), v->tunnel_id);
        memcpy(left->bytes, v->eth_dst.b, 6);
        break;
    case MODEL_ANSWER:
        if (f->entry == MODEL_FROM_TUNNEL) {
            strbuf_addf(out, "answer by tunnel to %s id %u", IP4_TEXT(v->remote), v->tunnel_id);
        } else {
            strbuf_addf(out, "answer to %u",
                        f->entry == MODEL_FROM_PORT ? v->port : (uint32_t) program_devices.host);
        }
        /* RFC 826: the question's sender becomes the target. */
        memcpy(left->bytes, v->eth_dst.b, 6);
        memcpy(left->bytes + 6, v->answer_mac.b, 6);
        left->bytes[21] = 2;
        memcpy(left->bytes + 22, v->answer_mac.b, 6);
        memcpy(left->bytes + 28, f->bytes + 38, 4);
        memcpy(left->bytes + 32, f->bytes + 22, 6);
        memcpy(left->bytes + 38, f->bytes + 28, 4);
        break;
    }
}

/* ---- services ---- */

/* 'left' is as 'f' would be with these ends, and with checksums that are right if they were. */
static void check_sums(const struct frame *f, struct frame *left)
{
    bool none = f->bytes[23] == MODEL_PROTO_UDP && get16(f, checksum_of(f)) == 0;
    assert_int_equal(sum_of(f, true), sum_of(left, true));
    if (none) {
        assert_int_equal(get16(left, checksum_of(left)), 0);
    } else {
        assert_int_equal(sum_of(f, false), sum_of(left, false));
    }
}

/* An ICMP error about 'f' from the gateway to its pod, which quotes it as the pod sent it. */
static void check_refusal(const struct cluster *c, const struct frame *f, const struct frame *got)
{
    bool udp = f->bytes[23] == MODEL_PROTO_UDP;
    size_t quoted = udp ? 28 : 40;
    assert_int_equal(got->size, 14 + 28 + quoted);
    assert_memory_equal(got->bytes, f->bytes + 6, 6);
    assert_memory_equal(got->bytes + 6, f->bytes, 6);
    assert_int_equal(get16(got, 12), MODEL_ETH_IP4);
    assert_int_equal(got->bytes[14], 0x45);
    assert_int_equal(get16(got, 16), 28 + quoted);
    assert_int_equal(got->bytes[23], 1);
    assert_int_equal(get32(got, 26), sdn_gateway(&c->net));
    assert_int_equal(get32(got, 30), get32(f, 26));
    assert_int_equal(ones_sum(got, 14, 34), 0);
    assert_int_equal(ones_sum(got, 34, got->size), 0);
    assert_int_equal(got->bytes[34], 3);
    /* But for checksums, which were changed there and back: zero has two forms. */
    struct frame quote = *f;
    memcpy(quote.bytes + 24, got->bytes + 42 + 10, 2);
    memcpy(quote.bytes + checksum_of(f), got->bytes + 42 + checksum_of(f) - 14, 2);
    assert_memory_equal(got->bytes + 42, quote.bytes + 14, quoted);
}

struct comparison {
    const struct cluster *c;
    struct model_node node;
    struct program_side *programs;
    struct third_side *third; /* NULL: only two are compared. */
    struct strbuf want, got;
    uint64_t differences, translated, answered, refused, later, errors;
    uint64_t malformed, first_fragments, other_versions, own_errors;
    uint64_t actions[MODEL_TRANSLATE + 1], causes[MODEL_N_CAUSES];
};

static void check_same(struct comparison *x, const struct frame *f, const struct frame *want,
                       const struct frame *got)
{
    bool dropped = str_has_prefix(strbuf_cstr(&x->want), "drop");
    if (str_has_suffix(strbuf_cstr(&x->got), ", refused")) {
        check_refusal(x->c, f, got);
        x->refused++;
    }
    bool same =
        streq(strbuf_cstr(&x->want), strbuf_cstr(&x->got)) &&
        (dropped || (want->size == got->size && memcmp(want->bytes, got->bytes, want->size) == 0));
    if (same) {
        return;
    }
    x->differences++;
    fprintf(stderr,
            "difference (TENET_EBPF_SEED=%lu), entry %d, port %u, from %s id %u\n"
            "model:   %s\nprogram: %s\n",
            (unsigned long) seed, (int) f->entry, f->port, IP4_TEXT(f->outer_src), f->tunnel_id,
            strbuf_cstr(&x->want), strbuf_cstr(&x->got));
    const struct frame *all[] = {f, want, got};
    static const char *const names[] = {"frame  ", "model  ", "program"};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        fprintf(stderr, "%s:", names[i]);
        for (size_t k = 0; k < all[i]->size; k++) {
            fprintf(stderr, " %02x", all[i]->bytes[k]);
        }
        fprintf(stderr, "\n");
    }
}

/* Where the endpoint answers from; false: it is nowhere that an answer could come from. */
static bool answer_enters(const struct cluster *c, struct frame *f, uint32_t endpoint)
{
    f->entry = MODEL_FROM_HOST;
    f->port = f->outer_src = f->tunnel_id = 0;
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->pods[i].ip == endpoint) {
            f->entry = MODEL_FROM_PORT;
            f->port = c->pods[i].port;
            memcpy(f->bytes + 6, c->pods[i].mac.b, 6);
            return true;
        }
    }
    for (size_t i = 0; i < c->net.n_remotes; i++) {
        if (c->remotes[i].subnet.len && prefix_contains(c->remotes[i].subnet, endpoint)) {
            f->entry = MODEL_FROM_TUNNEL;
            f->outer_src = c->remotes[i].host_ip;
            return true;
        }
    }
    return endpoint == HOST(1) || endpoint == HOST(2) || endpoint == IP(8, 8, 8, 8);
}

/* ---- what follows a connection without having its ports ---- */

static void make_later(struct frame *f)
{
    set16(f, 20, 1 + below(0x1ff));
}

static bool has_more_parts(const struct frame *f)
{
    return get16(f, 20) & 0x2000;
}

/* The rest of a packet fares as its beginning, 'v', and has its addresses. */
static void compare_later(struct comparison *x, const struct frame *first,
                          const struct model_verdict *v, uint32_t src, uint32_t dst)
{
    struct frame later = *first, want, got;
    make_later(&later);
    want = later;
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    program_side_observe(x->programs, x->c, &later, &x->got, &got);
    expect(x->c, &later, v, &x->want, &want);
    if (v->action != MODEL_DROP) {
        set32(&want, 26, src);
        set32(&want, 30, dst);
        assert_int_equal(sum_of(&later, true), sum_of(&got, true));
        memcpy(want.bytes + 24, got.bytes + 24, 2);
    }
    check_same(x, &later, &want, &got);
    x->later++;
}

/* The error leaves from and to these addresses, and speaks of a packet between these ends;
 * 'target' is what it is judged for. */
static void compare_error(struct comparison *x, const struct frame *f, uint32_t target,
                          bool is_tracked, uint32_t src, uint32_t dst, struct ends quote)
{
    struct frame want = *f, got;
    struct model_packet p = read_frame(f);
    p.ip.translated = true;
    p.ip.connection = is_tracked ? MODEL_RELATED : MODEL_NEW;
    p.ip.dst = target;
    struct model_verdict v = model_judge(&x->node, &p);
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    program_side_observe(x->programs, x->c, f, &x->got, &got);
    expect(x->c, f, &v, &x->want, &want);
    if (v.action != MODEL_DROP && got.size == f->size) {
        size_t l4 = QUOTE_AT + 4 * (size_t) (f->bytes[QUOTE_AT] & 15);
        set32(&want, 26, src);
        set32(&want, 30, dst);
        set32(&want, QUOTE_AT + 12, quote.src);
        set32(&want, QUOTE_AT + 16, quote.dst);
        set16(&want, l4, quote.src_port);
        set16(&want, l4 + 2, quote.dst_port);
        assert_int_equal(ones_sum(&got, 14, ICMP_AT), 0);
        assert_int_equal(ones_sum(&got, ICMP_AT, got.size), 0);
        assert_int_equal(ones_sum(&got, QUOTE_AT, l4), ones_sum(f, QUOTE_AT, l4));
        static const size_t sums[] = {24, ICMP_AT + 2, QUOTE_AT + 10};
        for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
            memcpy(want.bytes + sums[i], got.bytes + sums[i], 2);
        }
        x->errors++;
    }
    check_same(x, f, &want, &got);
}

/* 'f' went out as 'sent', and 'answer' came back as 'received': errors about each are
 * about what their receiver sent. */
static void compare_errors(struct comparison *x, const struct frame *f, const struct frame *sent,
                           const struct frame *answer, const struct frame *received)
{
    struct frame e = *answer;
    uint32_t endpoint = get32(sent, 30), client = get32(f, 26), asked = get32(f, 30);
    bool tracked = tracked_may_begin(sent->bytes, sent->size);
    bool itself = endpoint == client;
    make_error(&e, sent, endpoint, get32(answer, 30));
    compare_error(x, &e, client, tracked, asked, client, ends_of(f));
    if (!itself && answer_enters(x->c, &e, HOST(2))) { /* By somebody on the way. */
        make_error(&e, sent, IP(9, 9, 9, 9), client);
        compare_error(x, &e, client, tracked, IP(9, 9, 9, 9), client, ends_of(f));
    }
    e = *f;
    make_error(&e, received, client, asked);
    compare_error(x, &e, endpoint, tracked, itself ? SDN_ITSELF_IP : client, endpoint,
                  ends_of(answer));
}

/* What the endpoint sends back comes from the service. */
static void compare_answer(struct comparison *x, const struct frame *f, const struct frame *sent)
{
    struct frame back = *f, want, got;
    size_t l4 = l4_of(f);
    uint32_t endpoint = get32(sent, 30), client = get32(f, 26), asked = get32(f, 30);
    uint16_t endpoint_port = get16(sent, l4 + 2), client_port = get16(f, l4);
    if (!answer_enters(x->c, &back, endpoint)) {
        return;
    }
    bool itself = endpoint == client;
    set_ends(&back, &back, endpoint, endpoint_port, itself ? SDN_ITSELF_IP : client, client_port);
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    program_side_observe(x->programs, x->c, &back, &x->got, &got);
    struct model_packet p = read_frame(&back);
    p.ip.translated = true; /* Of a connection that is known: nothing to look for. */
    p.ip.connection = tracked_may_begin(sent->bytes, sent->size) ? MODEL_REPLY : MODEL_NEW;
    p.ip.dst = client;
    struct model_verdict v = model_judge(&x->node, &p);
    want = back;
    expect(x->c, &back, &v, &x->want, &want);
    if (v.action == MODEL_DELIVER) {
        set_ends(&got, &want, asked, get16(f, l4 + 2), client, client_port);
        check_sums(&back, &got);
        x->answered++;
    }
    check_same(x, &back, &want, &got);
    if (v.action != MODEL_DELIVER) {
        return;
    }
    if (has_more_parts(&back)) {
        compare_later(x, &back, &v, asked, client);
    }
    compare_errors(x, f, sent, &back, &got);
}

static void compare_translated(struct comparison *x, const struct frame *f, struct model_packet *p,
                               const struct model_verdict *v)
{
    struct frame want = *f, got;
    program_side_observe(x->programs, x->c, f, &x->got, &got);
    if (f->size < checksum_of(f) + 2) { /* It cannot be kept right. */
        strbuf_adds(&x->want, "drop: service-invalid");
        check_same(x, f, &want, &got);
        return;
    }
    p->ip.translated = true;
    if (str_has_suffix(strbuf_cstr(&x->got), ", refused")) {
        /* Its endpoint is nowhere: who asked hears it of the service. */
        enum model_cause cause = str_has_prefix(strbuf_cstr(&x->got), "drop: service")
                                     ? MODEL_SERVICE_NOT_AVAILABLE
                                     : MODEL_NO_SUCH_NODE;
        strbuf_addf(&x->want, "drop: %s, refused", model_cause_name(cause));
        check_same(x, f, &want, &got);
        x->causes[cause]++;
        return;
    }
    p->ip.dst = get32(&got, 30);
    p->ip.dst_port = get16(&got, l4_of(f) + 2);
    if (!model_may_get(&x->node, v, p->ip.dst, p->ip.dst_port)) {
        strbuf_addf(&x->want, "an endpoint, not %s:%u", IP4_TEXT(p->ip.dst), p->ip.dst_port);
    }
    struct model_verdict after = model_judge(&x->node, p);
    bool itself = p->ip.dst == p->ip.src;
    expect(x->c, f, &after, &x->want, &want);
    set_ends(&got, &want, itself ? SDN_ITSELF_IP : p->ip.src, p->ip.src_port, p->ip.dst,
             p->ip.dst_port);
    check_sums(f, &got);
    check_same(x, f, &want, &got);
    x->translated++;
    x->causes[after.cause]++;
    if (has_more_parts(f)) {
        compare_later(x, f, &after, itself ? SDN_ITSELF_IP : p->ip.src, p->ip.dst);
    }
    if (after.action != MODEL_DROP) {
        compare_answer(x, f, &got);
    }
}

/* Has the tracker know of the frame's connection what the frame says, if it can. */
static void set_connection(const struct comparison *x, const struct frame *f,
                           struct model_packet *p)
{
    if (p->eth_type != MODEL_ETH_IP4 || !x->node.policies) {
        return;
    }
    const struct program *programs = &x->programs->program;
    tracked_clear(programs);
    if (model_judge(&x->node, p).action == MODEL_TRANSLATE || f->connection == MODEL_NEW) {
        return;
    }
    if (f->connection == MODEL_RELATED) {
        if (p->ip.icmp_error && tracked_put_quoted(programs, f->bytes, f->size, f->denied)) {
            p->ip.connection = MODEL_RELATED;
            p->ip.denied = f->denied;
        }
        return;
    }
    if (tracked_put(programs, f->bytes, f->size, f->connection, f->denied)) {
        p->ip.connection = f->connection;
        p->ip.denied = f->denied;
    }
}

static void ask_third(struct comparison *x, const struct frame *f, const struct model_packet *p,
                      const struct model_verdict *v)
{
    struct third_frame raw = {f->bytes, f->size, is_first_fragment(f), ends_connection(f)};
    if (x->third && !third_side_agrees(x->third, &x->node, p, v, &raw)) {
        x->differences++;
        fprintf(stderr, "difference to the switch (TENET_EBPF_SEED=%lu)\n", (unsigned long) seed);
    }
    x->malformed += is_malformed(f);
    x->first_fragments += is_first_fragment(f);
    x->other_versions += get16(f, 12) == MODEL_ETH_IP4 && f->bytes[14] >> 4 != 4;
}

static void compare_frame(struct comparison *x, const struct frame *f)
{
    struct frame want = *f, got;
    struct model_packet p = read_frame(f);
    set_connection(x, f, &p);
    struct model_verdict v = model_judge(&x->node, &p);
    x->actions[v.action]++;
    x->causes[v.cause]++;
    x->own_errors += x->node.policies && p.entry == MODEL_FROM_PORT &&
                     p.eth_type == MODEL_ETH_IP4 && p.ip.icmp_error && v.action != MODEL_DROP;
    ask_third(x, f, &p, &v);
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    if (v.action == MODEL_TRANSLATE) {
        compare_translated(x, f, &p, &v);
        return;
    }
    expect(x->c, f, &v, &x->want, &want);
    program_side_observe(x->programs, x->c, f, &x->got, &got);
    check_same(x, f, &want, &got);
}

/* ---- random networks ---- */

static void compare(uint64_t clusters, bool latest, struct third_side *third)
{
    uint64_t first = rng_first_seed("TENET_EBPF_SEED", clusters, "clusters");
    struct program_side programs;
    struct comparison x = {
        .programs = &programs, .third = third, .want = STRBUF_INIT, .got = STRBUF_INIT};
    program_side_open(&programs, latest);
    for (seed = first; seed < first + clusters && x.differences < 3; seed++) {
        struct cluster c;
        rng_start(seed);
        cluster_make(&c);
        program_side_load(&programs, &c);
        x.c = &c;
        x.node = cluster_node(&c);
        if (third) {
            third_side_load(third, &x.node, x.node.policies ? &c.policies : NULL);
        }
        for (size_t i = 0; i < FRAMES; i++) {
            struct frame f;
            make_frame(&c, &f);
            compare_frame(&x, &f);
        }
        program_side_unload(&programs);
        cluster_done(&c);
    }
    program_side_close(&programs);
    strbuf_done(&x.want);
    strbuf_done(&x.got);
    assert_int_equal(x.differences, 0);
    /* Agreement on what never happened is none. */
    for (size_t i = 0; i < ARRAY_SIZE(x.actions); i++) {
        assert_true(x.actions[i] >= clusters * FRAMES / 100 || clusters < 100);
    }
    print_message(
        "%6lu translated, %lu answered, %lu refused, %lu later parts, %lu errors, %lu sent "
        "and %lu taken directly\n",
        (unsigned long) x.translated, (unsigned long) x.answered, (unsigned long) x.refused,
        (unsigned long) x.later, (unsigned long) x.errors, (unsigned long) programs.sent,
        (unsigned long) programs.taken);
    print_message("%6lu malformed, %lu first fragments, %lu of another version\n",
                  (unsigned long) x.malformed, (unsigned long) x.first_fragments,
                  (unsigned long) x.other_versions);
    assert_true(x.malformed >= clusters * FRAMES / 100 || clusters < 100);
    print_message("%6lu errors of pods about what they received passed policy\n",
                  (unsigned long) x.own_errors);
    assert_true(x.own_errors >= clusters * FRAMES / 5000 || clusters < 100);
    assert_true(x.first_fragments >= clusters * FRAMES / 100 || clusters < 100);
    assert_true(x.other_versions >= clusters * FRAMES / 500 || clusters < 100);
    assert_true(x.later >= clusters * FRAMES / 2000 || clusters < 100);
    assert_true(x.errors >= clusters * FRAMES / 500 || clusters < 100);
    uint64_t least = programs.is_direct && clusters >= 100 ? clusters * FRAMES / 200 : 0;
    assert_true(programs.sent >= least && programs.taken >= least);
    assert_true(x.refused >= clusters * FRAMES / 500 || clusters < 100);
    assert_true(x.answered >= clusters * FRAMES / 500 || clusters < 100);
    for (uint32_t i = 1; i < EBPF_N_CAUSES; i++) {
        enum model_cause cause = encode_cause(i);
        print_message("%6lu %s\n", (unsigned long) x.causes[cause], model_cause_name(cause));
        assert_true(x.causes[cause] >= clusters * FRAMES / 2000 || clusters < 100);
    }
}

static void programs_and_model_agree(void **state)
{
    (void) state;
    compare(rng_setting("TENET_EBPF_CLUSTERS", DEFAULT_CLUSTERS), true, NULL);
}

static void programs_of_older_kernels_agree_too(void **state)
{
    (void) state;
    compare(MIN(rng_setting("TENET_EBPF_CLUSTERS", 100), 100), false, NULL);
}

/* All three judge the same frames. */
static void programs_model_and_switch_agree(void **state)
{
    (void) state;
    const char *why;
    struct third_side *third = third_side_new(&why);
    if (!third) {
        LEAVE_OUT(why);
    }
    uint64_t frames = rng_setting("TENET_THREE_FRAMES", 3000);
    compare((frames + FRAMES - 1) / FRAMES, true, third);
    print_message("%6lu frames judged by all three, %lu sent on to endpoints of services\n",
                  (unsigned long) third->asked, (unsigned long) third->translated);
    third_side_free(third);
}

static struct program_features features;

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_and_model_agree),
        cmocka_unit_test(programs_of_older_kernels_agree_too),
        cmocka_unit_test(programs_model_and_switch_agree),
    };
    return EBPF_TESTS(&features, tests, NULL, NULL);
}
