/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of containers: names, images, ports, probes and lifecycle. */
#include "api/kind_util.h"
#include "api/kinds/pod_priv.h"

const char *const pod_lists[POD_N_LISTS] = {
    [POD_CONTAINERS] = "containers",
    [POD_INIT_CONTAINERS] = "initContainers",
    [POD_EPHEMERAL_CONTAINERS] = "ephemeralContainers",
};

const struct json *pod_find_named(const struct json *list, const struct json *name)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const struct json *has = json_get(item, "name");
        if (has && name && json_equal(has, name)) {
            return item;
        }
    }
    return NULL;
}

bool pod_has_set(const struct json *obj, const char *key)
{
    return json_get_bool(json_get(obj, key), false);
}

/* ---- ports ---- */

static void check_port(const struct pod_rules *r, const char *field, const struct json *port)
{
    const struct json *number = json_get(port, "containerPort"), *host = json_get(port, "hostPort");
    int64_t n;
    if (json_get_int_or(number, 0) == 0) {
        api_required(r->c, API_FIELD("%s.containerPort", field), "");
    } else {
        api_field_int(r->c, API_FIELD("%s.containerPort", field), number, true, 1, 65535, &n);
    }
    if (json_get_int_or(host, 0)) {
        api_field_int(r->c, API_FIELD("%s.hostPort", field), host, true, 1, 65535, &n);
    }
}

/* Port names, by which policies refer to ports: a name is one port of a container. */
static void check_ports(const struct pod_rules *r, const char *field, const struct json *ports)
{
    struct smap names;
    smap_init(&names, NULL);
    for (size_t i = 0; i < json_count(ports); i++) {
        const char *at = API_FIELD("%s[%zu]", field, i);
        const struct json *name = json_get(json_at(ports, i), "name");
        check_port(r, at, json_at(ports, i));
        if (json_string_size(name) == 0) {
            continue;
        }
        if (smap_get(&names, json_get_string(name))) {
            api_duplicate(r->c, API_FIELD("%s.name", at), name);
        }
        smap_set(&names, json_get_string(name), &names);
    }
    smap_done(&names);
}

/* A port of the node is given out once: 'used' has those of the containers before. */
static void check_host_ports(const struct pod_rules *r, const char *field, const struct json *ports,
                             struct smap *used)
{
    for (size_t i = 0; i < json_count(ports); i++) {
        const struct json *port = json_at(ports, i);
        long long number = json_get_int_or(json_get(port, "hostPort"), 0);
        if (number == 0) {
            continue;
        }
        CLEANUP(json_free)
        struct json *key = json_stringf("%s/%s/%lld", json_get_text(port, "protocol"),
                                        json_get_text(port, "hostIP"), number);
        if (smap_get(used, json_get_string(key))) {
            api_duplicate(r->c, API_FIELD("%s[%zu].hostPort", field, i), key);
        }
        smap_set(used, json_get_string(key), used);
    }
}

/* In the node's network a port is that of the node.  A template may leave it out: the pod gets it
 * as a default. */
static void check_node_network(const struct pod_rules *r, const char *field,
                               const struct json *ports)
{
    for (size_t i = 0; i < json_count(ports); i++) {
        const struct json *port = json_at(ports, i), *host = json_get(port, "hostPort");
        int64_t n = json_get_int_or(host, 0);
        if ((r->is_pod || n) && n != json_get_int_or(json_get(port, "containerPort"), 0)) {
            api_invalid(r->c, API_FIELD("%s[%zu].hostPort", field, i), host,
                        "must match `containerPort` when `hostNetwork` is true");
        }
    }
}

/* ---- handlers ---- */

static void check_exec(const struct pod_rules *r, const char *field, const struct json *v)
{
    if (json_count(json_get(v, "command")) == 0) {
        api_required(r->c, API_FIELD("%s.command", field), "");
    }
}

static bool is_header_name(const char *s)
{
    return *s && !s[strspn(s, "-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")];
}

static void check_http(const struct pod_rules *r, const char *field, const struct json *v)
{
    const struct json *header;
    api_validate_port(r->c, API_FIELD("%s.port", field), json_get(v, "port"));
    JSON_FOREACH (header, json_get(v, "httpHeaders")) {
        if (!is_header_name(json_get_text(header, "name"))) {
            api_invalid(r->c, API_FIELD("%s.httpHeaders", field), json_get(header, "name"),
                        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                        "'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')");
        }
    }
}

static void check_tcp(const struct pod_rules *r, const char *field, const struct json *v)
{
    api_validate_port(r->c, API_FIELD("%s.port", field), json_get(v, "port"));
}

