/* SPDX-License-Identifier: Apache-2.0 */
/* Exported registries, as an administrator may have edited them: what is accepted must come out the same again. */
#include "base/macro.h"
#include "store/portable.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(c)     \
    do {             \
        if (!(c)) {  \
            abort(); \
        }            \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(portable_free) struct portable *p = portable_new();
    CLEANUP(portable_free) struct portable *again = portable_new();
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *text = (const char *) data;
    struct err e = {0};
    int r = 0;
    bool head = true;
    for (size_t at = 0; at < size && r == 0;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t) (end - text) - at : size - at;
        CLEANUP_FREE char *key = NULL;
        CLEANUP(blob_unref) struct blob *value = NULL;
        uint64_t revision = 0;
        r = portable_read_line(p, text + at, n, &key, &value, &revision, &e);
        CHECK(r == 0 || (r == -EBADMSG && e.text[0]));
        CHECK(!key || (value && revision && revision <= portable_revision(p)));
        if (r == 0 && head) {
            portable_write_head(again, portable_revision(p), portable_n_keys(p), &out);
            head = false;
        }
        if (key) {
            struct store_item item = {key, value, revision};
            size_t before = out.size;
            portable_write_item(again, &item, &out);
            /* And what was written is read as the same. */
            CHECK(out.size > before);
        }
        at += n + 1;
    }
    if (portable_read_end(p, &e) == 0) {
        CHECK(portable_checksum(p)[0]);
    }
    return 0;
}
