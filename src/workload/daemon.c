/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/daemon.h"

#include "api/node_match.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/revision.h"
#include "workload/rollout.h"

#define FIRST_DELAY_MS 1000
#define LAST_DELAY_MS 900000

struct failure {
    int64_t at_ms, delay_ms; /* When a pod last failed; the delay after it. */
};

/* A node, and the pods of the set on it. */
struct place {
    const struct json *node;
    struct workload_child **pods;
    size_t n, cap;
    bool wanted, stays;
};

struct daemon {
    const struct json *set, *spec;
    struct daemon_objects *objects;
    struct revisions revisions;
    struct place *places;
    int64_t min_ready_s, now_ms, surge, unavailable, desired;
    size_t created, deleted;
    struct workload_plan *plan;
    struct json *o;
};

void daemon_failures_init(struct daemon_failures *f)
{
    smap_init(&f->nodes, free);
}

void daemon_failures_done(struct daemon_failures *f)
{
    smap_done(&f->nodes);
}

/* ---- nodes ---- */

/* Taints that each pod of a DaemonSet tolerates. */
static struct json *own_tolerations(const struct json *spec)
{
    static const struct {
        const char *key, *effect;
        bool host_only;
    } list[] = {{"node.kubernetes.io/not-ready", "NoExecute", false},
                {"node.kubernetes.io/unreachable", "NoExecute", false},
                {"node.kubernetes.io/disk-pressure", "NoSchedule", false},
                {"node.kubernetes.io/memory-pressure", "NoSchedule", false},
                {"node.kubernetes.io/pid-pressure", "NoSchedule", false},
                {"node.kubernetes.io/unschedulable", "NoSchedule", false},
                {"node.kubernetes.io/network-unavailable", "NoSchedule", true}};
    const struct json *has = json_get(spec, "tolerations");
    struct json *all = has ? json_clone(has) : json_array();
    for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
        if (!list[i].host_only || json_get_bool(json_get(spec, "hostNetwork"), false)) {
            struct json *t = json_append(all, json_object());
            json_set_string(t, "key", list[i].key);
            json_set_string(t, "operator", "Exists");
            json_set_string(t, "effect", list[i].effect);
        }
    }
    return all;
}

bool daemon_wants(const struct json *set, const struct json *selector, const struct json *node,
                  bool *ret_stays)
{
    const struct json *spec = json_path(set, "spec", "template", "spec", NULL), *taint;
    const char *fixed = json_get_text(spec, "nodeName");
    bool wanted = true;
    *ret_stays = false;
    const struct json *labels = json_path(node, "metadata", "labels", NULL);
    if ((*fixed && !streq(fixed, obj_name(node))) || !match_has_labels(selector, labels) ||
        !match_node_required(spec, labels, obj_name(node))) {
        return false;
    }
    CLEANUP(json_free) struct json *tolerations = own_tolerations(spec);
    *ret_stays = true;
    JSON_FOREACH (taint, json_path(node, "spec", "taints", NULL)) {
        bool evicts = match_has_effect(taint, "NoExecute");
        if ((evicts || match_has_effect(taint, "NoSchedule")) &&
            !match_tolerates(tolerations, taint)) {
            wanted = false;
            *ret_stays &= !evicts;
        }
    }
    return wanted;
}

bool daemon_node_differs(const struct json *a, const struct json *b)
{
    const struct json *lists[][2] = {
        {json_path(a, "metadata", "labels", NULL), json_path(b, "metadata", "labels", NULL)},
        {json_path(a, "spec", "taints", NULL), json_path(b, "spec", "taints", NULL)}};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (!lists[i][0] != !lists[i][1] ||
            (lists[i][0] && !json_equal(lists[i][0], lists[i][1]))) {
            return true;
        }
    }
    return false;
}

const char *daemon_node_of(const struct json *pod)
{
    const struct json *term, *field;
    if (*workload_pod_node(pod)) {
        return workload_pod_node(pod);
    }
    JSON_FOREACH (term, json_path(pod, "spec", "affinity", "nodeAffinity",
                                  "requiredDuringSchedulingIgnoredDuringExecution",
                                  "nodeSelectorTerms", NULL)) {
        JSON_FOREACH (field, json_get(term, "matchFields")) {
            if (streq(json_get_text(field, "key"), "metadata.name")) {
                const char *name = json_get_string(json_at(json_get(field, "values"), 0));
                return name ? name : "";
            }
        }
    }
    return "";
}

/* ---- pods ---- */

