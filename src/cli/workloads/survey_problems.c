/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/workloads/history.h"
#include "cli/workloads/progress.h"
#include "cli/workloads/survey.h"
#include "cli/workloads/template.h"

#include <inttypes.h>
#include <stdarg.h>

#define RESTARTS_MANY 10

struct problems {
    const struct survey *s;
    struct json *lists[3]; /* error, warning, info */
};

enum severity { ERROR, WARNING, INFO };

static const char *name_of(const struct json *o)
{
    return json_get_text(json_get(o, "metadata"), "name");
}

static const struct json *items(const struct survey *s, enum survey_list list)
{
    return json_get(s->lists[list], "items");
}

/* Adds a problem of an object; 'advice' is what the user can type or do. */
static void add(struct problems *p, enum severity severity, enum survey_list list,
                const struct json *o, char *text, char *advice)
{
    static const char *const names[] = {"error", "warning", "info"};
    CLEANUP_FREE char *owned_text = text;
    CLEANUP_FREE char *owned_advice = advice;
    struct json *one = json_append(p->lists[severity], json_object());
    json_set_string(one, "severity", names[severity]);
    json_set(one, "object", json_stringf("%s/%s", survey_sources[list].label, name_of(o)));
    json_set_string(one, "text", owned_text);
    json_set_string(one, "advice", owned_advice);
}

static const char *or_else(const char *text, const char *otherwise)
{
    return *text ? text : otherwise;
}

/* ---- pods ---- */

static void check_container(struct problems *p, const struct json *pod, const struct json *c)
{
    const char *name = json_get_text(c, "name");
    const struct json *waiting = json_path(c, "state", "waiting", NULL);
    const char *reason = json_get_text(waiting, "reason");
    int64_t restarts = json_get_int_or(json_get(c, "restartCount"), 0);
    if (streq(reason, "CrashLoopBackOff")) {
        const struct json *last = json_path(c, "lastState", "terminated", NULL);
        add(p, ERROR, SURVEY_PODS, pod,
            xasprintf("container %s crashes again and again (exit code %" PRId64 ", %" PRId64
                      " restarts)",
                      name, json_get_int_or(json_get(last, "exitCode"), 0), restarts),
            xasprintf("tenet logs -p pod/%s -c %s", name_of(pod), name));
    } else if (streq(reason, "ImagePullBackOff") || streq(reason, "ErrImagePull") ||
               streq(reason, "InvalidImageName") || streq(reason, "ErrImageNeverPull")) {
        add(p, ERROR, SURVEY_PODS, pod,
            xasprintf("cannot pull the image \"%s\" of container %s: %s", json_get_text(c, "image"),
                      name, or_else(json_get_text(waiting, "message"), reason)),
            xstrdup("correct the image with tenet set image, or add a pull secret to the service "
                    "account"));
    } else if (*reason && !streq(reason, "ContainerCreating") &&
               !streq(reason, "PodInitializing")) {
        add(p, ERROR, SURVEY_PODS, pod,
            xasprintf("container %s cannot start: %s", name,
                      or_else(json_get_text(waiting, "message"), reason)),
            xasprintf("tenet describe pod/%s", name_of(pod)));
    } else if (restarts >= RESTARTS_MANY) {
        add(p, WARNING, SURVEY_PODS, pod,
            xasprintf("container %s has restarted %" PRId64 " times", name, restarts),
            xasprintf("tenet logs -p pod/%s -c %s", name_of(pod), name));
    }
}

