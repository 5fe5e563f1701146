/* SPDX-License-Identifier: Apache-2.0 */
/* Flows in few bytes: a large node has hundreds of thousands of them, and most are like many others.  Pure.
 *
 * Flows of one table, priority and size have a shape in common: a flow of it, and which of its bytes differ from flow
 * to flow; of each flow only those are kept.  A flow that differs elsewhere begins a wider shape for all that come
 * after it.  So nothing has to be known of what the bytes mean, and nothing is lost.  What is too large for
 * this, or has more sorts than any pipeline of ours, is not packed.  Not thread-safe. */
#pragma once

#include "base/map.h"
#include "wire/openflow.h"

#define FLOW_PACK_MAX 256 /* Bytes of a packed flow at most. */
#define FLOW_UNPACKED 0   /* No shape. */

struct flow_shape;

struct flow_shapes {
    struct hmap kinds;          /* The widest shape of each table, priority and size. */
    struct flow_shape **shapes; /* The first is FLOW_UNPACKED. */
    size_t n, cap;
};

void flow_shapes_init(struct flow_shapes *s);
void flow_shapes_done(struct flow_shapes *s);
/* Writes 'f' to 'out' (FLOW_PACK_MAX bytes), without 'cookie', which is known otherwise (what f->cookie has in
 * addition is kept).  Returns its shape; FLOW_UNPACKED: it has none. */
uint16_t flow_pack(struct flow_shapes *s, const struct of_flow *f, uint64_t cookie, uint8_t *out);
/* How many bytes a packed flow of the shape has. */
size_t flow_packed_size(const struct flow_shapes *s, uint16_t shape);
/* Room that is enough for any flow that was packed. */
#define FLOW_UNPACK_SIZE (sizeof(struct of_flow) + FLOW_PACK_MAX)
void flow_unpack(const struct flow_shapes *s, uint16_t shape, uint64_t cookie,
                 const uint8_t *packed, struct of_flow *ret);
