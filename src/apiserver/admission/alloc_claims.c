/* SPDX-License-Identifier: Apache-2.0 */
/* The keys and values of claims in the store. */
#include "apiserver/admission/alloc_claims.h"

#include "api/kinds/kind_service.h"
#include "base/mem.h"

#define IP_PREFIX CLAIM_PREFIX "ips/"
#define PORT_PREFIX CLAIM_PREFIX "ports/"
#define INGRESS_PREFIX CLAIM_PREFIX "ingress/"

char *claim_of_ip(uint32_t ip)
{
    return xasprintf(IP_PREFIX "%s", IP4_TEXT(ip));
}

char *claim_of_ingress(uint32_t ip)
{
    return xasprintf(INGRESS_PREFIX "%s", IP4_TEXT(ip));
}

char *claim_of_port(uint16_t port)
{
    return xasprintf(PORT_PREFIX "%u", port);
}

int claim_parse(const char *key, enum claim_type *ret_type, uint32_t *ret_number)
{
    uint64_t port = 0;
    uint32_t ip = 0;
    if (str_has_prefix(key, PORT_PREFIX)) {
        if (str_to_u64(key + strlen(PORT_PREFIX), UINT16_MAX, &port) < 0) {
            return -EINVAL;
        }
        *ret_type = CLAIM_PORT;
        *ret_number = (uint32_t) port;
        return 0;
    }
    bool ingress = str_has_prefix(key, INGRESS_PREFIX);
    if ((!ingress && !str_has_prefix(key, IP_PREFIX)) ||
        ip4_parse(key + strlen(ingress ? INGRESS_PREFIX : IP_PREFIX), &ip) < 0) {
        return -EINVAL;
    }
    *ret_type = ingress ? CLAIM_INGRESS : CLAIM_IP;
    *ret_number = ip;
    return 0;
}

struct blob *claim_value(const char *service_key)
{
    CLEANUP(json_free) struct json *v = json_object();
    json_set_string(v, "service", service_key);
    CLEANUP_FREE char *text = json_to_text(v);
    return blob_new(text, strlen(text));
}

bool claim_is_of(const struct blob *value, const char *service_key)
{
    CLEANUP(blob_unref) struct blob *want = claim_value(service_key);
    return value->size == want->size && memcmp(value->data, want->data, want->size) == 0;
}

bool claims_have(char *const *keys, const char *key)
{
    for (size_t i = 0; keys[i]; i++) {
        if (streq(keys[i], key)) {
            return true;
        }
    }
    return false;
}

void claims_free(char **keys)
{
    for (size_t i = 0; keys && keys[i]; i++) {
        free(keys[i]);
    }
    free(keys);
}

struct keys {
    char **list;
    size_t n, cap;
};

static void add_key(struct keys *k, char *key)
{
    k->list = grow(k->list, &k->cap, k->n + 2, sizeof *k->list);
    k->list[k->n] = NULL;
    if (claims_have(k->list, key)) {
        free(key);
        return;
    }
    k->list[k->n++] = key;
    k->list[k->n] = NULL;
}

static void add_port(struct keys *k, const struct json *v)
{
    int64_t port;
    if (json_get_int(v, &port) == 0 && port > 0 && port <= UINT16_MAX) {
        add_key(k, claim_of_port((uint16_t) port));
    }
}

char **claims_of(const struct service_ranges *r, const struct json *service)
{
    const struct json *spec = json_get(service, "spec"), *item;
    const char *ip = json_path_string(spec, "clusterIP", NULL);
    struct keys k = {.list = xcalloc(2, sizeof *k.list), .cap = 2};
    uint32_t addr;
    if (service_needs_cluster_ip(spec) && ip && ip4_parse(ip, &addr) == 0) {
        add_key(&k, claim_of_ip(addr));
    }
    if (service_needs_node_ports(spec)) {
        JSON_FOREACH (item, json_get(spec, "ports")) {
            add_port(&k, json_get(item, "nodePort"));
        }
    }
    if (service_needs_health_port(spec)) {
        add_port(&k, json_get(spec, "healthCheckNodePort"));
    }
    if (service_is_load_balancer(spec) && r->has_ingress) {
        JSON_FOREACH (item, json_path(service, "status", "loadBalancer", "ingress", NULL)) {
            ip = json_path_string(item, "ip", NULL);
            if (ip && ip4_parse(ip, &addr) == 0 && prefix_contains(r->ingress, addr)) {
                add_key(&k, claim_of_ingress(addr));
            }
        }
    }
    return k.list;
}
