/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/autoscale.h"

#include "api/condition.h"
#include "api/obj.h"
#include "api/quantity.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "workload/autoscale_priv.h"

#define TOLERANCE 0.1
#define DOWN_WINDOW_S 300
#define LONGEST_MS 3600000 /* Windows and periods are at most an hour. */

/* One direction of spec.behavior, with the defaults of Kubernetes. */
struct rules {
    const struct json *rules;
    bool up;
};

void autoscale_memory_done(struct autoscale_memory *m)
{
    free(m->wanted);
    free(m->changes);
    *m = (struct autoscale_memory){0};
}

void autoscale_done(struct autoscale *a)
{
    free(a->reason);
    free(a->fail_reason);
    free(a->fail_text);
    json_free(a->status);
    *a = (struct autoscale){0};
}

/* Appends a note, and drops those that no window reaches any more. */
static void add_note(struct autoscale_note **list, size_t *n, size_t *cap, int64_t value,
                     int64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if ((*list)[i].at_ms + LONGEST_MS > now_ms) {
            (*list)[kept++] = (*list)[i];
        }
    }
    *list = grow(*list, cap, kept + 1, sizeof **list);
    (*list)[kept] = (struct autoscale_note){now_ms, value};
    *n = kept + 1;
}

/* ---- behaviour ---- */

static struct rules rules_of(const struct json *hpa, bool up)
{
    return (struct rules){json_path(hpa, "spec", "behavior", up ? "scaleUp" : "scaleDown", NULL),
                          up};
}

static double tolerance(const struct rules *r)
{
    int64_t n;
    const char *s = json_path_string(r->rules, "tolerance", NULL);
    return s && api_quantity_value(s, -6, &n, NULL) == 0 ? (double) n / 1e6 : TOLERANCE;
}

static int64_t window_ms(const struct rules *r)
{
    return 1000 * json_get_int_or(json_get(r->rules, "stabilizationWindowSeconds"),
                                  r->up ? 0 : DOWN_WINDOW_S);
}

/* The pods that were added, less those that were removed, within the period. */
static int64_t changed_within(const struct autoscale_memory *m, int64_t period_s, int64_t now_ms)
{
    int64_t n = 0;
    for (size_t i = 0; i < m->n_changes; i++) {
        n += m->changes[i].at_ms + period_s * 1000 > now_ms ? m->changes[i].n : 0;
    }
    return n;
}

/* The number of pods that a policy allows. */
static int64_t limit_of(const struct rules *r, bool percent, int64_t value, int64_t period_s,
                        int64_t current, const struct autoscale_memory *m, int64_t now_ms)
{
    int64_t start = current - changed_within(m, period_s, now_ms);
    if (!percent) {
        return r->up ? start + value : start - value;
    }
    return r->up ? (start * (100 + value) + 99) / 100 : start * (100 - MIN(value, 100)) / 100;
}

/* The farthest number in this direction; without policies those of Kubernetes count. */
static int64_t rate_limit(const struct rules *r, int64_t current, const struct autoscale_memory *m,
                          int64_t now_ms)
{
    const struct json *policies = json_get(r->rules, "policies"), *p;
    const char *select = json_get_text(r->rules, "selectPolicy");
    bool least = streq(select, "Min"), any = false;
    int64_t limit = current;
    if (streq(select, "Disabled")) {
        return current;
    }
    if (!json_count(policies)) {
        int64_t twice = limit_of(r, true, 100, 15, current, m, now_ms);
        return r->up ? MAX(twice, limit_of(r, false, 4, 15, current, m, now_ms)) : twice;
    }
    JSON_FOREACH (p, policies) {
        int64_t n = limit_of(r, streq(json_get_text(p, "type"), "Percent"),
                             json_get_int_or(json_get(p, "value"), 0),
                             json_get_int_or(json_get(p, "periodSeconds"), 15), current, m, now_ms);
        bool farther = r->up ? n > limit : n < limit;
        limit = !any || farther != least ? n : limit;
        any = true;
    }
    return limit;
}

/* The recommendation, held back by those of the windows before. */
static int64_t stabilize(const struct json *hpa, int64_t wanted, int64_t current,
                         struct autoscale_memory *m, int64_t now_ms)
{
    struct rules up = rules_of(hpa, true), down = rules_of(hpa, false);
    int64_t lowest = wanted, highest = wanted;
    if (!m->n_wanted) { /* A new leader does not remove pods at once. */
        add_note(&m->wanted, &m->n_wanted, &m->cap_wanted, current, now_ms);
    }
    for (size_t i = 0; i < m->n_wanted; i++) {
        if (m->wanted[i].at_ms + window_ms(&up) > now_ms) {
            lowest = MIN(lowest, m->wanted[i].n);
        }
        if (m->wanted[i].at_ms + window_ms(&down) > now_ms) {
            highest = MAX(highest, m->wanted[i].n);
        }
    }
    add_note(&m->wanted, &m->n_wanted, &m->cap_wanted, wanted, now_ms);
    return current < lowest ? lowest : current > highest ? highest : current;
}

