/* SPDX-License-Identifier: Apache-2.0 */
/* resolv.conf and lists of name servers: what is read can be written, and is read as the same. */
#include "dns/resolv.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check(const struct dns_servers *s)
{
    CHECK(s->n <= DNS_SERVERS_MAX);
    for (size_t i = 0; i < s->n; i++) {
        char text[DNS_ENDPOINT_TEXT];
        union dns_endpoint again;
        dns_endpoint_format(&s->at[i], text);
        CHECK(dns_endpoint_parse(text, &again, NULL) == 0);
        CHECK(dns_endpoint_equal(&s->at[i], &again));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dns_servers s;
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    dns_servers_read((const char *) data, size, &s);
    check(&s);
    if (dns_servers_parse(text, &s, NULL) == 0) {
        check(&s);
    }
    return 0;
}
