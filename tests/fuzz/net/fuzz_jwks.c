/* SPDX-License-Identifier: Apache-2.0 */
/* A provider's keys as JSON: those that are taken are published again as the same keys. */
#include "base/mem.h"
#include "net/tls/jws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *set = NULL;
    CLEANUP(jws_keys_free) struct jws_keys *keys = jws_keys_new(), *again = jws_keys_new();
    const struct json *jwk;
    if (json_parse((const char *) data, size, &set, NULL) < 0) {
        return 0;
    }
    JSON_FOREACH (jwk, json_get(set, "keys")) {
        (void) jws_keys_add_jwk(keys, jwk, NULL);
    }
    CLEANUP(json_free) struct json *published = jws_public_set(keys);
    JSON_FOREACH (jwk, json_get(published, "keys")) {
        if (jws_keys_add_jwk(again, jwk, NULL) < 0) {
            abort();
        }
    }
    return 0;
}
