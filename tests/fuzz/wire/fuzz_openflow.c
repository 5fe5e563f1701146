/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a switch: a stream of messages, each through every parser.  A flow that was read can be sent,
 * and read again it is the same. */
#include "base/mem.h"
#include "wire/openflow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) {
        abort();
    }
}

static void put_be16(struct strbuf *out, size_t v)
{
    strbuf_addc(out, (char) (v >> 8));
    strbuf_addc(out, (char) v);
}

static void put_zeros(struct strbuf *out, size_t n)
{
    while (n--) {
        strbuf_addc(out, 0);
    }
}

/* Sends 'f', and has it reported in the match and instructions that were sent. */
static void check_round_trip(const struct of_flow *f)
{
    CLEANUP_STRBUF struct strbuf sent = STRBUF_INIT, in = STRBUF_INIT;
    of_put_flow_mod(&sent, 1, OF_FLOW_ADD, f);
    enum { FLOW_MOD_FIXED = 8 + 40, STATS_FIXED = 48 };
    struct of_msg m;
    size_t used;
    require(of_msg_parse(sent.data, sent.size, &m, &used, NULL) == 0);
    require(used == sent.size && m.type == OF_FLOW_MOD);

    size_t rest = sent.size - FLOW_MOD_FIXED;
    strbuf_add(&in, "\0\1\0\0\0\0\0\0", 8); /* Multipart: flow statistics. */
    put_be16(&in, STATS_FIXED + rest);
    strbuf_addc(&in, (char) f->table);
    put_zeros(&in, 9);
    put_be16(&in, f->priority);
    put_be16(&in, f->expires);
    put_zeros(&in, 8);
    for (int shift = 56; shift >= 0; shift -= 8) {
        strbuf_addc(&in, (char) (f->cookie >> shift));
    }
    put_zeros(&in, 16);
    strbuf_add(&in, sent.data + FLOW_MOD_FIXED, rest);
    m = (struct of_msg){.version = OF_VERSION,
                        .type = OF_MULTIPART_REPLY,
                        .body = (const uint8_t *) in.data,
                        .body_size = in.size};
    struct of_flow_list l = {0};
    bool more;
    require(of_flow_dump_parse(&m, &l, NULL, NULL, &more, NULL) == 0);
    require(l.n == 1 && !more && of_flow_equal(l.flows[0], f));
    require(of_flow_hash(l.flows[0]) == of_flow_hash(f));
    of_flow_list_done(&l);

    strbuf_reset(&sent);
    of_put_bundle_flow_mod(&sent, 1, 2, OF_FLOW_DELETE_STRICT, f);
    require(of_msg_parse(sent.data, sent.size, &m, &used, NULL) == 0 && used == sent.size);
}

static void check_message(const struct of_msg *m)
{
    struct err e = {0};
    struct of_error er;
    char text[96];
    uint32_t bundle;
    uint16_t type;
    of_hello_negotiate(m, &e);
    if (of_error_parse(m, &er, &e) == 0) {
        of_error_text(&er, text);
    }
    of_bundle_control_parse(m, &bundle, &type, &e);
    struct of_packet_in p;
    if (of_packet_in_parse(m, &p, &e) == 0) {
        /* Not by adding the size, with which a wrong one would wrap around. */
        const uint8_t *end = m->body + m->body_size;
        require(p.data >= m->body && p.data <= end && p.size == (size_t) (end - p.data));
    }

    struct of_flow_list l = {0};
    struct of_counters *stats = NULL;
    size_t cap = 0;
    bool more;
    if (of_flow_dump_parse(m, &l, &stats, &cap, &more, &e) == 0) {
        for (size_t i = 0; i < l.n; i++) {
            check_round_trip(l.flows[i]);
            CLEANUP_STRBUF struct strbuf words = STRBUF_INIT;
            of_flow_match_text(l.flows[i], &words);
            of_flow_actions_text(l.flows[i], &words);
        }
    } else {
        require(l.n == 0);
    }
    free(stats);
    of_flow_list_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct of_msg m;
    size_t used;
    while (of_msg_parse(data, size, &m, &used, NULL) == 0) {
        check_message(&m);
        data += used;
        size -= used;
    }
    return 0;
}
