/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/timeutil.h"
#include "runtime/cri/cri_priv.h"

#include <stdio.h>

#define ENDPOINT_PREFIX "unix://"
#define RETRY_MIN_MS 50
#define RETRY_MAX_MS 2000

/* The kubelet's limits of time. */
#define SHORT_MS 10000u
#define CALL_MS 120000u
#define NEVER_MS 0u /* The runtime goes on when its client has given up, or the work may be long. */

struct cri_call {
    struct cri *cri;
    struct list node;
    struct runtime_call *call; /* NULL: cancelled, while the runtime goes on. */
    enum cri_method_id method;
    struct rpc_call *rpc; /* NULL: it has failed, or waits. */
    char *waits_for;      /* The removal of this container waits for the note of its end. */
};

/* ---- memory ---- */

static void call_free(struct cri_call *call)
{
    list_remove(&call->node);
    free(call->waits_for);
    free(call);
}

static void drop_calls(struct list *calls)
{
    struct cri_call *call;
    LIST_FOREACH (call, struct cri_call, node, calls) {
        call_free(call);
    }
}

static void destroy(struct cri *c)
{
    c->up = false;
    c->events = cri_events_free(c->events);
    drop_calls(&c->calls);
    drop_calls(&c->failed);
    loop_task_cancel(&c->fail);
    loop_timer_free(c->retry);
    rpc_free(c->rpc);
    free(c->path);
    free(c->lost_reason);
    free(c);
}

void cri_leave(struct cri *c)
{
    if (--c->depth == 0 && c->freed) {
        destroy(c);
    }
}

static void cri_close(void *b)
{
    struct cri *c = b;
    c->freed = true;
    if (!c->depth) {
        destroy(c);
    }
}

int cri_errno(enum grpc_status status)
{
    switch (status) {
    case GRPC_OK:
        return 0;
    case GRPC_NOT_FOUND:
        return -ENOENT;
    case GRPC_UNAVAILABLE:
    case GRPC_CANCELLED: /* The runtime ends, and cancels what it does. */
        return -EAGAIN;
    case GRPC_DEADLINE_EXCEEDED:
        return -ETIMEDOUT;
    case GRPC_UNIMPLEMENTED:
        return -EOPNOTSUPP;
    case GRPC_INVALID_ARGUMENT:
    case GRPC_OUT_OF_RANGE:
        return -EINVAL;
    default:
        return -EIO;
    }
}

/* ---- the connection ---- */

static void run_failed(void *ctx)
{
    struct cri *c = ctx;
    cri_enter(c);
    CLEANUP_FREE char *text = xasprintf("the container runtime at %s is away: %s", c->path,
                                        c->lost_reason ? c->lost_reason : "not connected yet");
    /* Calls that the callbacks begin are for the next run. */
    for (size_t n = list_size(&c->failed); n > 0 && !c->freed; n--) {
        struct list *node = list_pop_front(&c->failed);
        if (!node) {
            break; /* A callback has cancelled others. */
        }
        struct cri_call *call = CONTAINER_OF(node, struct cri_call, node);
        struct runtime_call *ends = call->call;
        call_free(call);
        if (ends) {
            runtime_end_error(ends, -EAGAIN, text);
        }
    }
    cri_leave(c);
}

/* Ends a call with -EAGAIN, later. */
static void fail_later(struct cri_call *call)
{
    list_remove(&call->node);
    call->rpc = NULL;
    list_push_back(&call->cri->failed, &call->node);
    loop_task_queue(&call->cri->fail);
}

/* The connection is lost, or could not be made.  Calls the owner. */
static void lost(struct cri *c, const char *reason)
{
    cri_enter(c);
    free(c->lost_reason);
    c->lost_reason = xstrdup(reason);
    c->up = false;
    c->hello = NULL;
    cri_events_stop(c->events);
    c->rpc = rpc_free(c->rpc);
    struct cri_call *call;
    LIST_FOREACH (call, struct cri_call, node, &c->calls) {
        fail_later(call);
    }
    uint64_t wait = backoff_fail(&c->backoff, loop_now_ms(c->loop), (uint32_t) time_mono_ns());
    loop_timer_arm(c->retry, wait);
    if (!c->told_lost) {
        c->told_lost = true;
        runtime_tell_connection(c->owner, c->lost_reason);
    }
    cri_leave(c);
}

