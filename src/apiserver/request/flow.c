/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: each request waits for its turn (priority.c) before it is executed.
 *
 * A write keeps its seats until it is answered, a large response until it has been sent
 * to the client; a watch returns them once it has begun.  Health checks and requests of
 * the cluster's administrators do not wait. */
#include "apiserver/request/flow.h"

#include "apiserver/request/respond.h"
#include "base/timeutil.h"

#include <stdio.h>

#define DEFAULT_SEATS 400
#define DEFAULT_QUEUE 1024
#define FLOW_PART 4 /* Part of the queue that one flow may fill, as a divisor. */
#define DEFAULT_WAIT_MS 15000
#define LIST_ITEMS_A_SEAT 100
#define MAX_COST 40
#define LARGE_ANSWER ((size_t) 64 << 10)

struct flow_control {
    struct apiserver *server;
    struct priority *queues;
    struct loop_task task; /* Starts a new round. */
    struct loop_timer *timer;
    uint64_t exempt;
};

struct flow_ticket {
    struct priority_ticket ticket;
    struct flow_control *control;
    struct request *q; /* NULL: answered; the ticket stays until the response has been sent. */
};

static struct flow_ticket *mine(struct priority_ticket *t)
{
    return CONTAINER_OF(t, struct flow_ticket, ticket);
}

/* ---- classification ---- */

/* Without authentication every user is the administrator; then client
 * address and user agent distinguish the flows. */
static uint32_t trusted_flow(const struct request *q, enum priority_level *ret_level)
{
    const char *peer = http_peer(q->x), *agent = http_header(q->x, "user-agent");
    char text[256];
    agent = agent ? agent : "";
    *ret_level = str_has_prefix(agent, "tenet-master/") || str_has_prefix(agent, "tenet-node/")
                     ? PRIORITY_SYSTEM
                     : PRIORITY_DEFAULT;
    snprintf(text, sizeof text, "%.*s %s", (int) strcspn(peer, ":"), peer, agent);
    return hash_string(text);
}

static bool is_health(const char *path)
{
    return str_has_prefix(path, "/healthz") || str_has_prefix(path, "/livez") ||
           str_has_prefix(path, "/readyz");
}

/* Finds the level and the flow of the request, from user and resource;
 * false: the request is exempt. */
static bool classify(const struct request *q, enum priority_level *ret_level, uint32_t *ret_flow)
{
    const struct user_info *u = q->user;
    if (is_health(q->attributes.path)) {
        return false;
    }
    if (!q->server->cfg.security) {
        *ret_flow = trusted_flow(q, ret_level);
        return true;
    }
    enum user_class class = user_class(u);
    CLEANUP_FREE char *text = xasprintf("%s %s", u->name, q->attributes.namespace);
    *ret_flow = hash_string(class == USER_NODE || class == USER_SYSTEM ? u->name : text);
    *ret_level = class == USER_NODE || class == USER_SYSTEM ? PRIORITY_SYSTEM
                 : class == USER_UNKNOWN                    ? PRIORITY_LOW
                                                            : PRIORITY_DEFAULT;
    return class != USER_MASTER;
}

unsigned flow_cost(const struct request *q)
{
    const struct attributes *at = &q->attributes;
    bool watch = streq(at->verb, "watch"), list = streq(at->verb, "list");
    const char *version = http_query(q->x, "resourceVersion"), *limit = http_query(q->x, "limit");
    uint64_t max = 0;
    if (!at->is_resource || *at->name || (!watch && !list) ||
        (watch && version && *version && !streq(version, "0"))) {
        return 1;
    }
    const struct api_kind *k =
        api_registry_find(&q->server->cache.registry, at->group, at->version, at->resource);
    const struct cache_kind *ck = k ? cache_find(&q->server->cache, k) : NULL;
    uint64_t n = ck ? ck->objects.n : 0;
    if (limit && str_to_u64(limit, INT64_MAX, &max) == 0 && max) {
        n = MIN(n, max);
    }
    return (unsigned) MIN((uint64_t) MAX_COST, 1 + n / LIST_ITEMS_A_SEAT);
}

/* ---- tickets ---- */

static void release(struct flow_ticket *t)
{
    struct flow_control *f = t->control;
    priority_leave(f->queues, &t->ticket);
    free(t);
    if (priority_any_waiting(f->queues)) {
        loop_task_queue(&f->task);
    }
}

