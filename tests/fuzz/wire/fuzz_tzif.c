/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: files of time zones. */
#include "wire/tzif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    CLEANUP(tzif_free) struct tzif *z = NULL;
    if (tzif_parse(data, size, 0, &z, &e) == 0) {
        for (int64_t t = -4000000000; t < 4000000000; t += 100000000) {
            int32_t offset = tzif_offset(z, t);
            if (offset > 93600 || offset < -93600) {
                __builtin_trap();
            }
        }
    }
    return 0;
}
