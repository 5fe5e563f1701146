/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/workloads/survey.h"

#include "api/label_selector.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/workloads/history.h"
#include "cli/workloads/template.h"

#include <inttypes.h>

#define DEPTH_MAX 4 /* Owners above a pod: ReplicaSet, Deployment; Job, CronJob. */

const struct survey_source survey_sources[SURVEY_N] = {
    [SURVEY_SERVICES] = {"v1", "services", "svc", false},
    [SURVEY_ENDPOINTS] = {"v1", "endpoints", "endpoints", false},
    [SURVEY_PODS] = {"v1", "pods", "pod", false},
    [SURVEY_RCS] = {"v1", "replicationcontrollers", "rc", false},
    [SURVEY_CLAIMS] = {"v1", "persistentvolumeclaims", "pvc", false},
    [SURVEY_QUOTAS] = {"v1", "resourcequotas", "quota", false},
    [SURVEY_EVENTS] = {"v1", "events", "event", false},
    [SURVEY_DEPLOYMENTS] = {"apps/v1", "deployments", "deployment", false},
    [SURVEY_REPLICA_SETS] = {"apps/v1", "replicasets", "rs", false},
    [SURVEY_STATEFUL_SETS] = {"apps/v1", "statefulsets", "statefulset", false},
    [SURVEY_DAEMON_SETS] = {"apps/v1", "daemonsets", "daemonset", false},
    [SURVEY_JOBS] = {"batch/v1", "jobs", "job", false},
    [SURVEY_CRON_JOBS] = {"batch/v1", "cronjobs", "cronjob", false},
    [SURVEY_AUTOSCALERS] = {"autoscaling/v1", "horizontalpodautoscalers", "hpa", false},
    [SURVEY_DCS] = {"apps.openshift.io/v1", "deploymentconfigs", "dc", true},
    [SURVEY_ROUTES] = {"route.openshift.io/v1", "routes", "route", true},
};

static const enum survey_list workloads[] = {SURVEY_DEPLOYMENTS, SURVEY_DCS, SURVEY_STATEFUL_SETS,
                                             SURVEY_DAEMON_SETS};

static const struct json *items(const struct survey *s, enum survey_list list)
{
    return json_get(s->lists[list], "items");
}

static const char *name_of(const struct json *o)
{
    return json_get_text(json_get(o, "metadata"), "name");
}

static const struct json *controller_of(const struct json *o)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(o, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(ref, "controller"), false)) {
            return ref;
        }
    }
    return NULL;
}

static bool controls(const struct json *owner, const struct json *child)
{
    const char *uid = json_get_text(json_get(owner, "metadata"), "uid");
    return *uid && streq(json_get_text(controller_of(child), "uid"), uid);
}

/* "3 pods" and "1 pod" */
static void count_text(int64_t n, const char *one, struct strbuf *out)
{
    strbuf_addf(out, "%" PRId64 " %s%s", n, one, n == 1 ? "" : "s");
}

static void age(const struct survey *s, const struct json *o, struct strbuf *out)
{
    char text[TIME_TEXT_SIZE];
    int64_t at = 0;
    if (time_parse(json_get_text(json_get(o, "metadata"), "creationTimestamp"), &at) == 0) {
        time_format_age(MAX(s->now_ms - at, 0), text);
        strbuf_addf(out, " (%s)", text);
    }
}

/* ---- services ---- */

static void service_ports(const struct json *service, struct strbuf *out)
{
    const struct json *p;
    JSON_FOREACH (p, json_path(service, "spec", "ports", NULL)) {
        const struct json *target = json_get(p, "targetPort");
        const char *name = json_get_string(target);
        int64_t port = json_get_int_or(json_get(p, "port"), 0);
        int64_t number = json_get_int_or(target, port);
        strbuf_addf(out, "%s%" PRId64, p_i ? ", " : ":", port);
        if (name) {
            strbuf_addf(out, " -> %s", name);
        } else if (number != port) {
            strbuf_addf(out, " -> %" PRId64, number);
        }
    }
}

