/* SPDX-License-Identifier: Apache-2.0 */
/* The traces of "tenet trace", and their text.
 *
 * A trace is an object: "from", "to", "protocol", "halves" (one for each node on the way: its
 * agent's answer at /v1/trace, or only "model", computed from the registry), and "verdict". */
#pragma once

#include "cli/explain/agents.h"
#include "sdn/explain.h"

struct trace_request {
    const char *from; /* "PROJECT/POD" */
    const char *to;   /* "PROJECT/POD", "PROJECT/SERVICE", an address, or a node's name. */
    uint8_t proto;
    uint16_t port;
};

/* Follows the packet; the caller owns '*ret'. */
int trace_follow(struct agents *a, const struct trace_request *q, struct json **ret, struct err *e);

/* Computes one half from the registry alone: the verdict of the model of 'node'
 * (cli/explain/trace_registry.c). 'src_pod': the packet is from that node's pod with address
 * 'q->src'; else it came by the tunnel. */
int trace_from_registry(const struct agents *a, const char *node, struct explain_question *q,
                        struct json **ret, struct err *e);

/* ---- pure ---- */

/* Adds "verdict" to a trace whose halves are complete. */
void trace_conclude(struct json *trace);
/* Returns the exit status: 0 allowed, 1 dropped, 3 unknown. */
int trace_exit_status(const struct json *trace);
void trace_render(const struct json *trace, struct strbuf *out);
