/* SPDX-License-Identifier: Apache-2.0 */
/* Deployment, ReplicaSet, StatefulSet and DaemonSet (apps/v1), ReplicationController (core v1):
 * the rules beyond their descriptions, in the words of kube-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/template.h"
#include "api/label_selector.h"

/* ---- cells ---- */

struct json *kind_deployment_cell_ready(const struct json *obj, int64_t now_ms)
{
    int64_t ready = json_get_int_or(json_path(obj, "status", "readyReplicas", NULL), 0);
    int64_t all = json_get_int_or(json_path(obj, "spec", "replicas", NULL), 0);
    return json_stringf("%lld/%lld", (long long) ready, (long long) all);
}

struct json *kind_daemon_set_cell_node_selector(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    label_selector_write(json_path(obj, "spec", "template", "spec", "nodeSelector", NULL), &b);
    return api_cell_text(strbuf_cstr(&b), "<none>");
}

/* ---- defaults ---- */

static void default_share(struct json *obj, const char *key, struct json *share)
{
    const struct json *v = json_get(obj, key);
    if (!v || json_is(v, JSON_NULL)) {
        json_set(obj, key, share);
    } else {
        json_free(share);
    }
}

/* The settings of the strategy RollingUpdate; NULL: another strategy. */
static struct json *rolling_update(struct json *obj, const char *strategy)
{
    struct json *s = json_path(obj, "spec", strategy, NULL);
    return streq_null(json_path_string(s, "type", NULL), "RollingUpdate")
               ? api_default_object(s, "rollingUpdate")
               : NULL;
}

void kind_deployment_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = template_prepare(obj, old);
    if (spec) {
        (void) template_ensure(spec, "template");
        (void) api_default_object(spec, "strategy");
    }
}

void kind_deployment_defaults(struct json *obj)
{
    struct json *rolling = rolling_update(obj, "strategy");
    if (rolling) {
        default_share(rolling, "maxUnavailable", json_string("25%"));
        default_share(rolling, "maxSurge", json_string("25%"));
    }
    template_default(json_path(obj, "spec", "template", NULL));
}

void kind_replica_set_prepare(struct json *obj, const struct json *old)
{
    (void) template_ensure(template_prepare(obj, old), "template");
}

void kind_replica_set_defaults(struct json *obj)
{
    template_default(json_path(obj, "spec", "template", NULL));
}

void kind_stateful_set_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = template_prepare(obj, old);
    if (spec) {
        (void) template_ensure(spec, "template");
        (void) api_default_object(spec, "updateStrategy");
        (void) api_default_object(spec, "persistentVolumeClaimRetentionPolicy");
    }
}

void kind_stateful_set_defaults(struct json *obj)
{
    struct json *rolling = rolling_update(obj, "updateStrategy");
    if (rolling) {
        api_default_int(rolling, "partition", 0);
    }
    template_default(json_path(obj, "spec", "template", NULL));
}

void kind_daemon_set_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = template_prepare(obj, old);
    if (spec) {
        (void) template_ensure(spec, "template");
        (void) api_default_object(spec, "updateStrategy");
    }
}

void kind_daemon_set_defaults(struct json *obj)
{
    struct json *rolling = rolling_update(obj, "updateStrategy");
    if (rolling) {
        default_share(rolling, "maxUnavailable", json_int(1));
        default_share(rolling, "maxSurge", json_int(0));
    }
    template_default(json_path(obj, "spec", "template", NULL));
}

void kind_replication_controller_prepare(struct json *obj, const struct json *old)
{
    (void) template_prepare(obj, old);
}

/* Labels and selector are those of the template when there are none. */
void kind_replication_controller_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *meta = json_get(obj, "metadata");
    const struct json *labels = json_path(spec, "template", "metadata", "labels", NULL);
    if (json_is(labels, JSON_OBJECT) && json_count(labels)) {
        if (json_count(json_get(spec, "selector")) == 0) {
            json_set(spec, "selector", json_clone(labels));
        }
        if (json_count(json_get(meta, "labels")) == 0) {
            json_set(meta, "labels", json_clone(labels));
        }
    }
    template_default(json_get(spec, "template"));
}

/* ---- validation ---- */

