/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in the runtime: CRI's own events (GetContainerEvents, from containerd 1.7 on), else
 * those of containerd, which serves them on the same socket, else a resync every second.
 *
 * containerd publishes an exit twice: when the process ends, and when its output has been read to
 * the end ("/tasks/delete"). The CRI plug-in notes the end of a container some 20 ms after that, on
 * the disk.  So the second event is told at once, and answers about the container are corrected
 * until the plug-in has noted it.  A sandbox's end is told when its status shows it. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "runtime/cri/cri_priv.h"

#define POLL_MS 1000
/* The runtime may still be subscribing when its client has listed: one list more, later. */
#define SETTLE_MS 1000
/* A stream that ends sooner without an event is taken for one that the runtime does not serve. */
#define SERVED_MS 1000
#define STATUS_MS 10000u
/* Between two looks at a container that is about to be known as ended. */
#define LOOK_MIN_MS 4
#define LOOK_MAX_MS 500
#define LOOK_FIRST_MS 20
#define LOOK_TOTAL_MS 60000
/* The plug-in notes an OOM kill apart from the exit. */
#define OOM_MS 300

enum source { SOURCE_CRI, SOURCE_CONTAINERD, SOURCE_NONE };

struct cri_events {
    struct cri *c;
    enum source source;
    struct rpc_call *stream;
    uint64_t began_ms;
    bool heard; /* An event came by the stream. */
    struct loop_timer *timer;
    struct list exits; /* Of struct cri_exit. */
};

/* A container or sandbox whose process has ended, as containerd says. */
struct cri_exit {
    struct cri_events *ev;
    struct list node;
    char *id;
    bool is_sandbox; /* No container has the id. */
    bool exited;     /* Else a process of it was killed for want of memory, maybe not the first. */
    bool oom;
    bool collected; /* The end of a container was published whole: the next two members are set. */
    int32_t exit_code;
    int64_t finished_ns;
    uint64_t since_ms, wait_ms;
    struct loop_timer *timer;
    struct rpc_call *status;
};

static void subscribe(struct cri_events *ev);

/* ---- exits ---- */

static void exit_free(struct cri_exit *x)
{
    list_remove(&x->node);
    rpc_cancel(x->status);
    loop_timer_free(x->timer);
    cri_end_noted(x->ev->c, x->id);
    free(x->id);
    free(x);
}

static const char *reason_of(const struct cri_exit *x)
{
    return x->oom ? "OOMKilled" : x->exit_code ? "Error" : "Completed";
}

/* Tells the owner; 'ev' may be freed by it. */
static void exit_tell(struct cri_exit *x)
{
    CLEANUP_FREE char *id = xstrdup(x->id);
    struct runtime *owner = x->ev->c->owner;
    bool is_sandbox = x->is_sandbox;
    exit_free(x);
    runtime_tell_changed(owner, is_sandbox ? id : NULL, is_sandbox ? NULL : id);
}

static void look(struct cri_exit *x);

static void look_again(struct cri_exit *x)
{
    uint64_t now = loop_now_ms(x->ev->c->loop);
    if (now - x->since_ms >= LOOK_TOTAL_MS) {
        exit_tell(x);
        return;
    }
    loop_timer_arm(x->timer, x->wait_ms);
    x->wait_ms = MIN(x->wait_ms * 2, LOOK_MAX_MS);
}

static void on_look(void *ctx, const struct rpc_result *r)
{
    struct cri_exit *x = ctx;
    struct cri_containers containers;
    struct cri_sandboxes sandboxes;
    x->status = NULL;
    if (r->status == GRPC_NOT_FOUND && !x->is_sandbox) {
        x->is_sandbox = true;
        look(x);
        return;
    }
    if (r->status == GRPC_NOT_FOUND) {
        exit_tell(x);
        return;
    }
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CRI_STORE_MAX);
    enum cri_method_id method = x->is_sandbox ? CRI_SANDBOX_STATUS : CRI_CONTAINER_STATUS;
    void *answer = x->is_sandbox ? (void *) &sandboxes : (void *) &containers;
    if (r->status != GRPC_OK ||
        pb_parse(&store, cri_methods[method].response, r->message, r->size, answer) < 0) {
        look_again(x);
        return;
    }
    bool runs, reason_known = true;
    if (x->is_sandbox) {
        runs = sandboxes.n && sandboxes.v->ready;
    } else {
        runs = containers.n && containers.v->state == RUNTIME_RUNNING;
        reason_known = !x->oom || !containers.n || streq(containers.v->reason, "OOMKilled") ||
                       loop_now_ms(x->ev->c->loop) - x->since_ms >= OOM_MS;
    }
    if (runs && !x->exited && loop_now_ms(x->ev->c->loop) - x->since_ms >= OOM_MS) {
        exit_free(x); /* Another process than the first was killed. */
    } else if (runs || !reason_known) {
        look_again(x);
    } else if (x->collected && !x->is_sandbox) {
        exit_free(x); /* It has been told. */
    } else {
        exit_tell(x);
    }
}

