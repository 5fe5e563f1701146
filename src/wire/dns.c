/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dns.h"

#include <string.h>

#define POINTER 0xc0
#define POINTER_MAX 0x3fff
#define QUESTION_POINTER 0xc00c /* A compression pointer to the name after the header. */

/* ---- names ---- */

void dns_lower(uint8_t *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        p[i] |= (uint8_t) ((uint8_t) (p[i] - 'A') < 26 ? 0x20 : 0);
    }
}

static uint8_t lower(uint8_t c)
{
    return (uint8_t) (c | ((uint8_t) (c - 'A') < 26 ? 0x20 : 0));
}

static bool bytes_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

int dns_name_parse(const char *text, struct dns_name *ret)
{
    struct dns_name n = {0};
    size_t size = 0;
    const char *p = text[0] == '.' ? text + 1 : text; /* Only the root begins with a dot. */
    if (p != text && *p) {
        return -EINVAL;
    }
    while (*p) {
        size_t len = strcspn(p, ".");
        if (len == 0 || len > DNS_LABEL_MAX || size + 1 + len + 1 > DNS_NAME_MAX) {
            return -EINVAL;
        }
        n.wire[size++] = (uint8_t) len;
        memcpy(n.wire + size, p, len);
        dns_lower(n.wire + size, len);
        size += len;
        p += len + (p[len] == '.');
    }
    n.size = (uint8_t) (size + 1);
    *ret = n;
    return 0;
}

void dns_name_format(const struct dns_name *n, char out[DNS_NAME_TEXT])
{
    char *p = out;
    for (size_t at = 0; at < n->size && n->wire[at]; at += 1u + n->wire[at]) {
        for (size_t i = 1; i <= n->wire[at]; i++) {
            uint8_t c = n->wire[at + i];
            if (c <= ' ' || c > '~') {
                *p++ = '\\';
                *p++ = (char) ('0' + c / 100);
                *p++ = (char) ('0' + c / 10 % 10);
                *p++ = (char) ('0' + c % 10);
                continue;
            }
            if (c == '.' || c == '\\') {
                *p++ = '\\';
            }
            *p++ = (char) c;
        }
        *p++ = '.';
    }
    if (p == out) {
        *p++ = '.';
    }
    *p = '\0';
}

bool dns_name_equal(const struct dns_name *a, const struct dns_name *b)
{
    return a->size == b->size && bytes_equal(a->wire, b->wire, a->size);
}

int dns_name_prepend(const uint8_t *labels, size_t size, const struct dns_name *b,
                     struct dns_name *ret)
{
    struct dns_name n;
    if (size + b->size > DNS_NAME_MAX) {
        return -ENAMETOOLONG;
    }
    memcpy(n.wire, labels, size);
    memcpy(n.wire + size, b->wire, b->size);
    n.size = (uint8_t) (size + b->size);
    *ret = n;
    return 0;
}

int dns_name_join(const struct dns_name *a, const struct dns_name *b, struct dns_name *ret)
{
    return dns_name_prepend(a->wire, a->size - 1u, b, ret);
}

/* ---- reading ---- */

/* Offset after the name at 'at', pointers not followed; 0: malformed. */
static size_t skip_name(const uint8_t *data, size_t size, size_t at)
{
    while (at < size) {
        uint8_t c = data[at];
        if (c == 0) {
            return at + 1;
        }
        if ((c & POINTER) == POINTER) {
            return at + 2 <= size ? at + 2 : 0;
        }
        if (c & POINTER) {
            return 0;
        }
        at += 1u + c;
    }
    return 0;
}

