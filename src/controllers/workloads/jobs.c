/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/jobs.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/job.h"

#define STRATEGIC "application/strategic-merge-patch+json"

/* Keys of the queue: "NAMESPACE/NAME", a Job; "p NAMESPACE/NAME", a pod with the finalizer whose
 * Job may be gone. */
#define KEY_POD "p "

struct jobs {
    struct keeper keeper;
};

/* ---- pods without a Job ---- */

static const struct json *find_pod(const struct jobs *c, const struct work *w)
{
    return informer_get(c->keeper.children[0], work_key(w) + strlen(KEY_POD));
}

static void released(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "remove the finalizer of a pod whose Job is gone", text);
    } else {
        work_done(w);
    }
}

static void release(struct work *w, const struct json *pod)
{
    CLEANUP_FREE char *path = api_path("v1", "pods", obj_namespace(pod), obj_name(pod), NULL);
    CLEANUP(json_free) struct json *patch = job_release_patch(pod);
    work_request_as(w, "PATCH", path, NULL, STRATEGIC, patch, released);
}

static void job_read(void *ctx, struct work *w, int error, const char *text, struct json *job)
{
    struct jobs *c = ctx;
    const struct json *pod = find_pod(c, w), *ref = pod ? obj_controller(pod) : NULL;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the Job of a pod", text);
    } else if (!pod || !ref || (error == 0 && streq(obj_uid(job), json_get_text(ref, "uid")))) {
        work_done(w);
    } else {
        release(w, pod);
    }
}

/* The copy alone never decides that a Job is gone: a pod without the finalizer is not counted. */
static void look_at_pod(struct jobs *c, struct work *w)
{
    const struct json *pod = find_pod(c, w), *ref = pod ? obj_controller(pod) : NULL;
    if (!pod || !obj_has_finalizer(pod, JOB_FINALIZER)) {
        work_done(w);
    } else if (!ref || !obj_ref_is(ref, workload_jobs.group, workload_jobs.kind)) {
        release(w, pod);
    } else {
        CLEANUP_FREE char *path = api_path(workload_jobs.api_version, workload_jobs.plural,
                                           obj_namespace(pod), json_get_text(ref, "name"), NULL);
        work_request(w, "GET", path, NULL, job_read);
    }
}

/* ---- one Job ---- */

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct jobs *c = ctx;
    struct owned_list pods = {0};
    if (str_has_prefix(key, KEY_POD)) {
        look_at_pod(c, w);
        return;
    }
    const struct json *job = keeper_begin(&c->keeper, w, key);
    if (!job) {
        return;
    }
    if (job_is_foreign(job)) {
        work_done(w);
        return;
    }
    keeper_find(&c->keeper, 0, job, &pods);
    CLEANUP_PLAN struct workload_plan plan = {0};
    job_plan(job, pods.list, pods.n, time_wall_ms(), &plan);
    engine_run(&c->keeper.engine, w, job, &plan);
    free(pods.list);
}

/* ---- events ---- */

static void add_pod(struct jobs *c, const char *key)
{
    CLEANUP_FREE char *full = xasprintf(KEY_POD "%s", key);
    workqueue_add(c->keeper.engine.env.queue, full);
}

/* The Job that the pod names is not in the copy. */
static bool is_without_job(const struct jobs *c, const struct json *pod)
{
    const struct json *ref = obj_controller(pod);
    CLEANUP_FREE char *key = owned_owner_key(&c->keeper.of_owner[0], pod);
    const struct json *job = key ? informer_get(c->keeper.owners, key) : NULL;
    return !job || !streq(obj_uid(job), json_get_text(ref, "uid"));
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    struct jobs *c = ctx;
    keeper_child_changed(ctx, key, old, pod);
    if (obj_has_finalizer(pod, JOB_FINALIZER) && is_without_job(c, pod)) {
        add_pod(c, key);
    }
}

static void job_deleted(void *ctx, const char *key, const struct json *job)
{
    struct jobs *c = ctx;
    struct owned_list pods = {0};
    keeper_owner_deleted(ctx, key, job);
    owned_find(&c->keeper.of_owner[0], c->keeper.children[0], job, false, &pods);
    for (size_t i = 0; i < pods.n; i++) {
        CLEANUP_FREE char *pod =
            xasprintf("%s/%s", obj_namespace(pods.list[i].obj), obj_name(pods.list[i].obj));
        add_pod(c, pod);
    }
    free(pods.list);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_pods};
    struct jobs *c = NEW(struct jobs);
    keeper_init(&c->keeper, env, &workload_jobs, children);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct jobs *c = state;
    keeper_done(&c->keeper);
    free(c);
}

static const struct controller_watch watches[] = {
    {.api_version = "batch/v1",
     .plural = "jobs",
     .informer = CONTROLLER_INFORMER(struct jobs, keeper.owners),
     .changed = keeper_owner_changed,
     .deleted = job_deleted},
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct jobs, keeper.children[0]),
     .changed = pod_changed,
     .deleted = keeper_child_deleted},
    KEEPER_QUOTAS,
};

const struct controller jobs_controller = {
    .name = "jobs",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .account = "job-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};

/* ---- Jobs that ended some time ago ---- */

struct ttl {
    struct informer *jobs;
};

static void deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "delete a Job that ended some time ago", text);
    } else {
        work_done(w);
    }
}

static void look_at_age(void *ctx, struct work *w, const char *key)
{
    struct ttl *c = ctx;
    const struct json *job = informer_get(c->jobs, key);
    int64_t ttl_s = json_get_int_or(json_path(job, "spec", "ttlSecondsAfterFinished", NULL), -1);
    int64_t since = 0, now = time_wall_ms();
    if (!job || ttl_s < 0 || obj_is_terminating(job) || !job_is_finished(job, &since) || !since) {
        work_done(w);
        return;
    }
    if (since + ttl_s * 1000 > now) {
        work_wait(w, (uint64_t) (since + ttl_s * 1000 - now));
        return;
    }
    CLEANUP_FREE char *path = api_path(workload_jobs.api_version, workload_jobs.plural,
                                       obj_namespace(job), obj_name(job), NULL);
    CLEANUP(json_free) struct json *options = json_object();
    struct json *conditions = json_ensure_object(options, "preconditions");
    json_set_string(conditions, "uid", obj_uid(job));
    json_set_string(conditions, "resourceVersion",
                    json_path_string(job, "metadata", "resourceVersion", NULL));
    json_set_string(options, "propagationPolicy", "Foreground");
    work_request(w, "DELETE", path, options, deleted);
}

static int start_ttl(const struct controller_env *env, const void *config, void **ret,
                     struct err *e)
{
    *ret = NEW(struct ttl);
    return 0;
}

static const struct controller_watch ttl_watches[] = {
    {.api_version = "batch/v1",
     .plural = "jobs",
     .informer = CONTROLLER_INFORMER(struct ttl, jobs)},
};

const struct controller job_ttl_controller = {
    .name = "job_ttl",
    .watches = ttl_watches,
    .n_watches = ARRAY_SIZE(ttl_watches),
    .parallel = 4,
    .account = "ttl-after-finished-controller",
    .start = start_ttl,
    .reconcile = look_at_age,
    .stop = free,
};