static void check_pod(struct problems *p, const struct json *pod)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    const struct json *scheduled = progress_condition(pod, "PodScheduled"), *c;
    if (json_path_string(pod, "metadata", "deletionTimestamp", NULL)) {
        return;
    }
    if (streq(json_get_text(scheduled, "status"), "False")) {
        add(p, ERROR, SURVEY_PODS, pod,
            xasprintf("has no node: %s",
                      or_else(json_get_text(scheduled, "message"), "the scheduler found none")),
            xasprintf("tenet describe pod/%s; lower its requests, or add nodes", name_of(pod)));
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (c, json_path(pod, "status", lists[i], NULL)) {
            check_container(p, pod, c);
        }
    }
    if (streq(json_get_text(json_get(pod, "status"), "reason"), "Evicted")) {
        add(p, WARNING, SURVEY_PODS, pod,
            xasprintf("was evicted: %s", json_get_text(json_get(pod, "status"), "message")),
            xasprintf("tenet delete pod/%s", name_of(pod)));
    }
}

/* ---- services ---- */

static const struct json *endpoints_of(const struct survey *s, const struct json *service)
{
    const struct json *o;
    JSON_FOREACH (o, items(s, SURVEY_ENDPOINTS)) {
        if (streq(name_of(o), name_of(service))) {
            return o;
        }
    }
    return NULL;
}

static void check_service(struct problems *p, const struct json *service)
{
    const struct json *endpoints = endpoints_of(p->s, service), *subset;
    size_t ready = 0, unready = 0;
    if (json_count(json_path(service, "spec", "selector", NULL)) == 0 ||
        annotation_of(service, "idling.alpha.openshift.io/idled-at")) {
        return;
    }
    JSON_FOREACH (subset, json_get(endpoints, "subsets")) {
        ready += json_count(json_get(subset, "addresses"));
        unready += json_count(json_get(subset, "notReadyAddresses"));
    }
    if (ready == 0 && unready == 0) {
        add(p, ERROR, SURVEY_SERVICES, service,
            xstrdup("has no endpoints: no pod matches its selector"),
            xasprintf("compare the labels of the pods with tenet get svc/%s -o "
                      "jsonpath={.spec.selector}",
                      name_of(service)));
    } else if (ready == 0) {
        add(p, ERROR, SURVEY_SERVICES, service,
            xasprintf("has no endpoints: none of its %zu pods is ready", unready),
            xstrdup("see what is wrong with the pods above, and their readiness probes"));
    }
}

/* ---- workloads ---- */

static void check_probes(struct problems *p, enum survey_list list, const struct json *o)
{
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    const struct json *c;
    JSON_FOREACH (c, json_path(o, "spec", "template", "spec", "containers", NULL)) {
        if (!json_get(c, "readinessProbe")) {
            strbuf_addf(&missing, "%s%s", missing.size ? ", " : "", json_get_text(c, "name"));
        }
    }
    if (missing.size) {
        add(p, INFO, list, o,
            xasprintf("has no readiness probe in %s: new pods get requests before they can answer",
                      strbuf_cstr(&missing)),
            xasprintf("tenet set probe %s/%s --readiness --get-url http://:8080/",
                      survey_sources[list].label, name_of(o)));
    }
}

/* A refusal by quota, by the admission of pods, or another failure of a creation. */
static void check_failure(struct problems *p, enum survey_list list, const struct json *o)
{
    const struct json *failure = progress_condition(o, "ReplicaFailure");
    const char *message = json_get_text(failure, "message");
    bool quota = strstr(message, "exceeded quota") != NULL;
    if (!streq(json_get_text(failure, "status"), "True")) {
        return;
    }
    add(p, ERROR, list, o,
        xasprintf("%s: %s", quota ? "is refused by a quota" : "cannot create its pods", message),
        quota ? xstrdup("tenet describe quota; lower requests or replicas, or ask for more")
              : xasprintf("tenet describe %s/%s", survey_sources[list].label, name_of(o)));
}

