/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/rollout_log.h"

#include "api/obj.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/respond.h"
#include "apiserver/stream/options.h"
#include "apiserver/stream/stream.h"
#include "base/timeutil.h"
#include "workload/pods.h"
#include "workload/rollout_set.h"

#include <inttypes.h>

#define GROUP "apps.openshift.io"
#define WAIT_MS 60000
#define LOOK_MS 100 /* Between two looks at the cache. */
#define MAX_WAITS 200

/* A request that waits for its rollout. */
struct log_wait {
    struct list node;
    struct request *q;
    struct loop_timer *timer;
    uint64_t end_ms;
};

bool rollout_log_is_asked(const struct request *q)
{
    return streq(q->kind->group, GROUP) && streq(q->kind->plural, "deploymentconfigs") &&
           streq(q->subresource, "log");
}

void rollout_log_init(struct apiserver *a)
{
    list_init(&a->log_waits);
}

/* ---- objects ---- */

static const struct cache_kind *core(const struct request *q, const char *plural)
{
    return cache_find(&q->server->cache, api_kind_find("", "v1", plural));
}

static struct json *find(const struct request *q, const struct cache_kind *ck, const char *name)
{
    CLEANUP_FREE char *key = cache_key(q->namespace, name);
    const struct object *o = keyset_get(&ck->objects, key);
    return o ? object_parse_as(o, ck->kind) : NULL;
}

/* 0: another's pod; the best one is ready. */
static int rank(const struct json *pod, const struct json *rc)
{
    const struct json *ref = obj_controller(pod);
    bool own = ref && streq(json_get_text(ref, "uid"), obj_uid(rc));
    return !own                                      ? 0
           : !*workload_pod_node(pod)                ? 1
           : !workload_pod_has_phase(pod, "Running") ? 2
           : !workload_pod_is_ready(pod)             ? 3
                                                     : 4;
}

/* A pod of the rollout whose log is shown; NULL: there is none. */
static struct json *find_application_pod(const struct request *q, const struct json *rc)
{
    struct cache_walk walk;
    struct object *o;
    struct json *best = NULL;
    const struct cache_kind *ck = core(q, "pods");
    struct cache_range range = {.namespace = q->namespace};
    cache_walk_init(&walk, ck, &range, q->server->cache.revision);
    while ((o = cache_walk_next(&walk))) {
        struct json *pod = object_parse_as(o, ck->kind);
        if (rank(pod, rc) > (best ? rank(best, rc) : 0)) {
            json_free(best);
            best = TAKE(pod);
        }
        json_free(pod);
    }
    cache_walk_done(&walk);
    return best;
}

/* ---- which rollout ---- */

/* The number of the rollout that is asked for; 0: the outcome is filled. */
static int64_t find_version(const struct request *q, const struct json *config,
                            struct outcome *outcome)
{
    int64_t latest = json_get_int_or(json_path(config, "status", "latestVersion", NULL), 0);
    const char *text = http_query(q->x, "version");
    int64_t version = 0;
    if (latest == 0) {
        outcome_error(outcome, 400, "BadRequest",
                      "no deployment exists for deploymentConfig \"%s\"", q->name);
        return 0;
    }
    if (text && *text) {
        if (str_to_i64(text, 1, latest, &version) < 0) {
            outcome_error(outcome, 400, "BadRequest",
                          "invalid version for deploymentConfig \"%s\": %.20s", q->name, text);
            return 0;
        }
        return version;
    }
    if (!request_flag(q, "previous")) {
        return latest;
    }
    if (latest == 1) {
        outcome_error(outcome, 400, "BadRequest",
                      "no previous deployment exists for deploymentConfig \"%s\"", q->name);
    }
    return latest - 1;
}

/* ---- the answer ---- */

static void answer_pod(struct request *q, const struct json *pod, const char *name,
                       struct outcome *outcome)
{
    if (pod) {
        stream_rollout_log(q, pod, outcome);
    } else {
        outcome_not_found(outcome, api_kind_find("", "v1", "pods"), name);
    }
}

/* Answers the request when that is possible; -EAGAIN: it has to wait, and the outcome says what for
 * if it has waited for too long ('last'). */
