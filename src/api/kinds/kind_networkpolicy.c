/* SPDX-License-Identifier: Apache-2.0 */
/* NetworkPolicy (networking.k8s.io/v1): the allowed peers of the pods that it selects. */
#include "api/kinds.h"
#include "api/kinds/policy_fields.h"
#include "api/label_selector.h"
#include "api/schema.h"

#include "base/mem.h"

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* ---- defaults ---- */

void kind_network_policy_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec");
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    if (is_absent(json_get(spec, "podSelector"))) {
        json_set(spec, "podSelector", json_object());
    }
    const struct json *types = json_get(spec, "policyTypes");
    if (is_absent(types) || (json_is(types, JSON_ARRAY) && json_count(types) == 0)) {
        struct json *list = json_set(spec, "policyTypes", json_array());
        json_append(list, json_string("Ingress"));
        if (json_is(json_get(spec, "egress"), JSON_ARRAY) &&
            json_count(json_get(spec, "egress")) > 0) {
            json_append(list, json_string("Egress"));
        }
    }
}

/* ---- validation ---- */

static void validate_port(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *port = json_get(v, "port"), *end_port = json_get(v, "endPort");
    const char *port_field = API_FIELD("%s.port", field);
    const char *end_field = API_FIELD("%s.endPort", field);
    int64_t first;
    if (!port) {
        if (end_port) {
            api_invalid(c, end_field, end_port,
                        "may not be specified when `port` is not specified");
        }
    } else if (json_is(port, JSON_STRING)) {
        const char *wrong = api_check_port_name(json_get_string(port));
        if (end_port) {
            api_invalid(c, end_field, end_port, "may not be specified when `port` is non-numeric");
        }
        if (wrong) {
            api_invalid(c, port_field, port, "%s", wrong);
        }
    } else if (api_field_int(c, port_field, port, true, 1, 65535, &first) && end_port &&
               json_get_int_or(end_port, 0) < first) {
        api_invalid(c, end_field, end_port, "must be greater than or equal to `port`");
    }
}

static void validate_ip_block(struct api_causes *c, const char *field, const struct json *v)
{
    const char *cidr = json_path_string(v, "cidr", NULL);
    const struct json *except = json_get(v, "except");
    for (size_t i = 0; i < json_count(except); i++) {
        if (!policy_cidr_is_within(json_get_string(json_at(except, i)), cidr)) {
            api_invalid(c, API_FIELD("%s.except[%zu]", field, i), json_at(except, i),
                        "must be a strict subset of `cidr`");
        }
    }
}

static void validate_peer(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *pods = json_get(v, "podSelector"),
                      *namespaces = json_get(v, "namespaceSelector");
    const struct json *block = json_get(v, "ipBlock");
    if (!pods && !namespaces && !block) {
        api_required(c, field, "must specify a peer");
        return;
    }
    if (block && (pods || namespaces)) {
        api_forbidden(c, field, "may not specify both ipBlock and another peer");
    }
    label_selector_check(c, API_FIELD("%s.podSelector", field), pods);
    label_selector_check(c, API_FIELD("%s.namespaceSelector", field), namespaces);
    validate_ip_block(c, API_FIELD("%s.ipBlock", field), block);
}

static void validate_rules(struct api_causes *c, const char *field, const struct json *rules,
                           const char *peers_key)
{
    for (size_t i = 0; i < json_count(rules); i++) {
        const struct json *ports = json_get(json_at(rules, i), "ports");
        const struct json *peers = json_get(json_at(rules, i), peers_key);
        for (size_t k = 0; k < json_count(ports); k++) {
            validate_port(c, API_FIELD("%s[%zu].ports[%zu]", field, i, k), json_at(ports, k));
        }
        for (size_t k = 0; k < json_count(peers); k++) {
            validate_peer(c, API_FIELD("%s[%zu].%s[%zu]", field, i, peers_key, k),
                          json_at(peers, k));
        }
    }
}

void kind_network_policy_validate(const struct json *obj, const struct json *old,
                                  struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *types = json_get(spec, "policyTypes");
    label_selector_check(c, "spec.podSelector", json_get(spec, "podSelector"));
    validate_rules(c, "spec.ingress", json_get(spec, "ingress"), "from");
    validate_rules(c, "spec.egress", json_get(spec, "egress"), "to");
    if (json_count(types) > 2) {
        api_invalid(c, "spec.policyTypes", types, "may not specify more than two policyTypes");
    }
}

struct json *kind_network_policy_cell_selector(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    label_selector_write(json_path(obj, "spec", "podSelector", NULL), &b);
    return api_cell_text(strbuf_cstr(&b), "<none>");
}
