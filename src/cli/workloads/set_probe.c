/* SPDX-License-Identifier: Apache-2.0 */
/* tenet set probe: liveness, readiness and startup probes of containers. */
#include "base/mem.h"
#include "cli/workloads/set.h"

#include <stdio.h>

#define NUMBERS 5

struct probe_change {
    const char *containers, *url, *tcp;
    char **command; /* NULL: none. */
    int n_command;
    bool kinds[3]; /* liveness, readiness, startup */
    bool remove;
    int64_t numbers[NUMBERS]; /* -1: as before. */
    struct json *handler;     /* The new handler; NULL: as before. */
    const char *handler_name;
};

enum {
    OPT_LIVENESS = OPT_FIRST_FREE,
    OPT_READINESS,
    OPT_STARTUP,
    OPT_REMOVE,
    OPT_GET_URL,
    OPT_OPEN_TCP,
    OPT_NUMBER /* The first of NUMBERS. */
};

static const char *const kinds[] = {"livenessProbe", "readinessProbe", "startupProbe"};
static const char *const numbers[NUMBERS] = {"initialDelaySeconds", "timeoutSeconds",
                                             "periodSeconds", "successThreshold",
                                             "failureThreshold"};
static const char *const handlers[] = {"exec", "httpGet", "tcpSocket", "grpc"};

static const struct command_option options[] = {
    {"containers", 'c', "NAME", "the containers, such as web or web*; default: *"},
    {"liveness", OPT_LIVENESS, NULL, "the probe that restarts the container"},
    {"readiness", OPT_READINESS, NULL, "the probe that makes the pod an endpoint of services"},
    {"startup", OPT_STARTUP, NULL, "the probe that the other ones wait for"},
    {"remove", OPT_REMOVE, NULL, "removes the probes"},
    {"get-url", OPT_GET_URL, "URL", "asks by HTTP: http://:8080/healthz, https://HOST:PORT/PATH"},
    {"open-tcp", OPT_OPEN_TCP, "PORT", "opens a connection to this port, a number or a name"},
    {"initial-delay-seconds", OPT_NUMBER, "N", "time before the first probe"},
    {"timeout-seconds", OPT_NUMBER + 1, "N", "time for an answer"},
    {"period-seconds", OPT_NUMBER + 2, "N", "time between probes"},
    {"success-threshold", OPT_NUMBER + 3, "N", "successes in a row that mean success"},
    {"failure-threshold", OPT_NUMBER + 4, "N", "failures in a row that mean failure"},
    {0},
};

/* A port: a number, or the name of a container's port. */
static struct json *port_value(const char *text)
{
    int64_t n = 0;
    return str_to_i64(text, 1, 65535, &n) == 0 ? json_int(n) : json_string(text);
}

/* Reads "SCHEME://[HOST]:PORT[/PATH]". */
static int parse_url(const char *url, struct json **ret, struct err *e)
{
    bool https = str_has_prefix(url, "https://");
    const char *p = strstr(url, "://");
    if (!p || (!https && !str_has_prefix(url, "http://"))) {
        return err_set(e, -EINVAL, "only http and https schemes are supported, not \"%.100s\"",
                       url);
    }
    p += 3;
    size_t host = strcspn(p, ":/");
    size_t end = strcspn(p, "/");
    if (p[host] != ':' || end == host + 1) {
        return err_set(e, -EINVAL, "port must be specified as part of a url: \"%.100s\"", url);
    }
    CLEANUP_FREE char *port = xstrndup(p + host + 1, end - host - 1);
    struct json *get = json_object();
    if (host > 0) {
        json_set(get, "host", json_string_n(p, host));
    }
    json_set(get, "port", port_value(port));
    json_set_string(get, "scheme", https ? "HTTPS" : "HTTP");
    if (p[end]) {
        json_set_string(get, "path", p + end);
    }
    *ret = get;
    return 0;
}

