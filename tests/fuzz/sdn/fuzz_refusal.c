/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a pod that the switch hands to the agent: whatever they are, what is sent back goes to that pod, from
 * its gateway, is whole, and answers no ICMP error. */
#include "sdn/refusal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t pod[] = {0x0a, 0x58, 10, 128, 0, 2}, gateway[] = {10, 128, 0, 1};
    struct refusal_sender s = {
        .ip = 0x0a800002, .mac = mac_from_ip4(0x0a800002), .gateway = 0x0a800001};
    uint8_t out[REFUSAL_SIZE_MAX];
    size_t n = refusal_make(&s, 1, data, size, out);
    if (n) {
        require(n >= 14 + 20 + 8 + 28 && n <= sizeof out && size >= 14 + 28);
        require(memcmp(out, pod, 6) == 0 && memcmp(out + 30, pod + 2, 4) == 0);
        require(memcmp(out + 26, gateway, 4) == 0);
        require(out[23] == 1 && out[34] == 3 && out[35] == 1);
        require(memcmp(out + 42, data + 14, n - 42) == 0);
        require(data[23] != 1 || data[14 + (data[14] & 15) * 4] != 3);
    }
    return 0;
}
