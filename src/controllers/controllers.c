/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/controllers.h"

#include "base/log.h"
#include "base/mem.h"
#include "controller/obj.h"
#include "controller/recorder.h"
#include "controllers/bootstrap.h"
#include "controllers/lifecycle/crd_cleanup.h"
#include "controllers/lifecycle/event_age.h"
#include "controllers/lifecycle/gc.h"
#include "controllers/lifecycle/namespaces.h"
#include "controllers/lifecycle/pod_end.h"
#include "controllers/network/subnets.h"
#include "controllers/network/vnids.h"
#include "controllers/security/certificates.h"
#include "controllers/security/join_tokens.h"
#include "controllers/security/rbac_bootstrap.h"
#include "controllers/security/role_aggregation.h"
#include "controllers/security/service_accounts.h"
#include "controllers/services/endpoints.h"
#include "controllers/services/service_audit.h"
#include "controllers/services/unidling.h"

LOG_MODULE("controllers");

struct controllers {
    struct loop *loop;
    struct api_client *client;
    struct controllers_config cfg;
    struct bootstrap *bootstrap;
    struct recorder *recorder;
    struct subnets *subnets;
    struct informer *networks;
    enum sdn_plugin plugin; /* Of the ClusterNetwork. */
    struct vnids *vnids;    /* NULL: the plug-in has none. */
    struct namespaces *namespaces;
    struct event_age *event_age;
    struct pod_end *pod_end;
    struct endpoints *endpoints;
    struct unidling *unidling;
    struct service_audit *service_audit; /* NULL: services are given nothing. */
    struct rbac_bootstrap *rbac;
    struct role_aggregation *aggregation;
    struct service_accounts *service_accounts;
    struct certificates *certificates;
    struct crd_cleanup *crd_cleanup;
    struct gc *gc;
    struct join_tokens *join_tokens;
};

static void roles_are_there(void *ctx)
{
    struct controllers *c = ctx;
    const struct controllers_security *s = c->cfg.security;
    c->aggregation = role_aggregation_new(c->loop, c->client);
    c->join_tokens = join_tokens_new(c->loop, c->client);
    struct service_accounts_config cfg = {
        .names = s->service_accounts, .ca = s->ca_pem};
    c->service_accounts = service_accounts_new(c->loop, c->client, &cfg);
    if (s->ca) {
        c->certificates = certificates_new(c->loop, c->client, s->ca);
    }
    c->cfg.started(c->cfg.ctx);
}

static void set_plugin(struct controllers *c, enum sdn_plugin plugin)
{
    vnids_free(TAKE(c->vnids));
    c->plugin = plugin;
    if (sdn_plugin_has_vnids(plugin)) {
        struct vnids_config cfg = c->cfg.vnids;
        cfg.fixed = !sdn_plugin_compares_vnids(plugin);
        c->vnids = vnids_new(c->loop, c->client, c->recorder, &cfg);
    }
}

/* The plug-in may change while we run: by a master with another configuration, or by hand. */
static void network_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct controllers *c = ctx;
    const char *name = json_path_string(obj, "pluginName", NULL);
    enum sdn_plugin plugin;
    if (streq(key, "default") && name && sdn_plugin_parse(name, &plugin, NULL) == 0 &&
        plugin != c->plugin) {
        log_info("network plug-in changed", "from=%s to=%s", sdn_plugin_name(c->plugin), name);
        set_plugin(c, plugin);
    }
}

static void network_deleted(void *ctx, const char *key, const struct json *obj)
{
}

static void bootstrapped(void *ctx, const struct err *e)
{
    struct controllers *c = ctx;
    struct err mine = {0};
    if (!e && subnets_new(c->loop, c->client, c->recorder, &c->cfg.network, c->cfg.addresses,
                          &c->subnets, &mine) < 0) {
        e = &mine;
    }
    if (e) {
        c->cfg.failed(c->cfg.ctx, e);
        return;
    }
    static const struct informer_ops ops = {.changed = network_changed, .deleted = network_deleted};
    set_plugin(c, c->cfg.network.plugin);
    c->networks =
        informer_new(c->client, c->loop, NETWORK_API_VERSION, "clusternetworks", NULL, &ops, c);
    bool whole = !c->cfg.network_only;
    if (whole) {
        c->namespaces = namespaces_new(c->loop, c->client);
        c->event_age = event_age_new(c->loop, c->client);
        c->pod_end = pod_end_new(c->loop, c->client);
        c->endpoints = endpoints_new(c->loop, c->client, c->recorder, &c->cfg.network.foreign);
        c->unidling = unidling_new(c->loop, c->client);
        if (c->cfg.services) {
            c->service_audit = service_audit_new(c->loop, c->client, c->recorder, c->cfg.services);
        }
        c->crd_cleanup = crd_cleanup_new(c->loop, c->client);
        c->gc = gc_new(c->loop, c->client, c->recorder);
    }
    if (whole && c->cfg.security) {
        c->rbac = rbac_bootstrap_new(c->loop, c->client, c->cfg.network.plugin, roles_are_there, c);
    } else {
        c->cfg.started(c->cfg.ctx);
    }
}

struct controllers *controllers_new(struct loop *l, struct api_client *client,
                                    const struct controllers_config *cfg)
{
    struct controllers *c = NEW(struct controllers);
    c->loop = l;
    c->client = client;
    c->cfg = *cfg;
    c->recorder = recorder_new(l, client, cfg->component ? cfg->component : "tenet-master");
    c->bootstrap = bootstrap_new(l, client, &cfg->network, cfg->network_only, bootstrapped, c);
    return c;
}

struct controllers *controllers_free(struct controllers *c)
{
    if (c) {
        certificates_free(c->certificates);
        join_tokens_free(c->join_tokens);
        service_accounts_free(c->service_accounts);
        role_aggregation_free(c->aggregation);
        rbac_bootstrap_free(c->rbac);
        gc_free(c->gc);
        crd_cleanup_free(c->crd_cleanup);
        service_audit_free(c->service_audit);
        unidling_free(c->unidling);
        endpoints_free(c->endpoints);
        event_age_free(c->event_age);
        pod_end_free(c->pod_end);
        namespaces_free(c->namespaces);
        vnids_free(c->vnids);
        informer_free(c->networks);
        subnets_free(c->subnets);
        bootstrap_free(c->bootstrap);
        recorder_free(c->recorder);
        free(c);
    }
    return NULL;
}
