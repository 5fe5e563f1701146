/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/stateful.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/revision.h"
#include "workload/rollout.h"

#define POD_NAME "statefulset.kubernetes.io/pod-name"
#define POD_INDEX "apps.kubernetes.io/pod-index"

struct stateful {
    const struct json *set, *spec;
    struct stateful_objects *objects;
    struct revisions revisions;
    const struct json *current; /* The revision of pods that are not replaced yet; NULL: unknown. */
    char *current_name;
    int64_t first, replicas, partition, min_ready_s, now_ms;
    bool ordered, rolling;
    struct workload_child **slots; /* By number, from 'first'; NULL: there is no pod. */
    struct workload_plan *plan;
    struct json *o;
};

static int64_t number(const struct json *o, const char *key, int64_t dflt)
{
    return json_get_int_or(json_get(o, key), dflt);
}

int64_t stateful_ordinal(const char *set, const char *pod)
{
    size_t size = strlen(set);
    uint64_t n;
    if (strncmp(pod, set, size) != 0 || pod[size] != '-' ||
        str_to_u64(pod + size + 1, INT32_MAX, &n) < 0) {
        return -1;
    }
    return (pod[size + 1] == '0' && pod[size + 2]) ? -1 : (int64_t) n;
}

/* ---- the state of pods ---- */

static const char *revision_of(const struct json *pod)
{
    const char *s = obj_label(pod, REVISION_LABEL);
    return s ? s : "";
}

static bool runs_ready(const struct workload_child *pod)
{
    return workload_pod_has_phase(pod->obj, "Running") && workload_pod_is_ready(pod->obj);
}

static bool is_available(struct stateful *s, const struct workload_child *pod)
{
    int64_t at_ms = 0;
    bool ok = workload_pod_has_phase(pod->obj, "Running") &&
              workload_pod_is_available(pod->obj, s->min_ready_s, s->now_ms, &at_ms);
    if (at_ms) {
        workload_plan_recheck(s->plan, at_ms);
    }
    return ok;
}

static bool has_ended(const struct workload_child *pod)
{
    return workload_pod_has_phase(pod->obj, "Failed") ||
           workload_pod_has_phase(pod->obj, "Succeeded");
}

/* Whether the pod never came up, or keeps failing. */
static bool is_stuck(const struct workload_child *pod)
{
    return workload_pod_has_phase(pod->obj, "Pending") ||
           (!workload_pod_is_ready(pod->obj) && workload_pod_restarts(pod->obj) > 0);
}

/* ---- claims ---- */

static char *claim_name(const struct stateful *s, const struct json *template, int64_t n)
{
    return xasprintf("%s-%s-%lld", obj_name(template), obj_name(s->set), (long long) n);
}

static const char *retention(const struct stateful *s, const char *when)
{
    return json_get_text(json_get(s->spec, "persistentVolumeClaimRetentionPolicy"), when);
}

static struct json *plain_ref(const struct workload_kind *kind, const struct json *owner)
{
    struct json *ref = json_object();
    json_set_string(ref, "apiVersion", kind->api_version);
    json_set_string(ref, "kind", kind->kind);
    json_set_string(ref, "name", obj_name(owner));
    json_set_string(ref, "uid", obj_uid(owner));
    return ref;
}

static struct json *make_claim(const struct stateful *s, const struct json *template,
                               const char *name)
{
    const struct json *labels = json_path(s->spec, "selector", "matchLabels", NULL);
    struct json *o =
        obj_new(workload_claims.api_version, workload_claims.kind, obj_namespace(s->set), name);
    struct json *meta = json_get(o, "metadata");
    const struct json *own = json_path(template, "metadata", "labels", NULL);
    const struct json *annotations = json_path(template, "metadata", "annotations", NULL);
    struct json *to = json_set(meta, "labels", own ? json_clone(own) : json_object());
    for (size_t i = 0; i < json_count(labels); i++) {
        json_set(to, json_key_at(labels, i), json_clone(json_at(labels, i)));
    }
    if (annotations) {
        json_set(meta, "annotations", json_clone(annotations));
    }
    if (streq(retention(s, "whenDeleted"), "Delete")) {
        json_append(json_ensure_array(meta, "ownerReferences"),
                    plain_ref(&workload_stateful_sets, s->set));
    }
    const struct json *spec = json_get(template, "spec");
    json_set(o, "spec", spec ? json_clone(spec) : json_object());
    return o;
}

static bool owned_by_pod(const struct json *claim)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(claim, "metadata", "ownerReferences", NULL)) {
        if (obj_ref_is(ref, "", "Pod")) {
            return true;
        }
    }
    return false;
}

