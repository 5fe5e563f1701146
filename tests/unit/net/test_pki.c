/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"
#include "net/tls/pki.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* 64 bytes. */
#define LONG_LABEL "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define NOW 1800000000000LL
#define DAY_MS (24 * 3600000LL)
#define CLEANUP_PAIR __attribute__((cleanup(pki_pair_done)))

static char *dir;

static int set_up(void **state)
{
    char template[] = "/tmp/tenet-pki-XXXXXX";
    dir = xstrdup(mkdtemp(template));
    return 0;
}

static int tear_down(void **state)
{
    int r = dir_remove(dir, NULL);
    free(dir);
    return r;
}

static const char *const groups[] = {"system:masters"};
static const char *const names[] = {"192.0.2.1", "a.example", "*.b.example"};
static const struct pki_request server = {
    .cn = "s", .names = names, .n_names = 3, .from_ms = NOW, .until_ms = NOW + 30 * DAY_MS};
static const struct pki_request user = {
    .cn = "u", .o = groups, .n_o = 1, .from_ms = NOW, .until_ms = NOW + 30 * DAY_MS};

static void what_was_issued_is_good_until_a_third_is_left(void **state)
{
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(NOW, NOW + 100 * DAY_MS);
    CLEANUP_PAIR struct pki_pair s = {0}, u = {0};
    struct err e = {0};
    assert_int_equal(pki_issue(ca, &server, &s, &e), 0);
    assert_int_equal(pki_issue(ca, &user, &u, &e), 0);
    assert_true(pki_is_good(ca, &server, &s, NOW));
    assert_true(pki_is_good(ca, &user, &u, NOW));
    assert_true(pki_is_good(ca, &server, &s, NOW + 20 * DAY_MS - 1000));
    assert_false(pki_is_good(ca, &server, &s, NOW + 20 * DAY_MS));
    assert_false(pki_is_good(ca, &server, &s, NOW - 1000));
}

static void what_is_not_as_asked_is_not_good(void **state)
{
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(NOW, NOW + 100 * DAY_MS);
    CLEANUP(pki_ca_free) struct pki_ca *other = pki_ca_new(NOW, NOW + 100 * DAY_MS);
    CLEANUP_PAIR struct pki_pair s = {0}, u = {0};
    struct err e = {0};
    assert_int_equal(pki_issue(ca, &server, &s, &e), 0);
    assert_int_equal(pki_issue(ca, &user, &u, &e), 0);
    struct pki_pair mixed = {s.cert, u.key};
    assert_false(pki_is_good(ca, &server, &mixed, NOW));
    assert_false(pki_is_good(other, &server, &s, NOW)); /* Even of the same name. */
    static const char *const more[] = {"192.0.2.1", "192.0.2.2"};
    static const char *const other_dns[] = {"c.example"};
    struct pki_request q = server;
    q.names = more;
    q.n_names = 2;
    assert_false(pki_is_good(ca, &q, &s, NOW));
    q.names = other_dns;
    q.n_names = 1;
    assert_false(pki_is_good(ca, &q, &s, NOW));
    q = user;
    q.n_o = 0;
    assert_false(pki_is_good(ca, &q, &u, NOW));
    q = user;
    q.cn = "v";
    assert_false(pki_is_good(ca, &q, &u, NOW));
    struct pki_pair text = {(char *) "x", (char *) "y"};
    assert_false(pki_is_good(ca, &user, &text, NOW));
}

static void names_that_cannot_be_are_refused(void **state)
{
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(NOW, NOW + 100 * DAY_MS);
    static const char *const bad[] = {"",  ".",     "a..b",   "a b", "a,DNS:b",
                                      "*", "a.*.b", "(none)", "a.",  LONG_LABEL ".x"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct pki_request q = server;
        struct pki_pair p;
        struct err e = {0};
        q.names = &bad[i];
        q.n_names = 1;
        if (pki_issue(ca, &q, &p, &e) != -EINVAL || pki_name_is_valid(bad[i])) {
            fail_msg("%s", bad[i]);
        }
    }
    struct pki_request q = user;
    struct pki_pair p;
    q.cn = "";
    assert_int_equal(pki_issue(ca, &q, &p, NULL), -EINVAL);
    q.cn = "12345678901234567890123456789012345678901234567890123456789012345";
    assert_int_equal(pki_issue(ca, &q, &p, NULL), -EINVAL);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void an_authority_is_made_once(void **state)
{
    CLEANUP_FREE char *crt = xasprintf("%s/ca.crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/ca.key", dir);
    CLEANUP_FREE char *text = NULL;
    struct err e = {0};
    for (int i = 0; i < 2; i++) {
        CLEANUP(pki_ca_free) struct pki_ca *ca = NULL;
        assert_int_equal(pki_ca_open(dir, NOW + i * DAY_MS, &ca, &e), 0);
        if (text) {
            assert_string_equal(pki_ca_pem(ca), text);
        } else {
            text = xstrdup(pki_ca_pem(ca));
        }
    }
    assert_int_equal(mode_of(key), 0600);
    assert_int_equal(mode_of(crt), 0644);
    struct pki_ca *ca = NULL;
    assert_int_equal(pki_ca_open(dir, NOW + 4000 * DAY_MS, &ca, &e), -EINVAL);
    assert_non_null(strstr(e.text, "has expired"));
    /* A key alone was left by an interruption; nothing was signed with it. */
    unlink(crt);
    assert_int_equal(pki_ca_open(dir, NOW, &ca, &e), 0);
    assert_string_not_equal(pki_ca_pem(ca), text);
    ca = pki_ca_free(ca);
    /* A certificate alone is not ours to replace. */
    unlink(key);
    assert_int_equal(pki_ca_open(dir, NOW, &ca, &e), -EINVAL);
    assert_non_null(strstr(e.text, "ca.key"));
    assert_int_equal(file_write_atomic(key, "x", 1, 0600, NULL), 0);
    assert_int_equal(pki_ca_open(dir, NOW, &ca, &e), -EINVAL);
    assert_non_null(strstr(e.text, "not a private key"));
    unlink(key);
    unlink(crt);
}

static void files_are_made_again_when_they_are_not_good(void **state)
{
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(NOW, NOW + 100 * DAY_MS);
    CLEANUP_FREE char *crt = xasprintf("%s/server.crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/server.key", dir);
    struct err e = {0};
    bool made;
    static const bool expect[] = {true, false, true, true, false, true};
    struct pki_request q = server;
    for (size_t i = 0; i < ARRAY_SIZE(expect); i++) {
        int64_t now = i == 5 ? NOW + 21 * DAY_MS : NOW;
        if (i == 2) { /* Interrupted between the two. */
            assert_int_equal(file_write_atomic(key, "", 0, 0600, NULL), 0);
        } else if (i == 3) {
            unlink(crt);
        }
        q.from_ms = now;
        q.until_ms = now + 30 * DAY_MS;
        assert_int_equal(pki_ensure_files(ca, &q, crt, key, now, &made, &e), 0);
        assert_int_equal(made, expect[i]);
        assert_int_equal(mode_of(key), 0600);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_issued_is_good_until_a_third_is_left),
        cmocka_unit_test(what_is_not_as_asked_is_not_good),
        cmocka_unit_test(names_that_cannot_be_are_refused),
        cmocka_unit_test(an_authority_is_made_once),
        cmocka_unit_test(files_are_made_again_when_they_are_not_good),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
