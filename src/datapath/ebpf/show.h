/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of the eBPF datapath in readable form: their purpose, use, and entries. */
#pragma once

#include "datapath/ebpf/program.h"
#include "datapath/ebpf/table.h"
#include "sdn/model.h"
#include "wire/json.h"

#include <stdint.h>

/* An array with one object per map (datapath_maps); owned. The numbers of entries of the tables
 * in 'known' need not be counted; the list ends with NULL. */
#define SHOW_LIMIT 4096 /* Entries at once. */
struct json *show_maps(const struct program *p, const struct table *const *known);
/* Entries of the map 'name' ("tenet_pods" or "pods"), after the key 'after' (an earlier "next"). */
int show_map(const struct program *p, const struct table *const *known, const char *name,
             const char *after, size_t limit, struct json **ret, struct err *e);
/* Packets dropped by cause, over all processors; unchanged when they cannot be read. */
int show_drops(int fd, uint64_t ret[MODEL_N_CAUSES]);
/* One of the counters after those (EBPF_ERRORS_SENT, ...); 0 when it cannot be read. */
uint64_t show_counter(int fd, uint32_t which);
/* Pure: an entry in readable form, "key" and "value"; as bytes when the map is unknown here. */
struct json *show_entry(const char *map, const void *key, size_t key_size, const void *value,
                        size_t value_size);
