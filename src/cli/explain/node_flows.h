/* SPDX-License-Identifier: Apache-2.0 */
/* tenet node flows: the pipeline in words, as the agent reports it. */
#pragma once

#include "cli/command.h"

extern const struct command cmd_node_flows;
/* Pure: the table of one agent's answer to /v1/flows. */
void node_flows_render(const struct json *answer, struct strbuf *out);
