/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins that are off by default, and do what those of OpenShift 3 and Kubernetes do.
 *
 * AlwaysPullImages: pods pull their images anew, so that a node's copy serves only users who have
 * the credentials for it.  RunOnceDuration: pods that end by themselves get a deadline.
 * ClusterResourceOverride: requests, and limits of processors, follow from limits.
 * LimitPodHardAntiAffinityTopology: required anti-affinity is about nodes alone.
 * DenyEscalatingExec, DenyExecOnPrivileged: users enter no containers with rights over the node. */
#include "api/quantity.h"
#include "apiserver/access/security.h"
#include "apiserver/admission/plugin_config.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/request/server_priv.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define RUN_ONCE_ANNOTATION "openshift.io/active-deadline-seconds-override"
#define OVERRIDE_ANNOTATION "quota.openshift.io/cluster-resource-override-enabled"
#define HOSTNAME "kubernetes.io/hostname"

static const char *const container_lists[] = {"initContainers", "containers",
                                              "ephemeralContainers"};

static bool is_of_node(const struct request *q)
{
    return !q->server->security->always_allow && user_node(q->user);
}

static const char *project_annotation(const struct request *q, const char *key)
{
    return json_path_string(admission_namespace(q), "metadata", "annotations", key, NULL);
}

/* ---- AlwaysPullImages ---- */

static bool pulls(const struct json *container)
{
    return streq(json_get_text(container, "imagePullPolicy"), "Always");
}

static bool is_pulled(const struct request *q, const struct json *pod)
{
    return (!*q->subresource || streq(q->subresource, "ephemeralcontainers")) && !is_of_node(q) &&
           !json_path(pod, "metadata", "deletionTimestamp", NULL);
}

int pull_admit(struct request *q, struct json *obj, const struct json *old, struct outcome *outcome)
{
    bool changed = false;
    struct json *c;
    for (size_t i = 0; is_pulled(q, obj) && i < ARRAY_SIZE(container_lists); i++) {
        JSON_FOREACH (c, json_path(obj, "spec", container_lists[i], NULL)) {
            if (json_is(c, JSON_OBJECT) && !pulls(c)) {
                json_set_string(c, "imagePullPolicy", "Always");
                changed = true;
            }
        }
    }
    return changed;
}

int pull_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome)
{
    const struct json *c;
    for (size_t i = 0; is_pulled(q, obj) && i < ARRAY_SIZE(container_lists); i++) {
        size_t at = 0;
        JSON_FOREACH (c, json_path(obj, "spec", container_lists[i], NULL)) {
            CLEANUP_FREE char *field =
                xasprintf("spec.%s[%zu].imagePullPolicy", container_lists[i], at++);
            if (!pulls(c)) {
                return admission_refuse_field(q, obj, field, "must be Always", outcome);
            }
        }
    }
    return 0;
}

/* ---- RunOnceDuration ---- */

int run_once_admit(struct request *q, struct json *obj, const struct json *old,
                   struct outcome *outcome)
{
    struct json *spec = json_get(obj, "spec");
    const char *policy = json_get_text(spec, "restartPolicy");
    const char *text = project_annotation(q, RUN_ONCE_ANNOTATION);
    const struct admission_config *cfg = q->server->cfg.admission;
    int64_t max_s = cfg ? cfg->run_once_s : 0, has_s;
    if (*q->subresource || is_of_node(q) || !json_is(spec, JSON_OBJECT) ||
        (!streq(policy, "Never") && !streq(policy, "OnFailure"))) {
        return 0;
    }
    if (text && str_to_i64(text, 1, INT64_MAX, &max_s) < 0) {
        return admission_refuse(q, obj,
                                "the annotation " RUN_ONCE_ANNOTATION
                                " of its namespace is not a whole number of seconds above 0",
                                outcome);
    }
    const struct json *deadline = json_get(spec, "activeDeadlineSeconds");
    if (!max_s || (json_get_int(deadline, &has_s) == 0 && has_s <= max_s)) {
        return 0;
    }
    json_set_int(spec, "activeDeadlineSeconds", max_s);
    return 1;
}

/* ---- ClusterResourceOverride ---- */

/* The value of an amount in 10^'exponent'; -ENOENT: it is not stated, or is no quantity. */
static int amount(const struct json *list, const char *name, int exponent, int64_t *ret)
{
    const char *s = json_get_string(json_get(list, name));
    return s && api_quantity_value(s, exponent, ret, NULL) == 0 ? 0 : -ENOENT;
}

/* 'v' hundredths times 'percent', which neither overflows nor is negative. */
static int64_t percent_of(int64_t v, int64_t percent)
{
    return (int64_t) MIN((__int128) v * percent / 100, (__int128) INT64_MAX);
}

static bool set_amount(struct json *resources, const char *list, const char *name, int64_t n,
                       const char *unit)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE char *plain = xasprintf("%lld%s", (long long) n, unit);
    struct json *amounts = json_ensure_object(resources, list);
    if (api_quantity_format(plain, true, &text, NULL) < 0 ||
        streq(json_get_text(amounts, name), strbuf_cstr(&text))) {
        return false;
    }
    json_set_string(amounts, name, strbuf_cstr(&text));
    return true;
}

