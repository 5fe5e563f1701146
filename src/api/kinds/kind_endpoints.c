/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints (core v1): the addresses behind the service of the same name. */
#include "api/kinds.h"
#include "api/kinds/service_fields.h"

#include "base/mem.h"

#define SHOWN 3 /* Endpoints shown in a cell. */

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

void kind_endpoints_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *subsets = json_get(obj, "subsets");
    for (size_t i = 0; i < json_count(subsets); i++) {
        const struct json *s = json_at(subsets, i), *ports = json_get(s, "ports");
        const char *at = API_FIELD("subsets[%zu]", i);
        if (service_is_empty(s, "addresses") && service_is_empty(s, "notReadyAddresses")) {
            api_required(c, at, "must specify `addresses` or `notReadyAddresses`");
        }
        for (size_t k = 0; json_count(ports) > 1 && k < json_count(ports); k++) {
            if (service_is_empty(json_at(ports, k), "name")) {
                api_required(c, API_FIELD("%s.ports[%zu].name", at, k), "");
            }
        }
    }
}
