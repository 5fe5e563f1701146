/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a container: its image, its mounts, its environment, then the runtime's calls and the
 * postStart hook. */
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/pods/workers_priv.h"
#include "net/loop/process.h"

LOG_MODULE("pods");

#define RETRY_MS 10000
#define EARLY_RETRY_MS 1000
#define SECRETS_MAX 64
#define MESSAGE_MAX 4096

static void start_fail(struct op *op, const char *reason, const char *message, uint64_t retry_ms)
{
    struct worker *w = op->worker;
    struct observed_fact *f = pod_observed_fact(&w->o, op->name);
    bool news = !streq_null(f->wait_reason, reason) || !streq_null(f->wait_message, message);
    CLEANUP_FREE char *text = xstrndup(message, MESSAGE_MAX);
    observed_fact_set_wait(f, reason, text);
    f->retry_ns = workers_now_ns() + (int64_t) retry_ms * NS_PER_MS;
    w->pods->stats.action_errors++;
    if (streq(reason, "ImagePullBackOff")) {
        worker_event(w, EVENT_NORMAL, "BackOff", "%s", text);
    } else if (str_has_suffix(reason, "ConfigError") || str_has_suffix(reason, "ContainerError")) {
        worker_event(w, EVENT_WARNING, "Failed", "Error: %s", text);
    } else {
        worker_event(w, EVENT_WARNING,
                     streq(reason, "InvalidImageName") ? "InspectFailed" : "Failed",
                     "Error: %s: %s", reason, text);
    }
    if (news) {
        log_info("a container cannot be started", "pod=%s/%s container=%s reason=%s error=\"%s\"",
                 w->ns, w->name, op->name, reason, text);
    }
    op_end(op);
}

/* ---- the postStart hook ---- */

static void post_start_done(void *ctx, enum action_outcome outcome, const char *text)
{
    struct op *op = ctx;
    struct worker *w = op->worker;
    struct observed_fact *f = pod_observed_fact(&w->o, op->name);
    if (streq_null(f->id, op->id)) {
        f->hook = false;
        if (!action_succeeded(outcome)) {
            worker_event(w, EVENT_WARNING, "FailedPostStartHook", "PostStartHook failed: %s", text);
            free(f->kill_message);
            f->kill_message = xstrdup("FailedPostStartHook");
        }
    }
    op_end(op);
}

static void container_started(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    struct worker *w = op->worker;
    struct observed_fact *f = pod_observed_fact(&w->o, op->name);
    op->call = NULL;
    if (error < 0) {
        start_fail(op, "RunContainerError", text, RETRY_MS);
        return;
    }
    worker_event(w, EVENT_NORMAL, "Started", "Started container %s", op->name);
    w->pods->stats.starts++;
    w->pods->stats.restarts += op->restarts > 0;
    observed_fact_set_wait(f, NULL, NULL);
    f->retry_ns = 0;
    f->again = false;
    observed_fact_set_id(f, op->id);
    const struct json *hook = json_path(op->container, "lifecycle", "postStart", NULL);
    if (!hook || w->work != POD_SYNC) {
        op_end(op);
        return;
    }
    const struct observed_sandbox *s = pod_observed_sandbox(&w->o);
    struct action_target t = {.container = op->container,
                              .container_id = op->id,
                              .ip = pod_uses_host_network(op->pod) ? w->o.host_ip
                                    : s                            ? s->ip
                                                                   : NULL};
    f->hook = true;
    op->stage = STAGE_HOOK;
    op->action =
        action_begin(w->pods->c.loop, w->pods->c.runtime, hook, &t, 0, post_start_done, op);
    worker_dirty(w);
}

static void begin_start(struct op *op)
{
    op->stage = STAGE_START;
    op->call = runtime_start_container(op->worker->pods->c.runtime, op->id, container_started, op);
}

static void container_created(void *ctx, int error, const char *text, const char *id)
{
    struct op *op = ctx;
    struct worker *w = op->worker;
    op->call = NULL;
    if (error < 0) {
        start_fail(op, "CreateContainerError", text, RETRY_MS);
        return;
    }
    op->id = xstrdup(id);
    smap_set(&w->pods->ids, id, xstrdup(w->uid));
    worker_event(w, EVENT_NORMAL, "Created", "Created container: %s", op->name);
    begin_start(op);
}

/* ---- what it is made of ---- */

static struct runtime_texts texts_of(const struct json *list, struct arena *a)
{
    const char **v = ARENA_NEW(a, const char *, json_count(list));
    for (size_t i = 0; i < json_count(list); i++) {
        const char *s = json_get_string(json_at(list, i));
        v[i] = arena_strdup(a, s ? s : "");
    }
    return (struct runtime_texts){v, json_count(list)};
}

static int expand(struct op *op, const char *key, struct runtime_texts *ret, struct err *e)
{
    CLEANUP(json_free) struct json *list = NULL;
    int r = pod_env_expand_list(json_get(op->container, key), pod_env_pairs(&op->env), &list, e);
    if (r == 0) {
        *ret = texts_of(list, &op->arena);
    }
    return r;
}

