/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages: RFC 1035 with EDNS0 (RFC 6891), AAAA (3596) and SRV (2782).  Pure.
 *
 * A query is taken apart into a 'struct dns_query', which points nowhere: names are copied and in
 * lower case.  Messages are written by a 'struct dns_writer' into memory of the caller; a record
 * that does not fit is left out as a whole and sets 'truncated'. Received messages are read
 * record by record by a 'struct dns_reader'.  Names are in wire form, uncompressed, at most
 * DNS_NAME_MAX bytes; a pointer of a compressed name must point backwards, so that every chain
 * of them ends.  Nothing here allocates. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#define DNS_PORT 53
#define DNS_NAME_MAX 255 /* Bytes, including the root label's. */
#define DNS_LABEL_MAX 63
#define DNS_LABELS_MAX 127
#define DNS_NAME_TEXT 1024 /* Each byte may become "\123"; then a NUL. */
#define DNS_HEADER 12
#define DNS_MESSAGE_MAX 65535
#define DNS_UDP_PLAIN 512 /* Largest answer over UDP without EDNS. */
#define DNS_UDP_EDNS 1232 /* Size that fits into every packet (DNS flag day 2020). */
#define DNS_OPT_SIZE 11   /* An OPT record without options. */

enum dns_type {
    DNS_A = 1,
    DNS_NS = 2,
    DNS_CNAME = 5,
    DNS_SOA = 6,
    DNS_PTR = 12,
    DNS_HINFO = 13,
    DNS_MX = 15,
    DNS_TXT = 16,
    DNS_SIG = 24,
    DNS_AAAA = 28,
    DNS_SRV = 33,
    DNS_NAPTR = 35,
    DNS_DNAME = 39,
    DNS_OPT = 41,
    DNS_IXFR = 251,
    DNS_AXFR = 252,
    DNS_ANY = 255,
};
enum { DNS_CLASS_IN = 1 };

enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16, /* Its upper bits are in OPT. */
};

/* Bits of the header's second word. */
enum {
    DNS_QR = 0x8000,
    DNS_OPCODE = 0x7800,
    DNS_AA = 0x0400,
    DNS_TC = 0x0200,
    DNS_RD = 0x0100,
    DNS_RA = 0x0080,
    DNS_AD = 0x0020,
    DNS_CD = 0x0010,
    DNS_RCODE = 0x000f,
};

/* ---- names ---- */

struct dns_name {
    uint8_t size; /* Bytes of 'wire', including the root label's; 0: no name. */
    uint8_t wire[DNS_NAME_MAX];
};

/* Reads "a.b.c" or "a.b.c." ("." is the root), to lower case.  -EINVAL: an empty or too long
 * label, or a name that is too long. */
int dns_name_parse(const char *text, struct dns_name *ret);
/* Ends with a dot; bytes that are not printable, dots and backslashes within labels are escaped. */
void dns_name_format(const struct dns_name *n, char out[DNS_NAME_TEXT]);
/* Case does not matter. */
bool dns_name_equal(const struct dns_name *a, const struct dns_name *b);
/* Concatenates 'a' and 'b'. -ENAMETOOLONG. */
int dns_name_join(const struct dns_name *a, const struct dns_name *b, struct dns_name *ret);
/* The 'size' bytes of labels at 'labels' (without the root), then 'b'. */
int dns_name_prepend(const uint8_t *labels, size_t size, const struct dns_name *b,
                     struct dns_name *ret);
/* ASCII to lower case, in place.  Lengths of labels are below 'A'. */
void dns_lower(uint8_t *p, size_t size);

/* ---- queries ---- */

struct dns_query {
    uint16_t id, flags;
    uint16_t type, class;
    struct dns_name name;          /* Lower case. */
    uint8_t n_labels;              /* Without the root. */
    uint8_t label[DNS_LABELS_MAX]; /* Offset of each label in name.wire. */
    uint16_t question_size;        /* Size of name, type and class, after the header. */
    bool edns, dnssec_ok;
    uint8_t edns_version;
    uint16_t udp_size; /* Size that the client accepts; DNS_UDP_PLAIN without EDNS. */
};

/* Parses a query. -ENOMSG: it must not be answered (no header, or an answer); -EBADMSG:
 * malformed, 'ret' has id and flags; -EOPNOTSUPP: another opcode, 'ret' likewise. */