static void look(struct cri_exit *x)
{
    struct cri_text id = {x->id};
    x->status = cri_begin(x->ev->c, x->is_sandbox ? CRI_SANDBOX_STATUS : CRI_CONTAINER_STATUS, &id,
                          STATUS_MS, on_look, x);
}

static void on_look_timer(void *ctx)
{
    look(ctx);
}

static struct cri_exit *find_exit(const struct cri_events *ev, const char *id)
{
    struct cri_exit *x;
    LIST_FOREACH (x, struct cri_exit, node, &ev->exits) {
        if (streq(x->id, id)) {
            return x;
        }
    }
    return NULL;
}

/* Begins to look whether the runtime knows of the exit, the first time after 'wait_ms'. */
static struct cri_exit *expect_exit(struct cri_events *ev, const char *id, uint64_t wait_ms)
{
    struct cri_exit *x = find_exit(ev, id);
    if (!x) {
        x = NEW(struct cri_exit);
        x->ev = ev;
        x->id = xstrdup(id);
        x->since_ms = loop_now_ms(ev->c->loop);
        x->timer = loop_timer_new(ev->c->loop, on_look_timer, x);
        list_push_back(&ev->exits, &x->node);
    }
    x->wait_ms = LOOK_MIN_MS;
    if (!x->status) {
        loop_timer_arm(x->timer, wait_ms);
    }
    return x;
}

/* ---- events ---- */

static void on_cri_event(struct cri_events *ev, const char *p, size_t size)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CRI_STORE_MAX);
    struct cri_event event;
    if (pb_parse(&store, cri_methods[CRI_EVENTS].response, p, size, &event) < 0) {
        runtime_tell_resync(ev->c->owner);
        return;
    }
    bool of_sandbox = streq(event.container_id, event.sandbox_id);
    runtime_tell_changed(ev->c->owner, of_sandbox ? event.sandbox_id : NULL,
                         of_sandbox ? NULL : event.container_id);
}

static void on_exit_event(struct cri_events *ev, struct pb_store *store,
                          const struct containerd_envelope *env)
{
    struct containerd_exit exited;
    if (pb_parse(store, &containerd_exit_shape, env->event, env->event_size, &exited) == 0 &&
        *exited.container_id && (!*exited.exec_id || streq(exited.exec_id, exited.container_id))) {
        expect_exit(ev, exited.container_id, LOOK_FIRST_MS)->exited = true;
    }
}

static void on_delete_event(struct cri_events *ev, struct pb_store *store,
                            const struct containerd_envelope *env)
{
    struct containerd_delete end;
    if (pb_parse(store, &containerd_delete_shape, env->event, env->event_size, &end) < 0 ||
        !*end.container_id) {
        return;
    }
    struct cri_exit *x = expect_exit(ev, end.container_id, LOOK_MIN_MS);
    x->exited = true;
    x->collected = true;
    x->exit_code = (int32_t) end.exit_status;
    if (__builtin_mul_overflow(end.at_s, NS_PER_S, &x->finished_ns) ||
        __builtin_add_overflow(x->finished_ns, end.at_ns, &x->finished_ns)) {
        x->finished_ns = 0; /* The runtime does not say when. */
    }
    runtime_tell_changed(ev->c->owner, end.container_id, end.container_id);
}

static void on_containerd_event(struct cri_events *ev, const char *p, size_t size)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CRI_STORE_MAX);
    struct containerd_envelope env;
    struct cri_text id;
    if (pb_parse(&store, cri_methods[CONTAINERD_EVENTS].response, p, size, &env) < 0) {
        runtime_tell_resync(ev->c->owner);
        return;
    }
    if (!streq(env.namespace, "k8s.io")) {
        return;
    }
    if (streq(env.topic, "/tasks/exit")) {
        on_exit_event(ev, &store, &env);
        return;
    }
    if (streq(env.topic, "/tasks/delete")) {
        on_delete_event(ev, &store, &env);
        return;
    }
    if (pb_parse(&store, &containerd_id_shape, env.event, env.event_size, &id) < 0 || !*id.text) {
        return;
    }
    if (streq(env.topic, "/tasks/oom")) {
        expect_exit(ev, id.text, LOOK_FIRST_MS)->oom = true;
    } else {
        runtime_tell_changed(ev->c->owner, id.text, id.text);
    }
}

