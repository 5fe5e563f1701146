/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of LDAP: a filter, a URL, a name; and any value in a filter stays one value. */
#include "wire/ldap.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    CLEANUP(ldap_url_done) struct ldap_url u = {0};
    CLEANUP_STRBUF struct strbuf once = STRBUF_INIT, twice = STRBUF_INIT, filter = STRBUF_INIT;
    ldap_filter_check(text, NULL);
    ldap_url_parse(text, &u, NULL);
    if (ldap_dn_normalize(text, &once, NULL) == 0 &&
        (ldap_dn_normalize(strbuf_cstr(&once), &twice, NULL) < 0 ||
         !streq(strbuf_cstr(&once), strbuf_cstr(&twice)))) {
        abort();
    }
    strbuf_adds(&filter, "(uid=");
    ldap_filter_escape(data, size, &filter);
    strbuf_adds(&filter, ")");
    struct strbuf ber = STRBUF_INIT;
    if (ldap_filter_write(filter.data, &ber, NULL) == 0 &&
        ((unsigned char) ber.data[0] != 0xa3 || ber.size < size ||
         memcmp(ber.data + ber.size - size, data, size) != 0)) {
        abort();
    }
    strbuf_done(&ber);
    return 0;
}
