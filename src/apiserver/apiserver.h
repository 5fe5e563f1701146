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
 *     apiserver_unready(a);                        // /readyz fails: load balancers stop sending
 *     apiserver_shutdown(a);                       // ends the watches
 *     http_server_shutdown(h, 5000, done, ctx);    // then wait for 'done'
 *     store_close(store);                          // finishes queued writes, which are answered
 *     http_server_free(h); apiserver_free(a);
 *
 * The server calls store_start itself.  It makes no objects of its own: the controllers create the
 * namespaces that a cluster begins with.  Everything runs on the loop's thread. */
#pragma once

#include "base/prom.h"
#include "net/http/http.h"
#include "store/store.h"

/* Access control.  All strings are copied; the keys must outlive the server. */
struct apiserver_security {
    bool always_allow; /* Every authenticated user may do everything; otherwise RBAC decides. */
    /* A request without a credential is by system:anonymous; otherwise it gets 401. */
    bool anonymous;
    /* On a listener without TLS, a request with this bearer token is by the master itself; every
     * other request there is refused.  NULL: none. */
    const char *loopback_token;
    /* Keys that sign service accounts' tokens; NULL: there are none. */
    const struct jws_keys *keys;
    /* Issuer of those tokens; NULL: "https://kubernetes.default.svc". */
    const char *issuer;
    struct audit_log *audit; /* NULL: no audit.  Borrowed, and must outlive the server. */
};

/* How nodes are asked for logs and processes: PEM texts. */
struct apiserver_kubelets {
    const char *ca;         /* The authority of the nodes' serving certificates. */
    const char *cert, *key; /* The API server's own certificate for nodes. */
};
/* Frees the texts. */
void apiserver_kubelets_done(struct apiserver_kubelets *k);

struct service_ranges;   /* sdn/service_ranges.h */
struct node_rules;       /* sdn/address.h */
struct scc_blocks;       /* pod/scc_block.h */
struct admission_config; /* apiserver/admission/plugin_config.h */

struct apiserver_config {
    const char
        *without_group;  /* Kinds of this group are not served as compiled in; NULL: all are. */
    size_t event_window; /* Events of each kind kept for resumed watches; 0: 8,192. */
    size_t event_window_bytes; /* Most bytes of replaced objects they may hold; 0: 16 MiB. */
    /* Requests executed at once, except those of administrators; 0: 400. */
    unsigned max_inflight;
    /* Requests waiting in each priority level; further ones get 429; 0: 1,024. */
    unsigned max_queued;
    uint64_t queue_wait_ms; /* Longest wait, after which a request gets 429; 0: 15,000. */
    unsigned max_watches;   /* Watches at once; further ones get 429; 0: 50,000. */
    uint64_t bookmark_ms;   /* Time between bookmarks of a watch; 0: 30,000. */
    uint64_t
        watch_timeout_ms; /* Longest watch when the client names no timeout; 0: 30 to 60 minutes. */
    /* Ranges of the addresses and ports of services (copied); NULL: services get none. */
    const struct service_ranges *services;
    /* Addresses that nodes cannot report as their own (copied; its names are borrowed and must
     * outlive the server). NULL: only addresses of other objects are refused. */
    const struct node_rules *addresses;
    /* Names of admission plug-ins to disable (NULL at the end; NULL: none), as
     * admission_check_disabled accepts them; borrowed until apiserver_new returns. */
    const char *const *admission_disabled;
    /* The plug-ins that are on and off, their order and settings, as admission_config_check accepts
     * them; NULL: all as by default.  Borrowed. */
    const struct admission_config *admission;
    /* The node selector of projects without one of their own, "label=value,..."; NULL: none.
     * Borrowed. */
    const char *default_node_selector;
    /* The domain of the hosts that routes get; NULL: ROUTE_DEFAULT_SUBDOMAIN (route/host.h).
     * Borrowed. */
    const char *routing_subdomain;
    /* Requests for projects (verbs/project_request.h): the text of a refusal, and "NAMESPACE/NAME"
     * of the template; NULL: the default ones.  Borrowed. */
    const char *project_request_message, *project_request_template;
    /* Labels that only users who may bind pods may name in node selectors (NULL at the end; NULL:
     * no constraints, also for nodeName).  Borrowed. */
    const char *const *node_selector_blacklist;
    /* Who and what is not judged by Pod Security: names of users, namespaces and RuntimeClasses
     * (NULL at the end; NULL: none).  Borrowed. */
    struct pod_security_exemptions {
        const char *const *users, *const *namespaces, *const *runtime_classes;
    } pod_security_exempt;
    /* Pods refer only to the Secrets of their account, whatever the account says. */
    bool limit_secret_references;
    /* User IDs, groups and SELinux levels of projects (copied); NULL: those of
     * scc_blocks_defaults. */
    const struct scc_blocks *blocks;
    /* Origins of web pages that may use the API (request/cors.h; NULL at the end; NULL: none).
     * Borrowed until apiserver_new returns. */
    const char *const *cors_origins;
    /* NULL: everyone is trusted, as the user system:admin of system:masters. */
    const struct apiserver_security *security;
    /* Called once, when the store's first snapshot is loaded and /readyz turns 200; may be NULL. */
    void (*ready)(void *ctx);
    void *ctx;
};

