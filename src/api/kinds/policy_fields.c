/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kinds/policy_fields.h"

#include "api/label_selector.h"

#include <arpa/inet.h>
#include <stdio.h>

/* ---- addresses ---- */

/* 16 bytes and a length; an IPv4 prefix in its mapped form, so that prefixes of different
 * families never contain each other. */
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

const char *api_check_cidr(const char *s)
{
    uint8_t bytes[16];
    unsigned len;
    return cidr_bytes(s, bytes, &len)
               ? NULL
               : "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
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

/* ---- AdminNetworkPolicy and BaselineAdminNetworkPolicy ---- */

/* The one member of 'v' among 'names' (which end with NULL) that is set; NULL after a cause. */
static const char *exactly_one(struct api_causes *c, const char *field, const struct json *v,
                               const char *const *names)
{
    const char *found = NULL;
    for (size_t i = 0; names[i]; i++) {
        if (!json_get(v, names[i])) {
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

/* A subject or a peer: one of the members 'names'. */
static void check_peer(struct api_causes *c, const char *field, const struct json *v,
                       const char *const *names)
{
    const char *which = exactly_one(c, field, v, names);
    const struct json *member = which ? json_get(v, which) : NULL;
    if (!which || streq(which, "networks")) {
        return;
    }
    const char *at = API_FIELD("%s.%s", field, which);
    if (streq(which, "pods")) {
        label_selector_check(c, API_FIELD("%s.namespaceSelector", at),
                             json_get(member, "namespaceSelector"));
        label_selector_check(c, API_FIELD("%s.podSelector", at), json_get(member, "podSelector"));
    } else {
        label_selector_check(c, at, member);
    }
}

static void check_admin_port(struct api_causes *c, const char *field, const struct json *v)
{
    static const char *const kinds[] = {"portNumber", "portRange", "namedPort", NULL};
    const struct json *range = json_get(v, "portRange"), *end = json_get(range, "end");
    (void) exactly_one(c, field, v, kinds);
    if (range && json_get_int_or(end, 0) <= json_get_int_or(json_get(range, "start"), 0)) {
        api_invalid(c, API_FIELD("%s.portRange.end", field), end, "must be greater than `start`");
    }
}

static bool some_has(const struct json *list, const char *key)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (json_get(item, key)) {
            return true;
        }
    }
    return false;
}

static void check_admin_rule(struct api_causes *c, const char *field, const struct json *rule,
                             bool egress)
{
    static const char *const from[] = {"namespaces", "pods", NULL};
    static const char *const to[] = {"namespaces", "pods", "nodes", "networks", NULL};
    const char *direction = egress ? "to" : "from";
    const struct json *peers = json_get(rule, direction), *ports = json_get(rule, "ports");
    for (size_t i = 0; i < json_count(peers); i++) {
        check_peer(c, API_FIELD("%s.%s[%zu]", field, direction, i), json_at(peers, i),
                   egress ? to : from);
    }
    for (size_t i = 0; i < json_count(ports); i++) {
        check_admin_port(c, API_FIELD("%s.ports[%zu]", field, i), json_at(ports, i));
    }
    if (some_has(ports, "namedPort") && (some_has(peers, "networks") || some_has(peers, "nodes"))) {
        api_invalid(c, API_FIELD("%s.ports", field), ports,
                    "networks and nodes have no named ports");
    }
}

void policy_check_admin_spec(struct api_causes *c, const struct json *spec)
{
    static const char *const subjects[] = {"namespaces", "pods", NULL};
    check_peer(c, "spec.subject", json_get(spec, "subject"), subjects);
    for (int egress = 0; egress < 2; egress++) {
        const char *key = egress ? "egress" : "ingress";
        const struct json *rules = json_get(spec, key);
        for (size_t i = 0; i < json_count(rules); i++) {
            check_admin_rule(c, API_FIELD("spec.%s[%zu]", key, i), json_at(rules, i), egress);
        }
    }
}
