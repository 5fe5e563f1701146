/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ldap.h"

#include "base/mem.h"
#include "wire/json_internal.h"
#include "wire/ldap_ber.h"

#include <stdio.h>
#include <strings.h>

/* Tags of operations (RFC 4511, 4): 0x60 and the number for those with contents. */
enum {
    OP_BIND_REQUEST = 0x60,
    OP_UNBIND_REQUEST = 0x42,
    OP_SEARCH_REQUEST = 0x63,
    OP_EXTENDED_REQUEST = 0x77,
    OP_CONTROLS = 0xa0,
    AUTH_SIMPLE = 0x80,
    EXTENDED_NAME = 0x80,
    RESULT_REFERRAL = 0xa3,
    BIND_SASL = 0x87,
    RESPONSE_NAME = 0x8a,
    RESPONSE_VALUE = 0x8b,
};

static const char start_tls[] = "1.3.6.1.4.1.1466.20037";
static const char paged_results[] = "1.2.840.113556.1.4.319";

/* ---- requests ---- */

static void text(struct strbuf *out, uint8_t tag, const char *s)
{
    ber_octets(out, tag, s, strlen(s));
}

static size_t begin_message(struct strbuf *out, int32_t id)
{
    size_t at = ber_begin(out, BER_SEQUENCE);
    ber_int(out, BER_INT, (uint32_t) id);
    return at;
}

void ldap_write_bind(struct strbuf *out, int32_t id, const char *dn, const char *password)
{
    size_t message = begin_message(out, id), op = ber_begin(out, OP_BIND_REQUEST);
    ber_int(out, BER_INT, 3);
    text(out, BER_OCTETS, dn);
    text(out, AUTH_SIMPLE, password);
    ber_end(out, op);
    ber_end(out, message);
}

void ldap_write_unbind(struct strbuf *out, int32_t id)
{
    size_t message = begin_message(out, id);
    ber_octets(out, OP_UNBIND_REQUEST, "", 0);
    ber_end(out, message);
}

void ldap_write_start_tls(struct strbuf *out, int32_t id)
{
    size_t message = begin_message(out, id), op = ber_begin(out, OP_EXTENDED_REQUEST);
    text(out, EXTENDED_NAME, start_tls);
    ber_end(out, op);
    ber_end(out, message);
}

/* RFC 2696, 2: not critical, so that a server without paging answers all at once. */
static void write_paging(struct strbuf *out, const struct ldap_search *s)
{
    size_t controls = ber_begin(out, OP_CONTROLS), control = ber_begin(out, BER_SEQUENCE);
    text(out, BER_OCTETS, paged_results);
    size_t value = ber_begin(out, BER_OCTETS), seq = ber_begin(out, BER_SEQUENCE);
    ber_int(out, BER_INT, s->page_size);
    ber_octets(out, BER_OCTETS, s->cookie ? s->cookie : "", s->cookie_size);
    ber_end(out, seq);
    ber_end(out, value);
    ber_end(out, control);
    ber_end(out, controls);
}

int ldap_write_search(struct strbuf *out, int32_t id, const struct ldap_search *s, struct err *e)
{
    CLEANUP_STRBUF struct strbuf filter = STRBUF_INIT;
    int r = ldap_filter_write(s->filter, &filter, e);
    if (r < 0) {
        return r;
    }
    size_t message = begin_message(out, id), op = ber_begin(out, OP_SEARCH_REQUEST);
    text(out, BER_OCTETS, s->base);
    ber_int(out, BER_ENUM, s->scope);
    ber_int(out, BER_ENUM, s->deref);
    ber_int(out, BER_INT, s->size_limit & INT32_MAX);
    ber_int(out, BER_INT, s->time_limit & INT32_MAX);
    ber_bool(out, BER_BOOL, false);
    strbuf_add(out, strbuf_cstr(&filter), filter.size);
    size_t attributes = ber_begin(out, BER_SEQUENCE);
    for (const char *const *a = s->attributes; a && *a; a++) {
        text(out, BER_OCTETS, *a);
    }
    ber_end(out, attributes);
    ber_end(out, op);
    if (s->page_size) {
        write_paging(out, s);
    }
    ber_end(out, message);
    return 0;
}

/* ---- responses ---- */

ssize_t ldap_message_size(const void *p, size_t size)
{
    uint64_t contents;
    const uint8_t *b = p;
    if (size && b[0] != BER_SEQUENCE) {
        return -EINVAL;
    }
    int n = ber_header(b, size, &contents);
    if (n <= 0) {
        return n;
    }
    if (contents > LDAP_MAX_MESSAGE - (unsigned) n) {
        return -EMSGSIZE;
    }
    return size < (size_t) n + contents ? 0 : (ssize_t) ((size_t) n + contents);
}

