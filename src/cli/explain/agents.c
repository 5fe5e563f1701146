/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/agents.h"

#include "cli/command.h"
#include "lab/lab.h"

#include <stdio.h>

#define AGENT_MS 10000

const struct command_option agents_options[] = {
    {"lab", OPT_AGENTS_LAB, "LAB", "the nodes of this lab, instead of this host"},
    {"socket", OPT_AGENTS_SOCKET, "PATH", "the agent's socket; default: " AGENT_SOCKET,
     COMPLETE_FILE},
    {"kubeconfig", OPT_KUBECONFIG, "FILE", "default: $KUBECONFIG, then ~/.kube/config",
     COMPLETE_FILE},
    {"server", 's', "URL", "the API server, instead of a kubeconfig"},
    {"output", 'o', "json", "data for programs", "json"},
    {0},
};

/* Takes one of the common options; false: it is none of them. */
static bool take_option(struct agents *a, int opt)
{
    switch (opt) {
    case OPT_AGENTS_LAB:
        a->lab = optarg;
        return true;
    case OPT_AGENTS_SOCKET:
        a->socket = optarg;
        return true;
    case OPT_KUBECONFIG:
        a->kubeconfig = optarg;
        return true;
    case 's':
        a->server = optarg;
        return true;
    case OPT_AGENTS_NODE:
        a->node = optarg;
        return true;
    case 'o':
        a->json = streq(optarg, "json");
        return a->json;
    default:
        return false;
    }
}

int agents_getopt(struct agents *a, const struct command *c, int argc, char **argv)
{
    int opt;
    do {
        opt = command_getopt(c, argc, argv, NULL);
    } while (take_option(a, opt));
    if (opt == 'o') {
        (void) command_usage(c, "-o: \"%s\" is not json", optarg);
        return '?';
    }
    return opt;
}

/* ---- asking one ---- */

struct reply {
    bool done;
    struct json *body;
    int status, error;
    struct err err;
};

static void on_reply(void *ctx, const struct http_result *r)
{
    struct reply *p = ctx;
    p->done = true;
    p->status = r->status;
    p->error = r->error;
    if (r->error < 0) {
        err_set(&p->err, r->error, "%s", r->error_text);
    } else if (json_parse(r->body, r->size, &p->body, &p->err) < 0) {
        p->error = err_prefix(&p->err, "the agent's answer");
    }
}

int agents_get(struct agents *a, const char *socket, const char *path, struct json **ret,
               struct err *e)
{
    CLEANUP_FREE char *url = xasprintf("unix://%s", socket);
    struct http_client_config c = {.url = url, .connect_ms = AGENT_MS, .response_ms = AGENT_MS};
    struct http_client *http = NULL;
    struct reply p = {0};
    int r = http_client_new(a->loop, &c, &http, e);
    if (r < 0) {
        return r;
    }
    http_call(http, "GET", path, "application/json", NULL, NULL, 0, on_reply, &p);
    loop_run_until(a->loop, &p.done, 0);
    http_client_free(http);
    CLEANUP(json_free) struct json *body = p.body;
    if (p.error < 0) {
        return err_set(e, p.error, "%s", p.err.text);
    }
    if (p.status != 200) {
        const char *text = json_path_string(body, "error", NULL);
        return err_set(e, p.status == 404 ? -ENOENT : -EAGAIN, "%s", text ? text : "it refuses");
    }
    *ret = TAKE(body);
    return 0;
}

/* ---- finding them ---- */

static void add(struct agents *a, const char *name, const char *socket)
{
    struct agent_ref *r = &a->items[a->n++];
    *r = (struct agent_ref){.name = name ? xstrdup(name) : NULL, .socket = xstrdup(socket)};
    if (agents_get(a, socket, "/v1/state", &r->state, &r->error) == 0 && !r->name) {
        const char *own = json_path_string(r->state, "node", NULL);
        r->name = own ? xstrdup(own) : NULL;
    }
}

