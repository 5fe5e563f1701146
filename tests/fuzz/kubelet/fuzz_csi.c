/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of CSI drivers and of their registration: what was read and written again reads the same.  The
 * first byte chooses the method, and with its highest bit the request. */
#include "base/macro.h"
#include "kubelet/csi/messages.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(c)     \
    do {             \
        if (!(c)) {  \
            abort(); \
        }            \
    } while (0)

static void check_shape(const struct pb_shape *shape, const uint8_t *data, size_t size)
{
    _Alignas(max_align_t) char first[1024], second[1024];
    CHECK(shape->size <= sizeof first);
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    if (pb_parse(&store, shape, data, size, first) < 0) {
        return;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf again = STRBUF_INIT;
    CLEANUP_PB_STORE struct pb_store more = PB_STORE_INIT(2 * CSI_STORE_MAX);
    pb_format(&b, shape, first);
    CHECK(pb_parse(&more, shape, b.data, b.size, second) == 0);
    pb_format(&again, shape, second);
    CHECK(again.size == b.size && (b.size == 0 || memcmp(again.data, b.data, b.size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        const struct csi_method *m = &csi_methods[(data[0] & 0x7fu) % CSI_METHODS];
        check_shape(data[0] & 0x80 ? m->request : m->response, data + 1, size - 1);
    }
    return 0;
}
