/* SPDX-License-Identifier: Apache-2.0 */
/* What "tenet flows" makes of the events of agents (/v1/watch). */
#pragma once

#include "base/map.h"
#include "wire/json.h"

/* Names that an agent does not know: pods of other nodes by address ("red/web"), nodes by theirs. */
struct flow_names {
    struct smap pods, nodes; /* Of owned texts. */
    bool synced;             /* All pods are known. */
};
void flow_names_init(struct flow_names *n);
void flow_names_done(struct flow_names *n);
/* Takes in a Pod as it is, or (gone) was. */
void flow_names_pod(struct flow_names *n, const struct json *pod, bool gone);

/* Puts the names in that are missing. */
void flow_name(struct json *event, const struct flow_names *n);
/* Whether somebody of the project is part of it; NULL: any. */
bool flow_is_of(const struct json *event, const char *project);

#define FLOW_COLUMNS 6
/* A line; 'width' are those of its columns so far, which only grow. */
void flow_render_head(size_t width[FLOW_COLUMNS], struct strbuf *out);
void flow_render(const struct json *event, size_t width[FLOW_COLUMNS], struct strbuf *out);
