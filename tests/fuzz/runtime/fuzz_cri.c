/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a container runtime, and of its client: what was read and written again reads the
 * same.  The first byte chooses the method, and with its highest bit the request. */
#include "runtime/cri/messages.h"

#include "wire/round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STORE_MAX ((size_t) 1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    unsigned choice = data[0] & 0x7fu;
    const struct cri_method *m = &cri_methods[choice % CRI_METHODS];
    check_shape(data[0] & 0x80 ? m->request : m->response, STORE_MAX, data + 1, size - 1);
    if (choice >= CRI_METHODS) {
        check_shape(&containerd_exit_shape, STORE_MAX, data + 1, size - 1);
    }
    return 0;
}
