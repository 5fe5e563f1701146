/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kinds/pod_restrictions.h"

#include "api/kind_util.h"
#include "base/mem.h"

#define MAX_PRIORITY 1000000000 /* Higher priorities belong to the system's own pods. */

/* ---- paths of pods ---- */

static const struct {
    const char *group, *plural, *path;
} places[] = {
    {"", "pods", ""},
    {"", "podtemplates", "template."},
    {"", "replicationcontrollers", "spec.template."},
    {"", "deploymentconfigs", "spec.template."}, /* The first API of OpenShift 3. */
    {"apps", "daemonsets", "spec.template."},
    {"apps", "deployments", "spec.template."},
    {"apps", "replicasets", "spec.template."},
    {"apps", "statefulsets", "spec.template."},
    {"apps.openshift.io", "deploymentconfigs", "spec.template."},
    {"batch", "cronjobs", "spec.jobTemplate.spec.template."},
    {"batch", "jobs", "spec.template."},
    {"batch", "scheduledjobs", "spec.jobTemplate.spec.template."},
    {"extensions", "daemonsets", "spec.template."},
    {"extensions", "deployments", "spec.template."},
    {"extensions", "jobs", "spec.template."},
    {"extensions", "replicasets", "spec.template."},
};

const char *pod_restrictions_path(const char *group, const char *plural)
{
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (streq(places[i].group, group) && streq(places[i].plural, plural)) {
            return places[i].path;
        }
    }
    return NULL;
}

struct json *pod_restrictions_find(const struct json *obj, const char *path)
{
    struct json *pod = (struct json *) obj;
    while (pod && *path) {
        CLEANUP_FREE char *key = xstrndup(path, strcspn(path, "."));
        pod = json_get(pod, key);
        path += strlen(key) + 1;
    }
    return json_is(pod, JSON_OBJECT) ? pod : NULL;
}

/* ---- values ---- */

static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

static bool is_set(const struct json *v)
{
    return v && !json_is(v, JSON_NULL);
}

static bool is_false(const struct json *v)
{
    return !is_set(v) || (json_is(v, JSON_BOOL) && !json_get_bool(v, true));
}

static bool is_one_of(const struct json *v, const char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        if (streq_null(json_get_string(v), words[i])) {
            return true;
        }
    }
    return false;
}

static void refuse_unless_false(struct api_causes *c, const char *field, const struct json *v,
                                const char *why)
{
    if (!is_false(v)) {
        api_invalid(c, field, v, "%s", why);
    }
}

static void refuse_unless_one_of(struct api_causes *c, const char *field, const struct json *v,
                                 const char *const *words, const char *why)
{
    if (is_set(v) && !is_one_of(v, words)) {
        api_invalid(c, field, v, "%s", why);
    }
}

/* ---- security contexts ---- */

static const char *const runtime_default[] = {"RuntimeDefault", NULL};

static void check_profile(struct api_causes *c, const char *at, const struct json *context,
                          const char *profile, const char *why)
{
    const struct json *v = json_get(context, profile);
    if (is_set(v) && !is_one_of(json_get(v, "type"), runtime_default)) {
        const struct json *type = json_get(v, "type");
        api_invalid(c, API_FIELD("%s.%s.type", at, profile), type ? type : v, "%s", why);
    }
}

/* Checks the fields common to the security contexts of pods and of containers. */
static void check_context(struct api_causes *c, const char *at, const struct json *context)
{
    check_profile(c, at, context, "appArmorProfile", "only the profile RuntimeDefault is allowed");
    refuse_unless_false(c, API_FIELD("%s.windowsOptions.hostProcess", at),
                        json_path(context, "windowsOptions", "hostProcess", NULL),
                        "Host processes are not allowed");
}

/* ---- containers ---- */

/* The node itself connects to 'host': from its own address, which policies do not restrict. */
static void check_action(struct api_causes *c, const char *at, const struct json *action)
{
    static const char *const kinds[] = {"httpGet", "tcpSocket"}, *const none[] = {"", NULL};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        refuse_unless_one_of(c, API_FIELD("%s.%s.host", at, kinds[i]),
                             json_path(action, kinds[i], "host", NULL), none,
                             "the node may only connect to the pod itself");
    }
}

