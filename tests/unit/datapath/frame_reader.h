/* SPDX-License-Identifier: Apache-2.0 */
/* What frames are to the model, read once more from docs/pipeline.md: another reader of
 * bytes than the programs and the switch. */
#pragma once

#include "frames.h"

/* What contradicts itself has no fields. */
struct model_packet read_frame(const struct frame *f);
/* Of IPv4: what has ports has all of that header. */
bool has_whole_l4(const struct frame *f);
/* A header that is cut short, or whose sizes cannot be. */
bool is_malformed(const struct frame *f);
bool is_first_fragment(const struct frame *f);
/* By the flags of TCP; such a packet begins none. */
bool ends_connection(const struct frame *f);
