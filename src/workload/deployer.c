/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/deployer.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#define GRACE_S 10
#define CONTAINER "deployment"

static const char *const hook_names[] = {"pre", "mid", "post"};

const char *deployer_hook_name(enum deployer_hook hook)
{
    return hook_names[hook];
}

/* ---- whose pods ---- */

bool deployer_is_for(const struct json *rc)
{
    const char *name = obj_annotation(rc, ROLLOUT_CONFIG);
    return name && *name && rollout_version(rc) > 0;
}

char *deployer_pod_key(const struct json *rc, const char *suffix)
{
    CLEANUP_FREE char *name = rollout_pod_name(obj_name(rc), suffix);
    return xasprintf("%s/%s", obj_namespace(rc), name);
}

/* The owner of the pod that is a ReplicationController; NULL: it has none. */
static const struct json *owner_of(const struct json *pod)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (obj_ref_is(ref, "", workload_replication_controllers.kind)) {
            return ref;
        }
    }
    return NULL;
}

bool deployer_owns(const struct json *rc, const struct json *pod)
{
    const struct json *ref = owner_of(pod);
    return ref && streq(json_get_text(ref, "uid"), obj_uid(rc));
}

/* Whether the pod is one of an earlier ReplicationController of this name. */
static bool is_stale(const struct json *rc, const struct json *pod)
{
    const struct json *ref = owner_of(pod);
    return ref && streq(json_get_text(ref, "name"), obj_name(rc)) && !deployer_owns(rc, pod);
}

struct json *deployer_owner_ref(const struct json *rc)
{
    struct json *ref = json_object();
    json_set_string(ref, "apiVersion", workload_replication_controllers.api_version);
    json_set_string(ref, "kind", workload_replication_controllers.kind);
    json_set_string(ref, "name", obj_name(rc));
    json_set_string(ref, "uid", obj_uid(rc));
    return ref;
}

void deployer_set_about(const struct json *rc, struct workload_plan *p)
{
    const struct json *ref = obj_controller(rc);
    if (ref &&
        obj_ref_is(ref, workload_deployment_configs.group, workload_deployment_configs.kind)) {
        p->about =
            obj_new(workload_deployment_configs.api_version, workload_deployment_configs.kind,
                    obj_namespace(rc), json_get_text(ref, "name"));
        json_set_string(json_get(p->about, "metadata"), "uid", json_get_text(ref, "uid"));
        p->about_kind = &workload_deployment_configs;
    }
}

/* ---- the plan under way ---- */

struct deployer {
    const struct deployer_input *in;
    struct json *body; /* The ReplicationController as it will be written; NULL: unchanged. */
    enum rollout_phase phase;
    struct workload_plan *plan;
};

static struct json *body_of(struct deployer *d)
{
    if (!d->body) {
        d->body = json_clone(d->in->rc);
    }
    return d->body;
}

static void annotate(struct deployer *d, const char *key, const char *value)
{
    if (!streq_null(obj_annotation(d->body ? d->body : d->in->rc, key), value)) {
        obj_set_annotation(body_of(d), key, value);
    }
}

static void drop_annotation(struct deployer *d, const char *key)
{
    if (obj_annotation(d->body ? d->body : d->in->rc, key)) {
        obj_remove_annotation(body_of(d), key);
    }
}

/* "2026-11-28T10:00:00Z" as Go prints a time: "2026-11-28 10:00:00 +0000 UTC". */
static void annotate_time(struct deployer *d, const char *key, const char *rfc3339)
{
    size_t n = strlen(rfc3339);
    if (n > 11 && rfc3339[10] == 'T' && rfc3339[n - 1] == 'Z') {
        CLEANUP_FREE char *text =
            xasprintf("%.10s %.*s +0000 UTC", rfc3339, (int) (n - 12), rfc3339 + 11);
        annotate(d, key, text);
    }
}

static void annotate_now(struct deployer *d, const char *key)
{
    char now[TIME_TEXT_SIZE];
    time_format_s(d->in->now_ms, now);
    annotate_time(d, key, now);
}

static int64_t attempts(const struct deployer *d)
{
    const char *s = obj_annotation(d->in->rc, ROLLOUT_ATTEMPTS);
    int64_t n;
    return s && str_to_i64(s, 0, DEPLOYER_ATTEMPTS, &n) == 0 ? n : 0;
}

