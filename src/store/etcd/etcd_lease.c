/* SPDX-License-Identifier: Apache-2.0 */
/* The etcd backend: leases of keys with a limited lifetime, such as Events.
 *
 * One lease serves all keys that are put during a tenth of its time, and lives so much longer;
 * otherwise etcd would have one per key. No write waits for a lease. */
#include "base/log.h"
#include "store/etcd/etcd_store.h"

LOG_MODULE("store");

static void on_granted(void *ctx, const struct rpc_result *r)
{
    static struct log_limit limit;
    struct etcd_store *s = ctx;
    struct etcd_lease_grant_response g;
    s->lease_call = NULL;
    if (r->status != GRPC_OK || etcd_lease_grant_parse(r->message, r->size, &g) < 0) {
        log_limited(&limit, LOG_WARN, "etcd grants no lease, keys stay until they are deleted",
                    "status=\"%s\" reason=\"%s\"", grpc_status_name(r->status), r->text);
        return;
    }
    s->lease = g.id;
}

static void grant(struct etcd_store *s, unsigned ttl_s)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    unsigned window_s = ttl_s / 10 + 1;
    s->lease = 0;
    s->lease_ttl_s = ttl_s;
    s->lease_until_ms = loop_now_ms(s->base.loop) + 1000 * (uint64_t) window_s;
    etcd_lease_grant_format(&b, ttl_s + window_s);
    s->lease_call =
        rpc_begin(s->rpc, ETCD_PATH_LEASE_GRANT, &b, ETCD_CALL_MS, ETCD_MAX_MESSAGE, on_granted, s);
}

uint64_t etcd_lease(struct etcd_store *s, unsigned ttl_s)
{
    bool fits = s->lease_ttl_s == ttl_s && loop_now_ms(s->base.loop) < s->lease_until_ms;
    if (!fits && !s->lease_call) {
        grant(s, ttl_s);
    }
    return fits ? s->lease : 0;
}

void etcd_lease_is_gone(struct etcd_store *s)
{
    s->lease = 0;
    s->lease_until_ms = 0;
}

void etcd_lease_disconnected(struct etcd_store *s)
{
    s->lease_call = NULL;
}
