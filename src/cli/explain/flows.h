/* SPDX-License-Identifier: Apache-2.0 */
/* Text of "tenet flows" from the events of agents (/v1/watch). */
#pragma once

#include "base/map.h"
#include "wire/json.h"

/* Names that an agent does not know, by address: pods of other nodes ("red/web"), and nodes. */
struct flow_names {
    struct smap pods, nodes; /* Maps of addresses to owned names. */
    bool synced;             /* All pods are known. */
};
void flow_names_init(struct flow_names *n);
void flow_names_done(struct flow_names *n);
/* Adds a pod, or (gone) removes it. */
void flow_names_pod(struct flow_names *n, const struct json *pod, bool gone);

/* Adds missing names to an event. */
void flow_name(struct json *event, const struct flow_names *n);
/* Whether a pod of the project sends or receives the flow; NULL: any project. */
bool flow_is_of(const struct json *event, const char *project);

#define FLOW_COLUMNS 6
/* Appends a line; 'width' has the column widths so far, which only grow. */
void flow_render_head(size_t width[FLOW_COLUMNS], struct strbuf *out);
void flow_render(const struct json *event, size_t width[FLOW_COLUMNS], struct strbuf *out);