struct rpc_call *cri_begin(struct cri *c, enum cri_method_id method, const void *request,
                           uint64_t timeout_ms, rpc_done_fn *fn, void *ctx)
{
    struct strbuf body = STRBUF_INIT;
    pb_format(&body, cri_methods[method].request, request);
    return rpc_begin(c->rpc, cri_methods[method].path, &body, timeout_ms, CRI_MESSAGE_MAX, fn, ctx);
}

/* The answer to the first Version says whether the runtime serves CRI yet: containerd listens
 * before its plug-ins are loaded. */
static void on_hello(void *ctx, const struct rpc_result *r)
{
    struct cri *c = ctx;
    c->hello = NULL;
    if (r->status != GRPC_OK) {
        CLEANUP_FREE char *reason =
            r->status == GRPC_UNIMPLEMENTED
                ? xasprintf("it does not speak CRI v1 (%s); containerd speaks it from 1.6 on, "
                            "if its plug-in \"cri\" is not disabled",
                            r->text)
                : xasprintf("%s (%s)", r->text, grpc_status_name(r->status));
        lost(c, reason);
        return;
    }
    cri_enter(c);
    c->up = true;
    c->told_lost = false;
    backoff_reset(&c->backoff);
    cri_events_start(c->events);
    runtime_tell_connection(c->owner, NULL);
    if (!c->freed && c->up) {
        runtime_tell_resync(c->owner);
    }
    cri_leave(c);
}

static void on_up(void *ctx)
{
    struct cri *c = ctx;
    c->hello = cri_begin(c, CRI_VERSION, &(struct cri_text){.text = "v1"}, SHORT_MS, on_hello, c);
}

static void on_down(void *ctx, const char *reason)
{
    lost(ctx, reason);
}

static void on_retry(void *ctx)
{
    static const struct h2_ops ops = {on_up, on_down};
    struct cri *c = ctx;
    struct err e = {0};
    struct h2_address address = {.path = c->path, .name = "localhost"};
    if (rpc_connect(c->loop, &address, &ops, c, &c->rpc, &e) < 0) {
        lost(c, e.text);
    }
}

static int cri_open(struct loop *l, const char *endpoint, struct runtime *r, void **ret_b,
                    struct err *e)
{
    if (!str_has_prefix(endpoint, ENDPOINT_PREFIX "/")) {
        return err_set(e, -EINVAL,
                       "\"%s\" is not the address of a unix socket (" ENDPOINT_PREFIX
                       "/run/containerd/containerd.sock)",
                       endpoint);
    }
    struct cri *c = NEW(struct cri);
    c->loop = l;
    c->owner = r;
    c->path = xstrdup(endpoint + strlen(ENDPOINT_PREFIX));
    c->backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    list_init(&c->calls);
    list_init(&c->failed);
    loop_task_init(&c->fail, l, run_failed, c);
    c->retry = loop_timer_new(l, on_retry, c);
    c->events = cri_events_new(c);
    loop_timer_arm(c->retry, 0);
    *ret_b = c;
    return 0;
}

/* ---- answers ---- */

static void end_status(struct runtime_call *call, const struct cri_status *s)
{
    struct runtime_status out = {.runtime_reason = "RuntimeUnknown",
                                 .runtime_message = "the runtime does not say that it is ready",
                                 .network_reason = "NetworkUnknown",
                                 .network_message = "the runtime does not say that it is ready"};
    for (size_t i = 0; i < s->n_conditions; i++) {
        const struct cri_condition *k = &s->conditions[i];
        if (streq(k->type, "RuntimeReady")) {
            out.runtime_reason = k->status ? NULL : k->reason;
            out.runtime_message = k->status ? NULL : k->message;
        } else if (streq(k->type, "NetworkReady")) {
            out.network_reason = k->status ? NULL : k->reason;
            out.network_message = k->status ? NULL : k->message;
        }
    }
    runtime_end_status(call, &out);
}