static void check_actions(struct api_causes *c, const char *at, const struct json *ct)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    static const char *const hooks[] = {"postStart", "preStop"};
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
        check_action(c, API_FIELD("%s.%s", at, probes[i]), json_get(ct, probes[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
        check_action(c, API_FIELD("%s.lifecycle.%s", at, hooks[i]),
                     json_path(ct, "lifecycle", hooks[i], NULL));
    }
}

static void check_container(struct api_causes *c, const char *at, const struct json *ct,
                            bool host_network)
{
    static const char *const into_pod[] = {"None", "HostToContainer", "", NULL};
    static const char *const proc_mounts[] = {"Default", "", NULL};
    const struct json *context = json_get(ct, "securityContext");
    const struct json *mounts = json_get(ct, "volumeMounts");
    const char *own = API_FIELD("%s.securityContext", at);
    check_context(c, own, context);
    refuse_unless_one_of(c, API_FIELD("%s.procMount", own), json_get(context, "procMount"),
                         proc_mounts, "only the mount Default is allowed");
    for (size_t i = 0; i < json_count(mounts); i++) {
        refuse_unless_one_of(c, API_FIELD("%s.volumeMounts[%zu].mountPropagation", at, i),
                             json_get(json_at(mounts, i), "mountPropagation"), into_pod,
                             "mounts are not allowed to reach the node");
    }
    if (!host_network) {
        check_actions(c, at, ct);
    }
}

/* ---- other fields of a pod ---- */

static void check_priority(struct api_causes *c, const char *path, const struct json *spec)
{
    const struct json *class = json_get(spec, "priorityClassName"), *v = json_get(spec, "priority");
    const char *name = json_get_string(class);
    int64_t n;
    if (name && str_has_prefix(name, "system-")) {
        api_invalid(c, API_FIELD("%sspec.priorityClassName", path), class,
                    "the system's priority classes are not allowed to be used");
    }
    if (is_set(v) && (json_get_int(v, &n) < 0 || n > MAX_PRIORITY)) {
        api_invalid(c, API_FIELD("%sspec.priority", path), v, "must be %d or less", MAX_PRIORITY);
    }
}

static const char *const old_apparmor[] = {"runtime/default", NULL};
static const char *const nothing[] = {"", NULL};
/* Annotations by which older kubelets, or network agents, get settings that now are fields. */
static const struct {
    const char *key;
    bool prefix; /* The annotation's name ends with that of a container. */
    const char *const *allowed;
    const char *why;
} annotations[] = {
    /* Judged by the constraints: pod/scc.h. */
    {"seccomp.security.alpha.kubernetes.io/pod", false, NULL, NULL},
    {"container.seccomp.security.alpha.kubernetes.io/", true, NULL, NULL},
    {"openshift.io/required-scc", false, NULL, NULL},
    {"container.apparmor.security.beta.kubernetes.io/", true, old_apparmor,
     "only the profile runtime/default is allowed"},
    {"security.alpha.kubernetes.io/sysctls", false, nothing,
     "sysctls are set by spec.securityContext.sysctls"},
    {"security.alpha.kubernetes.io/unsafe-sysctls", false, nothing,
     "unsafe sysctls are not allowed"},
    {"pod.alpha.kubernetes.io/init-containers", false, nothing,
     "init containers are set by spec.initContainers"},
    {"pod.beta.kubernetes.io/init-containers", false, nothing,
     "init containers are set by spec.initContainers"},
    {"pod.network.openshift.io/assign-macvlan", false, nothing,
     "an interface on the node's network is not allowed"},
};
#define N_ANNOTATIONS ARRAY_SIZE(annotations)

/* Index of the annotation 'key' above; N_ANNOTATIONS: none. */
static size_t annotation_entry(const char *key)
{
    size_t i = 0;
    while (i < N_ANNOTATIONS && !(annotations[i].prefix ? str_has_prefix(key, annotations[i].key)
                                                        : streq(key, annotations[i].key))) {
        i++;
    }
    return i;
}

static void check_annotations(struct api_causes *c, const char *path, const struct json *list)
{
    for (size_t i = 0; json_is(list, JSON_OBJECT) && i < json_count(list); i++) {
        const char *key = json_key_at(list, i);
        size_t k = annotation_entry(key);
        if (k < N_ANNOTATIONS && annotations[k].allowed) {
            refuse_unless_one_of(c, API_FIELD("%smetadata.annotations[%s]", path, key),
                                 json_at(list, i), annotations[k].allowed, annotations[k].why);
        }
    }
}

void pod_restrictions_check(const struct json *pod, const char *path, bool host_network,
                            struct api_causes *c)
{
    const struct json *spec = json_get(pod, "spec");
    check_context(c, API_FIELD("%sspec.securityContext", path), json_get(spec, "securityContext"));
    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        const struct json *list = json_get(spec, lists[k]);
        for (size_t i = 0; i < json_count(list); i++) {
            check_container(c, API_FIELD("%sspec.%s[%zu]", path, lists[k], i), json_at(list, i),
                            host_network);
        }
    }
    check_priority(c, path, spec);
    check_annotations(c, path, json_path(pod, "metadata", "annotations", NULL));
}

/* ---- comparison ---- */

/* Whether each checked annotation of 'a' is in 'b', too. */
static bool has_judged(const struct json *a, const struct json *b)
{
    for (size_t i = 0; json_is(a, JSON_OBJECT) && i < json_count(a); i++) {
        const char *key = json_key_at(a, i);
        const struct json *other = json_get(b, key);
        if (annotation_entry(key) < N_ANNOTATIONS && !(other && json_equal(json_at(a, i), other))) {
            return false;
        }
    }
    return true;
}

static bool same_specs(const struct json *a, const struct json *b, bool but_node)
{
    if (!a || !b || json_equal(a, b)) {
        return a ? b != NULL : !b;
    }
    if (!but_node) {
        return false;
    }
    CLEANUP(json_free) struct json *x = json_clone(a);
    CLEANUP(json_free) struct json *y = json_clone(b);
    json_remove(x, "nodeName");
    json_remove(y, "nodeName");
    return json_equal(x, y);
}

bool pod_restrictions_same(const struct json *a, const struct json *b, bool but_node)
{
    const struct json *a_spec = json_get(a, "spec"), *b_spec = json_get(b, "spec");
    const struct json *a_list = json_path(a, "metadata", "annotations", NULL);
    const struct json *b_list = json_path(b, "metadata", "annotations", NULL);
    return same_specs(a_spec, b_spec, but_node) && has_judged(a_list, b_list) &&
           has_judged(b_list, a_list);
}
