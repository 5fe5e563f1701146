/* SPDX-License-Identifier: Apache-2.0 */
/* The portable form of a registry: what is written is read again, and each change of a file is
 * noticed. */
#include "harness.h"
#include "store/portable.h"

#include <stdlib.h>

/* The export of a store with these items at revision 'revision'; owned. */
static char *export(const struct store_item *items, size_t n, uint64_t revision)
{
    struct strbuf out = STRBUF_INIT;
    CLEANUP(portable_free) struct portable *p = portable_new();
    portable_write_head(p, revision, n, &out);
    for (size_t i = 0; i < n; i++) {
        portable_write_item(p, &items[i], &out);
    }
    portable_write_end(p, &out);
    return strbuf_steal(&out);
}

/* Reads the lines of 'text' and writes "KEY=SIZE@REVISION " of each item to 'out'.  The first error
 * ends it. */
static int import(const char *text, struct strbuf *out, struct err *e)
{
    CLEANUP(portable_free) struct portable *p = portable_new();
    while (*text) {
        size_t n = strcspn(text, "\n");
        CLEANUP_FREE char *key = NULL;
        CLEANUP(blob_unref) struct blob *value = NULL;
        uint64_t revision = 0;
        int r = portable_read_line(p, text, n, &key, &value, &revision, e);
        if (r < 0) {
            assert_null(key);
            return r;
        }
        if (key) {
            strbuf_addf(out, "%s=%zu@%d ", key, value->size, (int) revision);
        }
        text += n + (text[n] == '\n');
    }
    strbuf_addf(out, "%zu keys at %d", portable_n_keys(p), (int) portable_revision(p));
    return portable_read_end(p, e);
}

#define A "/registry/namespaces/a"
#define B "/registry/namespaces/b"

static char *example(void)
{
    struct store_item items[] = {{A, blob_new("{\"x\":\"\\u00e9\xc3\xa9\"}", 14), 7},
                                 {B, blob_new("a\0b", 3), 9},
                                 {B "/c", blob_new("\xff\xfe", 2), 8},
                                 {B "/d", blob_new("", 0), 12}};
    char *text = export(items, ARRAY_SIZE(items), 12);
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        blob_unref(items[i].value);
    }
    return text;
}

static void an_export_is_read_as_it_was_written(void **state)
{
    CLEANUP_FREE char *text = example();
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    if (import(text, &out, &e) < 0) {
        fail_msg("%s in %s", e.text, text);
    }
    assert_string_equal(strbuf_cstr(&out),
                        A "=14@7 " B "=3@9 " B "/c=2@8 " B "/d=0@12 4 keys at 12");
    /* Text is readable, other bytes are not. */
    assert_non_null(strstr(text, "\"value\":\"{\\\"x\\\":"));
    assert_non_null(strstr(text, "\"base64\":\"AGFi") ? text : strstr(text, "\"base64\":\"YQBi\""));
    assert_non_null(strstr(text, "\"base64\":\"//4=\""));
    /* The same items give the same file, others another. */
    CLEANUP_FREE char *again = example();
    assert_string_equal(text, again);
    CLEANUP_FREE char *none = export(NULL, 0, 12);
    strbuf_reset(&out);
    assert_int_equal(import(none, &out, &e), 0);
    assert_string_equal(strbuf_cstr(&out), "0 keys at 12");
}

/* 'text' with the first 'from' replaced by 'to'; owned. */
static char *with(const char *text, const char *from, const char *to)
{
    const char *found = strstr(text, from);
    if (!found) {
        fail_msg("no %s in %s", from, text);
    }
    return xasprintf("%.*s%s%s", (int) (found - text), text, to, found + strlen(from));
}

/* An export of one key, whose line is as 'member' (which is the begin of the line) says; its
 * checksums are right. */
