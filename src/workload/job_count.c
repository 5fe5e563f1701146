/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the pods of Jobs that have ended, each once. */
#include "api/obj.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/job_priv.h"

#define MAX_UNCOUNTED 500 /* uids in the status. */

struct tally {
    struct job *j;
    struct json *succeeded, *failed; /* The lists of uncounted uids. */
    struct smap held;                /* uid to the pod, of pods with the finalizer. */
    int64_t n_succeeded, n_failed;   /* Counted. */
    bool more;
};

static void release_later(struct job *j, const struct json *pod)
{
    (void) workload_plan_add(j->plan, WORKLOAD_AFTER_STATUS, WORKLOAD_PATCH, &workload_pods,
                             obj_name(pod), job_release_patch(pod));
}

struct json *job_release_patch(const struct json *pod)
{
    struct json *patch = json_object(), *meta = json_ensure_object(patch, "metadata");
    json_set_string(meta, "uid", obj_uid(pod));
    json_append(json_ensure_array(meta, "$deleteFromPrimitiveList/finalizers"),
                json_string(JOB_FINALIZER));
    return patch;
}

/* uids whose pods have lost the finalizer become numbers. */
static void count_released(struct tally *t, const struct json *list, struct json *kept,
                           int64_t *counter)
{
    const struct json *uid;
    JSON_FOREACH (uid, list) {
        const char *s = json_get_string(uid);
        if (s && smap_get(&t->held, s)) {
            json_append(kept, json_clone(uid));
            release_later(t->j, smap_get(&t->held, s));
            (void) smap_remove(&t->held, s); /* It is in a list. */
        } else {
            ++*counter;
        }
    }
}

static bool is_full(const struct tally *t)
{
    return json_count(t->succeeded) + json_count(t->failed) >= MAX_UNCOUNTED;
}

static void count_success(struct tally *t, const struct json *pod)
{
    int64_t index = job_index_of(t->j, pod);
    if (!t->j->indexed) {
        json_append(t->succeeded, json_string(obj_uid(pod)));
    } else if (index >= 0) {
        t->j->done.has[index] = 1; /* A second one for the index changes nothing. */
        t->j->lost.has[index] = 0;
    }
    release_later(t->j, pod);
}

static void count_failure(struct tally *t, const struct workload_child *pod)
{
    enum job_action action = job_failure_action(t->j, pod->obj, NULL);
    int64_t index = job_index_of(t->j, pod->obj);
    /* What the suspension has ended did not fail. */
    bool suspension = t->j->suspended && obj_is_terminating(pod->obj);
    if (action != JOB_IGNORE && !suspension) {
        json_append(t->failed, json_string(obj_uid(pod->obj)));
    }
    if (t->j->index_limit >= 0 && index >= 0 && !t->j->done.has[index] &&
        (action == JOB_FAIL_INDEX || job_failures_of(t->j, index) > t->j->index_limit)) {
        t->j->lost.has[index] = 1;
    }
    release_later(t->j, pod->obj);
}

static void count_new(struct tally *t)
{
    for (size_t i = 0; i < t->j->n; i++) {
        const struct workload_child *pod = &t->j->pods[i];
        bool ok = workload_pod_has_phase(pod->obj, "Succeeded");
        if (!smap_get(&t->held, obj_uid(pod->obj)) || (!ok && !job_pod_failed(t->j, pod))) {
            continue;
        }
        if (is_full(t)) {
            t->more = true;
        } else if (ok) {
            count_success(t, pod->obj);
        } else {
            count_failure(t, pod);
        }
    }
}

static void count_states(struct job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        const struct workload_child *pod = &j->pods[i];
        bool ended = workload_pod_has_phase(pod->obj, "Succeeded") ||
                     workload_pod_has_phase(pod->obj, "Failed");
        j->active += workload_pod_is_active(pod);
        j->ready += workload_pod_is_active(pod) && workload_pod_is_ready(pod->obj);
        j->terminating += pod->going && !ended;
    }
}

static void set_or_remove(struct json *status, const char *key, int64_t n)
{
    if (n) {
        json_set_int(status, key, n);
    } else {
        (void) json_remove(status, key);
    }
}

static void write_indexes(struct json *status, const char *key, const struct indexes *set,
                          bool always)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    indexes_write(set, &text);
    if (text.size || always) {
        json_set_string(status, key, strbuf_cstr(&text));
    } else {
        (void) json_remove(status, key);
    }
}

static void write_numbers(const struct job *j, struct tally *t)
{
    struct json *status = json_ensure_object(j->o, "status"), *lists = json_object();
    set_or_remove(status, "active", j->active);
    json_set_int(status, "ready", j->ready);
    json_set_int(status, "terminating", j->terminating);
    set_or_remove(status, "succeeded", j->indexed ? j->succeeded : t->n_succeeded);
    set_or_remove(status, "failed", t->n_failed);
    if (j->indexed) {
        write_indexes(status, "completedIndexes", &j->done, false);
    }
    if (j->index_limit >= 0) {
        write_indexes(status, "failedIndexes", &j->lost, true);
    }
    if (json_count(t->succeeded)) {
        json_set(lists, "succeeded", TAKE(t->succeeded));
    }
    if (json_count(t->failed)) {
        json_set(lists, "failed", TAKE(t->failed));
    }
    json_set(status, "uncountedTerminatedPods", lists);
}

bool job_count(struct job *j)
{
    const struct json *status = json_get(j->job, "status");
    const struct json *lists = json_get(status, "uncountedTerminatedPods");
    struct tally t = {.j = j,
                      .succeeded = json_array(),
                      .failed = json_array(),
                      .n_succeeded = json_get_int_or(json_get(status, "succeeded"), 0),
                      .n_failed = json_get_int_or(json_get(status, "failed"), 0)};
    smap_init(&t.held, NULL);
    for (size_t i = 0; i < j->n; i++) {
        if (obj_has_finalizer(j->pods[i].obj, JOB_FINALIZER)) {
            smap_set(&t.held, obj_uid(j->pods[i].obj), (void *) j->pods[i].obj);
        }
    }
    count_released(&t, json_get(lists, "succeeded"), t.succeeded, &t.n_succeeded);
    count_released(&t, json_get(lists, "failed"), t.failed, &t.n_failed);
    count_new(&t);
    count_states(j);
    size_t waiting = json_count(t.succeeded) + json_count(t.failed);
    j->succeeded = j->indexed ? (int64_t) indexes_count(&j->done)
                              : t.n_succeeded + (int64_t) json_count(t.succeeded);
    j->failed = t.n_failed + (int64_t) json_count(t.failed);
    write_numbers(j, &t);
    json_free(t.succeeded);
    json_free(t.failed);
    smap_done(&t.held);
    return !waiting && !t.more;
}
