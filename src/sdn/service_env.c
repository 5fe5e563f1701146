/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/service_env.h"

#include "base/ip.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* "my-db" as MY_DB; owned. */
static char *variable(const char *s)
{
    char *v = xstrdup(s);
    for (char *p = v; *p; p++) {
        *p = *p >= 'a' && *p <= 'z' ? (char) (*p - 'a' + 'A') : *p == '-' || *p == '.' ? '_' : *p;
    }
    return v;
}

static char *protocol_of(const struct json *port)
{
    const char *s = json_path_string(port, "protocol", NULL);
    char *v = xstrdup(s && *s ? s : "TCP");
    for (char *p = v; *p; p++) {
        *p = *p >= 'A' && *p <= 'Z' ? (char) (*p - 'A' + 'a') : *p;
    }
    return v;
}

static void add_port(struct json *env, const char *name, const char *ip, const struct json *port,
                     bool first)
{
    long long number = (long long) json_get_int_or(json_get(port, "port"), 0);
    const char *port_name = json_path_string(port, "name", NULL);
    CLEANUP_FREE char *protocol = protocol_of(port);
    CLEANUP_FREE char *upper = xstrdup(protocol);
    for (char *p = upper; *p; p++) {
        *p = *p >= 'a' && *p <= 'z' ? (char) (*p - 'a' + 'A') : *p;
    }
    if (port_name && *port_name) {
        CLEANUP_FREE char *v = variable(port_name);
        json_append(env, json_stringf("%s_SERVICE_PORT_%s=%lld", name, v, number));
    }
    if (first) {
        json_append(env, json_stringf("%s_PORT=%s://%s:%lld", name, protocol, ip, number));
    }
    CLEANUP_FREE char *prefix = xasprintf("%s_PORT_%lld_%s", name, number, upper);
    json_append(env, json_stringf("%s=%s://%s:%lld", prefix, protocol, ip, number));
    json_append(env, json_stringf("%s_PROTO=%s", prefix, protocol));
    json_append(env, json_stringf("%s_PORT=%lld", prefix, number));
    json_append(env, json_stringf("%s_ADDR=%s", prefix, ip));
}

static void add_service(struct json *env, const struct json *service, const char *ip)
{
    const struct json *ports = json_path(service, "spec", "ports", NULL);
    CLEANUP_FREE char *name = variable(json_path_string(service, "metadata", "name", NULL));
    json_append(env, json_stringf("%s_SERVICE_HOST=%s", name, ip));
    if (json_count(ports)) {
        json_append(
            env, json_stringf("%s_SERVICE_PORT=%lld", name,
                              (long long) json_get_int_or(json_get(json_at(ports, 0), "port"), 0)));
    }
    for (size_t i = 0; i < json_count(ports); i++) {
        add_port(env, name, ip, json_at(ports, i), i == 0);
    }
}

/* The cluster address; NULL: it has none. */
static const char *address_of(const struct json *service)
{
    const char *ip = json_path_string(service, "spec", "clusterIP", NULL);
    uint32_t addr;
    return ip && ip4_parse(ip, &addr) == 0 ? ip : NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(json_path_string(*(const struct json *const *) a, "metadata", "name", NULL),
                  json_path_string(*(const struct json *const *) b, "metadata", "name", NULL));
}

void service_env_add(const struct json *services, const char *namespace, bool links,
                     struct json *env)
{
    size_t n = 0;
    const struct json **list = xcalloc(json_count(services) + 1, sizeof *list), *s;
    bool own_kubernetes = false;
    JSON_FOREACH (s, services) {
        const char *ns = json_path_string(s, "metadata", "namespace", NULL);
        const char *name = json_path_string(s, "metadata", "name", NULL);
        own_kubernetes |= links && name && address_of(s) && streq_null(ns, namespace) &&
                          streq(name, "kubernetes");
    }
    JSON_FOREACH (s, services) {
        const char *ns = json_path_string(s, "metadata", "namespace", NULL);
        const char *name = json_path_string(s, "metadata", "name", NULL);
        bool own = links && streq_null(ns, namespace);
        /* A service with this name in the pod's own namespace takes precedence. */
        bool api = streq_null(ns, "default") && streq_null(name, "kubernetes") &&
                   (!own_kubernetes || streq(namespace, "default"));
        if (name && address_of(s) && (own || api)) {
            list[n++] = s;
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof *list, by_name);
    }
    for (size_t i = 0; i < n; i++) {
        add_service(env, list[i], address_of(list[i]));
    }
    free(list);
}
