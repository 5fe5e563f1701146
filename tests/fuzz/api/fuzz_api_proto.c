/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in protobuf: what is decoded is JSON that can be read again, and what is encoded from it
 * is decoded to the same. */
#include "api/proto.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *obj = NULL;
    if (api_proto_decode(data, size, NULL, &obj, NULL, NULL) == 0) {
        CLEANUP_FREE char *text = json_to_text(obj);
        CLEANUP(json_free) struct json *again = NULL;
        if (json_parse(text, strlen(text), &again, NULL) < 0 || !json_equal(obj, again)) {
            __builtin_trap();
        }
        CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT, twice = STRBUF_INIT;
        CLEANUP(json_free) struct json *back = NULL;
        if (api_proto_put_object(obj, &bytes) < 0 ||
            api_proto_decode(bytes.data, bytes.size, NULL, &back, NULL, NULL) < 0 ||
            api_proto_put_object(back, &twice) < 0 || bytes.size != twice.size ||
            memcmp(bytes.data, twice.data, twice.size) != 0) {
            __builtin_trap();
        }
    }
    return 0;
}
