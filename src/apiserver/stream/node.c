/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/stream/node.h"

#include "apiserver/admission/addresses.h"
#include "apiserver/request/respond.h"

#define KUBELET_PORT 10250
#define CONNECT_MS 10000

/* The address to connect to: the first of the best type that may be used. */
static const char *address_of(const struct apiserver *a, const char *name, const struct json *node,
                              struct err *e)
{
    static const char *const types[] = {"InternalIP", "ExternalIP"};
    const struct json *list = json_path(node, "status", "addresses", NULL), *item;
    err_set(e, -ENOENT, "it reports no address");
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        JSON_FOREACH (item, list) {
            const char *address = json_path_string(item, "address", NULL);
            if (streq_null(json_path_string(item, "type", NULL), types[i]) && address &&
                addresses_check_use(a->addresses, name, address, e) == 0) {
                return address;
            }
        }
    }
    return NULL;
}

static int64_t port_of(const struct json *node)
{
    int64_t port = json_get_int_or(
        json_path(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port", NULL), 0);
    return port > 0 && port <= UINT16_MAX ? port : KUBELET_PORT;
}

int stream_node_client(struct apiserver *a, const char *name,
                       const struct stream_node_limits *limits, struct http_client **ret,
                       struct outcome *outcome)
{
    const struct stream_node_limits none = {0}, *l = limits ? limits : &none;
    const struct apiserver_kubelets *cfg = a->kubelets;
    const struct cache_kind *ck = cache_find(&a->cache, api_kind_find("", "v1", "nodes"));
    const struct object *o = keyset_get(&ck->objects, name);
    CLEANUP(json_free) struct json *node = o ? object_parse(o) : NULL;
    struct err e = {0};
    if (!cfg) {
        outcome_error(outcome, 501, "NotImplemented",
                      "the master has no certificate for nodes: set kubeletClientInfo");
        return -EOPNOTSUPP;
    }
    if (!node) {
        outcome_error(outcome, 404, "NotFound", "nodes \"%s\" not found", name);
        return -ENOENT;
    }
    const char *address = address_of(a, name, node, &e);
    if (!address) {
        outcome_error(outcome, 500, "InternalError",
                      "Internal error occurred: node %s cannot be asked: %s", name, e.text);
        return -EADDRNOTAVAIL;
    }
    CLEANUP_FREE char *url = xasprintf("https://%s:%d", address, (int) port_of(node));
    CLEANUP_FREE char *user = xasprintf("system:node:%s", name);
    struct tls_client_config tls = {
        .ca = cfg->ca, .cert = cfg->cert, .key = cfg->key, .server_user = user};
    struct http_client_config http = {.url = url,
                                      .tls = &tls,
                                      .user_agent = "tenet-apiserver/" TENET_VERSION,
                                      .connect_ms = l->connect_ms ? l->connect_ms : CONNECT_MS,
                                      .response_ms = l->response_ms,
                                      .max_body = l->max_body};
    int r = http_client_new(a->loop, &http, ret, &e);
    if (r < 0) {
        outcome_error(outcome, 500, "InternalError", "Internal error occurred: node %s: %s", name,
                      e.text);
    }
    return r;
}
