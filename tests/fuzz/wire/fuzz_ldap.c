/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of an LDAP server, one after another. */
#include "wire/ldap.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ssize_t n;
    while ((n = ldap_message_size(data, size)) > 0) {
        CLEANUP(ldap_message_done) struct ldap_message m = {0};
        if (ldap_parse(data, (size_t) n, &m, NULL) == 0) {
            for (size_t i = 0; i < m.entry.n; i++) {
                const struct ldap_attribute *a = &m.entry.attributes[i];
                if ((ldap_entry_get(&m.entry, a->name) == NULL) && a->n) {
                    abort();
                }
            }
        }
        data += n;
        size -= (size_t) n;
    }
    return 0;
}
