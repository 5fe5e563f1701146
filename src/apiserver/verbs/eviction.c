/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/eviction.h"

#include "api/condition.h"
#include "api/label_selector.h"
#include "apiserver/verbs/delete.h"
#include "base/timeutil.h"

#define PART "eviction"
#define DISRUPTED_MAX 2000 /* Pods that a budget remembers as disrupted. */
#define RETRY_S 10

bool eviction_is_asked(const struct request *q)
{
    return q->verb == VERB_CREATE && streq(q->subresource, PART);
}

/* ---- the budget ---- */

static bool is_for(const struct json *budget, const struct json *pod)
{
    const struct json *selector = json_path(budget, "spec", "selector", NULL);
    return selector && label_selector_matches(selector, json_path(pod, "metadata", "labels", NULL));
}

static struct cache_kind *budgets(const struct request *q)
{
    const struct api_kind *k = api_kind_find("policy", "v1", "poddisruptionbudgets");
    return cache_find(&q->server->cache, k);
}

/* The budgets of the pod: their number, and the last one. */
static size_t find_budgets(const struct request *q, const struct json *pod, struct object **ret)
{
    struct cache_walk walk;
    struct object *o;
    size_t n = 0;
    struct cache_kind *ck = budgets(q);
    struct cache_range range = {.namespace = q->namespace};
    cache_walk_init(&walk, ck, &range, q->server->cache.revision);
    while ((o = cache_walk_next(&walk))) {
        CLEANUP(json_free) struct json *budget = object_parse_as(o, ck->kind);
        if (is_for(budget, pod)) {
            *ret = o;
            n++;
        }
    }
    cache_walk_done(&walk);
    return n;
}

/* Whether the pod can go without asking its budget: it does not run, or is going already. */
static bool is_free(const struct json *pod)
{
    const char *phase = json_path_string(pod, "status", "phase", NULL);
    return json_path(pod, "metadata", "deletionTimestamp", NULL) ||
           streq_null(phase, "Succeeded") || streq_null(phase, "Failed") ||
           streq_null(phase, "Pending");
}

static int64_t count_in(const struct json *budget, const char *key)
{
    return json_get_int_or(json_path(budget, "status", key, NULL), 0);
}

/* Whether a pod that is not ready can go, because it does not count for the budget. */
static bool is_unhealthy_and_free(const struct json *pod, const struct json *budget)
{
    const char *policy = json_path_string(budget, "spec", "unhealthyPodEvictionPolicy", NULL);
    int64_t desired = count_in(budget, "desiredHealthy");
    return !condition_is_true(pod, "Ready") &&
           (streq_null(policy, "AlwaysAllow") ||
            (desired > 0 && count_in(budget, "currentHealthy") >= desired));
}

static int too_many(struct outcome *outcome, const char *cause, const char *text)
{
    outcome_error(outcome, 429, "TooManyRequests",
                  "Cannot evict pod as it would violate the pod's disruption budget.");
    outcome->retry_s = RETRY_S;
    outcome_add_cause(outcome, cause, NULL, text);
    return -EAGAIN;
}

/* Counts the pod in the budget's status; negative: refused. */
static int take_one(const struct request *q, struct json *budget, struct outcome *outcome)
{
    const char *name = json_path_string(budget, "metadata", "name", NULL);
    int64_t left = count_in(budget, "disruptionsAllowed");
    int64_t generation = json_get_int_or(json_path(budget, "metadata", "generation", NULL), 0);
    char now[TIME_TEXT_SIZE];
    struct json *status = json_ensure_object(budget, "status");
    if (count_in(budget, "observedGeneration") < generation) {
        CLEANUP_FREE char *text =
            xasprintf("The disruption budget %s is still being processed by the server.", name);
        return too_many(outcome, "DisruptionBudget", text);
    }
    if (left <= 0) {
        CLEANUP_FREE char *text =
            xasprintf("The disruption budget %s needs %lld healthy pods and has %lld currently",
                      name, (long long) count_in(budget, "desiredHealthy"),
                      (long long) count_in(budget, "currentHealthy"));
        return too_many(outcome, "DisruptionBudget", text);
    }
    if (json_count(json_get(status, "disruptedPods")) > DISRUPTED_MAX) {
        outcome_error(
            outcome, 403, "Forbidden",
            "poddisruptionbudgets.policy \"%s\" is forbidden: DisruptedPods map too big - "
            "too many evictions not confirmed by PDB controller",
            name);
        return -EACCES;
    }
    time_format_s(time_wall_ms(), now);
    json_set_int(status, "disruptionsAllowed", left - 1);
    if (left == 1) {
        (void) condition_set(budget, "DisruptionAllowed", "False", "InsufficientPods", "",
                             time_wall_ms());
    }
    json_set_string(json_ensure_object(status, "disruptedPods"), q->name, now);
    return 0;
}