static void on_message(void *ctx, const char *p, size_t size)
{
    struct cri_events *ev = ctx;
    ev->heard = true;
    if (ev->source == SOURCE_CRI) {
        on_cri_event(ev, p, size);
    } else {
        on_containerd_event(ev, p, size);
    }
}

/* The stream ended while the connection lives. */
static void on_ended(void *ctx, const struct rpc_result *r)
{
    struct cri_events *ev = ctx;
    ev->stream = NULL;
    bool brief = !ev->heard && loop_now_ms(ev->c->loop) - ev->began_ms < SERVED_MS;
    if (r->status == GRPC_UNIMPLEMENTED || r->status == GRPC_NOT_FOUND || brief) {
        ev->source++; /* Until the next connection. */
        subscribe(ev);
    } else {
        loop_timer_arm(ev->timer, SETTLE_MS);
    }
}

static void subscribe(struct cri_events *ev)
{
    static const char *const filters[] = {
        "namespace==k8s.io,topic~=\"^/tasks/(start|exit|delete|oom|paused|resumed)$\"",
        "namespace==k8s.io,topic~=\"^/containers/(create|delete)$\"",
    };
    static const struct rpc_stream_ops ops = {on_message, on_ended, true};
    struct containerd_subscribe request = {{filters, ARRAY_SIZE(filters)}};
    ev->began_ms = loop_now_ms(ev->c->loop);
    ev->heard = false;
    loop_timer_arm(ev->timer, ev->source == SOURCE_NONE ? POLL_MS : SETTLE_MS);
    if (ev->source == SOURCE_NONE) {
        return;
    }
    const struct cri_method *m =
        &cri_methods[ev->source == SOURCE_CRI ? CRI_EVENTS : CONTAINERD_EVENTS];
    struct strbuf body = STRBUF_INIT;
    pb_format(&body, m->request, &request);
    ev->stream = rpc_stream(ev->c->rpc, m->path, &body, CRI_MESSAGE_MAX, &ops, ev);
}

static void on_timer(void *ctx)
{
    struct cri_events *ev = ctx;
    if (ev->source == SOURCE_NONE) {
        loop_timer_arm(ev->timer, POLL_MS);
    } else if (!ev->stream) {
        subscribe(ev); /* And a list when it has settled. */
        return;
    }
    runtime_tell_resync(ev->c->owner);
}

/* ---- interface ---- */

bool cri_events_has_end(const struct cri_events *ev, const char *id)
{
    const struct cri_exit *x = find_exit(ev, id);
    return x && x->collected;
}

void cri_events_correct(const struct cri_events *ev, const struct cri_containers *c)
{
    const struct cri_exit *x;
    LIST_FOREACH (x, const struct cri_exit, node, &ev->exits) {
        for (size_t i = 0; x->collected && i < c->n; i++) {
            enum runtime_state state = c->v[i].state;
            bool lacks_reason =
                state == RUNTIME_EXITED && x->oom && !streq_null(c->v[i].reason, "OOMKilled");
            if ((state == RUNTIME_RUNNING || lacks_reason) && streq(c->v[i].id, x->id)) {
                c->v[i].state = RUNTIME_EXITED;
                c->v[i].exit_code = x->exit_code;
                c->v[i].finished_ns = x->finished_ns;
                c->v[i].reason = reason_of(x);
            }
        }
    }
}

struct cri_events *cri_events_new(struct cri *c)
{
    struct cri_events *ev = NEW(struct cri_events);
    ev->c = c;
    ev->timer = loop_timer_new(c->loop, on_timer, ev);
    list_init(&ev->exits);
    return ev;
}

void cri_events_start(struct cri_events *ev)
{
    ev->source = SOURCE_CRI;
    subscribe(ev);
}

void cri_events_stop(struct cri_events *ev)
{
    struct cri_exit *x;
    LIST_FOREACH (x, struct cri_exit, node, &ev->exits) {
        exit_free(x);
    }
    ev->stream = rpc_cancel(ev->stream);
    loop_timer_disarm(ev->timer);
}

struct cri_events *cri_events_free(struct cri_events *ev)
{
    if (ev) {
        cri_events_stop(ev);
        loop_timer_free(ev->timer);
        free(ev);
    }
    return NULL;
}
