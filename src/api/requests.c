/* SPDX-License-Identifier: Apache-2.0 */
#include "api/requests.h"

#include "api/quantity.h"

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t api_amount(const struct json *list, const char *resource, int64_t dflt)
{
    const struct json *v = json_get(list, resource);
    const char *text = json_get_string(v) ? json_get_string(v) : json_number_text(v);
    int64_t n;
    if (!v) {
        return dflt;
    }
    return text && api_quantity_value(text, streq(resource, "cpu") ? -3 : 0, &n, NULL) == 0 &&
                   n >= 0
               ? n
               : INT64_MAX;
}

int64_t api_container_amount(const struct json *container, const char *which, const char *resource,
                             int64_t dflt)
{
    const struct json *r = json_get(container, "resources");
    int64_t limit = api_amount(json_get(r, "limits"), resource, dflt);
    return streq(which, "requests") ? api_amount(json_get(r, which), resource, limit) : limit;
}

int64_t api_pod_amount(const struct json *spec, const char *which, const char *resource,
                       int64_t dflt)
{
    int64_t sum = 0, sidecars = 0, most = 0;
    const struct json *c;
    JSON_FOREACH (c, json_get(spec, "containers")) {
        sum = add(sum, api_container_amount(c, which, resource, dflt));
    }
    JSON_FOREACH (c, json_get(spec, "initContainers")) {
        int64_t n = api_container_amount(c, which, resource, dflt);
        if (streq(json_get_text(c, "restartPolicy"), "Always")) {
            sidecars = add(sidecars, n);
            most = MAX(most, sidecars);
        } else {
            most = MAX(most, add(sidecars, n));
        }
    }
    return add(MAX(add(sum, sidecars), most), api_amount(json_get(spec, "overhead"), resource, 0));
}

bool api_host_port_read(const struct json *port, struct api_host_port *ret)
{
    const char *ip = json_get_text(port, "hostIP"), *protocol = json_get_text(port, "protocol");
    int64_t n = json_get_int_or(json_get(port, "hostPort"), 0);
    if (n <= 0) {
        return false;
    }
    *ret = (struct api_host_port){*ip ? ip : "0.0.0.0", *protocol ? protocol : "TCP", n};
    return true;
}

bool api_host_ports_conflict(const struct api_host_port *a, const struct api_host_port *b)
{
    return a->port == b->port && streq(a->protocol, b->protocol) &&
           (streq(a->ip, b->ip) || streq(a->ip, "0.0.0.0") || streq(b->ip, "0.0.0.0"));
}
