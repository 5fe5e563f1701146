/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_cri.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "check.h"
#include "grpc_server.h"
#include "runtime/cri/messages.h"

#define STORE_MAX ((size_t) 64 << 20)

struct sandbox {
    struct list node;
    struct pb_store store; /* Of the request, to which 'seen.spec' points. */
    struct cri_run_sandbox request;
    struct fake_sandbox seen;
    char *id, *ip;
    int64_t created_ns;
};

struct container {
    struct fake_cri *fake;
    struct list node;
    struct pb_store store;
    struct cri_create_container request;
    struct fake_container seen;
    char *id;
    int64_t created_ns, started_ns, finished_ns;
    int32_t end_code;
    const char *end_reason;
    bool collected; /* containerd has published the end, and "CRI" does not know it yet. */
    struct loop_timer *lag, *stop;
};

struct image {
    struct list node;
    char *name, *id;
};

/* A call: of a client that waits, or of none any more. */
struct call {
    struct fake_cri *fake;
    struct list node;
    struct grpc_request *request; /* NULL: the client has given up. */
    enum cri_method_id method;
    char *message;
    size_t size;
    bool hangs;
    char *stops; /* Id of the container whose end a StopContainer waits for. */
    struct loop_timer *delay;
};

struct fault {
    struct list node;
    enum cri_method_id method; /* CRI_METHODS: all. */
    enum grpc_status status;
    char *text;
    unsigned n;
    bool after;
};

struct fake_cri {
    struct loop *loop;
    char *path, *endpoint;
    struct grpc_server *server; /* NULL: stopped. */
    struct list sandboxes, containers, images, calls, faults;
    unsigned n_calls[CRI_METHODS];
    bool stalls[CRI_METHODS];
    enum fake_cri_events events;
    unsigned lose, ids;
    uint32_t delay_ms, stop_ms, exit_lag_ms;
    char *network_message;
    const struct fake_cri_ops *ops;
    void *ctx;
    int64_t (*now_ns)(void *ctx);
    void *clock_ctx;
};

static const char *method_name(enum cri_method_id m)
{
    return strrchr(cri_methods[m].path, '/') + 1;
}

/* CRI_METHODS for NULL. */
static enum cri_method_id method_of(const char *name)
{
    if (!name) {
        return CRI_METHODS;
    }
    for (unsigned i = 0; i < CRI_METHODS; i++) {
        if (streq(method_name(i), name)) {
            return i;
        }
    }
    CHECK(false, "no method is named %s", name);
    return CRI_METHODS;
}

static int64_t now(const struct fake_cri *f)
{
    return f->now_ns ? f->now_ns(f->clock_ctx) : time_wall_ms() * 1000000;
}

static char *new_id(struct fake_cri *f, char kind)
{
    return xasprintf("%c%063x", kind, ++f->ids);
}

/* ---- records ---- */

static struct sandbox *find_sandbox(const struct fake_cri *f, const char *id)
{
    struct sandbox *s;
    LIST_FOREACH (s, struct sandbox, node, &f->sandboxes) {
        if (streq(s->id, id)) {
            return s;
        }
    }
    return NULL;
}

static struct container *find_container(const struct fake_cri *f, const char *id)
{
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        if (streq(c->id, id)) {
            return c;
        }
    }
    return NULL;
}

static struct image *find_image(const struct fake_cri *f, const char *name)
{
    struct image *i;
    LIST_FOREACH (i, struct image, node, &f->images) {
        if (streq(i->name, name) || streq(i->id, name)) {
            return i;
        }
    }
    return NULL;
}

static void sandbox_free(struct sandbox *s)
{
    list_remove(&s->node);
    pb_store_done(&s->store);
    free(s->id);
    free(s->ip);
    free(s);
}

static void container_free(struct container *c)
{
    list_remove(&c->node);
    pb_store_done(&c->store);
    loop_timer_free(c->lag);
    loop_timer_free(c->stop);
    free(c->id);
    free(c);
}

static void image_free(struct image *i)
{
    list_remove(&i->node);
    free(i->name);
    free(i->id);
    free(i);
}

static void call_free(struct call *c)
{
    list_remove(&c->node);
    loop_timer_free(c->delay);
    free(c->message);
    free(c->stops);
    free(c);
}

static void fault_free(struct fault *t)
{
    list_remove(&t->node);
    free(t->text);
    free(t);
}

/* ---- ends of calls ---- */

