/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys of users: which PEM a server could use. */
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "net/tls/pki.h"
#include "net/tls/pki_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

struct pair {
    struct pki_ca *ca;
    struct pki_pair one, other;
};

static struct pki_pair issue(const struct pki_ca *ca, const char *name)
{
    const struct pki_request q = {.cn = name, .names = &name, .n_names = 1, .until_ms = 1LL << 42};
    struct pki_pair p = {0};
    struct err e;
    assert_int_equal(pki_issue(ca, &q, &p, &e), 0);
    return p;
}

static int make(void **state)
{
    struct pair *p = NEW(struct pair);
    p->ca = pki_ca_new(time_wall_ms(), 1LL << 42);
    p->one = issue(p->ca, "www.example.com");
    p->other = issue(p->ca, "other.example.com");
    *state = p;
    return 0;
}

static int drop(void **state)
{
    struct pair *p = *state;
    pki_pair_done(&p->one);
    pki_pair_done(&p->other);
    pki_ca_free(p->ca);
    free(p);
    return 0;
}

static void want(int r, const struct err *e, const char *text)
{
    if (!text) {
        assert_int_equal(r, 0);
        return;
    }
    assert_int_equal(r, -EINVAL);
    assert_string_equal(e->text, text);
}

static void certificates_are_read_with_their_chain(void **state)
{
    struct pair *p = *state;
    struct err e;
    CLEANUP_FREE char *chain = xasprintf("%s%s", p->one.cert, pki_ca_pem(p->ca));
    CLEANUP_FREE char *both = xasprintf("%s%s", p->one.key, p->one.cert);
    CLEANUP_FREE char *noted = xasprintf("# a comment\n%s\n", p->one.cert);
    want(pki_check_certificate(p->one.cert, &e), &e, NULL);
    want(pki_check_certificate(chain, &e), &e, NULL);
    want(pki_check_certificate(both, &e), &e, NULL);
    want(pki_check_authorities(chain, &e), &e, NULL);
    want(pki_check_authorities(noted, &e), &e, NULL);
    want(pki_check_authorities(both, &e), &e,
         "has a block \"PRIVATE KEY\", which is not a certificate");
}

static void what_cannot_be_read_is_refused(void **state)
{
    struct pair *p = *state;
    struct err e;
    CLEANUP_FREE char *half = xstrndup(p->one.cert, strlen(p->one.cert) / 2);
    CLEANUP_FREE char *one_line = xstrdup(p->one.cert);
    for (char *c = one_line; *c; c++) {
        *c = *c == '\n' ? ' ' : *c;
    }
    want(pki_check_certificate("", &e), &e, "has no certificate in PEM form");
    want(pki_check_certificate("secret", &e), &e, "has no certificate in PEM form");
    assert_int_equal(pki_check_certificate(half, &e), -EINVAL);
    assert_int_equal(pki_check_certificate(one_line, &e), -EINVAL);
    want(
        pki_check_certificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &e),
        &e, "certificate 1 cannot be read");
    want(pki_check_certificate("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE "
                               "REQUEST-----\n",
                               &e),
         &e, "has a block \"CERTIFICATE REQUEST\", which is not a certificate");
}

static void a_text_has_a_largest_size(void **state)
{
    struct pair *p = *state;
    struct err e;
    CLEANUP_STRBUF struct strbuf big = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf many = STRBUF_INIT;
    while (big.size <= PKI_CHECK_MAX_PEM) {
        strbuf_adds(&big, "# a long comment that is no certificate\n");
    }
    for (unsigned i = 0; i <= PKI_CHECK_MAX_CERTS; i++) {
        strbuf_adds(&many, p->one.cert);
    }
    want(pki_check_authorities(big.data, &e), &e, "is longer than 1048576 bytes");
    want(pki_check_key(big.data, &e), &e, "is longer than 1048576 bytes");
    want(pki_check_authorities(many.data, &e), &e, "has more than 256 certificates");
}

static void a_key_fits_its_certificate(void **state)
{
    struct pair *p = *state;
    struct err e;
    CLEANUP_FREE char *both = xasprintf("%s%s", p->one.cert, p->one.key);
    want(pki_check_key(p->one.key, &e), &e, NULL);
    want(pki_check_pair(p->one.cert, p->one.key, &e), &e, NULL);
    want(pki_check_pair(both, NULL, &e), &e, NULL);
    want(pki_check_pair(p->one.cert, p->other.key, &e), &e, "is not the key of the certificate");
    want(pki_check_key(p->one.cert, &e), &e, "is no private key in PEM form");
    want(pki_check_key("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE "
                       "KEY-----\n",
                       &e),
         &e, "is encrypted, and no password can be given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(certificates_are_read_with_their_chain, make, drop),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(a_text_has_a_largest_size, make, drop),
        cmocka_unit_test_setup_teardown(a_key_fits_its_certificate, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
