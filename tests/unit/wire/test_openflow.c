/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenFlow codec alone; test_openflow_ovs.c sets it before a real switch. */
#include "wire/openflow.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* Bytes of a hex text; blanks are skipped. */
static void from_hex(const char *hex, struct strbuf *out)
{
    for (unsigned v; *hex;) {
        int n;
        if (*hex == ' ') {
            hex++;
        } else {
            assert_int_equal(sscanf(hex, "%2x%n", &v, &n), 1);
            strbuf_addc(out, (char) v);
            hex += n;
        }
    }
}

static struct of_msg parse(const struct strbuf *in)
{
    struct of_msg m;
    size_t used;
    struct err e = {0};
    assert_int_equal(of_msg_parse(in->data, in->size, &m, &used, &e), 0);
    assert_int_equal(used, in->size);
    return m;
}

static void expect_hex(const void *got, size_t n, const char *want)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    from_hex(want, &b);
    assert_int_equal(b.size, n);
    assert_memory_equal(got, b.data, n);
}

static void expect_message(struct strbuf *out, const char *want)
{
    expect_hex(out->data, out->size, want);
    strbuf_reset(out);
}

static struct of_flow *example_flow(void)
{
    struct of_builder b;
    of_begin(&b, 20, 100, 0x000300000a800002);
    of_match_in_port(&b, 11);
    of_match_eth_type(&b, 0x800);
    of_match_ip_src(&b, (struct ip4_prefix){0x0a800000, 14});
    of_act_output(&b, 1);
    of_goto(&b, 30);
    return of_end(&b);
}
#define EXAMPLE_MATCH "80000004 0000000b 80000a02 0800 80001708 0a800000 fffc0000"
#define EXAMPLE_INSTRUCTIONS \
    "0004 0018 00000000 0000 0010 00000001 0000 000000000000 0001 0008 1e 000000"

/* ---- builder ---- */

static void flow_is_match_then_instructions(void **state)
{
    struct of_flow *f = example_flow();
    assert_int_equal(f->table, 20);
    assert_int_equal(f->priority, 100);
    assert_int_equal(f->cookie, 0x000300000a800002);
    expect_hex(of_flow_match(f), f->match_size, EXAMPLE_MATCH);
    expect_hex(of_flow_instructions(f), f->instructions_size, EXAMPLE_INSTRUCTIONS);
    assert_int_equal(of_flow_memory(f), sizeof *f + f->match_size + f->instructions_size);
    of_flow_free(f);
}

static void order_of_match_calls_does_not_matter(void **state)
{
    struct of_builder b;
    struct of_flow *f[2];
    for (int i = 0; i < 2; i++) {
        of_begin(&b, 1, 2, 3);
        if (i) {
            of_match_udp_dst(&b, 4789);
            of_match_ip_proto(&b, 17);
            of_match_reg(&b, 1, 5);
            of_match_in_port(&b, 7);
            of_match_tun_src(&b, 0x01020304);
            of_match_reg(&b, 0, 5);
            of_match_eth_type(&b, 0x800);
        } else {
            of_match_eth_type(&b, 0x800);
            of_match_in_port(&b, 7);
            of_match_reg(&b, 0, 5);
            of_match_ip_proto(&b, 17);
            of_match_tun_src(&b, 0x01020304);
            of_match_reg(&b, 1, 5);
            of_match_udp_dst(&b, 4789);
        }
        f[i] = of_end(&b);
    }
    assert_true(of_flow_equal(f[0], f[1]));
    assert_int_equal(of_flow_hash(f[0]), of_flow_hash(f[1]));
    expect_hex(of_flow_match(f[0]), f[0]->match_size,
               "80000004 00000007 80000a02 0800 80001401 11 80002002 12b5"
               "00010004 00000005 00010204 00000005 00013e04 01020304");
    of_flow_free(f[0]);
    of_flow_free(f[1]);
}

