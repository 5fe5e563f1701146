/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a trace: nothing that a switch prints breaks the parser, and a second reading gives the same. */
#include "base/mem.h"
#include "wire/ovstrace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    CLEANUP(ovstrace_done) struct ovstrace a = {0}, b = {0};
    if (ovstrace_parse(text, "br0", &a, NULL) < 0) {
        return 0;
    }
    if (ovstrace_parse(text, "br0", &b, NULL) < 0 || a.n != b.n || !a.datapath_actions) {
        abort();
    }
    for (size_t i = 0; i < a.n; i++) {
        if (!a.steps[i].match || !streq(a.steps[i].actions, b.steps[i].actions)) {
            abort();
        }
    }
    return 0;
}
