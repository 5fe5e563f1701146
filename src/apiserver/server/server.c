/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/security.h"

#include "api/proto.h"
#include "apiserver/admission/addresses.h"
#include "apiserver/admission/admission.h"
#include "apiserver/admission/alloc.h"
#include "apiserver/admission/integrity.h"
#include "apiserver/admission/project_limit.h"
#include "apiserver/admission/quota.h"
#include "apiserver/admission/scc_decide.h"
#include "apiserver/admission/uids.h"
#include "apiserver/admission/webhooks.h"
#include "apiserver/oauth/oauth.h"
#include "apiserver/oauth/uses.h"
#include "apiserver/request/cors.h"
#include "apiserver/request/effect.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/metrics.h"
#include "apiserver/request/newest.h"
#include "apiserver/request/probe.h"
#include "apiserver/request/respond.h"
#include "apiserver/server/definitions.h"
#include "apiserver/stream/proxy.h"
#include "apiserver/stream/stream.h"
#include "apiserver/verbs/applied_quota.h"
#include "apiserver/verbs/binding.h"
#include "apiserver/verbs/delete.h"
#include "apiserver/verbs/discovery.h"
#include "apiserver/verbs/eviction.h"
#include "apiserver/verbs/health.h"
#include "apiserver/verbs/mapping.h"
#include "apiserver/verbs/openapi.h"
#include "apiserver/verbs/policies.h"
#include "apiserver/verbs/project_request.h"
#include "apiserver/verbs/read.h"
#include "apiserver/verbs/review.h"
#include "apiserver/verbs/rollout_log.h"
#include "apiserver/verbs/rollouts.h"
#include "apiserver/verbs/self.h"
#include "apiserver/verbs/usage.h"
#include "apiserver/verbs/volume_binding.h"
#include "apiserver/verbs/watch.h"
#include "apiserver/verbs/write.h"
#include "base/log.h"
#include "base/timeutil.h"

#include <inttypes.h>
#include <malloc.h>

LOG_MODULE("apiserver");

#define DEFAULT_WINDOW 8192
/* Minimum number of objects in a snapshot for which trimming memory is worthwhile. */
#define TRIM_OBJECTS 1000
#define DEFAULT_WINDOW_BYTES ((size_t) 16 << 20)

/* ---- events of the store ---- */

static void on_history(void *ctx, const struct store_event *ev)
{
    struct apiserver *a = ctx;
    cache_add_history(&a->cache, ev);
}

/* Returns the memory of the snapshot to the kernel: the snapshot was
 * freed, but the C library would keep its pages. */
static void trim(void *ctx)
{
    malloc_trim(0);
}

static void on_event(void *ctx, const struct store_event *ev)
{
    struct apiserver *a = ctx;
    cache_apply(&a->cache, ev);
}

static void on_snapshot(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    struct apiserver *a = ctx;
    bool first = !a->cache.ready;
    if (first || cache_resync(&a->cache, items, n, revision, on_event, a) < 0) {
        cache_reload(&a->cache, items, n, revision, definitions_load, a);
    }
    a->lost = false;
    definitions_settle(a);
    if (n >= TRIM_OBJECTS) {
        loop_task_queue(&a->trim);
    }
    log_info("registry loaded", "objects=%zu revision=%" PRIu64, n, revision);
    if (first && a->cfg.ready) {
        a->cfg.ready(a->cfg.ctx);
    }
}

static void on_lost(void *ctx, const char *reason)
{
    struct apiserver *a = ctx;
    a->lost = true;
    free(a->reason);
    a->reason = xstrdup(reason);
    log_error("the store is not available", "reason=\"%s\"", reason);
}

static void on_resumed(void *ctx)
{
    struct apiserver *a = ctx;
    a->lost = false;
    log_info("the store is available again", "revision=%" PRIu64, a->cache.revision);
    definitions_settle(a);
}

static const struct store_watcher watcher = {.snapshot = on_snapshot,
                                             .history = on_history,
                                             .event = on_event,
                                             .lost = on_lost,
                                             .resumed = on_resumed};