static struct fault *find_fault(struct fake_cri *f, enum cri_method_id method, bool after)
{
    struct fault *t;
    LIST_FOREACH (t, struct fault, node, &f->faults) {
        if ((t->method == method || t->method == CRI_METHODS) && t->after == after) {
            return t;
        }
    }
    return NULL;
}

static void end_call(struct call *c, enum grpc_status status, const char *text)
{
    struct grpc_request *q = TAKE(c->request);
    call_free(c);
    if (q) {
        grpc_request_end(q, status, text);
    }
}

/* True when there is a fault for the call, which then is over. */
static bool use_fault(struct call *c, bool after)
{
    struct fault *t = find_fault(c->fake, c->method, after);
    if (!t) {
        return false;
    }
    CLEANUP_FREE char *text = xstrdup(t->text);
    enum grpc_status status = t->status;
    if (--t->n == 0) {
        fault_free(t);
    }
    end_call(c, status, text);
    return true;
}

static void answer_call(struct call *c, const void *response)
{
    if (use_fault(c, true)) {
        return;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pb_format(&b, cri_methods[c->method].response, response);
    if (c->request) {
        grpc_request_send(c->request, &b);
    }
    end_call(c, GRPC_OK, NULL);
}

static void PRINTF_LIKE(3, 4)
    refuse_call(struct call *c, enum grpc_status status, const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    end_call(c, status, strbuf_cstr(&b));
}

/* ---- events ---- */

static void send_event(struct fake_cri *f, enum cri_method_id stream, const void *event)
{
    struct call *c;
    LIST_FOREACH (c, struct call, node, &f->calls) {
        if (c->method == stream && c->request) {
            CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
            pb_format(&b, cri_methods[stream].response, event);
            grpc_request_send(c->request, &b);
        }
    }
}

/* 'topic' is containerd's; NULL: it has none of this. 'cri': CRI has an event of this. */
static void publish(struct fake_cri *f, const char *topic, const char *id, const char *sandbox_id,
                    bool cri)
{
    if (f->lose) {
        f->lose--;
        return;
    }
    if (f->events == FAKE_CRI_EVENTS_CRI && cri) {
        send_event(f, CRI_EVENTS, &(struct cri_event){id, sandbox_id});
    }
    if (f->events == FAKE_CRI_EVENTS_CONTAINERD && topic) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        const struct container *c = find_container(f, id);
        int64_t ns = c ? c->finished_ns : now(f);
        struct containerd_exit end = {id, id};
        struct containerd_delete whole = {id, c ? c->end_code : 0, ns / 1000000000,
                                          ns % 1000000000};
        bool exited = streq(topic, "/tasks/exit"), deleted = streq(topic, "/tasks/delete");
        pb_format(&b,
                  exited    ? &containerd_exit_shape
                  : deleted ? &containerd_delete_shape
                            : &containerd_id_shape,
                  deleted ? (void *) &whole : (void *) &end);
        send_event(f, CONTAINERD_EVENTS,
                   &(struct containerd_envelope){"k8s.io", topic, "containerd.events.Any",
                                                 strbuf_cstr(&b), b.size});
    }
}

/* ---- ends of processes ---- */

static void settle_exit(struct container *c)
{
    struct fake_cri *f = c->fake;
    if (!c->collected) {
        publish(f, "/tasks/delete", c->id, c->seen.sandbox_id, false);
    }
    c->collected = false;
    c->seen.ending = false;
    c->seen.state = RUNTIME_EXITED;
    c->seen.exit_code = c->end_code;
    c->seen.reason = c->end_reason;
    publish(f, NULL, c->id, c->seen.sandbox_id, true);
    struct call *call;
    LIST_FOREACH (call, struct call, node, &f->calls) {
        if (call->stops && streq(call->stops, c->id)) {
            answer_call(call, &(struct cri_text){0});
        }
    }
}

static void on_lag(void *ctx)
{
    struct container *c = ctx;
    if (c->collected) {
        settle_exit(c);
        return;
    }
    c->collected = true;
    loop_timer_arm(c->lag, c->fake->exit_lag_ms - c->fake->exit_lag_ms / 2);
    publish(c->fake, "/tasks/delete", c->id, c->seen.sandbox_id, false);
}

static void end_process(struct container *c, int32_t code, const char *reason)
{
    bool unknown = c->seen.state == RUNTIME_UNKNOWN;
    if ((c->seen.state != RUNTIME_RUNNING && !unknown) || c->seen.ending) {
        return;
    }
    code = unknown ? 255 : code;
    reason = unknown ? "Unknown" : reason;
    c->seen.ending = true;
    c->end_code = code;
    c->end_reason = reason;
    c->finished_ns = now(c->fake);
    loop_timer_disarm(c->stop);
    publish(c->fake, "/tasks/exit", c->id, c->seen.sandbox_id, false);
    if (c->fake->exit_lag_ms) {
        loop_timer_arm(c->lag, c->fake->exit_lag_ms / 2);
    } else {
        settle_exit(c);
    }
}

