/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leader.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/timeutil.h"
#include "controller/obj.h"

#include <stdio.h>

LOG_MODULE("leader");

#define API_VERSION "coordination.k8s.io/v1"
#define DEFAULT_DURATION_S 15
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000
#define RESIGN_MS 2000

struct leader {
    struct loop *loop;
    struct api_client *client;
    struct leader_config cfg;
    char *ns, *name, *who;
    uint64_t duration_ms;
    struct informer *informer;
    struct json
        /* The newest known state, from the watch or from a response; NULL: the
         * Lease does not exist. */
        *lease;
    char *seen_version;
    uint64_t seen_ms; /* Time at which 'seen_version' was received. */
    char *identity;   /* The identity of the current campaign or term. */
    bool leading;
    uint64_t renewed_ms; /* Time at which the last successful renewal was sent. */
    uint64_t sent_ms;    /* Time at which the request under way was sent. */
    char *holder;        /* The holder last reported to 'follows'. */
    struct api_call *call;
    struct loop_timer *act;   /* The next attempt to take or to renew. */
    struct loop_timer *limit; /* The end of a term that was not renewed, or of resigning. */
    struct backoff backoff;
    bool namespace_made;
    bool resigned;
    loop_fn *resigned_fn; /* NULL: it was called. */
    void *resigned_ctx;
};

static uint64_t renew_ms(const struct leader *e)
{
    return e->duration_ms / 7;
}
static uint64_t term_ms(const struct leader *e)
{
    return e->duration_ms / 3 * 2;
}

static void new_identity(struct leader *e)
{
    char number[2 * 8 + 1];
    random_hex(number, 8);
    free(e->identity);
    e->identity = xasprintf("%s_%s", e->who, number);
}

static const char *holder_of(const struct json *lease)
{
    return json_get_text(json_get(lease, "spec"), "holderIdentity");
}

static const char *version_of(const struct json *lease)
{
    return json_get_text(json_get(lease, "metadata"), "resourceVersion");
}

static bool is_ours(const struct leader *e)
{
    return e->lease && streq(holder_of(e->lease), e->identity);
}

/* The remaining time of the current holder, measured from when this process saw the Lease. */
static uint64_t left_ms(const struct leader *e)
{
    /* The Lease names this process although it does not lead: the response to
     * taking the Lease was lost. */
    if (!e->lease || !*holder_of(e->lease) || is_ours(e)) {
        return 0;
    }
    int64_t s = json_get_int_or(json_path(e->lease, "spec", "leaseDurationSeconds", NULL),
                                (int64_t) (e->duration_ms / 1000));
    uint64_t end = e->seen_ms + (uint64_t) MAX(s, (int64_t) 1) * 1000, now = time_mono_ms();
    return end > now ? end - now : 0;
}

static void report_holder(struct leader *e)
{
    const char *holder = holder_of(e->lease);
    if (e->leading || !*holder || is_ours(e) || streq_null(e->holder, holder)) {
        return;
    }
    free(e->holder);
    e->holder = xstrdup(holder);
    log_info("following", "lease=%s/%s leader=%s", e->ns, e->name, holder);
    if (e->cfg.follows) {
        e->cfg.follows(e->cfg.ctx, e->holder);
    }
}

static void failed(struct leader *e)
{
    (void) backoff_fail(&e->backoff, loop_now_ms(e->loop), (uint32_t) time_mono_ns());
}

/* Schedules the next check, in case nothing happens before. */
static void plan(struct leader *e)
{
    if (e->call || e->resigned) {
        return;
    }
    uint64_t ms = e->leading ? renew_ms(e) : left_ms(e);
    uint64_t pause = backoff_left_ms(&e->backoff, loop_now_ms(e->loop));
    if (pause) {
        ms = e->leading ? MIN(pause, ms) : MAX(pause, ms);
    }
    loop_timer_arm(e->act, ms);
}

/* Takes over 'lease' as the newest state; the same version received again is not a renewal. */
static void lease_set(struct leader *e, struct json *lease)
{
    json_free(e->lease);
    e->lease = lease;
    if (!streq_null(e->seen_version, version_of(lease))) {
        free(e->seen_version);
        e->seen_version = xstrdup(version_of(lease));
        e->seen_ms = time_mono_ms();
    }
    report_holder(e);
}

static void depose(struct leader *e, const char *why)
{
    e->leading = false;
    loop_timer_disarm(e->limit);
    log_warn("not leading any more", "lease=%s/%s reason=\"%s\"", e->ns, e->name, why);
    new_identity(e);
    e->cfg.deposed(e->cfg.ctx);
}

static void elect(struct leader *e)
{
    e->leading = true;
    free(TAKE(e->holder));
    log_info("leading", "lease=%s/%s identity=%s", e->ns, e->name, e->identity);
    CLEANUP_FREE char *fence = xasprintf("%s/%s %s", e->ns, e->name, e->identity);
    e->cfg.elected(e->cfg.ctx, fence);
}

