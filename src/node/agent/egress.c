/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/egress.h"

#include "node/agent/network.h"
#include "node/agent/projects.h"

LOG_MODULE("egress");

#define KIND "EgressNetworkPolicy"

struct agent_egress {
    struct agent *agent;
    struct egress *egress;
    struct names *names;
    struct dns *dns; /* A resolver of its own; NULL: the node's is used. */
    struct informer *policies;
    struct loop_task update;
    bool begun;
};

/* ---- reports ---- */

static void record(struct agent *a, const char *project, const char *policy,
                   enum recorder_type type, const char *reason, const char *text)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", project, policy);
    const struct json *obj = informer_get(a->egress->policies, key);
    if (obj && a->recorder) {
        recorder_event(a->recorder, OBJECTS_NETWORK_API, KIND, obj, type, reason, text);
    }
}

static void judged(void *ctx, const char *project, const char *policy, const char *reason,
                   const char *why)
{
    struct agent_egress *x = ctx;
    if (why) {
        log_warn("egress firewall is not applied as it is written", "policy=%s/%s reason=\"%s\"",
                 project, policy, why);
        record(x->agent, project, policy, EVENT_WARNING, reason, why);
    } else {
        record(x->agent, project, policy, EVENT_NORMAL, "Applied",
               "the policy is applied as it is written");
    }
}

struct failure {
    struct agent *agent;
    const char *name, *why;
};

static void report_user(void *ctx, const char *project, const char *policy)
{
    const struct failure *f = ctx;
    CLEANUP_FREE char *text =
        f->why ? xasprintf("node %s: dnsName %s: %s; the name keeps the addresses that it had",
                           f->agent->cfg->node_name, f->name, f->why)
               : xasprintf("node %s: dnsName %s has addresses again", f->agent->cfg->node_name,
                           f->name);
    record(f->agent, project, policy, f->why ? EVENT_WARNING : EVENT_NORMAL,
           f->why ? "NameNotResolved" : "NameResolved", text);
}

static void name_failed(void *ctx, const char *name, const char *why)
{
    struct agent_egress *x = ctx;
    struct failure f = {x->agent, name, why};
    egress_each_user(x->egress, name, report_user, &f);
}

/* ---- results ---- */

static void update(void *ctx)
{
    struct agent_egress *x = ctx;
    if (x->begun) {
        egress_update(x->egress);
    }
}

static void set_firewall(void *ctx, uint32_t vnid, const struct firewall_block *blocks, size_t n)
{
    struct agent_egress *x = ctx;
    datapath_set_firewall(x->agent->datapath, vnid, blocks, n);
}

static void want_name(void *ctx, const char *name, bool wanted)
{
    struct agent_egress *x = ctx;
    names_want(x->names, name, wanted);
}

static void name_resolved(void *ctx, const char *name, const uint32_t *ips, size_t n)
{
    struct agent_egress *x = ctx;
    egress_set_name(x->egress, name, ips, n);
    loop_task_queue(&x->update);
}

/* ---- objects ---- */

static void set_policy(struct agent_egress *x, const char *key, const struct json *obj)
{
    const char *slash = strchr(key, '/');
    if (slash) {
        CLEANUP_FREE char *project = xstrndup(key, (size_t) (slash - key));
        egress_set_policy(x->egress, project, slash + 1, obj);
        loop_task_queue(&x->update);
    }
}

/* Reports a policy that the plug-in cannot enforce. */
static void refuse(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    if (!sdn_plugin_has_vnids(a->net.plugin)) {
        recorder_event(a->recorder, OBJECTS_NETWORK_API, KIND, obj, EVENT_WARNING, "NotSupported",
                       "redhat/openshift-ovs-subnet has no egress firewall: all projects have the "
                       "same virtual network");
    }
}

static void policy_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct agent_egress *x = ctx;
    if (x->agent->network_set) {
        refuse(x->agent, key, obj);
    }
    set_policy(x, key, obj);
}

static void policy_deleted(void *ctx, const char *key, const struct json *obj)
{
    set_policy(ctx, key, NULL);
}

static void policies_are_listed(void *ctx)
{
    struct agent_egress *x = ctx;
    agent_settle_soon(x->agent);
}

static void add_project(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    struct sdn_vnids v;
    bool known = objects_parse_net_namespace(obj, &v, NULL) == 0;
    egress_set_project(a->egress->egress, key, known ? &v.id : NULL);
}

void agent_set_egress_project(struct agent *a, const char *project, const struct sdn_vnids *v)
{
    struct agent_egress *x = a->egress;
    if (x) {
        egress_set_project(x->egress, project, v ? &v->id : NULL);
        if (x->begun) {
            egress_prepare(x->egress);
        }
        loop_task_queue(&x->update); /* The old VNID loses its firewall after the pods have left. */
    }
}

/* ---- begin and end ---- */

static void follow(struct agent *a)
{
    static const struct egress_ops ops = {.set = set_firewall, .name = want_name, .judged = judged};
    static const struct names_ops names_ops = {.resolved = name_resolved, .failed = name_failed};
    static const struct informer_ops informer_ops = {
        .changed = policy_changed, .deleted = policy_deleted, .synced = policies_are_listed};
    struct agent_egress *x = NEW(struct agent_egress);
    struct dns *dns = resolver_dns_of(a->resolver);
    x->agent = a;
    if (!dns) {
        struct dns_options o = {.resolv_conf = a->cfg->dns_resolv_conf};
        int r = dns_new(a->loop, &o, &x->dns, NULL);
        assert(r == 0);
        (void) r;
        dns = x->dns;
    }
    x->egress = egress_new(&ops, x);
    x->names = names_new(a->loop, dns, &names_ops, x);
    loop_task_init(&x->update, a->loop, update, x);
    a->egress = x;
    if (a->projects) {
        informer_each(a->projects, add_project, a);
    }
    x->policies = informer_new(a->client, a->loop, OBJECTS_NETWORK_API, "egressnetworkpolicies",
                               NULL, &informer_ops, x);
    informer_set_optional(x->policies);
}

bool agent_egress_is_ready(struct agent *a, enum sdn_plugin plugin)
{
    agent_follow_projects(a, plugin);
    if (!a->egress) {
        follow(a);
    }
    return informer_synced(a->egress->policies);
}

void agent_begin_egress(struct agent *a)
{
    if (sdn_plugin_has_vnids(a->net.plugin)) {
        a->egress->begun = true;
        egress_update(a->egress->egress);
    } else if (a->egress->begun) {
        egress_withdraw(a->egress->egress);
        agent_close_egress(a);
        follow(a);
    } else {
        informer_each(a->egress->policies, refuse, a);
    }
}

struct egress *agent_egress_rules(struct agent *a)
{
    return a->egress && a->egress->begun ? a->egress->egress : NULL;
}

bool agent_may_leave(void *ctx, const char *project, uint32_t ip)
{
    struct agent *a = ctx;
    const struct egress *e = agent_egress_rules(a);
    const struct firewall_rule *rules;
    struct sdn_vnids v;
    if (!e || agent_find_vnids(a, project, &v, NULL) < 0) {
        return !e;
    }
    size_t n = egress_rules(e, v.id, &rules), rule = firewall_find(rules, n, ip);
    return rule == n || rules[rule].allow;
}

void agent_close_egress(struct agent *a)
{
    struct agent_egress *x = a->egress;
    if (x) {
        informer_free(x->policies);
        loop_task_cancel(&x->update);
        egress_free(x->egress);
        names_free(x->names);
        dns_free(x->dns);
        free(x);
        a->egress = NULL;
    }
}
