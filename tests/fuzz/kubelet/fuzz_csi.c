/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of CSI drivers and of their registration: what was read and written again reads the same.  The
 * first byte chooses the method, and with its highest bit the request. */
#include "kubelet/csi/messages.h"

#include "wire/round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        const struct csi_method *m = &csi_methods[(data[0] & 0x7fu) % CSI_METHODS];
        check_shape(data[0] & 0x80 ? m->request : m->response, CSI_STORE_MAX, data + 1, size - 1);
    }
    return 0;
}
