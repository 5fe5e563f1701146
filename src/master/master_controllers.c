/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_controllers.h"

#include "base/log.h"
#include "base/mem.h"
#include "controller/leader.h"

#include <limits.h>
#include <unistd.h>

LOG_MODULE("master");

#define LEASE_NAMESPACE "kube-system"
#define LEASE_NAME "tenet-controllers"

struct master_controllers {
    struct loop *loop;
    struct master_controllers_config cfg;
    struct api_client *electing; /* NULL: no other process can lead. */
    struct leader *leader;
    struct api_client *client; /* The client of the controllers. */
    struct controllers *controllers;
    bool ready;
    struct loop_task stopped;
};

static void ready(struct master_controllers *m)
{
    if (!m->ready) {
        m->ready = true;
        m->cfg.ready(m->cfg.ctx);
    }
}

static void started(void *ctx)
{
    ready(ctx);
}

static void failed(void *ctx, const struct err *e)
{
    struct master_controllers *m = ctx;
    m->cfg.failed(m->cfg.ctx, e);
}

static int begin(struct master_controllers *m, const char *fence, struct err *e)
{
    int r = m->cfg.connect(m->cfg.ctx, &m->client, e);
    if (r < 0) {
        return r;
    }
    if (fence) { /* Other API servers ignore the header. */
        http_client_add_header(api_client_http(m->client), "Tenet-Lease", fence);
    }
    m->controllers = controllers_new(m->loop, m->client, &m->cfg.controllers);
    return 0;
}

static void elected(void *ctx, const char *fence)
{
    struct master_controllers *m = ctx;
    struct err e = {0};
    if (begin(m, fence, &e) < 0) {
        failed(m, &e);
    }
}

static void deposed(void *ctx)
{
    struct master_controllers *m = ctx;
    m->controllers = controllers_free(m->controllers);
    m->client = api_client_free(m->client);
}

/* The other leader has created the cluster's own objects. */
static void follows(void *ctx, const char *holder)
{
    ready(ctx);
}

static int stand(struct master_controllers *m, struct err *e)
{
    char who[HOST_NAME_MAX + 1] = "master";
    int r = m->cfg.connect(m->cfg.ctx, &m->electing, e);
    if (r < 0) {
        return r;
    }
    if (gethostname(who, sizeof(who)) < 0) {
        log_debug("host has no name");
    }
    struct leader_config cfg = {.ns = LEASE_NAMESPACE,
                                .name = LEASE_NAME,
                                .who = who,
                                .duration_s = m->cfg.lease_ttl_s,
                                .elected = elected,
                                .deposed = deposed,
                                .follows = follows,
                                .ctx = m};
    m->leader = leader_new(m->loop, m->electing, &cfg);
    return 0;
}

int master_controllers_new(struct loop *l, const struct master_controllers_config *cfg,
                           struct master_controllers **ret, struct err *e)
{
    struct master_controllers *m = NEW(struct master_controllers);
    m->loop = l;
    m->cfg = *cfg;
    m->cfg.controllers.started = started;
    m->cfg.controllers.failed = failed;
    m->cfg.controllers.ctx = m;
    int r = cfg->elects ? stand(m, e) : begin(m, NULL, e);
    if (r < 0) {
        master_controllers_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void master_controllers_stop(struct master_controllers *m, loop_fn *done, void *ctx)
{
    deposed(m);
    if (m->leader) {
        leader_resign(m->leader, done, ctx);
    } else {
        loop_task_init(&m->stopped, m->loop, done, ctx);
        loop_task_queue(&m->stopped);
    }
}

void master_controllers_write_metrics(const struct master_controllers *m, struct strbuf *out)
{
    if (m->controllers) {
        controllers_write_metrics(m->controllers, out);
    }
}

struct master_controllers *master_controllers_free(struct master_controllers *m)
{
    if (m) {
        deposed(m);
        leader_free(m->leader);
        api_client_free(m->electing);
        loop_task_cancel(&m->stopped);
        free(m);
    }
    return NULL;
}
