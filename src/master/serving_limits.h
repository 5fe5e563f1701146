/* SPDX-License-Identifier: Apache-2.0 */
/* What the master lets its clients use: the section "limits" of master-config.yaml, and --limit.  Pure.
 *
 *     limits:
 *       maxConnections: 20000           # the idlest give way to new ones
 *       maxConnectionsPerClient: 10000  # from one address
 *       maxStreamsPerConnection: 250    # HTTP/2 requests at once
 *       maxHeaderBytes: 32768           # 431
 *       maxURIBytes: 16384              # 414
 *       maxBodyBytes: 3145728           # 413
 *       headerTimeoutSeconds: 15        # 408; also for a TLS handshake
 *       bodyTimeoutSeconds: 30          # 408
 *       idleTimeoutSeconds: 90          # between requests
 *       writeTimeoutSeconds: 30         # for the client to take 16 KiB
 *       maxRequestsInFlight: 400        # more wait in their priority level's queue
 *       maxRequestsQueued: 1024         # in each of them; 429
 *       queueTimeoutSeconds: 15         # 429
 *       maxWatches: 50000               # 429
 *       requestTimeoutSeconds: 0        # of a watch that names none; 0: 30 to 60 minutes
 *       shutdownDelaySeconds: 0         # between /readyz failing and the end of listening
 *       shutdownTimeoutSeconds: 20      # for requests under way
 */
#pragma once

#include "base/err.h"

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

void serving_limits_init(struct serving_limits *l);
/* -EINVAL: no such name, or not a value for it: the error says which are. */
int serving_limits_set(struct serving_limits *l, const char *name, int64_t value, struct err *e);
/* "NAME=VALUE"; the error begins with the name. */
int serving_limits_parse(struct serving_limits *l, const char *text, struct err *e);
