/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints (core v1): the addresses behind the service of the same name. */
#include "api/kinds.h"
#include "api/service_fields.h"

#include "base/mem.h"

#include <arpa/inet.h>

#define SHOWN 3 /* Endpoints in a cell. */

/* ---- shared checks ---- */

static bool is_unspecified6(const uint8_t a[16])
{
    static const uint8_t zero[16];
    return memcmp(a, zero, 16) == 0;
}

static bool is_loopback6(const uint8_t a[16])
{
    static const uint8_t one[16] = {[15] = 1};
    return memcmp(a, one, 16) == 0;
}

bool service_check_endpoint_ip(struct api_causes *c, const char *field, const struct json *v)
{
    const char *text = json_get_string(v);
    uint8_t a[16] = {0};
    uint32_t ip;
    bool four = text && ip4_parse(text, &ip) == 0;
    if (!four && (!text || inet_pton(AF_INET6, text, a) != 1)) {
        api_invalid(c, field, v, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        return false;
    }
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const char *why = NULL;
    if (!four && memcmp(a, mapped, sizeof mapped) == 0) {
        why = "must not be an IPv4-mapped IPv6 address";
    } else if (four ? ip == 0 : is_unspecified6(a)) {
        why = "may not be unspecified (0.0.0.0 or ::)";
    } else if (four ? ip >> 24 == 127 : is_loopback6(a)) {
        why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    } else if (four ? ip >> 16 == 0xa9fe : a[0] == 0xfe && (a[1] & 0xc0) == 0x80) {
        why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    } else if (four ? ip >> 8 == 0xe00000 : a[0] == 0xff && (a[1] & 0x0f) == 2) {
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    }
    if (why) {
        api_invalid(c, field, v, "%s", why);
    }
    return !why;
}

bool service_check_protocol(struct api_causes *c, const char *field, const struct json *v)
{
    static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
    return api_field_enum(c, field, v, true, protocols);
}

void service_check_app_protocol(struct api_causes *c, const char *field, const struct json *v)
{
    api_field_checked(c, field, v, false, api_check_qualified_name);
}

bool service_is_empty(const struct json *obj, const char *key)
{
    const struct json *v = json_get(obj, key);
    int64_t i;
    return !v || json_is(v, JSON_NULL) || (json_is(v, JSON_STRING) && !json_string_size(v)) ||
           ((json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT)) && !json_count(v)) ||
           (json_get_int(v, &i) == 0 && i == 0);
}

bool service_same(const struct json *a, const struct json *b, const char *key)
{
    bool no = service_is_empty(a, key);
    return no == service_is_empty(b, key) && (no || json_equal(json_get(a, key), json_get(b, key)));
}

/* ---- columns ---- */

struct shown {
    struct strbuf text;
    size_t listed, count;
};

static void show(struct shown *s, const struct json *addresses, const struct json *port)
{
    const struct json *a;
    JSON_FOREACH (a, addresses) {
        const char *ip = json_path_string(a, "ip", NULL);
        s->count++;
        if (s->listed == SHOWN) {
            continue;
        }
        s->listed++;
        bool six = ip && strchr(ip, ':') && port;
        strbuf_addf(&s->text, "%s%s%s%s", s->text.size ? "," : "", six ? "[" : "", ip ? ip : "",
                    six ? "]" : "");
        if (port) {
            strbuf_addf(&s->text, ":%lld", (long long) json_get_int_or(json_get(port, "port"), 0));
        }
    }
}

struct json *kind_endpoints_cell_endpoints(const struct json *obj, int64_t now_ms)
{
    const struct json *subsets = json_get(obj, "subsets"), *subset, *port;
    struct shown s = {.text = STRBUF_INIT};
    if (!json_count(subsets)) {
        return json_string("<none>");
    }
    JSON_FOREACH (subset, subsets) {
        const struct json *addresses = json_get(subset, "addresses"),
                          *ports = json_get(subset, "ports");
        if (!json_count(ports)) {
            show(&s, addresses, NULL);
        }
        JSON_FOREACH (port, ports) {
            show(&s, addresses, port);
        }
    }
    if (s.count > s.listed) {
        strbuf_addf(&s.text, " + %zu more...", s.count - s.listed);
    }
    struct json *cell = json_string(strbuf_cstr(&s.text));
    strbuf_done(&s.text);
    return cell;
}

/* ---- rules ---- */

void kind_endpoints_defaults(struct json *obj)
{
    struct json *subset, *port;
    JSON_FOREACH (subset, json_get(obj, "subsets")) {
        JSON_FOREACH (port, json_get(subset, "ports")) {
            if (json_is(port, JSON_OBJECT)) {
                api_default_string(port, "protocol", "TCP");
            }
        }
    }
}

static void validate_addresses(const char *field, const struct json *list, struct api_causes *c)
{
    if (!api_field_array(c, field, list)) {
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *a = json_at(list, i);
        const char *at = API_FIELD("%s[%zu]", field, i);
        if (!json_is(a, JSON_OBJECT)) {
            api_invalid(c, at, a, "must be an object");
            continue;
        }
        service_check_endpoint_ip(c, API_FIELD("%s.ip", at), json_get(a, "ip"));
        api_field_checked(c, API_FIELD("%s.hostname", at), json_get(a, "hostname"), false,
                          api_check_dns_label);
        api_field_checked(c, API_FIELD("%s.nodeName", at), json_get(a, "nodeName"), false,
                          api_check_dns_subdomain);
    }
}

static void validate_ports(const char *field, const struct json *list, struct api_causes *c)
{
    if (!api_field_array(c, field, list)) {
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *p = json_at(list, i);
        const char *at = API_FIELD("%s[%zu]", field, i);
        int64_t number;
        if (!json_is(p, JSON_OBJECT)) {
            api_invalid(c, at, p, "must be an object");
            continue;
        }
        api_field_checked(c, API_FIELD("%s.name", at), json_get(p, "name"), json_count(list) > 1,
                          api_check_dns_label);
        api_field_int(c, API_FIELD("%s.port", at), json_get(p, "port"), true, 1, 65535, &number);
        service_check_protocol(c, API_FIELD("%s.protocol", at), json_get(p, "protocol"));
        service_check_app_protocol(c, API_FIELD("%s.appProtocol", at), json_get(p, "appProtocol"));
    }
}

void kind_endpoints_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *subsets = json_get(obj, "subsets");
    if (!api_field_array(c, "subsets", subsets)) {
        return;
    }
    for (size_t i = 0; i < json_count(subsets); i++) {
        const struct json *s = json_at(subsets, i);
        const char *at = API_FIELD("subsets[%zu]", i);
        if (!json_is(s, JSON_OBJECT)) {
            api_invalid(c, at, s, "must be an object");
            continue;
        }
        if (service_is_empty(s, "addresses") && service_is_empty(s, "notReadyAddresses")) {
            api_required(c, at, "must specify `addresses` or `notReadyAddresses`");
        }
        validate_addresses(API_FIELD("%s.addresses", at), json_get(s, "addresses"), c);
        validate_addresses(API_FIELD("%s.notReadyAddresses", at), json_get(s, "notReadyAddresses"),
                           c);
        validate_ports(API_FIELD("%s.ports", at), json_get(s, "ports"), c);
    }
}
