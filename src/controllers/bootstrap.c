/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/bootstrap.h"

#include "base/log.h"
#include "base/mem.h"
#include "controller/obj.h"

LOG_MODULE("bootstrap");

#define KEY_NAMESPACE "namespace/default"
#define KEY_NETWORK "clusternetwork/default"

struct bootstrap {
    const struct bootstrap_config *cfg;
    struct workqueue *queue;
    struct json *current; /* The existing ClusterNetwork. */
    /* The list of HostSubnets, read when a change of the network must be checked. */
    struct json *hostsubnets;
};

static const char *network_path(bool with_name)
{
    return with_name ? "/apis/" NETWORK_API_VERSION "/clusternetworks/default"
                     : "/apis/" NETWORK_API_VERSION "/clusternetworks";
}

static void network_written(void *ctx, struct work *w, int error, const char *text,
                            struct json *obj)
{
    struct bootstrap *b = ctx;
    if (error == -EINVAL) {
        struct err e = {0};
        (void) err_set(&e, error, "ClusterNetwork default: %s", text);
        work_done(w);
        b->cfg->done(b->cfg->ctx, &e);
    } else if (error < 0) {
        work_retry(w, error, "write the cluster network", text);
    } else {
        log_info("cluster network written", "networks=%zu plugin=%s", b->cfg->network.n_ranges,
                 sdn_plugin_name(b->cfg->network.plugin));
        work_done(w);
        b->cfg->done(b->cfg->ctx, NULL);
    }
}

static void pods_listed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct bootstrap *b = ctx;
    struct err e = {0};
    if (error < 0) {
        work_retry(w, error, "list pods", text);
        return;
    }
    if (netconf_check_change(&b->cfg->network, b->current, json_get(b->hostsubnets, "items"),
                             json_get(obj, "items"), &e) < 0) {
        work_done(w);
        b->cfg->done(b->cfg->ctx, &e);
        return;
    }
    (void) netconf_apply(&b->cfg->network, b->current);
    work_request(w, "PUT", network_path(true), b->current, network_written);
}

static void hostsubnets_listed(void *ctx, struct work *w, int error, const char *text,
                               struct json *obj)
{
    struct bootstrap *b = ctx;
    if (error < 0) {
        work_retry(w, error, "list host subnets", text);
        return;
    }
    json_free(b->hostsubnets);
    b->hostsubnets = json_clone(obj);
    work_request(w, "GET", "/api/v1/pods", NULL, pods_listed);
}

static void network_got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct bootstrap *b = ctx;
    if (error == -ENOENT) {
        CLEANUP(json_free) struct json *o = netconf_object(&b->cfg->network);
        work_request(w, "POST", network_path(false), o, network_written);
        return;
    }
    if (error < 0) {
        work_retry(w, error, "read the cluster network", text);
        return;
    }
    json_free(b->current);
    b->current = json_clone(obj);
    CLEANUP(json_free) struct json *wanted = json_clone(obj);
    if (!netconf_apply(&b->cfg->network, wanted)) {
        work_done(w);
        b->cfg->done(b->cfg->ctx, NULL);
        return;
    }
    work_request(w, "GET", "/apis/" NETWORK_API_VERSION "/hostsubnets", NULL, hostsubnets_listed);
}

static void namespace_written(void *ctx, struct work *w, int error, const char *text,
                              struct json *obj)
{
    struct bootstrap *b = ctx;
    if (error < 0 && error != -EEXIST) {
        work_retry(w, error, "create the namespace default", text);
        return;
    }
    workqueue_add(b->queue, KEY_NETWORK);
    work_done(w);
}

static void step(void *ctx, struct work *w, const char *key)
{
    if (streq(key, KEY_NAMESPACE)) {
        CLEANUP(json_free) struct json *o = obj_new("v1", "Namespace", NULL, "default");
        work_request(w, "POST", "/api/v1/namespaces", o, namespace_written);
    } else {
        work_request(w, "GET", network_path(true), NULL, network_got);
    }
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct bootstrap *b = NEW(struct bootstrap);
    b->cfg = config;
    b->queue = env->queue;
    workqueue_add(b->queue, b->cfg->network_only ? KEY_NETWORK : KEY_NAMESPACE);
    *ret = b;
    return 0;
}

static void stop(void *state)
{
    struct bootstrap *b = state;
    json_free(b->current);
    json_free(b->hostsubnets);
    free(b);
}

const struct controller bootstrap_controller = {
    .name = "bootstrap",
    .parallel = 1,
    .start = start,
    .reconcile = step,
    .stop = stop,
};