/* No process ends with a negative code: CRI-O answers -1 for a command that it has killed at the
 * end of its time. */
static void end_exec(struct runtime_call *call, const struct runtime_exec_result *r)
{
    if (r->exit_code < 0) {
        runtime_end_error(call, -ETIMEDOUT, "the runtime killed it at the end of its time");
        return;
    }
    runtime_end_exec(call, r);
}

/* Ends the call with an answer that was parsed. */
static void end_parsed(const struct cri *c, struct runtime_call *call, enum cri_method_id method,
                       const void *answer)
{
    const struct cri_version *version = answer;
    const struct cri_sandboxes *sandboxes = answer;
    const struct cri_containers *containers = answer;
    const struct cri_images *images = answer;
    const struct cri_filesystems *filesystems = answer;
    switch (method) {
    case CRI_VERSION:
        runtime_end_version(
            call, &(struct runtime_version){version->runtime_name, version->runtime_version});
        return;
    case CRI_STATUS:
        end_status(call, answer);
        return;
    case CRI_SANDBOX_STATUS:
        if (sandboxes->n == 0) {
            runtime_end_error(call, -ENOENT, "no such sandbox");
            return;
        }
        runtime_end_sandboxes(call, sandboxes->v, 1);
        return;
    case CRI_LIST_SANDBOXES:
        runtime_end_sandboxes(call, sandboxes->v, sandboxes->n);
        return;
    case CRI_CONTAINER_STATUS:
        if (containers->n == 0) {
            runtime_end_error(call, -ENOENT, "no such container");
            return;
        }
        cri_events_correct(c->events, containers);
        runtime_end_containers(call, containers->v, 1);
        return;
    case CRI_LIST_CONTAINERS:
        cri_events_correct(c->events, containers);
        runtime_end_containers(call, containers->v, containers->n);
        return;
    case CRI_EXEC_SYNC:
        end_exec(call, answer);
        return;
    case CRI_IMAGE_STATUS:
        if (images->n == 0) {
            runtime_end_error(call, -ENOENT, "no such image");
            return;
        }
        runtime_end_images(call, images->v, 1);
        return;
    case CRI_LIST_IMAGES:
        runtime_end_images(call, images->v, images->n);
        return;
    case CRI_IMAGE_FS_INFO:
        runtime_end_usage(call, filesystems->v, filesystems->n);
        return;
    case CRI_RUN_SANDBOX:
    case CRI_CREATE_CONTAINER:
    case CRI_EXEC:
    case CRI_ATTACH:
    case CRI_PORT_FORWARD:
    case CRI_PULL_IMAGE:
        runtime_end_id(call, ((const struct cri_text *) answer)->text);
        return;
    default:
        runtime_end_done(call);
        return;
    }
}

static void on_answer(void *ctx, const struct rpc_result *r)
{
    struct cri_call *call = ctx;
    const struct cri *c = call->cri;
    struct runtime_call *ends = call->call;
    enum cri_method_id method = call->method;
    call_free(call);
    if (!ends) {
        return;
    }
    if (r->status != GRPC_OK) {
        runtime_end_error(ends, cri_errno(r->status),
                          *r->text ? r->text : grpc_status_name(r->status));
        return;
    }
    union {
        struct cri_text text;
        struct cri_version version;
        struct cri_status status;
        struct cri_sandboxes sandboxes;
        struct cri_containers containers;
        struct cri_images images;
        struct cri_filesystems filesystems;
        struct runtime_exec_result exec;
    } answer;
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CRI_STORE_MAX);
    if (pb_parse(&store, cri_methods[method].response, r->message, r->size, &answer) < 0) {
        runtime_end_error(ends, -EIO, "the runtime's answer is not as CRI v1 has it");
        return;
    }
    end_parsed(c, ends, method, &answer);
}

/* ---- calls ---- */

static struct cri_call *call_new(struct cri *c, struct runtime_call *call,
                                 enum cri_method_id method)
{
    struct cri_call *made = NEW(struct cri_call);
    made->cri = c;
    made->call = call;
    made->method = method;
    call->data = made;
    list_push_back(&c->calls, &made->node);
    return made;
}

