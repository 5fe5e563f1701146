/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/template_instance.h"

#include "api/condition.h"
#include "api/obj.h"

#include <strings.h>

#define WAIT_FOR_READY "template.alpha.openshift.io/wait-for-ready"
#define ACCOUNT_NAME "kubernetes.io/service-account.name"

/* ---- dependencies ---- */

static bool is_kind(const struct json *o, const char *kind)
{
    return streq(json_get_text(o, "kind"), kind);
}

/* Whether one of the first 'n' objects has the kind and the name. */
static bool has_before(const struct json *objects, size_t n, const char *kind, const char *name)
{
    for (size_t i = 0; name && i < n; i++) {
        if (is_kind(json_at(objects, i), kind) && streq(obj_name(json_at(objects, i)), name)) {
            return true;
        }
    }
    return false;
}

bool template_object_depends(const struct json *objects, size_t i)
{
    const struct json *o = json_at(objects, i), *spec = json_get(o, "spec");
    const struct json *role = json_get(o, "roleRef");
    const char *ns = obj_namespace(o);
    if (has_before(objects, i, "Namespace", ns) || has_before(objects, i, "Project", ns)) {
        return true;
    }
    if (is_kind(o, "Pod")) {
        return has_before(objects, i, "ServiceAccount",
                          json_get_text(spec, "serviceAccountName")) ||
               has_before(objects, i, "ServiceAccount", json_get_text(spec, "serviceAccount")) ||
               has_before(objects, i, "PriorityClass", json_get_text(spec, "priorityClassName")) ||
               has_before(objects, i, "RuntimeClass", json_get_text(spec, "runtimeClassName"));
    }
    if (is_kind(o, "Secret")) {
        return has_before(objects, i, "ServiceAccount", obj_annotation(o, ACCOUNT_NAME));
    }
    return role && has_before(objects, i, json_get_text(role, "kind"), json_get_text(role, "name"));
}

/* ---- readiness ---- */

static int64_t status_number(const struct json *o, const char *key)
{
    return json_get_int_or(json_path(o, "status", key, NULL), 0);
}

static bool is_observed(const struct json *o)
{
    return status_number(o, "observedGeneration") >= obj_generation(o);
}

static const char *condition_status(const struct json *o, const char *type)
{
    return json_get_text(condition_find(o, type), "status");
}

static int64_t desired(const struct json *o)
{
    return json_get_int_or(json_path(o, "spec", "replicas", NULL), 1);
}

static enum template_state deployment_state(const struct json *o)
{
    if (!is_observed(o)) {
        return TEMPLATE_WAITING;
    }
    if (streq(condition_status(o, "Progressing"), "False")) {
        return TEMPLATE_FAILED;
    }
    return status_number(o, "updatedReplicas") == desired(o) &&
                   status_number(o, "availableReplicas") == desired(o) &&
                   status_number(o, "replicas") == desired(o)
               ? TEMPLATE_READY
               : TEMPLATE_WAITING;
}

/* A rollout that failed was either given up or lost to its deadline. */
static enum template_state config_state(const struct json *o)
{
    const struct json *progress = condition_find(o, "Progressing");
    if (!is_observed(o) || !status_number(o, "latestVersion")) {
        return TEMPLATE_WAITING;
    }
    if (streq(json_get_text(progress, "status"), "False")) {
        return TEMPLATE_FAILED;
    }
    return condition_is_true(o, "Available") &&
                   streq(json_get_text(progress, "reason"), "NewReplicationControllerAvailable")
               ? TEMPLATE_READY
               : TEMPLATE_WAITING;
}

static enum template_state set_state(const struct json *o)
{
    return is_observed(o) && status_number(o, "readyReplicas") == desired(o) ? TEMPLATE_READY
                                                                             : TEMPLATE_WAITING;
}

static enum template_state job_state(const struct json *o)
{
    return condition_is_true(o, "Complete") ? TEMPLATE_READY
           : condition_is_true(o, "Failed") ? TEMPLATE_FAILED
                                            : TEMPLATE_WAITING;
}

static enum template_state build_state(const struct json *o)
{
    const char *phase = json_get_text(json_get(o, "status"), "phase");
    return streq(phase, "Complete") ? TEMPLATE_READY
           : streq(phase, "Failed") || streq(phase, "Error") || streq(phase, "Cancelled")
               ? TEMPLATE_FAILED
               : TEMPLATE_WAITING;
}

/* Each router has to admit the route. */
static enum template_state route_state(const struct json *o)
{
    const struct json *list = json_path(o, "status", "ingress", NULL), *ingress, *c;
    size_t admitted = 0;
    JSON_FOREACH (ingress, list) {
        JSON_FOREACH (c, json_get(ingress, "conditions")) {
            admitted += streq(json_get_text(c, "type"), "Admitted") &&
                        streq(json_get_text(c, "status"), "True");
        }
    }
    return json_count(list) && admitted >= json_count(list) ? TEMPLATE_READY : TEMPLATE_WAITING;
}

static const struct readiness {
    const char *group, *kind;
    enum template_state (*state)(const struct json *o);
} kinds[] = {
    {"apps/", "Deployment", deployment_state},
    {"apps/", "StatefulSet", set_state},
    {"batch/", "Job", job_state},
    {"apps.openshift.io/", "DeploymentConfig", config_state},
    {"build.openshift.io/", "Build", build_state},
    {"route.openshift.io/", "Route", route_state},
};

static const struct readiness *readiness_of(const struct json *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (is_kind(o, kinds[i].kind) &&
            str_has_prefix(json_get_text(o, "apiVersion"), kinds[i].group)) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool template_object_is_awaited(const struct json *obj)
{
    const char *wait = obj_annotation(obj, WAIT_FOR_READY);
    return wait && !strcasecmp(wait, "true") && readiness_of(obj);
}

enum template_state template_object_state(const struct json *obj)
{
    return template_object_is_awaited(obj) ? readiness_of(obj)->state(obj) : TEMPLATE_READY;
}
