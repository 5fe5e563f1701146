/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm pod-network: joins, isolates and globalizes the networks of projects.
 *
 * Works as oc's commands of the same names: the request is an annotation of the project's
 * NetNamespace, which the master removes when it is done. Unlike oc, this command makes the
 * requests for several projects together, so that projects which reach each other before and after
 * do so without interruption. */
#include "api/kinds/netnamespace.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/admin/adm.h"
#include "cli/kubectl/resource.h"
#include "cli/session.h"
#include "sdn/network.h"

#include <stdio.h>

#define WAIT_MS 16000 /* The same time limit as oc's. */
#define LOOK_MS 100

static const char help[] =
    "usage: tenet adm pod-network join-projects --to=PROJECT (PROJECT... | --selector=SEL)\n"
    "       tenet adm pod-network isolate-projects (PROJECT... | --selector=SEL)\n"
    "       tenet adm pod-network make-projects-global (PROJECT... | --selector=SEL)\n"
    "\n"
    "Which projects share a network, under redhat/openshift-ovs-multitenant.  Pods that\n"
    "run follow; what they may reach before and after is not interrupted.\n"
    "\n"
    "  join-projects           the projects get the network of the one that --to names\n"
    "  isolate-projects        each project gets a network of its own\n"
    "  make-projects-global    the projects reach all others, and are reached by all\n";

enum { OPT_TO = OPT_FIRST_FREE, OPT_SELECTOR };

static const struct command_option options[] = {
    {"to", OPT_TO, "PROJECT", "project whose network the projects join", COMPLETE_NAMESPACE},
    {"selector", OPT_SELECTOR, "SEL", "projects with these labels, instead of names"},
    {0},
};

enum action { JOIN, ISOLATE, GLOBAL };

struct project {
    char *name;
    bool waits; /* The request was made, and has no answer yet. */
};

struct change {
    struct session s;
    enum action action;
    const char *to, *selector;
    struct project *projects;
    size_t n, cap;
    struct strbuf errors; /* A list in oc's form: "a", or "a, b". */
    size_t n_errors;
};

static void add_error(struct change *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_error(struct change *c, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    strbuf_addf(&c->errors, "%s%s", c->n_errors++ ? ", " : "", text);
}

/* Returns 0, or the exit status after the errors were printed. */
static int report(struct change *c)
{
    if (!c->n_errors) {
        return 0;
    }
    const char *text = strbuf_cstr(&c->errors);
    return c->n_errors == 1 ? session_error("%s", text) : session_error("[%s]", text);
}

static int get(struct change *c, const char *api_version, const char *plural, const char *name,
               struct json **ret, struct err *e)
{
    CLEANUP_FREE char *path = api_path(api_version, plural, NULL, name, NULL);
    return api_request_sync(c->s.client, "GET", path, NULL, NULL, NULL, ret, e);
}

static const char network_api[] = "network.openshift.io/v1";
static const char only_multitenant[] =
    "managing pod network is only supported for openshift multitenant network plugin";

static void check_plugin(struct change *c)
{
    CLEANUP(json_free) struct json *network = NULL;
    struct err e = {0};
    int r = get(c, network_api, "clusternetworks", "default", &network, &e);
    const char *plugin = json_path_string(network, "pluginName", NULL);
    if (r == -ENOENT) {
        add_error(c, "%s", only_multitenant);
    } else if (r < 0) {
        add_error(c, "failed to fetch current network plugin info: %s", e.text);
    } else if (!streq_null(plugin, sdn_plugin_name(SDN_MULTITENANT))) {
        add_error(c, "using plugin: \"%s\", %s", plugin ? plugin : "", only_multitenant);
    }
}

static void check_arguments(struct change *c, int n_names)
{
    if (c->selector && n_names > 0) {
        add_error(c, "either specify --selector=<project_selector> or projects but not both");
    } else if (!c->selector && n_names == 0) {
        add_error(c, "must provide --selector=<project_selector> or projects");
    }
    check_plugin(c);
    if (c->action == JOIN && (!c->to || !*c->to)) {
        add_error(c, "must provide --to=<project_name>");
    }
}

/* ---- which projects ---- */

static void add_project(struct change *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (streq(c->projects[i].name, name)) {
            return;
        }
    }
    c->projects = grow(c->projects, &c->cap, c->n + 1, sizeof *c->projects);
    c->projects[c->n++] = (struct project){.name = xstrdup(name)};
}

static int find_selected(struct change *c)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP(json_free) struct json *list = NULL;
    struct err e = {0};
    strbuf_adds(&path, "/api/v1/namespaces");
    resource_query(&path, "labelSelector", c->selector);
    if (api_request_sync(c->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(&c->s, &e, NULL);
    }
    const struct json *o;
    JSON_FOREACH (o, json_get(list, "items")) {
        const char *name = json_path_string(o, "metadata", "name", NULL);
        if (name) {
            add_project(c, name);
        }
    }
    if (c->n == 0) {
        add_error(c, "no projects found");
    }
    return report(c);
}

static int find_named(struct change *c, int n, char *const *names, bool wanted)
{
    CLEANUP_STRBUF struct strbuf absent = STRBUF_INIT;
    for (int i = 0; i < n; i++) {
        struct err e = {0};
        int r = get(c, "v1", "namespaces", names[i], NULL, &e);
        if (r == -ENOENT) {
            strbuf_addf(&absent, "%s%s", absent.size ? ", " : "", names[i]);
        } else if (r < 0) {
            return session_fail(&c->s, &e, NULL);
        } else if (wanted) {
            add_project(c, names[i]);
        }
    }
    if (absent.size) {
        add_error(c, "projects %s not found", strbuf_cstr(&absent));
    }
    return report(c);
}