static void check_sleep(const struct pod_rules *r, const char *field, const struct json *v)
{
    const struct json *seconds = json_get(v, "seconds");
    int64_t n = json_get_int_or(seconds, 0);
    int64_t grace = json_get_int_or(json_get(r->spec, "terminationGracePeriodSeconds"), INT64_MAX);
    if (n < 0 || n > grace) {
        api_invalid(r->c, field, seconds,
                    "must be non-negative and less than terminationGracePeriodSeconds (%lld)",
                    (long long) grace);
    }
}

static const struct {
    const char *name;
    bool of_probe, of_lifecycle;
    void (*check)(const struct pod_rules *r, const char *field, const struct json *v);
} handlers[] = {
    {"exec", true, true, check_exec},     {"httpGet", true, true, check_http},
    {"tcpSocket", true, true, check_tcp}, {"grpc", true, false, NULL},
    {"sleep", false, true, check_sleep},
};

static void check_handler(const struct pod_rules *r, const char *field, const struct json *v,
                          bool of_probe)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
        const struct json *handler = json_get(v, handlers[i].name);
        const char *at = API_FIELD("%s.%s", field, handlers[i].name);
        if (!handler || !(of_probe ? handlers[i].of_probe : handlers[i].of_lifecycle)) {
            continue;
        }
        if (n++) {
            api_forbidden(r->c, at, "may not specify more than 1 handler type");
        } else if (handlers[i].check) {
            handlers[i].check(r, at, handler);
        }
    }
    if (n == 0) {
        api_required(r->c, field, "must specify a handler type");
    }
}

static void check_probe(const struct pod_rules *r, const char *field, const struct json *probe,
                        bool of_readiness)
{
    const struct json *successes = json_get(probe, "successThreshold");
    const struct json *grace = json_get(probe, "terminationGracePeriodSeconds");
    const char *grace_field = API_FIELD("%s.terminationGracePeriodSeconds", field);
    check_handler(r, field, probe, true);
    if (grace && json_get_int_or(grace, 1) <= 0) {
        api_invalid(r->c, grace_field, grace, "must be greater than 0");
    }
    if (of_readiness && grace) {
        api_invalid(r->c, grace_field, grace, "must not be set for readinessProbes");
    }
    if (!of_readiness && json_get_int_or(successes, 1) != 1) {
        api_invalid(r->c, API_FIELD("%s.successThreshold", field), successes, "must be 1");
    }
}

static void check_probes(const struct pod_rules *r, const char *field, const struct json *ct)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    static const char *const moments[] = {"postStart", "preStop"};
    const struct json *v;
    for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
        if ((v = json_path(ct, "lifecycle", moments[i], NULL))) {
            check_handler(r, API_FIELD("%s.lifecycle.%s", field, moments[i]), v, false);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
        if ((v = json_get(ct, probes[i]))) {
            check_probe(r, API_FIELD("%s.%s", field, probes[i]), v, i == 1);
        }
    }
}

/* ---- fields that some containers cannot have ---- */

static bool is_set(const struct json *v)
{
    return v && (json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY) ? json_count(v) > 0
                                                                   : json_string_size(v) > 0);
}

/* An init container that runs beside the others has the fields of these. */
static bool is_sidecar(const struct json *ct)
{
    return streq(json_get_text(ct, "restartPolicy"), "Always");
}

static void check_init(const struct pod_rules *r, const char *field, const struct json *ct)
{
    static const char *const fields[] = {"lifecycle", "livenessProbe", "readinessProbe",
                                         "startupProbe"};
    static const char *const always[] = {"Always", NULL};
    const struct json *policy = json_get(ct, "restartPolicy");
    if (policy && !is_sidecar(ct)) {
        api_unsupported(r->c, API_FIELD("%s.restartPolicy", field), policy, always);
    }
    if (is_sidecar(ct)) {
        check_probes(r, field, ct);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (json_get(ct, fields[i])) {
            api_forbidden(r->c, API_FIELD("%s.%s", field, fields[i]),
                          "may not be set for init containers without restartPolicy=Always");
        }
    }
}

static void check_ephemeral(const struct pod_rules *r, const char *field, const struct json *ct)
{
    static const char no[] = "cannot be set for an Ephemeral Container";
    static const char *const fields[] = {
        "ports",        "resources", "livenessProbe", "readinessProbe",
        "startupProbe", "lifecycle", "resizePolicy",  "restartPolicy",
    };
    static const char *const paths[] = {"subPath", "subPathExpr"};
    const struct json *target = json_get(ct, "targetContainerName");
    const struct json *mounts = json_get(ct, "volumeMounts");
    if (json_string_size(target) && !pod_find_named(json_get(r->spec, "containers"), target) &&
        !pod_find_named(json_get(r->spec, "initContainers"), target)) {
        api_not_found(r->c, API_FIELD("%s.targetContainerName", field), target, "");
    }
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (is_set(json_get(ct, fields[i]))) {
            api_forbidden(r->c, API_FIELD("%s.%s", field, fields[i]), no);
        }
    }
    for (size_t i = 0; i < json_count(mounts); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(paths); k++) {
            if (json_string_size(json_get(json_at(mounts, i), paths[k]))) {
                api_forbidden(r->c, API_FIELD("%s.volumeMounts[%zu].%s", field, i, paths[k]), no);
            }
        }
    }
}

