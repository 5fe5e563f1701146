/* SPDX-License-Identifier: Apache-2.0 */
/* A template is refused with its line, or writes a page that ends. */
#include "oauth/template.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char values[] =
        "{\"A\":\"<&'>\",\"B\":true,\"L\":[{\"N\":1},\"x\"],\"Error\":\"e\"}";
    CLEANUP(template_free) struct template *t = NULL;
    CLEANUP(json_free) struct json *v = NULL;
    struct strbuf out = STRBUF_INIT_MAX(1 << 16);
    struct err e = {0};
    if (template_parse((const char *) data, size, &t, &e) < 0) {
        CHECK(e.code == -EINVAL && e.text[0]);
        return 0;
    }
    CHECK(json_parse(values, sizeof values - 1, &v, NULL) == 0);
    template_write(t, v, &out);
    strbuf_done(&out);
    return 0;
}