/* ---- limits ---- */

struct decision {
    const struct json *hpa;
    struct json *o;
    int64_t current, least, most, now_ms;
};

static void say_limited(const struct decision *d, bool limited, const char *reason,
                        const char *text)
{
    (void) condition_set(d->o, "ScalingLimited", limited ? "True" : "False", reason, text,
                         d->now_ms);
}

static int64_t within_limits(const struct decision *d, int64_t wanted, struct autoscale_memory *m)
{
    struct rules up = rules_of(d->hpa, true), down = rules_of(d->hpa, false);
    if (wanted > d->current) {
        int64_t rate = MAX(rate_limit(&up, d->current, m, d->now_ms), d->current);
        int64_t most = MIN(d->most, rate);
        if (wanted > most) {
            say_limited(d, true, rate < d->most ? "ScaleUpLimit" : "TooManyReplicas",
                        rate < d->most ? "the desired replica count is increasing faster than the "
                                         "maximum scale rate"
                                       : "the desired replica count is more than the maximum "
                                         "replica count");
            return most;
        }
    } else if (wanted < d->current) {
        int64_t rate = MIN(rate_limit(&down, d->current, m, d->now_ms), d->current);
        int64_t least = MAX(d->least, rate);
        if (wanted < least) {
            say_limited(d, true, rate > d->least ? "ScaleDownLimit" : "TooFewReplicas",
                        rate > d->least ? "the desired replica count is decreasing faster than "
                                          "the maximum scale rate"
                                        : "the desired replica count is less than the minimum "
                                          "replica count");
            return least;
        }
    } else if (wanted >= d->most) {
        say_limited(d, true, "TooManyReplicas",
                    "the desired replica count is more than the maximum replica count");
        return d->most;
    } else if (wanted <= d->least && d->least > 1) {
        say_limited(d, true, "TooFewReplicas",
                    "the desired replica count is less than the minimum replica count");
        return d->least;
    }
    say_limited(d, false, "DesiredWithinRange", "the desired count is within the acceptable range");
    return wanted;
}

/* ---- metrics ---- */

static struct json *show_metric(const struct json *spec, const struct autoscale_metric *m)
{
    bool of_container = streq(json_get_text(spec, "type"), "ContainerResource");
    const char *member = of_container ? "containerResource" : "resource";
    const struct json *source = json_get(spec, member);
    struct json *o = json_object(), *to = json_object();
    json_set_string(o, "type", json_get_text(spec, "type"));
    json_set_string(to, "name", json_get_text(source, "name"));
    if (of_container) {
        json_set_string(to, "container", json_get_text(source, "container"));
    }
    struct json *current = json_ensure_object(to, "current");
    json_set(current, "averageValue", json_stringf("%lldm", (long long) m->average));
    if (m->utilization >= 0) {
        json_set_int(current, "averageUtilization", m->utilization);
    }
    json_set(o, member, to);
    return o;
}

/* The most pods that any metric wants; -ENODATA: there is no basis for a decision. */
static int ask_metrics(const struct decision *d, const struct autoscale_input *in,
                       struct autoscale *a, int64_t *ret, char **ret_name)
{
    const struct json *metrics = json_path(d->hpa, "spec", "metrics", NULL), *spec;
    struct rules up = rules_of(d->hpa, true), down = rules_of(d->hpa, false);
    struct json *shown = json_array();
    size_t failed = 0;
    int64_t most = 0;
    struct err first = {0};
    const char *first_type = NULL;
    JSON_FOREACH (spec, metrics) {
        struct autoscale_metric m;
        struct err e = {0};
        const struct json *source = json_get(spec, "resource");
        source = source ? source : json_get(spec, "containerResource");
        if (autoscale_metric_replicas(spec, in, d->current, tolerance(&up), tolerance(&down),
                                      d->now_ms, &m, &e) < 0) {
            if (!failed++) {
                first = e;
                first_type = json_get_text(spec, "type");
            }
            continue;
        }
        json_append(shown, show_metric(spec, &m));
        if (!*ret_name || m.replicas > most) {
            free(*ret_name);
            *ret_name = xasprintf("%s resource%s", json_get_text(source, "name"),
                                  m.utilization >= 0 ? " utilization (percentage of request)" : "");
            most = m.replicas;
        }
    }
    json_set(json_ensure_object(d->o, "status"), "currentMetrics", shown);
    if (failed && (failed >= json_count(metrics) || most < d->current)) {
        a->fail_reason = xasprintf("FailedGet%sMetric", first_type);
        a->fail_text = xasprintf("invalid metrics (%zu invalid out of %zu), first error is: %s",
                                 failed, json_count(metrics), first.text);
        return -ENODATA;
    }
    *ret = most;
    return json_count(metrics) ? 0 : -ENODATA;
}