/* ---- the eviction ---- */

/* The budget has counted the pod: it is deleted. */
static void counted(struct write *w, struct outcome *outcome)
{
    delete_evicted(w->q, json_get(w->body, "deleteOptions"), outcome);
}

/* The pod as it is now; NULL: the outcome is filled. */
static struct json *find_pod(const struct request *q, struct outcome *outcome)
{
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct object *o = keyset_get(&q->ck->objects, key);
    if (!o) {
        outcome_not_found(outcome, q->kind, q->name);
        return NULL;
    }
    return object_parse_as(o, q->kind);
}

static void attempt_count(struct write *w, struct outcome *outcome)
{
    struct request *q = w->q;
    struct object *base = keyset_get(&w->ck->objects, w->key);
    CLEANUP(json_free) struct json *pod = find_pod(q, outcome);
    struct blob *value = NULL;
    if (!pod) {
        return;
    }
    CLEANUP(json_free) struct json *budget = base ? object_parse(base) : NULL;
    if (!budget || !is_for(budget, pod)) {
        too_many(outcome, "DisruptionBudget", "The disruption budget has just changed.");
    } else if (take_one(q, budget, outcome) == 0 &&
               object_encode(w->ck->kind, budget, &value) == 0) {
        write_put(w, base, value, outcome);
    }
}

/* Checks the body, an Eviction. */
static int check_body(const struct request *q, const struct json *body, struct outcome *outcome)
{
    const char *kind = json_path_string(body, "kind", NULL);
    const char *version = json_path_string(body, "apiVersion", NULL);
    const char *name = json_path_string(body, "metadata", "name", NULL);
    const struct json *options = json_get(body, "deleteOptions");
    if ((kind && !streq(kind, "Eviction")) ||
        (version && !streq(version, "policy/v1") && !streq(version, "policy/v1beta1"))) {
        outcome_error(outcome, 400, "BadRequest",
                      "the body of an eviction is an Eviction of policy/v1, not %.80s of %.80s",
                      kind ? kind : "", version ? version : "");
        return -EINVAL;
    }
    if (name && *name && !streq(name, q->name)) {
        outcome_error(outcome, 400, "BadRequest",
                      "name in URL does not match name in Eviction object");
        return -EINVAL;
    }
    if (options && !json_is(options, JSON_OBJECT) && !json_is(options, JSON_NULL)) {
        outcome_error(outcome, 400, "BadRequest", "deleteOptions is not an object");
        return -EINVAL;
    }
    return 0;
}

/* Whether a dry run is asked for in the options of the body. */
static bool asks_dry_run(const struct json *body)
{
    return json_count(json_path(body, "deleteOptions", "dryRun", NULL)) > 0;
}

void handle_eviction(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    struct object *budget = NULL;
    if (write_begin(q, outcome) < 0 || write_read_body(q, &body, outcome) < 0 ||
        check_body(q, body, outcome) < 0) {
        return;
    }
    CLEANUP(json_free) struct json *pod = find_pod(q, outcome);
    if (!pod) {
        return;
    }
    q->dry_run = q->dry_run || asks_dry_run(body);
    size_t n = is_free(pod) ? 0 : find_budgets(q, pod, &budget);
    if (n > 1) {
        outcome_error(outcome, 500, "InternalError",
                      "This pod has more than one PodDisruptionBudget, which the eviction "
                      "subresource does not support.");
        return;
    }
    CLEANUP(json_free)
    struct json *parsed = n ? object_parse_as(budget, budgets(q)->kind) : NULL;
    bool asks = n && !is_unhealthy_and_free(pod, parsed);
    if (asks && q->dry_run && take_one(q, parsed, outcome) < 0) {
        return;
    }
    if (!asks || q->dry_run) {
        delete_evicted(q, json_get(body, "deleteOptions"), outcome);
        return;
    }
    struct write *w = write_new(q, budgets(q), budget->key, attempt_count);
    w->body = TAKE(body);
    w->then = counted;
    outcome_take_over(outcome);
    write_try(w);
}
