/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in protobuf: what is decoded is JSON that can be read again. */
#include "api/proto.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *obj = NULL;
    if (api_proto_decode(data, size, &obj, NULL) == 0) {
        CLEANUP_FREE char *text = json_to_text(obj);
        CLEANUP(json_free) struct json *again = NULL;
        if (json_parse(text, strlen(text), &again, NULL) < 0 || !json_equal(obj, again)) {
            __builtin_trap();
        }
    }
    return 0;
}
