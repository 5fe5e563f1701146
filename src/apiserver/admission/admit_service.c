/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of services and endpoints: the fields that need a special right.
 *
 * An endpoint with the address of a pod, a service, a node or a master would let one
 * project reach another, or the hosts, in spite of the isolation; it needs the right
 * "create" on endpoints/restricted, as in OpenShift.  A node port that the client chooses
 * occupies that port on all nodes; it needs the right "create" on services/nodeports.  A
 * node port that the server chooses needs no right. */
#include "apiserver/admission/plugins.h"

#include "api/kinds/kind_service.h"
#include "apiserver/access/authz.h"
#include "apiserver/admission/alloc.h"

static bool may(struct request *q, const char *resource)
{
    return authz_may(q->server->security, q->user, "create", "", resource, q->namespace, q->name);
}

/* ---- endpoints ---- */

/* Whether 'text' is among the addresses of the Endpoints 'masters'. */
static bool is_masters(const struct json *masters, const char *text)
{
    const struct json *subset, *a;
    JSON_FOREACH (subset, json_get(masters, "subsets")) {
        JSON_FOREACH (a, json_get(subset, "addresses")) {
            if (streq_null(json_path_string(a, "ip", NULL), text)) {
                return true;
            }
        }
    }
    return false;
}

static int check_ip(struct request *q, const struct json *obj, const struct json *masters,
                    const char *field, const struct json *v, struct outcome *outcome)
{
    const char *text = json_get_string(v);
    uint32_t ip;
    if (!text || ip4_parse(text, &ip) < 0 ||
        (!alloc_is_inside(q->server->alloc, ip) && !is_masters(masters, text))) {
        return 0;
    }
    CLEANUP_FREE char *why =
        xasprintf("endpoint address %s is not allowed: it is a pod's, a service's, a node's or a "
                  "master's, which needs the right to create endpoints/restricted",
                  text);
    return admission_refuse_field(q, obj, field, why, outcome);
}

static int check_subsets(struct request *q, const struct json *obj, const struct json *masters,
                         struct outcome *outcome)
{
    static const char *const lists[] = {"addresses", "notReadyAddresses"};
    const struct json *subsets = json_get(obj, "subsets");
    for (size_t i = 0; i < json_count(subsets); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
            const struct json *list = json_get(json_at(subsets, i), lists[k]);
            for (size_t j = 0; j < json_count(list); j++) {
                int r =
                    check_ip(q, obj, masters, API_FIELD("subsets[%zu].%s[%zu].ip", i, lists[k], j),
                             json_get(json_at(list, j), "ip"), outcome);
                if (r < 0) {
                    return r;
                }
            }
        }
    }
    return 0;
}

static int check_slice(struct request *q, const struct json *obj, const struct json *masters,
                       struct outcome *outcome)
{
    const struct json *endpoints = json_get(obj, "endpoints");
    for (size_t i = 0; i < json_count(endpoints); i++) {
        const struct json *list = json_get(json_at(endpoints, i), "addresses");
        for (size_t j = 0; j < json_count(list); j++) {
            int r = check_ip(q, obj, masters, API_FIELD("endpoints[%zu].addresses[%zu]", i, j),
                             json_at(list, j), outcome);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

/* 'members' end with NULL. */
static bool unchanged(const struct json *obj, const struct json *old, const char *const *members)
{
    for (size_t i = 0; old && members[i]; i++) {
        const struct json *a = json_get(obj, members[i]), *b = json_get(old, members[i]);
        if (!a != !b || (a && !json_equal(a, b))) {
            return false;
        }
    }
    return old != NULL;
}

/* ---- services ---- */

static bool has_port(const struct json *old, int64_t port)
{
    const struct json *p;
    JSON_FOREACH (p, json_path(old, "spec", "ports", NULL)) {
        if (json_get_int_or(json_get(p, "nodePort"), 0) == port) {
            return true;
        }
    }
    return json_get_int_or(json_path(old, "spec", "healthCheckNodePort", NULL), 0) == port;
}

static int check_node_port(struct request *q, const struct json *obj, const struct json *old,
                           const char *field, const struct json *v, struct outcome *outcome)
{
    int64_t port = json_get_int_or(v, 0);
    if (!port || has_port(old, port) || may(q, "services/nodeports")) {
        return 0;
    }
    return admission_refuse_field(
        q, obj, field,
        "a node port cannot be chosen without the right to create services/nodeports; "
        "leave it out, and the server chooses one",
        outcome);
}

int node_ports_validate(struct request *q, const struct json *obj, const struct json *old,
                        struct outcome *outcome)
{
    const struct json *spec = json_get(obj, "spec"), *ports = json_get(spec, "ports");
    int r = 0;
    if (!q->server->alloc) {
        return 0;
    }
    if (service_needs_node_ports(spec)) {
        for (size_t i = 0; r == 0 && i < json_count(ports); i++) {
            r = check_node_port(q, obj, old, API_FIELD("spec.ports[%zu].nodePort", i),
                                json_get(json_at(ports, i), "nodePort"), outcome);
        }
    }
    if (r == 0 && service_needs_health_port(spec)) {
        r = check_node_port(q, obj, old, "spec.healthCheckNodePort",
                            json_get(spec, "healthCheckNodePort"), outcome);
    }
    return r;
}

int endpoints_validate(struct request *q, const struct json *obj, const struct json *old,
                       struct outcome *outcome)
{
    static const char *const subsets[] = {"subsets", NULL}, *const slice[] = {"endpoints", NULL};
    bool endpoints = streq(q->kind->plural, "endpoints");
    if (!q->server->alloc || unchanged(obj, old, endpoints ? subsets : slice) ||
        may(q, "endpoints/restricted")) {
        return 0;
    }
    /* The endpoints of the API's own service are the addresses of the masters. */
    CLEANUP(json_free)
    struct json *masters =
        security_object(q->server->security, "", "endpoints", "default", "kubernetes");
    return (endpoints ? check_subsets : check_slice)(q, obj, masters, outcome);
}
