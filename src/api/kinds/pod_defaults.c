/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of a pod's spec that depend on other fields, after SetDefaults_Pod of Kubernetes; all
 * others are in the description. */
#include "api/kind_util.h"
#include "api/kinds/kind_pod.h"
#include "api/kinds/pod_priv.h"
#include "api/quantity.h"

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* An image without a tag, or with "latest", is always pulled. */
static void default_pull_policy(struct json *obj, const char *key, const char *image)
{
    if (image && *image) {
        const char *base = strrchr(image, '/'), *tag = strchr(base ? base : image, ':');
        bool always = !strchr(image, '@') && (!tag || streq(tag, ":latest"));
        api_default_string(obj, key, always ? "Always" : "IfNotPresent");
    }
}

/* ---- containers ---- */

static void default_probe(struct json *probe)
{
    static const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"timeoutSeconds", 1},
                   {"periodSeconds", 10},
                   {"successThreshold", 1},
                   {"failureThreshold", 3}};
    struct json *grpc = json_get(probe, "grpc");
    for (size_t i = 0; json_is(probe, JSON_OBJECT) && i < ARRAY_SIZE(numbers); i++) {
        const struct json *v = json_get(probe, numbers[i].key);
        if (is_absent(v) || (json_is(v, JSON_NUMBER) && json_get_int_or(v, 1) == 0)) {
            json_set_int(probe, numbers[i].key, numbers[i].value);
        }
    }
    if (json_is(grpc, JSON_OBJECT) && is_absent(json_get(grpc, "service"))) {
        json_set_string(grpc, "service", "");
    }
}

/* In the node's network a port is that of the node. */
static void default_host_ports(struct json *ports)
{
    struct json *port;
    JSON_FOREACH (port, ports) {
        const struct json *number = json_get(port, "containerPort");
        if (json_is(port, JSON_OBJECT) && number &&
            json_get_int_or(json_get(port, "hostPort"), 0) == 0) {
            json_set(port, "hostPort", json_clone(number));
        }
    }
}

static void default_requests(struct json *resources)
{
    const struct json *limits = json_get(resources, "limits");
    struct json *requests =
        json_count(limits) && json_is(limits, JSON_OBJECT) && json_is(resources, JSON_OBJECT)
            ? api_default_object(resources, "requests")
            : NULL;
    for (size_t i = 0; requests && i < json_count(limits); i++) {
        if (!json_get(requests, json_key_at(limits, i))) {
            json_set(requests, json_key_at(limits, i), json_clone(json_at(limits, i)));
        }
    }
}

static void default_container(struct json *ct)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    if (!json_is(ct, JSON_OBJECT)) {
        return;
    }
    default_pull_policy(ct, "imagePullPolicy", json_path_string(ct, "image", NULL));
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
        default_probe(json_get(ct, probes[i]));
    }
}

static void default_containers(struct json *spec, bool is_pod)
{
    bool on_node = pod_has_set(spec, "hostNetwork");
    for (size_t i = 0; i < POD_N_LISTS; i++) {
        struct json *ct, *list = json_get(spec, pod_lists[i]);
        JSON_FOREACH (ct, list) {
            default_container(ct);
            if (is_pod && i != POD_EPHEMERAL_CONTAINERS) {
                default_requests(json_get(ct, "resources"));
            }
            if (is_pod && on_node && i != POD_EPHEMERAL_CONTAINERS) {
                default_host_ports(json_get(ct, "ports"));
            }
        }
    }
}

/* ---- volumes ---- */

static void default_volumes(struct json *volumes)
{
    struct json *v;
    JSON_FOREACH (v, volumes) {
        struct json *host = json_get(v, "hostPath"), *image = json_get(v, "image");
        struct json *claim = json_path(v, "ephemeral", "volumeClaimTemplate", "spec", NULL);
        if (json_is(v, JSON_OBJECT) && !pod_volume_has_source(v)) {
            json_set(v, "emptyDir", json_object());
        }
        if (json_is(host, JSON_OBJECT) && is_absent(json_get(host, "type"))) {
            json_set_string(host, "type", "");
        }
        if (json_is(image, JSON_OBJECT)) {
            default_pull_policy(image, "pullPolicy", json_path_string(image, "reference", NULL));
        }
        if (json_is(claim, JSON_OBJECT)) {
            api_default_string(claim, "volumeMode", "Filesystem");
        }
    }
}

/* The old name of the service account's field has the same value. */
static void default_account(struct json *spec)
{
    const struct json *name = json_get(spec, "serviceAccountName");
    const struct json *older = json_get(spec, "serviceAccount");
    if (json_string_size(name) == 0 && json_string_size(older)) {
        json_set(spec, "serviceAccountName", json_clone(older));
    } else if (json_string_size(name)) {
        json_set(spec, "serviceAccount", json_clone(name));
    }
}

void pod_default_spec(struct json *spec, bool is_pod)
{
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    default_containers(spec, is_pod);
    default_volumes(json_get(spec, "volumes"));
    default_account(spec);
    (void) api_default_object(spec, "securityContext");
    if (is_pod && is_absent(json_get(spec, "enableServiceLinks"))) {
        json_set_bool(spec, "enableServiceLinks", true);
    }
}

/* ---- quality of service ---- */

static const char *const qos_resources[] = {"cpu", "memory"};

/* The amount in a list of resources; NULL: none, or 0. */
static const char *amount_of(const struct json *list, const char *name)
{
    const char *s = json_get_string(json_get(list, name));
    return s && api_quantity_compare(s, "0") > 0 ? s : NULL;
}

const char *pod_qos_class(const struct json *spec)
{
    bool any = false, guaranteed = true;
    for (size_t i = 0; i <= POD_INIT_CONTAINERS; i++) {
        const struct json *ct;
        JSON_FOREACH (ct, json_get(spec, pod_lists[i])) {
            const struct json *resources = json_get(ct, "resources");
            for (size_t k = 0; k < ARRAY_SIZE(qos_resources); k++) {
                const char *limit = amount_of(json_get(resources, "limits"), qos_resources[k]);
                const char *request = amount_of(json_get(resources, "requests"), qos_resources[k]);
                any |= limit || request;
                guaranteed &= limit && (!request || api_quantity_compare(limit, request) == 0);
            }
        }
    }
    return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}