static bool is_updated(const struct daemon *d, const struct workload_child *pod)
{
    return streq_null(obj_label(pod->obj, REVISION_LABEL), d->revisions.update_hash);
}

static bool is_available(struct daemon *d, const struct workload_child *pod)
{
    int64_t at_ms = 0;
    bool ok = workload_pod_is_available(pod->obj, d->min_ready_s, d->now_ms, &at_ms);
    if (at_ms) {
        workload_plan_recheck(d->plan, at_ms);
    }
    return ok;
}

static void delete_pod(struct daemon *d, struct workload_child *pod)
{
    if (pod->going || d->deleted >= DAEMON_BURST) {
        return;
    }
    struct workload_write *w =
        workload_plan_delete(d->plan, WORKLOAD_MAIN, &workload_pods, pod->obj);
    w->reason = "SuccessfulDelete";
    w->message = xasprintf("Deleted pod: %s", obj_name(pod->obj));
    w->fail_reason = "FailedDelete";
    w->fail_message = xstrdup("Error deleting: ");
    pod->going = true;
    d->deleted++;
}

static void bind_to(struct json *spec, const char *node)
{
    struct json *affinity = json_ensure_object(spec, "affinity");
    struct json *of_node = json_ensure_object(affinity, "nodeAffinity");
    struct json *required =
        json_set(of_node, "requiredDuringSchedulingIgnoredDuringExecution", json_object());
    struct json *term =
        json_append(json_ensure_array(required, "nodeSelectorTerms"), json_object());
    struct json *field = json_append(json_ensure_array(term, "matchFields"), json_object());
    json_set_string(field, "key", "metadata.name");
    json_set_string(field, "operator", "In");
    json_append(json_ensure_array(field, "values"), json_string(node));
}

static void create_pod(struct daemon *d, const struct json *node)
{
    if (d->created++ >= DAEMON_BURST) {
        return;
    }
    struct json *pod = workload_pod_from_template(&workload_daemon_sets, d->set,
                                                  json_get(d->spec, "template"), NULL);
    struct json *labels = json_ensure_object(json_get(pod, "metadata"), "labels");
    struct json *spec = json_get(pod, "spec");
    json_set_string(labels, REVISION_LABEL, d->revisions.update_hash);
    json_set(spec, "tolerations", own_tolerations(spec));
    bind_to(spec, obj_name(node));
    struct workload_write *w =
        workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_CREATE, &workload_pods, NULL, pod);
    w->reason = "SuccessfulCreate";
    w->message = xstrdup("Created pod: ");
    w->names = true;
    w->fail_reason = "FailedCreate";
    w->fail_message = xstrdup("Error creating: ");
}

/* ---- places ---- */

/* The oldest first. */
static int compare_age(const void *x, const void *y)
{
    const struct workload_child *a = *(struct workload_child *const *) x;
    const struct workload_child *b = *(struct workload_child *const *) y;
    int64_t a_ms = obj_created_ms(a->obj), b_ms = obj_created_ms(b->obj);
    return a_ms != b_ms ? (a_ms < b_ms ? -1 : 1) : strcmp(obj_name(a->obj), obj_name(b->obj));
}

/* Sorts the pods by node.  Those of nodes that are gone end, unless they have run there: those are
 * the garbage collector's. */
static void load_places(struct daemon *d)
{
    struct smap by_name;
    smap_init(&by_name, NULL);
    d->places = xcalloc(d->objects->n_nodes + 1, sizeof *d->places);
    for (size_t i = 0; i < d->objects->n_nodes; i++) {
        struct place *p = &d->places[i];
        p->node = d->objects->nodes[i];
        p->wanted = daemon_wants(d->set, d->objects->selector, p->node, &p->stays);
        d->desired += p->wanted;
        smap_set(&by_name, obj_name(p->node), p);
    }
    for (size_t i = 0; i < d->objects->n_pods; i++) {
        struct workload_child *pod = &d->objects->pods[i];
        struct place *p = smap_get(&by_name, daemon_node_of(pod->obj));
        if (p) {
            p->pods = grow(p->pods, &p->cap, p->n + 1, sizeof(struct workload_child *));
            p->pods[p->n++] = pod;
        } else if (!*workload_pod_node(pod->obj) && !obj_is_terminating(d->set)) {
            delete_pod(d, pod);
        }
    }
    for (size_t i = 0; i < d->objects->n_nodes; i++) {
        struct place *p = &d->places[i];
        if (p->n) {
            qsort(p->pods, p->n, sizeof(struct workload_child *), compare_age);
        }
    }
    smap_done(&by_name);
}