/* Creates the claims of pod 'n' that are missing; false: one of an earlier pod still goes. */
static bool ensure_claims(struct stateful *s, int64_t n)
{
    const struct json *template;
    JSON_FOREACH (template, json_get(s->spec, "volumeClaimTemplates")) {
        CLEANUP_FREE char *name = claim_name(s, template, n);
        const struct json *claim = s->objects->claim(s->objects->ctx, name);
        if (claim && (obj_is_terminating(claim) || owned_by_pod(claim))) {
            workload_plan_recheck(s->plan, s->now_ms + 1000);
            return false;
        }
        if (!claim) {
            struct workload_write *w =
                workload_plan_add(s->plan, WORKLOAD_FIRST, WORKLOAD_CREATE, &workload_claims, name,
                                  make_claim(s, template, name));
            w->reason = "SuccessfulCreate";
            w->message = xasprintf("create Claim %s Pod %s-%lld in StatefulSet %s success", name,
                                   obj_name(s->set), (long long) n, obj_name(s->set));
            w->fail_reason = "FailedCreate";
            w->fail_message = xasprintf("create Claim %s for StatefulSet %s failed error: ", name,
                                        obj_name(s->set));
        }
    }
    return true;
}

/* The claims of a pod that is removed for good go with it, if the set says so. */
static void hand_claims_over(struct stateful *s, const struct workload_child *pod, int64_t n)
{
    const struct json *template;
    if (!streq(retention(s, "whenScaled"), "Delete")) {
        return;
    }
    JSON_FOREACH (template, json_get(s->spec, "volumeClaimTemplates")) {
        CLEANUP_FREE char *name = claim_name(s, template, n);
        const struct json *claim = s->objects->claim(s->objects->ctx, name);
        if (!claim || owned_by_pod(claim)) {
            continue;
        }
        struct json *o = json_clone(claim), *meta = json_get(o, "metadata");
        json_set_string(o, "apiVersion", workload_claims.api_version);
        json_set_string(o, "kind", workload_claims.kind);
        json_set(meta, "ownerReferences", json_array()); /* The set would keep it. */
        json_append(json_get(meta, "ownerReferences"), plain_ref(&workload_pods, pod->obj));
        (void) workload_plan_add(s->plan, WORKLOAD_FIRST, WORKLOAD_UPDATE, &workload_claims, name,
                                 o);
    }
}

/* ---- pods ---- */

static void set_volumes(const struct stateful *s, struct json *spec, int64_t n)
{
    struct json *list = json_ensure_array(spec, "volumes");
    const struct json *template;
    JSON_FOREACH (template, json_get(s->spec, "volumeClaimTemplates")) {
        CLEANUP_FREE char *name = claim_name(s, template, n);
        for (size_t i = json_count(list); i-- > 0;) {
            if (streq(json_get_text(json_at(list, i), "name"), obj_name(template))) {
                (void) json_remove_at(list, i);
            }
        }
        struct json *volume = json_append(list, json_object());
        json_set_string(volume, "name", obj_name(template));
        json_set_string(json_ensure_object(volume, "persistentVolumeClaim"), "claimName", name);
    }
    if (!json_count(list)) {
        (void) json_remove(spec, "volumes");
    }
}

/* Whether a new pod of this number has the earlier template. */
static bool gets_current(const struct stateful *s, int64_t n)
{
    return s->rolling && s->current && n < s->first + s->partition;
}

static struct json *make_pod(const struct stateful *s, int64_t n)
{
    bool old = gets_current(s, n);
    const struct json *template = old ? revision_template(s->current) : NULL;
    CLEANUP_FREE char *name = xasprintf("%s-%lld", obj_name(s->set), (long long) n);
    CLEANUP_FREE char *index = xasprintf("%lld", (long long) n);
    template = template ? template : json_get(s->spec, "template");
    struct json *pod = workload_pod_from_template(&workload_stateful_sets, s->set, template, name);
    struct json *labels = json_ensure_object(json_get(pod, "metadata"), "labels");
    struct json *spec = json_get(pod, "spec");
    json_set_string(labels, POD_NAME, name);
    json_set_string(labels, POD_INDEX, index);
    json_set_string(labels, REVISION_LABEL, old ? s->current_name : s->revisions.update_name);
    json_set_string(spec, "hostname", name);
    json_set_string(spec, "subdomain", json_get_text(s->spec, "serviceName"));
    set_volumes(s, spec, n);
    return pod;
}

