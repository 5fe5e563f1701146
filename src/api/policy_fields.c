/* SPDX-License-Identifier: Apache-2.0 */
#include "api/policy_fields.h"

#include <arpa/inet.h>
#include <stdio.h>

#define MAX_RULES 100
#define MAX_PEERS 100
#define MAX_PORTS 100
#define MAX_NETWORKS 25
#define MAX_RULE_NAME 100
#define MAX_PORT_NAME 15

const char *const policy_protocols[] = {"TCP", "UDP", "SCTP", NULL};

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* ---- selectors ---- */

static void check_match_labels(struct api_causes *c, const char *field, const struct json *v)
{
    if (!api_field_object(c, field, v)) {
        return;
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *wrong = api_check_qualified_name(json_key_at(v, i));
        if (wrong) {
            CLEANUP(json_free) struct json *key = json_string(json_key_at(v, i));
            api_invalid(c, field, key, "%s", wrong);
        } else if (!json_is(json_at(v, i), JSON_STRING)) {
            api_invalid(c, API_FIELD("%s[%s]", field, json_key_at(v, i)), json_at(v, i),
                        "must be a string");
        } else if ((wrong = api_check_label_value(json_get_string(json_at(v, i))))) {
            api_invalid(c, field, json_at(v, i), "%s", wrong);
        }
    }
}