/* ---- creation and end ---- */

struct apiserver *apiserver_new(struct loop *l, struct store *s, const struct apiserver_config *cfg)
{
    struct apiserver *a = NEW(struct apiserver);
    a->loop = l;
    a->store = s;
    a->cfg = cfg ? *cfg : (struct apiserver_config){0};
    a->cors = cors_new(a->cfg.cors_origins);
    struct scc_blocks blocks;
    scc_blocks_defaults(&blocks);
    blocks = a->cfg.blocks ? *a->cfg.blocks : blocks;
    cache_init(&a->cache, a->cfg.without_group,
               a->cfg.event_window ? a->cfg.event_window : DEFAULT_WINDOW,
               a->cfg.event_window_bytes ? a->cfg.event_window_bytes : DEFAULT_WINDOW_BYTES);
    watch_init(a);
    stream_init(a);
    rollout_log_init(a);
    a->usage = usage_new(a);
    proxy_init(a);
    definitions_init(a);
    list_init(&a->writes);
    loop_task_init(&a->trim, l, trim, a);
    a->metrics = metrics_new();
    a->security = security_new(&a->cache, a->cfg.security);
    a->inactivity = oauth_inactivity_new(a);
    a->flow = flow_new(a);
    a->probe = probe_new(a);
    health_init(a);
    a->openapi = openapi_new();
    a->alloc = alloc_new(a, a->cfg.services);
    a->admission = admission_new(a);
    a->webhooks = webhooks_new(a);
    a->sccs = scc_set_new(&a->cache);
    a->uids = uids_new(a, &blocks);
    a->quotas = quotas_new(a);
    a->project_counts = project_counts_new(a);
    a->addresses = addresses_new(&a->cache, a->cfg.addresses);
    store_start(s, &watcher, a);
    return a;
}

/* The Status for errors that the HTTP server answers by itself. */
static const char *error_status(struct http_exchange *x, int status, const char *why,
                                struct strbuf *out)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {400, "BadRequest"},
        {408, "Timeout"},
        {413, "RequestEntityTooLarge"},
        {503, "ServiceUnavailable"},
    };
    char audit_id[AUDIT_ID_MAX + 1];
    audit_make_id(x, audit_id);
    respond_headers(x, audit_id, false);
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "kind", "Status");
    json_set_string(o, "apiVersion", "v1");
    json_set(o, "metadata", json_object());
    json_set_string(o, "status", "Failure");
    json_set_string(o, "message", why);
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (reasons[i].status == status) {
            json_set_string(o, "reason", reasons[i].reason);
        }
    }
    json_set(o, "details", json_object());
    json_set_int(o, "code", status);
    json_write(o, 0, out);
    strbuf_addc(out, '\n');
    return "application/json";
}

void apiserver_attach(struct apiserver *a, struct http_server *h)
{
    a->http = h;
    if (h) {
        http_server_set_errors(h, error_status);
    }
}

void apiserver_unready(struct apiserver *a)
{
    a->unready = true;
}

void apiserver_shutdown(struct apiserver *a)
{
    a->stopping = true;
    watch_end_all(a);
    stream_end_all(a);
    rollout_log_end_all(a);
    usage_end(a->usage);
    proxy_end_all(a);
    webhooks_end_all(a->webhooks);
}

void apiserver_kubelets_done(struct apiserver_kubelets *k)
{
    free((char *) k->ca);
    free((char *) k->cert);
    free((char *) k->key);
    *k = (struct apiserver_kubelets){0};
}

static void kubelets_free(struct apiserver *a)
{
    if (a->kubelets) {
        apiserver_kubelets_done(a->kubelets);
        free(TAKE(a->kubelets));
    }
}

void apiserver_set_kubelets(struct apiserver *a, const struct apiserver_kubelets *k)
{
    kubelets_free(a);
    a->kubelets = NEW(struct apiserver_kubelets);
    *a->kubelets = (struct apiserver_kubelets){xstrdup(k->ca), xstrdup(k->cert), xstrdup(k->key)};
}