static struct json *strategy_of(const struct json *config)
{
    return json_path(config, "spec", "strategy", NULL);
}

/* The copy of the DeploymentConfig; an empty object when it cannot be read. */
static struct json *config_of(const struct deployer *d)
{
    struct json *config = NULL;
    return rollout_decode(d->in->rc, &config, NULL) < 0 ? json_object() : config;
}

/* ---- the end ---- */

static void end(struct deployer *d, enum rollout_phase phase)
{
    const struct json *rc = d->in->rc;
    d->phase = phase;
    if (!obj_annotation(d->body ? d->body : rc, ROLLOUT_POD_COMPLETED)) {
        annotate_now(d, ROLLOUT_POD_COMPLETED);
    }
    drop_annotation(d, ROLLOUT_ATTEMPTS);
    if (phase == ROLLOUT_COMPLETE) {
        const char *desired = obj_annotation(rc, ROLLOUT_DESIRED);
        if (rollout_is_cancelled(rc)) {
            drop_annotation(d, ROLLOUT_CANCELLED);
            drop_annotation(d, ROLLOUT_REASON);
            workload_plan_say(d->plan, true, "FailedCancellation",
                              "Succeeded before cancel recorded");
        }
        annotate(d, ROLLOUT_REPLICAS, desired ? desired : "0");
        drop_annotation(d, ROLLOUT_DESIRED);
    } else if (rollout_is_cancelled(rc)) {
        workload_plan_say(d->plan, false, "RolloutCancelled", "Rollout for \"%s/%s\" cancelled",
                          obj_namespace(rc), obj_name(rc));
    }
    /* A test has pods only while its rollout goes on. */
    CLEANUP(json_free) struct json *config = config_of(d);
    if (json_get_bool(json_path(config, "spec", "test", NULL), false)) {
        json_set_int(json_ensure_object(body_of(d), "spec"), "replicas", 0);
    }
}

static void fail(struct deployer *d, const char *reason)
{
    annotate(d, ROLLOUT_REASON, reason);
    end(d, ROLLOUT_FAILED);
}

/* ---- pods ---- */

static void remove_pod(struct deployer *d, const struct workload_child *pod)
{
    if (pod && !pod->going) {
        (void) workload_plan_delete(d->plan, WORKLOAD_MAIN, &workload_pods, pod->obj);
    }
}

/* Removes the pods of the deployer and of its hooks that belong to the ReplicationController. */
static void remove_pods(struct deployer *d)
{
    for (size_t i = 0; i < N_HOOKS; i++) {
        const struct workload_child *pod = d->in->hooks[i];
        if (pod && deployer_owns(d->in->rc, pod->obj)) {
            remove_pod(d, pod);
        }
    }
    if (d->in->pod && deployer_owns(d->in->rc, d->in->pod->obj)) {
        remove_pod(d, d->in->pod);
    }
}

static void merge(struct json *pod, const char *key, const struct json *more)
{
    struct json *to = json_ensure_object(json_get(pod, "metadata"), key);
    for (size_t i = 0; i < json_count(more); i++) {
        if (!json_get(to, json_key_at(more, i))) {
            json_set(to, json_key_at(more, i), json_clone(json_at(more, i)));
        }
    }
}

void deployer_decorate(struct json *pod, const struct json *strategy)
{
    merge(pod, "labels", json_get(strategy, "labels"));
    merge(pod, "annotations", json_get(strategy, "annotations"));
}

static void copy_members(struct json *to, const struct json *from, const char *const *keys)
{
    for (; *keys; keys++) {
        const struct json *v = json_get(from, *keys);
        if (v) {
            json_set(to, *keys, json_clone(v));
        }
    }
}

static void add_variable(struct json *env, const char *name, const char *value)
{
    struct json *v = json_append(env, json_object());
    json_set_string(v, "name", name);
    json_set_string(v, "value", value);
}