static void check_resize(const struct pod_rules *r, const char *field, const struct json *list)
{
    static const char *const resources[] = {"cpu", "memory", NULL};
    static const char *const policies[] = {"NotRequired", "RestartContainer", NULL};
    bool never = streq(json_get_text(r->spec, "restartPolicy"), "Never"), seen[2] = {false, false};
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *p = json_at(list, i), *policy = json_get(p, "restartPolicy");
        const struct json *name = json_get(p, "resourceName");
        for (size_t k = 0; k < ARRAY_SIZE(seen); k++) {
            bool is = streq_null(json_get_string(name), resources[k]);
            if (is && seen[k]) {
                api_duplicate(r->c, API_FIELD("%s[%zu]", field, i), name);
            }
            seen[k] |= is;
        }
        (void) api_field_enum(r->c, field, name, true, resources);
        (void) api_field_enum(r->c, field, policy, true, policies);
        if (never && !streq_null(json_get_string(policy), "NotRequired")) {
            api_invalid(r->c, field, policy,
                        "must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
    }
}

/* ---- containers ---- */

static void check_image(const struct pod_rules *r, const char *field, const struct json *image)
{
    const char *s = json_get_string(image), space[] = " \t\n\v\f\r";
    size_t n = json_string_size(image);
    if (n == 0) {
        api_required(r->c, field, "");
    } else if (r->is_pod && (strchr(space, s[0]) || strchr(space, s[n - 1]))) {
        api_invalid(r->c, field, image, "must not have leading or trailing whitespace");
    }
}

static void check_container(const struct pod_rules *r, const char *field, const struct json *ct)
{
    check_image(r, API_FIELD("%s.image", field), json_get(ct, "image"));
    check_ports(r, API_FIELD("%s.ports", field), json_get(ct, "ports"));
    pod_check_env(r, field, ct);
    pod_check_mounts(r, field, ct);
    pod_check_resources(r, API_FIELD("%s.resources", field), json_get(ct, "resources"));
    check_resize(r, API_FIELD("%s.resizePolicy", field), json_get(ct, "resizePolicy"));
    pod_check_container_security(r, API_FIELD("%s.securityContext", field),
                                 json_get(ct, "securityContext"));
}

/* Rules that hold for one sort of containers alone. */
static void check_sort(const struct pod_rules *r, enum pod_list list, const char *field,
                       const struct json *ct)
{
    if (list == POD_INIT_CONTAINERS) {
        check_init(r, field, ct);
    } else if (list == POD_EPHEMERAL_CONTAINERS) {
        check_ephemeral(r, field, ct);
    } else {
        check_probes(r, field, ct);
        if (json_get(ct, "restartPolicy")) {
            api_forbidden(r->c, API_FIELD("%s.restartPolicy", field),
                          "may not be set for non-init containers");
        }
    }
}

/* A name is that of one container, in whichever list. */
static void check_name(const struct pod_rules *r, enum pod_list list, const char *field,
                       const struct json *name)
{
    for (size_t i = 0; i < list; i++) {
        if (pod_find_named(json_get(r->spec, pod_lists[i]), name)) {
            api_duplicate(r->c, API_FIELD("%s.name", field), name);
            return;
        }
    }
}

static void check_list(const struct pod_rules *r, const char *field, enum pod_list list)
{
    const struct json *containers = json_get(r->spec, pod_lists[list]);
    bool on_node = pod_has_set(r->spec, "hostNetwork");
    struct smap used;
    smap_init(&used, NULL);
    for (size_t i = 0; i < json_count(containers); i++) {
        const struct json *ct = json_at(containers, i), *ports = json_get(ct, "ports");
        const char *at = API_FIELD("%s.%s[%zu]", field, pod_lists[list], i);
        check_container(r, at, ct);
        check_sort(r, list, at, ct);
        check_name(r, list, at, json_get(ct, "name"));
        check_host_ports(r, API_FIELD("%s.ports", at), ports, &used);
        if (on_node && list == POD_CONTAINERS) {
            check_node_network(r, API_FIELD("%s.ports", at), ports);
        }
        if (list != POD_CONTAINERS) {
            smap_done(&used); /* Init containers run one after the other. */
            smap_init(&used, NULL);
        }
    }
    smap_done(&used);
}

void pod_check_containers(const struct pod_rules *r, const char *field)
{
    if (json_count(json_get(r->spec, "containers")) == 0) {
        api_required(r->c, API_FIELD("%s.containers", field), "");
    }
    for (enum pod_list list = 0; list < POD_N_LISTS; list++) {
        check_list(r, field, list);
    }
}