static int open_lab(struct agents *a, struct err *e)
{
    CLEANUP(lab_free) struct lab *l = NULL;
    int r = lab_new(a->lab, NULL, NULL, &l, e);
    if (r < 0 || (r = lab_status(l, &a->lab_status, e)) < 0) {
        return r;
    }
    const struct json *nodes = json_get(a->lab_status, "nodes");
    struct json *n;
    a->items = xcalloc(json_count(nodes) + 1, sizeof *a->items);
    JSON_FOREACH (n, nodes) {
        add(a, json_path_string(n, "name", NULL), json_path_string(n, "agentSocket", NULL));
    }
    return 0;
}

int agents_open(struct agents *a)
{
    struct err e = {0};
    int r = 0;
    a->loop = loop_new();
    if (a->lab) {
        r = open_lab(a, &e);
    } else {
        a->items = xcalloc(1, sizeof *a->items);
        add(a, NULL, a->socket ? a->socket : AGENT_SOCKET);
    }
    if (r < 0) {
        (void) command_fail(&e, NULL);
        return CANNOT_TELL;
    }
    const char *config =
        a->lab ? json_path_string(a->lab_status, "kubeconfig", NULL) : a->kubeconfig;
    r = a->server ? api_client_new(a->loop, a->server, NULL, &a->registry, &e)
                  : api_client_from_kubeconfig(a->loop, config, NULL, &a->registry, &e);
    if (r < 0 && (a->server || a->kubeconfig)) {
        (void) command_fail(&e, NULL);
        return CANNOT_TELL;
    }
    return 0;
}

void agents_done(struct agents *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->items[i].name);
        free(a->items[i].socket);
        json_free(a->items[i].state);
    }
    free(a->items);
    json_free(a->lab_status);
    api_client_free(a->registry);
    loop_free(a->loop);
    *a = (struct agents){0};
}

int agents_open_node(struct agents *a)
{
    int status = agents_open(a);
    if (status == 0 && a->node && !agents_find(a, a->node, NULL)) {
        (void) command_fail(NULL, "there is no agent of a node %s to be asked here", a->node);
        status = CANNOT_TELL;
    }
    return status;
}

/* Prints the view of one agent, or appends its answer to 'all'; returns the exit status. */
static int show_agent(struct agents *a, const struct agent_ref *agent, const struct agents_view *v,
                      void *ctx, struct json *all)
{
    CLEANUP(json_free) struct json *answer = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    if (v->get(ctx, a, agent->socket, &answer, &e) < 0) {
        (void) command_fail(&e, "%s", agent->name ? agent->name : agent->socket);
        return CANNOT_TELL;
    }
    if (a->json) {
        json_append(all, TAKE(answer));
        return 0;
    }
    strbuf_addf(&out, "node %s\n", json_get_text(answer, "node"));
    v->render(ctx, answer, &out);
    fputs(strbuf_cstr(&out), stdout);
    return 0;
}

int agents_show(struct agents *a, const struct agents_view *v, void *ctx)
{
    CLEANUP(json_free) struct json *all = json_array();
    int status = agents_open_node(a);
    if (status != 0) {
        return status;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!a->node || streq_null(a->items[i].name, a->node)) {
            int r = show_agent(a, &a->items[i], v, ctx, all);
            status = MAX(status, r);
        }
    }
    if (a->json) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        json_write(all, 4, &out);
        puts(strbuf_cstr(&out));
    }
    return status;
}

struct agent_ref *agents_find(const struct agents *a, const char *node, const char *host_ip)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *ip = json_path_string(a->items[i].state, "hostIP", NULL);
        if (node ? streq_null(a->items[i].name, node) : ip && streq(ip, host_ip)) {
            return &a->items[i];
        }
    }
    return NULL;
}

int agents_registry_get(const struct agents *a, const char *api_version, const char *plural,
                        const char *ns, const char *name, struct json **ret, struct err *e)
{
    if (!a->registry) {
        return err_set(e, -ENOTCONN, "there is no kubeconfig for the master");
    }
    CLEANUP_FREE char *path = api_path(api_version, plural, ns, name, NULL);
    return api_request_sync(a->registry, "GET", path, NULL, NULL, NULL, ret, e);
}