static void each_wrong_line_is_refused_with_its_number(void **state)
{
#define ORDER "key: not in order"
#define REVISION "revision: must be a number from 1 to that of the first line"
#define KEYS "the number of keys is not what the lines before have: some are missing"
#define NUMBERS "revision and keys must be numbers"
#define VALUE "value: must be a string, or base64"
#define NEWER "written by a newer version of tenet"
#define CHANGED "the checksum is not that of the line: it was changed"
    static const struct {
        const char *from, *to, *error;
    } cases[] = {
        {"tenet-registry", "other", "line 1: this is no exported registry"},
        {"{\"format\":\"tenet-registry\",", "{", "line 1: this is no exported registry"},
        {"\"format\":\"tenet-registry\"", "\"format\":7", "line 1: this is no exported registry"},
        {"\"version\":1", "\"version\":2", "line 1: " NEWER},
        {"\"version\":1", "\"version\":0", "line 1: " NEWER},
        {"\"version\":1", "\"version\":\"1\"", "line 1: " NEWER},
        {"\"version\":1,", "", "line 1: " NEWER},
        {"\"revision\":12", "\"revision\":-1", "line 1: " NUMBERS},
        {"\"revision\":12", "\"revision\":\"12\"", "line 1: " NUMBERS},
        {"\"keys\":4", "\"keys\":1.5", "line 1: " NUMBERS},
        {"\"keys\":4", "\"keys\":5", "line 6: " KEYS},
        {"\"keys\":4", "\"keys\":3", "line 6: " KEYS},
        {"\"key\":\"" A "\"", "\"key\":\"/other/a\"", "line 2: key: must begin with /registry/"},
        {"\"key\":\"" A "\"", "\"key\":\"/registry/\"", "line 2: key: must begin with /registry/"},
        {"\"key\":\"" A "\"", "\"key\":7", "line 2: key: must begin with /registry/"},
        {"\"key\":\"" A "\",", "", "line 2: key: must begin with /registry/"},
        {"\"key\":\"" A "\"", "\"key\":\"" A "z\"", "line 2: " CHANGED},
        {"\"key\":\"" B "\"", "\"key\":\"" A "\"", "line 3: " ORDER},
        {"\"key\":\"" B "\"", "\"key\":\"/registry/a\"", "line 3: " ORDER},
        {"\"revision\":7", "\"revision\":13", "line 2: " REVISION},
        {"\"revision\":7", "\"revision\":0", "line 2: " REVISION},
        {"\"revision\":7", "\"revision\":\"7\"", "line 2: " REVISION},
        {"\"revision\":7,", "", "line 2: " REVISION},
        {"\"revision\":7", "\"revision\":6", "line 2: " CHANGED},
        {"\"value\":\"{", "\"value\":\"[", "line 2: " CHANGED},
        {"\"value\":\"{", "\"base64\":\"\",\"value\":\"{", "line 2: " VALUE},
        {"\"value\":\"{", "\"other\":\"{", "line 2: " VALUE},
        {"\"base64\":\"YQBi\"", "\"base64\":7", "line 3: " VALUE},
        {"\"base64\":\"YQBi\"", "\"base64\":\"%\"", "line 3: " VALUE},
        {"\"base64\":\"YQBi\"", "\"value\":7", "line 3: " VALUE},
        {"\"base64\":\"YQBi\"", "\"value\":7,\"base64\":\"YQBi\"", "line 3: " VALUE},
        {"\"base64\":\"YQBi\"", "\"base64\":\"YQBj\"", "line 3: " CHANGED},
        {"\"sum\":\"", "\"sum\":\"0", "line 2: " CHANGED},
        {",\"sum\":", ",\"other\":", "line 2: " CHANGED},
        {"\"sha256\":\"", "\"sha256\":\"0",
         "line 6: the checksum is not that of the lines before: the file was changed"},
        {"\"end\":true,\"keys\":4", "\"end\":true", "line 6: " KEYS},
        {"\"end\":true,\"keys\":4", "\"end\":true,\"keys\":5", "line 6: " KEYS},
        /* A change of the first line that the lines after it do not contradict. */
        {"\"revision\":12", "\"revision\":13",
         "line 6: the checksum is not that of the lines before: the file was changed"},
    };
    CLEANUP_FREE char *text = example();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *changed = with(text, cases[i].from, cases[i].to);
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        int r = import(changed, &out, &e);
        if (r != -EBADMSG || !streq(e.text, cases[i].error)) {
            fail_msg("%s to %s: %d: %s", cases[i].from, cases[i].to, r, e.text);
        }
    }
}

static void lines_that_are_missing_or_too_many_are_noticed(void **state)
{
    CLEANUP_FREE char *text = example();
    char *lines[8] = {0}, *save = NULL;
    size_t n = 0;
    CLEANUP_FREE char *parts = xstrdup(text);
    for (char *l = strtok_r(parts, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        lines[n++] = l;
    }
    assert_int_equal(n, 6);
    /* Each line left out, and each line twice. */
    for (size_t skip = 0; skip < n; skip++) {
        for (int twice = 0; twice < 2; twice++) {
            CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
            CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
            struct err e = {0};
            for (size_t i = 0; i < n; i++) {
                for (int k = i == skip ? 2 * twice : 1; k > 0; k--) {
                    strbuf_addf(&b, "%s\n", lines[i]);
                }
            }
            assert_int_equal(import(strbuf_cstr(&b), &out, &e), -EBADMSG);
            if (skip == n - 1) {
                assert_string_equal(
                    e.text, twice ? "line 7: there is something after the end"
                                  : "line 6: the last line is missing: the file is cut off");
            }
        }
    }
    struct err e = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(import("", &out, &e), -EBADMSG);
    assert_string_equal(e.text, "line 1: the last line is missing: the file is cut off");
    assert_int_equal(import("{", &out, &e), -EBADMSG);
    assert_true(str_has_prefix(e.text, "line 1: "));
}

static void the_checksum_tells_exports_apart(void **state)
{
    CLEANUP(portable_free) struct portable *a = portable_new();
    CLEANUP(portable_free) struct portable *b = portable_new();
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    portable_write_head(a, 12, 0, &text);
    portable_write_end(a, &text);
    strbuf_reset(&text);
    portable_write_head(b, 13, 0, &text);
    portable_write_end(b, &text);
    assert_int_equal(strlen(portable_checksum(a)), 64);
    assert_string_not_equal(portable_checksum(a), portable_checksum(b));
    assert_non_null(strstr(strbuf_cstr(&text), portable_checksum(b)));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_export_is_read_as_it_was_written),
        T(each_wrong_line_is_refused_with_its_number),
        T(lines_that_are_missing_or_too_many_are_noticed),
        T(the_checksum_tells_exports_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
