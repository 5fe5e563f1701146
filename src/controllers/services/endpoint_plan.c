/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/services/endpoint_plan.h"

#include "base/ip.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"

#define HEADLESS_LABEL "service.kubernetes.io/headless"
#define LEADER_ANNOTATION "control-plane.alpha.kubernetes.io/leader"
#define OVER_CAPACITY "endpoints.kubernetes.io/over-capacity"

static bool is_external_name(const struct json *service)
{
    return streq_null(json_path_string(service, "spec", "type", NULL), "ExternalName");
}

bool service_selects(const struct json *service)
{
    const struct json *selector = json_path(service, "spec", "selector", NULL);
    return json_is(selector, JSON_OBJECT) && json_count(selector) && !is_external_name(service);
}

bool service_mirrors(const struct json *service, const struct json *endpoints)
{
    const char *skip =
        json_path_string(endpoints, "metadata", "labels", SLICE_SKIP_MIRROR_LABEL, NULL);
    return service && endpoints && !service_selects(service) && !is_external_name(service) &&
           !streq_null(skip, "true") && !obj_annotation(endpoints, LEADER_ANNOTATION);
}

/* ---- ports ---- */

/* The number of the service's port in the pod; 0: the pod does not have it. */
static int64_t find_port(const struct json *port, const struct endpoint_pod *p)
{
    const struct json *target = json_get(port, "targetPort");
    const char *protocol = json_path_string(port, "protocol", NULL);
    int64_t number;
    if (!target || json_is(target, JSON_NULL)) {
        return json_get_int_or(json_get(port, "port"), 0);
    }
    if (json_get_int(target, &number) == 0) {
        return number;
    }
    const char *name = json_get_string(target);
    for (size_t i = 0; name && i < p->n_ports; i++) {
        if (streq(p->ports[i].name, name) &&
            streq(p->ports[i].protocol, protocol ? protocol : "TCP")) {
            return p->ports[i].number;
        }
    }
    return 0;
}

static struct json *port_of(const struct json *port, int64_t number, bool in_slice)
{
    struct json *o = json_object();
    const char *name = json_path_string(port, "name", NULL);
    const char *protocol = json_path_string(port, "protocol", NULL);
    const char *app = json_path_string(port, "appProtocol", NULL);
    if (in_slice || (name && *name)) {
        json_set_string(o, "name", name ? name : "");
    }
    json_set_string(o, "protocol", protocol ? protocol : "TCP");
    json_set_int(o, "port", number);
    if (app && *app) {
        json_set_string(o, "appProtocol", app);
    }
    return o;
}

/* The service's ports with this pod's numbers; owned. */
static struct json *ports_of(const struct json *service, const struct endpoint_pod *p, bool slice)
{
    struct json *list = json_array();
    const struct json *port;
    JSON_FOREACH (port, json_path(service, "spec", "ports", NULL)) {
        int64_t number = find_port(port, p);
        if (number) {
            json_append(list, port_of(port, number, slice));
        }
    }
    return list;
}

static bool publishes_all(const struct json *service)
{
    return json_get_bool(json_path(service, "spec", "publishNotReadyAddresses", NULL), false);
}

static const char *hostname_of(const struct json *service, const struct endpoint_pod *p)
{
    return p->hostname && *p->hostname && streq_null(p->subdomain, obj_name(service)) ? p->hostname
                                                                                      : NULL;
}

static struct json *target_of(const struct endpoint_pod *p)
{
    struct json *ref = json_object();
    json_set_string(ref, "kind", "Pod");
    json_set_string(ref, "namespace", p->namespace);
    json_set_string(ref, "name", p->name);
    json_set_string(ref, "uid", p->uid);
    return ref;
}

/* ---- grouping ---- */

/* The member of 'groups' with these ports and this type; made if there is none. */
static struct json *group_for(struct json *groups, struct json *ports, const char *type)
{
    struct json *g;
    JSON_FOREACH (g, groups) {
        if (json_equal(json_get(g, "ports"), ports) &&
            streq_null(json_path_string(g, "addressType", NULL), type)) {
            json_free(ports);
            return g;
        }
    }
    g = json_append(groups, json_object());
    json_set_string(g, "addressType", type);
    json_set(g, "ports", ports);
    return g;
}

static int by_address(const void *a, const void *b)
{
    const struct endpoint_pod *x = *(struct endpoint_pod *const *) a,
                              *y = *(struct endpoint_pod *const *) b;
    uint32_t p = 0, q = 0;
    (void) ip4_parse(x->ip, &p);
    (void) ip4_parse(y->ip, &q);
    return p != q ? (p < q ? -1 : 1) : strcmp(x->uid, y->uid);
}