/* The mounts of the volumes, and the file of the last message. */
static struct runtime_mount *all_mounts(struct op *op, const struct runtime_mount *mounts, size_t n,
                                        size_t *ret_n)
{
    struct arena *a = &op->arena;
    struct runtime_mount *v = ARENA_NEW(a, struct runtime_mount, n + 1);
    const char *path = json_get_text(op->container, "terminationMessagePath");
    char *file = message_make(op->worker, op->name, op->restarts, a);
    bool covered = false;
    path = *path ? path : POD_LOG_DEFAULT_MESSAGE_PATH;
    for (size_t i = 0; i < n; i++) {
        v[i] = mounts[i];
        v[i].container_path = arena_strdup(a, mounts[i].container_path);
        v[i].host_path = arena_strdup(a, mounts[i].host_path);
        covered = covered || streq(v[i].container_path, path);
    }
    *ret_n = n;
    if (file && !covered) {
        v[(*ret_n)++] = (struct runtime_mount){.container_path = path, .host_path = file};
    }
    return v;
}

/* Makes the folder of the container's logs: containerd makes it itself, CRI-O's conmon does not. */
static int make_log_folder(struct op *op, struct err *e)
{
    const char *slash = strrchr(op->spec.log_path, '/');
    int size = slash ? (int) (slash - op->spec.log_path) : 0;
    const char *path =
        arena_printf(&op->arena, "%s/%.*s", op->sandbox.log_directory, size, op->spec.log_path);
    return dir_make(path, 0755, e);
}

/* The devices of the volumes, in the arena. */
static struct runtime_device *all_devices(struct op *op, const struct volumes_mounts *m)
{
    struct runtime_device *v = ARENA_NEW(&op->arena, struct runtime_device, m->n_devices + 1);
    for (size_t i = 0; i < m->n_devices; i++) {
        v[i] = m->devices[i];
        v[i].container_path = arena_strdup(&op->arena, m->devices[i].container_path);
        v[i].host_path = arena_strdup(&op->arena, m->devices[i].host_path);
    }
    return v;
}

static void create(struct op *op, const struct volumes_mounts *m)
{
    struct worker *w = op->worker;
    struct err e = {0};
    struct pod_container_input in = {
        .container = op->container,
        .restarts = op->restarts,
        .level = op->level,
        .image_ref = op->image_ref,
        .env = pod_env_pairs(&op->env),
        .target_id = op->target_id,
    };
    in.mounts = all_mounts(op, m->mounts, m->n_mounts, &in.n_mounts);
    in.devices = all_devices(op, m);
    in.n_devices = m->n_devices;
    const struct observed_sandbox *s = pod_observed_sandbox(&w->o);
    if (!s || !streq(s->id, op->sandbox_id)) {
        op_end(op); /* The sandbox is another one by now. */
        return;
    }
    if (expand(op, "command", &in.command, &e) < 0 || expand(op, "args", &in.args, &e) < 0 ||
        pod_sandbox_spec(op->pod, s->attempt, w->pods->c.node, &op->arena, &op->sandbox, &e) < 0 ||
        pod_container_spec(op->pod, &in, w->pods->c.node, &op->arena, &op->spec, &e) < 0 ||
        make_log_folder(op, &e) < 0) {
        start_fail(op, "CreateContainerConfigError", e.text, RETRY_MS);
        return;
    }
    op->stage = STAGE_CREATE;
    op->call = runtime_create_container(w->pods->c.runtime, op->sandbox_id, &op->spec, &op->sandbox,
                                        container_created, op);
}

static void mounts_ready(void *ctx, int error, const char *text, const struct volumes_mounts *m)
{
    struct op *op = ctx;
    if (op->dead) {
        op->worker = NULL;
        op_free(op);
        return;
    }
    op->stage = STAGE_CREATE;
    if (error < 0) {
        start_fail(op, "CreateContainerConfigError", text ? text : "its mounts cannot be made",
                   RETRY_MS);
        return;
    }
    create(op, m);
}

static int find_object(void *ctx, enum pod_object_kind kind, const char *namespace,
                       const char *name, const struct json **ret)
{
    struct worker *w = ctx;
    return w->pods->c.objects ? pod_objects_get(w->pods->c.objects, kind, namespace, name, ret)
                              : -ENOENT;
}

static void report_skipped(struct op *op)
{
    const struct json *text;
    JSON_FOREACH (text, op->env.skipped) {
        worker_event(op->worker, EVENT_WARNING, "InvalidEnvironmentVariableNames", "%s",
                     json_get_string(text));
    }
}

