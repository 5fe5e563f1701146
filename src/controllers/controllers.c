/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/controllers.h"

#include "base/mem.h"
#include "controllers/bootstrap.h"
#include "controllers/event_age.h"
#include "controllers/namespaces.h"
#include "controllers/recorder.h"
#include "controllers/subnets.h"
#include "controllers/vnids.h"

struct controllers {
    struct loop *loop;
    struct api_client *client;
    struct controllers_config cfg;
    struct bootstrap *bootstrap;
    struct recorder *recorder;
    struct subnets *subnets;
    struct vnids *vnids;
    struct namespaces *namespaces;
    struct event_age *event_age;
};

static void bootstrapped(void *ctx, const struct err *e)
{
    struct controllers *c = ctx;
    struct err mine = {0};
    if (!e &&
        subnets_new(c->loop, c->client, c->recorder, &c->cfg.network, &c->subnets, &mine) < 0) {
        e = &mine;
    }
    if (e) {
        c->cfg.failed(c->cfg.ctx, e);
        return;
    }
    if (sdn_plugin_has_vnids(c->cfg.network.plugin)) {
        c->vnids = vnids_new(c->loop, c->client, c->recorder);
    }
    c->namespaces = namespaces_new(c->loop, c->client);
    c->event_age = event_age_new(c->loop, c->client);
    c->cfg.started(c->cfg.ctx);
}

struct controllers *controllers_new(struct loop *l, struct api_client *client,
                                    const struct controllers_config *cfg)
{
    struct controllers *c = NEW(struct controllers);
    c->loop = l;
    c->client = client;
    c->cfg = *cfg;
    c->recorder = recorder_new(l, client, cfg->component ? cfg->component : "tenet-master");
    c->bootstrap = bootstrap_new(l, client, &cfg->network, bootstrapped, c);
    return c;
}

struct controllers *controllers_free(struct controllers *c)
{
    if (c) {
        event_age_free(c->event_age);
        namespaces_free(c->namespaces);
        vnids_free(c->vnids);
        subnets_free(c->subnets);
        bootstrap_free(c->bootstrap);
        recorder_free(c->recorder);
        free(c);
    }
    return NULL;
}