void flow_release(struct request *q)
{
    if (q->ticket) {
        release(TAKE(q->ticket));
    }
}

static void answer_left(void *ctx)
{
    release(ctx);
}

void flow_answer(struct request *q, size_t size)
{
    if (q->ticket && size >= LARGE_ANSWER) {
        struct flow_ticket *t = TAKE(q->ticket);
        t->q = NULL;
        http_on_finished(q->x, answer_left, t);
    }
}

static void refuse(struct flow_ticket *t)
{
    respond_error(t->q, 429, "TooManyRequests", "too many requests, please try again later");
}

/* The client has closed the connection while its request waits. */
static void client_gone(void *ctx)
{
    struct flow_ticket *t = ctx;
    respond_error(t->q, 499, "ClientClosedRequest", "the client went away");
}

/* ---- turns ---- */

static void arm(struct flow_control *f)
{
    uint64_t at = priority_deadline_ms(f->queues), now = loop_now_ms(f->server->loop);
    if (at && !loop_timer_armed(f->timer)) {
        loop_timer_arm(f->timer, at > now ? at - now : 0);
    }
}

static void expired(void *ctx)
{
    struct flow_control *f = ctx;
    struct priority_ticket *t;
    while ((t = priority_expire(f->queues, loop_now_ms(f->server->loop)))) {
        refuse(mine(t));
    }
    arm(f);
}

static void serve(struct flow_control *f)
{
    struct priority_ticket *t;
    bool any = false;
    while ((t = priority_next(f->queues, loop_now_ms(f->server->loop)))) {
        struct request *q = mine(t)->q;
        any = true;
        http_on_gone(q->x, NULL, NULL);
        request_run(q);
    }
    if (any || priority_wants_round(f->queues)) {
        loop_task_queue(&f->task);
    }
    arm(f);
}

static void new_round(void *ctx)
{
    struct flow_control *f = ctx;
    priority_new_round(f->queues);
    serve(f);
}

void flow_admit(struct request *q)
{
    struct flow_control *f = q->server->flow;
    enum priority_level level = PRIORITY_DEFAULT;
    struct priority_ticket *evicted;
    uint32_t flow = 0;
    if (!classify(q, &level, &flow)) {
        f->exempt++;
        request_run(q);
        return;
    }
    struct flow_ticket *t = q->ticket = NEW(struct flow_ticket);
    t->control = f;
    t->q = q;
    int r = priority_enter(f->queues, &t->ticket, level, flow, flow_cost(q),
                           loop_now_ms(f->server->loop), &evicted);
    if (evicted) {
        refuse(mine(evicted));
    }
    if (r < 0) {
        refuse(t);
        return;
    }
    http_on_gone(q->x, client_gone, t);
    serve(f);
}

/* ---- creation and end ---- */

struct flow_control *flow_new(struct apiserver *a)
{
    struct flow_control *f = NEW(struct flow_control);
    const struct apiserver_config *c = &a->cfg;
    unsigned queue = c->max_queued ? c->max_queued : DEFAULT_QUEUE;
    f->server = a;
    f->queues = priority_new(&(struct priority_config){
        .seats = c->max_inflight ? c->max_inflight : DEFAULT_SEATS,
        .max_waiting = queue,
        .max_flow = MAX(1u, queue / FLOW_PART),
        .max_wait_ms = c->queue_wait_ms ? c->queue_wait_ms : DEFAULT_WAIT_MS});
    loop_task_init(&f->task, a->loop, new_round, f);
    f->timer = loop_timer_new(a->loop, expired, f);
    return f;
}

void flow_drop_all(struct flow_control *f)
{
    struct priority_ticket *t;
    while ((t = priority_any_waiting(f->queues))) {
        refuse(mine(t));
    }
    loop_task_cancel(&f->task);
    loop_timer_disarm(f->timer);
}

struct flow_control *flow_free(struct flow_control *f)
{
    if (f) {
        loop_task_cancel(&f->task);
        loop_timer_free(f->timer);
        priority_free(f->queues);
        free(f);
    }
    return NULL;
}

struct priority_stats flow_stats(const struct flow_control *f, enum priority_level level)
{
    return priority_stats(f->queues, level);
}

uint64_t flow_exempt(const struct flow_control *f)
{
    return f->exempt;
}