static void make_environment(struct op *op)
{
    struct worker *w = op->worker;
    struct workers *p = w->pods;
    struct err e = {0};
    const struct observed_sandbox *s = pod_observed_sandbox(&w->o);
    const char *ip = pod_uses_host_network(op->pod) ? w->o.host_ip : s ? s->ip : NULL;
    struct pod_facts facts = {
        .find_object = find_object,
        .ctx = w,
        .services = p->ops->services(p->ctx, w->is_static),
        .allocatable = p->ops->allocatable(p->ctx),
        .host_ip = w->o.host_ip,
        .pod_ips = {&ip, ip ? 1 : 0},
        .cluster_domain = p->c.node->cluster_domain,
    };
    int r = facts.services ? pod_env_make(op->pod, op->container, &facts, &op->env, &e)
                           : err_set(&e, -EAGAIN,
                                     "services have not yet been read at least once, "
                                     "cannot construct envvars");
    if (r < 0) {
        start_fail(op, "CreateContainerConfigError", e.text,
                   r == -EAGAIN ? EARLY_RETRY_MS : RETRY_MS);
        return;
    }
    report_skipped(op);
    if (!p->c.volumes) {
        create(op, &(struct volumes_mounts){0});
        return;
    }
    struct volumes_container c = {
        .container = op->container, .env = pod_env_pairs(&op->env), .pod_ips = {&ip, ip ? 1 : 0}};
    op->stage = STAGE_MOUNTS;
    volumes_mount(p->c.volumes, w->uid, &c, mounts_ready, op);
}

/* ---- the image ---- */

static void pulling(void *ctx, const char *image)
{
    struct op *op = ctx;
    worker_event(op->worker, EVENT_NORMAL, "Pulling", "Pulling image \"%s\"", image);
}

static void image_ready(void *ctx, const struct image_result *r)
{
    struct op *op = ctx;
    struct worker *w = op->worker;
    const char *image = json_get_text(op->container, "image");
    struct err e = {0};
    op->image = NULL;
    if (r->reason) {
        if (streq(r->reason, "ErrImagePull")) {
            worker_event(w, EVENT_WARNING, "Failed", "Failed to pull image \"%s\": %s", image,
                         r->message);
        }
        start_fail(op, r->reason, r->message, r->retry_ms);
        return;
    }
    if (r->pulled) {
        worker_event(w, EVENT_NORMAL, "Pulled", "Successfully pulled image \"%s\" in %llums", image,
                     (unsigned long long) r->pull_ms);
    } else {
        worker_event(w, EVENT_NORMAL, "Pulled", "Container image \"%s\" already present on machine",
                     image);
    }
    if (pod_check_non_root(op->pod, op->container, r->image, &e) < 0) {
        start_fail(op, "CreateContainerConfigError", e.text, RETRY_MS);
        return;
    }
    op->image_ref = xstrdup(r->ref);
    make_environment(op);
}

static void find_image(struct op *op)
{
    struct worker *w = op->worker;
    const struct json *secrets[SECRETS_MAX], *item;
    struct image_want want = {.image = json_get_text(op->container, "image"),
                              .policy = json_get_text(op->container, "imagePullPolicy"),
                              .secrets = secrets};
    JSON_FOREACH (item, json_path(op->pod, "spec", "imagePullSecrets", NULL)) {
        const char *name = json_get_text(item, "name");
        const struct json *secret = NULL;
        if (w->pods->c.objects && want.n_secrets < SECRETS_MAX &&
            pod_objects_get(w->pods->c.objects, POD_SECRET, w->ns, name, &secret) == 0) {
            secrets[want.n_secrets++] = secret;
        }
    }
    op->stage = STAGE_IMAGE;
    op->image = images_get(w->pods->images, &want, pulling, image_ready, op);
}

/* The container that an ephemeral one looks into; NULL: none runs. */
static const char *find_target(const struct worker *w, const struct json *container)
{
    const char *name = json_get_text(container, "targetContainerName");
    const struct observed_container *c = *name ? pod_observed_newest(&w->o, name) : NULL;
    return c && c->state == RUNTIME_RUNNING ? c->id : NULL;
}

void op_start(struct worker *w, const struct pod_start *s, const char *sandbox_id)
{
    struct op *op = op_new(w, OP_START, s->name, s->created_id);
    op->pod = json_clone(w->pod);
    op->container = pod_container_named(op->pod, op->name, &op->container_kind);
    op->restarts = s->restarts;
    op->level = s->level;
    op->sandbox_id = xstrdup(sandbox_id);
    op->target_id = arena_strdup(&op->arena, find_target(w, op->container));
    if (op->id) {
        begin_start(op);
    } else {
        find_image(op);
    }
}

void op_start_abandon(struct op *op)
{
    struct worker *w = op->worker;
    switch (op->stage) {
    case STAGE_IMAGE:
        op_free(op);
        break;
    case STAGE_MOUNTS:
        /* The volumes answer in any case; the operation waits for that without its worker. */
        op->dead = true;
        list_remove(&op->node);
        pod_observed_fact(&w->o, op->name)->busy = false;
        break;
    case STAGE_HOOK:
        pod_observed_fact(&w->o, op->name)->hook = false;
        op_free(op);
        break;
    case STAGE_CREATE:
    case STAGE_START:
    case STAGE_STOP:
        break;
    }
}
