/* SPDX-License-Identifier: Apache-2.0 */
/* tenet deployer: does one rollout of a DeploymentConfig; the program of deployer pods. */
#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "controllers/workloads/rollouts.h"

#include <signal.h>
#include <stdio.h>

#define AGENT "tenet-deployer"
#define LOG_LINGER_MS 10000 /* The rest of the log of a hook that has ended. */
#define FLUSH_MS 20
#define FLUSH_MAX 100

static const char help[] =
    "usage: tenet deployer [--until CONDITION] [OPTIONS]\n"
    "\n"
    "Does the rollout of a DeploymentConfig that the ReplicationController --deployment stands "
    "for:\n"
    "takes old pods down and brings new ones up by its strategy, and runs its hooks. It is the\n"
    "program of deployer pods, and uses their service account unless it is given a kubeconfig.\n"
    "All that it has reached is in the ReplicationControllers and in the pods of hooks, so that\n"
    "another one goes on where it was stopped.\n";

enum { OPT_DEPLOYMENT = OPT_FIRST_FREE, OPT_UNTIL };

static const struct command_option options[] = {
    {"deployment", OPT_DEPLOYMENT, "NAME",
     "the ReplicationController; default: $OPENSHIFT_DEPLOYMENT_NAME"},
    {"namespace", 'n', "NAMESPACE", "its project; default: $OPENSHIFT_DEPLOYMENT_NAMESPACE",
     COMPLETE_NAMESPACE},
    {"until", OPT_UNTIL, "CONDITION",
     "stop before the end: start (older rollouts have no pods), pre, mid (after the hook), or a "
     "percentage of available pods",
     "start pre mid 0% 50% 100%",
     .detail = "The command can be run again to go on; hooks are run once."},
    {"kubeconfig", OPT_KUBECONFIG, "FILE", "how to reach the API; default: the pod's account",
     COMPLETE_FILE},
    {"server", 's', "URL", "the API server, instead of a kubeconfig"},
    {0},
};

/* The log of a hook's pod, which is printed. */
struct hook_log {
    struct deployer *deployer;
    struct http_call *call; /* NULL: it has ended, or not begun. */
    bool begun;
    int64_t ended_ms; /* When the pod was seen to have ended; 0: not yet. */
};

struct deployer {
    struct loop *loop;
    struct api_client *client;
    struct recorder *recorder;
    struct workqueue *queue;
    struct rollouts rollouts;
    char *key;
    const char *until;
    struct deploy_memory memory;
    struct hook_log logs[N_HOOKS];
    enum deploy_state state;
    char *why; /* Why it has failed, or what it has reached. */
    unsigned flushes;
    bool signalled;
};

/* ---- logs of hooks ---- */

static void log_data(void *ctx, const char *p, size_t size)
{
    (void) fwrite(p, 1, size, stdout);
    (void) fflush(stdout);
}

static void log_ended(void *ctx, const struct http_result *r)
{
    struct hook_log *l = ctx;
    l->call = NULL;
    if (r->error || r->status != 200) {
        printf("warning: Unable to retrieve hook logs: %s\n",
               r->error ? r->error_text : "the server refuses them");
    }
    workqueue_add(l->deployer->queue, l->deployer->key);
}

static void begin_log(struct deployer *d, struct hook_log *l, const struct json *pod)
{
    static const struct http_stream_ops ops = {.data = log_data, .ended = log_ended};
    CLEANUP_FREE char *path = api_path("v1", "pods", obj_namespace(pod), obj_name(pod), "log");
    CLEANUP_FREE char *follow = xasprintf("%s?follow=true&container=lifecycle", path);
    l->begun = true;
    l->deployer = d;
    l->call = http_stream(api_client_http(d->client), follow, NULL, 0, &ops, l);
}

static bool has_ended(const struct json *pod)
{
    return workload_pod_has_phase(pod, "Succeeded") || workload_pod_has_phase(pod, "Failed");
}

