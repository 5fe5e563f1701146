/* SPDX-License-Identifier: Apache-2.0 */
/* JSONPath templates of the command line: the first line is the template, the rest the object. */
#include "api/table/jsonpath.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nl = size ? memchr(data, '\n', size) : NULL;
    CLEANUP_FREE char *template = xstrndup((const char *) data, nl ? (size_t) (nl - data) : size);
    CLEANUP(json_free) struct json *v = NULL;
    if (nl) {
        (void) json_parse((const char *) nl + 1, size - (size_t) (nl + 1 - data), &v, NULL);
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(1 << 20);
    struct err e = {0};
    (void) jsonpath_print(template, v, &out, &e);
    return 0;
}
