/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/lease.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/timeutil.h"

LOG_MODULE("kubelet");

#define NAMESPACE "kube-node-lease"
#define RENEW_MS 10000
#define RETRY_MS 2000
#define DURATION_S 40

struct lease {
    struct loop *loop;
    struct api_client *client;
    char *name;
    struct loop_timer *timer;
    struct api_call *call;
    bool creating;
    struct said failure;
};

static struct json *make(const struct lease *l)
{
    char now[TIME_TEXT_SIZE];
    time_format_micro(time_wall_ms(), now);
    struct json *o = json_object(), *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "holderIdentity", l->name);
    json_set_int(spec, "leaseDurationSeconds", DURATION_S);
    json_set_string(spec, "renewTime", now);
    return o;
}

static void create(struct lease *l);

static void written(void *ctx, int error, const char *text, struct json *obj)
{
    struct lease *l = ctx;
    l->call = NULL;
    if (error == -ENOENT && !l->creating) {
        create(l);
        return;
    }
    l->creating = false;
    if (said_is_news(&l->failure, error < 0 ? text : NULL)) {
        log_warn("the node's lease was not renewed", "node=%s error=\"%s\"", l->name, text);
    }
    loop_timer_arm(l->timer, error == 0 ? RENEW_MS : RETRY_MS);
}

static void create(struct lease *l)
{
    CLEANUP(json_free) struct json *o = make(l);
    json_set_string(o, "apiVersion", "coordination.k8s.io/v1");
    json_set_string(o, "kind", "Lease");
    json_set_string(json_ensure_object(o, "metadata"), "name", l->name);
    CLEANUP_FREE char *path = api_path("coordination.k8s.io/v1", "leases", NAMESPACE, NULL, NULL);
    l->creating = true;
    l->call = api_request(l->client, "POST", path, NULL, o, written, l);
}

static void renew(void *ctx)
{
    struct lease *l = ctx;
    CLEANUP(json_free) struct json *o = make(l);
    CLEANUP_FREE char *path =
        api_path("coordination.k8s.io/v1", "leases", NAMESPACE, l->name, NULL);
    l->call = api_request(l->client, "PATCH", path, "application/merge-patch+json", o, written, l);
}

struct lease *lease_new(struct loop *loop, struct api_client *c, const char *node_name)
{
    struct lease *l = NEW(struct lease);
    l->loop = loop;
    l->client = c;
    l->name = xstrdup(node_name);
    l->timer = loop_timer_new(loop, renew, l);
    loop_timer_arm(l->timer, 0);
    return l;
}

struct lease *lease_free(struct lease *l)
{
    if (l) {
        if (l->call) {
            api_call_cancel(l->call);
        }
        loop_timer_free(l->timer);
        said_done(&l->failure);
        free(l->name);
        free(l);
    }
    return NULL;
}