/* ---- requests ---- */

static void give_up(struct leader *e);

static void namespace_done(void *ctx, int error, const char *text, struct json *obj)
{
    struct leader *e = ctx;
    e->call = NULL;
    e->namespace_made = error == 0 || error == -EEXIST;
    if (e->namespace_made) {
        backoff_reset(&e->backoff);
    } else {
        failed(e);
        log_warn("namespace of the lease not made", "namespace=%s error=\"%s\"", e->ns, text);
    }
    if (e->resigned) {
        give_up(e);
    }
    plan(e);
}

static void make_namespace(struct leader *e)
{
    CLEANUP(json_free) struct json *o = obj_new("v1", "Namespace", NULL, e->ns);
    CLEANUP_FREE char *path = api_path("v1", "namespaces", NULL, NULL, NULL);
    e->call = api_request(e->client, "POST", path, NULL, o, namespace_done, e);
}

/* Records the current Lease 'obj'; NULL: it was deleted. */
static void lease_known(struct leader *e, const struct json *obj)
{
    if (obj) {
        lease_set(e, json_clone(obj));
    } else {
        e->lease = json_free(e->lease);
        e->namespace_made = false; /* The namespace may have been deleted with it. */
        free(TAKE(e->seen_version));
    }
    if (e->leading && !is_ours(e) && !e->resigned) {
        api_call_cancel(TAKE(e->call));
        depose(e, obj ? "another process took the lease" : "the lease was deleted");
    }
}

static void lease_read(void *ctx, int error, const char *text, struct json *obj)
{
    struct leader *e = ctx;
    e->call = NULL;
    if (error == 0 || error == -ENOENT) {
        lease_known(e, obj);
    }
    if (e->resigned) {
        give_up(e);
    }
    plan(e);
}

static void read_lease(struct leader *e)
{
    CLEANUP_FREE char *path = api_path(API_VERSION, "leases", e->ns, e->name, NULL);
    e->call = api_request(e->client, "GET", path, NULL, NULL, lease_read, e);
}

static void lease_refused(struct leader *e, int error, const char *text)
{
    bool usual = error == -ESTALE || error == -EEXIST; /* A conflict: another process was faster. */
    static struct log_limit limit = {.burst = 5};
    if (error == -ENOENT && !e->lease && !e->namespace_made) {
        make_namespace(e);
        return;
    }
    failed(e);
    log_limited(&limit, usual ? LOG_DEBUG : LOG_WARN, "lease not written",
                "lease=%s/%s error=\"%s\"", e->ns, e->name, text);
    if (usual || error == -ENOENT || e->resigned) {
        read_lease(e);
    }
}

static void lease_sent(void *ctx, int error, const char *text, struct json *obj)
{
    struct leader *e = ctx;
    e->call = NULL;
    if (error < 0) {
        lease_refused(e, error, text);
        plan(e);
        return;
    }
    backoff_reset(&e->backoff);
    lease_set(e, json_clone(obj));
    e->renewed_ms = e->sent_ms;
    if (e->resigned) {
        give_up(e);
        return;
    }
    uint64_t limit = e->renewed_ms + term_ms(e), now = time_mono_ms();
    loop_timer_arm(e->limit, limit > now ? limit - now : 0);
    if (!e->leading) {
        elect(e);
    }
    plan(e);
}

static void set_time(struct json *spec, const char *key)
{
    char now[TIME_TEXT_SIZE];
    time_format_micro(time_wall_ms(), now);
    json_set_string(spec, key, now);
}

/* Takes the lease, or renews it. */
static void send_lease(struct leader *e)
{
    CLEANUP(json_free)
    struct json *o =
        e->lease ? json_clone(e->lease) : obj_new(API_VERSION, "Lease", e->ns, e->name);
    struct json *spec = json_ensure_object(o, "spec");
    if (!e->lease) {
        json_set_int(spec, "leaseTransitions", 0);
    } else if (!is_ours(e)) {
        int64_t n = json_get_int_or(json_get(spec, "leaseTransitions"), 0);
        json_set_int(spec, "leaseTransitions", n + 1);
    }
    if (!e->leading) {
        set_time(spec, "acquireTime");
    }
    set_time(spec, "renewTime");
    json_set_string(spec, "holderIdentity", e->identity);
    json_set_int(spec, "leaseDurationSeconds", (int64_t) e->duration_ms / 1000);
    CLEANUP_FREE char *path =
        api_path(API_VERSION, "leases", e->ns, e->lease ? e->name : NULL, NULL);
    e->sent_ms = time_mono_ms();
    e->call = api_request(e->client, e->lease ? "PUT" : "POST", path, NULL, o, lease_sent, e);
}

