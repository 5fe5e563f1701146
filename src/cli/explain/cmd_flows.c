/* SPDX-License-Identifier: Apache-2.0 */
/* tenet flows: shows present flows, their endpoints, and how packets are forwarded. */
#include "cli/command.h"
#include "cli/explain/agents.h"
#include "cli/explain/flows.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define DEFAULT_SECONDS 2
#define SECONDS_MAX 86400
#define AGAIN_MS 1000 /* Time before an agent that closed the stream is asked again. */
#define NOT_YET 503   /* What an agent answers that has not started its datapath yet. */
#define LINE_SIZE_MAX 65536
#define NAMES_MS 2000 /* The longest time to wait for the registry. */

static const char help[] =
    "usage: tenet flows [-w] [OPTIONS]\n"
    "\n"
    "Prints the flows of this node (in a lab: of all nodes) as their packets are forwarded: "
    "sender,\n"
    "receiver and result; for a dropped packet also the cause, and the object behind it. A flow "
    "is\n"
    "printed when it begins, and again after half a minute while it goes on. When more flows "
    "begin\n"
    "than can be shown, the rest is counted. Only nodes with the datapath ebpf show flows; a node\n"
    "with the datapath ovs has the counters of its rules (tenet node flows).\n"
    "\n"
    "Run as root on the node. Names of pods of other nodes are taken from the registry, where one "
    "is\n"
    "found.\n";

struct request {
    const char *project;
    bool watch, dropped;
    uint64_t seconds;
};

struct show;

/* The stream of one agent. */
struct source {
    struct show *show;
    const struct agent_ref *agent;
    struct http_client *http;
    struct http_call *call;
    struct loop_timer *again;
    struct strbuf line;
    bool cannot; /* The agent has no flows to show, and never will. */
    bool waits;  /* The user knows why the agent has none yet. */
};

struct show {
    const struct request *q;
    struct agents *agents;
    struct flow_names names;
    struct source *sources;
    size_t n;
    size_t width[FLOW_COLUMNS];
    bool over; /* No more events come, or the output was closed. */
};

/* ---- events ---- */

static void show_event(struct show *s, const char *text, size_t size)
{
    CLEANUP(json_free) struct json *event = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (json_parse(text, size, &event, &(struct err){0}) < 0) {
        return;
    }
    flow_name(event, &s->names);
    const char *verdict = json_path_string(event, "verdict", NULL);
    if (!flow_is_of(event, s->q->project) || (s->q->dropped && streq_null(verdict, "forwarded"))) {
        return;
    }
    if (s->agents->json) {
        json_write(event, 0, &out);
        strbuf_addc(&out, '\n');
    } else {
        flow_render(event, s->width, &out);
    }
    s->over = fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout) != 0 || s->over;
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct source *x = ctx;
    x->waits = false;
    while (size > 0) {
        const char *nl = memchr(p, '\n', size);
        size_t n = nl ? (size_t) (nl - p) : size;
        strbuf_add(&x->line, p, n);
        if (nl) {
            if (!x->line.failed) {
                show_event(x->show, x->line.data, x->line.size);
            }
            strbuf_reset(&x->line);
        }
        p += n + (nl != NULL);
        size -= n + (nl != NULL);
    }
}

/* ---- agents ---- */

static void begin(void *ctx);

static bool none_can(const struct show *s)
{
    bool none = true;
    for (size_t i = 0; i < s->n; i++) {
        none = none && s->sources[i].cannot;
    }
    return none;
}

static void print_reason(const struct source *x, const char *why)
{
    struct err e = {0};
    err_set(&e, -EOPNOTSUPP, "%s", why);
    (void) command_fail(&e, "%s", x->agent->name ? x->agent->name : x->agent->socket);
}

static void give_up(struct source *x, const char *why)
{
    print_reason(x, why);
    x->cannot = true;
    x->show->over = x->show->over || none_can(x->show);
}

static void on_ended(void *ctx, const struct http_result *r)
{
    struct source *x = ctx;
    bool watch = x->show->q->watch;
    x->call = NULL;
    strbuf_reset(&x->line);
    if (r->status != 0 && r->status != 200) {
        CLEANUP(json_free) struct json *body = NULL;
        (void) json_parse(r->body, r->size, &body, NULL);
        const char *text = json_path_string(body, "error", NULL);
        text = text ? text : "the agent refuses";
        if (!watch || r->status != NOT_YET) {
            give_up(x, text);
            return;
        }
        if (!x->waits) {
            print_reason(x, text);
        }
        x->waits = true;
    }
    if (watch) {
        loop_timer_arm(x->again, AGAIN_MS); /* The agent may be restarting. */
    } else {
        give_up(x, r->error < 0 ? r->error_text : "the agent stopped");
    }
}

static void begin(void *ctx)
{
    static const struct http_stream_ops ops = {.data = on_data, .ended = on_ended};
    struct source *x = ctx;
    x->call = http_stream(x->http, "/v1/watch", "application/json", 0, &ops, x);
}

static int source_open(struct show *s, struct source *x, const struct agent_ref *agent)
{
    CLEANUP_FREE char *url = xasprintf("unix://%s", agent->socket);
    struct http_client_config c = {.url = url};
    struct err e = {0};
    *x = (struct source){.show = s, .agent = agent, .line = STRBUF_INIT_MAX(LINE_SIZE_MAX)};
    if (http_client_new(s->agents->loop, &c, &x->http, &e) < 0) {
        (void) command_fail(&e, NULL);
        return CANNOT_TELL;
    }
    x->again = loop_timer_new(s->agents->loop, begin, x);
    if (!agent->state) { /* An agent that has not started yet may be watched already. */
        (void) command_fail(&agent->error, "%s", agent->name ? agent->name : agent->socket);
        x->cannot = !s->q->watch;
    }
    if (!x->cannot) {
        begin(x);
    }
    return 0;
}

