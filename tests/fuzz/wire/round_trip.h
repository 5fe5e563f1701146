/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for the messages of any shape: what was read and written again reads the same. */
#pragma once

#include "base/macro.h"
#include "wire/protobuf_rows.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(c)     \
    do {             \
        if (!(c)) {  \
            abort(); \
        }            \
    } while (0)

static inline void check_shape(const struct pb_shape *shape, size_t store_max, const uint8_t *data,
                               size_t size)
{
    _Alignas(max_align_t) char first[1024], second[1024];
    CHECK(shape->size <= sizeof first);
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(store_max);
    if (pb_parse(&store, shape, data, size, first) < 0) {
        return;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf again = STRBUF_INIT;
    CLEANUP_PB_STORE struct pb_store more = PB_STORE_INIT(2 * store_max);
    pb_format(&b, shape, first);
    CHECK(pb_parse(&more, shape, b.data, b.size, second) == 0);
    pb_format(&again, shape, second);
    CHECK(again.size == b.size && (b.size == 0 || memcmp(again.data, b.data, b.size) == 0));
}
