/* SPDX-License-Identifier: Apache-2.0 */
/* tenet node flows: the pipeline in words, as the agent reports it. */
#pragma once

#include "wire/json.h"

int node_flows_run(int argc, char **argv);
/* Pure: the table of one agent's answer to /v1/flows. */
void node_flows_render(const struct json *answer, struct strbuf *out);