void ldap_entry_done(struct ldap_entry *entry)
{
    for (size_t i = 0; i < entry->n; i++) {
        struct ldap_attribute *a = &entry->attributes[i];
        for (size_t k = 0; k < a->n; k++) {
            free(a->values[k].data);
        }
        free(a->values);
        free(a->name);
    }
    free(entry->attributes);
    free(entry->dn);
    *entry = (struct ldap_entry){0};
}

bool ldap_value_is_text(const struct ldap_value *v)
{
    const unsigned char *p = (const unsigned char *) v->data, *end = p + v->size;
    while (p < end) {
        int n = *p < ' ' || *p == 0x7f ? 0 : json_utf8(p, end);
        if (n <= 0) {
            return false;
        }
        p += n;
    }
    return v->size > 0;
}

const struct ldap_attribute *ldap_entry_get(const struct ldap_entry *entry, const char *name)
{
    for (size_t i = 0; i < entry->n; i++) {
        if (entry->attributes[i].n && strcasecmp(entry->attributes[i].name, name) == 0) {
            return &entry->attributes[i];
        }
    }
    return NULL;
}

void ldap_message_done(struct ldap_message *m)
{
    free(m->text);
    free(m->oid);
    free(m->cookie.data);
    ldap_entry_done(&m->entry);
    *m = (struct ldap_message){0};
}

static int get_value(struct ber *b, uint8_t tag, struct ldap_value *ret)
{
    struct ber v;
    int r = ber_get(b, tag, &v);
    if (r == 0) {
        size_t size = (size_t) (v.end - v.p);
        free(ret->data);
        *ret = (struct ldap_value){.data = xstrndup("", 0), .size = size};
        ret->data = xreallocarray(ret->data, size + 1, 1);
        memcpy(ret->data, v.p, size);
        ret->data[size] = '\0';
    }
    return r;
}

/* Text: octets without NUL. */
static int get_text(struct ber *b, uint8_t tag, char **ret)
{
    struct ldap_value v = {0};
    int r = get_value(b, tag, &v);
    if (r == 0 && strlen(v.data) != v.size) {
        free(v.data);
        return -EINVAL;
    }
    if (r == 0) {
        free(*ret);
        *ret = v.data;
    }
    return r;
}

/* LDAPResult (RFC 4511, 4.1.9). */
static int get_result(struct ber *b, struct ldap_message *m)
{
    CLEANUP_FREE char *matched = NULL;
    int r = ber_get_int(b, BER_ENUM, &m->result);
    r = r < 0 ? r : get_text(b, BER_OCTETS, &matched);
    r = r < 0 ? r : get_text(b, BER_OCTETS, &m->text);
    if (r == 0 && ber_is(b, RESULT_REFERRAL)) {
        r = ber_skip(b);
    }
    return r;
}

static int get_attribute(struct ber *list, struct ldap_entry *entry, size_t *cap)
{
    struct ber b, set;
    int r = ber_get(list, BER_SEQUENCE, &b);
    if (r < 0) {
        return r;
    }
    entry->attributes = grow(entry->attributes, cap, entry->n + 1, sizeof *entry->attributes);
    struct ldap_attribute *a = &entry->attributes[entry->n++];
    *a = (struct ldap_attribute){0};
    size_t values = 0;
    r = get_text(&b, BER_OCTETS, &a->name);
    r = r < 0 ? r : ber_get(&b, BER_SET, &set);
    while (r == 0 && !ber_at_end(&set)) {
        a->values = grow(a->values, &values, a->n + 1, sizeof *a->values);
        a->values[a->n] = (struct ldap_value){0};
        r = get_value(&set, BER_OCTETS, &a->values[a->n]);
        a->n += r == 0;
    }
    return r == 0 && !ber_at_end(&b) ? -EINVAL : r;
}

static int get_entry(struct ber *b, struct ldap_entry *entry)
{
    struct ber list;
    size_t cap = 0;
    int r = get_text(b, BER_OCTETS, &entry->dn);
    r = r < 0 ? r : ber_get(b, BER_SEQUENCE, &list);
    while (r == 0 && !ber_at_end(&list)) {
        r = get_attribute(&list, entry, &cap);
    }
    return r;
}