static void masks_are_canonical(void **state)
{
    struct of_builder b;
    struct mac m = {{0x0a, 0x58, 1, 2, 3, 4}}, none = {{0}},
               all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, group = {{1}};
    of_begin(&b, 0, 0, 0);
    of_match_ip_src(&b, (struct ip4_prefix){0, 0});
    of_match_ip_dst(&b, (struct ip4_prefix){0x0a800002, 32});
    of_match_arp_tpa(&b, (struct ip4_prefix){0x0a8000ff, 24}); /* Not canonical itself. */
    of_match_eth_dst_masked(&b, m, none);
    of_match_eth_dst_masked(&b, m, all);
    struct of_flow *f = of_end(&b);
    expect_hex(of_flow_match(f), f->match_size,
               "80000606 0a5801020304 80001804 0a800002 80002f08 0a800000 ffffff00");
    assert_int_equal(f->instructions_size, 0);
    of_flow_free(f);

    of_begin(&b, 0, 0, 0);
    of_match_eth_dst_masked(&b, all, group);
    f = of_end(&b);
    expect_hex(of_flow_match(f), f->match_size, "8000070c 010000000000 010000000000");
    of_flow_free(f);
}

static void policy_actions_are_as_ovs_defines_them(void **state)
{
    struct of_builder b;
    of_begin(&b, 1, 2, 3);
    of_match_eth_type(&b, 0x800);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_RPL, OF_CT_TRK | OF_CT_RPL | OF_CT_INV);
    of_match_ip_proto(&b, 132);
    of_match_l4_dst(&b, 132, 0x1777, 0xff00);
    of_match_conj_id(&b, 5);
    of_match_ct_nw_dst(&b, 0x0a800003);
    of_match_ct_nw_src(&b, 0x0a800002);
    of_match_ct_mark(&b, 1);
    of_act_conjunction(&b, 0x01020304, 2, 3);
    of_act_ct(&b, 7, 36);
    of_act_ct_commit(&b, 7, 1);
    of_act_hash_symmetric(&b, 7, 15);
    struct of_flow *f = of_end(&b);
    expect_hex(of_flow_match(f), f->match_size,
               "80000a02 0800 80001401 84 80002504 1700 ff00 00014a04 00000005"
               "0001d308 00000028 00000038 0001d604 00000001"
               "0001f004 0a800002 0001f204 0a800003");
    expect_hex(of_flow_instructions(f), f->instructions_size,
               "0004 0078 00000000"
               "ffff 0010 00002320 0022 01 03 01020304"
               "ffff 0018 00002320 0023 0000 00010e04 000f 24 000000 0000"
               "ffff 0028 00002320 0023 0001 00010e04 000f ff 000000 0000"
               "0019 0010 0001d604 00000001 00000000"
               "ffff 0020 00002320 000a 0002 0000 0000 0000 7fff 00000000 0000 000e 00010e04");
    of_flow_free(f);
}

/* As ovs-ofctl writes them, but shorter. */
static void actions_have_texts(void **state)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct of_builder b;
    of_begin(&b, 1, 2, 3);
    of_match_eth_type(&b, 0x800);
    of_meter(&b, 9);
    of_act_output(&b, 1);
    of_act_controller(&b, 128);
    of_act_output_reg(&b, 2);
    of_act_load_reg(&b, 3, 7);
    of_act_load(&b, OF_REG7, 15, 1, 1);
    of_act_set_tun_dst(&b, 0xc0000201);
    of_act_move(&b, OF_ETH_SRC, 0, OF_ETH_DST, 0, 48);
    of_act_ct(&b, 7, 36);
    of_act_ct_commit(&b, 7, 1);
    of_act_ct_nat_dst(&b, 5, 0x0a800002, 8080, 40);
    of_act_ct_nat_src(&b, 5, 0x0a800002, 41);
    of_act_hash_symmetric(&b, 7, 15);
    of_act_resubmit(&b, 30);
    of_goto(&b, 30);
    struct of_flow *f = of_end(&b);
    of_flow_actions_text(f, &text);
    assert_string_equal(
        strbuf_cstr(&text),
        "meter:9,output:1,CONTROLLER,output:reg2,set:reg3=0x7,load:0x1->reg7[15..15],"
        "set:tun_dst=192.0.2.1,move:eth_src[0..47]->eth_dst[0..47],"
        "ct(zone=reg7,table=36),ct(commit,zone=reg7,exec(set:ct_mark=0x1)),"
        "ct(commit,zone=5,table=40,nat(dst=10.128.0.2:8080)),"
        "ct(commit,zone=5,table=41,nat(src=10.128.0.2)),multipath->reg7[0..14],"
        "resubmit(,30),goto:30");
    of_flow_free(f);
    of_begin(&b, 1, 2, 3);
    of_act_conjunction(&b, 77, 2, 3);
    f = of_end(&b);
    strbuf_reset(&text);
    of_flow_actions_text(f, &text);
    assert_string_equal(strbuf_cstr(&text), "conjunction(77,2/3)");
    of_flow_free(f);
}

