/* SPDX-License-Identifier: Apache-2.0 */
/* tenet node maps: shows the maps of a node with the datapath ebpf, as its agent reports them. */
#pragma once

#include "cli/command.h"

extern const struct command cmd_node_maps;
/* Pure: the table of all maps, or of the entries of one (the "map" of an agent's answer
 * to /v1/maps). */
void node_maps_render(const struct json *maps, struct strbuf *out);
void node_maps_render_entries(const struct json *map, struct strbuf *out);
