/* SPDX-License-Identifier: Apache-2.0 */
/* What parses must come back equal from its own text, in any layout; a prefix of it is incomplete, not
 * wrong; and the scanner agrees with the parser about its end. */
#include "wire/json.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check_text(const struct json *v, unsigned indent)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    json_write(v, indent, &b);
    CLEANUP(json_free) struct json *again = NULL;
    CHECK(json_parse(b.data, b.size, &again, NULL) == 0);
    CHECK(json_equal(v, again) && json_equal(again, v));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *) data;
    CLEANUP(json_free) struct json *v = NULL, *first = NULL;
    struct err e = {0};
    size_t used = 0;
    int r = json_parse_first(text, size, &first, &used, &e);
    CHECK(r == 0 || r == -EINVAL || r == -EAGAIN);
    if (r == 0) {
        CHECK(used <= size);
        if (json_type(first) >= JSON_ARRAY) {
            struct json_scan s = {0};
            CHECK(json_scan_feed(&s, text, size) == used);
            struct json *part = NULL;
            CHECK(json_parse_first(text, used / 2, &part, &used, NULL) == -EAGAIN);
        }
    }
    if (json_parse(text, size, &v, &e) < 0) {
        CHECK(e.code == -EINVAL && e.text[0]);
        return 0;
    }
    CHECK(!first || json_equal(v, first));
    check_text(v, 0);
    check_text(v, 3);
    CLEANUP(json_free) struct json *copy = json_clone(v);
    CHECK(json_equal(v, copy));
    /* Take the copy apart, from both ends. */
    while (json_count(copy)) {
        size_t n = json_count(copy);
        const char *key = json_key_at(copy, n / 2);
        if (key && n % 2) {
            CLEANUP_FREE char *k = xstrdup(key);
            CHECK(json_get(copy, k) == json_at(copy, n / 2));
            CHECK(json_remove(copy, k) && !json_get(copy, k));
        } else {
            CHECK(json_remove_at(copy, n - 1));
        }
        CHECK(json_count(copy) == n - 1);
    }
    return 0;
}
