/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/plan.h"

#include "api/obj.h"
#include "base/mem.h"

#include <stdio.h>

const struct workload_kind workload_pods = {"v1", "", "Pod", "pods"};
const struct workload_kind workload_replica_sets = {"apps/v1", "apps", "ReplicaSet", "replicasets"};
const struct workload_kind workload_replication_controllers = {"v1", "", "ReplicationController",
                                                               "replicationcontrollers"};
const struct workload_kind workload_deployments = {"apps/v1", "apps", "Deployment", "deployments"};
const struct workload_kind workload_daemon_sets = {"apps/v1", "apps", "DaemonSet", "daemonsets"};
const struct workload_kind workload_stateful_sets = {"apps/v1", "apps", "StatefulSet",
                                                     "statefulsets"};
const struct workload_kind workload_jobs = {"batch/v1", "batch", "Job", "jobs"};
const struct workload_kind workload_cron_jobs = {"batch/v1", "batch", "CronJob", "cronjobs"};
const struct workload_kind workload_deployment_configs = {
    "apps.openshift.io/v1", "apps.openshift.io", "DeploymentConfig", "deploymentconfigs"};
const struct workload_kind workload_revisions = {"apps/v1", "apps", "ControllerRevision",
                                                 "controllerrevisions"};
const struct workload_kind workload_claims = {"v1", "", "PersistentVolumeClaim",
                                              "persistentvolumeclaims"};

void workload_plan_done(struct workload_plan *p)
{
    for (size_t i = 0; i < p->n_writes; i++) {
        free(p->writes[i].name);
        free(p->writes[i].uid);
        free(p->writes[i].message);
        free(p->writes[i].fail_message);
        json_free(p->writes[i].body);
    }
    for (size_t i = 0; i < p->n_events; i++) {
        free(p->events[i].message);
    }
    free(p->writes);
    free(p->events);
    json_free(p->status);
    json_free(p->about);
    *p = (struct workload_plan){0};
}

struct workload_write *workload_plan_add(struct workload_plan *p, enum workload_stage stage,
                                         enum workload_verb verb, const struct workload_kind *kind,
                                         const char *name, struct json *body)
{
    p->writes = grow(p->writes, &p->cap_writes, p->n_writes + 1, sizeof *p->writes);
    /* Writes of one stage keep their order. */
    size_t at = p->n_writes++;
    while (at > 0 && p->writes[at - 1].stage > stage) {
        p->writes[at] = p->writes[at - 1];
        at--;
    }
    p->writes[at] = (struct workload_write){.verb = verb,
                                            .stage = stage,
                                            .kind = kind,
                                            .name = name ? xstrdup(name) : NULL,
                                            .body = body};
    return &p->writes[at];
}

struct workload_write *workload_plan_delete(struct workload_plan *p, enum workload_stage stage,
                                            const struct workload_kind *kind,
                                            const struct json *obj)
{
    struct json *options = json_object();
    json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(obj));
    struct workload_write *w =
        workload_plan_add(p, stage, WORKLOAD_DELETE, kind, obj_name(obj), options);
    w->uid = xstrdup(obj_uid(obj));
    return w;
}

void workload_plan_say(struct workload_plan *p, bool warning, const char *reason,
                       const char *format, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, format);
    strbuf_vaddf(&b, format, ap);
    va_end(ap);
    p->events = grow(p->events, &p->cap_events, p->n_events + 1, sizeof *p->events);
    p->events[p->n_events++] =
        (struct workload_event){.reason = reason, .message = strbuf_steal(&b), .warning = warning};
}

void workload_plan_recheck(struct workload_plan *p, int64_t at_ms)
{
    p->recheck_ms = p->recheck_ms ? MIN(p->recheck_ms, at_ms) : at_ms;
}