static void act(void *ctx)
{
    struct leader *e = ctx;
    if (e->call || e->resigned || !informer_synced(e->informer)) {
        return;
    }
    if (e->leading || left_ms(e) == 0) {
        send_lease(e);
    } else {
        plan(e);
    }
}

/* ---- events of the Lease ---- */

static bool is_the_lease(const struct leader *e, const struct json *obj)
{
    return streq(obj_name(obj), e->name) && streq(obj_namespace(obj), e->ns);
}

static void lease_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct leader *e = ctx;
    uint64_t new = 0, known = 0;
    if (!is_the_lease(e, obj)) {
        return;
    }
    /* The response to this process's own request may arrive before the watch
     * reports earlier states. */
    if (e->lease && str_to_u64(version_of(obj), UINT64_MAX, &new) == 0 &&
        str_to_u64(version_of(e->lease), UINT64_MAX, &known) == 0 && new < known) {
        return;
    }
    lease_known(e, obj);
    if (!e->leading) {
        backoff_reset(&e->backoff);
        plan(e);
    }
}

static void lease_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct leader *e = ctx;
    if (is_the_lease(e, obj)) {
        lease_known(e, NULL);
        plan(e);
    }
}

static void synced(void *ctx)
{
    plan(ctx);
}

/* ---- resigning ---- */

static void resign_end(struct leader *e)
{
    loop_fn *fn = TAKE(e->resigned_fn);
    loop_timer_disarm(e->limit);
    if (fn) {
        fn(e->resigned_ctx);
    }
}

static void given_up(void *ctx, int error, const char *text, struct json *obj)
{
    struct leader *e = ctx;
    e->call = NULL;
    if (error < 0) {
        log_warn("lease not released: other processes wait until it expires",
                 "lease=%s/%s error=\"%s\"", e->ns, e->name, text);
    } else {
        log_info("lease released", "lease=%s/%s", e->ns, e->name);
    }
    loop_timer_arm(e->limit, 0);
}

static void give_up(struct leader *e)
{
    if (e->call || !e->resigned_fn) {
        return;
    }
    if (!is_ours(e)) {
        loop_timer_arm(e->limit, 0);
        return;
    }
    CLEANUP(json_free) struct json *o = json_clone(e->lease);
    struct json *spec = json_ensure_object(o, "spec");
    set_time(spec, "renewTime");
    json_set_string(spec, "holderIdentity", "");
    json_set_int(spec, "leaseDurationSeconds", 1);
    CLEANUP_FREE char *path = api_path(API_VERSION, "leases", e->ns, e->name, NULL);
    e->call = api_request(e->client, "PUT", path, NULL, o, given_up, e);
}

void leader_resign(struct leader *e, loop_fn *done, void *ctx)
{
    e->resigned = true;
    e->resigned_fn = done;
    e->resigned_ctx = ctx;
    loop_timer_disarm(e->act);
    loop_timer_arm(e->limit, RESIGN_MS);
    give_up(e); /* After the response to the request under way, if there is one. */
}

/* ---- creation and end ---- */

static void limit_over(void *ctx)
{
    struct leader *e = ctx;
    if (e->resigned) {
        resign_end(e);
    } else if (e->leading) {
        api_call_cancel(TAKE(e->call));
        depose(e, "the lease could not be renewed");
        plan(e);
    }
}

struct leader *leader_new(struct loop *l, struct api_client *client,
                          const struct leader_config *cfg)
{
    static const struct informer_ops ops = {
        .changed = lease_changed, .deleted = lease_deleted, .synced = synced};
    struct leader *e = NEW(struct leader);
    e->loop = l;
    e->backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    e->client = client;
    e->cfg = *cfg;
    e->ns = xstrdup(cfg->ns);
    e->name = xstrdup(cfg->name);
    e->who = xstrdup(cfg->who);
    e->duration_ms = (uint64_t) (cfg->duration_s ? cfg->duration_s : DEFAULT_DURATION_S) * 1000;
    e->act = loop_timer_new(l, act, e);
    e->limit = loop_timer_new(l, limit_over, e);
    new_identity(e);
    CLEANUP_FREE char *field = xasprintf("metadata.name=%s", cfg->name);
    e->informer = informer_new_in(client, l, cfg->ns, API_VERSION, "leases", field, &ops, e);
    return e;
}

bool leader_is_leading(const struct leader *e)
{
    return e->leading;
}

struct leader *leader_free(struct leader *e)
{
    if (e) {
        informer_free(e->informer);
        api_call_cancel(e->call);
        loop_timer_free(e->act);
        loop_timer_free(e->limit);
        json_free(e->lease);
        free(e->seen_version);
        free(e->identity);
        free(e->holder);
        free(e->ns);
        free(e->name);
        free(e->who);
        free(e);
    }
    return NULL;
}