static const struct json *template_of(const struct json *obj)
{
    return json_path(obj, "spec", "template", NULL);
}

static bool is_zero(const struct json *share)
{
    const char *s = json_get_string(share);
    return s ? strspn(s, "0%") == strlen(s) : json_get_int_or(share, 0) == 0;
}

static void check_rolling_update(struct api_causes *c, const char *field, const struct json *v)
{
    api_validate_share(c, API_FIELD("%s.maxUnavailable", field), json_get(v, "maxUnavailable"));
    api_validate_share(c, API_FIELD("%s.maxSurge", field), json_get(v, "maxSurge"));
}

static void check_deployment_strategy(struct api_causes *c, const struct json *strategy)
{
    static const char field[] = "spec.strategy.rollingUpdate";
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    const struct json *missing = json_get(rolling, "maxUnavailable");
    if (streq_null(json_path_string(strategy, "type", NULL), "Recreate")) {
        if (rolling) {
            api_forbidden(c, field, "may not be specified when strategy `type` is 'Recreate'");
        }
        return;
    }
    check_rolling_update(c, field, rolling);
    if (is_zero(missing) && is_zero(json_get(rolling, "maxSurge"))) {
        api_invalid(c, API_FIELD("%s.maxUnavailable", field), missing,
                    "may not be 0 when `maxSurge` is 0");
    }
}

static void check_collisions(struct api_causes *c, const struct json *obj, const struct json *old)
{
    const struct json *v = json_path(obj, "status", "collisionCount", NULL);
    if (json_get_int_or(v, 0) <
        json_get_int_or(json_path(old, "status", "collisionCount", NULL), 0)) {
        api_invalid(c, "status.collisionCount", v, "cannot be decremented");
    }
}

void kind_deployment_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const of_all[] = {"updatedReplicas", "readyReplicas", "availableReplicas",
                                         NULL};
    static const char *const of_ready[] = {"availableReplicas", NULL};
    const struct json *spec = json_get(obj, "spec");
    const struct json *deadline = json_get(spec, "progressDeadlineSeconds");
    template_check_selector(c, obj, old, "deployment");
    template_check(c, "spec.template", json_get(spec, "template"), template_of(old), "ReplicaSet");
    check_deployment_strategy(c, json_get(spec, "strategy"));
    if (json_get_int_or(deadline, 0) <= json_get_int_or(json_get(spec, "minReadySeconds"), 0)) {
        api_invalid(c, "spec.progressDeadlineSeconds", deadline,
                    "must be greater than minReadySeconds");
    }
    template_check_counts(c, obj, of_all, "replicas");
    template_check_counts(c, obj, of_ready, "readyReplicas");
    check_collisions(c, obj, old);
}

/* ReplicaSets and ReplicationControllers have the same counts. */
static void check_replicas(struct api_causes *c, const struct json *obj)
{
    static const char *const of_all[] = {"fullyLabeledReplicas", "readyReplicas",
                                         "availableReplicas", NULL};
    static const char *const of_ready[] = {"availableReplicas", NULL};
    template_check_counts(c, obj, of_all, "replicas");
    template_check_counts(c, obj, of_ready, "readyReplicas");
}

void kind_replica_set_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    template_check_selector(c, obj, old, "replicaset");
    template_check(c, "spec.template", template_of(obj), template_of(old), "ReplicaSet");
    check_replicas(c, obj);
}

void kind_replication_controller_validate(const struct json *obj, const struct json *old,
                                          struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *selector = json_get(spec, "selector");
    const struct json *template = json_get(spec, "template");
    const struct json *labels = json_path(template, "metadata", "labels", NULL);
    bool selected = true;
    if (json_count(selector) == 0) {
        api_required(c, "spec.selector", "");
    }
    if (!template) {
        api_required(c, "spec.template", "");
        return;
    }
    for (size_t i = 0; i < json_count(selector); i++) {
        const struct json *has = json_get(labels, json_key_at(selector, i));
        selected &= has && json_equal(has, json_at(selector, i));
    }
    if (!selected) {
        api_invalid(c, "spec.template.metadata.labels", labels,
                    "`selector` does not match template `labels`");
    }
    template_check(c, "spec.template", template, template_of(old), "ReplicationController");
    check_replicas(c, obj);
}

