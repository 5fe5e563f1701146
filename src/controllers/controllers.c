/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/controllers.h"

#include "base/log.h"
#include "base/mem.h"
#include "controller/controller.h"
#include "controller/obj.h"
#include "controllers/bootstrap.h"
#include "controllers/lifecycle/crd_cleanup.h"
#include "controllers/lifecycle/disruption.h"
#include "controllers/lifecycle/event_age.h"
#include "controllers/lifecycle/gc.h"
#include "controllers/lifecycle/namespaces.h"
#include "controllers/lifecycle/node_lifecycle.h"
#include "controllers/lifecycle/pod_deletion.h"
#include "controllers/lifecycle/pod_garbage.h"
#include "controllers/network/ingresses.h"
#include "controllers/network/subnets.h"
#include "controllers/network/vnids.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/security/certificates.h"
#include "controllers/security/join_tokens.h"
#include "controllers/security/oauth_tokens.h"
#include "controllers/security/project_roles.h"
#include "controllers/security/rbac_bootstrap.h"
#include "controllers/security/role_aggregation.h"
#include "controllers/security/root_ca.h"
#include "controllers/security/service_accounts.h"
#include "controllers/services/endpoints.h"
#include "controllers/services/service_audit.h"
#include "controllers/services/wakeup.h"
#include "controllers/storage/attachments.h"
#include "controllers/storage/binder.h"
#include "controllers/storage/ephemeral.h"
#include "controllers/storage/local_class.h"
#include "controllers/storage/snapshot_kinds.h"
#include "controllers/templates/catalog.h"
#include "controllers/templates/instances.h"
#include "controllers/workloads/autoscalers.h"
#include "controllers/workloads/cron_jobs.h"
#include "controllers/workloads/daemon_sets.h"
#include "controllers/workloads/deployers.h"
#include "controllers/workloads/deployment_configs.h"
#include "controllers/workloads/deployments.h"
#include "controllers/workloads/jobs.h"
#include "controllers/workloads/replica_sets.h"
#include "controllers/workloads/stateful_sets.h"

LOG_MODULE("controllers");

/* Needs of controllers, as bits; see the rows.  The bootstrap needs none; the other bits are met
 * only when its objects exist. */
enum {
    /* The API server is Tenet's: no other controllers handle namespaces, garbage and
     * definitions. */
    NEEDS_WHOLE_API = 1,
    NEEDS_VNIDS = 2,       /* The plug-in of the ClusterNetwork has VNIDs. */
    NEEDS_SERVICES = 4,    /* The API server allocates addresses and ports for services. */
    NEEDS_ACCESS = 8,      /* Access control is on. */
    NEEDS_ROLES = 16,      /* The same, and the default roles exist. */
    NEEDS_CA = 32,         /* A certificate authority for signing is configured. */
    NEEDS_NETWORK = 64,    /* The ClusterNetwork exists. */
    NEEDS_SCHEDULER = 128, /* No scheduler of others is configured. */
    /* The accounts of controllers have their rights: access control is off, or the default roles
     * exist. */
    NEEDS_RIGHTS = 256,
    NEEDS_WORKLOADS = 512,    /* No workload controllers of others are configured. */
    NEEDS_LOCAL_CLASS = 1024, /* The storage class "local" is asked for. */
    NEEDS_SNAPSHOTS = 2048,   /* The kinds of volume snapshots are asked for. */
    WORKLOADS = NEEDS_WHOLE_API | NEEDS_RIGHTS | NEEDS_WORKLOADS,
};

/* The controllers' configurations. */
struct configs {
    struct bootstrap_config bootstrap;
    struct rbac_bootstrap_config roles;
    struct subnets_config subnets;
    struct vnids_config vnids;
    struct address_ranges foreign;
    const struct service_ranges *services;
    struct service_accounts_config accounts;
    struct root_ca_config root_ca;
    const struct pki_ca *ca;
    struct scheduler_config scheduler;
    struct node_lifecycle_config nodes;
    struct pod_garbage_config garbage;
    struct deployers_config deployers;
    const char *node_selector;
};