static void decide(struct decision *d, const struct autoscale_input *in, struct autoscale_memory *m,
                   struct autoscale *a)
{
    CLEANUP_FREE char *name = NULL;
    int64_t wanted = 0;
    a->desired = d->current;
    if (d->current == 0) {
        (void) condition_set(d->o, "ScalingActive", "False", "ScalingDisabled",
                             "scaling is disabled since the replica count of the target is zero",
                             d->now_ms);
        return;
    }
    if (d->current > d->most || d->current < d->least) {
        bool above = d->current > d->most;
        a->desired = above ? d->most : d->least;
        a->reason = xstrdup(above ? "Current number of replicas above Spec.MaxReplicas"
                                  : "Current number of replicas below Spec.MinReplicas");
        return;
    }
    if (ask_metrics(d, in, a, &wanted, &name) < 0) {
        if (!a->fail_reason) {
            a->fail_reason = xstrdup("InvalidMetricSourceType");
            a->fail_text = xstrdup("no metrics are specified");
        }
        CLEANUP_FREE char *text =
            xasprintf("the HPA was unable to compute the replica count: %s", a->fail_text);
        (void) condition_set(d->o, "ScalingActive", "False", a->fail_reason, text, d->now_ms);
        return;
    }
    CLEANUP_FREE char *text =
        xasprintf("the HPA was able to successfully calculate a replica count from %s", name);
    (void) condition_set(d->o, "ScalingActive", "True", "ValidMetricFound", text, d->now_ms);
    int64_t steady = stabilize(d->hpa, wanted, d->current, m, d->now_ms);
    bool held = steady != wanted;
    (void) condition_set(
        d->o, "AbleToScale", "True",
        !held             ? "ReadyForNewScale"
        : steady > wanted ? "ScaleDownStabilized"
                          : "ScaleUpStabilized",
        !held ? "recommended size matches current size"
        : steady > wanted
            ? "recent recommendations were higher than current one, applying the highest recent "
              "recommendation"
            : "recent recommendations were lower than current one, applying the lowest recent "
              "recommendation",
        d->now_ms);
    a->desired = within_limits(d, steady, m);
    a->reason = a->desired > d->current ? xasprintf("%s above target", name)
                                        : xstrdup("All metrics below target");
}

void autoscale_plan(const struct json *hpa, const struct autoscale_input *in,
                    struct autoscale_memory *memory, int64_t now_ms, struct autoscale *ret)
{
    const struct json *spec = json_get(hpa, "spec");
    struct decision d = {.hpa = hpa,
                         .o = json_clone(hpa),
                         .current =
                             json_get_int_or(json_path(in->scale, "spec", "replicas", NULL), 0),
                         .least = json_get_int_or(json_get(spec, "minReplicas"), 1),
                         .most = json_get_int_or(json_get(spec, "maxReplicas"), 1),
                         .now_ms = now_ms};
    *ret = (struct autoscale){.status = d.o};
    (void) condition_set(d.o, "AbleToScale", "True", "SucceededGetScale",
                         "the HPA controller was able to get the target's current scale", now_ms);
    decide(&d, in, memory, ret);
    ret->scales = ret->desired != d.current;
    struct json *status = json_ensure_object(d.o, "status");
    int64_t present = json_get_int_or(json_path(in->scale, "status", "replicas", NULL), 0);
    if (present) {
        json_set_int(status, "currentReplicas", present);
    } else {
        (void) json_remove(status, "currentReplicas");
    }
    json_set_int(status, "desiredReplicas", ret->desired);
    if (!json_get(status, "currentMetrics")) {
        json_set(status, "currentMetrics", json_array());
    }
}

void autoscale_changed(struct autoscale *a, struct autoscale_memory *memory, int64_t from,
                       int64_t to, int64_t now_ms)
{
    char now[TIME_TEXT_SIZE];
    CLEANUP_FREE char *text =
        xasprintf("the HPA controller was able to update the target scale to %lld", (long long) to);
    add_note(&memory->changes, &memory->n_changes, &memory->cap_changes, to - from, now_ms);
    time_format_s(now_ms, now);
    json_set_string(json_ensure_object(a->status, "status"), "lastScaleTime", now);
    (void) condition_set(a->status, "AbleToScale", "True", "SucceededRescale", text, now_ms);
}