static struct json *make_container(const struct deployer *d, const struct json *strategy)
{
    struct json *ct = json_object(), *env = json_array();
    const struct json *custom = json_get(strategy, "customParams"), *v;
    const struct json *resources = json_get(strategy, "resources");
    const char *image = json_get_text(custom, "image");
    json_set_string(ct, "name", CONTAINER);
    json_set_string(ct, "image", *image ? image : d->in->image);
    json_set_string(ct, "imagePullPolicy", "IfNotPresent");
    json_set_string(ct, "terminationMessagePolicy", "FallbackToLogsOnError");
    if (json_count(json_get(custom, "command"))) {
        json_set(ct, "command", json_clone(json_get(custom, "command")));
    }
    JSON_FOREACH (v, json_get(custom, "environment")) {
        json_append(env, json_clone(v));
    }
    add_variable(env, "OPENSHIFT_DEPLOYMENT_NAME", obj_name(d->in->rc));
    add_variable(env, "OPENSHIFT_DEPLOYMENT_NAMESPACE", obj_namespace(d->in->rc));
    json_set(ct, "env", env);
    if (resources) {
        json_set(ct, "resources", json_clone(resources));
    }
    return ct;
}

static struct json *make_pod(const struct deployer *d, const char *name,
                             const struct json *strategy)
{
    static const char *const copied[] = {
        "dnsPolicy",    "dnsConfig", "enableServiceLinks", "imagePullSecrets", "tolerations",
        "nodeSelector", NULL};
    const struct json *rc = d->in->rc;
    const char *config = obj_annotation(rc, ROLLOUT_CONFIG);
    struct json *pod =
        obj_new(workload_pods.api_version, workload_pods.kind, obj_namespace(rc), name);
    struct json *meta = json_get(pod, "metadata"), *spec = json_ensure_object(pod, "spec");
    obj_set_annotation(pod, ROLLOUT_NAME, obj_name(rc));
    obj_set_annotation(pod, ROLLOUT_CONFIG, config ? config : "");
    json_set_string(json_ensure_object(meta, "labels"), ROLLOUT_POD_FOR, obj_name(rc));
    json_append(json_ensure_array(meta, "ownerReferences"), deployer_owner_ref(rc));
    deployer_decorate(pod, strategy);
    copy_members(spec, json_path(rc, "spec", "template", "spec", NULL), copied);
    json_append(json_ensure_array(spec, "containers"), make_container(d, strategy));
    json_set_int(spec, "activeDeadlineSeconds", rollout_deadline_s(strategy));
    json_set_int(spec, "terminationGracePeriodSeconds", GRACE_S);
    json_set_string(spec, "restartPolicy", "Never");
    json_set_string(spec, "serviceAccountName", DEPLOYER_ACCOUNT);
    return pod;
}

/* The pod is there: the next plan sees whose it is. */
static bool pod_is_met(struct json *object, const struct workload_write *w, const struct json *live)
{
    return true;
}

static void create_pod(struct deployer *d, const struct json *strategy)
{
    CLEANUP_FREE char *name = rollout_pod_name(obj_name(d->in->rc), "deploy");
    struct workload_write *w = workload_plan_add(d->plan, WORKLOAD_FIRST, WORKLOAD_CREATE,
                                                 &workload_pods, name, make_pod(d, name, strategy));
    w->fail_reason = "FailedCreate";
    w->fail_message = xstrdup("Error creating deployer pod: ");
    d->plan->met = pod_is_met;
}

/* ---- phases ---- */

/* Whether the node has ended the pod, and not the program in it. */
static bool is_ended_by_node(const struct json *pod)
{
    static const char *const reasons[] = {
        "Evicted",    "NodeLost",   "NodeShutdown", "Shutdown",
        "Preempting", "Terminated", "NodeAffinity", "UnexpectedAdmissionError"};
    const char *reason = json_get_text(json_get(pod, "status"), "reason");
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (streq(reason, reasons[i])) {
            return true;
        }
    }
    return condition_is_true(pod, "DisruptionTarget");
}

/* The end of the first container that has ended; "": there is none. */
static const char *ended_at(const struct json *pod)
{
    const struct json *s;
    JSON_FOREACH (s, json_path(pod, "status", "containerStatuses", NULL)) {
        const char *at = json_get_text(json_path(s, "state", "terminated", NULL), "finishedAt");
        if (*at) {
            return at;
        }
    }
    return "";
}

static void note_pod(struct deployer *d)
{
    const struct json *pod = d->in->pod->obj;
    annotate(d, ROLLOUT_POD, obj_name(pod));
    annotate_time(d, ROLLOUT_POD_CREATED,
                  json_get_text(json_get(pod, "metadata"), "creationTimestamp"));
    annotate_time(d, ROLLOUT_POD_STARTED, json_get_text(json_get(pod, "status"), "startTime"));
}

