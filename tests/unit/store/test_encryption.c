/* SPDX-License-Identifier: Apache-2.0 */
/* Encryption at rest: the envelope of Kubernetes, keys that are replaced, values that were changed
 * or moved, and the front of the store. */
#include "base/base64.h"
#include "harness.h"
#include "store/encryption.h"

#include <sys/stat.h>

#define SECRET "/registry/secrets/red/s"
#define OTHER "/registry/secrets/red/t"
#define HEAD "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
#define K16 "MDEyMzQ1Njc4OWFiY2RlZg=="
#define K32 "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
#define RULE(providers) HEAD "- resources: [secrets]\n  providers:\n" providers
#define GCM(name, key) "  - aesgcm: {keys: [{name: " name ", secret: " key "}]}\n"
#define CBC(name, key) "  - aescbc: {keys: [{name: " name ", secret: " key "}]}\n"
#define NONE "  - identity: {}\n"

static struct encryption *parsed(const char *text)
{
    struct encryption *x = NULL;
    struct err e = {0};
    if (encryption_parse(text, strlen(text), &x, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return x;
}

static struct blob *sealed(const struct encryption *x, const char *key, const char *text)
{
    CLEANUP(blob_unref) struct blob *value = blob_new(text, strlen(text));
    struct blob *ret = NULL;
    struct err e = {0};
    assert_int_equal(encryption_seal(x, key, value, &ret, &e), 0);
    return ret;
}

static void expect_open(const struct encryption *x, const char *key, struct blob *value,
                        const char *text)
{
    CLEANUP(blob_unref) struct blob *ret = NULL;
    struct err e = {0};
    if (encryption_open(x, key, value, &ret, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(ret->size, strlen(text));
    assert_memory_equal(ret->data, text, ret->size);
}

static void expect_closed(const struct encryption *x, const char *key, struct blob *value, int r,
                          const char *why)
{
    struct blob *ret = NULL;
    struct err e = {0};
    assert_int_equal(encryption_open(x, key, value, &ret, &e), r);
    assert_null(ret);
    if (!strstr(e.text, why)) {
        fail_msg("\"%s\" is not in \"%s\"", why, e.text);
    }
}

static void each_cipher_and_key_size_comes_back(void **state)
{
    static const char *const rules[] = {RULE(GCM("a", K16)), RULE(GCM("a", K32)),
                                        RULE(CBC("a", K16)), RULE(CBC("a", K32)),
                                        RULE(GCM("a", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"))};
    static const char *const texts[] = {"", "{}", "0123456789abcdef", "0123456789abcdef0"};
    for (size_t r = 0; r < ARRAY_SIZE(rules); r++) {
        CLEANUP(encryption_free) struct encryption *x = parsed(rules[r]);
        for (size_t t = 0; t < ARRAY_SIZE(texts); t++) {
            CLEANUP(blob_unref) struct blob *one = sealed(x, SECRET, texts[t]);
            CLEANUP(blob_unref) struct blob *two = sealed(x, SECRET, texts[t]);
            expect_open(x, SECRET, one, texts[t]);
            assert_true(one->size != two->size || memcmp(one->data, two->data, one->size) != 0);
            assert_true(str_has_prefix(one->data, r < 2 || r == 4 ? "k8s:enc:aesgcm:v1:a:"
                                                                  : "k8s:enc:aescbc:v1:a:"));
        }
    }
}

/* Made by OpenSSL's program: openssl enc -aes-128-cbc -K 30313233...66 -iv 00..0f, of "hello". */
static void an_envelope_of_kubernetes_is_read(void **state)
{
    static const char text[] = "AAECAwQFBgcICQoLDA0OD36SFz4gdpzVbDuqkp5caBw=";
    CLEANUP(encryption_free) struct encryption *x = parsed(RULE(CBC("key1", K16)));
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "k8s:enc:aescbc:v1:key1:");
    assert_int_equal(base64_decode(text, strlen(text), &b), 0);
    CLEANUP(blob_unref) struct blob *value = blob_new(b.data, b.size);
    expect_open(x, SECRET, value, "hello");
}

static void other_kinds_are_left_as_they_are(void **state)
{
    static const struct {
        const char *resource, *key;
        bool is_for;
    } cases[] = {
        {"secrets", SECRET, true},
        {"secrets", "/registry/configmaps/red/s", false},
        {"secrets", "/registry/secretsx/red/s", false},
        {"secrets", "/registry/example.com/secrets/red/s", false},
        {"secrets.example.com", "/registry/example.com/secrets/red/s", true},
        {"deployments.apps", "/registry/apps/deployments/red/d", true},
        {"deployments", "/registry/apps/deployments/red/d", false},
        {"'*.apps'", "/registry/apps/statefulsets/red/d", true},
        {"'*.'", "/registry/pods/red/p", true},
        {"'*.'", "/registry/apps/deployments/red/d", false},
        {"'*.*'", "/registry/apps/deployments/red/d", true},
        {"'*.*'", "/registry/pods/red/p", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text =
            xasprintf(HEAD "- resources: [%s]\n  providers:\n" GCM("a", K16), cases[i].resource);
        CLEANUP(encryption_free) struct encryption *x = parsed(text);
        CLEANUP(blob_unref) struct blob *value = sealed(x, cases[i].key, "{}");
        assert_int_equal(!str_has_prefix(value->data, "{}"), cases[i].is_for);
        CLEANUP(blob_unref) struct blob *plain = blob_new("{}", 2);
        assert_int_equal(encryption_is_stale(x, cases[i].key, plain), cases[i].is_for);
    }
}

static void keys_are_replaced_in_steps(void **state)
{
    CLEANUP(encryption_free) struct encryption *none = parsed(RULE(NONE GCM("a", K16)));
    CLEANUP(encryption_free) struct encryption *first = parsed(RULE(GCM("a", K16) NONE));
    CLEANUP(encryption_free)
    struct encryption *both = parsed(
        RULE("  - aesgcm: {keys: [{name: b, secret: " K32 "}, {name: a, secret: " K16 "}]}\n"));
    CLEANUP(encryption_free) struct encryption *second = parsed(RULE(GCM("b", K32)));
    CLEANUP(blob_unref) struct blob *plain = sealed(none, SECRET, "{}");
    CLEANUP(blob_unref) struct blob *old = sealed(first, SECRET, "{}");
    CLEANUP(blob_unref) struct blob *new = sealed(both, SECRET, "{}");
    expect_open(first, SECRET, plain, "{}");
    expect_open(both, SECRET, old, "{}");
    expect_open(second, SECRET, new, "{}");
    expect_open(none, SECRET, old, "{}");
    expect_closed(second, SECRET, old, -ENOKEY, "it is encrypted with the key \"a\"");
    expect_closed(NULL, SECRET, old, -ENOKEY, "it is encrypted with the key \"a\"");
    assert_true(encryption_is_stale(first, SECRET, plain));
    assert_true(encryption_is_stale(both, SECRET, old));
    assert_false(encryption_is_stale(both, SECRET, new));
    assert_true(encryption_is_stale(none, SECRET, old)); /* It is to be decrypted. */
    assert_false(encryption_is_stale(none, SECRET, plain));
}

static void a_value_that_was_changed_or_moved_does_not_open(void **state)
{
    CLEANUP(encryption_free) struct encryption *x = parsed(RULE(GCM("a", K16)));
    CLEANUP(encryption_free) struct encryption *wrong = parsed(RULE(GCM("a", K32)));
    CLEANUP(blob_unref) struct blob *value = sealed(x, SECRET, "{\"data\":{}}");
    size_t head = strlen("k8s:enc:aesgcm:v1:a:");
    expect_closed(x, OTHER, value, -EBADMSG, "the key \"a\" of aesgcm does not decrypt it");
    expect_closed(wrong, SECRET, value, -EBADMSG, "its secret is another one");
    for (size_t i = head; i < value->size; i++) {
        CLEANUP(blob_unref) struct blob *bad = blob_new(value->data, value->size);
        bad->data[i] ^= 1;
        expect_closed(x, SECRET, bad, -EBADMSG, "the key \"a\"");
        CLEANUP(blob_unref) struct blob *cut = blob_new(value->data, i);
        expect_closed(x, SECRET, cut, -EBADMSG, "the key \"a\"");
    }
}

static void wrong_configurations_name_the_field(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "kind: must be EncryptionConfiguration"},
        {HEAD "  []", "resources: must be a list"},
        {RULE("  - kms: {name: a}\n"),
         "resources[0].providers[0]: the provider kms is not supported"},
        {RULE("  - secretbox: {keys: []}\n"), "the provider secretbox is not supported"},
        {RULE("  - rot13: {}\n"), "\"rot13\" is none of identity, aesgcm, aescbc"},
        {RULE("  - aesgcm: {}\n    identity: {}\n"), "must have exactly one provider"},
        {RULE("  - aesgcm: {keys: []}\n"), "resources[0].providers[0].aesgcm.keys: must be a list"},
        {RULE(GCM("a", "YQ==")), "aesgcm.keys[0].secret: must be 16, 24 or 32 bytes in base64"},
        {RULE(GCM("'a:b'", K16)), "aesgcm.keys[0].name: must have"},
        {RULE("  - aescbc: {keys: [{name: a, secret: " K16 "}, {name: a, secret: " K32 "}]}\n"),
         "aescbc.keys[1].name: \"a\" is the name of another key"},
        {RULE("  - aescbc: {keys: [{name: a, secret: " K16 ", x: 1}]}\n"),
         "keys[0].x: unknown field"},
        {HEAD "- providers: [{identity: {}}]\n", "resources[0].resources: must be a list"},
        {HEAD "- resources: ['*']\n  providers: [{identity: {}}]\n",
         "resources[0].resources[0]: must"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct encryption *x = NULL;
        struct err e = {0};
        assert_int_equal(encryption_parse(cases[i].text, strlen(cases[i].text), &x, &e), -EINVAL);
        assert_null(x);
        if (!strstr(e.text, cases[i].why)) {
            fail_msg("%zu: \"%s\" is not in \"%s\"", i, cases[i].why, e.text);
        }
        assert_null(strstr(e.text, K16)); /* No secret in an error. */
    }
}

/* ---- the front of the store ---- */

static void write_rules(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void done(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

static void put_any(struct harness *h, const char *key, const char *text)
{
    CLEANUP(blob_unref) struct blob *value = blob_new(text, strlen(text));
    bool flag = false;
    store_put(h->store, key, value, STORE_ANY, done, &flag);
    assert_int_equal(loop_run_until(h->loop, &flag, WAIT_MS), 0);
}

static bool file_has(const char *path, const char *text)
{
    CLEANUP_FREE char *command = xasprintf("cat %s* | grep -aqF '%s'", path, text);
    return system(command) == 0; /* NOLINT(cert-env33-c): a path and a text of this test. */
}

static void the_store_has_no_plain_text_and_tells_what_is_stale(void **state)
{
    struct harness *h = *state;
    char path[96];
    snprintf(path, sizeof path, "%s/encryption.yaml", h->dir);
    h->cfg.encryption_file = path;
    write_rules(path, RULE(GCM("a", K16)), 0600);
    harness_open(h);
    put_any(h, SECRET, "{\"very\":\"confidential\"}");
    put_any(h, "/registry/configmaps/red/c", "{\"quite\":\"public\"}");
    assert_string_equal(h->events[0].value, "{\"very\":\"confidential\"}");
    assert_false(store_is_stale(h->store, SECRET));
    harness_close(h);
    assert_false(file_has(h->path, "confidential"));
    assert_true(file_has(h->path, "public"));
    assert_true(file_has(h->path, "k8s:enc:aesgcm:v1:a:"));

    write_rules(path, RULE(GCM("b", K32) GCM("a", K16)), 0600);
    harness_open(h);
    assert_true(store_is_stale(h->store, SECRET));
    assert_false(store_is_stale(h->store, "/registry/configmaps/red/c"));
    for (size_t i = 0; i < h->n_items; i++) {
        if (streq(h->items[i].key, SECRET)) {
            assert_string_equal(h->items[i].value, "{\"very\":\"confidential\"}");
        }
    }
    put_any(h, SECRET, "{\"very\":\"confidential\"}");
    assert_false(store_is_stale(h->store, SECRET));
    harness_close(h);
    assert_true(file_has(h->path, "k8s:enc:aesgcm:v1:b:"));
}

static void a_configuration_that_all_can_read_is_refused(void **state)
{
    struct harness *h = *state;
    char path[96];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/encryption.yaml", h->dir);
    h->cfg.encryption_file = path;
    write_rules(path, RULE(GCM("a", K16)), 0644);
    assert_int_equal(store_open(h->loop, &h->cfg, &h->store, &e), -EPERM);
    assert_non_null(strstr(e.text, "every user of the host can read it"));
    h->cfg.encryption_file = "/nonexistent/encryption.yaml";
    assert_int_equal(store_open(h->loop, &h->cfg, &h->store, &e), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cipher_and_key_size_comes_back),
        cmocka_unit_test(an_envelope_of_kubernetes_is_read),
        cmocka_unit_test(other_kinds_are_left_as_they_are),
        cmocka_unit_test(keys_are_replaced_in_steps),
        cmocka_unit_test(a_value_that_was_changed_or_moved_does_not_open),
        cmocka_unit_test(wrong_configurations_name_the_field),
        cmocka_unit_test_setup_teardown(the_store_has_no_plain_text_and_tells_what_is_stale,
                                        harness_set_up_sqlite, harness_tear_down),
        cmocka_unit_test_setup_teardown(a_configuration_that_all_can_read_is_refused,
                                        harness_set_up_sqlite, harness_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