static void key_and_equality(void **state)
{
    struct of_flow *a = example_flow(), *b = of_flow_clone(a);
    assert_true(of_flow_equal(a, b));
    b->cookie++;
    assert_true(of_flow_same_key(a, b));
    assert_false(of_flow_equal(a, b));
    b->cookie--;
    b->bytes[b->match_size + 30]++; /* In the instructions. */
    assert_true(of_flow_same_key(a, b));
    assert_false(of_flow_equal(a, b));
    of_flow_free(b);
    b = of_flow_clone(a);
    b->priority++;
    assert_false(of_flow_same_key(a, b));
    assert_int_not_equal(of_flow_hash(a), of_flow_hash(b));
    b->priority--;
    b->table++;
    assert_false(of_flow_same_key(a, b));
    assert_int_not_equal(of_flow_hash(a), of_flow_hash(b));
    b->table--;
    b->bytes[7]++; /* In the match. */
    assert_false(of_flow_same_key(a, b));
    assert_int_not_equal(of_flow_hash(a), of_flow_hash(b));
    of_flow_free(a);
    of_flow_free(b);
}

/* ---- messages to the switch ---- */

static void simple_messages(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    of_put_hello(&out, 1);
    expect_message(&out, "05 00 0010 00000001 0001 0008 00000020");
    of_put_echo_request(&out, 2);
    expect_message(&out, "05 02 0008 00000002");
    of_put_echo_reply(&out, 3, "abc", 3);
    expect_message(&out, "05 03 000b 00000003 616263");
    of_put_barrier_request(&out, 4);
    expect_message(&out, "05 14 0008 00000004");
    of_put_features_request(&out, 5);
    expect_message(&out, "05 05 0008 00000005");
    of_put_bundle_control(&out, 6, 0xabcd, OF_BUNDLE_COMMIT);
    expect_message(&out, "05 21 0010 00000006 0000abcd 0004 0003");
    of_put_flow_dump_request(&out, 7);
    expect_message(&out, "05 12 0038 00000007 0001 0000 00000000"
                         "ff 000000 ffffffff ffffffff 00000000 0000000000000000 0000000000000000"
                         "0001 0004 00000000");
}

#define COOKIE "000300000a800002"
#define NO_COOKIE "0000000000000000"
#define FLOW_MOD(length, cookie, command)                                            \
    "05 0e " length " 00000009 " cookie " 0000000000000000 14 " command " 0000 0000" \
    "0064 ffffffff ffffffff ffffffff 0000 0000 0001 001e" EXAMPLE_MATCH "0000"

static void flow_mods(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct of_flow *f = example_flow();
    of_put_flow_mod(&out, 9, OF_FLOW_ADD, f);
    expect_message(&out, FLOW_MOD("0070", COOKIE, "00") EXAMPLE_INSTRUCTIONS);
    of_put_flow_mod(&out, 9, OF_FLOW_MODIFY_STRICT, f);
    expect_message(&out, FLOW_MOD("0070", COOKIE, "02") EXAMPLE_INSTRUCTIONS);
    /* Deletes name no instructions and no cookie. */
    of_put_flow_mod(&out, 9, OF_FLOW_DELETE, f);
    expect_message(&out, FLOW_MOD("0050", NO_COOKIE, "03"));
    of_put_bundle_flow_mod(&out, 9, 5, OF_FLOW_DELETE_STRICT, f);
    expect_message(&out,
                   "05 22 0060 00000009 00000005 0000 0003" FLOW_MOD("0050", NO_COOKIE, "04"));
    of_put_bundle_flow_retire(&out, 9, 5, 0x1c20, f);
    expect_message(&out, "05 22 0080 00000009 00000005 0000 0003"
                         "05 0e 0070 00000009 " COOKIE " 0000000000000000 14 00 1c20 0000"
                         "0064 ffffffff ffffffff ffffffff 0000 0000 0001 001e" EXAMPLE_MATCH
                         "0000" EXAMPLE_INSTRUCTIONS);
    of_flow_free(f);
}