/* The phase never goes back. */
static void follow_pod(struct deployer *d)
{
    const struct json *pod = d->in->pod->obj;
    if (workload_pod_has_phase(pod, "Succeeded")) {
        annotate_time(d, ROLLOUT_POD_COMPLETED, ended_at(pod));
        end(d, ROLLOUT_COMPLETE);
    } else if (workload_pod_has_phase(pod, "Failed") && !rollout_is_cancelled(d->in->rc) &&
               is_ended_by_node(pod) && attempts(d) < DEPLOYER_ATTEMPTS) {
        remove_pod(d, d->in->pod);
    } else if (workload_pod_has_phase(pod, "Failed")) {
        annotate_time(d, ROLLOUT_POD_COMPLETED, ended_at(pod));
        end(d, ROLLOUT_FAILED);
    } else if (workload_pod_has_phase(pod, "Running")) {
        d->phase = MAX(d->phase, ROLLOUT_RUNNING);
    } else {
        d->phase = MAX(d->phase, ROLLOUT_PENDING);
    }
}

/* Whether there is a pod of the name that is not this rollout's; it was dealt with. */
static bool is_in_the_way(struct deployer *d)
{
    const struct workload_child *pod = d->in->pod;
    if (!pod || deployer_owns(d->in->rc, pod->obj)) {
        return false;
    }
    if (pod->going || is_stale(d->in->rc, pod->obj)) {
        remove_pod(d, pod);
        return true;
    }
    workload_plan_say(d->plan, true, "FailedCreate",
                      "Error creating deployer pod since another pod with the same name (\"%s\") "
                      "exists",
                      obj_name(pod->obj));
    fail(d, ROLLOUT_REASON_UNRELATED);
    return true;
}

/* Whether the controllers do the rollout: it needs no container of the user. */
static bool is_in_process(const struct deployer *d, const struct json *strategy)
{
    return d->in->in_process && !json_get(strategy, "customParams") &&
           !streq(json_get_text(strategy, "type"), "Custom");
}

/* The time is over in which the pod has to be made; a rollout that was tried before has none. */
static bool is_late(struct deployer *d, const struct json *strategy)
{
    const struct json *rc = d->in->rc;
    int64_t timeout_s = rollout_timeout_s(strategy);
    int64_t end_ms = obj_created_ms(rc) + timeout_s * 1000;
    if (obj_annotation(rc, ROLLOUT_POD_COMPLETED)) {
        return false;
    }
    if (d->in->now_ms > end_ms) {
        workload_plan_say(d->plan, true, "RolloutTimeout",
                          "Rollout for \"%s/%s\" failed to create deployer pod (timeoutSeconds: "
                          "%llds)",
                          obj_namespace(rc), obj_name(rc), (long long) timeout_s);
        fail(d, ROLLOUT_REASON_NO_POD);
        return true;
    }
    workload_plan_recheck(d->plan, end_ms + 1000);
    return false;
}

static void plan_new(struct deployer *d)
{
    const struct json *rc = d->in->rc;
    CLEANUP(json_free) struct json *config = NULL;
    struct err e = {0};
    if (rollout_is_cancelled(rc)) {
        remove_pods(d);
        if (d->in->pod && deployer_owns(rc, d->in->pod->obj)) {
            d->phase = ROLLOUT_PENDING; /* The end of the pod comes first. */
        } else {
            end(d, ROLLOUT_FAILED);
        }
        return;
    }
    if (rollout_decode(rc, &config, &e) < 0) {
        workload_plan_say(d->plan, true, "FailedCreate", "Error creating deployer pod: %s", e.text);
        fail(d, ROLLOUT_REASON_NO_POD);
        return;
    }
    const struct json *strategy = strategy_of(config);
    drop_annotation(d, ROLLOUT_ATTEMPTS);
    drop_annotation(d, ROLLOUT_HOOKS);
    if (d->body) {
        return; /* Traces of an earlier try go first. */
    }
    if (is_in_the_way(d)) {
        return;
    }
    if (d->in->pod) {
        note_pod(d);
        d->phase = ROLLOUT_PENDING;
        follow_pod(d);
        return;
    }
    if (obj_annotation(rc, ROLLOUT_IGNORE)) {
        return; /* Another program does the rollout. */
    }
    if (is_in_process(d, strategy)) {
        annotate(d, ROLLOUT_IN_PROCESS, "true");
        d->phase = ROLLOUT_RUNNING;
    } else if (!is_late(d, strategy)) {
        drop_annotation(d, ROLLOUT_IN_PROCESS);
        drop_annotation(d, ROLLOUT_POD_COMPLETED);
        create_pod(d, strategy);
        d->phase = ROLLOUT_PENDING;
    }
}

