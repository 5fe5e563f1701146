/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/node_lifecycle.h"

#include "api/condition.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controllers/lifecycle/node_health.h"

LOG_MODULE("node_lifecycle");

#define LOOK_MS 5000
#define LEASES "kube-node-lease/"
#define ZONE "topology.kubernetes.io/zone"
#define STRATEGIC "application/strategic-merge-patch+json"

/* Keys of the queue: "n NAME", a node; "p NAMESPACE/NAME", a pod. */
#define KEY_NODE 'n'
#define KEY_POD 'p'

/* What is known of a node beside its object. */
struct watched {
    char *lease, *heartbeat; /* The last ones seen. */
    uint64_t heard_ms;
    bool silent; /* For longer than the grace. */
    bool evicts; /* Its pods have to leave. */
};

struct zone {
    struct zone_health health;
    uint64_t next_ms; /* Earlier no further node of the zone loses its pods. */
};

struct node_lifecycle {
    struct controller_env env;
    struct informer *nodes, *pods;
    uint64_t grace_ms, look_ms;
    struct smap watched; /* By name of the node. */
    struct smap zones;   /* By name; "" where nodes have no label. */
    bool all_ill;
    struct loop_timer *timer;
};

static void watched_free(void *p)
{
    struct watched *w = p;
    free(w->lease);
    free(w->heartbeat);
    free(w);
}

static struct watched *watched_get(struct node_lifecycle *l, const char *node)
{
    struct watched *w = smap_get(&l->watched, node);
    if (!w) {
        w = NEW(struct watched);
        w->lease = xstrdup("");
        w->heartbeat = xstrdup("");
        w->heard_ms = loop_now_ms(l->env.loop);
        smap_set(&l->watched, node, w);
    }
    return w;
}

/* The kubelet is heard when the text is another one. */
static void hear(struct node_lifecycle *l, struct watched *w, char **last, const char *text)
{
    if (!streq(*last, text)) {
        free(*last);
        *last = xstrdup(text);
        w->heard_ms = loop_now_ms(l->env.loop);
        w->silent = false;
    }
}

static void add_key(struct node_lifecycle *l, char type, const char *name)
{
    CLEANUP_FREE char *key = xasprintf("%c %s", type, name);
    workqueue_add(l->env.queue, key);
}

/* ---- the look at all nodes ---- */

static struct zone *zone_of(struct node_lifecycle *l, const struct json *node)
{
    const char *name = json_get_text(json_path(node, "metadata", "labels", NULL), ZONE);
    struct zone *z = smap_get(&l->zones, name);
    if (!z) {
        z = NEW(struct zone);
        smap_set(&l->zones, name, z);
    }
    return z;
}

static bool is_ill(const struct json *node)
{
    return node_health_state(node) != NODE_READY;
}

/* Nodes that fall silent together reach the end of the grace one after the other.  So one that was
 * not heard for half of it counts as ill already, which is longer than kubelets pause. */
static void count_node(void *ctx, const char *key, const struct json *node)
{
    struct node_lifecycle *l = ctx;
    if (node_health_has_kubelet(node)) {
        struct zone *z = zone_of(l, node);
        uint64_t silence = loop_now_ms(l->env.loop) - watched_get(l, key)->heard_ms;
        z->health.nodes++;
        z->health.ill += is_ill(node) || silence > l->grace_ms / 2;
    }
}

static void count_zones(struct node_lifecycle *l)
{
    struct smap_entry *e;
    size_t nodes = 0, ill = 0;
    SMAP_FOREACH (e, &l->zones) {
        ((struct zone *) e->value)->health = (struct zone_health){0};
    }
    informer_each(l->nodes, count_node, l);
    SMAP_FOREACH (e, &l->zones) {
        const struct zone *z = e->value;
        nodes += z->health.nodes;
        ill += z->health.ill;
        if (!z->health.nodes) {
            (void) smap_remove(&l->zones, e->key);
        }
    }
    bool all = nodes && ill == nodes;
    if (all != l->all_ill) {
        log_warn(all ? "all nodes are ill: no pod has to leave" : "some nodes are well again",
                 "nodes=%zu", nodes);
    }
    l->all_ill = all;
}

