/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/disruption.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "client/discovery.h"
#include "controller/obj.h"
#include "controllers/lifecycle/disruption_plan.h"

#define POLICY "policy/v1"
#define SCALE_AGE_MS 10000

/* The replicas of an owner that is not watched. */
struct read_scale {
    int64_t replicas; /* Negative: there is no such number. */
    uint64_t until_ms;
};

struct disruptions {
    struct controller_env env;
    struct informer *budgets, *pods, *owners[DISRUPTION_KINDS];
    struct smap scales; /* By uid of the owner; 'struct read_scale'. */
    struct discovery *kinds;
    uint64_t kinds_until_ms;
    struct discovery_call *asking;
    struct smap waiting; /* Keys that are added when the kinds are known. */
    struct smap asked;   /* Key in work to the uid of the owner that it reads. */
    /* Of the plan that is being made: */
    const struct json *missing; /* The reference whose replicas have to be read. */
    bool by_clock;              /* An owner is not watched. */
};

/* ---- owners that are not watched ---- */

static int get_scale(void *ctx, const char *ns, const struct json *ref, int64_t *ret)
{
    struct disruptions *d = ctx;
    const struct read_scale *s = smap_get(&d->scales, json_get_text(ref, "uid"));
    d->by_clock = true;
    if (!s || s->until_ms <= loop_now_ms(d->env.loop)) {
        d->missing = ref;
        return -EAGAIN;
    }
    if (s->replicas < 0) {
        return -ENOENT;
    }
    *ret = s->replicas;
    return 0;
}

static void keep_scale(struct disruptions *d, const char *uid, int64_t replicas)
{
    struct read_scale *s = NEW(struct read_scale);
    struct smap_entry *e;
    uint64_t now = loop_now_ms(d->env.loop);
    /* The oldest come first. */
    for (bool old = true; old && smap_size(&d->scales);) {
        old = false;
        SMAP_FOREACH (e, &d->scales) {
            old = ((struct read_scale *) e->value)->until_ms <= now;
            break;
        }
        if (old) {
            (void) smap_remove(&d->scales, e->key);
        }
    }
    s->replicas = replicas;
    s->until_ms = now + SCALE_AGE_MS;
    (void) smap_remove(&d->scales, uid);
    smap_set(&d->scales, uid, s);
}

static void kinds_known(void *ctx, int error, const char *text, struct discovery *kinds)
{
    struct disruptions *d = ctx;
    struct smap_entry *e;
    d->asking = NULL;
    if (error == 0) {
        discovery_free(d->kinds);
        d->kinds = kinds;
    }
    d->kinds_until_ms = loop_now_ms(d->env.loop) + SCALE_AGE_MS;
    SMAP_FOREACH (e, &d->waiting) {
        workqueue_add(d->env.queue, e->key);
    }
    smap_clear(&d->waiting);
}

static void reconcile(void *ctx, struct work *w, const char *key);

static void scale_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct disruptions *d = ctx;
    CLEANUP_FREE char *asked = smap_take(&d->asked, work_key(w));
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the replicas of the owner of a pod", text);
        return;
    }
    /* Another object may have that name by now. */
    bool same = error == 0 && streq(obj_uid(obj), asked);
    keep_scale(d, asked, same ? json_get_int_or(json_path(obj, "spec", "replicas", NULL), 0) : -1);
    reconcile(d, w, work_key(w));
}

