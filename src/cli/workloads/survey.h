/* SPDX-License-Identifier: Apache-2.0 */
/* "tenet status": a project drawn from lists of its objects, what is wrong in it, and what to do.
 * Pure. */
#pragma once

#include "wire/json.h"

/* The lists that a survey uses; the API server is asked for them in this order. */
enum survey_list {
    SURVEY_SERVICES,
    SURVEY_ENDPOINTS,
    SURVEY_PODS,
    SURVEY_RCS,
    SURVEY_CLAIMS,
    SURVEY_QUOTAS,
    SURVEY_EVENTS,
    SURVEY_DEPLOYMENTS,
    SURVEY_REPLICA_SETS,
    SURVEY_STATEFUL_SETS,
    SURVEY_DAEMON_SETS,
    SURVEY_JOBS,
    SURVEY_CRON_JOBS,
    SURVEY_AUTOSCALERS,
    SURVEY_DCS,
    SURVEY_ROUTES,
    SURVEY_N
};
struct survey_source {
    const char *version, *plural;
    const char *label; /* The short kind in output: "svc", "deployment". */
    bool optional;     /* A server may not have the kind. */
};
extern const struct survey_source survey_sources[SURVEY_N];

struct survey {
    const char *project, *server;
    /* Lists with "items"; NULL: could not be read. */
    const struct json *lists[SURVEY_N];
    int64_t now_ms;
    bool suggest; /* What to do is written below each problem. */
};

/* Appends the picture. */
void survey_draw(const struct survey *s, struct strbuf *out);

/* ---- problems ---- */

/* The problems of a project: [{"severity": "error" | "warning" | "info", "object": "pod/x", "text":
 * ..., "advice": ...}], errors first; owned. */
struct json *survey_problems(const struct survey *s);
