/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from the switch: bounds-checked parsers. */
#include "wire/openflow_priv.h"

#include "base/mem.h"

int of_msg_parse(const void *data, size_t size, struct of_msg *ret, size_t *ret_used, struct err *e)
{
    const uint8_t *p = data;
    if (size < OF_HEADER_SIZE) {
        return -EAGAIN;
    }
    uint8_t version = p[0], type = p[1];
    size_t length = be16_get(p + 2);
    /* A peer with another protocol version sends a hello or an error of its own version. */
    if (version != OF_VERSION && (version == 0 || (type != OF_HELLO && type != OF_ERROR))) {
        return err_set(e, -EBADMSG, "message of OpenFlow version %u, not %u", version, OF_VERSION);
    }
    if (length < OF_HEADER_SIZE) {
        return err_set(e, -EBADMSG, "message of length %zu, shorter than its header", length);
    }
    if (size < length) {
        return -EAGAIN;
    }
    *ret = (struct of_msg){
        .version = version,
        .type = type,
        .xid = be32_get(p + 4),
        .body = p + OF_HEADER_SIZE,
        .body_size = length - OF_HEADER_SIZE,
    };
    *ret_used = length;
    return 0;
}

int of_hello_negotiate(const struct of_msg *m, struct err *e)
{
    if (m->type != OF_HELLO) {
        return err_set(e, -EBADMSG, "message of type %u where a hello was due", m->type);
    }
    const uint8_t *p = m->body, *end = p + m->body_size;
    while (end - p >= 4) {
        unsigned type = be16_get(p);
        size_t length = be16_get(p + 2);
        if (length < 4 || length > (size_t) (end - p)) {
            return err_set(e, -EBADMSG, "hello: element of length %zu", length);
        }
        if (type == 1) { /* OFPHET_VERSIONBITMAP, lowest versions first. */
            if (length >= 8 && be32_get(p + 4) >> OF_VERSION & 1) {
                return 0;
            }
            return err_set(e, -EPROTO, "the switch does not speak OpenFlow 1.4 (versions %#x)",
                           length >= 8 ? be32_get(p + 4) : 0);
        }
        p += MIN(pad8(length), (size_t) (end - p));
    }
    if (m->version < OF_VERSION) {
        return err_set(e, -EPROTO, "the switch does not speak OpenFlow 1.4 (highest version %#x)",
                       m->version);
    }
    return 0;
}

int of_error_parse(const struct of_msg *m, struct of_error *ret, struct err *e)
{
    if (m->type != OF_ERROR || m->body_size < 4) {
        return err_set(e, -EBADMSG, "error message of %zu bytes", m->body_size);
    }
    *ret = (struct of_error){.type = be16_get(m->body), .code = be16_get(m->body + 2)};
    return 0;
}

int of_bundle_control_parse(const struct of_msg *m, uint32_t *ret_bundle, uint16_t *ret_type,
                            struct err *e)
{
    if (m->type != OF_BUNDLE_CONTROL || m->body_size < OF_BUNDLE_FIXED) {
        return err_set(e, -EBADMSG, "bundle control message of %zu bytes", m->body_size);
    }
    *ret_bundle = be32_get(m->body);
    *ret_type = be16_get(m->body + 4);
    return 0;
}

int of_packet_in_parse(const struct of_msg *m, struct of_packet_in *ret, struct err *e)
{
    if (m->type != OF_PACKET_IN || m->body_size < OF_PACKET_IN_FIXED + 8) {
        return err_set(e, -EBADMSG, "packet-in of type %u, %zu bytes", m->type, m->body_size);
    }
    const uint8_t *match = m->body + OF_PACKET_IN_FIXED;
    size_t left = m->body_size - OF_PACKET_IN_FIXED, length = be16_get(match + 2);
    if (be16_get(match) != OF_MATCH_OXM || length < OF_MATCH_HEADER || pad8(length) + 2 > left) {
        return err_set(e, -EBADMSG, "packet-in: match of length %zu in %zu bytes", length, left);
    }
    int r = of_oxm_check(match + OF_MATCH_HEADER, length - OF_MATCH_HEADER, e);
    if (r < 0) {
        return err_prefix(e, "packet-in");
    }
    *ret = (struct of_packet_in){.table = m->body[7],
                                 .cookie = be64_get(m->body + 8),
                                 .data = match + pad8(length) + 2,
                                 .size = left - pad8(length) - 2};
    for (size_t at = OF_MATCH_HEADER; at < length;) {
        uint32_t header = be32_get(match + at);
        if (header == OXM_OF_IN_PORT) {
            ret->in_port = be32_get(match + at + 4);
        }
        at += oxm_size(header);
    }
    return 0;
}

