/* SPDX-License-Identifier: Apache-2.0 */
/* {"object": ..., "patch": ...}: the patch is applied in all three ways. */
#include "api/patch/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *input = NULL;
    if (json_parse((const char *) data, size, &input, NULL) < 0 || !json_get(input, "object") ||
        !json_get(input, "patch")) {
        return 0;
    }
    const struct json *object = json_get(input, "object"), *patch = json_get(input, "patch");
    CLEANUP(json_free) struct json *a = json_clone(object);
    CLEANUP(json_free) struct json *b = json_clone(object);
    api_patch_merge(&a, patch);
    api_patch_json(&b, patch, NULL);
    for (size_t i = 0; api_kinds[i]; i++) {
        CLEANUP(json_free) struct json *c = json_clone(object);
        api_patch_strategic(api_kinds[i], &c, patch, NULL);
    }
    /* A merge patch applied twice is the same as once. */
    CLEANUP(json_free) struct json *again = json_clone(a);
    api_patch_merge(&again, patch);
    if (!json_equal(a, again)) {
        __builtin_trap();
    }
    return 0;
}