/* The spec without the fields that an update may change. */
static struct json *fixed_part(const struct json *obj)
{
    static const char *const free[] = {"replicas",        "ordinals",
                                       "template",        "updateStrategy",
                                       "minReadySeconds", "persistentVolumeClaimRetentionPolicy"};
    struct json *spec = json_clone(json_get(obj, "spec"));
    for (size_t i = 0; i < ARRAY_SIZE(free); i++) {
        json_remove(spec, free[i]);
    }
    return spec;
}

static bool has_volume(const struct json *pod, const char *name)
{
    const struct json *v;
    JSON_FOREACH (v, json_get(pod, "volumes")) {
        if (streq(json_get_text(v, "name"), name)) {
            return true;
        }
    }
    return false;
}

/* A copy of the StatefulSet's template as its pods have it: with a volume for each of its claims,
 * which containers may mount; NULL: there is none. */
static struct json *template_with_claims(const struct json *spec)
{
    struct json *out = json_clone(json_get(spec, "template")), *pod = json_get(out, "spec");
    const struct json *claim;
    JSON_FOREACH (claim, json_get(spec, "volumeClaimTemplates")) {
        const char *name = json_get_text(json_get(claim, "metadata"), "name");
        if (json_is(pod, JSON_OBJECT) && *name && !has_volume(pod, name)) {
            struct json *v = json_append(json_ensure_array(pod, "volumes"), json_object());
            json_set_string(v, "name", name);
            json_set_string(json_ensure_object(v, "persistentVolumeClaim"), "claimName", name);
        }
    }
    return out;
}

void kind_stateful_set_validate(const struct json *obj, const struct json *old,
                                struct api_causes *c)
{
    static const char *const counts[] = {"readyReplicas", "currentReplicas", "updatedReplicas",
                                         "availableReplicas", NULL};
    const struct json *spec = json_get(obj, "spec"), *strategy = json_get(spec, "updateStrategy");
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    template_check_selector(c, obj, NULL, "statefulset");
    CLEANUP(json_free) struct json *template = template_with_claims(spec);
    CLEANUP(json_free) struct json *template_before = template_with_claims(json_get(old, "spec"));
    template_check(c, "spec.template", template, template_before, "StatefulSet");
    if (rolling && !streq_null(json_path_string(strategy, "type", NULL), "RollingUpdate")) {
        api_invalid(c, "spec.updateStrategy.rollingUpdate", rolling,
                    "only allowed for updateStrategy 'RollingUpdate'");
    }
    api_validate_share(c, "spec.updateStrategy.rollingUpdate.maxUnavailable",
                       json_get(rolling, "maxUnavailable"));
    template_check_counts(c, obj, counts, "replicas");
    check_collisions(c, obj, old);
    CLEANUP(json_free) struct json *now = old ? fixed_part(obj) : NULL;
    CLEANUP(json_free) struct json *before = old ? fixed_part(old) : NULL;
    if (old && !json_equal(now, before)) {
        api_forbidden(c, "spec",
                      "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                      "'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and "
                      "'minReadySeconds' are forbidden");
    }
}

static void check_daemon_strategy(struct api_causes *c, const struct json *strategy)
{
    static const char field[] = "spec.updateStrategy.rollingUpdate";
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    const struct json *missing = json_get(rolling, "maxUnavailable");
    const struct json *surge = json_get(rolling, "maxSurge");
    if (!streq_null(json_path_string(strategy, "type", NULL), "RollingUpdate")) {
        return;
    }
    check_rolling_update(c, field, rolling);
    if (!is_zero(missing) && !is_zero(surge)) {
        api_invalid(c, API_FIELD("%s.maxSurge", field), surge,
                    "may not be set when maxUnavailable is non-zero");
    } else if (is_zero(missing) && is_zero(surge)) {
        api_required(c, API_FIELD("%s.maxUnavailable", field), "cannot be 0 when maxSurge is 0");
    }
}

void kind_daemon_set_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    template_check_selector(c, obj, old, "daemonset");
    template_check(c, "spec.template", json_get(spec, "template"), template_of(old), "DaemonSet");
    check_daemon_strategy(c, json_get(spec, "updateStrategy"));
    check_collisions(c, obj, old);
}
