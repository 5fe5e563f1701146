/* SPDX-License-Identifier: Apache-2.0 */
/* tenet logs: what containers wrote. */
#include "api/label_selector.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/target.h"

#include <inttypes.h>
#include <stdio.h>

struct logs {
    struct session s;
    const char *container, *labels, *since_time;
    int64_t tail, limit, since_s, version; /* -1: not given. */
    bool follow, previous, timestamps, all_containers, prefix;
};

enum {
    OPT_TAIL = OPT_FIRST_FREE,
    OPT_SINCE,
    OPT_SINCE_TIME,
    OPT_TIMESTAMPS,
    OPT_ALL_CONTAINERS,
    OPT_LIMIT,
    OPT_VERSION,
    OPT_PREFIX
};

static const struct command_option options[] = {
    {"container", 'c', "NAME", "the container; default: the only one, or the first"},
    {"follow", 'f', NULL, "also what comes, until the container ends"},
    {"previous", 'p', NULL, "of the container before its last restart"},
    {"selector", 'l', "SEL", "the pods with these labels"},
    {"all-containers", OPT_ALL_CONTAINERS, NULL, "all containers of the pods, one after the other"},
    {"prefix", OPT_PREFIX, NULL, "a line with pod and container before each log"},
    {"tail", OPT_TAIL, "N", "the last lines only; -1: all"},
    {"since", OPT_SINCE, "DURATION", "not older than 5s, 2m, 3h"},
    {"since-time", OPT_SINCE_TIME, "TIME", "not older than this time (RFC 3339)"},
    {"timestamps", OPT_TIMESTAMPS, NULL, "with the time before each line"},
    {"limit-bytes", OPT_LIMIT, "N", "so many bytes at most"},
    {"version", OPT_VERSION, "N", "of this rollout of a DeploymentConfig"},
    {0},
};

/* ---- one log ---- */

struct stream {
    bool over;
    int status; /* HTTP's; 0: no answer. */
    int error;
    char *text; /* The error; owned. */
};

static void on_data(void *ctx, const char *p, size_t size)
{
    (void) ctx;
    fwrite(p, 1, size, stdout);
    fflush(stdout);
}

static void on_end(void *ctx, const struct http_result *r)
{
    struct stream *s = ctx;
    CLEANUP(json_free) struct json *status = NULL;
    s->over = true;
    s->status = r->status;
    s->error = r->error;
    if (r->error < 0) {
        s->text = xstrdup(r->error_text);
    } else if (r->status != 200) {
        (void) json_parse(r->body, r->size, &status, NULL);
        const char *message = json_path_string(status, "message", NULL);
        s->text = message ? xstrdup(message) : xasprintf("answered with status %d", r->status);
    }
}

static void add_number(struct strbuf *path, const char *key, int64_t n)
{
    char text[24];
    if (n >= 0) {
        (void) snprintf(text, sizeof(text), "%" PRId64, n);
        resource_query(path, key, text);
    }
}

/* Prints the log at a path of the API. */
static int print_log(struct logs *l, const char *base, const char *container)
{
    static const struct http_stream_ops ops = {.data = on_data, .ended = on_end};
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    struct stream s = {0};
    strbuf_adds(&path, base);
    resource_query(&path, "container", container);
    resource_query(&path, "follow", l->follow ? "true" : NULL);
    resource_query(&path, "previous", l->previous ? "true" : NULL);
    resource_query(&path, "timestamps", l->timestamps ? "true" : NULL);
    resource_query(&path, "sinceTime", l->since_time);
    add_number(&path, "tailLines", l->tail);
    add_number(&path, "sinceSeconds", l->since_s);
    add_number(&path, "limitBytes", l->limit);
    add_number(&path, "version", l->version);
    (void) http_stream(api_client_http(l->s.client), strbuf_cstr(&path), "*/*", 0, &ops, &s);
    (void) loop_run_until(l->s.loop, &s.over, 0);
    if (!s.text) {
        return 0;
    }
    struct err e = {0};
    static const struct {
        int status, code;
    } codes[] = {{404, -ENOENT}, {403, -EACCES}, {401, -EPERM}, {400, -EINVAL}};
    int code = s.error < 0 ? s.error : -EAGAIN;
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        code = s.error == 0 && s.status == codes[i].status ? codes[i].code : code;
    }
    err_set(&e, code, "%s", s.text);
    free(s.text);
    return session_fail(&l->s, &e, NULL);
}