/* The request is a whole number of MiB (or of megabytes, where the limit has no binary unit), and
 * at least 1 MiB. */
static bool override_memory(struct json *resources, int64_t percent)
{
    const struct json *limits = json_get(resources, "limits");
    const char *text = json_get_text(limits, "memory");
    bool binary = strchr(text, 'i');
    int64_t bytes, unit = binary ? MIB : 1000000;
    if (!percent || amount(limits, "memory", 0, &bytes) < 0) {
        return false;
    }
    int64_t want = percent_of(bytes, percent) / unit;
    bool tiny = want * unit < MIB;
    return set_amount(resources, "requests", "memory", tiny ? 1 : want,
                      tiny || binary ? "Mi" : "M");
}

static bool override_cpu_limit(struct json *resources, int64_t percent)
{
    int64_t bytes;
    if (!percent || amount(json_get(resources, "limits"), "memory", 0, &bytes) < 0) {
        return false;
    }
    int64_t milli =
        (int64_t) MIN((__int128) bytes * 1000 * percent / 100 / GIB, (__int128) INT64_MAX);
    return set_amount(resources, "limits", "cpu", MAX(milli, 1), "m");
}

static bool override_cpu_request(struct json *resources, int64_t percent)
{
    int64_t milli;
    if (!percent || amount(json_get(resources, "limits"), "cpu", -3, &milli) < 0) {
        return false;
    }
    return set_amount(resources, "requests", "cpu", MAX(percent_of(milli, percent), 1), "m");
}

static bool override_container(struct json *container, const struct resource_override *o)
{
    struct json *resources = json_get(container, "resources");
    if (!json_is(json_get(resources, "limits"), JSON_OBJECT)) {
        return false;
    }
    bool changed = override_memory(resources, o->memory_request);
    changed |= override_cpu_limit(resources, o->cpu_limit);
    return override_cpu_request(resources, o->cpu_request) || changed;
}

int override_admit(struct request *q, struct json *obj, const struct json *old,
                   struct outcome *outcome)
{
    const struct admission_config *cfg = q->server->cfg.admission;
    const char *text = project_annotation(q, OVERRIDE_ANNOTATION);
    bool changed = false;
    struct json *c;
    if (*q->subresource || is_of_node(q) || !cfg || streq_null(text, "false")) {
        return 0;
    }
    if (text && !streq(text, "true")) {
        return admission_refuse(q, obj,
                                "the annotation " OVERRIDE_ANNOTATION
                                " of its namespace is neither true nor false",
                                outcome);
    }
    for (size_t i = 0; i < 2; i++) {
        JSON_FOREACH (c, json_path(obj, "spec", container_lists[i], NULL)) {
            changed |= override_container(c, &cfg->override);
        }
    }
    if (changed) {
        /* The class follows from the amounts. */
        json_remove(json_get(obj, "status"), "qosClass");
        q->kind->defaults(obj);
    }
    return changed;
}

/* ---- LimitPodHardAntiAffinityTopology ---- */

int anti_affinity_validate(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome)
{
    const struct json *term;
    const struct json *rules = json_path(obj, "spec", "affinity", "podAntiAffinity", NULL);
    JSON_FOREACH (term, json_get(rules, "requiredDuringSchedulingIgnoredDuringExecution")) {
        const char *key = json_get_text(term, "topologyKey");
        if (!*q->subresource && !is_of_node(q) && !streq(key, HOSTNAME)) {
            CLEANUP_FREE char *why = xasprintf(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %.80s but only "
                "key " HOSTNAME " is allowed",
                key);
            return admission_refuse(q, obj, why, outcome);
        }
    }
    return 0;
}

/* ---- entering containers ---- */

static bool is_privileged(const struct json *pod)
{
    const struct json *c;
    for (size_t i = 0; i < ARRAY_SIZE(container_lists); i++) {
        JSON_FOREACH (c, json_path(pod, "spec", container_lists[i], NULL)) {
            if (json_get_bool(json_path(c, "securityContext", "privileged", NULL), false)) {
                return true;
            }
        }
    }
    return false;
}

/* Ports and proxies lead to what a pod serves; exec and attach lead into it. */
static bool enters(const struct request *q)
{
    return streq(q->subresource, "exec") || streq(q->subresource, "attach");
}

int privileged_enter(const struct request *q, const struct json *pod, struct outcome *outcome)
{
    return enters(q) && is_privileged(pod)
               ? admission_refuse(q, pod, "cannot exec into or attach to a privileged container",
                                  outcome)
               : 0;
}

int escalating_enter(const struct request *q, const struct json *pod, struct outcome *outcome)
{
    const struct json *spec = json_get(pod, "spec");
    bool ipc = json_get_bool(json_get(spec, "hostIPC"), false);
    if (enters(q) && (ipc || json_get_bool(json_get(spec, "hostPID"), false))) {
        return admission_refuse(q, pod,
                                ipc ? "cannot exec into or attach to a container using host ipc"
                                    : "cannot exec into or attach to a container using host pid",
                                outcome);
    }
    return privileged_enter(q, pod, outcome);
}