static void on_stop(void *ctx)
{
    struct container *c = ctx;
    end_process(c, c->end_code, "Error");
}

static void kill_now(struct container *c)
{
    end_process(c, 137, "Error");
    if (c->seen.ending) {
        loop_timer_disarm(c->lag);
        settle_exit(c);
    }
}

static void stop_sandbox(struct sandbox *s, struct fake_cri *f)
{
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        if (streq(c->request.sandbox_id, s->id)) {
            kill_now(c);
        }
    }
    if (s->seen.ready) {
        s->seen.ready = false;
        publish(f, "/tasks/exit", s->id, s->id, true);
        publish(f, "/tasks/delete", s->id, s->id, false);
    }
}

/* ---- methods ---- */

static void run_sandbox(struct fake_cri *f, struct call *call)
{
    struct sandbox *s = NEW(struct sandbox);
    s->store = PB_STORE_INIT(STORE_MAX);
    list_init(&s->node);
    CHECK(pb_parse(&s->store, cri_methods[call->method].request, call->message, call->size,
                   &s->request) == 0 &&
              s->request.config,
          "RunPodSandbox cannot be read");
    const struct runtime_sandbox_spec *spec = s->request.config;
    struct sandbox *other;
    LIST_FOREACH (other, struct sandbox, node, &f->sandboxes) {
        const struct runtime_sandbox_spec *o = other->request.config;
        if (streq(o->name, spec->name) && streq(o->namespace, spec->namespace) &&
            streq(o->uid, spec->uid) && o->attempt == spec->attempt) {
            refuse_call(call, GRPC_UNKNOWN,
                        "failed to reserve sandbox name \"%s_%s_%s_%u\": name is reserved for %s",
                        spec->name, spec->namespace, spec->uid, spec->attempt, other->id);
            sandbox_free(s);
            return;
        }
    }
    s->id = new_id(f, 'a');
    s->created_ns = now(f);
    bool host = spec->security.namespaces.network == RUNTIME_NS_NODE;
    s->ip = host ? NULL : xasprintf("10.77.%u.%u", f->ids / 250 % 250, f->ids % 250 + 1);
    s->seen = (struct fake_sandbox){s->id, spec, true, s->ip};
    list_push_back(&f->sandboxes, &s->node);
    publish(f, "/containers/create", s->id, s->id, true);
    publish(f, "/tasks/start", s->id, s->id, true);
    answer_call(call, &(struct cri_text){s->id});
}

static void remove_sandbox(struct fake_cri *f, struct call *call, struct sandbox *s)
{
    stop_sandbox(s, f);
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        if (streq(c->request.sandbox_id, s->id)) {
            container_free(c);
        }
    }
    publish(f, "/containers/delete", s->id, s->id, true);
    sandbox_free(s);
    answer_call(call, &(struct cri_text){0});
}

static struct runtime_sandbox sandbox_record(const struct sandbox *s)
{
    const struct runtime_sandbox_spec *spec = s->request.config;
    return (struct runtime_sandbox){.id = s->id,
                                    .name = spec->name,
                                    .uid = spec->uid,
                                    .namespace = spec->namespace,
                                    .attempt = spec->attempt,
                                    .ready = s->seen.ready,
                                    .created_ns = s->created_ns,
                                    .ip = s->ip,
                                    .network = spec->security.namespaces.network,
                                    .labels = spec->labels,
                                    .annotations = spec->annotations};
}

static struct runtime_container container_record(const struct container *c)
{
    const struct runtime_container_spec *spec = c->request.config;
    return (struct runtime_container){.id = c->id,
                                      .sandbox_id = c->request.sandbox_id,
                                      .name = spec->name,
                                      .attempt = spec->attempt,
                                      .state = c->seen.state,
                                      .created_ns = c->created_ns,
                                      .started_ns = c->started_ns,
                                      .finished_ns = c->finished_ns,
                                      .exit_code = c->seen.exit_code,
                                      .image = spec->image,
                                      .image_ref = spec->image,
                                      .reason = c->seen.reason,
                                      .message = "",
                                      .log_path = spec->log_path,
                                      .labels = spec->labels,
                                      .annotations = spec->annotations};
}

