/* SPDX-License-Identifier: Apache-2.0 */
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/xxh64.h"
#include "workload/deploy_priv.h"
#include "workload/rollout.h"

#include <inttypes.h>

static int64_t size_of(const struct json *rc)
{
    return json_get_int_or(json_path(rc, "spec", "replicas", NULL), 1);
}

static int64_t count(const struct json *rc, const char *key)
{
    return json_get_int_or(json_path(rc, "status", key, NULL), 0);
}

/* Available pods, of which those that are about to go do not count. */
static int64_t available(const struct json *rc)
{
    return MIN(count(rc, "availableReplicas"), size_of(rc));
}

/* Whether the status is about the size as it is now. */
static bool is_observed(const struct json *rc)
{
    return count(rc, "observedGeneration") >= obj_generation(rc);
}

void deploy_say(struct deploy *d, unsigned bit, const char *format, ...)
{
    if (d->m->said & 1U << bit) {
        return;
    }
    d->m->said |= 1U << bit;
    va_list ap;
    va_start(ap, format);
    strbuf_vaddf(d->lines, format, ap);
    va_end(ap);
    strbuf_addc(d->lines, '\n');
}

enum deploy_state deploy_fail(struct deploy *d, const char *format, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, format);
    strbuf_vaddf(&b, format, ap);
    va_end(ap);
    free(d->why);
    d->why = strbuf_steal(&b);
    return DEPLOY_FAILED;
}

void deploy_memory_done(struct deploy_memory *m)
{
    for (size_t i = 0; i < N_HOOKS; i++) {
        free(m->refused[i]);
    }
    *m = (struct deploy_memory){0};
}

/* ---- until ---- */

static bool is_until(const struct deploy *d, const char *text)
{
    return d->in->until && streq(d->in->until, text);
}

/* The percentage of 'until'; -1: it is none. */
static int64_t until_percent(const struct deploy *d)
{
    const char *s = d->in->until ? d->in->until : "";
    CLEANUP_FREE char *number = xstrndup(s, strcspn(s, "%"));
    int64_t n;
    return str_has_suffix(s, "%") && str_to_i64(number, 0, 100, &n) == 0 ? n : -1;
}

static enum deploy_state reach(struct deploy *d, const char *format, ...) PRINTF_LIKE(2, 3);
static enum deploy_state reach(struct deploy *d, const char *format, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, format);
    strbuf_vaddf(&b, format, ap);
    va_end(ap);
    free(d->why);
    d->why = strbuf_steal(&b);
    return DEPLOY_REACHED;
}

/* ---- sizes ---- */

static void scale(struct deploy *d, const struct json *rc, int64_t size)
{
    struct json *patch = json_object();
    json_set_string(json_ensure_object(patch, "metadata"), "uid", obj_uid(rc));
    json_set_int(json_ensure_object(patch, "spec"), "replicas", size);
    (void) workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_PATCH,
                             &workload_replication_controllers, obj_name(rc), patch);
    d->m->step_ms = d->in->now_ms;
}

/* Notes the time of the last change of a number. */
static void note_progress(struct deploy *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->in->n_sets; i++) {
        const struct json *rc = d->in->sets[i];
        int64_t numbers[] = {size_of(rc), count(rc, "replicas"), available(rc)};
        sum += xxh64(numbers, sizeof numbers, xxh64(obj_uid(rc), strlen(obj_uid(rc)), 0));
    }
    if (!d->m->progress_ms || sum != d->m->numbers) {
        d->m->progress_ms = d->in->now_ms;
        d->m->numbers = sum;
    }
}

/* Whether nothing has changed for too long; otherwise the plan looks again when it is. */
static bool is_stuck(struct deploy *d)
{
    int64_t end_ms = d->m->progress_ms + d->timeout_s * 1000;
    if (d->in->now_ms >= end_ms) {
        return true;
    }
    workload_plan_recheck(d->plan, end_ms);
    return false;
}

/* ---- other rollouts ---- */

