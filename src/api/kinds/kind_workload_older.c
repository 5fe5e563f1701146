/* SPDX-License-Identifier: Apache-2.0 */
/* Deployment, ReplicaSet, StatefulSet and DaemonSet under the versions before apps/v1: the same
 * objects under other paths. The versions differ in the defaults of fields that a client leaves out
 * (pkg/apis/extensions/v1beta1/defaults.go and pkg/apis/apps/v1beta1/defaults.go of Kubernetes
 * 1.15). */
#include "api/kind_util.h"
#include "api/kinds.h"

/* The fields are those of apps/v1 and batch/v1. */
static void unchanged(struct json *obj)
{
}

#define VIEW(name, kind) \
    const struct api_view name = {.of = &(kind), .show = unchanged, .store = unchanged}

VIEW(kind_batch_v1beta1_cron_job_view, api_kind_cron_job);
VIEW(kind_apps_v1beta2_daemon_set_view, api_kind_daemon_set);
VIEW(kind_apps_v1beta2_deployment_view, api_kind_deployment);
VIEW(kind_apps_v1beta2_replica_set_view, api_kind_replica_set);
VIEW(kind_apps_v1beta2_stateful_set_view, api_kind_stateful_set);
VIEW(kind_apps_v1beta1_deployment_view, api_kind_deployment);
VIEW(kind_apps_v1beta1_stateful_set_view, api_kind_stateful_set);
VIEW(kind_extensions_v1beta1_daemon_set_view, api_kind_daemon_set);
VIEW(kind_extensions_v1beta1_deployment_view, api_kind_deployment);
VIEW(kind_extensions_v1beta1_replica_set_view, api_kind_replica_set);

/* The labels of the template are those of the object, and its selector, where it has none. Returns
 * the spec; NULL: there is no such object. */
static struct json *default_labels(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *meta = json_get(obj, "metadata");
    const struct json *labels = json_path(spec, "template", "metadata", "labels", NULL);
    if (!json_is(spec, JSON_OBJECT)) {
        return NULL;
    }
    if (json_is(labels, JSON_OBJECT) && json_count(labels)) {
        struct json *selector = api_default_object(spec, "selector");
        if (selector && json_count(selector) == 0) {
            json_set(selector, "matchLabels", json_clone(labels));
        }
        if (json_count(json_get(meta, "labels")) == 0) {
            json_set(meta, "labels", json_clone(labels));
        }
    }
    return spec;
}

/* Sets the type of a strategy that names none. */
static void default_type(struct json *spec, const char *strategy, const char *type)
{
    struct json *s = api_default_object(spec, strategy);
    if (s && json_string_size(json_get(s, "type")) == 0) {
        json_set_string(s, "type", type);
    }
}

void kind_apps_v1beta1_deployment_prepare(struct json *obj, const struct json *old)
{
    kind_deployment_prepare(obj, old);
    struct json *spec = default_labels(obj);
    if (spec) {
        api_default_int(spec, "revisionHistoryLimit", 2);
    }
}

void kind_apps_v1beta1_stateful_set_prepare(struct json *obj, const struct json *old)
{
    kind_stateful_set_prepare(obj, old);
    struct json *spec = default_labels(obj);
    if (spec) {
        default_type(spec, "updateStrategy", "OnDelete");
    }
}

void kind_extensions_v1beta1_daemon_set_prepare(struct json *obj, const struct json *old)
{
    kind_daemon_set_prepare(obj, old);
    struct json *spec = default_labels(obj);
    if (spec) {
        default_type(spec, "updateStrategy", "OnDelete");
    }
}

/* Neither old ReplicaSets nor the time of a rollout have a limit. */
void kind_extensions_v1beta1_deployment_prepare(struct json *obj, const struct json *old)
{
    kind_deployment_prepare(obj, old);
    struct json *spec = default_labels(obj);
    if (!spec) {
        return;
    }
    struct json *strategy = api_default_object(spec, "strategy");
    api_default_int(spec, "revisionHistoryLimit", INT32_MAX);
    api_default_int(spec, "progressDeadlineSeconds", INT32_MAX);
    default_type(spec, "strategy", "RollingUpdate");
    if (strategy && streq(json_get_text(strategy, "type"), "RollingUpdate")) {
        struct json *rolling = api_default_object(strategy, "rollingUpdate");
        if (rolling) {
            api_default_int(rolling, "maxUnavailable", 1);
            api_default_int(rolling, "maxSurge", 1);
        }
    }
}

void kind_extensions_v1beta1_replica_set_prepare(struct json *obj, const struct json *old)
{
    kind_replica_set_prepare(obj, old);
    (void) default_labels(obj);
}