/* Whether an object is one of those that a list asks for. */
static bool is_asked(const struct cri_list *list, const char *id, const struct runtime_pairs *has)
{
    for (size_t i = 0; i < list->labels.n; i++) {
        bool found = false;
        for (size_t j = 0; j < has->n; j++) {
            found |= streq(has->v[j].key, list->labels.v[i].key) &&
                     streq(has->v[j].value, list->labels.v[i].value);
        }
        if (!found) {
            return false;
        }
    }
    return !*list->id || streq(list->id, id);
}

static void list_sandboxes(struct fake_cri *f, struct call *call, const struct cri_list *list)
{
    CLEANUP_FREE struct runtime_sandbox *v = xcalloc(list_size(&f->sandboxes) + 1, sizeof *v);
    size_t n = 0;
    struct sandbox *s;
    LIST_FOREACH (s, struct sandbox, node, &f->sandboxes) {
        if (is_asked(list, s->id, &s->request.config->labels)) {
            v[n++] = sandbox_record(s);
        }
    }
    answer_call(call, &(struct cri_sandboxes){v, n});
}

static void list_containers(struct fake_cri *f, struct call *call, const struct cri_list *list)
{
    CLEANUP_FREE struct runtime_container *v = xcalloc(list_size(&f->containers) + 1, sizeof *v);
    size_t n = 0;
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        if (is_asked(list, c->id, &c->request.config->labels)) {
            v[n++] = container_record(c);
        }
    }
    answer_call(call, &(struct cri_containers){v, n});
}

/* Why the container cannot be made; NULL: it can. */
static char *why_not(struct fake_cri *f, const struct cri_create_container *q,
                     enum grpc_status *ret_status)
{
    struct sandbox *s = find_sandbox(f, q->sandbox_id);
    *ret_status = GRPC_NOT_FOUND;
    if (!s) {
        return xasprintf("failed to find sandbox id \"%s\": not found", q->sandbox_id);
    }
    if (!find_image(f, q->config->image)) {
        return xasprintf("failed to resolve image \"%s\": not found", q->config->image);
    }
    *ret_status = GRPC_UNKNOWN;
    if (!s->seen.ready) {
        return xasprintf("sandbox container \"%s\" is not running", s->id);
    }
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        if (streq(c->request.sandbox_id, q->sandbox_id) &&
            streq(c->request.config->name, q->config->name) &&
            c->request.config->attempt == q->config->attempt) {
            return xasprintf("failed to reserve container name \"%s_%u\": name is reserved for %s",
                             q->config->name, q->config->attempt, c->id);
        }
    }
    return NULL;
}

static void create_container(struct fake_cri *f, struct call *call)
{
    struct container *c = NEW(struct container);
    c->fake = f;
    c->store = PB_STORE_INIT(STORE_MAX);
    list_init(&c->node);
    CHECK(pb_parse(&c->store, cri_methods[call->method].request, call->message, call->size,
                   &c->request) == 0 &&
              c->request.config && c->request.sandbox,
          "CreateContainer cannot be read");
    enum grpc_status status;
    CLEANUP_FREE char *reason = why_not(f, &c->request, &status);
    if (reason) {
        refuse_call(call, status, "%s", reason);
        container_free(c);
        return;
    }
    c->id = new_id(f, 'c');
    c->created_ns = now(f);
    c->lag = loop_timer_new(f->loop, on_lag, c);
    c->stop = loop_timer_new(f->loop, on_stop, c);
    c->seen = (struct fake_container){.id = c->id,
                                      .sandbox_id = c->request.sandbox_id,
                                      .spec = c->request.config,
                                      .sandbox = c->request.sandbox,
                                      .state = RUNTIME_CREATED,
                                      .reason = ""};
    list_push_back(&f->containers, &c->node);
    publish(f, "/containers/create", c->id, c->seen.sandbox_id, true);
    answer_call(call, &(struct cri_text){c->id});
}

static void start_container(struct fake_cri *f, struct call *call, struct container *c)
{
    struct sandbox *s = find_sandbox(f, c->seen.sandbox_id);
    if (c->seen.state != RUNTIME_CREATED || !s || !s->seen.ready) {
        refuse_call(call, GRPC_UNKNOWN, "container is in state %d, or its sandbox is not ready",
                    (int) c->seen.state);
        return;
    }
    c->seen.state = RUNTIME_RUNNING;
    c->seen.starts++;
    c->started_ns = now(f);
    publish(f, "/tasks/start", c->id, c->seen.sandbox_id, true);
    answer_call(call, &(struct cri_text){0});
    if (f->ops && f->ops->started) {
        f->ops->started(f->ctx, &c->seen);
    }
}