static void make_again(struct deployer *d)
{
    CLEANUP(json_free) struct json *config = config_of(d);
    int64_t n = attempts(d);
    if (n >= DEPLOYER_ATTEMPTS) {
        workload_plan_say(d->plan, true, "Failed", "Deployer pod \"%s-deploy\" has gone missing",
                          obj_name(d->in->rc));
        fail(d, ROLLOUT_REASON_GONE);
        return;
    }
    CLEANUP_FREE char *text = xasprintf("%lld", (long long) n + 1);
    annotate(d, ROLLOUT_ATTEMPTS, text);
    create_pod(d, strategy_of(config));
}

/* Returns whether the controllers go on with the rollout. */
static bool plan_running(struct deployer *d)
{
    const struct json *rc = d->in->rc;
    const struct workload_child *pod = d->in->pod;
    CLEANUP(json_free) struct json *config = config_of(d);
    bool has_pod = pod && deployer_owns(rc, pod->obj);
    if (has_pod) {
        note_pod(d);
    }
    if (rollout_is_cancelled(rc)) {
        if (has_pod && workload_pod_has_phase(pod->obj, "Succeeded")) {
            follow_pod(d);
            return false;
        }
        remove_pods(d);
        if (!has_pod) {
            end(d, ROLLOUT_FAILED);
        }
        return false;
    }
    if (has_pod) {
        if (!pod->going || workload_pod_has_phase(pod->obj, "Succeeded")) {
            follow_pod(d);
        }
        return false;
    }
    if (obj_annotation(rc, ROLLOUT_IGNORE)) {
        return false;
    }
    if (obj_annotation(rc, ROLLOUT_IN_PROCESS) && is_in_process(d, strategy_of(config))) {
        return true;
    }
    if (!is_in_the_way(d)) {
        make_again(d);
    }
    return false;
}

/* Adds the write of the ReplicationController, if it changes. */
static void write_rc(struct deployer *d)
{
    if (d->phase != rollout_phase(d->in->rc)) {
        annotate(d, ROLLOUT_PHASE, rollout_phase_name(d->phase));
    }
    if (d->body) {
        json_set_string(d->body, "apiVersion", workload_replication_controllers.api_version);
        json_set_string(d->body, "kind", workload_replication_controllers.kind);
        (void) workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_UPDATE,
                                 &workload_replication_controllers, obj_name(d->in->rc),
                                 TAKE(d->body));
    }
}

enum deployer_task deployer_plan(const struct deployer_input *in, struct workload_plan *ret)
{
    struct deployer d = {.in = in, .phase = rollout_phase(in->rc), .plan = ret};
    bool deploys = false;
    deployer_set_about(in->rc, ret);
    if (obj_is_terminating(in->rc)) {
        return DEPLOYER_NONE;
    }
    switch (d.phase) {
    case ROLLOUT_NEW:
        plan_new(&d);
        break;
    case ROLLOUT_PENDING:
    case ROLLOUT_RUNNING:
        deploys = plan_running(&d);
        break;
    case ROLLOUT_FAILED:
        if (rollout_is_cancelled(in->rc)) {
            remove_pods(&d); /* A hook may have been created just before the end. */
        }
        break;
    case ROLLOUT_COMPLETE:
        break; /* The pods stay, for their logs. */
    }
    write_rc(&d);
    return deploys ? DEPLOYER_DEPLOY : DEPLOYER_NONE;
}

void deployer_end(const struct deployer_input *in, const char *why, struct workload_plan *ret)
{
    struct deployer d = {.in = in, .phase = rollout_phase(in->rc), .plan = ret};
    if (!ret->about) {
        deployer_set_about(in->rc, ret);
    }
    if (why) {
        fail(&d, why);
    } else {
        end(&d, ROLLOUT_COMPLETE);
    }
    write_rc(&d);
}
