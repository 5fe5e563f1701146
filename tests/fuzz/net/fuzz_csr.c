/* SPDX-License-Identifier: Apache-2.0 */
/* Signing requests: PEM, and DER made PEM; what is read can be signed. */
#include "base/base64.h"
#include "base/mem.h"
#include "net/tls/pki_csr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const char *pem)
{
    static struct pki_ca *ca;
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    if (!ca) {
        ca = pki_ca_new(0, INT64_C(4102444800000));
    }
    if (pki_csr_read(pem, &c, NULL) == 0) {
        CLEANUP_FREE char *cert = NULL;
        int64_t from, until;
        if (!c.cn || pki_csr_sign(ca, pem, PKI_CLIENT | PKI_SERVER, 0, 86400000, &cert, NULL) < 0 ||
            pki_cert_times(cert, &from, &until, NULL) < 0 || until != 86400000) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    run(text);
    CLEANUP_STRBUF struct strbuf pem = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    base64_encode(data, size, &b);
    strbuf_adds(&pem, "-----BEGIN CERTIFICATE REQUEST-----\n");
    for (size_t at = 0; at < b.size; at += 64) {
        strbuf_addf(&pem, "%.64s\n", b.data + at);
    }
    strbuf_adds(&pem, "-----END CERTIFICATE REQUEST-----\n");
    run(strbuf_cstr(&pem));
    return 0;
}
