/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of WebSocket: what is read does not depend on how the bytes are cut, and can be written again. */
#include "wire/websocket.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static int read_all(const char *p, size_t size, size_t step, bool masked, struct strbuf *seen)
{
    struct ws_reader *r = NEW(struct ws_reader);
    int got = 0;
    ws_reader_init(r, masked);
    for (size_t at = 0; got >= 0 && (at < size || got);) {
        size_t used, n = MIN(step, size - at);
        struct ws_piece f;
        got = ws_read(r, p + at, n, &used, &f, NULL);
        CHECK(got < 0 || used <= n);
        at += used;
        if (got == 1) {
            strbuf_addf(seen, "%s%d", f.first ? "<" : "", f.first ? (int) f.opcode : 0);
            seen->size -= !f.first; /* Only its beginning names the kind. */
            strbuf_add(seen, f.data, f.size);
            strbuf_adds(seen, f.last ? ">" : "");
        }
    }
    free(r);
    return MIN(got, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *) data;
    for (int masked = 0; masked < 2; masked++) {
        CLEANUP_STRBUF struct strbuf whole = STRBUF_INIT, pieces = STRBUF_INIT;
        int a = read_all(p, size, SIZE_MAX / 2, masked, &whole);
        int b = read_all(p, size, 3, masked, &pieces);
        CHECK(a == b);
        CHECK(a < 0 || (whole.size == pieces.size &&
                        !memcmp(strbuf_cstr(&whole), strbuf_cstr(&pieces), whole.size)));
    }
    /* What we write is read as it was. */
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, seen = STRBUF_INIT;
    ws_write(WS_BINARY, size >= 4 ? data : NULL, p, size, &b);
    CHECK(read_all(b.data, b.size, 1000, size >= 4, &seen) == 0);
    CHECK(seen.size == size + 3 && !memcmp(seen.data + 2, p, size));
    return 0;
}
