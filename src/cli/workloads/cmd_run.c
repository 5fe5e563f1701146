/* SPDX-License-Identifier: Apache-2.0 */
/* tenet run and expose: a pod from an image; a Service for the pods of a workload; a Route for a
 * Service. */
#include "base/mem.h"
#include "cli/kubectl/compose.h"
#include "cli/kubectl/create_route.h"
#include "cli/kubectl/target.h"
#include "cli/workloads/template.h"

#include <inttypes.h>
#include <stdio.h>

/* Reads "a=b,c=d" into an object. */
static int read_labels(const char *text, struct json *ret)
{
    CLEANUP_FREE char *list = xstrdup(text);
    for (char *p = list, *next; p && *p; p = next) {
        next = strchr(p, ',');
        if (next) {
            *next++ = '\0';
        }
        char *equals = strchr(p, '=');
        if (!equals || equals == p) {
            return session_error("\"%s\" is not KEY=VALUE", p);
        }
        *equals = '\0';
        json_set_string(ret, p, equals + 1);
    }
    return 0;
}

/* ---- run ---- */

enum { OPT_IMAGE = OPT_FIRST_FREE, OPT_ENV, OPT_PORT, OPT_LABELS, OPT_RESTART, OPT_COMMAND };

static const struct command_option run_options[] = {
    {"image", OPT_IMAGE, "IMAGE", "the image; required"},
    {"env", OPT_ENV, "NAME=VALUE", "an environment variable; may be repeated"},
    {"port", OPT_PORT, "PORT", "the port on which the container listens"},
    {"labels", OPT_LABELS, "KEY=VALUE[,KEY=VALUE]", "labels of the pod; default: run=NAME"},
    {"restart", OPT_RESTART, "POLICY", "default: Always", "Always OnFailure Never"},
    {"command", OPT_COMMAND, NULL, "the words after \"--\" replace the image's command"},
    {0},
};

struct run {
    struct compose_options o;
    const char *images[2];
    struct json *env, *labels;
};

static void run_done(struct run *r)
{
    json_free(r->env);
    json_free(r->labels);
}

static int add_variable(struct run *r)
{
    const char *equals = strchr(optarg, '=');
    if (!equals || equals == optarg) {
        return session_error("invalid env: %s", optarg);
    }
    struct json *v = json_append(r->env, json_object());
    json_set(v, "name", json_string_n(optarg, (size_t) (equals - optarg)));
    json_set_string(v, "value", equals + 1);
    return -1;
}

