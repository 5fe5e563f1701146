/* SPDX-License-Identifier: Apache-2.0 */
/* What a support bundle gets: as a text, which must not keep a planted password whatever stands before
 * it, and as a document. */
#include "cli/collect/redact.h"

#include "base/mem.h"

#define PLANTED "\npassword=Plan7edSecret\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = NULL;
    strbuf_add(&text, data, size);
    strbuf_adds(&text, PLANTED);
    redact_text(strbuf_cstr(&text), text.size, &out);
    assert(!memmem(strbuf_cstr(&out), out.size, "Plan7edSecret", strlen("Plan7edSecret")) ||
           memmem(data, size, "Plan7edSecret", strlen("Plan7edSecret")));
    if (json_parse((const char *) data, size, &v, NULL) == 0) {
        CLEANUP_STRBUF struct strbuf written = STRBUF_INIT;
        redact_json(v);
        json_write(v, 0, &written);
        assert(written.size > 0);
    }
    return 0;
}
