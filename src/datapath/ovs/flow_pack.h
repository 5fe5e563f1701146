/* SPDX-License-Identifier: Apache-2.0 */
/* Stores flows in few bytes: a large node has hundreds of thousands, and most are similar to many
 * others. Pure.
 *
 * Flows of one table, priority and size share a shape: one sample flow, and the offsets of the
 * bytes that differ from flow to flow.  A packed flow keeps only those bytes.  A flow that differs
 * elsewhere begins a wider shape for all later flows.  So the packing is lossless without
 * interpreting the bytes.  Flows that are too large, or of more sorts than Tenet's pipeline has,
 * are not packed. Not thread-safe. */
#pragma once

#include "base/map.h"
#include "wire/openflow.h"

#define FLOW_PACK_MAX 256 /* The most bytes that a packed flow has. */
#define FLOW_UNPACKED 0   /* The flow is not packed. */

struct flow_shape;

struct flow_shapes {
    struct hmap kinds;          /* The widest shape of each kind (table, priority and size). */
    struct flow_shape **shapes; /* The first is FLOW_UNPACKED. */
    size_t n, cap;
};

void flow_shapes_init(struct flow_shapes *s);
void flow_shapes_done(struct flow_shapes *s);
/* Writes 'f' to 'out' (FLOW_PACK_MAX bytes), without the group's part of the cookie, 'cookie',
 * which the caller keeps; the extra part of f->cookie is kept. Returns its shape; FLOW_UNPACKED:
 * the flow cannot be packed. */
uint16_t flow_pack(struct flow_shapes *s, const struct of_flow *f, uint64_t cookie, uint8_t *out);
/* The number of bytes of a packed flow of the shape. */
size_t flow_packed_size(const struct flow_shapes *s, uint16_t shape);
/* A buffer that is large enough for any packed flow. */
#define FLOW_UNPACK_SIZE (sizeof(struct of_flow) + FLOW_PACK_MAX)
void flow_unpack(const struct flow_shapes *s, uint16_t shape, uint64_t cookie,
                 const uint8_t *packed, struct of_flow *ret);