/* Returns -1 to go on, else the exit status. */
static int parse_run(struct targets *t, struct run *r, int argc, char **argv)
{
    int opt, status = -1;
    while (status < 0 && (opt = targets_getopt(t, &cmd_run, argc, argv)) != -1) {
        switch (opt) {
        case OPT_IMAGE:
            r->images[0] = optarg;
            break;
        case OPT_ENV:
            status = add_variable(r);
            break;
        case OPT_PORT:
            if (str_to_i64(optarg, 1, 65535, &r->o.port) < 0) {
                return command_usage(&cmd_run, "--port \"%s\" is not a port", optarg);
            }
            break;
        case OPT_LABELS:
            if (read_labels(optarg, r->labels) != 0) {
                return 1;
            }
            break;
        case OPT_RESTART:
            r->o.restart = optarg;
            break;
        case OPT_COMMAND:
            r->o.arguments = false;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return status;
}

static int run_run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    __attribute__((cleanup(run_done))) struct run r = {
        .o = {.replicas = -1, .port = -1, .arguments = true, .restart = "Always"},
        .env = json_array(),
        .labels = json_object()};
    struct err e = {0};
    int all = argc;
    r.o.command = command_take_rest(&argc, argv);
    r.o.n_command = r.o.command ? (int) (argv + all - r.o.command) : 0;
    int status = parse_run(&t, &r, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (argc - optind != 1) {
        return session_error("NAME is required for run");
    }
    r.o.images = r.images;
    r.o.name = argv[optind];
    r.o.env = r.env;
    r.o.labels = json_count(r.labels) ? r.labels : NULL;
    CLEANUP(json_free) struct json *pod = compose_object("Pod", &r.o, &e);
    if (!pod) {
        return session_error("%s", e.text);
    }
    status = session_open(&t.s);
    return status ? status : targets_create(&t, api_kind_find("", "v1", "pods"), pod, "created");
}

/* ---- expose ---- */

struct expose {
    const char *name, *port, *target_port, *protocol, *type, *selector, *labels;
    const char *cluster_ip, *external_ip, *affinity;
    const char *host, *path, *wildcard; /* A Route's. */
};

enum {
    OPT_NAME = OPT_FIRST_FREE,
    OPT_SERVICE_PORT,
    OPT_TARGET_PORT,
    OPT_PROTOCOL,
    OPT_TYPE,
    OPT_SELECTOR,
    OPT_SERVICE_LABELS,
    OPT_CLUSTER_IP,
    OPT_EXTERNAL_IP,
    OPT_AFFINITY,
    OPT_HOSTNAME,
    OPT_PATH,
    OPT_WILDCARD
};

static const struct command_option expose_options[] = {
    {"port", OPT_SERVICE_PORT, "PORT[,PORT]", "ports of the Service; default: the containers'"},
    {"target-port", OPT_TARGET_PORT, "PORT", "port of the containers, a number or a name"},
    {"protocol", OPT_PROTOCOL, "PROTOCOL", "default: TCP", "TCP UDP SCTP"},
    {"name", OPT_NAME, "NAME", "the Service; default: the name of the object"},
    {"type", OPT_TYPE, "TYPE", "default: ClusterIP", "ClusterIP NodePort LoadBalancer"},
    {"selector", OPT_SELECTOR, "SEL", "the pods; default: those of the object"},
    {"labels", OPT_SERVICE_LABELS, "KEY=VALUE[,KEY=VALUE]",
     "labels of the Service; default: those of the object"},
    {"cluster-ip", OPT_CLUSTER_IP, "ADDRESS", "its address, or None"},
    {"external-ip", OPT_EXTERNAL_IP, "ADDRESS", "a further address of the cluster's nodes"},
    {"session-affinity", OPT_AFFINITY, "WHAT", "ClientIP: a client stays with a pod",
     "ClientIP None"},
    {NULL, 0, NULL, "Options of routes:"},
    {"hostname", OPT_HOSTNAME, "HOST", "the host name; default: the server makes one"},
    {"path", OPT_PATH, "PATH", "the path of requests; default: all"},
    {"wildcard-policy", OPT_WILDCARD, "POLICY", "Subdomain: all hosts of the domain",
     "None Subdomain"},
    {0},
};

/* The labels of the pods behind the object; NULL after the error was printed. */
static struct json *pod_labels(const struct expose *x, const struct target *g)
{
    if (x->selector) {
        CLEANUP(json_free) struct json *labels = json_object();
        return read_labels(x->selector, labels) ? NULL : TAKE(labels);
    }
    const struct json *selector = json_path(g->object, "spec", "selector", NULL);
    if (kind_is(g->kind, "", "Pod")) {
        selector = json_path(g->object, "metadata", "labels", NULL);
    } else if (json_get(selector, "matchLabels") || json_get(selector, "matchExpressions")) {
        if (json_count(json_get(selector, "matchExpressions"))) {
            (void) session_error("couldn't convert expressions - \"%s\" to map-based selector "
                                 "format; give --selector",
                                 target_name(g));
            return NULL;
        }
        selector = json_get(selector, "matchLabels");
    }
    if (json_count(selector) == 0) {
        (void) session_error("couldn't retrieve selectors via --selector flag or introspection: "
                             "the %s has no labels and cannot be exposed",
                             g->kind->singular);
        return NULL;
    }
    return json_clone(selector);
}

static struct json *port_or_name(const char *text)
{
    int64_t n = 0;
    return str_to_i64(text, 1, 65535, &n) == 0 ? json_int(n) : json_string(text);
}

static void add_port(struct json *ports, const struct expose *x, int64_t port, const char *protocol,
                     bool named)
{
    struct json *p = json_append(ports, json_object());
    if (named) {
        json_set(p, "name", json_stringf("port-%zu", json_count(ports)));
    }
    json_set_int(p, "port", port);
    json_set_string(p, "protocol", protocol);
    json_set(p, "targetPort", x->target_port ? port_or_name(x->target_port) : json_int(port));
}

/* The ports: given ones, those of a Service, or those of the containers.  NULL after the error was
 * printed. */
static struct json *service_ports(const struct expose *x, const struct target *g)
{
    CLEANUP(json_free) struct json *ports = json_array();
    const struct json *c, *p;
    const char *protocol = x->protocol ? x->protocol : "TCP";
    if (x->port) {
        bool several = strchr(x->port, ',') != NULL;
        CLEANUP_FREE char *list = xstrdup(x->port);
        for (char *s = list, *next; s && *s; s = next) {
            int64_t port = 0;
            next = strchr(s, ',');
            if (next) {
                *next++ = '\0';
            }
            if (str_to_i64(s, 1, 65535, &port) < 0) {
                (void) session_error("--port: \"%s\" is not a port", s);
                return NULL;
            }
            add_port(ports, x, port, protocol, several);
        }
        return TAKE(ports);
    }
    const struct json *own = json_path(g->object, "spec", "ports", NULL);
    const struct json *containers =
        json_path(template_of(g->kind, g->object), "spec", "containers", NULL);
    size_t n = kind_is(g->kind, "", "Service") ? json_count(own) : 0;
    JSON_FOREACH (c, containers) {
        n += json_count(json_get(c, "ports"));
    }
    JSON_FOREACH (p, kind_is(g->kind, "", "Service") ? own : NULL) {
        add_port(ports, x, json_get_int_or(json_get(p, "port"), 0),
                 x->protocol ? x->protocol : json_get_text(p, "protocol"), n > 1);
    }
    JSON_FOREACH (c, containers) {
        JSON_FOREACH (p, json_get(c, "ports")) {
            const char *of_port = json_get_text(p, "protocol");
            add_port(ports, x, json_get_int_or(json_get(p, "containerPort"), 0),
                     !x->protocol && *of_port ? of_port : protocol, n > 1);
        }
    }
    if (json_count(ports) == 0) {
        (void) session_error("couldn't find port via --port flag or introspection");
        return NULL;
    }
    return TAKE(ports);
}

static int expose(struct targets *t, const struct target *g, const struct expose *x)
{
    CLEANUP(json_free) struct json *o = json_object();
    struct json *meta = json_ensure_object(o, "metadata"), *spec = json_ensure_object(o, "spec");
    const struct json *labels = json_path(g->object, "metadata", "labels", NULL);
    struct json *selector = pod_labels(x, g);
    if (!selector) {
        return 1;
    }
    json_set(spec, "selector", selector);
    struct json *ports = service_ports(x, g);
    if (!ports) {
        return 1;
    }
    json_set(spec, "ports", ports);
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "kind", "Service");
    json_set_string(meta, "name", x->name ? x->name : target_name(g));
    if (x->labels) {
        if (read_labels(x->labels, json_ensure_object(meta, "labels")) != 0) {
            return 1;
        }
    } else if (labels) {
        json_set(meta, "labels", json_clone(labels));
    }
    json_set_string(spec, "type", x->type);
    json_set_string(spec, "clusterIP", x->cluster_ip);
    json_set_string(spec, "sessionAffinity", x->affinity);
    if (x->external_ip) {
        json_append(json_ensure_array(spec, "externalIPs"), json_string(x->external_ip));
    }
    return targets_create(t, api_kind_find("", "v1", "services"), o, "exposed");
}

/* Whether an option is given that only a Service has. */
static bool wants_service(const struct expose *x)
{
    return x->target_port || x->protocol || x->type || x->selector || x->cluster_ip ||
           x->external_ip || x->affinity;
}

/* A Service becomes a Route, as oc has it. */
static int expose_route(struct targets *t, const struct target *g, const struct expose *x)
{
    CLEANUP(json_free) struct json *labels = x->labels ? json_object() : NULL;
    if (labels && read_labels(x->labels, labels) != 0) {
        return 1;
    }
    const struct compose_route_options o = {.name = x->name,
                                            .service = target_name(g),
                                            .host = x->host,
                                            .path = x->path,
                                            .port = x->port,
                                            .wildcard = x->wildcard,
                                            .labels = labels};
    return create_route_of(t, &o, g->object, "exposed");
}

static int expose_any(struct targets *t, const struct target *g, const struct expose *x)
{
    bool route = x->host || x->path || x->wildcard;
    if (kind_is(g->kind, "", "Service") && !wants_service(x)) {
        return expose_route(t, g, x);
    }
    if (route) {
        return session_error("--%s is for routes, which are made for a service: tenet expose "
                             "service/NAME",
                             x->host   ? "hostname"
                             : x->path ? "path"
                                       : "wildcard-policy");
    }
    return expose(t, g, x);
}

static int run_expose(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    struct expose x = {0};
    const char **const values[] = {
        &x.name,       &x.port,        &x.target_port, &x.protocol, &x.type, &x.selector, &x.labels,
        &x.cluster_ip, &x.external_ip, &x.affinity,    &x.host,     &x.path, &x.wildcard};
    int opt;
    while ((opt = targets_getopt(&t, &cmd_expose, argc, argv)) != -1) {
        if (opt < OPT_NAME || opt > OPT_WILDCARD) {
            return opt == OPT_HELP ? 0 : 2;
        }
        *values[opt - OPT_NAME] = optarg;
    }
    int status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n; i++) {
        status |= expose_any(&t, &t.list[i], &x);
    }
    return status;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "run a pod from an image",
    .help = "usage: tenet run NAME --image IMAGE [OPTIONS] [-- ARGUMENT...]\n"
            "       tenet run NAME --image IMAGE --command [OPTIONS] -- COMMAND...\n"
            "\n"
            "Creates a pod with one container.\n",
    .options = run_options,
    .shared = target_new_options,
    .run = run_run};
const struct command cmd_expose = {
    .name = "expose",
    .summary = "make a Service for the pods of a workload, or a Route for a Service",
    .help = "usage: tenet expose KIND/NAME [--port PORT] [OPTIONS]\n"
            "       tenet expose service/NAME [--hostname HOST] [--path PATH] [--port PORT]\n"
            "\n"
            "Makes a Service for the pods of a pod, Deployment, ReplicaSet,\n"
            "ReplicationController, DeploymentConfig or StatefulSet; or a Route for a Service.\n"
            "With an option that only Services have (such as --target-port) it makes another\n"
            "Service for the pods of a Service.\n",
    .options = expose_options,
    .shared = target_new_options,
    .complete = COMPLETE_KIND,
    .run = run_expose};
