/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the programs on a worker thread while the agent waits for the registry: the verifier
 * takes longer than the rest of an agent's start together, and needs nothing from the registry.
 * Nothing outside of the process changes (program.h): maps are pinned, and programs attached,
 * when the network is known and can be set up.
 *
 * All calls are made, and the callback comes, on the loop's thread. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ebpf/program.h"

struct early;

/* 'pins' as for program_load; the features are those of the kernel, as 'cfg' limits them. */
struct early *early_begin(struct loop *l, const struct datapath_config *cfg, const char *pins);
/* Converts to datapath_config.prepared, and back. */
struct datapath_prepared *early_prepared(struct early *x);
struct early *early_of(struct datapath_prepared *p);
/* The kernel's features, as 'cfg' limits them, once known; false: not yet known. */
bool early_features(const struct early *x, struct program_features *ret);
/* 'fn' is called once, when the loading has ended; not from within this call, and not after
 * early_free. */
void early_tell(struct early *x, loop_fn *fn, void *ctx);
/* After the end: hands the programs to the caller, once, or returns why there are none. */
int early_take(struct early *x, struct program_features *ret_features, struct program *ret,
               struct err *e);
/* May be called at any time; a running load ends by itself. */
struct early *early_free(struct early *x);
