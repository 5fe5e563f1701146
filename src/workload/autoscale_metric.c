/* SPDX-License-Identifier: Apache-2.0 */
/* One metric of an autoscaler: use of a resource beside requests, or beside a value. */
#include "api/condition.h"
#include "api/obj.h"
#include "api/quantity.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "workload/autoscale_priv.h"
#include "workload/pods.h"

#include <math.h>

#define MILLI (-3)
#define INITIAL_MS 300000      /* Use during the start of a pod says little. */
#define INITIAL_READY_MS 30000 /* A pod that was not ready since then never was. */

enum pod_group { POD_COUNTS, POD_UNREADY, POD_MISSING, POD_IGNORED };

/* A pod with its use and its requests, in thousandths. */
struct sample {
    enum pod_group group;
    int64_t use, request;
};

struct metric {
    const char *resource, *container; /* 'container' NULL: all. */
    int64_t target;                   /* Percentage, or thousandths of a pod. */
    bool of_request;
    struct sample *list;
    size_t n;
};

static int64_t milli(const struct json *list, const char *resource, bool *ret_has)
{
    int64_t n = 0;
    const char *s = json_path_string(list, resource, NULL);
    *ret_has = s && api_quantity_value(s, MILLI, &n, NULL) == 0;
    return *ret_has ? n : 0;
}

/* ---- samples ---- */

/* The use of the pod's containers; false: it is not known. */
static bool use_of(const struct metric *m, const struct json *metrics, int64_t *ret)
{
    const struct json *ct;
    bool any = false;
    *ret = 0;
    JSON_FOREACH (ct, json_get(metrics, "containers")) {
        bool has;
        int64_t n = milli(json_get(ct, "usage"), m->resource, &has);
        if (!m->container || streq(json_get_text(ct, "name"), m->container)) {
            any |= has;
            *ret += n;
        }
    }
    return any;
}

static int request_of(const struct metric *m, const struct json *pod, int64_t *ret, struct err *e)
{
    const struct json *ct;
    *ret = 0;
    JSON_FOREACH (ct, json_path(pod, "spec", "containers", NULL)) {
        bool has;
        int64_t n = milli(json_path(ct, "resources", "requests", NULL), m->resource, &has);
        if (m->container && !streq(json_get_text(ct, "name"), m->container)) {
            continue;
        }
        if (!has) {
            return err_set(e, -ENODATA, "missing request for %s in container %s of Pod %s",
                           m->resource, json_get_text(ct, "name"), obj_name(pod));
        }
        *ret += n;
    }
    return 0;
}

static int64_t time_of(const struct json *o, const char *key)
{
    int64_t ms;
    return time_parse(json_get_text(o, key), &ms) == 0 ? ms : 0;
}

/* Whether the use of CPU of the pod says nothing yet, because it starts. */
static bool is_starting(const struct json *pod, const struct json *metrics, int64_t now_ms)
{
    const struct json *c = condition_find(pod, "Ready");
    int64_t start = time_of(json_get(pod, "status"), "startTime"), window = 0;
    int64_t since = time_of(c, "lastTransitionTime");
    bool unready = streq(json_get_text(c, "status"), "False");
    if (!c || !start) {
        return true;
    }
    if (start + INITIAL_MS <= now_ms) {
        return unready && start + INITIAL_READY_MS > since;
    }
    (void) time_parse_duration(json_get_text(metrics, "window"), &window);
    return unready || time_of(metrics, "timestamp") < since + window / NS_PER_MS;
}

static enum pod_group group_of(const struct metric *m, const struct json *pod,
                               const struct json *metrics, bool known, int64_t now_ms)
{
    if (obj_is_terminating(pod) || workload_pod_has_phase(pod, "Failed") ||
        workload_pod_has_phase(pod, "Succeeded")) {
        return POD_IGNORED;
    }
    if (workload_pod_has_phase(pod, "Pending")) {
        return POD_UNREADY;
    }
    if (!known) {
        return POD_MISSING;
    }
    return streq(m->resource, "cpu") && is_starting(pod, metrics, now_ms) ? POD_UNREADY
                                                                          : POD_COUNTS;
}

static int load_samples(struct metric *m, const struct autoscale_input *in, int64_t now_ms,
                        struct err *e)
{
    const struct json *item;
    struct smap by_name;
    int r = 0;
    smap_init(&by_name, NULL);
    JSON_FOREACH (item, in->metrics) {
        smap_set(&by_name, obj_name(item), (void *) item);
    }
    m->n = json_count(in->pods);
    m->list = xcalloc(m->n + 1, sizeof *m->list);
    for (size_t i = 0; i < m->n && r == 0; i++) {
        const struct json *pod = json_at(in->pods, i), *metrics = smap_get(&by_name, obj_name(pod));
        struct sample *s = &m->list[i];
        bool known = use_of(m, metrics, &s->use);
        s->group = group_of(m, pod, metrics, known, now_ms);
        if (m->of_request && s->group != POD_IGNORED) {
            r = request_of(m, pod, &s->request, e);
        }
    }
    smap_done(&by_name);
    return r;
}