/* ---- requests ---- */

static void add_failure(struct change *c, const char *project, const char *text)
{
    if (c->action == JOIN) {
        add_error(c, "project \"%s\" failed to join \"%s\", error: %s", project, c->to, text);
    } else if (c->action == ISOLATE) {
        add_error(c, "network isolation for project \"%s\" failed, error: %s", project, text);
    } else {
        add_error(c, "removing network isolation for project \"%s\" failed, error: %s", project,
                  text);
    }
}

/* Sets the annotation of the project's NetNamespace; NULL removes request and refusal. */
static int annotate(struct change *c, const char *project, const char *text, struct err *e)
{
    CLEANUP(json_free) struct json *patch = json_object();
    struct json *annotations =
        json_ensure_object(json_ensure_object(patch, "metadata"), "annotations");
    json_set(annotations, NET_CHANGE, text ? json_string(text) : json_null());
    json_set(annotations, NET_CHANGE_REFUSED, json_null());
    CLEANUP_FREE char *path = api_path(network_api, "netnamespaces", NULL, project, NULL);
    return api_request_sync(c->s.client, "PATCH", path, NULL, "application/merge-patch+json", patch,
                            NULL, e);
}

static void ask(struct change *c)
{
    CLEANUP_FREE char *text = c->action == JOIN
                                  ? xasprintf("join:%s", c->to)
                                  : xstrdup(c->action == ISOLATE ? "isolate" : "global");
    for (size_t i = 0; i < c->n; i++) {
        struct project *p = &c->projects[i];
        struct err e = {0};
        if (c->action == JOIN && streq(p->name, c->to)) {
            continue;
        }
        if (c->action == ISOLATE && streq(p->name, "default")) {
            add_error(c, "network isolation for project \"%s\" is forbidden", p->name);
        } else if (annotate(c, p->name, text, &e) < 0) {
            add_failure(c, p->name, e.text);
        } else {
            p->waits = true;
        }
    }
}

/* Checks whether the master has answered. */
static void look(struct change *c, struct project *p)
{
    CLEANUP(json_free) struct json *nn = NULL;
    struct err e = {0};
    if (get(c, network_api, "netnamespaces", p->name, &nn, &e) < 0) {
        add_failure(c, p->name, e.text);
        p->waits = false;
        return;
    }
    const struct json *annotations = json_path(nn, "metadata", "annotations", NULL);
    const char *refused = json_path_string(annotations, NET_CHANGE_REFUSED, NULL);
    if (!json_get(annotations, NET_CHANGE)) {
        p->waits = false;
    } else if (refused) {
        add_failure(c, p->name, refused);
        p->waits = false;
        /* The request failed: withdraw it, so that the master does not carry it out later. */
        (void) annotate(c, p->name, NULL, NULL);
    }
}

static void wait_for_answers(struct change *c)
{
    uint64_t end = time_mono_ms() + WAIT_MS;
    for (size_t waiting = c->n; waiting > 0;) {
        bool late = time_mono_ms() >= end, never = false;
        waiting = 0;
        for (size_t i = 0; i < c->n; i++) {
            struct project *p = &c->projects[i];
            if (p->waits) {
                look(c, p);
            }
            if (p->waits && late) {
                add_failure(c, p->name, "timed out waiting for the condition");
                p->waits = false;
            }
            waiting += p->waits;
        }
        if (waiting) {
            (void) loop_run_until(c->s.loop, &never, LOOK_MS);
        }
    }
}

/* ---- the command ---- */

static void change_done(struct change *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->projects[i].name);
    }
    free(c->projects);
    strbuf_done(&c->errors);
    session_done(&c->s);
}

static bool parse_action(const char *word, enum action *ret)
{
    static const char *const words[] = {[JOIN] = "join-projects",
                                        [ISOLATE] = "isolate-projects",
                                        [GLOBAL] = "make-projects-global"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (streq(word, words[i])) {
            *ret = (enum action) i;
            return true;
        }
    }
    return false;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(change_done))) struct change c = {.errors = STRBUF_INIT};
    int opt;
    while ((opt = session_getopt(&c.s, &adm_pod_network, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_TO:
            c.to = optarg;
            break;
        case OPT_SELECTOR:
            c.selector = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (optind == argc) {
        return command_usage(&adm_pod_network, "a command is missing");
    }
    if (!parse_action(argv[optind], &c.action)) {
        return command_usage(&adm_pod_network, "unknown command \"%s\"", argv[optind]);
    }
    if (c.to && c.action != JOIN) {
        return command_usage(&adm_pod_network, "--to belongs to join-projects");
    }
    int n = argc - optind - 1, status = session_open(&c.s);
    char *const *names = argv + optind + 1;
    if (status == 0) {
        check_arguments(&c, n);
        status = report(&c);
    }
    if (status == 0) {
        status = c.selector ? find_selected(&c) : find_named(&c, n, names, true);
    }
    if (status == 0 && c.action == JOIN) {
        status = find_named(&c, 1, (char *const *) &c.to, false);
    }
    if (status != 0) {
        return status;
    }
    ask(&c);
    wait_for_answers(&c);
    return report(&c);
}

const struct command adm_pod_network = {
    .name = "adm pod-network",
    .summary = "networks of projects",
    .help = help,
    .options = options,
    .shared = session_options,
    .complete = "join-projects isolate-projects make-projects-global " COMPLETE_NAMESPACE,
    .run = run};
