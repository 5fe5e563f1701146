/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registry/policies.h"

#include "base/log.h"
#include "base/mem.h"
#include "controller/recorder.h"

#include <malloc.h>
#include <string.h>

LOG_MODULE("policy");

#define SETTLED_MS 5000
#define NETWORK_API "networking.k8s.io/v1"
#define ADMIN_API "policy.networking.k8s.io/v1alpha1"

enum watched { W_NAMESPACES, W_NODES, W_POLICIES, W_ADMIN, W_BASELINE, W_PODS, N_WATCHED };

struct watch {
    struct policies *owner;
    enum watched what;
    struct informer *informer;
};

struct policies {
    struct loop *loop;
    const struct policies_ops *ops;
    void *ctx;
    struct policy *compiler;
    struct datapath *datapath; /* NULL: nothing is sent to a datapath. */
    struct recorder *recorder;
    struct watch watches[N_WATCHED];
    bool synced;
    struct loop_task compile;
    uint64_t changed_ms; /* Time of the last change sent to the datapath. */
    struct smap refused; /* "Kind ns/name" to the reported reason. */
};

/* ---- what comes of it ---- */

static void ignored(void *ctx, const char *ns, const char *name, const char *why)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_WARN, "reported address ignored", "%s=%s%s%s reason=\"%s\"",
                ns ? "pod" : "node", ns ? ns : "", ns ? "/" : "", name, why);
}

static void compile_soon(struct policies *p)
{
    p->changed_ms = loop_now_ms(p->loop);
    loop_task_queue(&p->compile);
}

static void compile(void *ctx)
{
    struct policies *p = ctx;
    if (p->datapath) {
        policy_compile(p->compiler);
    }
}

/* ---- policies ---- */

static enum policy_kind kind_of(enum watched w)
{
    return w == W_POLICIES ? POLICY_NETWORK : w == W_ADMIN ? POLICY_ADMIN : POLICY_BASELINE;
}

static const char *kind_name(enum watched w)
{
    return w == W_POLICIES ? "NetworkPolicy"
           : w == W_ADMIN  ? "AdminNetworkPolicy"
                           : "BaselineAdminNetworkPolicy";
}

/* Reports once that a policy cannot be compiled, with the reason. */
static void refuse(struct policies *p, enum watched w, const char *key, const struct json *obj,
                   const char *why)
{
    CLEANUP_FREE char *name = xasprintf("%s %s", kind_name(w), key);
    const char *before = smap_get(&p->refused, name);
    if (streq_null(before, why)) {
        return;
    }
    log_error("policy cannot be compiled; it isolates its pods and allows nothing",
              "policy=\"%s\" reason=\"%s\"", name, why);
    CLEANUP_FREE char *text =
        xasprintf("%s; until it is mended %s", why,
                  w == W_POLICIES ? "the pods it selects are isolated"
                                  : "everything is denied to and from the pods it selects");
    recorder_event(p->recorder, w == W_POLICIES ? NETWORK_API : ADMIN_API, kind_name(w), obj,
                   EVENT_WARNING, "PolicyNotEnforceable", text);
    smap_set(&p->refused, name, xstrdup(why));
}

static void accept(struct policies *p, enum watched w, const char *key, const struct json *obj)
{
    CLEANUP_FREE char *name = xasprintf("%s %s", kind_name(w), key);
    if (!smap_remove(&p->refused, name)) {
        return;
    }
    log_info("policy can be compiled again", "policy=\"%s\"", name);
    if (obj) {
        recorder_event(p->recorder, w == W_POLICIES ? NETWORK_API : ADMIN_API, kind_name(w), obj,
                       EVENT_NORMAL, "PolicyEnforced", "the policy is enforced as it is written");
    }
}

static void policy_changed(struct policies *p, enum watched w, const char *key, const char *ns,
                           const char *name, const struct json *obj)
{
    struct err e = {0};
    if (policy_set_object(p->compiler, kind_of(w), ns, name, obj, &e) < 0) {
        refuse(p, w, key, obj, e.text);
    } else {
        accept(p, w, key, obj);
    }
}

/* ---- objects ---- */

/* Splits "ns/name"; '*ret_ns' is NULL for an object of the cluster.  Returns an owned copy of the
 * first part. */
static char *split_key(const char *key, const char **ret_name)
{
    const char *slash = strchr(key, '/');
    *ret_name = slash ? slash + 1 : key;
    return slash ? xstrndup(key, (size_t) (slash - key)) : NULL;
}

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct watch *w = ctx;
    struct policies *p = w->owner;
    const char *name;
    CLEANUP_FREE char *ns = split_key(key, &name);
    switch (w->what) {
    case W_NAMESPACES:
        policy_set_namespace(p->compiler, name, obj);
        p->ops->known(p->ctx, name);
        break;
    case W_NODES:
        policy_set_node(p->compiler, name, obj);
        break;
    case W_PODS:
        if (ns) {
            policy_set_pod(p->compiler, ns, name, obj);
            p->ops->known(p->ctx, ns);
        }
        break;
    default:
        policy_changed(p, w->what, key, ns, name, obj);
        break;
    }
    compile_soon(p);
}

