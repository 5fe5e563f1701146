/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a Pod that its services depend on. */
#include "api/condition.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controllers/services/endpoint_plan.h"

static char *copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static char *ip_of(const struct json *status)
{
    const char *ip = json_path_string(status, "podIP", NULL);
    const struct json *item;
    uint32_t addr;
    if (ip && ip4_parse(ip, &addr) == 0) {
        return xstrdup(ip);
    }
    JSON_FOREACH (item, json_get(status, "podIPs")) {
        ip = json_path_string(item, "ip", NULL);
        if (ip && ip4_parse(ip, &addr) == 0) {
            return xstrdup(ip);
        }
    }
    return NULL;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static void read_labels(struct endpoint_pod *p, const struct json *labels)
{
    size_t n = json_is(labels, JSON_OBJECT) ? json_count(labels) : 0;
    p->labels = n ? xcalloc(n, sizeof *p->labels) : NULL;
    for (size_t i = 0; i < n; i++) {
        const char *value = json_get_string(json_at(labels, i));
        p->labels[p->n_labels++] = xasprintf("%s=%s", json_key_at(labels, i), value ? value : "");
    }
    if (n) {
        qsort(p->labels, n, sizeof *p->labels, compare_texts);
    }
}

static void read_ports(struct endpoint_pod *p, const struct json *containers, bool sidecars)
{
    const struct json *ct, *port;
    size_t cap = p->n_ports;
    JSON_FOREACH (ct, containers) {
        if (sidecars && !streq_null(json_path_string(ct, "restartPolicy", NULL), "Always")) {
            continue;
        }
        JSON_FOREACH (port, json_get(ct, "ports")) {
            int64_t number = json_get_int_or(json_get(port, "containerPort"), 0);
            const char *name = json_path_string(port, "name", NULL);
            const char *protocol = json_path_string(port, "protocol", NULL);
            if (!name || number < 1 || number > UINT16_MAX) {
                continue; /* Such a port is found by its name only. */
            }
            p->ports = grow(p->ports, &cap, p->n_ports + 1, sizeof *p->ports);
            p->ports[p->n_ports++] = (struct endpoint_pod_port){
                xstrdup(name), xstrdup(protocol ? protocol : "TCP"), (uint16_t) number};
        }
    }
}

struct endpoint_pod *endpoint_pod_new(const struct json *pod)
{
    const struct json *spec = json_get(pod, "spec"), *status = json_get(pod, "status"), *ready;
    const char *phase = json_path_string(status, "phase", NULL), *since;
    struct endpoint_pod *p = NEW(struct endpoint_pod);
    p->namespace = xstrdup(obj_namespace(pod));
    p->name = xstrdup(obj_name(pod));
    p->uid = xstrdup(obj_uid(pod));
    p->reported = ip_of(status);
    p->host_network = json_get_bool(json_get(spec, "hostNetwork"), false);
    p->node = copy(json_path_string(spec, "nodeName", NULL));
    p->hostname = copy(json_path_string(spec, "hostname", NULL));
    p->subdomain = copy(json_path_string(spec, "subdomain", NULL));
    read_labels(p, json_path(pod, "metadata", "labels", NULL));
    read_ports(p, json_get(spec, "containers"), false);
    read_ports(p, json_get(spec, "initContainers"), true);
    p->terminating = obj_is_terminating(pod);
    p->ended = streq_null(phase, "Succeeded") || streq_null(phase, "Failed");
    ready = condition_find(pod, "Ready");
    p->ready = streq_null(json_path_string(ready, "status", NULL), "True");
    since = json_path_string(ready, "lastTransitionTime", NULL);
    if (!since || time_parse(since, &p->since_ms) < 0) {
        p->since_ms = 0;
    }
    return p;
}

struct endpoint_pod *endpoint_pod_free(struct endpoint_pod *p)
{
    if (!p) {
        return NULL;
    }
    for (size_t i = 0; i < p->n_labels; i++) {
        free(p->labels[i]);
    }
    for (size_t i = 0; i < p->n_ports; i++) {
        free(p->ports[i].name);
        free(p->ports[i].protocol);
    }
    free(p->labels);
    free(p->ports);
    free(p->namespace);
    free(p->name);
    free(p->uid);
    free(p->reported);
    free(p->ip);
    free(p->node);
    free(p->hostname);
    free(p->subdomain);
    free(p);
    return NULL;
}

int endpoint_pod_settle(struct endpoint_pod *p, const struct json *host_subnet,
                        const struct address_ranges *foreign, struct err *e)
{
    struct pod_site site;
    uint32_t ip;
    free(TAKE(p->ip));
    if (!p->reported || ip4_parse(p->reported, &ip) < 0) {
        return 0;
    }
    pod_site_read(NULL, host_subnet, &site);
    site.host_network = p->host_network;
    int r = pod_address_check(&site, foreign, ip, e);
    p->ip = r == 0 ? xstrdup(p->reported) : NULL;
    return r;
}

bool endpoint_pod_equal(const struct endpoint_pod *a, const struct endpoint_pod *b)
{
    if (!streq(a->uid, b->uid) || !streq_null(a->ip, b->ip) || !streq_null(a->node, b->node) ||
        !streq_null(a->hostname, b->hostname) || !streq_null(a->subdomain, b->subdomain) ||
        a->ready != b->ready || a->terminating != b->terminating || a->ended != b->ended ||
        a->n_labels != b->n_labels || a->n_ports != b->n_ports) {
        return false;
    }
    for (size_t i = 0; i < a->n_labels; i++) {
        if (!streq(a->labels[i], b->labels[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < a->n_ports; i++) {
        if (!streq(a->ports[i].name, b->ports[i].name) ||
            !streq(a->ports[i].protocol, b->ports[i].protocol) ||
            a->ports[i].number != b->ports[i].number) {
            return false;
        }
    }
    return true;
}

static bool has_label(const struct endpoint_pod *p, const char *key, const char *value)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < p->n_labels; i++) {
        const char *s = p->labels[i];
        if (strncmp(s, key, n) == 0 && s[n] == '=' && streq(s + n + 1, value)) {
            return true;
        }
    }
    return false;
}

bool endpoint_pod_matches(const struct endpoint_pod *p, const struct json *selector)
{
    size_t n = json_is(selector, JSON_OBJECT) ? json_count(selector) : 0;
    for (size_t i = 0; i < n; i++) {
        const char *value = json_get_string(json_at(selector, i));
        if (!has_label(p, json_key_at(selector, i), value ? value : "")) {
            return false;
        }
    }
    return n > 0;
}
