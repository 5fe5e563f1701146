/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of the eBPF datapath for people: what they are, how full, and their entries in words. */
#pragma once

#include "base/err.h"
#include "wire/json.h"

#include <stdint.h>

#define SHOW_LIMIT 4096 /* Entries at once. */

struct show_map {
    const char *name;
    int fd;
    int64_t entries; /* As the agent knows; -1: counted here. */
};
/* An array of one object a map (datapath_maps); owned. */
struct json *show_maps(const struct show_map *maps, size_t n);
/* Entries of one, from behind the key 'after' (as "next" was) on. */
int show_entries(const struct show_map *m, const char *after, size_t limit, struct json **ret,
                 struct err *e);
/* Pure: an entry in words, "key" and "value"; of a map that is not known here, as bytes. */
struct json *show_entry(const char *map, const void *key, size_t key_size, const void *value,
                        size_t value_size);
