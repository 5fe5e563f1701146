/* SPDX-License-Identifier: Apache-2.0 */
/* Random frames at a random node: honest, forged, fragments, tunnels in tunnels, cut
 * short, with flipped bits. */
#pragma once

#include "frames.h"
#include "random_node.h"

enum { RANDOM_FRAME_MIN = 15 }; /* The kernel runs no program on a frame with nothing in it. */
void make_frame(const struct cluster *c, struct frame *f);
