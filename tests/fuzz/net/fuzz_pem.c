/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys of users.  What is accepted as a pair is accepted as its parts. */
#include "base/mem.h"
#include "net/tls/pki_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    struct err e;
    bool key = pki_check_key(text, &e) == 0;
    bool authorities = pki_check_authorities(text, &e) == 0;
    if (pki_check_pair(text, NULL, &e) == 0 && !key) {
        abort();
    }
    if (authorities && pki_check_certificate(text, &e) < 0) {
        abort();
    }
    return 0;
}