static void source_close(struct source *x)
{
    if (x->call) {
        http_call_cancel(x->call);
    }
    if (x->http) {
        loop_timer_free(x->again);
        http_client_free(x->http);
    }
    strbuf_done(&x->line);
}

/* ---- names ---- */

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct flow_names *n = ctx;
    if (old) {
        flow_names_pod(n, old, true);
    }
    flow_names_pod(n, obj, false);
}

static void pod_deleted(void *ctx, const char *key, const struct json *obj)
{
    flow_names_pod(ctx, obj, true);
}

static void names_synced(void *ctx)
{
    ((struct flow_names *) ctx)->synced = true;
}

static void learn_nodes(struct show *s)
{
    struct json *r;
    for (size_t i = 0; i < s->agents->n; i++) {
        const struct json *state = s->agents->items[i].state;
        const char *ip = json_path_string(state, "hostIP", NULL);
        const char *name = json_path_string(state, "node", NULL);
        if (ip && name) {
            smap_set(&s->names.nodes, ip, xstrdup(name));
        }
        JSON_FOREACH (r, json_get(state, "remotes")) {
            ip = json_path_string(r, "hostIP", NULL);
            name = json_path_string(r, "name", NULL);
            if (ip && name && *name) {
                smap_set(&s->names.nodes, ip, xstrdup(name));
            }
        }
    }
}

/* ---- all ---- */

static void on_signal(void *ctx)
{
    ((struct show *) ctx)->over = true;
}

static int run_show(struct show *s)
{
    static const struct informer_ops ops = {
        .changed = pod_changed, .deleted = pod_deleted, .synced = names_synced};
    struct loop *l = s->agents->loop;
    CLEANUP_STRBUF struct strbuf head = STRBUF_INIT;
    struct informer *pods = NULL;
    int status = 0;
    learn_nodes(s);
    if (s->agents->registry) {
        pods = informer_new(s->agents->registry, l, "v1", "pods", NULL, &ops, &s->names);
        (void) loop_run_until(l, &s->names.synced, NAMES_MS);
    }
    for (size_t i = 0; status == 0 && i < s->agents->n; i++) {
        const struct agent_ref *a = &s->agents->items[i];
        if (!s->agents->node || streq_null(a->name, s->agents->node)) {
            status = source_open(s, &s->sources[s->n++], a);
        }
    }
    s->over = none_can(s);
    if (status == 0 && !s->over && !s->agents->json) {
        flow_render_head(s->width, &head);
        fputs(strbuf_cstr(&head), stdout);
        fflush(stdout);
    }
    struct loop_signal *term = loop_signal_new(l, SIGTERM, on_signal, s);
    struct loop_signal *interrupt = loop_signal_new(l, SIGINT, on_signal, s);
    if (status == 0) {
        (void) loop_run_until(l, &s->over, s->q->watch ? 0 : s->q->seconds * 1000);
    }
    bool told = !none_can(s);
    for (size_t i = 0; i < s->n; i++) {
        source_close(&s->sources[i]);
    }
    loop_signal_free(term);
    loop_signal_free(interrupt);
    informer_free(pods);
    return status != 0 ? status : told ? 0 : CANNOT_TELL;
}

enum { OPT_FOR = OPT_FIRST_FREE, OPT_DROPPED };

static const struct command_option options[] = {
    {"watch", 'w', NULL, "goes on until interrupted, instead of 2 seconds"},
    {"for", OPT_FOR, "SECONDS", "how long flows are shown"},
    {"namespace", 'n', "NAME", "only flows of which an end, or the service, is in this project",
     COMPLETE_NAMESPACE},
    {"dropped", OPT_DROPPED, NULL, "only dropped packets"},
    AGENTS_NODE_OPTION,
    {0},
};

static int run(int argc, char **argv)
{
    CLEANUP_AGENTS struct agents a = {0};
    struct request q = {.seconds = DEFAULT_SECONDS};
    int c, status;
    optind = 0;
    while ((c = agents_getopt(&a, &cmd_flows, argc, argv)) != -1) {
        switch (c) {
        case 'w':
            q.watch = true;
            break;
        case 'n':
            q.project = optarg;
            break;
        case OPT_FOR:
            if (str_to_u64(optarg, SECONDS_MAX, &q.seconds) < 0 || q.seconds == 0) {
                return command_usage(&cmd_flows, "--for: \"%s\" is not a number of seconds",
                                     optarg);
            }
            break;
        case OPT_DROPPED:
            q.dropped = true;
            break;
        default:
            return c == OPT_HELP ? 0 : 2;
        }
    }
    status = command_expect_end(&cmd_flows, argc, argv);
    if (status >= 0 || (status = agents_open_node(&a)) != 0) {
        return status;
    }
    struct show s = {.q = &q, .agents = &a, .width = {12, 8, 24, 24}};
    s.sources = xcalloc(a.n + 1, sizeof *s.sources);
    flow_names_init(&s.names);
    status = run_show(&s);
    flow_names_done(&s.names);
    free(s.sources);
    return status;
}

const struct command cmd_flows = {
    .name = "flows",
    .summary = "show flows of packets: sender, receiver, and whether they are dropped",
    .help = help,
    .notes = "Exit status: 0, 2 wrong usage, 3 no node can show flows.\n",
    .options = options,
    .shared = agents_options,
    .run = run,
};