/* Prints the logs of hooks; whether the rest of one is waited for. */
static bool follow_logs(struct deployer *d, const struct json *rc, const struct rollout_pods *pods,
                        int64_t now_ms)
{
    bool waits = false;
    for (size_t i = 0; i < N_HOOKS; i++) {
        struct hook_log *l = &d->logs[i];
        const struct json *pod = pods->hooks[i].obj;
        if (!pods->has_hook[i] || !deployer_owns(rc, pod)) {
            continue;
        }
        if (!l->begun && (has_ended(pod) || workload_pod_has_phase(pod, "Running"))) {
            begin_log(d, l, pod);
        }
        if (!l->call || !has_ended(pod)) {
            continue;
        }
        l->ended_ms = l->ended_ms ? l->ended_ms : now_ms;
        if (now_ms - l->ended_ms < LOG_LINGER_MS) {
            waits = true;
        } else {
            http_call_cancel(TAKE(l->call));
        }
    }
    return waits;
}

/* ---- one step ---- */

static void refused(void *ctx, const struct json *rc, const struct workload_write *w, int error,
                    const char *why)
{
    struct deployer *d = ctx;
    deploy_refused(&d->memory, w, error, why);
}

static void end(struct deployer *d, enum deploy_state state, char *why)
{
    d->state = state;
    d->why = why;
    workqueue_add(d->queue, d->key); /* After the last writes. */
}

static void finish(struct deployer *d, struct work *w)
{
    if (recorder_waiting(d->recorder) && d->flushes++ < FLUSH_MAX) {
        work_wait(w, FLUSH_MS);
        return;
    }
    work_done(w);
    loop_stop(d->loop);
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct deployer *d = ctx;
    if (d->state != DEPLOY_GOES_ON) {
        finish(d, w);
        return;
    }
    if (!engine_is_current(&d->rollouts.engine, w)) {
        return;
    }
    const struct json *rc = informer_get(d->rollouts.sets, key);
    if (!rc || rollout_is_cancelled(rc)) {
        end(d, DEPLOY_FAILED,
            xasprintf("deployment %s %s", key, rc ? "was cancelled" : "was deleted"));
        work_done(w);
        return;
    }
    struct rollout_pods pods;
    rollouts_find_pods(&d->rollouts, rc, &pods);
    if (follow_logs(d, rc, &pods, time_wall_ms())) {
        work_wait(w, LOG_LINGER_MS);
        return;
    }
    CLEANUP_PLAN struct workload_plan plan = {0};
    CLEANUP_STRBUF struct strbuf lines = STRBUF_INIT;
    char *why = NULL;
    deployer_set_about(rc, &plan);
    enum deploy_state s =
        rollouts_deploy(&d->rollouts, rc, &pods, d->until, &d->memory, &plan, &lines, &why);
    (void) fputs(strbuf_cstr(&lines), stdout);
    (void) fflush(stdout);
    plan.refused = refused;
    plan.refused_ctx = d;
    if (s != DEPLOY_GOES_ON) {
        end(d, s, why);
    }
    engine_run(&d->rollouts.engine, w, rc, &plan);
}

/* ---- events ---- */

static void set_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct deployer *d = ctx;
    rollouts_set_changed(&d->rollouts, key, old, obj);
    workqueue_add(d->queue, d->key);
}

static void set_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct deployer *d = ctx;
    rollouts_set_changed(&d->rollouts, key, obj, NULL);
    workqueue_add(d->queue, d->key);
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct deployer *d = ctx;
    rollouts_pod_changed(&d->rollouts, key, old, obj);
    workqueue_add(d->queue, d->key);
}

static void pod_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct deployer *d = ctx;
    rollouts_pod_changed(&d->rollouts, key, obj, NULL);
    workqueue_add(d->queue, d->key);
}

static void synced(void *ctx)
{
    struct deployer *d = ctx;
    if (informer_synced(d->rollouts.sets) && informer_synced(d->rollouts.pods)) {
        workqueue_start(d->queue);
    }
}

static void on_signal(void *ctx)
{
    struct deployer *d = ctx;
    d->signalled = true;
    loop_stop(d->loop);
}

/* ---- running ---- */