int dns_query_parse(const uint8_t *data, size_t size, struct dns_query *ret);
/* A question for 'name' as a message with the flag RD and, when 'edns', an OPT record;
 * returns its size. */
size_t dns_query_write(uint16_t id, const struct dns_name *name, uint16_t type, bool edns,
                       bool dnssec_ok, uint8_t out[DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE]);

/* ---- writing ---- */

enum dns_section { DNS_QUESTION, DNS_ANSWER, DNS_AUTHORITY, DNS_ADDITIONAL };
#define DNS_WRITER_NAMES 24

struct dns_writer {
    uint8_t *data;
    size_t size, limit;       /* 'limit' excludes the space reserved for OPT. */
    bool truncated;           /* A record was left out. */
    bool overflow;            /* The record being written does not fit. */
    enum dns_section section; /* Section of the following records. */
    uint16_t counts[4];
    const struct dns_query *query;
    uint8_t n_names, record_names;
    /* Offsets of written names, as targets of compression pointers. */
    uint16_t names[DNS_WRITER_NAMES];
    size_t record, rdata; /* Offset of the record being written, and of its data. */
};

/* Begins the answer to 'q', which must stay valid; 'question' has its question with the original
 * spelling. 'buf' has 'limit' bytes, at least DNS_UDP_PLAIN. */
void dns_writer_answer(struct dns_writer *w, const struct dns_query *q, const uint8_t *question,
                       uint8_t *buf, size_t limit);
void dns_writer_reset(struct dns_writer *w); /* Returns to that state. */
/* Begins a record of class IN; 'owner' NULL is the name in question. */
void dns_writer_begin(struct dns_writer *w, const struct dns_name *owner, uint16_t type,
                      uint32_t ttl);
void dns_writer_bytes(struct dns_writer *w, const void *p, size_t size);
void dns_writer_u16(struct dns_writer *w, uint16_t v);
void dns_writer_u32(struct dns_writer *w, uint32_t v);
void dns_writer_name(struct dns_writer *w, const struct dns_name *n, bool compress);
/* Ends the record; one that did not fit is removed, and false returned. */
bool dns_writer_end(struct dns_writer *w);
/* Writes header and, when the query has EDNS, OPT; returns the message's size.  'flags'
 * beside QR, RD and CD of the query, and TC.  The same content can be finished again in another
 * copy, for another answer. */
size_t dns_writer_finish(struct dns_writer *w, uint16_t flags, unsigned rcode);
/* An answer with only 'rcode' to a query that dns_query_parse refused: without a question; 'out'
 * has DNS_HEADER bytes. */
void dns_write_refusal(const struct dns_query *q, unsigned rcode, uint8_t out[DNS_HEADER]);

/* ---- reading ---- */

struct dns_record {
    enum dns_section section;
    struct dns_name owner;
    uint16_t type, class;
    uint32_t ttl;
    uint16_t rdata, rdata_size; /* Offset in the message. */
    uint16_t ttl_at;
};

struct dns_reader {
    const uint8_t *data;
    size_t size, at;
    uint16_t id, flags;
    uint16_t left[4];
    enum dns_section section;
    struct dns_name question; /* Original spelling; size 0: there was none. */
    uint16_t type, class;
};

/* Reads header and question.  -EBADMSG: malformed, or more than one question. */
int dns_reader_init(struct dns_reader *r, const uint8_t *data, size_t size);
/* 1: '*ret' is the next record; 0: that was all; -EBADMSG. */
int dns_reader_next(struct dns_reader *r, struct dns_record *ret);
/* The name at 'at' of the message; '*end' is the offset after it. */
int dns_reader_name(const struct dns_reader *r, size_t at, size_t *end, struct dns_name *ret);
/* Writes 'rec' of 'r' with the TTL 'ttl' into the section that 'w' is in, with the names in its
 * data compressed again.  -ENOBUFS: it does not fit; -EBADMSG: its data is malformed.  Both
 * leave 'w' without it. */
int dns_copy_record(struct dns_writer *w, const struct dns_reader *r, const struct dns_record *rec,
                    uint32_t ttl);

static inline uint16_t dns_get16(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}
static inline uint32_t dns_get32(const uint8_t *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}
static inline void dns_put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t) (v >> 8);
    p[1] = (uint8_t) v;
}
static inline void dns_put32(uint8_t *p, uint32_t v)
{
    dns_put16(p, v >> 16);
    dns_put16(p + 2, v & 0xffff);
}