int dns_reader_name(const struct dns_reader *r, size_t at, size_t *end, struct dns_name *ret)
{
    struct dns_name n;
    size_t size = 0, segment = at, after = 0;
    for (;;) {
        if (at >= r->size) {
            return -EBADMSG;
        }
        uint8_t c = r->data[at];
        if ((c & POINTER) == POINTER) {
            if (at + 2 > r->size) {
                return -EBADMSG;
            }
            size_t target = dns_get16(r->data + at) & POINTER_MAX;
            after = after ? after : at + 2;
            if (target >= segment || target < DNS_HEADER) {
                return -EBADMSG;
            }
            at = segment = target;
            continue;
        }
        if (c & POINTER || at + 1u + c > r->size || size + 1u + c + (c != 0) > DNS_NAME_MAX) {
            return -EBADMSG;
        }
        memcpy(n.wire + size, r->data + at, 1u + c);
        size += 1u + c;
        at += 1u + c;
        if (c == 0) {
            n.size = (uint8_t) size;
            *end = after ? after : at;
            *ret = n;
            return 0;
        }
    }
}

int dns_reader_init(struct dns_reader *r, const uint8_t *data, size_t size)
{
    struct dns_reader out = {.data = data, .size = size, .at = DNS_HEADER, .section = DNS_ANSWER};
    if (size < DNS_HEADER || size > DNS_MESSAGE_MAX) {
        return -EBADMSG;
    }
    out.id = dns_get16(data);
    out.flags = dns_get16(data + 2);
    for (size_t i = 0; i < ARRAY_SIZE(out.left); i++) {
        out.left[i] = dns_get16(data + 4 + 2 * i);
    }
    if (out.left[DNS_QUESTION] > 1) {
        return -EBADMSG;
    }
    if (out.left[DNS_QUESTION] == 1) {
        size_t end;
        if (dns_reader_name(&out, out.at, &end, &out.question) < 0 || end + 4 > size) {
            return -EBADMSG;
        }
        out.type = dns_get16(data + end);
        out.class = dns_get16(data + end + 2);
        out.at = end + 4;
    }
    *r = out;
    return 0;
}

int dns_reader_next(struct dns_reader *r, struct dns_record *ret)
{
    while (r->section <= DNS_ADDITIONAL && r->left[r->section] == 0) {
        r->section++;
    }
    if (r->section > DNS_ADDITIONAL) {
        return 0;
    }
    struct dns_record rec = {.section = r->section};
    size_t at;
    if (dns_reader_name(r, r->at, &at, &rec.owner) < 0 || at + 10 > r->size) {
        return -EBADMSG;
    }
    rec.type = dns_get16(r->data + at);
    rec.class = dns_get16(r->data + at + 2);
    rec.ttl_at = (uint16_t) (at + 4);
    rec.ttl = dns_get32(r->data + at + 4);
    if (rec.ttl > INT32_MAX && rec.type != DNS_OPT) {
        rec.ttl = 0; /* RFC 2181, 8 */
    }
    rec.rdata = (uint16_t) (at + 10);
    rec.rdata_size = dns_get16(r->data + at + 8);
    if (at + 10 + rec.rdata_size > r->size) {
        return -EBADMSG;
    }
    r->at = at + 10 + rec.rdata_size;
    r->left[r->section]--;
    *ret = rec;
    return 1;
}

/* ---- queries ---- */

static int parse_name(const uint8_t *data, size_t size, size_t *at, struct dns_query *q)
{
    size_t n = 0;
    for (;;) {
        if (*at + n >= size) {
            return -EBADMSG;
        }
        uint8_t c = data[*at + n];
        if (c == 0) {
            break;
        }
        /* A name in the question has nothing to point to. */
        if (c & POINTER || n + 1u + c + 1 > DNS_NAME_MAX || *at + n + 1u + c >= size) {
            return -EBADMSG;
        }
        q->label[q->n_labels++] = (uint8_t) n;
        n += 1u + c;
    }
    n++;
    memcpy(q->name.wire, data + *at, n);
    dns_lower(q->name.wire, n);
    q->name.size = (uint8_t) n;
    *at += n;
    return 0;
}

