/* SPDX-License-Identifier: Apache-2.0 */
/* The programs' verdict on an imagined packet, and the map entries that led to it.
 *
 * The programs that carry packets are loaded once more (program_load_dry) and run on a frame: so
 * the verdict is that of the live programs. The steps are then read from the same maps, for
 * people. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ebpf/program.h"

/* 'p' is IPv4. '*ret' points into memory owned by 'ret_owner', until trace_done. */
struct trace_steps;
int trace_packet(const struct program *live, const struct program_features *f,
                 const struct sdn_network *n, const struct model_packet *p, struct dp_trace *ret,
                 struct trace_steps **ret_owner, struct err *e);
struct trace_steps *trace_steps_free(struct trace_steps *t);