static int get_operation(struct ber *b, struct ldap_message *m)
{
    if (b->p == b->end) {
        return -EINVAL;
    }
    uint8_t tag = *b->p;
    struct ber op;
    int r = ber_get(b, tag, &op);
    if (r < 0 || (tag & 0xe0) != 0x60) {
        return -EINVAL;
    }
    m->operation = tag & 0x1f;
    switch (m->operation) {
    case LDAP_ENTRY:
        r = get_entry(&op, &m->entry);
        break;
    case LDAP_REFERENCE:
        return 0; /* Referrals are not followed. */
    case LDAP_BIND_RESPONSE:
        r = get_result(&op, m);
        if (r == 0 && ber_is(&op, BIND_SASL)) {
            r = ber_skip(&op);
        }
        break;
    case LDAP_SEARCH_DONE:
        r = get_result(&op, m);
        break;
    case LDAP_EXTENDED_RESPONSE:
        r = get_result(&op, m);
        if (r == 0 && ber_is(&op, RESPONSE_NAME)) {
            r = get_text(&op, RESPONSE_NAME, &m->oid);
        }
        if (r == 0 && ber_is(&op, RESPONSE_VALUE)) {
            r = ber_skip(&op);
        }
        break;
    default:
        return -EINVAL;
    }
    return r == 0 && !ber_at_end(&op) ? -EINVAL : r;
}

static int get_paging(struct ber value, struct ldap_message *m)
{
    struct ber seq;
    uint32_t estimate;
    int r = ber_get(&value, BER_SEQUENCE, &seq);
    r = r < 0 ? r : ber_get_int(&seq, BER_INT, &estimate);
    r = r < 0 ? r : get_value(&seq, BER_OCTETS, &m->cookie);
    m->paged = r == 0;
    return r == 0 && (!ber_at_end(&seq) || !ber_at_end(&value)) ? -EINVAL : r;
}

static int get_controls(struct ber *b, struct ldap_message *m)
{
    struct ber controls, control, value, critical;
    int r = ber_get(b, OP_CONTROLS, &controls);
    while (r == 0 && !ber_at_end(&controls)) {
        CLEANUP_FREE char *oid = NULL;
        bool has_value = false;
        r = ber_get(&controls, BER_SEQUENCE, &control);
        r = r < 0 ? r : get_text(&control, BER_OCTETS, &oid);
        if (r == 0 && ber_is(&control, BER_BOOL)) {
            r = ber_get(&control, BER_BOOL, &critical);
        }
        if (r == 0 && ber_is(&control, BER_OCTETS)) {
            has_value = true;
            r = ber_get(&control, BER_OCTETS, &value);
        }
        if (r == 0 && !ber_at_end(&control)) {
            r = -EINVAL;
        }
        if (r == 0 && has_value && !m->paged && m->operation == LDAP_SEARCH_DONE &&
            streq(oid, paged_results)) {
            r = get_paging(value, m);
        }
    }
    return r;
}

int ldap_parse(const void *p, size_t size, struct ldap_message *ret, struct err *e)
{
    CLEANUP(ldap_message_done)
    struct ldap_message m = {.text = xstrdup(""), .oid = xstrdup("")};
    struct ber all = {.p = p, .end = (const uint8_t *) p + size}, b;
    uint32_t id = 0;
    int r = ber_get(&all, BER_SEQUENCE, &b);
    r = r < 0 ? r : ber_get_int(&b, BER_INT, &id);
    r = r < 0 ? r : get_operation(&b, &m);
    if (r == 0 && ber_is(&b, OP_CONTROLS)) {
        r = get_controls(&b, &m);
    }
    if (r < 0 || !ber_at_end(&b) || !ber_at_end(&all) ||
        (id == 0 && m.operation != LDAP_EXTENDED_RESPONSE)) {
        return err_set(e, -EINVAL, "malformed LDAP message");
    }
    m.id = (int32_t) id;
    *ret = m;
    m = (struct ldap_message){0};
    return 0;
}

/* RFC 4511, 4.1.9. */
const char *ldap_result_text(uint32_t result, char buf[LDAP_RESULT_TEXT_SIZE])
{
    static const struct {
        uint32_t code;
        const char *text;
    } names[] = {
        {0, "success"},
        {1, "operations error"},
        {2, "protocol error"},
        {3, "time limit exceeded"},
        {4, "size limit exceeded"},
        {7, "authentication method not supported"},
        {8, "stronger authentication required"},
        {10, "referral"},
        {11, "administrative limit exceeded"},
        {12, "unavailable critical extension"},
        {13, "confidentiality required"},
        {16, "no such attribute"},
        {17, "undefined attribute type"},
        {18, "inappropriate matching"},
        {21, "invalid attribute syntax"},
        {32, "no such object"},
        {34, "invalid DN syntax"},
        {48, "inappropriate authentication"},
        {49, "invalid credentials"},
        {50, "insufficient access rights"},
        {51, "busy"},
        {52, "unavailable"},
        {53, "unwilling to perform"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (names[i].code == result) {
            return names[i].text;
        }
    }
    snprintf(buf, LDAP_RESULT_TEXT_SIZE, "result %u", result);
    return buf;
}