static int print_container(struct logs *l, const char *pod, const char *container)
{
    CLEANUP_FREE char *path = api_path("v1", "pods", l->s.ns, pod, "log");
    if (l->prefix) {
        printf("[pod/%s/%s]\n", pod, container);
    }
    return print_log(l, path, container);
}

/* ---- pods ---- */

static const char *first_container(const struct json *pod)
{
    const char *chosen = json_path_string(pod, "metadata", "annotations",
                                          "kubectl.kubernetes.io/default-container", NULL);
    const struct json *list = json_path(pod, "spec", "containers", NULL);
    return chosen ? chosen : json_get_text(json_at(list, 0), "name");
}

static int print_pod(struct logs *l, const struct json *pod)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const char *name = json_path_string(pod, "metadata", "name", NULL);
    const struct json *containers = json_path(pod, "spec", "containers", NULL), *c;
    int status = 0;
    if (!l->all_containers) {
        if (!l->container && json_count(containers) > 1) {
            fprintf(stderr, "Defaulted container \"%s\" of %zu\n", first_container(pod),
                    json_count(containers));
        }
        return print_container(l, name, l->container ? l->container : first_container(pod));
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (c, json_path(pod, "spec", lists[i], NULL)) {
            status |= print_container(l, name, json_get_text(c, "name"));
        }
    }
    return status;
}

static int get_pods(struct logs *l, const char *labels, struct json **ret)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *base = api_path("v1", "pods", l->s.ns, NULL, NULL);
    struct err e = {0};
    strbuf_adds(&path, base);
    resource_query(&path, "labelSelector", labels);
    return api_request_sync(l->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, ret, &e) < 0
               ? session_fail(&l->s, &e, NULL)
               : 0;
}

/* The pod to show of those of a workload: one that runs, else the first. */
static const struct json *choose(const struct json *list)
{
    const struct json *pod, *best = json_at(json_get(list, "items"), 0);
    JSON_FOREACH (pod, json_get(list, "items")) {
        if (streq(json_get_text(json_get(pod, "status"), "phase"), "Running")) {
            return pod;
        }
    }
    return best;
}

static int of_workload(struct logs *l, const struct api_kind *k, const struct json *object)
{
    CLEANUP_STRBUF struct strbuf labels = STRBUF_INIT;
    CLEANUP(json_free) struct json *list = NULL;
    label_selector_write(json_path(object, "spec", "selector", NULL), &labels);
    if (!labels.size) {
        return session_error("cannot get the logs from %s: it has no selector of pods", k->kind);
    }
    if (get_pods(l, strbuf_cstr(&labels), &list) != 0) {
        return 1;
    }
    size_t n = json_count(json_get(list, "items"));
    const struct json *pod = choose(list);
    const char *name = json_path_string(object, "metadata", "name", NULL);
    if (!pod) {
        return session_error("%s/%s has no pods so far", k->singular, name);
    }
    if (n > 1) {
        fprintf(stderr, "Found %zu pods, using pod/%s\n", n,
                json_path_string(pod, "metadata", "name", NULL));
    }
    return print_pod(l, pod);
}

static int of_resource(struct logs *l, const struct resource *r)
{
    CLEANUP(json_free) struct json *o = NULL;
    CLEANUP_FREE char *path = resource_path(r->kind, l->s.ns, r->name);
    CLEANUP_FREE char *log = xasprintf("%s/log", path);
    struct err e = {0};
    /* Kinds of OpenShift have a log of their own. */
    if (streq(r->kind->group, "apps.openshift.io") || streq(r->kind->group, "build.openshift.io")) {
        return print_log(l, log, l->container);
    }
    if (api_request_sync(l->s.client, "GET", path, NULL, NULL, NULL, &o, &e) < 0) {
        return session_fail(&l->s, &e, NULL);
    }
    bool is_pod = !*r->kind->group && streq(r->kind->kind, "Pod");
    return is_pod ? print_pod(l, o) : of_workload(l, r->kind, o);
}