struct apiserver *apiserver_free(struct apiserver *a)
{
    if (a) {
        stream_end_all(a);
        rollout_log_end_all(a);
        usage_free(a->usage);
        proxy_end_all(a);
        webhooks_end_all(a->webhooks);
        kubelets_free(a);
        flow_drop_all(a->flow);
        watch_drop_all(a);
        write_drop_all(a);
        webhooks_free(a->webhooks);
        probe_free(a->probe);
        flow_free(a->flow);
        free(a->checks);
        oauth_inactivity_free(a->inactivity);
        oauth_server_free(a->oauth);
        cors_free(a->cors);
        loop_timer_free(a->watch_timer);
        loop_timer_free(a->stream_timer);
        loop_timer_free(a->proxy_timer);
        loop_timer_free(a->settle_timer);
        cache_done(&a->cache);
        loop_task_cancel(&a->trim);
        metrics_free(a->metrics);
        free(a->reason);
        openapi_free(a->openapi);
        alloc_free(a->alloc);
        addresses_free(a->addresses);
        admission_free(a->admission);
        parsed_done(&a->parsed);
        scc_set_free(a->sccs);
        uids_free(a->uids);
        quotas_free(a->quotas);
        project_counts_free(a->project_counts);
        security_free(a->security);
        free(a);
    }
    return NULL;
}

int apiserver_set_oauth(struct apiserver *a, const struct oauth_settings *cfg, struct err *e)
{
    return a->oauth ? oauth_server_reload(a->oauth, cfg, e)
                    : oauth_server_new(a, cfg, &a->oauth, e);
}

size_t apiserver_proxy_cas(const struct apiserver *a, const char ***ret)
{
    if (!a->oauth) {
        *ret = xcalloc(1, sizeof **ret);
        return 0;
    }
    return oauth_server_proxy_cas(a->oauth, ret);
}

bool apiserver_ready(const struct apiserver *a)
{
    return a->cache.ready;
}

uint64_t apiserver_revision(const struct apiserver *a)
{
    return a->cache.revision;
}

/* ---- requests ---- */

static void dispatch_allowed(struct request *q, struct outcome *outcome)
{
    static request_fn *const handlers[VERB_MAX] = {
        [VERB_GET] = handle_get,       [VERB_LIST] = handle_list,
        [VERB_WATCH] = handle_watch,   [VERB_CREATE] = handle_create,
        [VERB_UPDATE] = handle_update, [VERB_PATCH] = handle_patch,
        [VERB_DELETE] = handle_delete, [VERB_DELETE_COLLECTION] = handle_delete_collection,
    };
    const struct api_subresource *part = api_kind_subresource(q->kind, q->subresource);
    if (proxy_is_asked(q)) {
        handle_proxy(q, outcome);
    } else if (stream_is_asked(q)) {
        handle_stream(q, outcome);
    } else if (usage_is_asked(q)) {
        handle_usage(q, outcome);
    } else if (volume_binding_is_asked(q)) {
        handle_volume_binding(q, outcome);
    } else if (binding_is_asked(q)) {
        handle_binding(q, outcome);
    } else if (eviction_is_asked(q)) {
        newest_then(q, handle_eviction, outcome);
    } else if (rollout_log_is_asked(q)) {
        newest_then(q, handle_rollout_log, outcome);
    } else if (rollouts_are_asked(q)) {
        newest_then(q, handle_rollouts, outcome);
    } else if (self_is_asked(q)) {
        newest_then(q, handle_self, outcome);
    } else if (applied_quota_is_asked(q)) {
        newest_then(q, handle_applied_quota, outcome);
    } else if (policies_are_asked(q)) {
        newest_then(q, handle_policies, outcome);
    } else if (mapping_is_asked(q)) {
        newest_then(q, handle_mapping, outcome);
    } else if (project_request_is_asked(q)) {
        newest_then(q, handle_project_request, outcome);
    } else if (q->kind->create_only || (part && part->kind && q->verb == VERB_CREATE)) {
        handle_review(q, outcome);
    } else {
        newest_then(q, handlers[q->verb], outcome);
    }
}