static void check_deployment(struct problems *p, const struct json *o)
{
    const struct json *progressing = progress_condition(o, "Progressing");
    check_failure(p, SURVEY_DEPLOYMENTS, o);
    check_probes(p, SURVEY_DEPLOYMENTS, o);
    if (streq(json_get_text(progressing, "reason"), "ProgressDeadlineExceeded")) {
        add(p, ERROR, SURVEY_DEPLOYMENTS, o,
            xasprintf("its rollout does not go on: %s", json_get_text(progressing, "message")),
            xasprintf("see its new pods, or tenet rollout undo deployment/%s", name_of(o)));
    }
}

static void check_dc(struct problems *p, const struct json *o)
{
    const struct json *progressing = progress_condition(o, "Progressing");
    const char *reason = json_get_text(progressing, "reason");
    check_probes(p, SURVEY_DCS, o);
    if (streq(reason, "ProgressDeadlineExceeded") ||
        (streq(json_get_text(progressing, "status"), "False") && *reason &&
         !streq(reason, "WaitingForImage"))) {
        add(p, ERROR, SURVEY_DCS, o,
            xasprintf("its latest rollout failed: %s",
                      or_else(json_get_text(progressing, "message"), reason)),
            xasprintf("tenet logs dc/%s; then tenet rollout retry dc/%s", name_of(o), name_of(o)));
    } else if (streq(reason, "WaitingForImage")) {
        add(p, WARNING, SURVEY_DCS, o,
            xasprintf("waits for its image: %s", json_get_text(progressing, "message")),
            xasprintf("tenet set triggers dc/%s shows the image stream tag", name_of(o)));
    } else if (number_at(o, "status", "latestVersion", 0) == 0 &&
               json_count(json_path(o, "spec", "triggers", NULL)) == 0) {
        add(p, INFO, SURVEY_DCS, o, xstrdup("has no trigger, and was never rolled out"),
            xasprintf("tenet rollout latest dc/%s", name_of(o)));
    }
}

static void check_set(struct problems *p, enum survey_list list, const struct json *o)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(o, "metadata", "ownerReferences", NULL)) {
        /* A Deployment shows the failure of its set itself. */
        if (streq(json_get_text(ref, "kind"), "Deployment")) {
            return;
        }
    }
    check_failure(p, list, o);
}

static void check_job(struct problems *p, const struct json *o)
{
    const struct json *failed = progress_condition(o, "Failed");
    if (streq(json_get_text(failed, "status"), "True")) {
        add(p, ERROR, SURVEY_JOBS, o,
            xasprintf("failed: %s",
                      or_else(json_get_text(failed, "message"), json_get_text(failed, "reason"))),
            xasprintf("tenet logs job/%s", name_of(o)));
    }
}

static void check_autoscaler(struct problems *p, const struct json *o)
{
    CLEANUP(json_free) struct json *conditions = NULL;
    const char *text = annotation_of(o, "autoscaling.alpha.kubernetes.io/conditions");
    const struct json *c;
    if (!text || json_parse(text, strlen(text), &conditions, NULL) < 0) {
        return;
    }
    JSON_FOREACH (c, conditions) {
        if (!streq(json_get_text(c, "type"), "ScalingLimited") &&
            streq(json_get_text(c, "status"), "False")) {
            add(p, WARNING, SURVEY_AUTOSCALERS, o,
                xasprintf("does not scale: %s", json_get_text(c, "message")),
                xasprintf("tenet describe hpa/%s", name_of(o)));
            return;
        }
    }
}

/* ---- claims, quotas, routes ---- */

/* The message of the latest event about an object; NULL: there is none. */
static const char *latest_event(const struct survey *s, const char *kind, const char *name)
{
    const struct json *e;
    const char *message = NULL, *latest = "";
    JSON_FOREACH (e, items(s, SURVEY_EVENTS)) {
        const struct json *about = json_get(e, "involvedObject");
        const char *at = json_get_text(e, "lastTimestamp");
        if (streq(json_get_text(about, "kind"), kind) &&
            streq(json_get_text(about, "name"), name) && strcmp(at, latest) >= 0) {
            message = json_get_text(e, "message");
            latest = at;
        }
    }
    return message;
}