static void draw_routes(const struct survey *s, const struct json *service, struct strbuf *out)
{
    const struct json *r;
    JSON_FOREACH (r, items(s, SURVEY_ROUTES)) {
        const struct json *spec = json_get(r, "spec");
        if (!streq(json_get_text(json_get(spec, "to"), "name"), name_of(service))) {
            continue;
        }
        const char *host = json_get_text(spec, "host");
        strbuf_addf(out, "%s://%s%s to svc/%s (route/%s)\n",
                    json_get(spec, "tls") ? "https" : "http", *host ? host : "<no host>",
                    json_get_text(spec, "path"), name_of(service), name_of(r));
    }
}

static void draw_service(const struct survey *s, const struct json *service, struct strbuf *out)
{
    const struct json *spec = json_get(service, "spec");
    const char *ip = json_get_text(spec, "clusterIP"), *type = json_get_text(spec, "type");
    draw_routes(s, service, out);
    strbuf_addf(out, "svc/%s", name_of(service));
    if (streq(type, "ExternalName")) {
        strbuf_addf(out, " - the name %s\n", json_get_text(spec, "externalName"));
        return;
    }
    strbuf_addf(out, " - %s", streq(ip, "None") ? "headless " : *ip ? ip : "<no address>");
    service_ports(service, out);
    strbuf_addf(out, "%s%s\n", streq(type, "NodePort") || streq(type, "LoadBalancer") ? " " : "",
                streq(type, "NodePort") || streq(type, "LoadBalancer") ? type : "");
}

/* Whether the service's selector matches the labels. */
static bool selects(const struct json *service, const struct json *labels)
{
    const struct json *selector = json_path(service, "spec", "selector", NULL);
    for (size_t i = 0; i < json_count(selector); i++) {
        const char *value = json_get_string(json_get(labels, json_key_at(selector, i)));
        if (!value || !streq_null(json_get_string(json_at(selector, i)), value)) {
            return false;
        }
    }
    return json_count(selector) > 0;
}

/* ---- workloads ---- */

static void draw_pod(const struct survey *s, const struct json *pod, const char *indent,
                     struct strbuf *out)
{
    const struct json *status = json_get(pod, "status"), *c;
    const char *phase = json_get_text(status, "phase");
    int64_t restarts = 0;
    size_t ready = 0, all = json_count(json_path(pod, "spec", "containers", NULL));
    JSON_FOREACH (c, json_get(status, "containerStatuses")) {
        restarts += json_get_int_or(json_get(c, "restartCount"), 0);
        ready += json_get_bool(json_get(c, "ready"), false);
    }
    strbuf_addf(out, "%spod/%s %s %zu/%zu ready", indent, name_of(pod),
                json_path_string(pod, "metadata", "deletionTimestamp", NULL) ? "ends"
                : *phase                                                     ? phase
                                                                             : "Pending",
                ready, all);
    if (restarts > 0) {
        strbuf_addf(out, ", ");
        count_text(restarts, "restart", out);
    }
    age(s, pod, out);
    strbuf_addc(out, '\n');
}

static void draw_pods_of(const struct survey *s, const struct json *owner, const char *indent,
                         struct strbuf *out)
{
    const struct json *pod;
    JSON_FOREACH (pod, items(s, SURVEY_PODS)) {
        if (controls(owner, pod)) {
            draw_pod(s, pod, indent, out);
        }
    }
}

static void draw_images(const struct json *template, struct strbuf *out)
{
    const struct json *c;
    JSON_FOREACH (c, json_path(template, "spec", "containers", NULL)) {
        strbuf_addf(out, "%s%s", c_i ? ", " : "", json_get_text(c, "image"));
    }
}

/* "deployment #2, running for 5m - 3 pods" of one set that has pods, or of the newest. */
static void draw_set(const struct survey *s, const struct json *set, const char *what,
                     int64_t revision, const char *phase, struct strbuf *out)
{
    int64_t wanted = number_at(set, "spec", "replicas", 0);
    int64_t ready = number_at(set, "status", "readyReplicas", 0);
    strbuf_addf(out, "    %s #%" PRId64 "%s%s", what, revision, *phase ? " " : "", phase);
    age(s, set, out);
    strbuf_adds(out, " - ");
    if (ready == wanted) {
        count_text(wanted, "pod", out);
    } else {
        strbuf_addf(out, "%" PRId64 "/%" PRId64 " pods", ready, wanted);
    }
    strbuf_addc(out, '\n');
    draw_pods_of(s, set, "      ", out);
}

static bool has_pods(const struct json *set)
{
    return number_at(set, "spec", "replicas", 0) > 0 || number_at(set, "status", "replicas", 0) > 0;
}