/* ---- the ratio ---- */

struct ratio {
    double value;
    int64_t utilization, average;
    size_t n; /* Pods that it is made from. */
};

/* The use of what counts, beside the target. */
static struct ratio ratio_of(const struct metric *m)
{
    struct ratio r = {.utilization = -1};
    int64_t use = 0, request = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->list[i].group == POD_COUNTS) {
            use += m->list[i].use;
            request += m->list[i].request;
            r.n++;
        }
    }
    r.average = r.n ? use / (int64_t) r.n : 0;
    if (m->of_request) {
        r.utilization = request ? use * 100 / request : 0;
    }
    r.value = (double) (m->of_request ? r.utilization : r.average) / (double) MAX(m->target, 1);
    return r;
}

/* Pods that are not ready or have no metrics count against the direction of the change. */
static void fill_in(struct metric *m, const struct ratio *r)
{
    for (size_t i = 0; i < m->n; i++) {
        struct sample *s = &m->list[i];
        if (s->group == POD_MISSING && r->value != 1.0) {
            int64_t full = m->of_request ? s->request * MAX(m->target, 100) / 100 : m->target;
            s->use = r->value < 1.0 ? full : 0;
            s->group = POD_COUNTS;
        } else if (s->group == POD_UNREADY && r->value > 1.0) {
            s->use = 0;
            s->group = POD_COUNTS;
        }
    }
}

static size_t count_group(const struct metric *m, enum pod_group group)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        n += m->list[i].group == group;
    }
    return n;
}

static int64_t replicas_for(struct metric *m, struct ratio *r, int64_t current, double up,
                            double down)
{
    double first = r->value;
#define WITHIN(x) ((x) <= 1.0 + up && (x) >= 1.0 - down)
    bool unready = count_group(m, POD_UNREADY) > 0 && first > 1.0;
    if (!unready && !count_group(m, POD_MISSING)) {
        return WITHIN(first) ? current : (int64_t) ceil(first * (double) r->n);
    }
    fill_in(m, r);
    *r = ratio_of(m);
    if (WITHIN(r->value) || (first < 1.0 && r->value > 1.0) || (first > 1.0 && r->value < 1.0)) {
        return current;
    }
    int64_t wanted = (int64_t) ceil(r->value * (double) r->n);
    bool turns = (r->value < 1.0 && wanted > current) || (r->value > 1.0 && wanted < current);
    return turns ? current : wanted;
#undef WITHIN
}

/* ---- kinds of metrics ---- */

static int load_metric(const struct json *spec, struct metric *m, struct err *e)
{
    const char *type = json_get_text(spec, "type"), *amount;
    bool of_container = streq(type, "ContainerResource");
    const struct json *source = json_get(spec, of_container ? "containerResource" : "resource");
    const struct json *target = json_get(source, "target");
    if (!of_container && !streq(type, "Resource")) {
        return err_set(e, -ENODATA,
                       "metrics of the type %s have no source: this cluster serves "
                       "metrics.k8s.io only",
                       type);
    }
    m->resource = json_get_text(source, "name");
    m->container = of_container ? json_get_text(source, "container") : NULL;
    m->of_request = streq(json_get_text(target, "type"), "Utilization");
    if (m->of_request) {
        m->target = json_get_int_or(json_get(target, "averageUtilization"), 0);
        return 0;
    }
    amount = json_path_string(target, "averageValue", NULL);
    return amount && api_quantity_value(amount, MILLI, &m->target, NULL) == 0
               ? 0
               : err_set(e, -ENODATA, "the target of %s has no average value", m->resource);
}

int autoscale_metric_replicas(const struct json *metric, const struct autoscale_input *in,
                              int64_t current, double tolerance_up, double tolerance_down,
                              int64_t now_ms, struct autoscale_metric *ret, struct err *e)
{
    struct metric m = {0};
    int r = load_metric(metric, &m, e);
    if (r < 0) {
        return r;
    }
    if (!in->metrics) {
        return err_set(e, -ENODATA, "unable to fetch metrics from resource metrics API: %s",
                       in->metrics_error ? in->metrics_error : "");
    }
    if (!json_count(in->pods)) {
        return err_set(e, -ENODATA, "no pods returned by selector while calculating replica count");
    }
    r = load_samples(&m, in, now_ms, e);
    struct ratio ratio = r == 0 ? ratio_of(&m) : (struct ratio){0};
    if (r == 0 && !ratio.n) {
        r = err_set(e, -ENODATA,
                    "did not receive metrics for targeted pods (pods might be unready)");
    }
    if (r == 0) {
        ret->utilization = ratio.utilization;
        ret->average = ratio.average;
        ret->replicas = replicas_for(&m, &ratio, current, tolerance_up, tolerance_down);
    }
    free(m.list);
    return r;
}
