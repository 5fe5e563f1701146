/* SPDX-License-Identifier: Apache-2.0 */
/* The programs, loaded on a worker thread: the verifier takes more time for them than all else of an agent's start
 * together, and needs nothing that the registry says, so that goes on meanwhile.  Nothing outside of the process is
 * changed by it (program.h): maps are pinned, and programs attached, when the network is known and can be had.
 *
 * All calls are made, and the callback comes, on the loop's thread. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ebpf/program.h"

struct early;

/* 'pins' as for program_load; the features are those of the kernel, as 'cfg' limits them. */
struct early *early_begin(struct loop *l, const struct datapath_config *cfg, const char *pins);
/* What datapath_config.prepared is to this kind, and back. */
struct datapath_prepared *early_prepared(struct early *x);
struct early *early_of(struct datapath_prepared *p);
/* What the kernel can, as 'cfg' limits it, as soon as that is known; false: not yet. */
bool early_features(const struct early *x, struct program_features *ret);
/* 'fn' is called once, when the loading ended; not from within this call, and not after early_free. */
void early_tell(struct early *x, loop_fn *fn, void *ctx);
/* When it is over: hands the programs over, once, or says why there are none. */
int early_take(struct early *x, struct program_features *ret_features, struct program *ret,
               struct err *e);
/* At any time; a loading that still runs ends by itself. */
struct early *early_free(struct early *x);