static void create_pod(struct stateful *s, int64_t n)
{
    if (!ensure_claims(s, n)) {
        return;
    }
    struct json *pod = make_pod(s, n);
    const char *name = obj_name(pod);
    struct workload_write *w =
        workload_plan_add(s->plan, WORKLOAD_MAIN, WORKLOAD_CREATE, &workload_pods, name, pod);
    w->reason = "SuccessfulCreate";
    w->message = xasprintf("create Pod %s in StatefulSet %s successful", name, obj_name(s->set));
    w->fail_reason = "FailedCreate";
    w->fail_message =
        xasprintf("create Pod %s in StatefulSet %s failed error: ", name, obj_name(s->set));
}

static void delete_pod(struct stateful *s, struct workload_child *pod)
{
    const char *name = obj_name(pod->obj);
    struct workload_write *w =
        workload_plan_delete(s->plan, WORKLOAD_MAIN, &workload_pods, pod->obj);
    w->reason = "SuccessfulDelete";
    w->message = xasprintf("delete Pod %s in StatefulSet %s successful", name, obj_name(s->set));
    w->fail_reason = "FailedDelete";
    w->fail_message =
        xasprintf("delete Pod %s in StatefulSet %s failed error: ", name, obj_name(s->set));
    pod->going = true;
}

/* Creates and mends the pods of all numbers, from the first one up.  False: what follows has to
 * wait. */
static bool fill_slots(struct stateful *s)
{
    for (int64_t i = 0; i < s->replicas; i++) {
        struct workload_child *pod = s->slots[i];
        bool outdated = pod && s->rolling && i >= s->partition &&
                        !streq(revision_of(pod->obj), s->revisions.update_name);
        if (!pod) {
            create_pod(s, s->first + i);
        } else if (!pod->going && (has_ended(pod) || (outdated && is_stuck(pod)))) {
            delete_pod(s, pod);
        } else if (!pod->going && is_available(s, pod)) {
            continue;
        } else if (!pod->going && workload_pod_has_phase(pod->obj, "Pending")) {
            (void) ensure_claims(s, s->first + i);
        }
        if (s->ordered) {
            return false;
        }
    }
    return true;
}

static int compare_down(const void *x, const void *y)
{
    const struct workload_child *a = *(struct workload_child *const *) x;
    const struct workload_child *b = *(struct workload_child *const *) y;
    const char *a_name = obj_name(a->obj), *b_name = obj_name(b->obj);
    size_t a_size = strlen(a_name), b_size = strlen(b_name);
    return a_size != b_size ? (a_size > b_size ? -1 : 1) : strcmp(b_name, a_name);
}

/* Removes the pods whose numbers are too high or too low, from the top.  False: one still goes. */
static bool remove_extra(struct stateful *s, struct workload_child **extra, size_t n)
{
    qsort((void *) extra, n, sizeof *extra, compare_down);
    for (size_t i = 0; i < n; i++) {
        if (!extra[i]->going) {
            hand_claims_over(s, extra[i],
                             stateful_ordinal(obj_name(s->set), obj_name(extra[i]->obj)));
            delete_pod(s, extra[i]);
        }
        if (s->ordered) {
            return false;
        }
    }
    return n == 0;
}

/* Replaces pods of the earlier template, from the top down to the partition. */
static void replace(struct stateful *s)
{
    const struct json *rolling =
        json_path(s->spec, "updateStrategy", "rollingUpdate", "maxUnavailable", NULL);
    int64_t most = rolling ? MAX(rollout_share(rolling, s->replicas, true), 1) : 1, missing = 0;
    for (int64_t i = 0; i < s->replicas; i++) {
        missing += !s->slots[i] || s->slots[i]->going || !is_available(s, s->slots[i]);
    }
    for (int64_t i = s->replicas; i-- > s->partition;) {
        struct workload_child *pod = s->slots[i];
        bool fits = pod && streq(revision_of(pod->obj), s->revisions.update_name);
        bool healthy = pod && !pod->going && is_available(s, pod);
        if (pod && !pod->going && !fits && (missing < most || !healthy)) {
            missing += healthy;
            delete_pod(s, pod);
        }
        if (missing >= most) {
            return;
        }
    }
}

/* ---- the status ---- */

static void set_count(struct json *status, const char *key, int64_t n)
{
    if (n) {
        json_set_int(status, key, n);
    } else {
        (void) json_remove(status, key);
    }
}