static void stop_container(struct fake_cri *f, struct call *call, struct container *c,
                           int64_t timeout_s)
{
    if (c->seen.state == RUNTIME_UNKNOWN) {
        kill_now(c);
    }
    if (c->seen.state != RUNTIME_RUNNING) {
        answer_call(call, &(struct cri_text){0});
        return;
    }
    call->stops = xstrdup(c->id);
    if (c->seen.ending) {
        return;
    }
    uint64_t grace_ms = (uint64_t) timeout_s * 1000;
    bool kills = timeout_s == 0 || f->stop_ms > grace_ms;
    c->end_code = kills ? 137 : 143;
    loop_timer_arm(c->stop, kills ? grace_ms : f->stop_ms);
}

static void exec_sync(struct fake_cri *f, struct call *call, struct container *c,
                      const struct cri_exec_sync *q)
{
    if (c->seen.state != RUNTIME_RUNNING) {
        refuse_call(call, GRPC_UNKNOWN, "container is in state %d", (int) c->seen.state);
        return;
    }
    struct runtime_exec_result r = {.out = "", .err = ""};
    if (f->ops && f->ops->exec) {
        r = f->ops->exec(f->ctx, &c->seen, &q->cmd);
    }
    answer_call(call, &r);
}

static void remove_container(struct fake_cri *f, struct call *call, struct container *c)
{
    if (c && c->seen.ending) { /* As containerd, which looks for the process first. */
        refuse_call(call, GRPC_UNKNOWN, "container is still running, to stop first");
        return;
    }
    if (c) {
        kill_now(c);
        publish(f, "/containers/delete", c->id, c->seen.sandbox_id, true);
        container_free(c);
    }
    answer_call(call, &(struct cri_text){0});
}

static struct runtime_image image_record(const struct image *i, struct runtime_texts tags)
{
    return (struct runtime_image){.id = i->id, .tags = tags, .size = 4096, .username = ""};
}

static void list_images(struct fake_cri *f, struct call *call, const char *only)
{
    size_t n = 0, max = list_size(&f->images) + 1;
    CLEANUP_FREE struct runtime_image *v = xcalloc(max, sizeof *v);
    CLEANUP_FREE const char **tags = xcalloc(max, sizeof *tags);
    struct image *i;
    LIST_FOREACH (i, struct image, node, &f->images) {
        if (!only || i == find_image(f, only)) {
            tags[n] = i->name;
            v[n] = image_record(i, (struct runtime_texts){&tags[n], 1});
            n++;
        }
    }
    answer_call(call, &(struct cri_images){v, n});
}

static void say_status(struct fake_cri *f, struct call *call)
{
    struct cri_condition conditions[] = {{"RuntimeReady", true, "", ""},
                                         {"NetworkReady", !f->network_message,
                                          f->network_message ? "NetworkPluginNotReady" : "",
                                          f->network_message ? f->network_message : ""}};
    answer_call(call, &(struct cri_status){conditions, ARRAY_SIZE(conditions)});
}