/* ---- one pod on each node ---- */

/* Whether a failed pod of the node may be replaced yet. */
static bool may_replace(struct daemon *d, const struct json *node)
{
    struct failure *f = smap_get(&d->objects->failures->nodes, obj_name(node));
    if (f && d->now_ms < f->at_ms + f->delay_ms) {
        workload_plan_recheck(d->plan, f->at_ms + f->delay_ms);
        return false;
    }
    if (!f) {
        f = NEW(struct failure);
        smap_set(&d->objects->failures->nodes, obj_name(node), f);
    }
    bool calm = !f->delay_ms || d->now_ms > f->at_ms + 2 * LAST_DELAY_MS;
    f->delay_ms = calm ? FIRST_DELAY_MS : MIN(2 * f->delay_ms, LAST_DELAY_MS);
    f->at_ms = d->now_ms;
    return true;
}

/* Removes pods that have ended. */
static void drop_ended(struct daemon *d, struct place *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct workload_child *pod = p->pods[i];
        bool failed = workload_pod_has_phase(pod->obj, "Failed");
        if (pod->going) {
            continue;
        }
        if (failed && may_replace(d, p->node)) {
            workload_plan_say(d->plan, true, "FailedDaemonPod",
                              "Found failed daemon pod %s/%s on node %s, will try to kill it",
                              obj_namespace(pod->obj), obj_name(pod->obj), obj_name(p->node));
            delete_pod(d, pod);
        } else if (workload_pod_has_phase(pod->obj, "Succeeded")) {
            delete_pod(d, pod);
        }
    }
}

/* Keeps the oldest pod, or with a surge the oldest of the present template and of another one. */
static void drop_extra(struct daemon *d, struct place *p)
{
    struct workload_child *fresh = NULL, *old = NULL;
    for (size_t i = 0; i < p->n; i++) {
        struct workload_child *pod = p->pods[i];
        bool updated = is_updated(d, pod);
        if (!workload_pod_is_active(pod)) {
            continue;
        }
        if (!fresh && !old && !d->surge) {
            old = fresh = pod;
        } else if (d->surge && updated && !fresh) {
            fresh = pod;
        } else if (d->surge && !updated && !old) {
            old = pod;
        } else {
            delete_pod(d, pod);
        }
    }
    if (d->surge && fresh && old && (!workload_pod_is_ready(old->obj) || is_available(d, fresh))) {
        delete_pod(d, old);
    }
}

static void manage(struct daemon *d)
{
    for (size_t i = 0; i < d->objects->n_nodes; i++) {
        struct place *p = &d->places[i];
        if (!p->stays) {
            for (size_t k = 0; k < p->n; k++) {
                delete_pod(d, p->pods[k]);
            }
        } else if (p->n) {
            /* A pod on its way out keeps the place until it is gone. */
            drop_ended(d, p);
            drop_extra(d, p);
        } else if (p->wanted) {
            create_pod(d, p->node);
        }
    }
}

/* ---- replacement ---- */

/* The pods of the present template, and of another one; false: there is more than one of a kind. */
static bool split(const struct daemon *d, const struct place *p, struct workload_child **ret_new,
                  struct workload_child **ret_old)
{
    *ret_new = *ret_old = NULL;
    for (size_t i = 0; i < p->n; i++) {
        struct workload_child *pod = p->pods[i];
        struct workload_child **slot = is_updated(d, pod) ? ret_new : ret_old;
        if (pod->going) {
            continue;
        }
        if (*slot) {
            return false;
        }
        *slot = pod;
    }
    return true;
}

static void replace_within(struct daemon *d)
{
    int64_t missing = 0;
    for (size_t i = 0; i < d->objects->n_nodes; i++) {
        struct place *p = &d->places[i];
        struct workload_child *fresh, *old, *one;
        if (!p->wanted && !p->n) {
            continue;
        }
        bool simple = split(d, p, &fresh, &old) && !fresh != !old;
        one = fresh ? fresh : old;
        missing += !simple || !is_available(d, one);
        if (simple && old && !is_available(d, old)) {
            delete_pod(d, old); /* Nothing is lost. */
        }
    }
    for (size_t i = 0; i < d->objects->n_nodes && missing < d->unavailable; i++) {
        struct workload_child *fresh, *old;
        if (split(d, &d->places[i], &fresh, &old) && old && !fresh && is_available(d, old)) {
            delete_pod(d, old);
            missing++;
        }
    }
}