/* The pods that can be endpoints, sorted; owned. */
static struct endpoint_pod **usable(struct endpoint_pod *const *pods, size_t n, bool terminating,
                                    size_t *ret_n)
{
    struct endpoint_pod **list = xcalloc(n + 1, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (pods[i]->ip && !pods[i]->ended && (terminating || !pods[i]->terminating)) {
            list[count++] = pods[i];
        }
    }
    if (count > 1) {
        qsort(list, count, sizeof *list, by_address);
    }
    *ret_n = count;
    return list;
}

void endpoints_set_trigger_time(struct json *obj, const struct json *service,
                                struct endpoint_pod *const *pods, size_t n)
{
    const char *made = json_path_string(service, "metadata", "creationTimestamp", NULL);
    int64_t newest = 0;
    if (!made || time_parse(made, &newest) < 0) {
        newest = 0;
    }
    for (size_t i = 0; i < n; i++) {
        newest = MAX(newest, pods[i]->since_ms);
    }
    if (newest) {
        char text[TIME_TEXT_SIZE];
        time_format_s(newest, text);
        obj_set_annotation(obj, TRIGGER_TIME_ANNOTATION, text);
    }
}

static bool is_headless(const struct json *service)
{
    return streq_null(json_path_string(service, "spec", "clusterIP", NULL), "None");
}

static void copy_labels(struct json *labels, const struct json *from)
{
    for (size_t i = 0; json_is(from, JSON_OBJECT) && i < json_count(from); i++) {
        json_set(labels, json_key_at(from, i), json_clone(json_at(from, i)));
    }
}

/* ---- Endpoints ---- */

static struct json *address_of(const struct json *service, const struct endpoint_pod *p)
{
    struct json *a = json_object();
    json_set_string(a, "ip", p->ip);
    if (hostname_of(service, p)) {
        json_set_string(a, "hostname", hostname_of(service, p));
    }
    if (p->node) {
        json_set_string(a, "nodeName", p->node);
    }
    json_set(a, "targetRef", target_of(p));
    return a;
}

struct json *endpoints_plan(const struct json *service, struct endpoint_pod *const *pods, size_t n)
{
    bool all = publishes_all(service), headless = is_headless(service);
    bool portless = json_count(json_path(service, "spec", "ports", NULL)) == 0;
    size_t count = 0;
    struct endpoint_pod **list = usable(pods, n, all, &count);
    CLEANUP(json_free) struct json *groups = json_array();
    size_t n_addresses = 0;
    /* Ready addresses come first, in case there are too many. */
    for (size_t k = 0; k < 2 * count && n_addresses < ENDPOINTS_MAX; k++) {
        const struct endpoint_pod *p = list[k % count];
        bool ready = all || p->ready;
        if (ready != (k < count)) {
            continue;
        }
        struct json *ports = ports_of(service, p, false);
        if (!json_count(ports) && !(headless && portless)) {
            json_free(ports);
            continue;
        }
        struct json *g = group_for(groups, ports, "");
        json_append(json_ensure_array(g, ready ? "addresses" : "notReadyAddresses"),
                    address_of(service, p));
        n_addresses++;
    }
    struct json *o = obj_new("v1", "Endpoints", obj_namespace(service), obj_name(service));
    struct json *labels = json_ensure_object(json_get(o, "metadata"), "labels"), *g;
    copy_labels(labels, json_path(service, "metadata", "labels", NULL));
    json_set_string(labels, ENDPOINTS_MANAGER_LABEL, ENDPOINTS_MANAGER);
    if (headless) {
        json_set_string(labels, HEADLESS_LABEL, "");
    }
    endpoints_set_trigger_time(o, service, list, count);
    if (count > ENDPOINTS_MAX) {
        obj_set_annotation(o, OVER_CAPACITY, "truncated");
    }
    free(list);
    struct json *subsets = json_ensure_array(o, "subsets");
    JSON_FOREACH (g, groups) {
        struct json *s = json_append(subsets, json_clone(g));
        json_remove(s, "addressType");
        if (!json_count(json_get(s, "ports"))) {
            json_remove(s, "ports");
        }
    }
    return o;
}

static bool same_list(const struct json *a, const struct json *b)
{
    return (!json_count(a) && !json_count(b)) || (a && b && json_equal(a, b));
}

struct json *endpoints_apply_plan(const struct json *have, const struct json *plan)
{
    const struct json *labels = json_path(plan, "metadata", "labels", NULL);
    const char *over = obj_annotation(plan, OVER_CAPACITY);
    if (same_list(json_get(have, "subsets"), json_get(plan, "subsets")) &&
        same_list(json_path(have, "metadata", "labels", NULL), labels) &&
        streq_null(obj_annotation(have, OVER_CAPACITY), over)) {
        return NULL;
    }
    struct json *o = json_clone(have);
    const char *time = obj_annotation(plan, TRIGGER_TIME_ANNOTATION);
    json_set(o, "subsets", json_clone(json_get(plan, "subsets")));
    json_set(json_ensure_object(o, "metadata"), "labels", json_clone(labels));
    if (time) {
        obj_set_annotation(o, TRIGGER_TIME_ANNOTATION, time);
    }
    if (over) {
        obj_set_annotation(o, OVER_CAPACITY, over);
    } else {
        obj_remove_annotation(o, OVER_CAPACITY);
    }
    return o;
}

