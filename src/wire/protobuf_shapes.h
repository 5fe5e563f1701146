/* SPDX-License-Identifier: Apache-2.0 */
/* Short names for the rows of protobuf_rows.h, for files that describe many messages.  A .c file
 * includes it last: the names are common words.  Constant data; any thread. */
#pragma once

#include "wire/protobuf_rows.h"

#include <stddef.h>

#define AT(type, m) offsetof(struct type, m)
/* Rows, by the kind of their member. */
#define ROW(number, kind, type, m)                     \
    {                                                  \
        number, PB_ROW_##kind, AT(type, m), 0, NULL, 0 \
    }
#define TEXTS(number, type, m)                                      \
    {                                                               \
        number, PB_ROW_TEXTS, AT(type, m.v), AT(type, m.n), NULL, 0 \
    }
#define LIST(number, shape, type, p, n)                         \
    {                                                           \
        number, PB_ROW_LIST, AT(type, p), AT(type, n), shape, 0 \
    }
#define REF(number, shape, type, m)                  \
    {                                                \
        number, PB_ROW_REF, AT(type, m), 0, shape, 0 \
    }
/* A nested message: over the same struct, or over one of its members. */
#define VIEW(number, shape)                 \
    {                                       \
        number, PB_ROW_PART, 0, 0, shape, 0 \
    }
#define VIEW_ALWAYS(number, shape)                      \
    {                                                   \
        number, PB_ROW_PART, 0, 0, shape, PB_ROW_ALWAYS \
    }
#define PART(number, shape, type, m)                  \
    {                                                 \
        number, PB_ROW_PART, AT(type, m), 0, shape, 0 \
    }
#define PART_ALWAYS(number, shape, type, m)                       \
    {                                                             \
        number, PB_ROW_PART, AT(type, m), 0, shape, PB_ROW_ALWAYS \
    }
#define PART_IF(number, shape, type, m, has)                               \
    {                                                                      \
        number, PB_ROW_PART, AT(type, m), AT(type, has), shape, PB_ROW_HAS \
    }
/* A nested message over the same struct that is there when a bool is true. */
#define VIEW_IF(number, shape, type, has)                        \
    {                                                            \
        number, PB_ROW_PART, 0, AT(type, has), shape, PB_ROW_HAS \
    }
/* The shape 'name' of "struct type" with these rows. */
#define SHAPE(name, type, ...)                                \
    static const struct pb_row name##_rows[] = {__VA_ARGS__}; \
    static const struct pb_shape name = PB_SHAPE(struct type, name##_rows)