/* The additional records of a query: at most one OPT; others (TSIG) are ignored. */
static int parse_additional(const uint8_t *data, size_t size, size_t at, unsigned n,
                            struct dns_query *q)
{
    for (unsigned i = 0; i < n; i++) {
        size_t owner = at;
        at = skip_name(data, size, at);
        if (!at || at + 10 > size) {
            return -EBADMSG;
        }
        const uint8_t *p = data + at;
        size_t rdata = dns_get16(p + 8);
        at += 10 + rdata;
        if (at > size) {
            return -EBADMSG;
        }
        if (dns_get16(p) == DNS_OPT) {
            if (q->edns || data[owner] != 0) {
                return -EBADMSG;
            }
            q->edns = true;
            q->udp_size = (uint16_t) MAX(dns_get16(p + 2), DNS_UDP_PLAIN);
            q->edns_version = p[5];
            q->dnssec_ok = p[6] & 0x80;
            for (size_t o = 0; o < rdata;) { /* Options: code, length, data. */
                if (o + 4 > rdata || (o += 4u + dns_get16(p + 10 + o + 2)) > rdata) {
                    return -EBADMSG;
                }
            }
        }
    }
    return at == size ? 0 : -EBADMSG;
}

int dns_query_parse(const uint8_t *data, size_t size, struct dns_query *ret)
{
    if (size < DNS_HEADER || data[2] & 0x80) {
        return -ENOMSG;
    }
    struct dns_query *q = ret;
    q->id = dns_get16(data);
    q->flags = dns_get16(data + 2);
    q->n_labels = 0;
    q->name.size = 0;
    q->question_size = 0;
    q->edns = q->dnssec_ok = false;
    q->edns_version = 0;
    q->udp_size = DNS_UDP_PLAIN;
    if (q->flags & DNS_OPCODE) {
        return -EOPNOTSUPP;
    }
    size_t at = DNS_HEADER;
    if (dns_get16(data + 4) != 1 || dns_get32(data + 6) != 0 ||
        parse_name(data, size, &at, q) < 0 || at + 4 > size) {
        return -EBADMSG;
    }
    q->type = dns_get16(data + at);
    q->class = dns_get16(data + at + 2);
    at += 4;
    q->question_size = (uint16_t) (at - DNS_HEADER);
    return parse_additional(data, size, at, dns_get16(data + 10), q);
}

static void put_opt(uint8_t *p, unsigned rcode, bool dnssec_ok)
{
    memset(p, 0, DNS_OPT_SIZE);
    dns_put16(p + 1, DNS_OPT);
    dns_put16(p + 3, DNS_UDP_EDNS);
    p[5] = (uint8_t) (rcode >> 4);
    p[7] = dnssec_ok ? 0x80 : 0;
}

size_t dns_query_write(uint16_t id, const struct dns_name *name, uint16_t type, bool edns,
                       bool dnssec_ok, uint8_t out[DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE])
{
    memset(out, 0, DNS_HEADER);
    dns_put16(out, id);
    dns_put16(out + 2, DNS_RD);
    out[5] = 1;
    out[11] = edns;
    size_t at = DNS_HEADER;
    memcpy(out + at, name->wire, name->size);
    at += name->size;
    dns_put16(out + at, type);
    dns_put16(out + at + 2, DNS_CLASS_IN);
    at += 4;
    if (edns) {
        put_opt(out + at, 0, dnssec_ok);
        at += DNS_OPT_SIZE;
    }
    return at;
}

/* ---- writing ---- */

void dns_writer_answer(struct dns_writer *w, const struct dns_query *q, const uint8_t *question,
                       uint8_t *buf, size_t limit)
{
    w->data = buf;
    w->limit = limit - (q->edns ? DNS_OPT_SIZE : 0);
    w->query = q;
    if (q->question_size) {
        memcpy(buf + DNS_HEADER, question, q->question_size);
    }
    dns_writer_reset(w);
}

void dns_writer_reset(struct dns_writer *w)
{
    w->truncated = w->overflow = false;
    w->section = DNS_ANSWER;
    memset(w->counts, 0, sizeof w->counts);
    w->counts[DNS_QUESTION] = w->query->question_size != 0;
    w->n_names = 0;
    w->size = DNS_HEADER + (size_t) w->query->question_size;
}