static void replace_beside(struct daemon *d)
{
    int64_t surged = 0;
    for (size_t i = 0; i < d->objects->n_nodes; i++) {
        struct place *p = &d->places[i];
        struct workload_child *fresh, *old;
        if (!split(d, p, &fresh, &old)) {
            surged++;
        } else if (fresh && old && is_available(d, fresh)) {
            delete_pod(d, old);
        } else if (fresh && old) {
            surged++;
        }
    }
    for (size_t i = 0; i < d->objects->n_nodes; i++) {
        struct place *p = &d->places[i];
        struct workload_child *fresh, *old;
        if (!p->wanted || !split(d, p, &fresh, &old) || !old || fresh) {
            continue;
        }
        bool healthy = is_available(d, old);
        if (!healthy || surged < d->surge) {
            create_pod(d, p->node);
            surged += healthy;
        }
    }
}

/* ---- the status ---- */

static void make_status(struct daemon *d)
{
    struct json *status = json_ensure_object(d->o, "status");
    int64_t current = 0, misplaced = 0, ready = 0, available = 0, updated = 0;
    for (size_t i = 0; i < d->objects->n_nodes; i++) {
        struct place *p = &d->places[i];
        if (!p->n) {
            continue;
        }
        misplaced += !p->wanted;
        if (p->wanted) {
            const struct workload_child *oldest = p->pods[0];
            current++;
            ready += workload_pod_is_ready(oldest->obj);
            available += is_available(d, oldest);
            updated += is_updated(d, oldest);
        }
    }
    json_set_int(status, "desiredNumberScheduled", d->desired);
    json_set_int(status, "currentNumberScheduled", current);
    json_set_int(status, "numberMisscheduled", misplaced);
    json_set_int(status, "numberReady", ready);
    json_set_int(status, "observedGeneration", obj_generation(d->set));
    const struct {
        const char *key;
        int64_t n;
    } counts[] = {{"updatedNumberScheduled", updated},
                  {"numberAvailable", available},
                  {"numberUnavailable", d->desired - available}};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i].n) {
            json_set_int(status, counts[i].key, counts[i].n);
        } else {
            (void) json_remove(status, counts[i].key);
        }
    }
}

/* ---- the plan ---- */

static bool lives(void *ctx, const struct json *revision)
{
    const struct daemon *d = ctx;
    for (size_t i = 0; i < d->objects->n_pods; i++) {
        if (streq_null(obj_label(d->objects->pods[i].obj, REVISION_LABEL),
                       revision_hash(revision))) {
            return true;
        }
    }
    return false;
}

static void load_bounds(struct daemon *d)
{
    const struct json *strategy = json_get(d->spec, "updateStrategy");
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    if (streq(json_get_text(strategy, "type"), "OnDelete")) {
        return;
    }
    d->surge = rollout_share(json_get(rolling, "maxSurge"), d->desired, true);
    d->unavailable = rollout_share(json_get(rolling, "maxUnavailable"), d->desired, true);
    if (!d->surge && !d->unavailable) {
        d->unavailable = 1;
    }
}

void daemon_plan(const struct json *set, struct daemon_objects *objects, int64_t now_ms,
                 struct workload_plan *ret)
{
    const struct json *spec = json_get(set, "spec");
    struct daemon d = {.set = set,
                       .spec = spec,
                       .objects = objects,
                       .min_ready_s = json_get_int_or(json_get(spec, "minReadySeconds"), 0),
                       .now_ms = now_ms,
                       .plan = ret,
                       .o = json_clone(set)};
    ret->status = d.o;
    objects->n_pods = workload_claim(ret, &workload_daemon_sets, set, json_get(spec, "selector"),
                                     &workload_pods, objects->pods, objects->n_pods);
    revisions_load(ret, &workload_daemon_sets, set, objects->revisions, objects->n_revisions,
                   &d.revisions);
    load_places(&d);
    load_bounds(&d);
    make_status(&d);
    if (!obj_is_terminating(set)) {
        manage(&d);
        bool rolls = d.surge || d.unavailable;
        if (rolls && !d.created && !d.deleted && d.unavailable && !d.surge) {
            replace_within(&d);
        } else if (rolls && !d.created && !d.deleted && d.surge) {
            replace_beside(&d);
        }
        revisions_clean_up(ret, set, &d.revisions, lives, &d);
    }
    for (size_t i = 0; i < objects->n_nodes; i++) {
        free(d.places[i].pods);
    }
    free(d.places);
    revisions_done(&d.revisions);
}