static void make_status(struct stateful *s, size_t n_pods)
{
    struct json *status = json_ensure_object(s->o, "status");
    int64_t replicas = 0, ready = 0, available = 0, current = 0, updated = 0;
    for (size_t i = 0; i < n_pods; i++) {
        const struct workload_child *pod = &s->objects->pods[i];
        replicas++;
        ready += runs_ready(pod);
        available += is_available(s, pod);
        if (!pod->going) {
            current += streq(revision_of(pod->obj), s->current_name);
            updated += streq(revision_of(pod->obj), s->revisions.update_name);
        }
    }
    /* All pods have the present template: it is the current one from now on. */
    const char *name = s->current_name;
    if (s->rolling && updated == replicas && ready == replicas && replicas == s->replicas) {
        name = s->revisions.update_name;
        current = updated;
    }
    set_count(status, "observedGeneration", obj_generation(s->set));
    json_set_int(status, "replicas", replicas);
    set_count(status, "readyReplicas", ready);
    json_set_int(status, "availableReplicas", available);
    set_count(status, "currentReplicas", current);
    set_count(status, "updatedReplicas", updated);
    json_set_string(status, "currentRevision", name);
    json_set_string(status, "updateRevision", s->revisions.update_name);
    if (!json_get(status, "collisionCount")) {
        json_set_int(status, "collisionCount", 0);
    }
}

/* ---- the plan ---- */

static bool lives(void *ctx, const struct json *revision)
{
    const struct stateful *s = ctx;
    if (streq(obj_name(revision), s->current_name)) {
        return true;
    }
    for (size_t i = 0; i < s->objects->n_pods; i++) {
        if (streq(revision_of(s->objects->pods[i].obj), obj_name(revision))) {
            return true;
        }
    }
    return false;
}

/* Keeps the pods whose names are those of the set. */
static size_t keep_members(const struct json *set, struct workload_child *list, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (stateful_ordinal(obj_name(set), obj_name(list[i].obj)) >= 0) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

static void decide(struct stateful *s)
{
    struct workload_child **extra =
        xcalloc(s->objects->n_pods + 1, sizeof(struct workload_child *));
    size_t n_extra = 0;
    s->slots = xcalloc((size_t) s->replicas + 1, sizeof(struct workload_child *));
    for (size_t i = 0; i < s->objects->n_pods; i++) {
        struct workload_child *pod = &s->objects->pods[i];
        int64_t n = stateful_ordinal(obj_name(s->set), obj_name(pod->obj)) - s->first;
        if (n >= 0 && n < s->replicas) {
            s->slots[n] = pod;
        } else {
            extra[n_extra++] = pod;
        }
    }
    bool on = fill_slots(s) || !s->ordered;
    on = on && remove_extra(s, extra, n_extra);
    if (on && s->rolling) {
        replace(s);
    }
    free(extra);
    free(s->slots);
}

void stateful_plan(const struct json *set, struct stateful_objects *objects, int64_t now_ms,
                   struct workload_plan *ret)
{
    const struct json *spec = json_get(set, "spec"), *strategy = json_get(spec, "updateStrategy");
    struct stateful s = {
        .set = set,
        .spec = spec,
        .objects = objects,
        .first = number(json_get(spec, "ordinals"), "start", 0),
        .replicas = MAX(number(spec, "replicas", 1), 0),
        .partition = number(json_get(strategy, "rollingUpdate"), "partition", 0),
        .min_ready_s = number(spec, "minReadySeconds", 0),
        .now_ms = now_ms,
        .ordered = !streq(json_get_text(spec, "podManagementPolicy"), "Parallel"),
        .rolling = !streq(json_get_text(strategy, "type"), "OnDelete"),
        .plan = ret,
        .o = json_clone(set),
    };
    ret->status = s.o;
    objects->n_pods = keep_members(set, objects->pods, objects->n_pods);
    objects->n_pods = workload_claim(ret, &workload_stateful_sets, set, json_get(spec, "selector"),
                                     &workload_pods, objects->pods, objects->n_pods);
    revisions_load(ret, &workload_stateful_sets, set, objects->revisions, objects->n_revisions,
                   &s.revisions);
    const char *current = json_get_text(json_get(set, "status"), "currentRevision");
    s.current_name = xstrdup(*current ? current : s.revisions.update_name);
    s.current = revisions_find(&s.revisions, s.current_name);
    make_status(&s, objects->n_pods);
    if (!obj_is_terminating(set)) {
        decide(&s);
        revisions_clean_up(ret, set, &s.revisions, lives, &s);
    }
    free(s.current_name);
    revisions_done(&s.revisions);
}