/* Does what the call asks for. */
static void run_call(struct call *call)
{
    struct fake_cri *f = call->fake;
    enum cri_method_id method = call->method;
    if (use_fault(call, false)) {
        return;
    }
    if (method == CRI_RUN_SANDBOX) {
        run_sandbox(f, call);
        return;
    }
    if (method == CRI_CREATE_CONTAINER) {
        create_container(f, call);
        return;
    }
    union {
        const char *id; /* The first member of each request. */
        struct cri_text text;
        struct cri_list list;
        struct cri_stop_container stop;
        struct cri_update_resources update;
        struct cri_exec_sync exec_sync;
        struct cri_exec exec;
        struct cri_port_forward ports;
        struct cri_pull_image pull;
    } q = {0};
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(STORE_MAX);
    CHECK(pb_parse(&store, cri_methods[method].request, call->message, call->size, &q) == 0,
          "%s cannot be read", method_name(method));
    struct sandbox *s = NULL;
    struct container *c = NULL;
    switch (method) {
    case CRI_SANDBOX_STATUS:
    case CRI_PORT_FORWARD:
        s = find_sandbox(f, q.id);
        if (!s) {
            refuse_call(call, GRPC_NOT_FOUND,
                        "an error occurred when try to find sandbox: not found");
            return;
        }
        break;
    case CRI_STOP_SANDBOX:
    case CRI_REMOVE_SANDBOX:
        s = find_sandbox(f, q.id);
        if (!s) {
            answer_call(call, &(struct cri_text){0});
            return;
        }
        break;
    case CRI_START_CONTAINER:
    case CRI_STOP_CONTAINER:
    case CRI_CONTAINER_STATUS:
    case CRI_UPDATE_RESOURCES:
    case CRI_REOPEN_LOG:
    case CRI_EXEC_SYNC:
    case CRI_EXEC:
    case CRI_ATTACH:
        c = find_container(f, q.id);
        if (!c) {
            refuse_call(call, GRPC_NOT_FOUND,
                        "an error occurred when try to find container \"%s\": not found", q.id);
            return;
        }
        break;
    default:
        break;
    }
    struct image *image;
    switch (method) {
    case CRI_VERSION:
        answer_call(call, &(struct cri_version){"0.1.0", "fake", "1.0", "v1"});
        return;
    case CRI_STATUS:
        say_status(f, call);
        return;
    case CRI_STOP_SANDBOX:
        stop_sandbox(s, f);
        answer_call(call, &(struct cri_text){0});
        return;
    case CRI_REMOVE_SANDBOX:
        remove_sandbox(f, call, s);
        return;
    case CRI_SANDBOX_STATUS: {
        struct runtime_sandbox r = sandbox_record(s);
        answer_call(call, &(struct cri_sandboxes){&r, 1});
        return;
    }
    case CRI_LIST_SANDBOXES:
        list_sandboxes(f, call, &q.list);
        return;
    case CRI_START_CONTAINER:
        start_container(f, call, c);
        return;
    case CRI_STOP_CONTAINER:
        stop_container(f, call, c, q.stop.timeout_s);
        return;
    case CRI_REMOVE_CONTAINER:
        remove_container(f, call, find_container(f, q.id));
        return;
    case CRI_CONTAINER_STATUS: {
        struct runtime_container r = container_record(c);
        answer_call(call, &(struct cri_containers){&r, 1});
        return;
    }
    case CRI_LIST_CONTAINERS:
        list_containers(f, call, &q.list);
        return;
    case CRI_EXEC_SYNC:
        exec_sync(f, call, c, &q.exec_sync);
        return;
    case CRI_EXEC:
    case CRI_ATTACH:
    case CRI_PORT_FORWARD:
        answer_call(call, &(struct cri_text){"http://127.0.0.1:1/stream/token"});
        return;
    case CRI_LIST_IMAGES:
        list_images(f, call, NULL);
        return;
    case CRI_IMAGE_STATUS:
        list_images(f, call, q.id);
        return;
    case CRI_PULL_IMAGE:
        fake_cri_add_image(f, q.id);
        answer_call(call, &(struct cri_text){find_image(f, q.id)->id});
        return;
    case CRI_REMOVE_IMAGE:
        image = find_image(f, q.id);
        if (image) {
            image_free(image);
        }
        answer_call(call, &(struct cri_text){0});
        return;
    case CRI_IMAGE_FS_INFO: {
        struct runtime_filesystem fs = {"/var/lib/fake", 4096, 1};
        answer_call(call, &(struct cri_filesystems){&fs, 1});
        return;
    }
    default: /* UpdateContainerResources, ReopenContainerLog */
        answer_call(call, &(struct cri_text){0});
        return;
    }
}

/* ---- calls ---- */

static void on_delay(void *ctx)
{
    run_call(ctx);
}

static void on_begun(void *ctx, struct grpc_request *request)
{
    struct fake_cri *f = ctx;
    for (unsigned i = 0; i < CRI_METHODS; i++) {
        if (!streq(cri_methods[i].path, grpc_request_path(request))) {
            continue;
        }
        f->n_calls[i]++;
        struct call *c = NEW(struct call);
        c->fake = f;
        c->request = request;
        c->method = i;
        const char *message = grpc_request_message(request, &c->size);
        c->message = xmemdup(message, c->size + 1);
        list_push_back(&f->calls, &c->node);
        if ((i == CRI_EVENTS && f->events != FAKE_CRI_EVENTS_CRI) ||
            (i == CONTAINERD_EVENTS && f->events != FAKE_CRI_EVENTS_CONTAINERD)) {
            end_call(c, GRPC_UNIMPLEMENTED, "unknown service or method");
        } else if (i == CRI_EVENTS || i == CONTAINERD_EVENTS) {
            return; /* It stays open. */
        } else if (f->stalls[i]) {
            c->hangs = true;
        } else if (f->delay_ms) {
            c->delay = loop_timer_new(f->loop, on_delay, c);
            loop_timer_arm(c->delay, f->delay_ms);
        } else {
            run_call(c);
        }
        return;
    }
    grpc_request_end(request, GRPC_UNIMPLEMENTED, "unknown method");
}