static void dispatch(struct request *q, struct outcome *outcome)
{
    if (integrity_check_readable(q, outcome) == 0 && effect_check_write(q, outcome) == 0) {
        webhooks_then(q, dispatch_allowed, outcome);
    }
}

/* Whether the response is in the requested form for a list, or for an object.  The events of a
 * watch are in either. */
static bool is_form_of_verb(const struct request *q)
{
    bool list = q->verb == VERB_LIST || q->verb == VERB_DELETE_COLLECTION;
    return q->accept.form != FORM_PARTIAL || q->verb == VERB_WATCH || q->accept.list == list;
}

/* Whether the query asks for something that exists; else the outcome is filled. */
static bool is_query_valid(const struct request *q, struct outcome *outcome)
{
    const char *timeout = http_query(q->x, "timeoutSeconds");
    const char *include = http_query(q->x, "includeObject");
    uint64_t seconds;
    if (timeout && *timeout && str_to_u64(timeout, INT32_MAX, &seconds) < 0) {
        outcome_error(outcome, 400, "BadRequest", "timeoutSeconds: Invalid value: \"%.40s\"",
                      timeout);
        return false;
    }
    if (q->accept.form == FORM_TABLE && include && *include && !streq(include, "None") &&
        !streq(include, "Metadata") && !streq(include, "Object")) {
        outcome_error(outcome, 400, "BadRequest", "unrecognized includeObject value: \"%.40s\"",
                      include);
        return false;
    }
    return true;
}

static void handle(struct request *q, struct outcome *outcome)
{
    const struct apiserver *a = q->server;
    struct err e = {0};
    if (handle_issuer(q, outcome) || handle_path(q, outcome)) {
        return;
    }
    int r = request_resolve(q, &e);
    if (r == -EOPNOTSUPP) {
        outcome_error(outcome, 405, "MethodNotAllowed", "%s", e.text);
    } else if (r < 0) {
        outcome_error(outcome, 404, "NotFound", "%s", e.text);
    } else if (!proxy_is_passed(q) && request_accept(q) < 0) {
        outcome_error(outcome, 406, "NotAcceptable",
                      "only the following media types are accepted: application/json, "
                      "application/yaml%s",
                      q->kind->protobuf ? ", " API_PROTO_TYPE : "");
    } else if (!proxy_is_passed(q) && !is_form_of_verb(q)) {
        outcome_error(outcome, 406, "NotAcceptable",
                      q->accept.list ? "you requested PartialObjectMetadataList, but the requested "
                                       "object is not a list"
                                     : "you requested PartialObjectMetadata, but the requested "
                                       "object is a list");
    } else if (!proxy_is_passed(q) && !is_query_valid(q, outcome)) {
        return;
    } else if (a->stopping || !a->cache.ready) {
        outcome_error(outcome, 503, "ServiceUnavailable",
                      a->stopping ? "the server is shutting down" : "the registry is being loaded");
    } else {
        if (q->kind->warning) {
            request_warn(q, "-", q->kind->warning);
        }
        dispatch(q, outcome);
    }
}

void request_run(struct request *q)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    handle(q, &outcome);
    request_answer(q, &outcome);
}

/* The entry point of every request: authentication and authorization come
 * first; then the request waits for its turn. */
void apiserver_handle(void *apiserver, struct http_exchange *x)
{
    struct apiserver *a = apiserver;
    if (oauth_owns_path(http_path(x))) {
        oauth_handle(a->oauth, x);
        return;
    }
    if (cors_handle(a->cors, x)) {
        return;
    }
    struct request *q = NEW(struct request);
    *q = (struct request){
        .server = a, .x = x, .start_ns = time_mono_ns(), .verb = VERB_OTHER, .subresource = ""};
    (void) request_accept(q); /* For answers that come before the kind is known. */
    CLEANUP(outcome_done) struct outcome outcome = {0};
    if (filter_request(q, &outcome) < 0) {
        request_answer(q, &outcome);
        return;
    }
    flow_admit(q);
}
