/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: what parses has two objects, and written again it is the same claims. */
#include "wire/jwt.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    if (jwt_parse(text, &t, NULL) < 0) {
        return 0;
    }
    CLEANUP_STRBUF struct strbuf again = STRBUF_INIT;
    CLEANUP(jwt_done) struct jwt u = {.signature = STRBUF_INIT};
    jwt_write_unsigned(t.header, t.claims, &again);
    strbuf_addc(&again, '.');
    if (again.size <= JWT_MAX_SIZE &&
        (jwt_parse(strbuf_cstr(&again), &u, NULL) < 0 || !json_equal(t.claims, u.claims) ||
         !json_equal(t.header, u.header))) {
        abort();
    }
    return 0;
}
