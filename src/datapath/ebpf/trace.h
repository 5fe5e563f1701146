/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs do with a packet that is only thought of, and the entries of the maps by which they do it.
 *
 * The programs that carry packets are loaded once more (program_load_dry) and run on a frame: so the verdict is theirs.
 * What they met on the way is read from the same maps afterwards, for people. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ebpf/program.h"

/* 'p' is of IPv4.  '*ret' points into what is owned by 'ret_owner', until trace_done. */
struct trace_steps;
int trace_packet(const struct program *live, const struct program_features *f,
                 const struct sdn_network *n, const struct model_packet *p, struct dp_trace *ret,
                 struct trace_steps **ret_owner, struct err *e);
struct trace_steps *trace_steps_free(struct trace_steps *t);
