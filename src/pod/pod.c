/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/pod.h"

#include <stdio.h>

#define GRACE_DEFAULT_S 30
#define SYSTEM_PRIORITY INT64_C(2000000000)

const char *pod_name(const struct json *pod)
{
    return json_get_text(json_get(pod, "metadata"), "name");
}

const char *pod_namespace(const struct json *pod)
{
    return json_get_text(json_get(pod, "metadata"), "namespace");
}

const char *pod_uid(const struct json *pod)
{
    return json_get_text(json_get(pod, "metadata"), "uid");
}

enum pod_restart_policy pod_restart_policy(const struct json *pod)
{
    const char *p = json_get_text(json_get(pod, "spec"), "restartPolicy");
    return streq(p, "Never")       ? POD_RESTART_NEVER
           : streq(p, "OnFailure") ? POD_RESTART_ON_FAILURE
                                   : POD_RESTART_ALWAYS;
}

int64_t pod_grace_s(const struct json *pod)
{
    int64_t own = json_get_int_or(json_path(pod, "spec", "terminationGracePeriodSeconds", NULL),
                                  GRACE_DEFAULT_S);
    int64_t s =
        pod_is_deleted(pod)
            ? json_get_int_or(json_path(pod, "metadata", "deletionGracePeriodSeconds", NULL), own)
            : own;
    return MIN(MAX(s, (int64_t) 0), (int64_t) INT32_MAX);
}

bool pod_is_deleted(const struct json *pod)
{
    return *json_get_text(json_get(pod, "metadata"), "deletionTimestamp") != '\0';
}

bool pod_uses_host_network(const struct json *pod)
{
    return json_get_bool(json_path(pod, "spec", "hostNetwork", NULL), false);
}

bool pod_is_static(const struct json *pod)
{
    const char *source =
        json_get_text(json_path(pod, "metadata", "annotations", NULL), POD_NOTE_SOURCE);
    return *source && !streq(source, "api");
}

int64_t pod_priority(const struct json *pod)
{
    return json_get_int_or(json_path(pod, "spec", "priority", NULL), 0);
}

bool pod_is_critical(const struct json *pod)
{
    return pod_is_static(pod) || pod_priority(pod) >= SYSTEM_PRIORITY;
}

bool pod_phase_is_final(const char *phase)
{
    return phase && (streq(phase, "Succeeded") || streq(phase, "Failed"));
}

static const struct json *list_of(const struct json *pod, const char *key)
{
    return json_path(pod, "spec", key, NULL);
}

size_t pod_count_containers(const struct json *pod)
{
    return json_count(list_of(pod, "initContainers")) + json_count(list_of(pod, "containers")) +
           json_count(list_of(pod, "ephemeralContainers"));
}

const struct json *pod_container_at(const struct json *pod, size_t i,
                                    enum pod_container_kind *ret_kind)
{
    static const struct {
        const char *key;
        enum pod_container_kind kind;
    } lists[] = {{"initContainers", POD_INIT},
                 {"containers", POD_MAIN},
                 {"ephemeralContainers", POD_EPHEMERAL}};
    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        const struct json *list = list_of(pod, lists[k].key);
        if (i >= json_count(list)) {
            i -= json_count(list);
            continue;
        }
        const struct json *c = json_at(list, i);
        if (ret_kind) {
            bool sidecar =
                lists[k].kind == POD_INIT && streq(json_get_text(c, "restartPolicy"), "Always");
            *ret_kind = sidecar ? POD_SIDECAR : lists[k].kind;
        }
        return c;
    }
    return NULL;
}

const struct json *pod_container_named(const struct json *pod, const char *name,
                                       enum pod_container_kind *ret_kind)
{
    size_t n = pod_count_containers(pod);
    for (size_t i = 0; i < n; i++) {
        const struct json *c = pod_container_at(pod, i, ret_kind);
        if (streq(json_get_text(c, "name"), name)) {
            return c;
        }
    }
    return NULL;
}

const struct json *pod_find_status(const struct json *status, const char *name)
{
    static const char *const keys[] = {"containerStatuses", "initContainerStatuses",
                                       "ephemeralContainerStatuses"};
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
        const struct json *s;
        JSON_FOREACH (s, json_get(status, keys[k])) {
            if (streq(json_get_text(s, "name"), name)) {
                return s;
            }
        }
    }
    return NULL;
}

void pod_container_hash(const struct json *container, char out[POD_HASH_SIZE])
{
    const char *name = json_get_text(container, "name"), *image = json_get_text(container, "image");
    uint64_t h = hash_bytes(name, strlen(name) + 1) * 31 + hash_bytes(image, strlen(image) + 1);
    snprintf(out, POD_HASH_SIZE, "%llx", (unsigned long long) h);
}

uint16_t pod_port(const struct json *container, const struct json *port)
{
    int64_t n;
    uint64_t digits;
    const char *name = json_get_string(port);
    if (!name) {
        return json_get_int(port, &n) == 0 && n > 0 && n <= UINT16_MAX ? (uint16_t) n : 0;
    }
    const struct json *p;
    JSON_FOREACH (p, json_get(container, "ports")) {
        if (*name && streq(json_get_text(p, "name"), name)) {
            return (uint16_t) json_get_int_or(json_get(p, "containerPort"), 0);
        }
    }
    return str_to_u64(name, UINT16_MAX, &digits) == 0 ? (uint16_t) digits : 0;
}
