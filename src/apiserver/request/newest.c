/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that need the newest state, when other masters write to the same store: they wait until
 * the cache has every change that any client was informed of before the request arrived.
 *
 * These requests are reads without a resourceVersion, as in Kubernetes; reads of a version that
 * the cache does not have yet; and all writes, because they are based on the cache.  While the
 * store is unavailable, reads are answered from the cache with a warning, because newer changes
 * cannot be ruled out; writes are refused. */
#include "apiserver/request/newest.h"

#include "apiserver/request/respond.h"

#include <inttypes.h>
#include <stdio.h>

struct waiting {
    struct request *q;
    request_fn *handler;
};

static bool is_read(const struct request *q)
{
    return q->verb == VERB_GET || q->verb == VERB_LIST || q->verb == VERB_WATCH;
}

static bool needs_newest(const struct request *q)
{
    if (!store_is_shared(q->server->store)) {
        return false;
    }
    if (!is_read(q)) {
        return true;
    }
    const char *version = http_query(q->x, "resourceVersion");
    uint64_t n = 0;
    /* This includes further pages of a list: another master may have served the first one. */
    if (!version || !*version) {
        return true;
    }
    return str_to_u64(version, UINT64_MAX, &n) == 0 && n > q->server->cache.revision;
}

static void warn(struct request *q)
{
    char text[160];
    snprintf(text, sizeof text,
             "the store is not available: this is the state of resourceVersion %" PRIu64
             ", there may be a newer one",
             q->server->cache.revision);
    request_warn(q, "tenet", text);
}

void outcome_unavailable(struct outcome *o, const struct request *q)
{
    const char *reason = q->server->lost && q->server->reason ? q->server->reason : "";
    outcome_error(o, 503, "ServiceUnavailable", "the store is not available%s%s",
                  *reason ? ": " : "", reason);
}

/* Continues when the cache is as new as possible; 'error' says why it may be older than the
 * store. */
static void go_on(struct request *q, int error, request_fn *handler, struct outcome *outcome)
{
    if (q->server->stopping) {
        outcome_error(outcome, 503, "ServiceUnavailable", "the server is shutting down");
        return;
    }
    if (error < 0 && !is_read(q)) {
        outcome_unavailable(outcome, q);
        return;
    }
    if (error < 0) {
        warn(q);
    }
    handler(q, outcome);
}

static void synced(void *ctx, int error, uint64_t revision)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    CLEANUP_FREE struct waiting *w = ctx;
    struct request *q = w->q;
    go_on(q, error, w->handler, &outcome);
    request_answer(q, &outcome);
}

void newest_then(struct request *q, request_fn *handler, struct outcome *outcome)
{
    if (!needs_newest(q)) {
        handler(q, outcome);
        return;
    }
    struct waiting *w = NEW(struct waiting);
    *w = (struct waiting){q, handler};
    outcome_take_over(outcome);
    store_sync(q->server->store, synced, w);
}