/* As "ovs-ofctl ct-flush zone=4787 ct_nw_proto=17,ct_nw_dst=172.30.0.1,ct_tp_dst=80
 * ct_nw_src=10.0.0.6,ct_tp_src=8080" of Open vSwitch 3.1 sends it. */
static void connections_are_named_as_ovs_names_them(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct of_connection c = {17, 0xac1e0001, 80, 0x0a000006, 8080};
    of_put_ct_flush(&out, 2, 4787, &c);
    expect_message(&out, "05 04 0070 00000002 00002320 00000020 11 00000000000000"
                         "0000 0028 00000000 0001 0014 00000000000000000000ffffac1e0001 00000000"
                         "0003 0006 0050 0000"
                         "0001 0028 00000000 0000 0014 00000000000000000000ffff0a000006 00000000"
                         "0002 0006 1f90 0000 0002 0006 12b3 0000");
    c = (struct of_connection){.proto = 17, .dst_port = 30080};
    of_put_ct_flush(&out, 2, 4787, &c);
    expect_message(&out, "05 04 0030 00000002 00002320 00000020 11 00000000000000"
                         "0000 0010 00000000 0003 0006 7580 0000 0002 0006 12b3 0000");
}

static void packet_goes_to_a_table(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    of_put_packet_in_table(&out, 3, 11, 85, 2, 0x0b, "abcd", 4);
    expect_message(&out, "05 0d 003c 00000003 ffffffff 0000000b 0020 000000000000"
                         "0019 0010 00010404 0000000b 00000000"
                         "ffff 0010 00002320 000e fff8 55 000000 61626364");
}

