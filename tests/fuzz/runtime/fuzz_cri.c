/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a container runtime, and of its client: what was read and written again reads the
 * same.  The first byte chooses the method, and with its highest bit the request. */
#include "base/macro.h"
#include "runtime/cri/messages.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(c)     \
    do {             \
        if (!(c)) {  \
            abort(); \
        }            \
    } while (0)

#define STORE_MAX ((size_t) 1 << 20)

static void check_shape(const struct pb_shape *shape, const uint8_t *data, size_t size)
{
    _Alignas(max_align_t) char first[1024], second[1024];
    CHECK(shape->size <= sizeof first);
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(STORE_MAX);
    if (pb_parse(&store, shape, data, size, first) < 0) {
        return;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf again = STRBUF_INIT;
    CLEANUP_PB_STORE struct pb_store more = PB_STORE_INIT(2 * STORE_MAX);
    pb_format(&b, shape, first);
    CHECK(pb_parse(&more, shape, b.data, b.size, second) == 0);
    pb_format(&again, shape, second);
    CHECK(again.size == b.size && (b.size == 0 || memcmp(again.data, b.data, b.size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    unsigned choice = data[0] & 0x7fu;
    const struct cri_method *m = &cri_methods[choice % CRI_METHODS];
    check_shape(data[0] & 0x80 ? m->request : m->response, data + 1, size - 1);
    if (choice >= CRI_METHODS) {
        check_shape(&containerd_exit_shape, data + 1, size - 1);
    }
    return 0;
}
