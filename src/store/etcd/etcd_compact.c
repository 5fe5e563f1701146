/* SPDX-License-Identifier: Apache-2.0 */
/* The etcd backend: compaction of etcd's history, by one master of all.
 *
 * Before each compaction a master writes a shared key outside of the registry on the condition
 * that it has not changed. One master succeeds and compacts; the others read the key's revision,
 * and wait until the same number of changes was made again. */
#include "base/log.h"
#include "store/etcd/etcd_store.h"

#include <stdio.h>

LOG_MODULE("store");

#define CLAIM_KEY "/tenet/compaction"

static void failed(const struct rpc_result *r)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_WARN, "etcd compaction failed", "status=\"%s\" reason=\"%s\"",
                grpc_status_name(r->status), r->text);
}

static void on_compacted(void *ctx, const struct rpc_result *r)
{
    struct etcd_store *s = ctx;
    s->compaction = NULL;
    /* Out of range: another client has compacted further, for example an administrator. */
    if (r->status != GRPC_OK && r->status != GRPC_OUT_OF_RANGE) {
        failed(r);
    } else {
        log_debug("etcd compacted", "revision=%llu", (unsigned long long) s->compact_to);
    }
}

static void on_claim(void *ctx, const struct rpc_result *r)
{
    struct etcd_store *s = ctx;
    struct etcd_txn_response t;
    s->compaction = NULL;
    if (r->status != GRPC_OK || etcd_txn_parse(r->message, r->size, &t) < 0) {
        failed(r);
        return;
    }
    s->compact_claim = t.succeeded ? t.header.revision : t.mod_revision;
    if (!t.succeeded) {
        return;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_compact_format(&b, s->compact_to);
    s->compaction =
        rpc_begin(s->rpc, ETCD_PATH_COMPACT, &b, ETCD_CALL_MS, ETCD_MAX_MESSAGE, on_compacted, s);
}

void etcd_compact(struct etcd_store *s)
{
    if (s->compaction || s->revision < s->compact_at || s->revision <= s->history) {
        return;
    }
    s->compact_at = s->revision + s->history;
    s->compact_to = s->revision - s->history;
    char text[24];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long) s->compact_to);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    etcd_txn_format(&b, &(struct etcd_txn_request){.key = {CLAIM_KEY, sizeof CLAIM_KEY - 1},
                                                   .value = {text, (size_t) n},
                                                   .condition = ETCD_IF_AT,
                                                   .revision = s->compact_claim,
                                                   .action = ETCD_PUT});
    s->compaction =
        rpc_begin(s->rpc, ETCD_PATH_TXN, &b, ETCD_CALL_MS, ETCD_MAX_MESSAGE, on_claim, s);
}