/* Lets the pods of an ill node leave, if its zone's turn has come. */
static void let_leave(struct node_lifecycle *l, const char *name, const struct json *node,
                      struct watched *w)
{
    struct zone *z = zone_of(l, node);
    uint64_t now = loop_now_ms(l->env.loop), pause = node_health_pause_ms(&z->health);
    if (l->all_ill || !is_ill(node)) {
        w->evicts = false;
    } else if (!w->evicts && pause && z->next_ms <= now) {
        w->evicts = true;
        z->next_ms = now + pause;
        log_info("pods have to leave a node", "node=%s", name);
    }
}

static void look_at(void *ctx, const char *name, const struct json *node)
{
    struct node_lifecycle *l = ctx;
    if (!node_health_has_kubelet(node)) {
        return;
    }
    struct watched *w = watched_get(l, name);
    w->silent = loop_now_ms(l->env.loop) - w->heard_ms >= l->grace_ms;
    let_leave(l, name, node, w);
    add_key(l, KEY_NODE, name);
}

static void look(void *ctx)
{
    struct node_lifecycle *l = ctx;
    count_zones(l);
    informer_each(l->nodes, look_at, l);
    loop_timer_arm(l->timer, l->look_ms);
}

/* ---- a node ---- */

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "write the health of a node", text);
    } else {
        work_done(w);
    }
}

static void said(struct node_lifecycle *l, const struct json *node, const char *reason,
                 const char *what)
{
    CLEANUP_FREE char *text = xasprintf("Node %s %s", obj_name(node), what);
    recorder_event(l->env.recorder, "v1", "Node", node, EVENT_NORMAL, reason, text);
}

static void on_node(struct node_lifecycle *l, struct work *w, const char *name)
{
    const struct json *now = informer_get(l->nodes, name);
    const struct watched *seen = smap_get(&l->watched, name);
    if (!now || !seen || !node_health_has_kubelet(now)) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *node = json_clone(now);
    if (seen->silent && node_health_mark_unknown(node, time_wall_ms())) {
        CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, name, "status");
        log_warn("kubelet is silent", "node=%s", name);
        said(l, node, "NodeNotReady", "status is now: NodeNotReady");
        work_request(w, "PUT", path, node, written);
    } else if (node_health_set_taints(node, seen->evicts, time_wall_ms())) {
        CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, name, NULL);
        work_request(w, "PUT", path, node, written);
    } else {
        work_done(w);
    }
}

/* ---- a pod ---- */

static void left(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "end a pod of an ill node", text);
    } else {
        work_done(w);
    }
}

static char *pod_path(const struct json *pod, const char *part)
{
    return api_path("v1", "pods", obj_namespace(pod), obj_name(pod), part);
}

/* Services send no more to a pod whose node does not answer. */
static void send_not_ready(struct work *w, const struct json *pod)
{
    CLEANUP_FREE char *path = pod_path(pod, "status");
    CLEANUP(json_free) struct json *patch = json_object();
    char now[TIME_TEXT_SIZE];
    time_format_s(time_wall_ms(), now);
    json_set_string(json_ensure_object(patch, "metadata"), "uid", obj_uid(pod));
    struct json *c = json_append(
        json_ensure_array(json_ensure_object(patch, "status"), "conditions"), json_object());
    json_set_string(c, "type", "Ready");
    json_set_string(c, "status", "False");
    json_set_string(c, "reason", "NodeNotReady");
    json_set_string(c, "lastTransitionTime", now);
    work_request_as(w, "PATCH", path, NULL, STRATEGIC, patch, left);
}

static void send_leave(struct node_lifecycle *l, struct work *w, const struct json *pod)
{
    CLEANUP_FREE char *path = pod_path(pod, NULL);
    CLEANUP(json_free) struct json *options = json_object();
    CLEANUP_FREE char *text =
        xasprintf("Marking for deletion Pod %s/%s", obj_namespace(pod), obj_name(pod));
    recorder_event(l->env.recorder, "v1", "Pod", pod, EVENT_NORMAL, "TaintManagerEviction", text);
    json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(pod));
    work_request(w, "DELETE", path, options, left);
}

static const char *node_of(const struct json *pod)
{
    return json_get_text(json_get(pod, "spec"), "nodeName");
}

