/* SPDX-License-Identifier: Apache-2.0 */
/* A file of htpasswd is read or refused with its line; no user has an empty password by chance. */
#include "identity/htpasswd.h"

#include "base/str.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(htpasswd_free) struct htpasswd *h = NULL;
    struct err e = {0};
    if (htpasswd_parse((const char *) data, size, &h, &e) < 0) {
        CHECK(e.code == -EINVAL && str_has_prefix(e.text, "line "));
        return 0;
    }
    CHECK(htpasswd_count(h) <= size / 4);
    return 0;
}
