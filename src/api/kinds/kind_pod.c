/* SPDX-License-Identifier: Apache-2.0 */
/* Pod (core v1), as far as the network needs it: its node and its addresses. The rest of the
 * specification is stored unchanged. */
#include "api/kinds/kind_pod.h"
#include "api/kind_util.h"
#include "api/kinds.h"

#define DEFAULT_GRACE_S 30

/* ---- columns ---- */

static const struct json *statuses(const struct json *obj)
{
    return json_path(obj, "status", "containerStatuses", NULL);
}

struct json *kind_pod_cell_ready(const struct json *obj, int64_t now_ms)
{
    size_t total = json_count(json_path(obj, "spec", "containers", NULL)), ready = 0;
    const struct json *s;
    JSON_FOREACH (s, statuses(obj)) {
        ready += json_get_bool(json_get(s, "ready"), false);
    }
    return json_stringf("%zu/%zu", ready, total);
}

struct json *kind_pod_cell_status(const struct json *obj, int64_t now_ms)
{
    const char *text = json_path_string(obj, "status", "reason", NULL);
    if (!text || !*text) {
        text = json_path_string(obj, "status", "phase", NULL);
    }
    /* The reason of the last container that does not run. */
    const struct json *s;
    JSON_FOREACH (s, statuses(obj)) {
        const char *waiting = json_path_string(s, "state", "waiting", "reason", NULL);
        const char *ended = json_path_string(s, "state", "terminated", "reason", NULL);
        if (waiting && *waiting) {
            text = waiting;
        } else if (ended && *ended) {
            text = ended;
        }
    }
    if (json_path(obj, "metadata", "deletionTimestamp", NULL)) {
        text = "Terminating";
    }
    return api_cell_text(text, "Unknown");
}

struct json *kind_pod_cell_restarts(const struct json *obj, int64_t now_ms)
{
    int64_t n = 0;
    const struct json *s;
    JSON_FOREACH (s, statuses(obj)) {
        int64_t count = json_get_int_or(json_get(s, "restartCount"), 0);
        n += count > 0 && count <= INT32_MAX ? count : 0;
    }
    return json_stringf("%lld", (long long) n);
}

struct json *kind_pod_cell_gates(const struct json *obj, int64_t now_ms)
{
    const struct json *gates = json_path(obj, "spec", "readinessGates", NULL), *gate, *cond;
    if (json_count(gates) == 0) {
        return json_string("<none>");
    }
    size_t ready = 0;
    JSON_FOREACH (gate, gates) {
        const char *type = json_path_string(gate, "conditionType", NULL);
        JSON_FOREACH (cond, json_path(obj, "status", "conditions", NULL)) {
            ready += type && streq_null(json_path_string(cond, "type", NULL), type) &&
                     streq_null(json_path_string(cond, "status", NULL), "True");
        }
    }
    return json_stringf("%zu/%zu", ready, json_count(gates));
}

/* ---- rules ---- */

/* An image without a tag, or with "latest", is always pulled. */
static void default_pull_policies(struct json *containers)
{
    struct json *ct;
    JSON_FOREACH (ct, containers) {
        const char *image = json_path_string(ct, "image", NULL);
        if (image && *image) {
            const char *base = strrchr(image, '/'), *tag = strchr(base ? base : image, ':');
            bool always = !strchr(image, '@') && (!tag || streq(tag, ":latest"));
            api_default_string(ct, "imagePullPolicy", always ? "Always" : "IfNotPresent");
        }
    }
}

void pod_default_spec(struct json *spec)
{
    default_pull_policies(json_get(spec, "containers"));
    default_pull_policies(json_get(spec, "initContainers"));
}

void kind_pod_defaults(struct json *obj)
{
    pod_default_spec(json_get(obj, "spec"));
}

void kind_pod_prepare(struct json *obj, const struct json *old)
{
    const struct json *spec = json_get(obj, "spec");
    if (!spec || json_is(spec, JSON_NULL)) {
        json_set(obj, "spec", json_object());
    }
    if (!old) {
        json_set_string(json_set(obj, "status", json_object()), "phase", "Pending");
    }
}

