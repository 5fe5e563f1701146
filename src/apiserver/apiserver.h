/* SPDX-License-Identifier: Apache-2.0 */
/* The API server: the registry as a Kubernetes-style REST API with list and watch, over a store.
 *
 * It is generic over the kinds of src/api and keeps all objects in a watch cache, each once, as the
 * bytes that clients get.  Reads and watches are answered from the cache, writes go to the store
 * with the revision they were based on, and are answered after their change went through the cache:
 * a client always reads its own writes.
 *
 *     struct apiserver *a = apiserver_new(loop, store, &cfg);
 *     struct http_server *h = http_server_new(loop, NULL, apiserver_handle, a);
 *     apiserver_attach(a, h);
 *     http_server_add_listener(h, fd, &e);
 *     ... at the end:
 *     apiserver_unready(a);                        // /readyz fails: balancers send no more
 *     apiserver_shutdown(a);                       // watches get their end
 *     http_server_shutdown(h, 5000, done, ctx);    // then wait for 'done'
 *     store_close(store);                          // finishes queued writes, which are answered
 *     http_server_free(h); apiserver_free(a);
 *
 * The server calls store_start itself.  It makes no objects of its own: whoever runs it creates the
 * namespaces a cluster begins with.  Everything runs on the loop's thread. */
#pragma once

#include "base/prom.h"
#include "net/http/http.h"
#include "store/store.h"

/* Who may do what.  All strings are copied; the keys must outlive the server. */
struct apiserver_security {
    bool always_allow; /* Whoever is authenticated may do everything; else RBAC decides. */
    bool anonymous;    /* Who shows no credential is system:anonymous; else 401. */
    /* A request with this bearer token, on a listener without TLS, is by the master itself; without
     * TLS nothing else is let in.  NULL: none. */
    const char *loopback_token;
    const struct jws_keys *keys; /* Of service accounts' tokens; NULL: there are none. */
    const char *issuer;          /* Of those tokens; NULL: "https://kubernetes.default.svc". */
    struct audit_log *audit;     /* NULL: no audit.  Borrowed, and must outlive the server. */
};

struct service_ranges; /* sdn/service_ranges.h */
struct node_rules;     /* sdn/address.h */

struct apiserver_config {
    const char
        *without_group;  /* Kinds of this group are not served as compiled in; NULL: all are. */
    size_t event_window; /* Events of each kind kept for resumed watches; 0: 8,192. */
    size_t event_window_bytes; /* Most bytes of replaced objects they may hold; 0: 16 MiB. */
    unsigned max_inflight;     /* Requests at work at once, of all but administrators; 0: 400. */
    unsigned max_queued;       /* Waiting in each priority level; more get 429; 0: 1,024. */
    uint64_t queue_wait_ms;    /* Longest wait, then 429; 0: 15,000. */
    unsigned max_watches;      /* More get 429; 0: 50,000. */
    uint64_t bookmark_ms;      /* Between bookmarks of a watch; 0: 30,000. */
    uint64_t
        watch_timeout_ms; /* Longest watch when the client names no timeout; 0: 30 to 60 minutes. */
    /* What services are given their addresses and ports of (copied); NULL: they are given none. */
    const struct service_ranges *services;
    /* Addresses that nodes cannot report as their own (copied; its names are borrowed and must
     * outlive the server). NULL: only addresses of other objects are refused. */
    const struct node_rules *addresses;
    /* Names of admission plug-ins to enable and to disable (NULL at the end; NULL: none), as
     * admission_check_names found them right; borrowed until apiserver_new returns. */
    const char *const *admission_enabled, *const *admission_disabled;
    /* NULL: everyone is trusted, as the user system:admin of system:masters. */
    const struct apiserver_security *security;
    /* Called once, when the store's first snapshot is loaded and /readyz turns 200; may be NULL. */
    void (*ready)(void *ctx);
    void *ctx;
};

/* Whether a configuration may name these plug-ins; either list may be NULL.  -EINVAL: an unknown
 * name, or one in both lists; -EPERM: one that must not be disabled, with what would be possible
 * without it. */
int admission_check_names(const char *const *enabled, const char *const *disabled, struct err *e);

struct apiserver;
/* 'cfg' may be NULL; it is copied.  'l' and 's' must outlive the server. */
struct apiserver *apiserver_new(struct loop *l, struct store *s,
                                const struct apiserver_config *cfg);
/* The server whose handler apiserver_handle is: its own errors become Status objects, and /metrics
 * tells its figures.  It must be detached (NULL) before it is freed. */
void apiserver_attach(struct apiserver *a, struct http_server *h);
/* A check more of /readyz, under a constant name: 'fn' says what is wrong, or NULL. */
typedef const char *apiserver_check_fn(void *ctx);
void apiserver_add_check(struct apiserver *a, const char *name, apiserver_check_fn *fn, void *ctx);
/* Rows of the metrics that /metrics serves. */
#define APISERVER_METRIC_TABLES 3
extern const struct prom_table apiserver_metric_tables[APISERVER_METRIC_TABLES];
/* Adds to what /metrics tells; NULL: nothing more. */
typedef void apiserver_metrics_fn(void *ctx, struct strbuf *out);
void apiserver_set_metrics(struct apiserver *a, apiserver_metrics_fn *fn, void *ctx);
/* From now on /readyz fails; all requests are served still. */
void apiserver_unready(struct apiserver *a);
/* Ends all watches; requests from now on get 503, writes under way are still answered. */
void apiserver_shutdown(struct apiserver *a);
/* After the store was closed (it holds the server's watcher) and the HTTP server freed. */
struct apiserver *apiserver_free(struct apiserver *a);

/* An http_handler_fn; 'apiserver' is the struct apiserver.  Answers 503 until the snapshot is
 * loaded. */
void apiserver_handle(void *apiserver, struct http_exchange *x);

bool apiserver_ready(const struct apiserver *a);
/* The revision the cache is at: the highest resourceVersion a client may have seen. */
uint64_t apiserver_revision(const struct apiserver *a);
