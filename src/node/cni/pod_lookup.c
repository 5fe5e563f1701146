/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cni/pod_lookup.h"

#include "base/log.h"
#include "base/mem.h"
#include "client/objects.h"

LOG_MODULE("pods");

#define WAIT_MS 2000

struct lookup {
    struct api_call *call;
    struct loop_timer *timer;
    char *name; /* "PROJECT/POD" */
    pods_wants_fn *fn;
    void *ctx;
};

static void finish(struct lookup *l, int error, const char *text, struct cni_runtime *wants)
{
    l->fn(l->ctx, error, text, wants);
    cni_runtime_done(wants);
    loop_timer_free(l->timer);
    free(l->name);
    free(l);
}

static void unknown(struct lookup *l, const char *reason)
{
    static struct log_limit limit;
    struct cni_runtime none = {0};
    log_limited(&limit, LOG_WARN, "host ports and bandwidth of a pod are not known, it gets none",
                "pod=%s reason=\"%s\"", l->name, reason);
    finish(l, 0, "", &none);
}

static void answered(void *ctx, int error, const char *text, struct json *obj)
{
    struct lookup *l = ctx;
    struct cni_runtime wants = {0};
    struct err e = {0};
    /* The API server answers "forbidden" where a node may not see the pod: the pod is not this
     * node's. */
    if (error < 0 && error != -ENOENT && error != -EACCES) {
        unknown(l, text);
        return;
    }
    int r = error == 0 ? objects_parse_pod_runtime(obj, &wants, &e) : 0;
    finish(l, r < 0 ? -EINVAL : 0, e.text, &wants);
}

static void timed_out(void *ctx)
{
    struct lookup *l = ctx;
    api_call_cancel(l->call);
    unknown(l, "the master does not answer");
}

void pod_lookup(struct loop *l, struct api_client *client, const char *project, const char *pod,
                pods_wants_fn *fn, void *ctx)
{
    struct lookup *k = NEW(struct lookup);
    CLEANUP_FREE char *path = api_path("v1", "pods", project, pod, NULL);
    k->name = xasprintf("%s/%s", project, pod);
    k->fn = fn;
    k->ctx = ctx;
    k->timer = loop_timer_new(l, timed_out, k);
    loop_timer_arm(k->timer, WAIT_MS);
    k->call = api_request(client, "GET", path, NULL, NULL, answered, k);
}
