/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/backends.h"

#include "apiserver/admission/addresses.h"
#include "base/random.h"

#include <stdio.h>

struct json *backends_find(const struct apiserver *a, const char *plural, const char *ns,
                           const char *name)
{
    const struct cache_kind *ck = cache_find(&a->cache, api_kind_find("", "v1", plural));
    CLEANUP_FREE char *key = cache_key(ns, name);
    const struct object *o = ck ? keyset_get(&ck->objects, key) : NULL;
    return o ? object_parse_as(o, ck->kind) : NULL;
}

const struct json *backends_port(const struct json *service, const char *wanted)
{
    const struct json *ports = json_path(service, "spec", "ports", NULL), *port;
    uint64_t number = 0;
    bool by_number = str_to_u64(wanted, UINT16_MAX, &number) == 0 && number;
    JSON_FOREACH (port, ports) {
        bool same = by_number ? json_get_int_or(json_get(port, "port"), 0) == (int64_t) number
                              : streq(json_get_text(port, "name"), wanted);
        if (same || (!*wanted && json_count(ports) == 1)) {
            return port;
        }
    }
    return NULL;
}

/* The pod behind an address of the Endpoints; NULL: there is none with that address. */
static struct json *pod_behind(const struct apiserver *a, const char *ns,
                               const struct json *address)
{
    const struct json *ref = json_get(address, "targetRef");
    CLEANUP(json_free)
    struct json *pod = streq(json_get_text(ref, "kind"), "Pod")
                           ? backends_find(a, "pods", ns, json_get_text(ref, "name"))
                           : NULL;
    return pod && streq(json_get_text(json_get(pod, "status"), "podIP"),
                        json_get_text(address, "ip"))
               ? TAKE(pod)
               : NULL;
}

struct json *backends_choose(const struct apiserver *a, const struct json *endpoints,
                             const char *port_name, uint16_t *ret_port)
{
    const struct json *subset, *port;
    const char *ns = json_path_string(endpoints, "metadata", "namespace", NULL);
    uint32_t first;
    random_bytes(&first, sizeof first);
    JSON_FOREACH (subset, json_get(endpoints, "subsets")) {
        JSON_FOREACH (port, json_get(subset, "ports")) {
            const struct json *list = json_get(subset, "addresses");
            int64_t number = json_get_int_or(json_get(port, "port"), 0);
            size_t n = json_count(list);
            if (!streq(json_get_text(port, "name"), port_name) || number <= 0 ||
                number > UINT16_MAX) {
                continue;
            }
            for (size_t i = 0; i < n; i++) {
                struct json *pod = pod_behind(a, ns, json_at(list, (first % n + i) % n));
                if (pod) {
                    *ret_port = (uint16_t) number;
                    return pod;
                }
            }
        }
    }
    return NULL;
}

int backends_resolve(const struct apiserver *a, const char *ns, const char *name, uint16_t port,
                     uint32_t *ret_ip, uint16_t *ret_port, struct err *e)
{
    char wanted[8];
    snprintf(wanted, sizeof wanted, "%u", port);
    CLEANUP(json_free) struct json *service = backends_find(a, "services", ns, name);
    CLEANUP(json_free) struct json *endpoints = backends_find(a, "endpoints", ns, name);
    const struct json *found = backends_port(service, wanted);
    if (!service) {
        return err_set(e, -EHOSTUNREACH, "service \"%.63s\" not found in namespace \"%.63s\"", name,
                       ns);
    }
    if (!found) {
        return err_set(e, -EHOSTUNREACH, "no service port %u found for service \"%.63s\"", port,
                       name);
    }
    CLEANUP(json_free)
    struct json *pod = backends_choose(a, endpoints, json_get_text(found, "name"), ret_port);
    if (!pod) {
        return err_set(e, -EHOSTUNREACH, "no endpoints available for service \"%.63s\"", name);
    }
    return addresses_of_pod(a->addresses, pod, ret_ip, e) < 0
               ? err_prefix(e, "pod %s cannot be reached",
                            json_path_string(pod, "metadata", "name", NULL))
               : 0;
}
