/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of the eBPF datapath for people: what they are, how full, and their entries in words. */
#pragma once

#include "datapath/ebpf/program.h"
#include "datapath/ebpf/table.h"
#include "sdn/model.h"
#include "wire/json.h"

#include <stdint.h>

#define SHOW_LIMIT 4096 /* Entries at once. */

/* An array of one object a map (datapath_maps); owned.  How many entries the tables 'known' have need not be counted;
 * they end with NULL. */
struct json *show_maps(const struct program *p, const struct table *const *known);
/* Entries of the map 'name' ("tenet_pods" or "pods"), from behind the key 'after' (as "next" was) on. */
int show_map(const struct program *p, const struct table *const *known, const char *name,
             const char *after, size_t limit, struct json **ret, struct err *e);
/* Packets dropped by cause, of all processors; untouched when they cannot be read. */
int show_drops(int fd, uint64_t ret[MODEL_N_CAUSES]);
/* One of the counters behind them (EBPF_ERRORS_SENT, ...); 0 when it cannot be read. */
uint64_t show_counter(int fd, uint32_t which);
/* Pure: an entry in words, "key" and "value"; of a map that is not known here, as bytes. */
struct json *show_entry(const char *map, const void *key, size_t key_size, const void *value,
                        size_t value_size);