static void check_claim(struct problems *p, const struct json *o)
{
    const char *phase = json_get_text(json_get(o, "status"), "phase");
    const char *why = latest_event(p->s, "PersistentVolumeClaim", name_of(o));
    if (streq(phase, "Lost")) {
        add(p, ERROR, SURVEY_CLAIMS, o, xstrdup("has lost its volume"),
            xasprintf("restore the volume, or delete pvc/%s and its pods", name_of(o)));
    } else if (!streq(phase, "Bound")) {
        add(p, WARNING, SURVEY_CLAIMS, o,
            xasprintf("has no volume so far: %s", why ? why : "no reason was given"),
            xasprintf("tenet describe pvc/%s; tenet get pv", name_of(o)));
    }
}

static void check_quota(struct problems *p, const struct json *o)
{
    const struct json *hard = json_path(o, "status", "hard", NULL);
    CLEANUP_STRBUF struct strbuf full = STRBUF_INIT;
    for (size_t i = 0; i < json_count(hard); i++) {
        const char *key = json_key_at(hard, i), *limit = json_get_string(json_at(hard, i));
        const char *used = json_path_string(o, "status", "used", key, NULL);
        if (limit && used && streq(limit, used) && !streq(limit, "0")) {
            strbuf_addf(&full, "%s%s (%s)", full.size ? ", " : "", key, limit);
        }
    }
    if (full.size) {
        add(p, WARNING, SURVEY_QUOTAS, o, xasprintf("is used up: %s", strbuf_cstr(&full)),
            xasprintf("tenet describe quota/%s", name_of(o)));
    }
}

static void check_route(struct problems *p, const struct json *o)
{
    const char *to = json_get_text(json_path(o, "spec", "to", NULL), "name");
    const struct json *service;
    JSON_FOREACH (service, items(p->s, SURVEY_SERVICES)) {
        if (streq(name_of(service), to)) {
            return;
        }
    }
    add(p, ERROR, SURVEY_ROUTES, o,
        xasprintf("leads to the service \"%s\", which does not exist", to),
        xasprintf("create the service, or delete route/%s", name_of(o)));
}

static void check_rc(struct problems *p, const struct json *o)
{
    check_set(p, SURVEY_RCS, o);
}

static void check_replica_set(struct problems *p, const struct json *o)
{
    check_set(p, SURVEY_REPLICA_SETS, o);
}

static void check_stateful_set(struct problems *p, const struct json *o)
{
    check_probes(p, SURVEY_STATEFUL_SETS, o);
}

struct json *survey_problems(const struct survey *s)
{
    static const struct {
        enum survey_list list;
        void (*check)(struct problems *p, const struct json *o);
    } checks[] = {
        {SURVEY_PODS, check_pod},
        {SURVEY_SERVICES, check_service},
        {SURVEY_DEPLOYMENTS, check_deployment},
        {SURVEY_DCS, check_dc},
        {SURVEY_REPLICA_SETS, check_replica_set},
        {SURVEY_RCS, check_rc},
        {SURVEY_STATEFUL_SETS, check_stateful_set},
        {SURVEY_JOBS, check_job},
        {SURVEY_AUTOSCALERS, check_autoscaler},
        {SURVEY_CLAIMS, check_claim},
        {SURVEY_QUOTAS, check_quota},
        {SURVEY_ROUTES, check_route},
    };
    struct problems p = {.s = s, .lists = {json_array(), json_array(), json_array()}};
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        const struct json *o;
        JSON_FOREACH (o, items(s, checks[i].list)) {
            checks[i].check(&p, o);
        }
    }
    for (size_t i = 1; i < ARRAY_SIZE(p.lists); i++) {
        while (json_count(p.lists[i]) > 0) {
            json_append(p.lists[0], json_take_at(p.lists[i], 0));
        }
        json_free(p.lists[i]);
    }
    return p.lists[0];
}