/* ---- the command ---- */

static int set_number(const char *option, int64_t min, int64_t *ret)
{
    return str_to_i64(optarg, min, INT64_MAX, ret) < 0
               ? command_usage(&cmd_logs, "--%s \"%s\" is not a number", option, optarg)
               : -1;
}

static int set_since(struct logs *l)
{
    int64_t ns = 0;
    if (time_parse_duration(optarg, &ns) < 0 || ns <= 0) {
        return command_usage(&cmd_logs, "--since \"%s\" is not a time such as 30s", optarg);
    }
    l->since_s = (ns + NS_PER_S - 1) / NS_PER_S;
    return -1;
}

/* Returns -1 to go on, else the exit status. */
static int set_option(struct logs *l, int opt)
{
    switch (opt) {
    case 'c':
        l->container = optarg;
        return -1;
    case 'f':
        l->follow = true;
        return -1;
    case 'p':
        l->previous = true;
        return -1;
    case 'l':
        l->labels = optarg;
        return -1;
    case OPT_TAIL:
        return set_number("tail", -1, &l->tail);
    case OPT_LIMIT:
        return set_number("limit-bytes", 1, &l->limit);
    case OPT_VERSION:
        return set_number("version", 1, &l->version);
    case OPT_SINCE:
        return set_since(l);
    case OPT_SINCE_TIME:
        l->since_time = optarg;
        return -1;
    case OPT_TIMESTAMPS:
        l->timestamps = true;
        return -1;
    case OPT_ALL_CONTAINERS:
        l->all_containers = true;
        return -1;
    case OPT_PREFIX:
        l->prefix = true;
        return -1;
    default:
        return opt == OPT_HELP ? 0 : 2;
    }
}

static int by_labels(struct logs *l)
{
    CLEANUP(json_free) struct json *list = NULL;
    const struct json *pod;
    int status = get_pods(l, l->labels, &list);
    JSON_FOREACH (pod, json_get(list, "items")) {
        status |= print_pod(l, pod);
    }
    if (status == 0 && json_count(json_get(list, "items")) == 0) {
        fprintf(stderr, "No resources found in %s namespace.\n", l->s.ns);
    }
    return status;
}

static void logs_done(struct logs *l)
{
    session_done(&l->s);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(logs_done))) struct logs l = {
        .tail = -1, .limit = -1, .since_s = -1, .version = -1};
    CLEANUP_RESOURCES struct resources r = {0};
    int opt, status = -1;
    while (status < 0 && (opt = session_getopt(&l.s, &cmd_logs, argc, argv, NULL)) != -1) {
        status = set_option(&l, opt);
    }
    if (status >= 0) {
        return status;
    }
    int n = argc - optind;
    if ((n == 0) == !l.labels || n > 2) {
        return command_usage(&cmd_logs, "expected POD, KIND/NAME, or --selector");
    }
    if (l.since_s >= 0 && l.since_time) {
        return session_error("at most one of --since and --since-time may be specified");
    }
    status = session_open(&l.s);
    if (status != 0 || l.labels) {
        return status ? status : by_labels(&l);
    }
    /* "logs POD CONTAINER" */
    if (n == 2 && !l.container) {
        l.container = argv[optind + 1];
    }
    CLEANUP_FREE char *name =
        strchr(argv[optind], '/') ? xstrdup(argv[optind]) : xasprintf("pod/%s", argv[optind]);
    status = learn_resources(&l.s, 1, &name, &r);
    return status ? status : of_resource(&l, &r.list[0]);
}

const struct command cmd_logs = {
    .name = "logs",
    .summary = "show what containers wrote",
    .help = "usage: tenet logs POD [CONTAINER] [OPTIONS]\n"
            "       tenet logs KIND/NAME [OPTIONS]\n"
            "       tenet logs -l SEL [OPTIONS]\n"
            "\n"
            "Shows what the containers of a pod wrote, or of one pod of a workload. For a\n"
            "DeploymentConfig it is the log of its rollout while that is under way.\n",
    .options = options,
    .shared = session_options,
    .complete = COMPLETE_KIND,
    .run = run};
