/* SPDX-License-Identifier: Apache-2.0 */
/* tenet node flows: describes the flow tables of a node, as its agent reports them. */
#pragma once

#include "cli/command.h"

extern const struct command cmd_node_flows;
/* Pure: the table of one agent's answer to /v1/flows. */
void node_flows_render(const struct json *answer, struct strbuf *out);
