/* SPDX-License-Identifier: Apache-2.0 */
/* EndpointSlice (discovery.k8s.io/v1): some of the endpoints behind a service. */
#include "api/kinds.h"
#include "api/service_fields.h"

#include "base/mem.h"

#define SHOWN 3 /* Ports, and addresses, in a cell. */
#define MAX_ENDPOINTS 1000
#define MAX_ADDRESSES 100
#define MAX_PORTS 1000

static struct json *shown(struct strbuf *text, size_t count)
{
    if (count > SHOWN) {
        strbuf_addf(text, " + %zu more...", count - SHOWN);
    }
    struct json *cell = json_string(count ? strbuf_cstr(text) : "<unset>");
    strbuf_done(text);
    return cell;
}

struct json *kind_endpoint_slice_cell_ports(const struct json *obj, int64_t now_ms)
{
    struct strbuf text = STRBUF_INIT;
    const struct json *ports = json_get(obj, "ports");
    size_t n = json_count(ports);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const struct json *number = json_get(json_at(ports, i), "port");
        const char *digits = json_number_text(number);
        strbuf_addf(&text, "%s%s", i ? "," : "", digits ? digits : "*");
    }
    return shown(&text, n);
}

struct json *kind_endpoint_slice_cell_endpoints(const struct json *obj, int64_t now_ms)
{
    struct strbuf text = STRBUF_INIT;
    size_t n = 0;
    const struct json *ep, *a;
    JSON_FOREACH (ep, json_get(obj, "endpoints")) {
        JSON_FOREACH (a, json_get(ep, "addresses")) {
            const char *address = json_get_string(a);
            if (n++ < SHOWN) {
                strbuf_addf(&text, "%s%s", text.size ? "," : "", address ? address : "");
            }
        }
    }
    return shown(&text, n);
}

/* ---- rules ---- */

void kind_endpoint_slice_defaults(struct json *obj)
{
    struct json *port;
    JSON_FOREACH (port, json_get(obj, "ports")) {
        if (json_is(port, JSON_OBJECT)) {
            const struct json *name = json_get(port, "name");
            if (!name || json_is(name, JSON_NULL)) {
                json_set_string(port, "name", "");
            }
            api_default_string(port, "protocol", "TCP");
        }
    }
}

static void validate_address(const char *field, const struct json *v, const char *type,
                             struct api_causes *c)
{
    uint32_t ip;
    const char *text = json_get_string(v);
    if (!text) {
        api_invalid(c, field, v, "must be a string");
    } else if (streq(type, "FQDN")) {
        const char *wrong = api_check_dns_subdomain(text);
        if (wrong) {
            api_invalid(c, field, v, "%s", wrong);
        }
    } else if ((ip4_parse(text, &ip) == 0) != streq(type, "IPv4")) {
        api_invalid(c, field, v, "must be an %s address", type);
    } else {
        service_check_endpoint_ip(c, field, v);
    }
}

static void validate_addresses(const char *field, const struct json *list, const char *type,
                               struct api_causes *c)
{
    if (!json_is(list, JSON_ARRAY) || !json_count(list)) {
        api_required(c, field, "must contain at least 1 address");
        return;
    }
    if (json_count(list) > MAX_ADDRESSES) {
        api_too_many(c, field, json_count(list), MAX_ADDRESSES);
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        validate_address(API_FIELD("%s[%zu]", field, i), json_at(list, i), type, c);
    }
}

static void validate_endpoints(const struct json *list, const char *type, struct api_causes *c)
{
    if (!api_field_array(c, "endpoints", list)) {
        return;
    }
    if (json_count(list) > MAX_ENDPOINTS) {
        api_too_many(c, "endpoints", json_count(list), MAX_ENDPOINTS);
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *ep = json_at(list, i);
        const char *at = API_FIELD("endpoints[%zu]", i);
        if (!json_is(ep, JSON_OBJECT)) {
            api_invalid(c, at, ep, "must be an object");
            continue;
        }
        validate_addresses(API_FIELD("%s.addresses", at), json_get(ep, "addresses"), type, c);
        api_field_checked(c, API_FIELD("%s.hostname", at), json_get(ep, "hostname"), false,
                          api_check_dns_label);
        api_field_checked(c, API_FIELD("%s.nodeName", at), json_get(ep, "nodeName"), false,
                          api_check_dns_subdomain);
    }
}

static void validate_port(const char *field, const struct json *list, size_t i,
                          struct api_causes *c)
{
    const struct json *p = json_at(list, i), *name = json_get(p, "name");
    int64_t number;
    if (!json_is(p, JSON_OBJECT)) {
        api_invalid(c, field, p, "must be an object");
        return;
    }
    for (size_t k = 0; k < i; k++) {
        if (service_same(p, json_at(list, k), "name")) {
            CLEANUP(json_free) struct json *none = json_string("");
            api_duplicate(c, API_FIELD("%s.name", field), name ? name : none);
            break;
        }
    }
    api_field_checked(c, API_FIELD("%s.name", field), name, false, api_check_dns_label);
    api_field_int(c, API_FIELD("%s.port", field), json_get(p, "port"), false, 1, 65535, &number);
    service_check_protocol(c, API_FIELD("%s.protocol", field), json_get(p, "protocol"));
    service_check_app_protocol(c, API_FIELD("%s.appProtocol", field), json_get(p, "appProtocol"));
}

void kind_endpoint_slice_validate(const struct json *obj, const struct json *old,
                                  struct api_causes *c)
{
    static const char *const types[] = {"FQDN", "IPv4", "IPv6", NULL};
    const struct json *type = json_get(obj, "addressType"), *ports = json_get(obj, "ports");
    if (!api_field_enum(c, "addressType", type, true, types)) {
        return;
    }
    if (old) {
        api_field_immutable(c, "addressType", type, json_get(old, "addressType"));
    }
    validate_endpoints(json_get(obj, "endpoints"), json_get_string(type), c);
    if (api_field_array(c, "ports", ports)) {
        if (json_count(ports) > MAX_PORTS) {
            api_too_many(c, "ports", json_count(ports), MAX_PORTS);
            return;
        }
        for (size_t i = 0; i < json_count(ports); i++) {
            validate_port(API_FIELD("ports[%zu]", i), ports, i, c);
        }
    }
}