/* The client has its answer, has given up, or is gone. */
static void on_gone(void *ctx, struct grpc_request *request)
{
    struct fake_cri *f = ctx;
    struct call *c;
    LIST_FOREACH (c, struct call, node, &f->calls) {
        if (c->request != request) {
            continue;
        }
        c->request = NULL;
        if (!c->hangs && !c->delay && !c->stops) {
            call_free(c); /* A stream of events. */
        }
    }
}

static const struct grpc_server_ops server_ops = {on_begun, on_gone};

/* ---- interface ---- */

struct fake_cri *fake_cri_new(struct loop *l, const char *path)
{
    struct fake_cri *f = NEW(struct fake_cri);
    f->loop = l;
    f->path = xstrdup(path);
    f->endpoint = xasprintf("unix://%s", path);
    list_init(&f->sandboxes);
    list_init(&f->containers);
    list_init(&f->images);
    list_init(&f->calls);
    list_init(&f->faults);
    fake_cri_start(f);
    return f;
}

struct fake_cri *fake_cri_free(struct fake_cri *f)
{
    if (!f) {
        return NULL;
    }
    fake_cri_stop(f);
    struct call *call;
    LIST_FOREACH (call, struct call, node, &f->calls) {
        call_free(call);
    }
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        container_free(c);
    }
    struct sandbox *s;
    LIST_FOREACH (s, struct sandbox, node, &f->sandboxes) {
        sandbox_free(s);
    }
    struct image *i;
    LIST_FOREACH (i, struct image, node, &f->images) {
        image_free(i);
    }
    struct fault *t;
    LIST_FOREACH (t, struct fault, node, &f->faults) {
        fault_free(t);
    }
    free(f->network_message);
    free(f->path);
    free(f->endpoint);
    free(f);
    return NULL;
}

const char *fake_cri_endpoint(const struct fake_cri *f)
{
    return f->endpoint;
}

void fake_cri_add_image(struct fake_cri *f, const char *name)
{
    if (!find_image(f, name)) {
        struct image *i = NEW(struct image);
        i->name = xstrdup(name);
        CLEANUP_FREE char *digits = new_id(f, 'e');
        i->id = xasprintf("sha256:%s", digits);
        list_push_back(&f->images, &i->node);
    }
}

const struct fake_sandbox *fake_cri_sandbox_at(const struct fake_cri *f, size_t n)
{
    struct sandbox *s;
    LIST_FOREACH (s, struct sandbox, node, &f->sandboxes) {
        if (n-- == 0) {
            return &s->seen;
        }
    }
    return NULL;
}

const struct fake_container *fake_cri_container_at(const struct fake_cri *f, size_t n)
{
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        if (n-- == 0) {
            return &c->seen;
        }
    }
    return NULL;
}

const struct fake_container *fake_cri_container(const struct fake_cri *f, const char *pod_uid,
                                                const char *name)
{
    const struct fake_container *found = NULL;
    struct container *c;
    LIST_FOREACH (c, struct container, node, &f->containers) {
        if (streq(c->request.sandbox->uid, pod_uid) && streq(c->request.config->name, name)) {
            found = &c->seen;
        }
    }
    return found;
}

const struct fake_sandbox *fake_cri_sandbox(const struct fake_cri *f, const char *pod_uid)
{
    const struct fake_sandbox *found = NULL;
    struct sandbox *s;
    LIST_FOREACH (s, struct sandbox, node, &f->sandboxes) {
        if (streq(s->request.config->uid, pod_uid)) {
            found = &s->seen;
        }
    }
    return found;
}

unsigned fake_cri_calls(const struct fake_cri *f, const char *method)
{
    unsigned n = 0, only = method_of(method);
    for (unsigned i = 0; i < CRI_METHODS; i++) {
        n += only == CRI_METHODS || only == i ? f->n_calls[i] : 0;
    }
    return n;
}

void fake_cri_exit(struct fake_cri *f, const char *container_id, int32_t code)
{
    struct container *c = find_container(f, container_id);
    CHECK(c, "no container %s", container_id);
    end_process(c, code, code ? "Error" : "Completed");
}