/* Returns the exit status. */
static int serve(struct deployer *d, const char *ns)
{
    static const struct informer_ops sets = {
        .changed = set_changed, .deleted = set_deleted, .synced = synced};
    static const struct informer_ops pods = {
        .changed = pod_changed, .deleted = pod_deleted, .synced = synced};
    d->recorder = recorder_new(d->loop, d->client, "deployer");
    d->queue = workqueue_new(d->loop, d->client, 1, reconcile, d);
    struct controller_env env = {
        .loop = d->loop, .client = d->client, .recorder = d->recorder, .queue = d->queue};
    rollouts_init(&d->rollouts, &env);
    d->rollouts.sets =
        informer_new_in(d->client, d->loop, ns, "v1", "replicationcontrollers", NULL, &sets, d);
    d->rollouts.pods = informer_new_in(d->client, d->loop, ns, "v1", "pods", NULL, &pods, d);
    struct loop_signal *term = loop_signal_new(d->loop, SIGTERM, on_signal, d);
    struct loop_signal *interrupt = loop_signal_new(d->loop, SIGINT, on_signal, d);
    workqueue_add(d->queue, d->key);
    loop_run(d->loop);
    for (size_t i = 0; i < N_HOOKS; i++) {
        if (d->logs[i].call) {
            http_call_cancel(d->logs[i].call);
        }
    }
    d->queue = workqueue_free(d->queue);
    rollouts_done(&d->rollouts);
    informer_free(d->rollouts.sets);
    informer_free(d->rollouts.pods);
    recorder_free(d->recorder);
    loop_signal_free(term);
    loop_signal_free(interrupt);
    deploy_memory_done(&d->memory);
    if (d->signalled) {
        return session_error("the deployer was stopped; another one goes on with the rollout");
    }
    if (d->state == DEPLOY_REACHED) {
        printf("--> %s\n", d->why);
    }
    return d->state == DEPLOY_FAILED ? session_error("%s", d->why) : 0;
}

/* ---- the command line ---- */

struct deployer_options {
    const char *name, *ns, *until;
};

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char **argv, struct session *s, struct deployer_options *o)
{
    int opt;
    o->name = getenv("OPENSHIFT_DEPLOYMENT_NAME");
    o->ns = getenv("OPENSHIFT_DEPLOYMENT_NAMESPACE");
    while ((opt = command_getopt(&cmd_deployer, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_DEPLOYMENT:
            o->name = optarg;
            break;
        case 'n':
            o->ns = optarg;
            break;
        case OPT_UNTIL:
            o->until = optarg;
            break;
        case OPT_KUBECONFIG:
            s->kubeconfig = optarg;
            break;
        case 's':
            s->server = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (!o->name || !*o->name) {
        return command_usage(&cmd_deployer,
                             "--deployment or OPENSHIFT_DEPLOYMENT_NAME is required");
    }
    if (!o->ns || !*o->ns) {
        return command_usage(&cmd_deployer,
                             "--namespace or OPENSHIFT_DEPLOYMENT_NAMESPACE is required");
    }
    return command_expect_end(&cmd_deployer, argc, argv);
}

/* Opens the session, as the account of the pod unless another one is given. */
static int open_api(struct session *s)
{
    struct kubeconfig k = {0};
    struct err e = {0};
    if (s->kubeconfig || s->server) {
        return session_open(s);
    }
    if (kubeconfig_of_pod(&k, &e) < 0) {
        return session_error("%s", e.text);
    }
    s->loop = loop_new();
    int r = api_client_with(s->loop, &k, AGENT, &s->client, &e);
    kubeconfig_done(&k);
    return r < 0 ? session_error("%s", e.text) : 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    struct deployer_options o = {0};
    struct err e = {0};
    optind = 0;
    int status = parse_options(argc, argv, &s, &o);
    if (status >= 0 || (status = open_api(&s)) != 0) {
        return status;
    }
    CLEANUP_FREE char *path = api_path("v1", "replicationcontrollers", o.ns, o.name, NULL);
    if (api_request_sync(s.client, "GET", path, NULL, NULL, NULL, NULL, &e) < 0) {
        return session_error("couldn't get deployment %s: %s", o.name, e.text);
    }
    struct deployer d = {.loop = s.loop,
                         .client = s.client,
                         .key = xasprintf("%s/%s", o.ns, o.name),
                         .until = o.until};
    status = serve(&d, o.ns);
    free(d.key);
    free(d.why);
    return status;
}

const struct command cmd_deployer = {
    .name = "deployer",
    .summary = "do a rollout of a DeploymentConfig, as deployer pods do",
    .help = help,
    .notes =
        "Exit status: 0 the rollout is complete, or has reached --until; 1 it has failed; 2 wrong "
        "usage.\n",
    .options = options,
    .run = run,
};