static int64_t annotated_number(const struct json *o, const char *key)
{
    const char *text = annotation_of(o, key);
    int64_t n = 0;
    return text && str_to_i64(text, 0, INT64_MAX, &n) == 0 ? n : 0;
}

static void draw_sets(const struct survey *s, enum survey_list list, const struct json *owner,
                      struct strbuf *out)
{
    bool dc = list == SURVEY_DCS;
    const struct json *set;
    JSON_FOREACH (set, items(s, dc ? SURVEY_RCS : SURVEY_REPLICA_SETS)) {
        bool ours =
            dc ? streq_null(annotation_of(set, DC_NAME), name_of(owner)) : controls(owner, set);
        if (!ours || (!has_pods(set) && (!dc || dc_phase_is_terminal(set)))) {
            continue;
        }
        draw_set(s, set, dc ? "deployment" : "revision",
                 annotated_number(set, dc ? DC_VERSION : "deployment.kubernetes.io/revision"),
                 dc ? dc_phase(set) : "", out);
    }
}

static void draw_workload(const struct survey *s, enum survey_list list, const struct json *o,
                          struct strbuf *out)
{
    strbuf_addf(out, "  %s/%s ", survey_sources[list].label, name_of(o));
    strbuf_adds(out, list == SURVEY_DAEMON_SETS ? "runs on each node " : "deploys ");
    draw_images(json_path(o, "spec", "template", NULL), out);
    strbuf_adds(out,
                json_get_bool(json_path(o, "spec", "paused", NULL), false) ? " (paused)\n" : "\n");
    if (list == SURVEY_DEPLOYMENTS || list == SURVEY_DCS) {
        draw_sets(s, list, o, out);
        return;
    }
    bool ds = list == SURVEY_DAEMON_SETS;
    strbuf_addf(out, "    %" PRId64 "/%" PRId64 " pods\n",
                number_at(o, "status", ds ? "numberReady" : "readyReplicas", 0),
                ds ? number_at(o, "status", "desiredNumberScheduled", 0)
                   : number_at(o, "spec", "replicas", 1));
    draw_pods_of(s, o, "      ", out);
}

static bool is_of_service(const struct json *service, const struct json *workload)
{
    return selects(service, json_path(workload, "spec", "template", "metadata", "labels", NULL));
}

static bool has_service(const struct survey *s, const struct json *labels)
{
    const struct json *service;
    JSON_FOREACH (service, items(s, SURVEY_SERVICES)) {
        if (selects(service, labels)) {
            return true;
        }
    }
    return false;
}

/* Draws the workloads of a service, or those of none. */
static size_t draw_workloads(const struct survey *s, const struct json *service, struct strbuf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(workloads); i++) {
        const struct json *o;
        JSON_FOREACH (o, items(s, workloads[i])) {
            const struct json *labels =
                json_path(o, "spec", "template", "metadata", "labels", NULL);
            if (service ? is_of_service(service, o) : !has_service(s, labels)) {
                draw_workload(s, workloads[i], o, out);
                n++;
            }
        }
    }
    return n;
}

/* Draws pods and sets that no other object makes: a pod of the service, or of none. */
static size_t draw_alone(const struct survey *s, const struct json *service, struct strbuf *out)
{
    static const enum survey_list sets[] = {SURVEY_RCS, SURVEY_REPLICA_SETS};
    size_t n = 0;
    const struct json *o;
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        JSON_FOREACH (o, items(s, sets[i])) {
            const struct json *labels =
                json_path(o, "spec", "template", "metadata", "labels", NULL);
            if (controller_of(o) || annotation_of(o, DC_NAME) ||
                (service ? !selects(service, labels) : has_service(s, labels))) {
                continue;
            }
            strbuf_addf(out, "  %s/%s runs ", survey_sources[sets[i]].label, name_of(o));
            draw_images(json_path(o, "spec", "template", NULL), out);
            strbuf_addf(out, " - %" PRId64 "/%" PRId64 " pods\n",
                        number_at(o, "status", "readyReplicas", 0),
                        number_at(o, "spec", "replicas", 1));
            draw_pods_of(s, o, "      ", out);
            n++;
        }
    }
    JSON_FOREACH (o, items(s, SURVEY_PODS)) {
        const struct json *labels = json_path(o, "metadata", "labels", NULL);
        const char *phase = json_get_text(json_get(o, "status"), "phase");
        if (controller_of(o) || annotation_of(o, "kubernetes.io/config.mirror") ||
            streq(phase, "Succeeded") || json_get(labels, DC_HELPER_FOR) ||
            (service ? !selects(service, labels) : has_service(s, labels))) {
            continue;
        }
        draw_pod(s, o, "  ", out);
        n++;
    }
    return n;
}