static int make_handler(struct probe_change *c, struct err *e)
{
    if ((c->url != NULL) + (c->tcp != NULL) + (c->n_command > 0) > 1) {
        return err_set(e, -EINVAL, "only one of --get-url, --open-tcp and a command is allowed");
    }
    if (c->url) {
        c->handler_name = "httpGet";
        return parse_url(c->url, &c->handler, e);
    }
    if (c->tcp) {
        c->handler_name = "tcpSocket";
        c->handler = json_object();
        json_set(c->handler, "port", port_value(c->tcp));
    } else if (c->n_command > 0) {
        c->handler_name = "exec";
        c->handler = json_object();
        for (int i = 0; i < c->n_command; i++) {
            json_append(json_ensure_array(c->handler, "command"), json_string(c->command[i]));
        }
    }
    return 0;
}

static bool has_handler(const struct json *probe)
{
    for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
        if (json_get(probe, handlers[i])) {
            return true;
        }
    }
    return false;
}

static int change_probe(const struct probe_change *c, struct json *container, const char *kind,
                        struct err *e)
{
    if (c->remove) {
        json_remove(container, kind);
        return 0;
    }
    struct json *probe = json_ensure_object(container, kind);
    if (c->handler) {
        for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
            json_remove(probe, handlers[i]);
        }
        json_set(probe, c->handler_name, json_clone(c->handler));
    }
    if (!has_handler(probe)) {
        return err_set(e, -EINVAL,
                       "container %s has no %s yet: say what it does by --get-url, --open-tcp or a "
                       "command",
                       json_get_text(container, "name"), kind);
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        if (c->numbers[i] >= 0) {
            json_set_int(probe, numbers[i], c->numbers[i]);
        }
    }
    return 0;
}

static int change_container(void *ctx, struct json *container, struct err *e)
{
    const struct probe_change *c = ctx;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        int r = c->kinds[i] ? change_probe(c, container, kinds[i], e) : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int change(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    struct probe_change *c = ctx;
    struct json *template = template_of(k, object);
    if (!template) {
        return set_no_template(k, object, e);
    }
    int r = template_each_container(template, c->containers, false, change_container, c, e);
    return r == 0 ? set_no_container(c->containers, e) : MIN(r, 0);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(struct targets *t, struct probe_change *c, int argc, char **argv)
{
    int opt;
    while ((opt = targets_getopt(t, &set_probe, argc, argv)) != -1) {
        if (opt >= OPT_LIVENESS && opt <= OPT_STARTUP) {
            c->kinds[opt - OPT_LIVENESS] = true;
        } else if (opt >= OPT_NUMBER && opt < OPT_NUMBER + NUMBERS) {
            if (str_to_i64(optarg, 0, INT32_MAX, &c->numbers[opt - OPT_NUMBER]) < 0) {
                return command_usage(&set_probe, "\"%s\" is not a number", optarg);
            }
        } else if (opt == 'c') {
            c->containers = optarg;
        } else if (opt == OPT_REMOVE) {
            c->remove = true;
        } else if (opt == OPT_GET_URL) {
            c->url = optarg;
        } else if (opt == OPT_OPEN_TCP) {
            c->tcp = optarg;
        } else {
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return -1;
}

static void change_done(struct probe_change *c)
{
    json_free(c->handler);
}

static int run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    __attribute__((cleanup(change_done))) struct probe_change c = {.containers = "*",
                                                                   .numbers = {-1, -1, -1, -1, -1}};
    struct err e = {0};
    int all = argc;
    c.command = command_take_rest(&argc, argv);
    c.n_command = c.command ? (int) (argv + all - c.command) : 0;
    int status = parse_options(&t, &c, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!c.kinds[0] && !c.kinds[1] && !c.kinds[2]) {
        return session_error("you must specify one of --readiness, --liveness or --startup");
    }
    if (make_handler(&c, &e) < 0) {
        return session_error("%s", e.text);
    }
    if (c.remove && c.handler) {
        return session_error("--remove may not be used with any flag except --readiness, "
                             "--liveness or --startup");
    }
    status = targets_load(&t, NULL, argc - optind, argv + optind);
    return status | targets_change(&t, change, &c, "probes updated");
}

const struct command set_probe = {
    .name = "set probe",
    .summary = "probes of containers",
    .help = "usage: tenet set probe KIND/NAME... (--liveness | --readiness | --startup)\n"
            "           (--get-url URL | --open-tcp PORT | --remove) [OPTIONS]\n"
            "       tenet set probe KIND/NAME... (--liveness | --readiness | --startup) [OPTIONS] "
            "-- COMMAND...\n"
            "\n"
            "Sets, changes or removes probes of containers.\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run};
