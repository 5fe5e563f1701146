/* SPDX-License-Identifier: Apache-2.0 */
/* Packets as a probe's raw socket reads them. */
#include "wire/ping.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ping_reply r = ping_parse(data, size, 0x1234);
    if (r.kind != PING_NOT_OURS && size < 20 + PING_HEADER) {
        abort();
    }
    return 0;
}