static size_t draw_jobs(const struct survey *s, struct strbuf *out)
{
    size_t n = 0;
    const struct json *o;
    JSON_FOREACH (o, items(s, SURVEY_CRON_JOBS)) {
        strbuf_addf(out, "cronjob/%s makes a job at \"%s\"%s\n", name_of(o),
                    json_get_text(json_get(o, "spec"), "schedule"),
                    json_get_bool(json_path(o, "spec", "suspend", NULL), false) ? " (suspended)"
                                                                                : "");
        n++;
    }
    JSON_FOREACH (o, items(s, SURVEY_JOBS)) {
        strbuf_addf(out, "job/%s runs ", name_of(o));
        draw_images(json_path(o, "spec", "template", NULL), out);
        strbuf_addf(out, " - %" PRId64 "/%" PRId64 " succeeded",
                    number_at(o, "status", "succeeded", 0), number_at(o, "spec", "completions", 1));
        if (number_at(o, "status", "failed", 0) > 0) {
            strbuf_addf(out, ", %" PRId64 " failed", number_at(o, "status", "failed", 0));
        }
        age(s, o, out);
        strbuf_addc(out, '\n');
        n++;
    }
    return n;
}

/* ---- the whole ---- */

static void draw_problems(const struct survey *s, struct strbuf *out)
{
    static const struct {
        const char *severity, *title;
    } rows[] = {{"error", "Errors"}, {"warning", "Warnings"}, {"info", "Info"}};
    CLEANUP(json_free) struct json *problems = survey_problems(s);
    size_t hidden = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct json *p;
        size_t n = 0;
        JSON_FOREACH (p, problems) {
            if (!streq(json_get_text(p, "severity"), rows[i].severity)) {
                continue;
            }
            if (!s->suggest && streq(rows[i].severity, "info")) {
                hidden++;
                continue;
            }
            if (n++ == 0) {
                strbuf_addf(out, "\n%s:\n", rows[i].title);
            }
            strbuf_addf(out, "  * %s %s\n", json_get_text(p, "object"), json_get_text(p, "text"));
            if (s->suggest || streq(rows[i].severity, "error")) {
                strbuf_addf(out, "    try: %s\n", json_get_text(p, "advice"));
            }
        }
    }
    if (json_count(problems) == 0) {
        strbuf_adds(out, "\nNothing is wrong.\n");
    } else if (hidden > 0) {
        strbuf_adds(out, "\n");
        count_text((int64_t) hidden, "hint", out);
        strbuf_adds(out, " more: tenet status --suggest shows them.\n");
    }
}

void survey_draw(const struct survey *s, struct strbuf *out)
{
    const struct json *service;
    size_t n = 0;
    strbuf_addf(out, "In project %s on server %s\n", s->project, s->server);
    JSON_FOREACH (service, items(s, SURVEY_SERVICES)) {
        strbuf_addc(out, '\n');
        draw_service(s, service, out);
        n += 1 + draw_workloads(s, service, out) + draw_alone(s, service, out);
    }
    CLEANUP_STRBUF struct strbuf alone = STRBUF_INIT;
    size_t more = draw_workloads(s, NULL, &alone) + draw_alone(s, NULL, &alone);
    if (more > 0) {
        strbuf_addf(out, "\nWithout a service:\n%s", strbuf_cstr(&alone));
    }
    CLEANUP_STRBUF struct strbuf jobs = STRBUF_INIT;
    size_t n_jobs = draw_jobs(s, &jobs);
    if (n_jobs > 0) {
        strbuf_addf(out, "\n%s", strbuf_cstr(&jobs));
    }
    if (n + more + n_jobs == 0) {
        strbuf_adds(out, "\nYou have no services, workloads or pods here.\n"
                         "Run 'tenet create deployment NAME --image IMAGE' to begin.\n");
    }
    draw_problems(s, out);
}
