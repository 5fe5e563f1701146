/* SPDX-License-Identifier: Apache-2.0 */
#include "master/serving_limits.h"

#include "base/mem.h"
#include "base/str.h"

#define DAY_S 86400

static const struct {
    const char *name;
    unsigned value, min, max;
} limits[LIMIT_MAX] = {
    [LIMIT_CONNS] = {"maxConnections", 20000, 1, 1000000},
    [LIMIT_CONNS_CLIENT] = {"maxConnectionsPerClient", 10000, 1, 1000000},
    [LIMIT_STREAMS] = {"maxStreamsPerConnection", 250, 1, 10000},
    [LIMIT_HEADER_BYTES] = {"maxHeaderBytes", 32 << 10, 4096, 1 << 20},
    [LIMIT_URI_BYTES] = {"maxURIBytes", 16 << 10, 1024, 1 << 20},
    [LIMIT_BODY_BYTES] = {"maxBodyBytes", 3 << 20, 1024, 64 << 20},
    [LIMIT_HEADER_S] = {"headerTimeoutSeconds", 15, 1, DAY_S},
    [LIMIT_BODY_S] = {"bodyTimeoutSeconds", 30, 1, DAY_S},
    [LIMIT_IDLE_S] = {"idleTimeoutSeconds", 90, 1, DAY_S},
    [LIMIT_WRITE_S] = {"writeTimeoutSeconds", 30, 1, DAY_S},
    [LIMIT_INFLIGHT] = {"maxRequestsInFlight", 400, 1, 1000000},
    [LIMIT_QUEUED] = {"maxRequestsQueued", 1024, 1, 1000000},
    [LIMIT_QUEUE_S] = {"queueTimeoutSeconds", 15, 1, DAY_S},
    [LIMIT_WATCHES] = {"maxWatches", 50000, 1, 1000000},
    [LIMIT_WATCH_S] = {"requestTimeoutSeconds", 0, 0, DAY_S},
    [LIMIT_SHUTDOWN_DELAY_S] = {"shutdownDelaySeconds", 0, 0, DAY_S},
    [LIMIT_SHUTDOWN_S] = {"shutdownTimeoutSeconds", 20, 1, DAY_S},
};

void serving_limits_init(struct serving_limits *l)
{
    for (size_t i = 0; i < LIMIT_MAX; i++) {
        l->values[i] = limits[i].value;
    }
}

int serving_limits_set(struct serving_limits *l, const char *name, int64_t value, struct err *e)
{
    for (size_t i = 0; i < LIMIT_MAX; i++) {
        if (!streq(limits[i].name, name)) {
            continue;
        }
        if (value < limits[i].min || value > limits[i].max) {
            return err_set(e, -EINVAL, "%lld is not in %u-%u", (long long) value, limits[i].min,
                           limits[i].max);
        }
        l->values[i] = (unsigned) value;
        return 0;
    }
    return err_set(e, -EINVAL, "unknown key");
}

int serving_limits_parse(struct serving_limits *l, const char *text, struct err *e)
{
    const char *equals = strchr(text, '=');
    int64_t value = 0;
    if (!equals || str_to_i64(equals + 1, INT64_MIN, INT64_MAX, &value) < 0) {
        return err_set(e, -EINVAL, "\"%.80s\" is not NAME=NUMBER such as maxConnections=1000",
                       text);
    }
    CLEANUP_FREE char *name = xstrndup(text, (size_t) (equals - text));
    int r = serving_limits_set(l, name, value, e);
    return r < 0 ? (err_prefix(e, "%.80s", name), r) : 0;
}