/* Reads the replicas of the object that 'ref' names, or first the kinds of the server. */
static void read_scale(struct disruptions *d, struct work *w, const char *ns,
                       const struct json *ref)
{
    const char *version = json_get_text(ref, "apiVersion");
    const struct api_kind *k = d->kinds ? api_registry_by_name(discovery_registry(d->kinds),
                                                               version, json_get_text(ref, "kind"))
                                        : NULL;
    if (k && k->namespaced) {
        CLEANUP_FREE char *path =
            api_path(version, k->plural, ns, json_get_text(ref, "name"), "scale");
        smap_set(&d->asked, work_key(w), xstrdup(json_get_text(ref, "uid")));
        work_request(w, "GET", path, NULL, scale_read);
    } else if (d->kinds_until_ms > loop_now_ms(d->env.loop)) {
        keep_scale(d, json_get_text(ref, "uid"), -1);
        reconcile(d, w, work_key(w));
    } else {
        if (!d->asking) {
            d->asking = discovery_fetch(d->env.client, kinds_known, d);
        }
        smap_set(&d->waiting, work_key(w), NULL);
        work_wait(w, SCALE_AGE_MS);
    }
}

/* ---- a budget ---- */

struct selected {
    struct disruptions *d;
    const char *ns;
    const struct json *budget;
    const struct json **pods;
    size_t n, room;
};

static bool is_in(const char *key, const char *ns)
{
    size_t size = strlen(ns);
    return strncmp(key, ns, size) == 0 && key[size] == '/';
}

static void select_pod(void *ctx, const char *key, const struct json *pod)
{
    struct selected *s = ctx;
    if (is_in(key, s->ns) && disruption_selects(s->budget, pod)) {
        if (s->n == s->room) {
            s->room = MAX(s->room * 2, 16);
            s->pods = xreallocarray(s->pods, s->room, sizeof(*s->pods));
        }
        s->pods[s->n++] = pod;
    }
}

static const struct json *find_owner(void *ctx, size_t kind, const char *ns, const char *name)
{
    struct disruptions *d = ctx;
    CLEANUP_FREE char *key = xasprintf("%s/%s", ns, name);
    return informer_get(d->owners[kind], key);
}

static void say(struct disruptions *d, const struct json *budget, const char *reason,
                const char *text)
{
    recorder_event(d->env.recorder, POLICY, "PodDisruptionBudget", budget, EVENT_WARNING, reason,
                   text);
}

static void wait_or_end(struct work *w, int64_t wait_ms)
{
    if (wait_ms > 0) {
        work_wait(w, (uint64_t) wait_ms);
    } else {
        work_done(w);
    }
}

/* Written: what the budget has to wait for is found when the changed budget is looked at again. */
static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "write the status of a PodDisruptionBudget", text);
    } else {
        work_done(w);
    }
}

static void send_status(struct work *w, const struct json *budget)
{
    CLEANUP_FREE char *path =
        api_path(POLICY, "poddisruptionbudgets", obj_namespace(budget), obj_name(budget), "status");
    work_request(w, "PUT", path, budget, written);
}

static void finish(struct disruptions *d, struct work *w, const struct disruption *plan,
                   struct json *budget, size_t n_pods)
{
    int64_t now = time_wall_ms(), wait_ms = d->by_clock ? SCALE_AGE_MS : 0;
    if (plan->recheck_ms) {
        int64_t left = MAX(plan->recheck_ms - now, 1);
        wait_ms = wait_ms ? MIN(wait_ms, left) : left;
    }
    if (!disruption_write(plan, budget, now)) {
        wait_or_end(w, wait_ms);
        return;
    }
    if (plan->unmanaged) {
        say(d, budget, "UnmanagedPods",
            "Pods selected by this PodDisruptionBudget have no controller and do not count for "
            "maxUnavailable or a percentage. To count these pods, set spec.minAvailable to a "
            "number.");
    } else if (!n_pods) {
        say(d, budget, "NoPods", "No matching pods found");
    }
    send_status(w, budget);
}

