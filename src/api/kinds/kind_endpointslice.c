/* SPDX-License-Identifier: Apache-2.0 */
/* EndpointSlice (discovery.k8s.io/v1): some of the endpoints behind a service. */
#include "api/kinds.h"
#include "api/kinds/service_fields.h"

#include "base/mem.h"

#define SHOWN 3 /* Ports, or addresses, shown in a cell. */

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

/* Addresses have the slice's type. */
static void validate_address(const char *field, const struct json *v, const char *type,
                             struct api_causes *c)
{
    uint32_t ip;
    const char *text = json_get_string(v), *wrong;
    if (streq(type, "FQDN")) {
        wrong = api_check_dns_subdomain(text);
    } else if ((ip4_parse(text, &ip) == 0) != streq(type, "IPv4")) {
        api_invalid(c, field, v, "must be an %s address", type);
        return;
    } else {
        wrong = api_check_endpoint_ip(text);
    }
    if (wrong) {
        api_invalid(c, field, v, "%s", wrong);
    }
}

static void validate_port_names(const struct json *ports, struct api_causes *c)
{
    for (size_t i = 0; i < json_count(ports); i++) {
        const struct json *name = json_get(json_at(ports, i), "name");
        for (size_t k = 0; k < i; k++) {
            if (service_same(json_at(ports, i), json_at(ports, k), "name")) {
                CLEANUP(json_free) struct json *none = json_string("");
                api_duplicate(c, API_FIELD("ports[%zu].name", i), name ? name : none);
                break;
            }
        }
    }
}

void kind_endpoint_slice_validate(const struct json *obj, const struct json *old,
                                  struct api_causes *c)
{
    const char *type = json_path_string(obj, "addressType", NULL);
    const struct json *endpoints = json_get(obj, "endpoints");
    for (size_t i = 0; i < json_count(endpoints); i++) {
        const struct json *list = json_get(json_at(endpoints, i), "addresses");
        for (size_t k = 0; k < json_count(list); k++) {
            validate_address(API_FIELD("endpoints[%zu].addresses[%zu]", i, k), json_at(list, k),
                             type, c);
        }
    }
    validate_port_names(json_get(obj, "ports"), c);
}
