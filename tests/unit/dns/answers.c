/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include <arpa/inet.h>
#include <stdio.h>

struct sdn_service *make_service(const char *service, const char *slice)
{
    CLEANUP(json_free) struct json *v = NULL, *w = NULL;
    struct err e = {0};
    struct sdn_service *s = NULL;
    if (json_parse(service, strlen(service), &v, &e) < 0 || sdn_service_parse(v, &s, &e) < 0) {
        fprintf(stderr, "service: %s\n", e.text);
        abort();
    }
    if (slice) {
        struct sdn_slice *p = NULL;
        if (json_parse(slice, strlen(slice), &w, &e) < 0 || sdn_slice_parse(w, &p, &e) < 0) {
            fprintf(stderr, "slice: %s\n", e.text);
            abort();
        }
        sdn_service_join(s, &p, 1);
        sdn_slice_unref(p);
    }
    return s;
}

void set_service(struct dns_zone *z, const char *service, const char *slice)
{
    CLEANUP(sdn_service_free) struct sdn_service *s = make_service(service, slice);
    dns_zone_set_service(z, s);
}

size_t make_query(const char *name, uint16_t type, bool edns, uint8_t *out, size_t size)
{
    struct dns_name n;
    uint8_t buf[DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE];
    if (dns_name_parse(name, &n) < 0) {
        abort();
    }
    size_t used = dns_query_write(0x1234, &n, type, edns, false, buf);
    if (used > size) {
        abort();
    }
    memcpy(out, buf, used);
    return used;
}

static void name_text(const struct dns_reader *r, size_t at, struct strbuf *b)
{
    struct dns_name n;
    char text[DNS_NAME_TEXT];
    size_t end;
    if (dns_reader_name(r, at, &end, &n) < 0) {
        abort();
    }
    dns_name_format(&n, text);
    strbuf_adds(b, text);
}

static char *record_text(const struct dns_reader *r, const struct dns_record *rec)
{
    struct strbuf b = STRBUF_INIT;
    char name[DNS_NAME_TEXT], ip[INET6_ADDRSTRLEN];
    const uint8_t *p = r->data + rec->rdata;
    dns_name_format(&rec->owner, name);
    strbuf_adds(&b, name);
    switch (rec->type) {
    case DNS_A:
    case DNS_AAAA:
        inet_ntop(rec->type == DNS_A ? AF_INET : AF_INET6, p, ip, sizeof ip);
        strbuf_addf(&b, " %s %s", rec->type == DNS_A ? "A" : "AAAA", ip);
        break;
    case DNS_SRV:
        strbuf_addf(&b, " SRV %u %u %u ", dns_get16(p), dns_get16(p + 2), dns_get16(p + 4));
        name_text(r, rec->rdata + 6u, &b);
        break;
    case DNS_CNAME:
    case DNS_PTR:
    case DNS_NS:
        strbuf_adds(&b, rec->type == DNS_CNAME ? " CNAME "
                        : rec->type == DNS_PTR ? " PTR "
                                               : " NS ");
        name_text(r, rec->rdata, &b);
        break;
    case DNS_TXT:
        strbuf_addf(&b, " TXT %.*s", p[0], (const char *) p + 1);
        break;
    case DNS_SOA:
        strbuf_addf(&b, " SOA %u", dns_get32(p + rec->rdata_size - 4));
        break;
    default:
        strbuf_addf(&b, " TYPE%u", rec->type);
    }
    return strbuf_steal(&b);
}

/* CNAMEs first, as they are written. */
static int compare_texts(const void *a, const void *b)
{
    const char *x = *(char *const *) a, *y = *(char *const *) b;
    int chain = (strstr(y, " CNAME ") != NULL) - (strstr(x, " CNAME ") != NULL);
    return chain ? chain : strcmp(x, y);
}

char *message_text(const uint8_t *data, size_t size, bool sorted)
{
    static const char *const rcodes[] = {"NOERROR",  "FORMERR", "SERVFAIL",
                                         "NXDOMAIN", "NOTIMP",  "REFUSED"};
    struct strbuf out = STRBUF_INIT;
    struct dns_reader r;
    struct dns_record rec;
    char *texts[3][600];
    size_t n[3] = {0};
    int more;
    if (dns_reader_init(&r, data, size) < 0) {
        abort();
    }
    strbuf_addf(&out, "%s%s%s", rcodes[r.flags & DNS_RCODE], r.flags & DNS_AA ? " aa" : "",
                r.flags & DNS_TC ? " tc" : "");
    while ((more = dns_reader_next(&r, &rec)) > 0) {
        if (rec.type != DNS_OPT) {
            texts[rec.section - 1][n[rec.section - 1]++] = record_text(&r, &rec);
        }
    }
    if (more < 0) {
        abort();
    }
    for (size_t s = 0; s < 3; s++) {
        if (sorted) {
            qsort(texts[s], n[s], sizeof texts[s][0], compare_texts);
        }
        for (size_t i = 0; i < n[s]; i++) {
            static const char *const begin[] = {" | ", " | auth ", " | add "};
            strbuf_addf(&out, "%s%s", i ? ", " : begin[s], texts[s][i]);
            free(texts[s][i]);
        }
    }
    return strbuf_steal(&out);
}

char *ask(const struct dns_zone *z, uint32_t client, const char *name, uint16_t type)
{
    static unsigned turn;
    uint8_t query[600], buf[DNS_UDP_EDNS];
    struct dns_query q;
    struct dns_writer w;
    struct dns_lookup found;
    char elsewhere[DNS_NAME_TEXT];
    size_t size = make_query(name, type, true, query, sizeof query);
    if (dns_query_parse(query, size, &q) < 0) {
        abort();
    }
    dns_writer_answer(&w, &q, query + DNS_HEADER, buf, sizeof buf);
    dns_zone_answer(z, client, turn++, &w, &found);
    size = dns_writer_finish(&w, found.authoritative ? DNS_AA : 0, found.rcode);
    char *text = message_text(buf, size, true);
    if (found.elsewhere) {
        dns_name_format(&found.target, elsewhere);
        char *both =
            xasprintf("%s%s elsewhere %s", text, found.searched ? " searched" : "", elsewhere);
        free(text);
        return both;
    }
    return text;
}