static void send_call(struct cri *c, struct runtime_call *call, enum cri_method_id method,
                      const void *request, uint64_t timeout_ms)
{
    struct cri_call *made = call_new(c, call, method);
    if (c->up) {
        made->rpc = cri_begin(c, method, request, timeout_ms, on_answer, made);
    } else {
        fail_later(made);
    }
}

static void cancel(void *b, struct runtime_call *call)
{
    struct cri_call *made = call->data;
    made->call = NULL;
    if (made->method == CRI_RUN_SANDBOX && made->rpc) {
        return; /* The end of the stream would end the sandbox's making halfway. */
    }
    rpc_cancel(made->rpc);
    call_free(made);
}

static void send_text(struct cri *c, struct runtime_call *call, enum cri_method_id method,
                      const char *text)
{
    send_call(c, call, method, &(struct cri_text){text}, CALL_MS);
}

static void send_nothing(struct cri *c, struct runtime_call *call, enum cri_method_id method,
                         uint64_t timeout_ms)
{
    send_call(c, call, method, NULL, timeout_ms);
}

static void version(void *b, struct runtime_call *call)
{
    send_call(b, call, CRI_VERSION, &(struct cri_text){"v1"}, SHORT_MS);
}

static void status(void *b, struct runtime_call *call)
{
    send_nothing(b, call, CRI_STATUS, SHORT_MS);
}

static void run_sandbox(void *b, struct runtime_call *call, const struct runtime_sandbox_spec *s,
                        const char *handler)
{
    send_call(b, call, CRI_RUN_SANDBOX, &(struct cri_run_sandbox){s, handler}, NEVER_MS);
}

static void stop_sandbox(void *b, struct runtime_call *call, const char *id)
{
    send_text(b, call, CRI_STOP_SANDBOX, id);
}

static void remove_sandbox(void *b, struct runtime_call *call, const char *id)
{
    send_text(b, call, CRI_REMOVE_SANDBOX, id);
}

static void get_sandbox(void *b, struct runtime_call *call, const char *id)
{
    send_text(b, call, CRI_SANDBOX_STATUS, id);
}

static void send_list(struct cri *c, struct runtime_call *call, enum cri_method_id method,
                      const char *pod_uid)
{
    struct runtime_pair label = {"io.kubernetes.pod.uid", pod_uid};
    struct cri_list list = {.labels = {&label, pod_uid ? 1 : 0}};
    send_call(c, call, method, &list, CALL_MS);
}

static void list_sandboxes(void *b, struct runtime_call *call, const char *pod_uid)
{
    send_list(b, call, CRI_LIST_SANDBOXES, pod_uid);
}

static void create_container(void *b, struct runtime_call *call, const char *sandbox_id,
                             const struct runtime_container_spec *spec,
                             const struct runtime_sandbox_spec *s)
{
    send_call(b, call, CRI_CREATE_CONTAINER, &(struct cri_create_container){sandbox_id, spec, s},
              CALL_MS);
}

static void start_container(void *b, struct runtime_call *call, const char *id)
{
    send_text(b, call, CRI_START_CONTAINER, id);
}

static void stop_container(void *b, struct runtime_call *call, const char *id, uint32_t grace_s)
{
    send_call(b, call, CRI_STOP_CONTAINER, &(struct cri_stop_container){id, grace_s},
              CALL_MS + (uint64_t) grace_s * 1000);
}

/* The runtime refuses to remove a container whose end it has not noted, though the process is
 * gone. */
static void remove_container(void *b, struct runtime_call *call, const char *id)
{
    struct cri *c = b;
    if (!c->up || !cri_events_has_end(c->events, id)) {
        send_text(c, call, CRI_REMOVE_CONTAINER, id);
        return;
    }
    struct cri_call *made = call_new(c, call, CRI_REMOVE_CONTAINER);
    made->waits_for = xstrdup(id);
}

void cri_end_noted(struct cri *c, const char *id)
{
    struct cri_call *made;
    LIST_FOREACH (made, struct cri_call, node, &c->calls) {
        if (c->up && !made->rpc && streq_null(made->waits_for, id)) {
            struct cri_text request = {made->waits_for};
            made->rpc = cri_begin(c, made->method, &request, CALL_MS, on_answer, made);
        }
    }
}