void dns_writer_bytes(struct dns_writer *w, const void *p, size_t size)
{
    if (w->overflow || size > w->limit - w->size) {
        w->overflow = true;
        return;
    }
    memcpy(w->data + w->size, p, size);
    w->size += size;
}

void dns_writer_u16(struct dns_writer *w, uint16_t v)
{
    uint8_t b[2];
    dns_put16(b, v);
    dns_writer_bytes(w, b, sizeof b);
}

void dns_writer_u32(struct dns_writer *w, uint32_t v)
{
    uint8_t b[4];
    dns_put32(b, v);
    dns_writer_bytes(w, b, sizeof b);
}

/* Whether the name at 'at', written earlier, equals the one at 'name'. */
static bool written_equal(const struct dns_writer *w, size_t at, const uint8_t *name)
{
    for (;;) {
        uint8_t c = w->data[at];
        if ((c & POINTER) == POINTER) {
            at = dns_get16(w->data + at) & POINTER_MAX;
            continue;
        }
        if (c != *name || !bytes_equal(w->data + at + 1, name + 1, c)) {
            return false;
        }
        if (c == 0) {
            return true;
        }
        at += 1u + c;
        name += 1u + c;
    }
}

/* Offset where 'name' was written; 0: not written. The first 'n_names' of the other names are
 * complete. */
static size_t find_written(const struct dns_writer *w, const uint8_t *name, size_t n_names)
{
    if (w->counts[DNS_QUESTION]) {
        for (size_t i = 0; i < w->query->n_labels; i++) {
            size_t at = DNS_HEADER + (size_t) w->query->label[i];
            if (written_equal(w, at, name)) {
                return at;
            }
        }
    }
    for (size_t i = 0; i < n_names; i++) {
        if (written_equal(w, w->names[i], name)) {
            return w->names[i];
        }
    }
    return 0;
}

void dns_writer_name(struct dns_writer *w, const struct dns_name *n, bool compress)
{
    if (!compress) {
        dns_writer_bytes(w, n->wire, n->size);
        return;
    }
    size_t whole = w->n_names;
    for (size_t at = 0; n->wire[at]; at += 1u + n->wire[at]) {
        size_t known = find_written(w, n->wire + at, whole);
        if (known) {
            dns_writer_u16(w, (uint16_t) (POINTER << 8 | known));
            return;
        }
        size_t here = w->size;
        dns_writer_bytes(w, n->wire + at, 1u + n->wire[at]);
        if (!w->overflow && here <= POINTER_MAX && w->n_names < DNS_WRITER_NAMES) {
            w->names[w->n_names++] = (uint16_t) here;
        }
    }
    dns_writer_bytes(w, "", 1);
}

void dns_writer_begin(struct dns_writer *w, const struct dns_name *owner, uint16_t type,
                      uint32_t ttl)
{
    w->record = w->size;
    w->record_names = w->n_names;
    w->overflow = false;
    if (owner) {
        dns_writer_name(w, owner, true);
    } else {
        dns_writer_u16(w, QUESTION_POINTER);
    }
    uint8_t fixed[10] = {0};
    dns_put16(fixed, type);
    dns_put16(fixed + 2, DNS_CLASS_IN);
    dns_put32(fixed + 4, ttl);
    dns_writer_bytes(w, fixed, sizeof fixed);
    w->rdata = w->size;
}

static void take_back(struct dns_writer *w)
{
    w->size = w->record;
    w->n_names = w->record_names;
    w->overflow = false;
}

bool dns_writer_end(struct dns_writer *w)
{
    if (w->overflow) {
        take_back(w);
        w->truncated = true;
        return false;
    }
    dns_put16(w->data + w->rdata - 2, (unsigned) (w->size - w->rdata));
    w->counts[w->section]++;
    return true;
}

