/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/addresses.h"

#include <stdlib.h>

#define RCODE 0xf
#define CLASS_IN 1
#define ALIASES_MAX 16 /* Resolvers usually follow no more. */
#define REFRESH_S 30
#define REFRESH_LONG_S 1800

uint32_t dns_addresses_refresh_s(uint32_t ttl_s)
{
    return ttl_s < REFRESH_S ? MAX(ttl_s, 1) : ttl_s < REFRESH_LONG_S ? REFRESH_S : REFRESH_LONG_S;
}

static int compare_ips(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return x < y ? -1 : x > y;
}

static void sort(struct dns_addresses *a)
{
    size_t n = 0;
    qsort(a->ip, a->n, sizeof *a->ip, compare_ips);
    for (size_t i = 0; i < a->n; i++) {
        if (!n || a->ip[n - 1] != a->ip[i]) {
            a->ip[n++] = a->ip[i];
        }
    }
    a->n = n;
}

static int add(struct dns_addresses *a, const uint8_t *message, const struct dns_record *r,
               struct err *e)
{
    const uint8_t *b = message + r->rdata;
    if (r->rdata_size != 4) {
        return err_set(e, -EBADMSG, "the answer has an address of %u bytes", r->rdata_size);
    }
    if (a->n == DNS_ADDRESSES_MAX) {
        return err_set(e, -E2BIG, "the name has more than %d addresses", DNS_ADDRESSES_MAX);
    }
    a->ip[a->n++] =
        (uint32_t) b[0] << 24 | (uint32_t) b[1] << 16 | (uint32_t) b[2] << 8 | (uint32_t) b[3];
    a->ttl_s = MIN(a->ttl_s, r->ttl);
    return 0;
}

/* One pass: collects the addresses of 'name', or finds its alias.  1: '*alias' is it. */
static int read_once(const uint8_t *message, size_t size, const struct dns_name *name,
                     struct dns_addresses *a, struct dns_name *alias, struct err *e)
{
    struct dns_reader r;
    struct dns_record rec;
    bool has_alias = false;
    int more = dns_reader_init(&r, message, size);
    while (more >= 0 && (more = dns_reader_next(&r, &rec)) > 0) {
        size_t end;
        if (rec.section != DNS_ANSWER || rec.class != CLASS_IN ||
            !dns_name_equal(&rec.owner, name)) {
            continue;
        }
        int added = rec.type == DNS_A ? add(a, message, &rec, e) : 0;
        if (added < 0) {
            return added;
        }
        if (rec.type == DNS_CNAME && !has_alias) {
            if (dns_reader_name(&r, rec.rdata, &end, alias) < 0) {
                return err_set(e, -EBADMSG, "the answer is malformed");
            }
            has_alias = true;
            a->ttl_s = MIN(a->ttl_s, rec.ttl);
        }
    }
    if (more < 0) {
        return err_set(e, -EBADMSG, "the answer is malformed");
    }
    return has_alias && !a->n;
}

int dns_addresses_read(const uint8_t *message, size_t size, struct dns_addresses *ret,
                       struct err *e)
{
    struct dns_reader r;
    struct dns_addresses a = {.ttl_s = UINT32_MAX};
    if (dns_reader_init(&r, message, size) < 0) {
        return err_set(e, -EBADMSG, "the answer is malformed");
    }
    unsigned rcode = r.flags & RCODE;
    if (rcode == DNS_NXDOMAIN) {
        return err_set(e, -ENOENT, "the name does not exist");
    }
    if (rcode != DNS_NOERROR) {
        return err_set(e, -EREMOTEIO, "the name server answers with the code %u", rcode);
    }
    struct dns_name name = r.question, alias;
    int more = 1;
    for (unsigned i = 0; more > 0 && i <= ALIASES_MAX; i++) {
        more = read_once(message, size, &name, &a, &alias, e);
        name = more > 0 ? alias : name;
    }
    if (more < 0) {
        return more;
    }
    if (more > 0) {
        return err_set(e, -EBADMSG, "the name has more than %d aliases in a row", ALIASES_MAX);
    }
    if (!a.n) {
        return err_set(e, -ENOENT, "the name has no IPv4 address");
    }
    sort(&a);
    *ret = a;
    return 0;
}