static void deleted(void *ctx, const char *key, const struct json *obj)
{
    struct watch *w = ctx;
    struct policies *p = w->owner;
    const char *name;
    CLEANUP_FREE char *ns = split_key(key, &name);
    switch (w->what) {
    case W_NAMESPACES:
        policy_delete_namespace(p->compiler, name);
        break;
    case W_NODES:
        policy_delete_node(p->compiler, name);
        break;
    case W_PODS:
        if (ns) {
            policy_delete_pod(p->compiler, ns, name);
        }
        break;
    default:
        policy_delete_object(p->compiler, kind_of(w->what), ns, name);
        accept(p, w->what, key, NULL);
        break;
    }
    compile_soon(p);
}

static void synced(void *ctx)
{
    struct policies *p = ((struct watch *) ctx)->owner;
    for (size_t i = 0; i < N_WATCHED; i++) {
        /* The first list may be complete before the last watch is made. */
        if (!p->watches[i].informer || !informer_synced(p->watches[i].informer)) {
            return;
        }
    }
    if (!p->synced) {
        p->synced = true;
        struct policy_stats s;
        policy_get_stats(p->compiler, &s);
        log_info("policies known", "policies=%zu broken=%zu pods=%zu", s.objects, s.broken, s.pods);
        p->ops->synced(p->ctx);
    }
}

/* ---- public ---- */

struct policies *policies_new(struct loop *l, struct api_client *client, const char *node_name,
                              struct ip4_prefix local, const struct policies_ops *ops, void *ctx)
{
    static const struct informer_ops callbacks = {
        .changed = changed, .deleted = deleted, .synced = synced};
    static const struct policy_ops compiler_ops = {.ignored = ignored};
    static const struct {
        const char *api, *plural, *fields;
        bool optional;
    } kinds[N_WATCHED] = {
        [W_NAMESPACES] = {"v1", "namespaces", NULL, false},
        [W_NODES] = {"v1", "nodes", NULL, false},
        [W_POLICIES] = {NETWORK_API, "networkpolicies", NULL, false},
        [W_ADMIN] = {ADMIN_API, "adminnetworkpolicies", NULL, true},
        [W_BASELINE] = {ADMIN_API, "baselineadminnetworkpolicies", NULL, true},
        /* Pods that have ended have no address any more. */
        [W_PODS] = {"v1", "pods", "status.phase!=Succeeded,status.phase!=Failed", false},
    };
    struct policies *p = NEW(struct policies);
    p->loop = l;
    p->ops = ops;
    p->ctx = ctx;
    p->compiler = policy_new(local, &compiler_ops, p);
    CLEANUP_FREE char *component = xasprintf("tenet-node, %s", node_name);
    p->recorder = recorder_new(l, client, component);
    smap_init(&p->refused, free);
    loop_task_init(&p->compile, l, compile, p);
    for (size_t i = 0; i < N_WATCHED; i++) {
        struct watch *w = &p->watches[i];
        w->owner = p;
        w->what = (enum watched) i;
        w->informer =
            informer_new(client, l, kinds[i].api, kinds[i].plural, kinds[i].fields, &callbacks, w);
        informer_keep_keys_only(w->informer);
        if (kinds[i].optional) {
            informer_set_optional(w->informer);
        }
    }
    return p;
}

struct policies *policies_free(struct policies *p)
{
    if (!p) {
        return NULL;
    }
    for (size_t i = 0; i < N_WATCHED; i++) {
        informer_free(p->watches[i].informer);
    }
    loop_task_cancel(&p->compile);
    policy_free(p->compiler);
    recorder_free(p->recorder);
    smap_done(&p->refused);
    free(p);
    return NULL;
}

void policies_set_rules_of_addresses(struct policies *p, const struct node_rules *rules)
{
    policy_set_rules_of_addresses(p->compiler, rules);
    compile_soon(p);
}

void policies_set_host_subnet(struct policies *p, const char *node, const struct json *obj)
{
    policy_set_host_subnet(p->compiler, node, obj);
    compile_soon(p);
}

void policies_delete_host_subnet(struct policies *p, const char *node)
{
    policy_delete_host_subnet(p->compiler, node);
    compile_soon(p);
}

bool policies_synced(const struct policies *p)
{
    return p->synced;
}

static void attaching(void *ctx, const struct dp_pod *pod)
{
    struct policies *p = ctx;
    if (pod->pod_namespace && pod->pod_name) {
        policy_attach(p->compiler, pod->ip, pod->pod_namespace, pod->pod_name);
        p->changed_ms = loop_now_ms(p->loop);
        compile(p);
    }
}

static void detached(void *ctx, const struct dp_pod *pod)
{
    struct policies *p = ctx;
    policy_detach(p->compiler, pod->ip);
    compile_soon(p);
}

const struct pod_listener policies_pod_listener = {.attaching = attaching, .detached = detached};

void policies_begin(struct policies *p, struct datapath *dp)
{
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(dp, &n);
    for (size_t i = 0; i < n; i++) {
        attaching(p, pods[i]);
    }
    p->datapath = dp;
    datapath_set_policy(dp, p->compiler);
    policy_compile(p->compiler);
    malloc_trim(0); /* The lists left holes. */
}

void policies_end(struct policies *p)
{
    policy_leave(p->compiler);
    p->datapath = NULL;
}

bool policies_settled(const struct policies *p)
{
    return p->datapath && loop_now_ms(p->loop) - p->changed_ms > SETTLED_MS;
}

struct policy *policies_compiler(struct policies *p)
{
    return p->compiler;
}