/* The controllers, in the order in which they are started. */
static const struct controller_row rows[] = {
    {&bootstrap_controller, 0, offsetof(struct configs, bootstrap)},
    {&rbac_bootstrap_controller, NEEDS_ACCESS, offsetof(struct configs, roles)},
    {&subnets_controller, NEEDS_NETWORK, offsetof(struct configs, subnets)},
    {&vnids_controller, NEEDS_VNIDS, offsetof(struct configs, vnids)},
    {&namespaces_controller, NEEDS_WHOLE_API, 0},
    {&event_age_controller, NEEDS_WHOLE_API, 0},
    {&pod_deletion_controller, NEEDS_WHOLE_API, 0},
    {&pod_garbage_controller, NEEDS_WHOLE_API, offsetof(struct configs, garbage)},
    {&node_lifecycle_controller, NEEDS_WHOLE_API, offsetof(struct configs, nodes)},
    {&disruption_controller, NEEDS_WHOLE_API, 0},
    {&scheduler_controller, NEEDS_WHOLE_API | NEEDS_SCHEDULER, offsetof(struct configs, scheduler)},
    {&binder_controller, WORKLOADS, 0},
    {&ephemeral_volumes_controller, WORKLOADS, 0},
    {&attachments_controller, WORKLOADS, 0},
    {&local_class_controller, NEEDS_WHOLE_API | NEEDS_LOCAL_CLASS, 0},
    {&snapshot_kinds_controller, NEEDS_WHOLE_API | NEEDS_SNAPSHOTS, 0},
    {&endpoints_controller, NEEDS_WHOLE_API, offsetof(struct configs, foreign)},
    {&wakeup_controller, NEEDS_WHOLE_API, 0},
    {&ingresses_controller, NEEDS_WHOLE_API | NEEDS_RIGHTS, 0},
    {&service_audit_controller, NEEDS_WHOLE_API | NEEDS_SERVICES,
     offsetof(struct configs, services)},
    {&crd_cleanup_controller, NEEDS_WHOLE_API, 0},
    {&gc_controller, NEEDS_WHOLE_API, 0},
    {&deployments_controller, WORKLOADS, 0},
    {&deployment_configs_controller, WORKLOADS, 0},
    {&deployers_controller, WORKLOADS, offsetof(struct configs, deployers)},
    {&replica_sets_controller, WORKLOADS, 0},
    {&replication_controllers_controller, WORKLOADS, 0},
    {&daemon_sets_controller, WORKLOADS, offsetof(struct configs, node_selector)},
    {&stateful_sets_controller, WORKLOADS, 0},
    {&jobs_controller, WORKLOADS, 0},
    {&cron_jobs_controller, WORKLOADS, 0},
    {&job_ttl_controller, WORKLOADS, 0},
    {&autoscalers_controller, WORKLOADS, 0},
    {&template_instances_controller, NEEDS_WHOLE_API | NEEDS_RIGHTS, 0},
    {&catalog_controller, NEEDS_WHOLE_API | NEEDS_ROLES, 0},
    {&role_aggregation_controller, NEEDS_ROLES, 0},
    {&join_tokens_controller, NEEDS_ROLES, 0},
    {&oauth_tokens_controller, NEEDS_WHOLE_API, 0},
    {&project_roles_controller, NEEDS_ROLES, 0},
    {&service_accounts_controller, NEEDS_ROLES, offsetof(struct configs, accounts)},
    {&root_ca_controller, NEEDS_ROLES, offsetof(struct configs, root_ca)},
    {&certificates_controller, NEEDS_ROLES | NEEDS_CA, offsetof(struct configs, ca)},
};

struct controllers {
    struct loop *loop;
    struct api_client *client;
    struct controllers_config cfg;
    struct configs configs;
    struct recorder *recorder;
    struct informer_set *own_informers; /* NULL: the caller's set is used. */
    struct informer_set *informers;
    struct informer *networks;
    enum sdn_plugin plugin; /* The plug-in of the ClusterNetwork. */
    struct controller_set *set;
    unsigned has; /* The needs that are met, as bits. */
};

/* Starts the controllers whose needs are met.  On failure 'failed' has been called. */
static int enable(struct controllers *c, unsigned has)
{
    struct err e = {0};
    c->has = has;
    int r = controller_set_enable(c->set, has, &e);
    if (r < 0) {
        c->cfg.failed(c->cfg.ctx, &e);
    }
    return r;
}

static void roles_are_there(void *ctx)
{
    struct controllers *c = ctx;
    if (enable(c, c->has | NEEDS_ROLES | NEEDS_RIGHTS) == 0) {
        c->cfg.started(c->cfg.ctx);
    }
}

static unsigned vnids_of(enum sdn_plugin plugin)
{
    return sdn_plugin_has_vnids(plugin) ? NEEDS_VNIDS : 0;
}

static void set_plugin(struct controllers *c, enum sdn_plugin plugin)
{
    c->plugin = plugin;
    c->configs.vnids.fixed = !sdn_plugin_compares_vnids(plugin);
}

/* The plug-in may change while the controllers run: a master with another
 * configuration or an administrator may write it. */
