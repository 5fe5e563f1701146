/* SPDX-License-Identifier: Apache-2.0 */
/* Pod (core v1), as far as the network goes: where it runs and which addresses it has.  The rest of
 * the specification is kept as it came. */
#include "api/kind_pod.h"
#include "api/kinds.h"
#include "api/policy_fields.h"

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
    /* The last container that does not run says why. */
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

static void default_containers(struct json *list)
{
    struct json *ct, *port;
    JSON_FOREACH (ct, list) {
        const char *image = json_path_string(ct, "image", NULL);
        if (image && *image) {
            /* An image without a tag, or with "latest", is looked for each time. */
            const char *base = strrchr(image, '/'), *tag = strchr(base ? base : image, ':');
            bool always = !strchr(image, '@') && (!tag || streq(tag, ":latest"));
            api_default_string(ct, "imagePullPolicy", always ? "Always" : "IfNotPresent");
        }
        JSON_FOREACH (port, json_get(ct, "ports")) {
            if (json_is(port, JSON_OBJECT)) {
                api_default_string(port, "protocol", "TCP");
            }
        }
    }
}

void kind_pod_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec");
    if (!spec || json_is(spec, JSON_NULL)) {
        spec = json_ensure_object(obj, "spec");
    }
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    api_default_string(spec, "restartPolicy", "Always");
    api_default_string(spec, "dnsPolicy", "ClusterFirst");
    api_default_int(spec, "terminationGracePeriodSeconds", DEFAULT_GRACE_S);
    default_containers(json_get(spec, "containers"));
    default_containers(json_get(spec, "initContainers"));
}

void kind_pod_prepare(struct json *obj, const struct json *old)
{
    if (!old) {
        json_set_string(json_set(obj, "status", json_object()), "phase", "Pending");
    }
}

/* A kubelet ends what runs on its node; of the rest nobody needs time. */
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

static void validate_port(const char *field, const struct json *port, struct api_causes *c)
{
    int64_t n;
    const struct json *name = json_get(port, "name");
    if (!json_is(port, JSON_OBJECT)) {
        api_invalid(c, field, port, "must be an object");
        return;
    }
    policy_check_port_number(c, API_FIELD("%s.containerPort", field),
                             json_get(port, "containerPort"), true, &n);
    api_field_enum(c, API_FIELD("%s.protocol", field), json_get(port, "protocol"), false,
                   policy_protocols);
    if (api_field_string(c, API_FIELD("%s.name", field), name, false)) {
        policy_check_port_name(c, API_FIELD("%s.name", field), name);
    }
}

/* What policies call ports by: a name is one port of a container. */
static void validate_ports(const char *field, const struct json *ports, struct api_causes *c)
{
    if (!api_field_array(c, field, ports)) {
        return;
    }
    for (size_t i = 0; i < json_count(ports); i++) {
        const struct json *name = json_get(json_at(ports, i), "name");
        validate_port(API_FIELD("%s[%zu]", field, i), json_at(ports, i), c);
        for (size_t k = 0; json_string_size(name) && k < i; k++) {
            if (json_equal(json_get(json_at(ports, k), "name"), name)) {
                api_duplicate(c, API_FIELD("%s[%zu].name", field, i), name);
                break;
            }
        }
    }
}

/* Names are unique among 'list' and the containers of 'other', which come first. */
static void validate_containers(const char *field, const struct json *list,
                                const struct json *other, struct api_causes *c)
{
    if (!api_field_array(c, field, list)) {
        return;
    }
    if (json_count(list) > 256) {
        api_too_many(c, field, json_count(list), 256);
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *ct = json_at(list, i), *name = json_get(ct, "name"), *o;
        const char *name_field = API_FIELD("%s[%zu].name", field, i);
        if (!json_is(ct, JSON_OBJECT)) {
            api_invalid(c, API_FIELD("%s[%zu]", field, i), ct, "must be an object");
            continue;
        }
        validate_ports(API_FIELD("%s[%zu].ports", field, i), json_get(ct, "ports"), c);
        if (!api_field_checked(c, name_field, name, true, api_check_dns_label)) {
            continue;
        }
        bool twice = false;
        for (size_t j = 0; j < i; j++) {
            twice |= json_equal(json_get(json_at(list, j), "name"), name);
        }
        JSON_FOREACH (o, other) {
            twice |= json_equal(json_get(o, "name"), name);
        }
        if (twice) {
            api_duplicate(c, name_field, name);
        }
    }
}

void pod_validate_spec(const char *field, const struct json *spec, const struct json *old,
                       struct api_causes *c)
{
    static const char *const restart[] = {"Always", "OnFailure", "Never", NULL};
    static const char *const dns[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None",
                                      NULL};
    int64_t seconds;
    validate_containers(API_FIELD("%s.containers", field), json_get(spec, "containers"), NULL, c);
    validate_containers(API_FIELD("%s.initContainers", field), json_get(spec, "initContainers"),
                        json_get(spec, "containers"), c);
    api_field_enum(c, API_FIELD("%s.restartPolicy", field), json_get(spec, "restartPolicy"), false,
                   restart);
    api_field_enum(c, API_FIELD("%s.dnsPolicy", field), json_get(spec, "dnsPolicy"), false, dns);
    api_field_int(c, API_FIELD("%s.terminationGracePeriodSeconds", field),
                  json_get(spec, "terminationGracePeriodSeconds"), false, 0, INT32_MAX, &seconds);
    api_field_checked(c, API_FIELD("%s.nodeName", field), json_get(spec, "nodeName"), false,
                      api_check_dns_subdomain);
    api_field_bool(c, API_FIELD("%s.hostNetwork", field), json_get(spec, "hostNetwork"));
    if (old) {
        const struct json *node = json_get(old, "nodeName");
        if (json_string_size(node)) {
            api_field_immutable(c, API_FIELD("%s.nodeName", field), json_get(spec, "nodeName"),
                                node);
        }
        if (json_get_bool(json_get(spec, "hostNetwork"), false) !=
            json_get_bool(json_get(old, "hostNetwork"), false)) {
            api_invalid(c, API_FIELD("%s.hostNetwork", field), json_get(spec, "hostNetwork"),
                        "field is immutable");
        }
    }
}

static void validate_status(const struct json *status, struct api_causes *c)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded",
                                         "Failed",  "Unknown", NULL};
    if (!api_field_object(c, "status", status)) {
        return;
    }
    api_field_enum(c, "status.phase", json_get(status, "phase"), false, phases);
    const struct json *ip = json_get(status, "podIP"), *ips = json_get(status, "podIPs");
    bool have = api_field_ip(c, "status.podIP", ip, false);
    api_field_ip(c, "status.hostIP", json_get(status, "hostIP"), false);
    if (api_field_array(c, "status.podIPs", ips)) {
        if (json_count(ips) > 2) {
            api_too_many(c, "status.podIPs", json_count(ips), 2);
            return;
        }
        for (size_t i = 0; i < json_count(ips); i++) {
            api_field_ip(c, API_FIELD("status.podIPs[%zu].ip", i), json_get(json_at(ips, i), "ip"),
                         true);
        }
        if (have && json_count(ips) && !json_equal(json_get(json_at(ips, 0), "ip"), ip)) {
            api_invalid(c, "status.podIPs[0].ip", json_get(json_at(ips, 0), "ip"),
                        "must be the same as status.podIP");
        }
    }
}

void kind_pod_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    if (api_field_object(c, "spec", json_get(obj, "spec"))) {
        pod_validate_spec("spec", json_get(obj, "spec"), json_get(old, "spec"), c);
    }
    validate_status(json_get(obj, "status"), c);
}