/* Checks that a configuration may disable the admission plug-ins with these names (NULL at the
 * end; NULL: none).  -EINVAL: an unknown name; -EPERM: a plug-in that must not be disabled, with
 * the consequence of disabling it. */
int admission_check_disabled(const char *const *names, struct err *e);
/* Checks that a list of plug-ins may have the name: that of a plug-in, or one that OpenShift has
 * and Tenet accepts.  -EINVAL. */
int admission_check_name(const char *name, struct err *e);
/* Checks a node selector of the configuration: "label=value,label=value".  -EINVAL. */
int admission_check_node_selector(const char *text, struct err *e);

struct apiserver;
/* Sets, or replaces, the certificates for nodes (copied); without them there are no streams. */
void apiserver_set_kubelets(struct apiserver *a, const struct apiserver_kubelets *k);
struct oauth_settings; /* apiserver/oauth/oauth.h */
/* Begins the OAuth server, or changes its configuration; on failure the previous one stays in
 * force.  Without it the paths of OAuth are answered with 404. */
int apiserver_set_oauth(struct apiserver *a, const struct oauth_settings *cfg, struct err *e);
/* The authorities of the OAuth server's proxies: as of oauth_server_proxy_cas. */
size_t apiserver_proxy_cas(const struct apiserver *a, const char ***ret);
/* 'cfg' may be NULL; it is copied.  'l' and 's' must outlive the server. */
struct apiserver *apiserver_new(struct loop *l, struct store *s,
                                const struct apiserver_config *cfg);
/* Attaches the HTTP server whose handler is apiserver_handle: its own errors become Status objects,
 * and /metrics includes its counters.  Detach it (NULL) before it is freed. */
void apiserver_attach(struct apiserver *a, struct http_server *h);
/* Adds a check to /readyz, under a constant name: 'fn' returns the problem, or NULL. */
typedef const char *apiserver_check_fn(void *ctx);
void apiserver_add_check(struct apiserver *a, const char *name, apiserver_check_fn *fn, void *ctx);
/* Rows of the metrics that /metrics serves. */
#define APISERVER_METRIC_TABLES 3
extern const struct prom_table apiserver_metric_tables[APISERVER_METRIC_TABLES];
/* Adds a function that appends to /metrics; NULL: none. */
typedef void apiserver_metrics_fn(void *ctx, struct strbuf *out);
void apiserver_set_metrics(struct apiserver *a, apiserver_metrics_fn *fn, void *ctx);
/* From now on /readyz fails; all requests are still served. */
void apiserver_unready(struct apiserver *a);
/* Ends all watches.  New requests get 503; writes under way are still answered. */
void apiserver_shutdown(struct apiserver *a);
/* Call it after the store was closed (it holds the server's watcher) and the HTTP server was
 * freed. */
struct apiserver *apiserver_free(struct apiserver *a);

/* An http_handler_fn; 'apiserver' is the struct apiserver.  Answers 503 until the snapshot is
 * loaded. */
void apiserver_handle(void *apiserver, struct http_exchange *x);

bool apiserver_ready(const struct apiserver *a);
/* The revision of the cache: the highest resourceVersion that a client may have seen. */
uint64_t apiserver_revision(const struct apiserver *a);