static void check_values(struct api_causes *c, const char *field, const struct json *v,
                         const char *op)
{
    bool some = api_field_array(c, field, v) && json_count(v) > 0;
    if (streq(op, "In") || streq(op, "NotIn")) {
        if (!some) {
            api_required(c, field, "must be specified when `operator` is 'In' or 'NotIn'");
            return;
        }
        for (size_t i = 0; i < json_count(v); i++) {
            const char *at = API_FIELD("%s[%zu]", field, i), *wrong;
            if (!json_is(json_at(v, i), JSON_STRING)) {
                api_invalid(c, at, json_at(v, i), "must be a string");
            } else if ((wrong = api_check_label_value(json_get_string(json_at(v, i))))) {
                api_invalid(c, at, json_at(v, i), "%s", wrong);
            }
        }
    } else if (some) {
        api_forbidden(c, field,
                      "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
}

static void check_expression(struct api_causes *c, const char *field, const struct json *v)
{
    static const char *const operators[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    if (!json_is(v, JSON_OBJECT)) {
        api_invalid(c, field, v, "must be an object");
        return;
    }
    api_field_checked(c, API_FIELD("%s.key", field), json_get(v, "key"), true,
                      api_check_qualified_name);
    const struct json *op = json_get(v, "operator");
    if (!api_field_string(c, API_FIELD("%s.operator", field), op, true)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
        if (streq(operators[i], json_get_string(op))) {
            check_values(c, API_FIELD("%s.values", field), json_get(v, "values"), operators[i]);
            return;
        }
    }
    api_invalid(c, API_FIELD("%s.operator", field), op, "not a valid selector operator");
}

void policy_check_selector(struct api_causes *c, const char *field, const struct json *v)
{
    if (!api_field_object(c, field, v)) {
        return;
    }
    check_match_labels(c, API_FIELD("%s.matchLabels", field), json_get(v, "matchLabels"));
    const char *list = API_FIELD("%s.matchExpressions", field);
    const struct json *expressions = json_get(v, "matchExpressions");
    if (api_field_array(c, list, expressions)) {
        for (size_t i = 0; i < json_count(expressions); i++) {
            check_expression(c, API_FIELD("%s[%zu]", list, i), json_at(expressions, i));
        }
    }
}

/* ---- addresses ---- */

/* 16 bytes and a length; an IPv4 prefix in its mapped form, so that families never contain each other. */
static bool cidr_bytes(const char *s, uint8_t ret[16], unsigned *ret_len)
{
    char text[64];
    const char *slash = strchr(s, '/');
    uint64_t len;
    uint32_t four;
    if (!slash || (size_t) (slash - s) >= sizeof text) {
        return false;
    }
    snprintf(text, sizeof text, "%.*s", (int) (slash - s), s);
    if (ip4_parse(text, &four) == 0) {
        if (str_to_u64(slash + 1, 32, &len) < 0) {
            return false;
        }
        memset(ret, 0, 10);
        ret[10] = ret[11] = 0xff;
        for (unsigned i = 0; i < 4; i++) {
            ret[12 + i] = (uint8_t) (four >> (24 - 8 * i));
        }
        *ret_len = 96 + (unsigned) len;
        return true;
    }
    if (inet_pton(AF_INET6, text, ret) != 1 || str_to_u64(slash + 1, 128, &len) < 0) {
        return false;
    }
    *ret_len = (unsigned) len;
    return true;
}

bool policy_check_cidr(struct api_causes *c, const char *field, const struct json *v)
{
    uint8_t bytes[16];
    unsigned len;
    if (!api_field_string(c, field, v, true)) {
        return false;
    }
    if (!cidr_bytes(json_get_string(v), bytes, &len)) {
        api_invalid(c, field, v, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        return false;
    }
    return true;
}

bool policy_cidr_is_within(const char *inner, const char *outer)
{
    uint8_t a[16], b[16];
    unsigned la, lb;
    if (!cidr_bytes(inner, a, &la) || !cidr_bytes(outer, b, &lb) || la <= lb) {
        return false;
    }
    for (unsigned bit = 0; bit < lb; bit++) {
        if ((a[bit / 8] ^ b[bit / 8]) >> (7 - bit % 8) & 1) {
            return false;
        }
    }
    return true;
}

/* ---- ports ---- */

bool policy_check_port_number(struct api_causes *c, const char *field, const struct json *v,
                              bool required, int64_t *ret)
{
    return api_field_int(c, field, v, required, 1, 65535, ret);
}

bool policy_check_port_name(struct api_causes *c, const char *field, const struct json *v)
{
    const char *s = json_get_string(v);
    size_t n = json_string_size(v);
    bool letter = false;
    if (n == 0) {
        api_invalid(c, field, v, "must contain at least one letter (a-z)");
        return false;
    }
    if (n > MAX_PORT_NAME) {
        api_invalid(c, field, v, "must be no more than %d characters", MAX_PORT_NAME);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        bool lower = s[i] >= 'a' && s[i] <= 'z';
        letter |= lower;
        if (!lower && !(s[i] >= '0' && s[i] <= '9') && s[i] != '-') {
            api_invalid(c, field, v,
                        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
            return false;
        }
        if (s[i] == '-' && i + 1 < n && s[i + 1] == '-') {
            api_invalid(c, field, v, "must not contain consecutive hyphens");
            return false;
        }
    }
    if (s[0] == '-' || s[n - 1] == '-') {
        api_invalid(c, field, v, "must not begin or end with a hyphen");
        return false;
    }
    if (!letter) {
        api_invalid(c, field, v, "must contain at least one letter (a-z)");
    }
    return letter;
}

/* ---- AdminNetworkPolicy and BaselineAdminNetworkPolicy ---- */

/* The one member of 'v' among 'names' (which end with NULL) that is set; NULL after a cause. */
static const char *exactly_one(struct api_causes *c, const char *field, const struct json *v,
                               const char *const *names)
{
    const char *found = NULL;
    if (!json_is(v, JSON_OBJECT)) {
        api_invalid(c, field, v, "must be an object");
        return NULL;
    }
    for (size_t i = 0; names[i]; i++) {
        if (is_absent(json_get(v, names[i]))) {
            continue;
        }
        if (found) {
            api_forbidden(c, field, "may not specify both %s and %s", found, names[i]);
            return NULL;
        }
        found = names[i];
    }
    if (!found) {
        CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
        for (size_t i = 0; names[i]; i++) {
            strbuf_addf(&list, "%s%s", i ? ", " : "", names[i]);
        }
        api_required(c, field, "must specify one of %s", strbuf_cstr(&list));
    }
    return found;
}

static void check_pods_of_namespaces(struct api_causes *c, const char *field, const struct json *v)
{
    static const char *const members[] = {"namespaceSelector", "podSelector", NULL};
    if (!api_field_object(c, field, v)) {
        return;
    }
    for (size_t i = 0; members[i]; i++) {
        const char *at = API_FIELD("%s.%s", field, members[i]);
        if (is_absent(json_get(v, members[i]))) {
            api_required(c, at, "");
        } else {
            policy_check_selector(c, at, json_get(v, members[i]));
        }
    }
}

static void check_networks(struct api_causes *c, const char *field, const struct json *v)
{
    if (!api_field_array(c, field, v)) {
        return;
    }
    if (json_count(v) == 0) {
        api_required(c, field, "must name a network");
    } else if (json_count(v) > MAX_NETWORKS) {
        api_too_many(c, field, json_count(v), MAX_NETWORKS);
        return;
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *at = API_FIELD("%s[%zu]", field, i);
        if (!policy_check_cidr(c, at, json_at(v, i))) {
            continue;
        }
        for (size_t k = 0; k < i; k++) {
            if (json_equal(json_at(v, k), json_at(v, i))) {
                api_duplicate(c, at, json_at(v, i));
                break;
            }
        }
    }
}

static void check_admin_peer(struct api_causes *c, const char *field, const struct json *v,
                             bool egress)
{
    static const char *const from[] = {"namespaces", "pods", NULL};
    static const char *const to[] = {"namespaces", "pods", "nodes", "networks", NULL};
    const char *which = exactly_one(c, field, v, egress ? to : from);
    if (!which) {
        return;
    }
    const char *at = API_FIELD("%s.%s", field, which);
    if (streq(which, "pods")) {
        check_pods_of_namespaces(c, at, json_get(v, which));
    } else if (streq(which, "networks")) {
        check_networks(c, at, json_get(v, which));
    } else {
        policy_check_selector(c, at, json_get(v, which));
    }
}

static void check_admin_port(struct api_causes *c, const char *field, const struct json *v)
{
    static const char *const kinds[] = {"portNumber", "portRange", "namedPort", NULL};
    const char *which = exactly_one(c, field, v, kinds);
    if (!which) {
        return;
    }
    const struct json *p = json_get(v, which);
    const char *at = API_FIELD("%s.%s", field, which);
    if (streq(which, "namedPort")) {
        if (api_field_string(c, at, p, true)) {
            policy_check_port_name(c, at, p);
        }
        return;
    }
    if (!api_field_object(c, at, p)) {
        return;
    }
    api_field_enum(c, API_FIELD("%s.protocol", at), json_get(p, "protocol"), true,
                   policy_protocols);
    int64_t start, end;
    if (streq(which, "portNumber")) {
        policy_check_port_number(c, API_FIELD("%s.port", at), json_get(p, "port"), true, &start);
        return;
    }
    bool good =
        policy_check_port_number(c, API_FIELD("%s.start", at), json_get(p, "start"), true, &start);
    if (policy_check_port_number(c, API_FIELD("%s.end", at), json_get(p, "end"), true, &end) &&
        good && end <= start) {
        api_invalid(c, API_FIELD("%s.end", at), json_get(p, "end"), "must be greater than `start`");
    }
}

static bool some_has(const struct json *list, const char *key)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_count(list); i++) {
        if (!is_absent(json_get(json_at(list, i), key))) {
            return true;
        }
    }
    return false;
}

static void check_admin_rule(struct api_causes *c, const char *field, const struct json *rule,
                             bool egress, const char *const *actions)
{
    if (!json_is(rule, JSON_OBJECT)) {
        api_invalid(c, field, rule, "must be an object");
        return;
    }
    const struct json *name = json_get(rule, "name");
    if (api_field_string(c, API_FIELD("%s.name", field), name, false) &&
        json_string_size(name) > MAX_RULE_NAME) {
        api_too_long(c, API_FIELD("%s.name", field), MAX_RULE_NAME);
    }
    api_field_enum(c, API_FIELD("%s.action", field), json_get(rule, "action"), true, actions);

    const char *list = API_FIELD("%s.%s", field, egress ? "to" : "from");
    const struct json *peers = json_get(rule, egress ? "to" : "from");
    if (is_absent(peers) || (json_is(peers, JSON_ARRAY) && json_count(peers) == 0)) {
        api_required(c, list, "must specify a peer");
    } else if (json_count(peers) > MAX_PEERS) {
        api_too_many(c, list, json_count(peers), MAX_PEERS);
    } else if (api_field_array(c, list, peers)) {
        for (size_t i = 0; i < json_count(peers); i++) {
            check_admin_peer(c, API_FIELD("%s[%zu]", list, i), json_at(peers, i), egress);
        }
    }
    list = API_FIELD("%s.ports", field);
    const struct json *ports = json_get(rule, "ports");
    if (json_count(ports) > MAX_PORTS) {
        api_too_many(c, list, json_count(ports), MAX_PORTS);
    } else if (api_field_array(c, list, ports)) {
        for (size_t i = 0; i < json_count(ports); i++) {
            check_admin_port(c, API_FIELD("%s[%zu]", list, i), json_at(ports, i));
        }
    }
    if (egress && some_has(ports, "namedPort") &&
        (some_has(peers, "networks") || some_has(peers, "nodes"))) {
        api_invalid(c, list, ports, "networks and nodes have no named ports");
    }
}

void policy_check_admin_spec(struct api_causes *c, const struct json *spec,
                             const char *const *actions)
{
    static const char *const subjects[] = {"namespaces", "pods", NULL};
    const struct json *subject = json_get(spec, "subject");
    if (is_absent(subject)) {
        api_required(c, "spec.subject", "");
    } else {
        const char *which = exactly_one(c, "spec.subject", subject, subjects);
        if (which && streq(which, "pods")) {
            check_pods_of_namespaces(c, "spec.subject.pods", json_get(subject, "pods"));
        } else if (which) {
            policy_check_selector(c, "spec.subject.namespaces", json_get(subject, "namespaces"));
        }
    }
    for (int egress = 0; egress < 2; egress++) {
        const char *key = egress ? "egress" : "ingress";
        const struct json *rules = json_get(spec, key);
        const char *list = API_FIELD("spec.%s", key);
        if (!api_field_array(c, list, rules)) {
            continue;
        }
        if (json_count(rules) > MAX_RULES) {
            api_too_many(c, list, json_count(rules), MAX_RULES);
            continue;
        }
        for (size_t i = 0; i < json_count(rules); i++) {
            check_admin_rule(c, API_FIELD("%s[%zu]", list, i), json_at(rules, i), egress, actions);
        }
    }
}

void policy_default_admin_spec(struct json *spec)
{
    for (int egress = 0; egress < 2; egress++) {
        struct json *rule, *port;
        JSON_FOREACH (rule, json_get(spec, egress ? "egress" : "ingress")) {
            JSON_FOREACH (port, json_get(rule, "ports")) {
                struct json *number = json_get(port, "portNumber");
                struct json *range = json_get(port, "portRange");
                if (json_is(number, JSON_OBJECT)) {
                    api_default_string(number, "protocol", "TCP");
                }
                if (json_is(range, JSON_OBJECT)) {
                    api_default_string(range, "protocol", "TCP");
                }
            }
        }
    }
}