static int answer_set(struct request *q, const struct json *rc, bool last, struct outcome *outcome)
{
    enum rollout_phase phase = rollout_phase(rc);
    CLEANUP_FREE char *name = rollout_pod_name(obj_name(rc), "deploy");
    CLEANUP(json_free) struct json *pod = NULL;
    if (phase == ROLLOUT_NEW || phase == ROLLOUT_PENDING) {
        if (request_flag(q, "nowait")) {
            struct strbuf none = STRBUF_INIT;
            outcome_text(outcome, 200, "text/plain", &none);
            return 0;
        }
        if (last) {
            outcome_error(outcome, 400, "BadRequest",
                          "failed to run deployer pod %s: timed out waiting for the condition",
                          name);
        }
        return -EAGAIN;
    }
    if (phase == ROLLOUT_COMPLETE) {
        pod = find_application_pod(q, rc);
        if (!pod && last) {
            outcome_error(outcome, 500, "InternalError",
                          "Internal error occurred: timed out waiting for the condition");
        }
        if (!pod) {
            return -EAGAIN;
        }
    } else if (obj_annotation(rc, ROLLOUT_IN_PROCESS)) {
        outcome_error(outcome, 400, "BadRequest",
                      "deployment %s is done by the controllers and has no log: see the events of "
                      "deploymentConfig \"%s\"",
                      obj_name(rc), q->name);
        return 0;
    } else {
        pod = find(q, core(q, "pods"), name);
    }
    answer_pod(q, pod, name, outcome);
    return 0;
}

static int answer(struct request *q, bool last, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *config = find(q, q->ck, q->name);
    if (!config) {
        outcome_not_found(outcome, q->kind, q->name);
        return 0;
    }
    int64_t version = find_version(q, config, outcome);
    if (version <= 0) {
        return 0;
    }
    CLEANUP_FREE char *name = rollout_set_name(q->name, version);
    CLEANUP(json_free) struct json *rc = find(q, core(q, "replicationcontrollers"), name);
    if (!rc) {
        if (last) {
            outcome_not_found(outcome, api_kind_find("", "v1", "replicationcontrollers"), name);
        }
        return -EAGAIN;
    }
    return answer_set(q, rc, last, outcome);
}

/* ---- waiting ---- */

static struct request *wait_free(struct log_wait *w)
{
    struct request *q = w->q;
    q->server->n_log_waits--;
    list_remove(&w->node);
    loop_timer_free(w->timer);
    free(w);
    return q;
}

static void wait_gone(void *ctx)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    outcome_error(&outcome, 499, "Timeout", "the client has gone");
    request_answer(wait_free(ctx), &outcome);
}

static void wait_looks(void *ctx)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    struct log_wait *w = ctx;
    struct request *q = w->q;
    http_on_gone(q->x, NULL, NULL);
    if (request_has_ended_token(q, time_wall_ms())) {
        outcome_error(&outcome, 401, "Unauthorized", "Unauthorized");
    } else if (answer(q, time_mono_ms() >= w->end_ms, &outcome) < 0 &&
               outcome.type == OUTCOME_NONE) {
        http_on_gone(q->x, wait_gone, w);
        loop_timer_arm(w->timer, LOOK_MS);
        return;
    }
    (void) wait_free(w);
    if (outcome.type != OUTCOME_TAKEN_OVER) {
        request_answer(q, &outcome);
    }
}

void handle_rollout_log(struct request *q, struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf query = STRBUF_INIT;
    if (!streq(http_method(q->x), "GET")) {
        outcome_error(outcome, 405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
        return;
    }
    if (stream_options_read(&stream_rollout_log_options, q, &query, outcome) < 0 ||
        answer(q, false, outcome) == 0) {
        return;
    }
    if (q->server->n_log_waits >= MAX_WAITS || q->server->stopping) {
        outcome_error(outcome, 429, "TooManyRequests",
                      "too many requests wait for rollouts, please try again later");
        return;
    }
    struct log_wait *w = NEW(struct log_wait);
    w->q = q;
    w->end_ms = time_mono_ms() + WAIT_MS;
    w->timer = loop_timer_new(q->server->loop, wait_looks, w);
    list_push_back(&q->server->log_waits, &w->node);
    q->server->n_log_waits++;
    outcome_take_over(outcome);
    flow_release(q);
    http_on_gone(q->x, wait_gone, w);
    loop_timer_arm(w->timer, LOOK_MS);
}

void rollout_log_end_all(struct apiserver *a)
{
    while (!list_is_empty(&a->log_waits)) {
        CLEANUP(outcome_done) struct outcome outcome = {0};
        struct log_wait *w = CONTAINER_OF(a->log_waits.next, struct log_wait, node);
        http_on_gone(w->q->x, NULL, NULL);
        outcome_error(&outcome, 503, "ServiceUnavailable", "the server is shutting down");
        request_answer(wait_free(w), &outcome);
    }
}