void fake_cri_oom(struct fake_cri *f, const char *container_id)
{
    struct container *c = find_container(f, container_id);
    CHECK(c, "no container %s", container_id);
    publish(f, "/tasks/oom", c->id, c->seen.sandbox_id, false);
    end_process(c, 137, "OOMKilled");
}

void fake_cri_forget_exit(struct fake_cri *f, const char *container_id)
{
    struct container *c = find_container(f, container_id);
    CHECK(c && !f->server, "no container %s, or the runtime is there", container_id);
    if (c->seen.state == RUNTIME_RUNNING && !c->seen.ending) {
        c->seen.state = RUNTIME_UNKNOWN;
        loop_timer_disarm(c->stop);
    }
}

void fake_cri_kill_sandbox(struct fake_cri *f, const char *sandbox_id)
{
    struct sandbox *s = find_sandbox(f, sandbox_id);
    CHECK(s, "no sandbox %s", sandbox_id);
    s->seen.ready = false;
    publish(f, "/tasks/exit", s->id, s->id, true);
}

void fake_cri_set_stop_ms(struct fake_cri *f, uint32_t ms)
{
    f->stop_ms = ms;
}

void fake_cri_set_ops(struct fake_cri *f, const struct fake_cri_ops *ops, void *ctx)
{
    f->ops = ops;
    f->ctx = ctx;
}

void fake_cri_set_clock(struct fake_cri *f, int64_t (*now_ns)(void *ctx), void *ctx)
{
    f->now_ns = now_ns;
    f->clock_ctx = ctx;
}

static void add_fault(struct fake_cri *f, const char *method, enum grpc_status status,
                      const char *text, unsigned n, bool after)
{
    CHECK(n && status != GRPC_OK, "no fault");
    struct fault *t = NEW(struct fault);
    t->method = method_of(method);
    t->status = status;
    t->text = xstrdup(text);
    t->n = n;
    t->after = after;
    list_push_back(&f->faults, &t->node);
}

void fake_cri_fail(struct fake_cri *f, const char *method, enum grpc_status status,
                   const char *text, unsigned n)
{
    add_fault(f, method, status, text, n, false);
}

void fake_cri_fail_after(struct fake_cri *f, const char *method, enum grpc_status status,
                         const char *text, unsigned n)
{
    add_fault(f, method, status, text, n, true);
}

void fake_cri_forget_faults(struct fake_cri *f)
{
    struct fault *t;
    LIST_FOREACH (t, struct fault, node, &f->faults) {
        fault_free(t);
    }
    f->lose = 0;
}

void fake_cri_stall(struct fake_cri *f, const char *method)
{
    unsigned only = method_of(method);
    for (unsigned i = 0; i < CRI_METHODS; i++) {
        f->stalls[i] |= only == CRI_METHODS || only == i;
    }
}

void fake_cri_go_on(struct fake_cri *f)
{
    memset(f->stalls, 0, sizeof f->stalls);
    /* A call may end others. */
    struct call *next;
    do {
        next = NULL;
        struct call *c;
        LIST_FOREACH (c, struct call, node, &f->calls) {
            next = !next && c->hangs ? c : next;
        }
        if (next) {
            next->hangs = false;
            run_call(next);
        }
    } while (next);
}

unsigned fake_cri_hanging(const struct fake_cri *f)
{
    unsigned n = 0;
    struct call *c;
    LIST_FOREACH (c, struct call, node, &f->calls) {
        n += c->hangs;
    }
    return n;
}

void fake_cri_set_delay_ms(struct fake_cri *f, uint32_t ms)
{
    f->delay_ms = ms;
}

void fake_cri_stop(struct fake_cri *f)
{
    f->server = grpc_server_free(f->server);
    /* What hung in the process ends with it. */
    struct call *c;
    LIST_FOREACH (c, struct call, node, &f->calls) {
        call_free(c);
    }
}

void fake_cri_start(struct fake_cri *f)
{
    CHECK(!f->server, "the runtime runs");
    f->server = grpc_server_new(f->loop, f->path, &server_ops, f);
}

void fake_cri_set_events(struct fake_cri *f, enum fake_cri_events events)
{
    f->events = events;
}

void fake_cri_lose_events(struct fake_cri *f, unsigned n)
{
    f->lose = n;
}

void fake_cri_set_exit_lag_ms(struct fake_cri *f, uint32_t ms)
{
    f->exit_lag_ms = ms;
}

void fake_cri_set_network_message(struct fake_cri *f, const char *message)
{
    free(f->network_message);
    f->network_message = message ? xstrdup(message) : NULL;
}
