/* SPDX-License-Identifier: Apache-2.0 */
/* No cookie that was not sealed opens, and no text is both a session and an errand. */
#include "oauth/seal.h"
#include "oauth/session.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t key[SEAL_KEY_SIZE] = {7};
    struct seal_ring ring = {0};
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    CLEANUP_FREE char *cookie = oauth_cookie_find(text, "ssn");
    CLEANUP_STRBUF struct strbuf opened = STRBUF_INIT;
    struct oauth_session s = {0};
    struct oauth_errand n = {0};
    seal_ring_add(&ring, key);
    CHECK(seal_open(&ring, "ssn", cookie ? cookie : text, &opened) == -EINVAL);
    int session = oauth_session_read(text, 0, &s), errand = oauth_errand_read(text, 0, &n);
    CHECK(session < 0 || errand < 0);
    oauth_session_done(&s);
    oauth_errand_done(&n);
    return 0;
}