/* ---- slices ---- */

static void set_conditions(struct json *ep, bool ready, bool serving, bool terminating)
{
    struct json *c = json_ensure_object(ep, "conditions");
    json_set_bool(c, "ready", ready);
    json_set_bool(c, "serving", serving);
    json_set_bool(c, "terminating", terminating);
}

struct json *slices_plan(const struct json *service, struct endpoint_pod *const *pods, size_t n)
{
    bool all = publishes_all(service);
    size_t count = 0;
    struct endpoint_pod **list = usable(pods, n, true, &count);
    struct json *groups = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct endpoint_pod *p = list[i];
        struct json *g = group_for(groups, ports_of(service, p, true), "IPv4");
        struct json *ep = json_append(json_ensure_array(g, "endpoints"), json_object());
        json_append(json_ensure_array(ep, "addresses"), json_string(p->ip));
        set_conditions(ep, all || (p->ready && !p->terminating), p->ready, p->terminating);
        if (hostname_of(service, p)) {
            json_set_string(ep, "hostname", hostname_of(service, p));
        }
        json_set(ep, "targetRef", target_of(p));
        if (p->node) {
            json_set_string(ep, "nodeName", p->node);
        }
    }
    free(list);
    return groups;
}

static void mirror_address(struct json *groups, const struct json *ports, const struct json *a,
                           bool ready)
{
    static const char *const copied[] = {"hostname", "nodeName", "targetRef"};
    const char *ip = json_path_string(a, "ip", NULL);
    uint32_t addr;
    if (!ip) {
        return;
    }
    const char *type = ip4_parse(ip, &addr) == 0 ? "IPv4" : "IPv6";
    struct json *g = group_for(groups, json_clone(ports), type);
    struct json *ep = json_append(json_ensure_array(g, "endpoints"), json_object());
    json_append(json_ensure_array(ep, "addresses"), json_string(ip));
    json_set_bool(json_ensure_object(ep, "conditions"), "ready", ready);
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++) {
        if (json_get(a, copied[i])) {
            json_set(ep, copied[i], json_clone(json_get(a, copied[i])));
        }
    }
}

struct json *slices_plan_mirror(const struct json *endpoints)
{
    struct json *groups = json_array();
    const struct json *subset, *port, *a;
    JSON_FOREACH (subset, json_get(endpoints, "subsets")) {
        CLEANUP(json_free) struct json *ports = json_array();
        JSON_FOREACH (port, json_get(subset, "ports")) {
            json_append(ports, port_of(port, json_get_int_or(json_get(port, "port"), 0), true));
        }
        JSON_FOREACH (a, json_get(subset, "addresses")) {
            mirror_address(groups, ports, a, true);
        }
        JSON_FOREACH (a, json_get(subset, "notReadyAddresses")) {
            mirror_address(groups, ports, a, false);
        }
    }
    return groups;
}

struct json *slice_template(const struct json *service, const char *manager,
                            const struct json *owner)
{
    struct json *o = obj_new(DISCOVERY_VERSION, "EndpointSlice", obj_namespace(service), "");
    struct json *meta = json_get(o, "metadata"), *labels = json_ensure_object(meta, "labels");
    json_remove(meta, "name");
    json_set(meta, "generateName", json_stringf("%s-", obj_name(service)));
    copy_labels(labels, json_path(owner, "metadata", "labels", NULL));
    json_remove(labels, ENDPOINTS_MANAGER_LABEL);
    json_set_string(labels, SLICE_SERVICE_LABEL, obj_name(service));
    json_set_string(labels, SLICE_MANAGER_LABEL, manager);
    if (is_headless(service)) {
        json_set_string(labels, HEADLESS_LABEL, "");
    } else {
        json_remove(labels, HEADLESS_LABEL);
    }
    struct json *ref = json_append(json_ensure_array(meta, "ownerReferences"), json_object());
    json_set_string(ref, "apiVersion", "v1");
    json_set_string(ref, "kind", streq(manager, SLICE_MANAGER) ? "Service" : "Endpoints");
    json_set_string(ref, "name", obj_name(owner));
    json_set_string(ref, "uid", obj_uid(owner));
    json_set_bool(ref, "controller", true);
    json_set_bool(ref, "blockOwnerDeletion", true);
    return o;
}
