/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of SPDY/3.1: what is read does not depend on how the bytes are cut, and headers can be walked. */
#include "wire/spdy.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

/* A text of all frames; '*ret_error' is how reading ended. */
static void read_all(const char *p, size_t size, size_t step, struct strbuf *seen, int *ret_error)
{
    CLEANUP(spdy_reader_free) struct spdy_reader *r = spdy_reader_new();
    *ret_error = 0;
    for (size_t at = 0; at < size;) {
        size_t used, n = MIN(step, size - at);
        struct spdy_frame f;
        int got = spdy_read(r, p + at, n, &used, &f, NULL);
        if (got < 0) {
            *ret_error = got;
            return;
        }
        CHECK(used <= n && (got == 1 || used == n));
        at += used;
        if (got == 0) {
            continue;
        }
        if (f.type == SPDY_DATA) {
            strbuf_add(seen, f.data, f.size);
            strbuf_adds(seen, f.fin ? "." : "");
            continue;
        }
        strbuf_addf(seen, "[%d %u %u %u %d", (int) f.type, f.stream, f.code, f.id, f.fin);
        const char *h = f.headers;
        for (size_t i = 0; i < f.n_headers; i++) {
            const char *value = h + strlen(h) + 1;
            CHECK(*h && spdy_header(&f, h));
            strbuf_addf(seen, " %s=%s", h, value);
            h = value + strlen(value) + 1;
        }
        strbuf_addc(seen, ']');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_STRBUF struct strbuf whole = STRBUF_INIT, pieces = STRBUF_INIT;
    int a, b;
    read_all((const char *) data, size, SIZE_MAX, &whole, &a);
    read_all((const char *) data, size, 3, &pieces, &b);
    CHECK(a == b);
    CHECK(a < 0 || (whole.size == pieces.size && streq(strbuf_cstr(&whole), strbuf_cstr(&pieces))));
    return 0;
}