/* ---- flow dump ---- */

/* -EBADMSG unless 'p' is whole instructions. */
static int instructions_check(const uint8_t *p, size_t size, struct err *e)
{
    for (size_t at = 0; at < size;) {
        size_t n = size - at < 8 ? 0 : be16_get(p + at + 2);
        if (n < 8 || n % 8 || n > size - at) {
            return err_set(e, -EBADMSG, "instruction of length %zu at byte %zu of %zu", n, at,
                           size);
        }
        at += n;
    }
    return 0;
}

/* One ofp_flow_stats at 'p'; '*ret_used' is its size. */
static int flow_stats_parse(const uint8_t *p, size_t size, struct of_flow **ret,
                            struct of_counters *ret_counters, size_t *ret_used, struct err *e)
{
    if (size < OF_FLOW_STATS_FIXED + 8) {
        return err_set(e, -EBADMSG, "%zu bytes left where a flow was due", size);
    }
    size_t length = be16_get(p);
    if (length < OF_FLOW_STATS_FIXED + 8 || length > size) {
        return err_set(e, -EBADMSG, "flow of length %zu in %zu bytes", length, size);
    }
    const uint8_t *match = p + OF_FLOW_STATS_FIXED;
    size_t match_length = be16_get(match + 2), left = length - OF_FLOW_STATS_FIXED;
    if (be16_get(match) != OF_MATCH_OXM || match_length < OF_MATCH_HEADER ||
        pad8(match_length) > left) {
        return err_set(e, -EBADMSG, "match of type %u, length %zu in %zu bytes", be16_get(match),
                       match_length, left);
    }
    const uint8_t *instructions = match + pad8(match_length);
    size_t instructions_size = left - pad8(match_length);
    match += OF_MATCH_HEADER;
    size_t match_size = match_length - OF_MATCH_HEADER;
    int r = of_oxm_check(match, match_size, e);
    if (r == 0) {
        r = instructions_check(instructions, instructions_size, e);
    }
    if (r < 0) {
        return r;
    }
    struct of_flow *f =
        of_flow_new(p[2], be16_get(p + 12), be64_get(p + 24), match_size, instructions_size);
    f->expires = be16_get(p + 14) || be16_get(p + 16); /* Idle, hard timeout. */
    memcpy(f->bytes, match, match_size);
    of_oxm_sort(f->bytes, match_size);
    memcpy(f->bytes + match_size, instructions, instructions_size);
    *ret = f;
    *ret_counters = (struct of_counters){.packets = be64_get(p + 32), .bytes = be64_get(p + 40)};
    *ret_used = length;
    return 0;
}

int of_flow_dump_parse(const struct of_msg *m, struct of_flow_list *out, struct of_counters **stats,
                       size_t *stats_cap, bool *ret_more, struct err *e)
{
    if (m->type != OF_MULTIPART_REPLY || m->body_size < OF_MULTIPART_FIXED ||
        be16_get(m->body) != OF_MULTIPART_FLOW) {
        return err_set(e, -EBADMSG, "not a reply with flow statistics: type %u, %zu bytes", m->type,
                       m->body_size);
    }
    size_t n_before = out->n;
    for (size_t at = OF_MULTIPART_FIXED; at < m->body_size;) {
        struct of_flow *f = NULL;
        struct of_counters c;
        size_t used = 0;
        int r = flow_stats_parse(m->body + at, m->body_size - at, &f, &c, &used, e);
        if (r < 0) {
            while (out->n > n_before) {
                of_flow_free(out->flows[--out->n]);
            }
            err_prefix(e, "flow statistics at byte %zu", at);
            return r;
        }
        if (stats) {
            *stats = grow(*stats, stats_cap, out->n + 1, sizeof **stats);
            (*stats)[out->n] = c;
        }
        of_flow_list_add(out, f);
        at += used;
    }
    *ret_more = be16_get(m->body + 2) & OF_MULTIPART_MORE;
    return 0;
}