static void network_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct controllers *c = ctx;
    const char *name = json_path_string(obj, "pluginName", NULL);
    enum sdn_plugin plugin;
    if (streq(key, "default") && name && sdn_plugin_parse(name, &plugin, NULL) == 0 &&
        plugin != c->plugin) {
        log_info("network plug-in changed", "from=%s to=%s", sdn_plugin_name(c->plugin), name);
        if (enable(c, c->has & ~(unsigned) NEEDS_VNIDS) == 0) {
            set_plugin(c, plugin);
            (void) enable(c, c->has | vnids_of(plugin));
        }
    }
}

static void bootstrapped(void *ctx, const struct err *e)
{
    static const struct informer_ops ops = {.changed = network_changed};
    struct controllers *c = ctx;
    const struct controllers_security *s = c->cfg.network_only ? NULL : c->cfg.security;
    if (e) {
        c->cfg.failed(c->cfg.ctx, e);
        return;
    }
    set_plugin(c, c->cfg.network.plugin);
    if (enable(c, NEEDS_NETWORK | vnids_of(c->plugin) |
                      (c->cfg.network_only ? 0 : NEEDS_WHOLE_API) |
                      (c->cfg.no_scheduler ? 0 : NEEDS_SCHEDULER) |
                      (c->cfg.no_workloads ? 0 : NEEDS_WORKLOADS) |
                      (c->cfg.local_class ? NEEDS_LOCAL_CLASS : 0) |
                      (c->cfg.snapshot_kinds ? NEEDS_SNAPSHOTS : 0) |
                      (c->cfg.services ? NEEDS_SERVICES : 0) | (s ? NEEDS_ACCESS : NEEDS_RIGHTS) |
                      (s && s->ca ? NEEDS_CA : 0)) < 0) {
        return;
    }
    c->networks =
        informer_set_add(c->informers, NETWORK_API_VERSION, "clusternetworks", NULL, &ops, c);
    if (!s) {
        c->cfg.started(c->cfg.ctx);
    }
}

static void set_configs(struct controllers *c)
{
    const struct controllers_security *s = c->cfg.security;
    c->configs = (struct configs){
        .bootstrap = {.network = c->cfg.network,
                      .network_only = c->cfg.network_only,
                      .done = bootstrapped,
                      .ctx = c},
        .roles = {.plugin = c->cfg.network.plugin, .done = roles_are_there, .ctx = c},
        .subnets = {.network = c->cfg.network, .addresses = c->cfg.addresses},
        .vnids = c->cfg.vnids,
        .foreign = c->cfg.network.foreign,
        .services = c->cfg.services,
        .scheduler = {.policy = c->cfg.policy},
        .nodes = {.grace_s = c->cfg.node_grace_s},
        .garbage = {.threshold = c->cfg.ended_pods},
        .deployers = {.image = c->cfg.deployer_image, .in_process = c->cfg.deploy_in_process},
        .node_selector = c->cfg.node_selector,
    };
    if (s) {
        c->configs.accounts =
            (struct service_accounts_config){.names = s->service_accounts, .ca = s->ca_pem};
        c->configs.root_ca =
            (struct root_ca_config){.ca = s->ca_pem, .client_ca = s->client_ca_pem};
        c->configs.ca = s->ca;
    }
}

struct controllers *controllers_new(struct loop *l, struct api_client *client,
                                    const struct controllers_config *cfg)
{
    struct controllers *c = NEW(struct controllers);
    c->loop = l;
    c->client = client;
    c->cfg = *cfg;
    set_configs(c);
    c->recorder = recorder_new(l, client, cfg->component ? cfg->component : "tenet-master");
    c->own_informers = cfg->informers ? NULL : informer_set_new(l, client);
    c->informers = cfg->informers ? cfg->informers : c->own_informers;
    /* Forces new lists: the former leader may have written until now. */
    informer_set_expire(c->informers);
    struct controller_env env = {
        .loop = l, .client = client, .informers = c->informers, .recorder = c->recorder};
    c->set = controller_set_new(&env, rows, ARRAY_SIZE(rows), &c->configs);
    (void) enable(c, 0); /* Starts the bootstrap. */
    return c;
}

void controllers_write_metrics(const struct controllers *c, struct strbuf *out)
{
    controller_set_write_metrics(c->set, out);
    prom_one(out, "informer_watches", "gauge",
             "Lists and watches that the controllers and other listeners of this process share.",
             informer_set_count(c->informers));
}

struct controllers *controllers_free(struct controllers *c)
{
    if (c) {
        controller_set_free(c->set);
        informer_free(c->networks);
        recorder_free(c->recorder);
        informer_set_free(c->own_informers);
        free(c);
    }
    return NULL;
}
