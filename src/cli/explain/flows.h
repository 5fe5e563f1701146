/* SPDX-License-Identifier: Apache-2.0 */
/* Text of "tenet flows" from the events of agents (/v1/watch): adds names to an event, and renders
 * it as a line of a table.  Pure. */
#pragma once

#include "base/map.h"
#include "wire/json.h"

/* Names that an agent does not know, by address: pods of other nodes ("red/web"), and nodes. */
struct flow_names {
    struct smap pods, nodes; /* Maps of addresses to owned names. */
    bool synced;             /* The list of pods was read completely. */
};
void flow_names_init(struct flow_names *n);
void flow_names_done(struct flow_names *n);
/* Adds a pod, or (gone) removes it. */
void flow_names_pod(struct flow_names *n, const struct json *pod, bool gone);

/* Adds the names of an event's addresses that its agent did not know. */
void flow_name(struct json *event, const struct flow_names *n);
/* Whether a pod or a service of 'project' is part of the flow.  True for all events if 'project' is
 * NULL, and for those that count lost events. */
bool flow_is_of(const struct json *event, const char *project);

#define FLOW_COLUMNS 6
/* Append the heading, or the line of an event.  'width' has the columns' widths so far, and grows
 * with longer cells; it begins with zeros. */
void flow_render_head(size_t width[FLOW_COLUMNS], struct strbuf *out);
void flow_render(const struct json *event, size_t width[FLOW_COLUMNS], struct strbuf *out);