static void get_container(void *b, struct runtime_call *call, const char *id)
{
    send_text(b, call, CRI_CONTAINER_STATUS, id);
}

static void list_containers(void *b, struct runtime_call *call, const char *pod_uid)
{
    send_list(b, call, CRI_LIST_CONTAINERS, pod_uid);
}

static void update_resources(void *b, struct runtime_call *call, const char *id,
                             const struct runtime_resources *res)
{
    send_call(b, call, CRI_UPDATE_RESOURCES, &(struct cri_update_resources){id, res}, CALL_MS);
}

static void reopen_log(void *b, struct runtime_call *call, const char *id)
{
    send_text(b, call, CRI_REOPEN_LOG, id);
}

static void exec_sync(void *b, struct runtime_call *call, const char *id, const char *const *cmd,
                      size_t n_cmd, uint32_t timeout_s)
{
    struct cri_exec_sync request = {id, {cmd, n_cmd}, timeout_s};
    send_call(b, call, CRI_EXEC_SYNC, &request,
              timeout_s ? CALL_MS + (uint64_t) timeout_s * 1000 : NEVER_MS);
}

static void exec(void *b, struct runtime_call *call, const char *id,
                 const struct runtime_streams *s, const char *const *cmd, size_t n_cmd)
{
    send_call(b, call, CRI_EXEC, &(struct cri_exec){id, {cmd, n_cmd}, *s}, CALL_MS);
}

static void attach(void *b, struct runtime_call *call, const char *id,
                   const struct runtime_streams *s)
{
    send_call(b, call, CRI_ATTACH, &(struct cri_exec){.id = id, .streams = *s}, CALL_MS);
}

static void port_forward(void *b, struct runtime_call *call, const char *sandbox_id,
                         const uint16_t *ports, size_t n_ports)
{
    CLEANUP_FREE int64_t *wide = xcalloc(n_ports + 1, sizeof *wide);
    for (size_t i = 0; i < n_ports; i++) {
        wide[i] = ports[i];
    }
    send_call(b, call, CRI_PORT_FORWARD, &(struct cri_port_forward){sandbox_id, wide, n_ports},
              CALL_MS);
}

static void list_images(void *b, struct runtime_call *call)
{
    send_nothing(b, call, CRI_LIST_IMAGES, CALL_MS);
}

static void get_image(void *b, struct runtime_call *call, const char *image)
{
    send_text(b, call, CRI_IMAGE_STATUS, image);
}

static void pull_image(void *b, struct runtime_call *call, const char *image,
                       const struct runtime_auth *auth, const struct runtime_sandbox_spec *s)
{
    send_call(b, call, CRI_PULL_IMAGE, &(struct cri_pull_image){image, auth, s}, NEVER_MS);
}

static void remove_image(void *b, struct runtime_call *call, const char *image)
{
    send_text(b, call, CRI_REMOVE_IMAGE, image);
}

static void image_filesystems(void *b, struct runtime_call *call)
{
    send_nothing(b, call, CRI_IMAGE_FS_INFO, CALL_MS);
}

const struct runtime_ops runtime_cri = {
    .kind = "cri",
    .open = cri_open,
    .close = cri_close,
    .cancel = cancel,
    .version = version,
    .status = status,
    .run_sandbox = run_sandbox,
    .stop_sandbox = stop_sandbox,
    .remove_sandbox = remove_sandbox,
    .get_sandbox = get_sandbox,
    .list_sandboxes = list_sandboxes,
    .create_container = create_container,
    .start_container = start_container,
    .stop_container = stop_container,
    .remove_container = remove_container,
    .get_container = get_container,
    .list_containers = list_containers,
    .update_resources = update_resources,
    .reopen_log = reopen_log,
    .exec_sync = exec_sync,
    .exec = exec,
    .attach = attach,
    .port_forward = port_forward,
    .list_images = list_images,
    .get_image = get_image,
    .pull_image = pull_image,
    .remove_image = remove_image,
    .image_filesystems = image_filesystems,
};