/* Scales the sets that are neither the old nor the new one to 0; whether all have. */
static bool others_are_down(struct deploy *d)
{
    bool down = true;
    for (size_t i = 0; i < d->in->n_sets; i++) {
        const struct json *rc = d->in->sets[i];
        if (rc == d->in->to || rc == d->from || size_of(rc) == 0) {
            continue;
        }
        scale(d, rc, 0);
        strbuf_addf(d->lines, "--> Scaled older deployment %s down\n", obj_name(rc));
        down = false;
    }
    return down;
}

/* ---- Recreate ---- */

/* Whether the old pods have gone; DEPLOY_DONE: they have. */
static enum deploy_state take_old_down(struct deploy *d)
{
    const struct json *from = d->from;
    if (!from) {
        return DEPLOY_DONE;
    }
    deploy_say(d, SAY_DOWN, "--> Scaling %s down to zero", obj_name(from));
    if (size_of(from) > 0) {
        scale(d, from, 0);
        return DEPLOY_GOES_ON;
    }
    if (count(from, "replicas") > 0 || !is_observed(from)) {
        return is_stuck(d) ? deploy_fail(d,
                                         "couldn't scale %s to 0: timed out waiting for the "
                                         "condition",
                                         obj_name(from))
                           : DEPLOY_GOES_ON;
    }
    if (d->in->old_pods_run && size_of(d->in->to) == 0) {
        if (!is_stuck(d)) {
            return DEPLOY_GOES_ON;
        }
        deploy_say(d, SAY_OLD_PODS,
                   "--> Failed to wait for old pods to be terminated: timed out waiting for the "
                   "condition\nNew pods may be scaled up before old pods get terminated!");
    }
    return DEPLOY_DONE;
}

/* Waits until all pods of the new one are available. */
static enum deploy_state accept(struct deploy *d)
{
    const struct json *to = d->in->to;
    deploy_say(d, SAY_ACCEPT,
               "--> Waiting up to %" PRId64 "m%" PRId64 "s for pods in rc %s to become available",
               d->timeout_s / 60, d->timeout_s % 60, obj_name(to));
    if (is_observed(to) && available(to) >= size_of(to)) {
        return DEPLOY_DONE;
    }
    return is_stuck(d) ? deploy_fail(d,
                                     "update acceptor rejected %s: pods for rc '%s/%s' took longer "
                                     "than %" PRId64 " seconds to become available",
                                     obj_name(to), obj_namespace(to), obj_name(to), d->timeout_s)
                       : DEPLOY_GOES_ON;
}

/* Brings the new one up: one pod first when there was an old one. */
static enum deploy_state bring_up(struct deploy *d)
{
    const struct json *to = d->in->to;
    int64_t size = size_of(to), percent = until_percent(d);
    if (d->from && d->desired > 1 && size <= 1) {
        deploy_say(d, SAY_ONE, "--> Scaling %s to 1 before performing acceptance check",
                   obj_name(to));
        if (size < 1) {
            scale(d, to, 1);
            return DEPLOY_GOES_ON;
        }
        enum deploy_state s = accept(d);
        if (s != DEPLOY_DONE) {
            return s;
        }
        if (percent >= 1 && percent <= 99) {
            return reach(d, "Reached %s", d->in->until);
        }
    }
    if (size != d->desired) {
        deploy_say(d, SAY_ALL, "--> Scaling %s to %" PRId64, obj_name(to), d->desired);
        scale(d, to, d->desired);
        return DEPLOY_GOES_ON;
    }
    return d->desired ? accept(d) : DEPLOY_DONE;
}

static enum deploy_state recreate(struct deploy *d, const struct json *params)
{
    enum deploy_state s = deploy_run_hook(d, json_get(params, "pre"), HOOK_PRE);
    if (s == DEPLOY_DONE && is_until(d, "pre")) {
        return reach(d, "pre hook succeeded");
    }
    s = s == DEPLOY_DONE ? take_old_down(d) : s;
    if (s == DEPLOY_DONE && is_until(d, "0%")) {
        return reach(d, "Reached 0%% (no running pods)");
    }
    s = s == DEPLOY_DONE ? deploy_run_hook(d, json_get(params, "mid"), HOOK_MID) : s;
    if (s == DEPLOY_DONE && is_until(d, "mid")) {
        return reach(d, "mid hook succeeded");
    }
    s = s == DEPLOY_DONE ? bring_up(d) : s;
    if (s == DEPLOY_DONE && until_percent(d) >= 1) {
        return reach(d, "Reached %s", d->in->until);
    }
    return s == DEPLOY_DONE ? deploy_run_hook(d, json_get(params, "post"), HOOK_POST) : s;
}

