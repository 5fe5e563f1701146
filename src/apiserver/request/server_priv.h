/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the API server that its parts share.
 *
 * server.c makes and frees the parts; each group of members belongs to the part that its comment
 * names.  Everything runs on the loop's thread. */
#pragma once

#include "apiserver/apiserver.h"
#include "apiserver/cache/parsed.h"
#include "apiserver/cache/subscriber.h"

struct apiserver {
    struct loop *loop;
    struct store *store;
    struct apiserver_config cfg;
    struct cache cache;
    bool lost;     /* The store takes no writes. */
    char *reason;  /* The reason why it takes none. */
    bool stopping; /* apiserver_shutdown was called. */
    struct loop_timer *watch_timer, *stream_timer, *proxy_timer;
    struct cache_subscriber watches, definitions;
    size_t n_watches;
    struct list streams; /* Between clients and nodes. */
    size_t n_streams;
    struct list proxied; /* Requests that are passed on to pods. */
    size_t n_proxied;
    struct list log_waits; /* Requests for the log of a rollout that has not begun. */
    size_t n_log_waits;
    struct apiserver_kubelets *kubelets; /* NULL: nodes are not asked. */
    struct usage *usage;
    bool unready;      /* apiserver_unready was called. */
    unsigned inflight; /* Writes under way. */
    struct list writes;
    struct loop_task trim;
    bool settling; /* A definition's status is being written. */
    struct loop_timer *settle_timer;
    struct metrics *metrics;
    apiserver_metrics_fn *more_metrics; /* NULL: none. */
    void *more_metrics_ctx;
    struct flow_control *flow;
    struct http_server *http; /* Source of connection metrics; NULL: none. */
    struct probe *probe;
    struct health_check *checks;
    size_t n_checks, checks_cap;
    struct security *security;
    struct cors *cors; /* NULL: pages of other web sites may not. */
    struct openapi *openapi;
    struct alloc *alloc; /* NULL: services get no addresses or ports. */
    struct addresses *addresses;
    struct admission *admission;
    struct parsed parsed; /* Objects that admission reads at many writes. */
    struct webhooks *webhooks;
    struct scc_set *sccs;
    struct uids *uids; /* NULL: namespaces get no user IDs. */
    struct quotas *quotas;
    struct project_counts *project_counts; /* NULL: nothing limits them. */
    struct oauth_server *oauth;            /* NULL: there is none. */
    struct oauth_inactivity *inactivity;
    uint64_t started_ms;
};