size_t dns_writer_finish(struct dns_writer *w, uint16_t flags, unsigned rcode)
{
    const struct dns_query *q = w->query;
    uint8_t *p = w->data;
    dns_put16(p, q->id);
    dns_put16(p + 2, DNS_QR | (q->flags & (DNS_RD | DNS_CD)) | flags | (w->truncated ? DNS_TC : 0) |
                         (rcode & DNS_RCODE));
    for (size_t i = 0; i < ARRAY_SIZE(w->counts); i++) {
        dns_put16(p + 4 + 2 * i, w->counts[i]);
    }
    if (!q->edns) {
        return w->size;
    }
    dns_put16(p + 10, w->counts[DNS_ADDITIONAL] + 1u);
    put_opt(p + w->size, rcode, q->dnssec_ok);
    return w->size + DNS_OPT_SIZE;
}

void dns_write_refusal(const struct dns_query *q, unsigned rcode, uint8_t out[DNS_HEADER])
{
    memset(out, 0, DNS_HEADER);
    dns_put16(out, q->id);
    dns_put16(out + 2, DNS_QR | (q->flags & (DNS_OPCODE | DNS_RD)) | rcode);
}

/* ---- copying ---- */

/* Layout of record data that contains names (RFC 1035, and those of RFC 3597, 4 whose names may
 * come compressed): fixed bytes, then character strings, then names, then unchanged bytes. */
static const struct layout {
    uint16_t type;
    uint8_t fixed, strings, names;
    bool compress; /* Only the types of RFC 1035 may compress names. */
} layouts[] = {
    {DNS_NS, 0, 0, 1, true},     {3, 0, 0, 1, true},                                /* MD */
    {4, 0, 0, 1, true},                                                             /* MF */
    {DNS_CNAME, 0, 0, 1, true},  {DNS_SOA, 0, 0, 2, true},    {7, 0, 0, 1, true},   /* MB */
    {8, 0, 0, 1, true},                                                             /* MG */
    {9, 0, 0, 1, true},                                                             /* MR */
    {DNS_PTR, 0, 0, 1, true},    {14, 0, 0, 2, true},                               /* MINFO */
    {DNS_MX, 2, 0, 1, true},     {17, 0, 0, 2, false},                              /* RP */
    {18, 2, 0, 1, false},                                                           /* AFSDB */
    {21, 2, 0, 1, false},                                                           /* RT */
    {DNS_SIG, 18, 0, 1, false},  {26, 2, 0, 2, false},                              /* PX */
    {30, 0, 0, 1, false},                                                           /* NXT */
    {DNS_SRV, 6, 0, 1, false},   {DNS_NAPTR, 4, 3, 1, false}, {36, 2, 0, 1, false}, /* KX */
    {DNS_DNAME, 0, 0, 1, false},
};

static int copy_data(struct dns_writer *w, const struct dns_reader *r, const struct dns_record *rec)
{
    static const struct layout opaque;
    const struct layout *l = &opaque;
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        if (layouts[i].type == rec->type) {
            l = &layouts[i];
            break;
        }
    }
    size_t at = rec->rdata, end = at + rec->rdata_size;
    size_t head = at + l->fixed;
    for (int i = 0; i < l->strings && head < end; i++) {
        head += 1u + r->data[head];
    }
    if (head > end) {
        return -EBADMSG;
    }
    dns_writer_bytes(w, r->data + at, head - at);
    at = head;
    for (int i = 0; i < l->names; i++) {
        struct dns_name n;
        if (at >= end || dns_reader_name(r, at, &at, &n) < 0 || at > end) {
            return -EBADMSG;
        }
        dns_writer_name(w, &n, l->compress);
    }
    dns_writer_bytes(w, r->data + at, end - at);
    return 0;
}

int dns_copy_record(struct dns_writer *w, const struct dns_reader *r, const struct dns_record *rec,
                    uint32_t ttl)
{
    dns_writer_begin(w, &rec->owner, rec->type, ttl);
    if (copy_data(w, r, rec) < 0) {
        take_back(w);
        return -EBADMSG;
    }
    return dns_writer_end(w) ? 0 : -ENOBUFS;
}