/* ---- Rolling ---- */

/* A period that the user has set to more than the default of a second is kept between two steps;
 * otherwise a step follows when the one before is seen. */
static bool is_step_due(struct deploy *d, const struct json *params)
{
    int64_t period_s = json_get_int_or(json_get(params, "updatePeriodSeconds"), 1);
    int64_t due_ms = d->m->step_ms + MIN(MAX(period_s, 1), INT32_MAX) * 1000;
    if (period_s <= 1 || !d->m->step_ms || d->in->now_ms >= due_ms) {
        return true;
    }
    workload_plan_recheck(d->plan, due_ms);
    return false;
}

static void say_begin(struct deploy *d, const struct rollout *r)
{
    deploy_say(d, SAY_BEGINS,
               "--> Scaling up %s from %" PRId64 " to %" PRId64 ", scaling down %s from %" PRId64
               " to 0 (keep %" PRId64 " pods available, don't exceed %" PRId64 " pods)",
               obj_name(d->in->to), size_of(d->in->to), d->desired, obj_name(d->from),
               size_of(d->from), r->desired - r->unavailable, r->desired + r->surge);
}

/* One step of the rolling update; DEPLOY_DONE: all old pods are gone and all new ones available. */
static enum deploy_state roll(struct deploy *d, const struct json *params)
{
    const struct json *to = d->in->to, *from = d->from;
    struct rollout_set fresh = {.replicas = size_of(to), .available = available(to)};
    struct rollout_set old = {.replicas = size_of(from), .available = available(from)};
    struct rollout_set *olds[] = {&old};
    struct rollout r = {.desired = d->desired, .new_set = &fresh, .old_set = olds, .n_old = 1};
    rollout_bounds(json_get(params, "maxSurge"), json_get(params, "maxUnavailable"), d->desired,
                   &r.surge, &r.unavailable);
    say_begin(d, &r);
    if (old.replicas == 0 && fresh.replicas == d->desired && fresh.available >= d->desired &&
        is_observed(to)) {
        return DEPLOY_DONE;
    }
    if (!is_step_due(d, params)) {
        d->m->progress_ms = d->in->now_ms;
        return DEPLOY_GOES_ON;
    }
    if (is_stuck(d)) {
        return deploy_fail(d, "timed out waiting for any update progress to be made");
    }
    int64_t size = rollout_new_size(&r, fresh.replicas);
    if (size != fresh.replicas) {
        strbuf_addf(d->lines, "    Scaling %s up to %" PRId64 "\n", obj_name(to), size);
        scale(d, to, size);
    } else if (is_observed(to) && is_observed(from) && rollout_shrink_old(&r)) {
        strbuf_addf(d->lines, "    Scaling %s down to %" PRId64 "\n", obj_name(from), old.replicas);
        scale(d, from, old.replicas);
    }
    return DEPLOY_GOES_ON;
}

/* What the original's rolling updater notes in the two ReplicationControllers; whether a write was
 * added. */
static bool mark_source(struct deploy *d)
{
    CLEANUP_FREE char *source = xasprintf("%s:%s", obj_name(d->from), obj_uid(d->from));
    CLEANUP_FREE char *size = xasprintf("%" PRId64, size_of(d->from));
    const struct {
        const struct json *rc;
        const char *key, *value;
    } marks[] = {{d->in->to, "kubectl.kubernetes.io/update-source-id", source},
                 {d->from, "kubectl.kubernetes.io/original-replicas", size}};
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        const char *has = obj_annotation(marks[i].rc, marks[i].key);
        if (i == 0 ? streq_null(has, source) : has != NULL) {
            continue;
        }
        struct json *patch = json_object(), *meta = json_ensure_object(patch, "metadata");
        json_set_string(meta, "uid", obj_uid(marks[i].rc));
        json_set_string(json_ensure_object(meta, "annotations"), marks[i].key, marks[i].value);
        (void) workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_PATCH,
                                 &workload_replication_controllers, obj_name(marks[i].rc), patch);
        any = true;
    }
    return any;
}