static void fail(struct disruptions *d, struct work *w, struct json *budget, const char *why)
{
    CLEANUP_FREE char *text = xasprintf("Failed to calculate the number of expected pods: %s", why);
    if (!disruption_write_failure(why, budget, time_wall_ms())) {
        wait_or_end(w, d->by_clock ? SCALE_AGE_MS : 0);
        return;
    }
    say(d, budget, "CalculateExpectedPodCountFailed", text);
    send_status(w, budget);
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct disruptions *d = ctx;
    const struct json *now = informer_get(d->budgets, key);
    const struct disruption_owners owners = {.find = find_owner, .scale = get_scale, .ctx = d};
    struct disruption plan = {0};
    struct err e = {0};
    if (!now || obj_is_terminating(now)) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *budget = json_clone(now);
    struct selected s = {.d = d, .ns = obj_namespace(budget), .budget = budget};
    d->by_clock = false;
    informer_each(d->pods, select_pod, &s);
    int r = disruption_plan(budget, s.pods, s.n, &owners, time_wall_ms(), &plan, &e);
    if (r == -EAGAIN) {
        read_scale(d, w, s.ns, d->missing);
    } else if (r < 0) {
        fail(d, w, budget, e.text);
    } else {
        finish(d, w, &plan, budget, s.n);
    }
    disruption_done(&plan);
    free(s.pods);
}

/* ---- events ---- */

struct concerned {
    struct disruptions *d;
    const char *ns;
    const struct json *old, *pod; /* Both NULL: all budgets of the namespace. */
};

static void add_concerned(void *ctx, const char *key, const struct json *budget)
{
    const struct concerned *c = ctx;
    if (is_in(key, c->ns) &&
        ((!c->old && !c->pod) || (c->old && disruption_selects(budget, c->old)) ||
         (c->pod && disruption_selects(budget, c->pod)))) {
        workqueue_add(c->d->env.queue, key);
    }
}

static void add_budgets(struct disruptions *d, const char *ns, const struct json *old,
                        const struct json *pod)
{
    struct concerned c = {d, ns, old, pod};
    informer_each(d->budgets, add_concerned, &c);
}

static void budget_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct disruptions *d = ctx;
    workqueue_add(d->env.queue, key);
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    add_budgets(ctx, obj_namespace(pod), old, pod);
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    add_budgets(ctx, obj_namespace(pod), pod, NULL);
}

static void owner_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    if (!old || !json_equal(json_path(old, "spec", "replicas", NULL),
                            json_path(obj, "spec", "replicas", NULL))) {
        add_budgets(ctx, obj_namespace(obj), NULL, NULL);
    }
}

static void owner_deleted(void *ctx, const char *key, const struct json *obj)
{
    add_budgets(ctx, obj_namespace(obj), NULL, NULL);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct disruptions *d = NEW(struct disruptions);
    d->env = *env;
    smap_init(&d->scales, free);
    smap_init(&d->waiting, NULL);
    smap_init(&d->asked, free);
    *ret = d;
    return 0;
}

static void stop(void *state)
{
    struct disruptions *d = state;
    discovery_cancel(d->asking);
    discovery_free(d->kinds);
    smap_done(&d->scales);
    smap_done(&d->waiting);
    smap_done(&d->asked);
    free(d);
}

#define OWNER(version, name, number)                                         \
    {                                                                        \
        .api_version = version, .plural = name,                              \
        .informer = CONTROLLER_INFORMER(struct disruptions, owners[number]), \
        .changed = owner_changed, .deleted = owner_deleted                   \
    }
static const struct controller_watch watches[] = {
    {.api_version = POLICY,
     .plural = "poddisruptionbudgets",
     .informer = CONTROLLER_INFORMER(struct disruptions, budgets),
     .changed = budget_changed},
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct disruptions, pods),
     .changed = pod_changed,
     .deleted = pod_deleted},
    OWNER("v1", "replicationcontrollers", DISRUPTION_REPLICATION_CONTROLLER),
    OWNER("apps/v1", "replicasets", DISRUPTION_REPLICA_SET),
    OWNER("apps/v1", "statefulsets", DISRUPTION_STATEFUL_SET),
    OWNER("apps/v1", "deployments", DISRUPTION_DEPLOYMENT),
};

const struct controller disruption_controller = {
    .name = "disruption",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