/* The frame begins two bytes after the padded match, also when the message ends before. */
static void packet_in_must_hold_its_match_and_padding(void **state)
{
    static const struct {
        size_t size;
        uint8_t match_length;
        int error;
        size_t frame;
    } cases[] = {
        {16 + 8, 4, -EBADMSG, 0},    {16 + 9, 4, -EBADMSG, 0},  {16 + 10, 4, 0, 0},
        {16 + 13, 4, 0, 3},          {16 + 13, 5, -EBADMSG, 0}, {16 + 13, 12, -EBADMSG, 0},
        {16 + 13, 200, -EBADMSG, 0}, {16 + 13, 3, -EBADMSG, 0}, {16 + 7, 4, -EBADMSG, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t *body = xcalloc(1, cases[i].size); /* So that no byte behind it can be read. */
        body[17] = 1;                              /* OXM */
        body[19] = cases[i].match_length;
        struct of_msg m = {
            .version = OF_VERSION, .type = OF_PACKET_IN, .body = body, .body_size = cases[i].size};
        struct of_packet_in p = {0};
        struct err e = {0};
        print_message("%zu\n", i);
        assert_int_equal(of_packet_in_parse(&m, &p, &e), cases[i].error);
        assert_int_equal(p.size, cases[i].frame);
        assert_true(p.size == 0 || p.data + p.size == body + cases[i].size);
        free(body);
    }
}

static void full_buffer_refuses_whole_messages(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(20);
    struct of_flow *f = example_flow();
    of_put_hello(&out, 1);
    of_put_flow_mod(&out, 2, OF_FLOW_ADD, f);
    of_put_bundle_flow_mod(&out, 3, 1, OF_FLOW_ADD, f);
    of_put_hello(&out, 4);
    assert_true(out.failed);
    expect_message(&out, "05 00 0010 00000001 0001 0008 00000020");
    of_flow_free(f);
}

/* ---- messages from the switch ---- */

static void message_needs_all_its_bytes(void **state)
{
    CLEANUP_STRBUF struct strbuf in = STRBUF_INIT;
    from_hex("05 03 000b 00000003 616263 05 02 0008", &in);
    struct of_msg m = {.xid = 99};
    size_t used = 77;
    struct err e = {0};
    for (size_t n = 0; n < 11; n++) {
        assert_int_equal(of_msg_parse(in.data, n, &m, &used, &e), -EAGAIN);
        assert_int_equal(m.xid, 99);
        assert_int_equal(used, 77);
    }
    assert_int_equal(of_msg_parse(in.data, in.size, &m, &used, &e), 0);
    assert_int_equal(used, 11);
    assert_int_equal(m.type, OF_ECHO_REPLY);
    assert_int_equal(m.xid, 3);
    assert_int_equal(m.body_size, 3);
    assert_memory_equal(m.body, "abc", 3);
    assert_int_equal(of_msg_parse(in.data + used, in.size - used, &m, &used, &e), -EAGAIN);
}

static void what_is_not_openflow_is_refused(void **state)
{
    static const char *const bad[] = {
        "05 03 0007 00000003 61", /* Shorter than a header. */
        "00 00 0008 00000001",    /* No such version. */
        "04 02 0008 00000001",    /* OpenFlow 1.3 after the hello. */
        "48545450 2f312e31",      /* HTTP/1.1 */
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_STRBUF struct strbuf in = STRBUF_INIT;
        struct of_msg m;
        size_t used;
        struct err e = {0};
        from_hex(bad[i], &in);
        assert_int_equal(of_msg_parse(in.data, in.size, &m, &used, &e), -EBADMSG);
        assert_true(e.text[0]);
    }
}

static int negotiate(const char *hex, struct err *e)
{
    CLEANUP_STRBUF struct strbuf in = STRBUF_INIT;
    from_hex(hex, &in);
    struct of_msg m = parse(&in);
    return of_hello_negotiate(&m, e);
}

static void hello_finds_version_1_4(void **state)
{
    struct err e = {0};
    assert_int_equal(negotiate("05 00 0008 00000001", &e), 0);
    assert_int_equal(negotiate("06 00 0008 00000001", &e), 0);
    assert_int_equal(negotiate("06 00 0010 00000001 0001 0008 0000007e", &e), 0);
    assert_int_equal(negotiate("06 00 0018 00000001 0007 0006 abcd0000 0001 0008 00000020", &e), 0);
    /* Lower versions only; not among those it lists. */
    assert_int_equal(negotiate("04 00 0008 00000001", &e), -EPROTO);
    assert_int_equal(negotiate("06 00 0010 00000001 0001 0008 0000005e", &e), -EPROTO);
    assert_non_null(strstr(e.text, "OpenFlow 1.4"));
    assert_int_equal(negotiate("06 00 000c 00000001 0001 0004", &e), -EPROTO);
    /* Malformed elements; no hello at all. */
    assert_int_equal(negotiate("05 00 000c 00000001 0001 0003", &e), -EBADMSG);
    assert_int_equal(negotiate("05 00 000c 00000001 0001 0008", &e), -EBADMSG);
    assert_int_equal(negotiate("05 14 0008 00000001", &e), -EBADMSG);
}

static void errors_have_texts(void **state)
{
    static const struct {
        const char *message, *text;
    } cases[] = {
        {"05 01 000c 00000001 0011 000d", "bundle failed: message failed"},
        {"05 01 000e 00000001 0005 0001 0505", "flow-mod failed: table full"},
        {"05 01 000c 00000001 0004 0009", "bad match: a field lacks its prerequisite"},
        {"05 01 000c 00000001 0000 0000", "hello failed: no common version"},
        {"05 01 000c 00000001 0003 0009", "bad instruction: duplicate instruction"},
        {"05 01 000c 00000001 0002 0004", "bad action: bad output port"},
        {"05 01 000c 00000001 0001 0005", "bad request: not permitted"},
        {"05 01 000c 00000001 000e 0003", "bad property: too many"},
        {"05 01 000c 00000001 0006 0003", "group-mod failed: code 3"},
        {"05 01 000c 00000001 0005 00ff", "flow-mod failed: code 255"},
        {"05 01 000c 00000001 ffff 0007", "error type 65535, code 7"},
        {"05 01 000c 00000001 0012 0000", "error type 18, code 0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf in = STRBUF_INIT;
        struct of_error er;
        struct err e = {0};
        char text[96];
        from_hex(cases[i].message, &in);
        struct of_msg m = parse(&in);
        assert_int_equal(of_error_parse(&m, &er, &e), 0);
        assert_string_equal(of_error_text(&er, text), cases[i].text);
    }
    struct of_error er = {1, 2};
    char text[96];
    for (unsigned type = 0; type < 20; type++) {
        for (unsigned code = 0; code < 20; code++) {
            struct of_error any = {(uint16_t) type, (uint16_t) code};
            assert_true(strlen(of_error_text(&any, text)) < sizeof text - 1);
        }
    }
    struct of_msg cut = {
        .version = 5, .type = OF_ERROR, .body = (const uint8_t *) "\0\1\0", .body_size = 3};
    assert_int_equal(of_error_parse(&cut, &er, NULL), -EBADMSG);
    assert_int_equal(er.code, 2);
}

static void bundle_control_is_read(void **state)
{
    CLEANUP_STRBUF struct strbuf in = STRBUF_INIT;
    struct err e = {0};
    uint32_t bundle = 0;
    uint16_t type = 0;
    from_hex("05 21 0010 00000006 0000abcd 0005 0003", &in);
    struct of_msg m = parse(&in);
    assert_int_equal(of_bundle_control_parse(&m, &bundle, &type, &e), 0);
    assert_int_equal(bundle, 0xabcd);
    assert_int_equal(type, OF_BUNDLE_COMMIT + 1);
    m.body_size = 7;
    assert_int_equal(of_bundle_control_parse(&m, &bundle, &type, &e), -EBADMSG);
    m.body_size = 8;
    m.type = OF_ERROR;
    assert_int_equal(of_bundle_control_parse(&m, &bundle, &type, &e), -EBADMSG);
}

/* ---- flow dump ---- */

/* The example flow with 7 packets of 900 bytes, its match fields in another order; then
 * a drop-all with an idle timeout. */
#define STATS_1                                                         \
    "0070 14 00 00000010 00000020 0064 0000 0000 0000 0000 0000" COOKIE \
    "0000000000000007 0000000000000384 0001 001e 80000004 0000000b"     \
    "80001708 0a800000 fffc0000 80000a02 0800 0000" EXAMPLE_INSTRUCTIONS
#define STATS_2                                                             \
    "0038 00 00 00000010 00000020 0000 000a 0000 0000 0000 0000 " NO_COOKIE \
    "0000000000000000 0000000000000000 0001 0004 00000000"

static void dump_gives_flows_and_counters(void **state)
{
    CLEANUP_STRBUF struct strbuf in = STRBUF_INIT;
    from_hex("05 13 00b8 00000001 0001 0001 00000000" STATS_1 STATS_2, &in);
    struct of_msg m = parse(&in);
    struct of_flow_list l = {0};
    struct of_counters *stats = NULL;
    size_t cap = 0;
    bool more = false;
    struct err e = {0};
    assert_int_equal(of_flow_dump_parse(&m, &l, &stats, &cap, &more, &e), 0);
    assert_true(more);
    assert_int_equal(l.n, 2);
    struct of_flow *f = example_flow();
    assert_true(of_flow_equal(l.flows[0], f));
    assert_int_equal(stats[0].packets, 7);
    assert_int_equal(stats[0].bytes, 900);
    assert_int_equal(l.flows[1]->match_size, 0);
    assert_int_equal(l.flows[1]->expires, 1);
    of_flow_free(f);

    /* The next reply is appended, with counters beside it or without. */
    in.data[11] = 0;
    assert_int_equal(of_flow_dump_parse(&m, &l, &stats, &cap, &more, &e), 0);
    assert_false(more);
    assert_int_equal(l.n, 4);
    assert_int_equal(stats[2].packets, 7);
    assert_int_equal(stats[3].packets, 0);
    assert_int_equal(of_flow_dump_parse(&m, &l, NULL, NULL, &more, &e), 0);
    assert_int_equal(l.n, 6);
    free(stats);
    of_flow_list_done(&l);

    in.data[3] = 0x10;
    in.size = 16;
    m = parse(&in);
    assert_int_equal(of_flow_dump_parse(&m, &l, NULL, NULL, &more, &e), 0);
    assert_int_equal(l.n, 0);
}

static void malformed_dump_leaves_the_list_as_it_was(void **state)
{
    CLEANUP_STRBUF struct strbuf in = STRBUF_INIT;
    from_hex("05 13 00b8 00000001 0001 0000 00000000" STATS_1 STATS_2, &in);
    struct of_msg m = parse(&in);
    struct of_flow_list l = {0};
    of_flow_list_add(&l, example_flow());
    bool more = true;
    for (size_t n = 0; n < in.size - 8; n++) { /* Cut at every byte but between flows. */
        struct of_msg cut = m;
        struct err e = {0};
        cut.body_size = n;
        if (n == 8 || n == 8 + 0x70) {
            continue;
        }
        assert_int_equal(of_flow_dump_parse(&cut, &l, NULL, NULL, &more, &e), -EBADMSG);
        assert_true(e.text[0]);
        assert_int_equal(l.n, 1);
        assert_true(more);
    }
    static const struct {
        size_t at;
        uint8_t value;
        const char *what;
    } changes[] = {
        {9, 2, "another kind of statistics"},
        {17, 0x30, "length shorter than the fixed part"},
        {17, 0x71, "length that ends in the next flow's first byte"},
        {65, 0, "match of the old standard type"},
        {67, 3, "match shorter than its header"},
        {66, 1, "match longer than the flow"},
        {71, 0, "field without a value"},
        {71, 0xff, "field longer than the match"},
        {79, 7, "value and mask of different lengths"},
        {99, 0x28, "instruction longer than the flow"},
        {99, 0x14, "instruction of odd length"},
        {99, 0, "instruction without length"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        uint8_t old = (uint8_t) in.data[changes[i].at];
        in.data[changes[i].at] = (char) changes[i].value;
        struct err e = {0};
        if (of_flow_dump_parse(&m, &l, NULL, NULL, &more, &e) != -EBADMSG) {
            fail_msg("accepted: %s", changes[i].what);
        }
        assert_int_equal(l.n, 1);
        in.data[changes[i].at] = (char) old;
    }
    struct of_msg other = m;
    other.type = OF_BARRIER_REPLY;
    assert_int_equal(of_flow_dump_parse(&other, &l, NULL, NULL, &more, NULL), -EBADMSG);
    assert_int_equal(of_flow_dump_parse(&m, &l, NULL, NULL, &more, NULL), 0);
    assert_int_equal(l.n, 3);
    of_flow_list_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_is_match_then_instructions),
        cmocka_unit_test(order_of_match_calls_does_not_matter),
        cmocka_unit_test(masks_are_canonical),
        cmocka_unit_test(policy_actions_are_as_ovs_defines_them),
        cmocka_unit_test(actions_have_texts),
        cmocka_unit_test(key_and_equality),
        cmocka_unit_test(simple_messages),
        cmocka_unit_test(flow_mods),
        cmocka_unit_test(connections_are_named_as_ovs_names_them),
        cmocka_unit_test(packet_goes_to_a_table),
        cmocka_unit_test(packet_in_must_hold_its_match_and_padding),
        cmocka_unit_test(full_buffer_refuses_whole_messages),
        cmocka_unit_test(message_needs_all_its_bytes),
        cmocka_unit_test(what_is_not_openflow_is_refused),
        cmocka_unit_test(hello_finds_version_1_4),
        cmocka_unit_test(errors_have_texts),
        cmocka_unit_test(bundle_control_is_read),
        cmocka_unit_test(dump_gives_flows_and_counters),
        cmocka_unit_test(malformed_dump_leaves_the_list_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