static enum deploy_state rolling(struct deploy *d, const struct json *params)
{
    int64_t percent = until_percent(d);
    if (!d->from) {
        return recreate(d, params); /* It has no hook "mid". */
    }
    enum deploy_state s = deploy_run_hook(d, json_get(params, "pre"), HOOK_PRE);
    if (s == DEPLOY_DONE && (is_until(d, "pre") || percent == 0)) {
        return percent == 0 ? reach(d, "Reached 0%% (before rollout)")
                            : reach(d, "pre hook succeeded");
    }
    if (s != DEPLOY_DONE) {
        return s;
    }
    if (mark_source(d)) {
        return DEPLOY_GOES_ON;
    }
    int64_t share = d->desired ? available(d->in->to) * 100 / d->desired : 100;
    if (percent > 0 && share >= percent) {
        return reach(d, "Reached %s (currently %" PRId64 "%%)", d->in->until, share);
    }
    s = roll(d, params);
    return s == DEPLOY_DONE ? deploy_run_hook(d, json_get(params, "post"), HOOK_POST) : s;
}

/* ---- the whole ---- */

static void find_source(struct deploy *d)
{
    for (size_t i = 0; i < d->in->n_sets; i++) {
        const struct json *rc = d->in->sets[i];
        if (rc != d->in->to && rollout_phase(rc) == ROLLOUT_COMPLETE &&
            (!d->from || rollout_version(rc) > rollout_version(d->from))) {
            d->from = rc;
        }
    }
}

static enum deploy_state run(struct deploy *d)
{
    const char *type = json_get_text(d->strategy, "type");
    find_source(d);
    if (d->desired < 0) {
        return deploy_fail(d, "deployment %s has already run to completion", obj_name(d->in->to));
    }
    if (d->from && rollout_version(d->in->to) < rollout_version(d->from)) {
        return deploy_fail(d, "deployment %s is older than %s", obj_name(d->in->to),
                           obj_name(d->from));
    }
    bool is_rolling = streq(type, "Rolling");
    if (!is_rolling && !streq(type, "Recreate")) {
        return deploy_fail(d, "unsupported strategy type: %.40s", type);
    }
    note_progress(d);
    if (!others_are_down(d)) {
        return DEPLOY_GOES_ON;
    }
    if (is_until(d, "start")) {
        return reach(d, "Ready to start deployment");
    }
    return is_rolling ? rolling(d, json_get(d->strategy, "rollingParams"))
                      : recreate(d, json_get(d->strategy, "recreateParams"));
}

enum deploy_state deploy_plan(const struct deploy_input *in, struct deploy_memory *m,
                              struct workload_plan *plan, struct strbuf *lines, char **ret_why)
{
    struct deploy d = {.in = in, .m = m, .plan = plan, .lines = lines};
    struct err e = {0};
    enum deploy_state s;
    if (!m->started_ms) {
        m->started_ms = in->now_ms;
    }
    if (rollout_decode(in->to, &d.config, &e) < 0) {
        s = deploy_fail(&d, "couldn't decode deployment config from deployment %s: %s",
                        obj_name(in->to), e.text);
    } else {
        d.strategy = json_path(d.config, "spec", "strategy", NULL);
        d.desired = rollout_desired(in->to);
        d.timeout_s = rollout_timeout_s(d.strategy);
        s = run(&d);
    }
    if (s == DEPLOY_DONE) {
        strbuf_adds(lines, "--> Success\n");
    } else if (s == DEPLOY_FAILED || s == DEPLOY_REACHED) {
        *ret_why = TAKE(d.why);
    }
    free(d.why);
    json_free(d.config);
    return s;
}