static void on_pod(struct node_lifecycle *l, struct work *w, const char *key)
{
    const struct json *pod = informer_get(l->pods, key);
    const struct json *node = pod ? informer_get(l->nodes, node_of(pod)) : NULL;
    if (!node || obj_is_terminating(pod) || !node_health_has_kubelet(node)) {
        work_done(w);
        return;
    }
    int64_t at = node_health_leave_ms(pod, node), now = time_wall_ms();
    if (at >= 0 && at <= now) {
        send_leave(l, w, pod);
    } else if (!l->all_ill && node_health_state(node) == NODE_UNKNOWN &&
               condition_is_true(pod, "Ready")) {
        send_not_ready(w, pod);
    } else if (at > now) {
        work_wait(w, (uint64_t) (at - now));
    } else {
        work_done(w);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    if (*key == KEY_NODE) {
        on_node(ctx, w, key + 2);
    } else {
        on_pod(ctx, w, key + 2);
    }
}

/* ---- events ---- */

struct search {
    struct node_lifecycle *l;
    const char *node;
};

static void add_if_there(void *ctx, const char *key, const struct json *pod)
{
    const struct search *s = ctx;
    if (streq(node_of(pod), s->node)) {
        add_key(s->l, KEY_POD, key);
    }
}

static bool concerns_pods(const struct json *old, const struct json *node)
{
    return !old || node_health_state(old) != node_health_state(node) ||
           json_count(json_path(old, "spec", "taints", NULL)) !=
               json_count(json_path(node, "spec", "taints", NULL)) ||
           (json_path(node, "spec", "taints", NULL) &&
            !json_equal(json_path(old, "spec", "taints", NULL),
                        json_path(node, "spec", "taints", NULL)));
}

static void node_changed(void *ctx, const char *key, const struct json *old,
                         const struct json *node)
{
    struct node_lifecycle *l = ctx;
    if (!node_health_has_kubelet(node)) {
        return;
    }
    struct watched *w = watched_get(l, key);
    /* What this controller writes leaves the heartbeat as it is. */
    hear(l, w, &w->heartbeat, json_get_text(condition_find(node, "Ready"), "lastHeartbeatTime"));
    if (!is_ill(node)) {
        w->evicts = false;
    } else if (!old) {
        struct json *copy = json_clone(node);
        /* An earlier leader has decided: the taint is there. */
        w->evicts = !node_health_set_taints(copy, true, time_wall_ms());
        json_free(copy);
    }
    add_key(l, KEY_NODE, key);
    if (concerns_pods(old, node)) {
        struct search s = {l, key};
        informer_each(l->pods, add_if_there, &s);
    }
}

static void node_deleted(void *ctx, const char *key, const struct json *node)
{
    struct node_lifecycle *l = ctx;
    (void) smap_remove(&l->watched, key);
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    struct node_lifecycle *l = ctx;
    const struct json *node = informer_get(l->nodes, node_of(pod));
    if (node && (json_count(json_path(node, "spec", "taints", NULL)) || is_ill(node))) {
        add_key(l, KEY_POD, key);
    }
}

static void lease_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *lease)
{
    struct node_lifecycle *l = ctx;
    const char *name = str_has_prefix(key, LEASES) ? key + strlen(LEASES) : NULL;
    struct watched *w = name ? smap_get(&l->watched, name) : NULL;
    if (w) {
        hear(l, w, &w->lease, json_get_text(json_get(lease, "spec"), "renewTime"));
    }
}

static void ignored(void *ctx, const char *key, const struct json *obj)
{
    (void) ctx;
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    const struct node_lifecycle_config *cfg = config;
    struct node_lifecycle *l = NEW(struct node_lifecycle);
    l->env = *env;
    l->grace_ms = cfg->grace_s ? cfg->grace_s * UINT64_C(1000) : NODE_HEALTH_GRACE_MS;
    l->look_ms = MIN(LOOK_MS, l->grace_ms / 8);
    smap_init(&l->watched, watched_free);
    smap_init(&l->zones, free);
    l->timer = loop_timer_new(env->loop, look, l);
    *ret = l;
    return 0;
}

static void synced(void *state)
{
    look(state);
}

static void stop(void *state)
{
    struct node_lifecycle *l = state;
    loop_timer_free(l->timer);
    smap_done(&l->watched);
    smap_done(&l->zones);
    free(l);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "nodes",
     .informer = CONTROLLER_INFORMER(struct node_lifecycle, nodes),
     .changed = node_changed,
     .deleted = node_deleted},
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct node_lifecycle, pods),
     .changed = pod_changed,
     .deleted = ignored},
    {.api_version = "coordination.k8s.io/v1",
     .plural = "leases",
     .changed = lease_changed,
     .deleted = ignored,
     .transient = true},
};

const struct controller node_lifecycle_controller = {
    .name = "node_lifecycle",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .start = start,
    .synced = synced,
    .reconcile = reconcile,
    .stop = stop,
};
