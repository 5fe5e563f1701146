/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for the master's clients: the section "limits" of master-config.yaml, and --limit.  The
 * rows in master_options.c have the names, ranges and meanings. */
#pragma once

enum serving_limit {
    LIMIT_CONNS,
    LIMIT_CONNS_CLIENT,
    LIMIT_STREAMS,
    LIMIT_HEADER_BYTES,
    LIMIT_URI_BYTES,
    LIMIT_BODY_BYTES,
    LIMIT_HEADER_S,
    LIMIT_BODY_S,
    LIMIT_IDLE_S,
    LIMIT_WRITE_S,
    LIMIT_INFLIGHT,
    LIMIT_QUEUED,
    LIMIT_QUEUE_S,
    LIMIT_WATCHES,
    LIMIT_WATCH_S,
    LIMIT_SHUTDOWN_DELAY_S,
    LIMIT_SHUTDOWN_S,
    LIMIT_MAX
};

struct serving_limits {
    unsigned values[LIMIT_MAX];
};
