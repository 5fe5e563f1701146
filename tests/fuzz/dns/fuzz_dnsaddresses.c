/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of name servers, from which the addresses of names in egress firewalls are read. */
#include "dns/addresses.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dns_addresses a;
    struct err e = {0};
    int r = dns_addresses_read(data, size, &a, &e);
    CHECK((r < 0) == (e.text[0] != '\0'));
    if (r == 0) {
        CHECK(a.n >= 1 && a.n <= DNS_ADDRESSES_MAX);
        for (size_t i = 1; i < a.n; i++) {
            CHECK(a.ip[i - 1] < a.ip[i]);
        }
        CHECK(dns_addresses_refresh_s(a.ttl_s) >= 1);
    }
    return 0;
}
