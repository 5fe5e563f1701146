/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/compose_route.h"

#include "base/mem.h"

#include <errno.h>

/* The first port that TCP can use; NULL: there is none. */
static const struct json *tcp_port(const struct json *service)
{
    const struct json *p;
    JSON_FOREACH (p, json_path(service, "spec", "ports", NULL)) {
        const char *protocol = json_get_text(p, "protocol");
        if (!*protocol || streq(protocol, "TCP")) {
            return p;
        }
    }
    return NULL;
}

static void set_if(struct json *obj, const char *key, const char *text)
{
    if (text) {
        json_set_string(obj, key, text);
    }
}

static void set_port(struct json *spec, const char *text)
{
    int64_t n = 0;
    json_set(json_ensure_object(spec, "port"), "targetPort",
             str_to_i64(text, 0, INT32_MAX, &n) == 0 ? json_int(n) : json_string(text));
}

static void set_tls(struct json *spec, const struct compose_route_options *o)
{
    struct json *tls = json_ensure_object(spec, "tls");
    json_set_string(tls, "termination", o->termination);
    set_if(tls, "certificate", o->cert);
    set_if(tls, "key", o->key);
    set_if(tls, "caCertificate", o->ca);
    set_if(tls, "destinationCACertificate", o->destination_ca);
    set_if(tls, "insecureEdgeTerminationPolicy", o->insecure);
}

struct json *compose_route(const struct compose_route_options *o, const struct json *service,
                           struct err *e)
{
    const struct json *port = tcp_port(service);
    const struct json *labels = json_path(service, "metadata", "labels", NULL);
    labels = o->labels ? o->labels : labels;
    if (!service && !o->port) {
        err_set(e, -EINVAL,
                "you need to provide a route port via --port when exposing a non-existent service");
        return NULL;
    }
    if (service && !port) {
        err_set(e, -EINVAL, "service \"%s\" doesn't support TCP", o->service);
        return NULL;
    }
    struct json *r = json_object();
    json_set_string(r, "apiVersion", "route.openshift.io/v1");
    json_set_string(r, "kind", "Route");
    struct json *meta = json_ensure_object(r, "metadata"), *spec = json_ensure_object(r, "spec");
    json_set_string(meta, "name", o->name ? o->name : o->service);
    if (json_count(labels)) {
        json_set(meta, "labels", json_clone(labels));
    }
    set_if(spec, "host", o->host);
    set_if(spec, "path", o->path);
    struct json *to = json_ensure_object(spec, "to");
    json_set_string(to, "kind", "Service");
    json_set_string(to, "name", o->service);
    if (o->port || *json_get_text(port, "name")) {
        set_port(spec, o->port ? o->port : json_get_text(port, "name"));
    }
    if (o->termination) {
        set_tls(spec, o);
    }
    set_if(spec, "wildcardPolicy", o->wildcard);
    return r;
}