/* A kubelet stops containers on its node; a pod without a node needs no time. */
int64_t kind_pod_grace_s(const struct json *obj, const int64_t *asked)
{
    const char *node = json_path_string(obj, "spec", "nodeName", NULL);
    const char *phase = json_path_string(obj, "status", "phase", NULL);
    if (!node || !*node || streq_null(phase, "Succeeded") || streq_null(phase, "Failed")) {
        return 0;
    }
    int64_t n = asked
                    ? *asked
                    : json_get_int_or(json_path(obj, "spec", "terminationGracePeriodSeconds", NULL),
                                      DEFAULT_GRACE_S);
    return n < 0 ? 1 : n;
}

/* Port names, by which policies refer to ports: a name is one port of a container. */
static void validate_port_names(const char *field, const struct json *ports, struct api_causes *c)
{
    for (size_t i = 0; i < json_count(ports); i++) {
        const struct json *name = json_get(json_at(ports, i), "name");
        for (size_t k = 0; json_string_size(name) && k < i; k++) {
            if (json_equal(json_get(json_at(ports, k), "name"), name)) {
                api_duplicate(c, API_FIELD("%s[%zu].name", field, i), name);
                break;
            }
        }
    }
}

/* Names must differ from those of the containers of 'other'. */
static void validate_containers(const char *field, const struct json *list,
                                const struct json *other, struct api_causes *c)
{
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *ct = json_at(list, i), *name = json_get(ct, "name"), *o;
        validate_port_names(API_FIELD("%s[%zu].ports", field, i), json_get(ct, "ports"), c);
        bool twice = false;
        JSON_FOREACH (o, other) {
            twice |= json_equal(json_get(o, "name"), name);
        }
        if (twice) {
            api_duplicate(c, API_FIELD("%s[%zu].name", field, i), name);
        }
    }
}

void pod_validate_spec(const char *field, const struct json *spec, const struct json *old,
                       struct api_causes *c)
{
    validate_containers(API_FIELD("%s.containers", field), json_get(spec, "containers"), NULL, c);
    validate_containers(API_FIELD("%s.initContainers", field), json_get(spec, "initContainers"),
                        json_get(spec, "containers"), c);
    if (!old) {
        return;
    }
    const struct json *node = json_get(old, "nodeName");
    if (json_string_size(node)) {
        api_field_immutable(c, API_FIELD("%s.nodeName", field), json_get(spec, "nodeName"), node);
    }
    if (json_get_bool(json_get(spec, "hostNetwork"), false) !=
        json_get_bool(json_get(old, "hostNetwork"), false)) {
        api_invalid(c, API_FIELD("%s.hostNetwork", field), json_get(spec, "hostNetwork"),
                    "field is immutable");
    }
}

void kind_pod_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *ip = json_path(obj, "status", "podIP", NULL);
    const struct json *first = json_get(json_at(json_path(obj, "status", "podIPs", NULL), 0), "ip");
    pod_validate_spec("spec", json_get(obj, "spec"), json_get(old, "spec"), c);
    if (json_string_size(ip) && first && !json_equal(first, ip)) {
        api_invalid(c, "status.podIPs[0].ip", first, "must be the same as status.podIP");
    }
}

/* ---- Binding ---- */

void kind_binding_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const kinds[] = {"Node", "<empty>", NULL};
    const struct json *target = json_get(obj, "target"), *kind = json_get(target, "kind");
    const struct json *name = json_get(target, "name");
    const char *wrong =
        json_string_size(name) ? api_check_dns_subdomain(json_get_string(name)) : NULL;
    if (json_string_size(kind) && !streq(json_get_string(kind), "Node")) {
        api_unsupported(c, "target.kind", kind, kinds);
    }
    if (json_string_size(name) == 0) {
        api_required(c, "target.name", "");
    } else if (wrong) {
        api_invalid(c, "target.name", name, "%s", wrong);
    }
}
