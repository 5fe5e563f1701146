/* SPDX-License-Identifier: Apache-2.0 */
/* Locations of redirects: one that is understood leads to itself when it is written as a URL. */
#include "wire/location.h"

#include "base/mem.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct location base = {.host = (char *) "10.0.0.1", .port = 8080, .path = (char *) "/a/b?c"};
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    struct location first, again;
    struct err e = {0};
    if (location_resolve(&base, text, &first, &e) < 0) {
        CHECK(*e.text);
        return 0;
    }
    CHECK(*first.host && first.port && first.path[0] == '/' && !strchr(first.path, '#'));
    CHECK(!strchr(first.host, '/') && !strchr(first.host, '@'));
    CLEANUP_FREE char *url = xasprintf("%s://%s:%u%s", first.https ? "https" : "http", first.host,
                                       first.port, first.path);
    CHECK(location_resolve(&base, url, &again, NULL) == 0);
    CHECK(again.https == first.https && again.port == first.port &&
          !strcmp(again.host, first.host) && !strcmp(again.path, first.path));
    location_done(&first);
    location_done(&again);
    return 0;
}
