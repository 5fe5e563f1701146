/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/deployment_priv.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"

#define HISTORY "deployment.kubernetes.io/revision-history"
#define DESIRED "deployment.kubernetes.io/desired-replicas"
#define MOST "deployment.kubernetes.io/max-replicas"
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
#define ROLLBACK_TO "deprecated.deployment.rollback.to"
#define MAX_HISTORY 2000 /* Characters of the annotation. */

/* ---- sets ---- */

static int64_t number(const struct json *obj, const char *part, const char *key, int64_t dflt)
{
    return json_get_int_or(json_path(obj, part, key, NULL), dflt);
}

static int64_t annotated_number(const struct json *obj, const char *key, int64_t dflt)
{
    int64_t n;
    const char *s = obj_annotation(obj, key);
    return s && str_to_i64(s, 0, INT64_MAX, &n) == 0 ? n : dflt;
}

/* The oldest first; of one second by name. */
static int compare_age(const void *x, const void *y)
{
    const struct deployment_set *a = x, *b = y;
    int64_t a_ms = obj_created_ms(a->obj), b_ms = obj_created_ms(b->obj);
    if (a_ms != b_ms) {
        return a_ms < b_ms ? -1 : 1;
    }
    return strcmp(obj_name(a->obj), obj_name(b->obj));
}

static void load_sets(struct deployment *d, const struct workload_child *sets, size_t n)
{
    const struct json *template = json_path(d->d, "spec", "template", NULL);
    d->sets = xcalloc(n + 1, sizeof *d->sets);
    d->n = n;
    for (size_t i = 0; i < n; i++) {
        const struct json *o = sets[i].obj;
        int64_t size = number(o, "spec", "replicas", 1);
        /* A set that was made smaller a moment ago still counts pods that are about to go. */
        int64_t available = MIN(number(o, "status", "availableReplicas", 0), size);
        d->sets[i] = (struct deployment_set){.obj = o,
                                             .size = {.replicas = size,
                                                      .available = available,
                                                      .max_replicas = annotated_number(o, MOST, 0)},
                                             .going = sets[i].going};
    }
    qsort(d->sets, n, sizeof *d->sets, compare_age);
    d->r.old_set = xcalloc(n + 1, sizeof *d->r.old_set);
    for (size_t i = 0; i < n; i++) {
        struct deployment_set *s = &d->sets[i];
        if (!d->new_set && template_equal(json_path(s->obj, "spec", "template", NULL), template)) {
            d->new_set = s;
            d->r.new_set = &s->size;
        } else {
            d->r.old_set[d->r.n_old++] = &s->size;
        }
    }
}

/* The object of the set as it will be written. */
static struct json *body_of(struct deployment_set *s)
{
    if (!s->body) {
        s->body = json_clone(s->obj);
    }
    return s->body;
}

static void annotate_number(struct deployment_set *s, const char *key, int64_t n)
{
    CLEANUP_FREE char *text = xasprintf("%lld", (long long) n);
    if (!streq_null(obj_annotation(s->body ? s->body : s->obj, key), text)) {
        obj_set_annotation(body_of(s), key, text);
    }
}

static void annotate_sizes(const struct deployment *d, struct deployment_set *s)
{
    annotate_number(s, DESIRED, d->r.desired);
    annotate_number(s, MOST, d->r.desired + d->r.surge);
}

/* Adds the writes of the sets whose size or annotations have changed; whether there is one. */
static bool write_sets(struct deployment *d)
{
    bool any = false;
    for (size_t i = 0; i < d->n; i++) {
        struct deployment_set *s = &d->sets[i];
        int64_t was = number(s->obj, "spec", "replicas", 1), is = s->size.replicas;
        if (was != is) {
            json_set_int(json_get(body_of(s), "spec"), "replicas", is);
            annotate_sizes(d, s);
        }
        if (!s->body) {
            continue;
        }
        json_set_string(s->body, "apiVersion", workload_replica_sets.api_version);
        json_set_string(s->body, "kind", workload_replica_sets.kind);
        struct workload_write *w =
            workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_UPDATE, &workload_replica_sets,
                              obj_name(s->obj), TAKE(s->body));
        if (was != is) {
            w->reason = "ScalingReplicaSet";
            w->message =
                xasprintf("Scaled %s replica set %s from %lld to %lld", was < is ? "up" : "down",
                          obj_name(s->obj), (long long) was, (long long) is);
        }
        any = true;
    }
    return any;
}

/* ---- revisions ---- */

static int64_t revision_of(const struct json *obj)
{
    return annotated_number(obj, DEPLOYMENT_REVISION, 0);
}

static bool is_copied(const char *annotation)
{
    static const char *const own[] = {LAST_APPLIED, DEPLOYMENT_REVISION, HISTORY, DESIRED, MOST,
                                      ROLLBACK_TO,  DEPLOYMENT_MADE_FROM};
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        if (streq(annotation, own[i])) {
            return false;
        }
    }
    return true;
}

/* Calls 'set' for each annotation of the Deployment that its sets have, too. */
static void copy_annotations(const struct deployment *d, struct deployment_set *s,
                             struct json *fresh)
{
    const struct json *list = json_path(d->d, "metadata", "annotations", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const char *key = json_key_at(list, i), *value = json_get_string(json_at(list, i));
        if (!value || !is_copied(key)) {
            continue;
        }
        if (fresh) {
            obj_set_annotation(fresh, key, value);
        } else if (!streq_null(obj_annotation(s->obj, key), value)) {
            obj_set_annotation(body_of(s), key, value);
        }
    }
}

/* A set that becomes the present one again keeps its earlier numbers. */
static void add_to_history(struct deployment_set *s, const char *old)
{
    const char *history = obj_annotation(s->obj, HISTORY);
    CLEANUP_FREE char *text = history && *history ? xasprintf("%s,%s", history, old) : xstrdup(old);
    const char *from = text;
    while (strlen(from) > MAX_HISTORY && strchr(from, ',')) {
        from = strchr(from, ',') + 1;
    }
    obj_set_annotation(body_of(s), HISTORY, from);
}

static int64_t next_revision(const struct deployment *d)
{
    int64_t most = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (&d->sets[i] != d->new_set) {
            most = MAX(most, revision_of(d->sets[i].obj));
        }
    }
    return most + 1;
}

/* The Deployment shows the revision of its new set. */
static void write_revision(struct deployment *d, const char *revision)
{
    if (streq_null(obj_annotation(d->d, DEPLOYMENT_REVISION), revision)) {
        return;
    }
    struct json *o = json_clone(d->d);
    json_set_string(o, "apiVersion", workload_deployments.api_version);
    json_set_string(o, "kind", workload_deployments.kind);
    obj_set_annotation(o, DEPLOYMENT_REVISION, revision);
    (void) workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_UPDATE, &workload_deployments,
                             obj_name(d->d), o);
}

/* Brings the annotations of the new set, and the Deployment's revision, up to date. */
static void sync_new_set(struct deployment *d)
{
    struct deployment_set *s = d->new_set;
    int64_t was = revision_of(s->obj), next = next_revision(d);
    copy_annotations(d, s, NULL);
    if (was < next) {
        const char *old = obj_annotation(s->obj, DEPLOYMENT_REVISION);
        if (old && *old) {
            add_to_history(s, old);
        }
        annotate_number(s, DEPLOYMENT_REVISION, next);
    }
    int64_t min_ready_s = number(d->d, "spec", "minReadySeconds", 0);
    if (number(s->obj, "spec", "minReadySeconds", 0) != min_ready_s) {
        json_set_int(json_get(body_of(s), "spec"), "minReadySeconds", min_ready_s);
    }
    CLEANUP_FREE char *revision = xasprintf("%lld", (long long) MAX(was, next));
    write_revision(d, revision);
    deployment_found_new_set(d);
}

/* ---- the new set ---- */

static struct json *with_hash(const struct json *labels, const char *hash)
{
    struct json *o = json_is(labels, JSON_OBJECT) ? json_clone(labels) : json_object();
    json_set_string(o, LABEL_TEMPLATE_HASH, hash);
    return o;
}

static struct json *make_set(const struct deployment *d, const char *name, const char *hash,
                             int64_t replicas, int64_t revision)
{
    const struct json *spec = json_get(d->d, "spec"), *template = json_get(spec, "template");
    struct json *o = obj_new(workload_replica_sets.api_version, workload_replica_sets.kind,
                             obj_namespace(d->d), name);
    struct json *meta = json_get(o, "metadata"), *to = json_ensure_object(o, "spec");
    struct json *own = json_clone(template), *selector = json_clone(json_get(spec, "selector"));
    json_set(json_ensure_object(own, "metadata"), "labels",
             with_hash(json_path(template, "metadata", "labels", NULL), hash));
    json_set(selector, "matchLabels", with_hash(json_get(selector, "matchLabels"), hash));
    json_set(meta, "labels", json_clone(json_path(own, "metadata", "labels", NULL)));
    json_append(json_ensure_array(meta, "ownerReferences"),
                workload_owner_ref(&workload_deployments, d->d));
    json_set_int(to, "replicas", replicas);
    json_set_int(to, "minReadySeconds", number(d->d, "spec", "minReadySeconds", 0));
    json_set(to, "selector", selector);
    json_set(to, "template", own);
    copy_annotations(d, NULL, o);
    CLEANUP_FREE char *number_text = xasprintf("%lld", (long long) revision);
    CLEANUP_FREE char *desired = xasprintf("%lld", (long long) d->r.desired);
    long long bound = d->r.desired + d->r.surge;
    char made_from[TEMPLATE_HASH_SIZE];
    CLEANUP_FREE char *most = xasprintf("%lld", bound);
    obj_set_annotation(o, DEPLOYMENT_REVISION, number_text);
    obj_set_annotation(o, DESIRED, desired);
    obj_set_annotation(o, MOST, most);
    template_hash(template, 0, made_from);
    obj_set_annotation(o, DEPLOYMENT_MADE_FROM, made_from);
    return o;
}

/* The name is taken: by this Deployment's own set of the same template, which the next plan sees,
 * or by another one.  Then the next plan makes another name. */
static bool name_is_met(struct json *object, const struct workload_write *w,
                        const struct json *live)
{
    const struct json *ref = obj_controller(live);
    bool own = ref && streq(json_get_text(ref, "uid"), obj_uid(object)) &&
               template_equal(json_path(live, "spec", "template", NULL),
                              json_path(object, "spec", "template", NULL));
    if (!own) {
        struct json *status = json_ensure_object(object, "status");
        json_set_int(status, "collisionCount",
                     json_get_int_or(json_get(status, "collisionCount"), 0) + 1);
    }
    return true;
}

/* The newest set that was made from the present template and has another one, when there are as
 * many as may be made; NULL: another one may be made. */
static const struct json *find_changed(const struct deployment *d)
{
    char hash[TEMPLATE_HASH_SIZE];
    const struct json *newest = NULL;
    size_t n = 0;
    template_hash(json_path(d->d, "spec", "template", NULL), 0, hash);
    for (size_t i = 0; i < d->n; i++) {
        if (streq_null(obj_annotation(d->sets[i].obj, DEPLOYMENT_MADE_FROM), hash)) {
            newest = d->sets[i].obj;
            n++;
        }
    }
    return n >= DEPLOYMENT_SETS_OF_TEMPLATE ? newest : NULL;
}

static void create_set(struct deployment *d)
{
    char hash[TEMPLATE_HASH_SIZE];
    const struct json *changed = find_changed(d);
    if (changed) {
        deployment_set_was_changed(d, changed);
        return;
    }
    int64_t revision = next_revision(d);
    int64_t size = d->recreate ? d->r.desired : rollout_new_size(&d->r, 0);
    template_hash(json_path(d->d, "spec", "template", NULL),
                  number(d->d, "status", "collisionCount", 0), hash);
    CLEANUP_FREE char *name = xasprintf("%s-%s", obj_name(d->d), hash);
    struct workload_write *w =
        workload_plan_add(d->plan, WORKLOAD_FIRST, WORKLOAD_CREATE, &workload_replica_sets, name,
                          make_set(d, name, hash, size, revision));
    if (size > 0) {
        w->reason = "ScalingReplicaSet";
        w->message = xasprintf("Scaled up replica set %s from 0 to %lld", name, (long long) size);
    }
    w->fail_reason = DEPLOYMENT_CREATE_ERROR;
    w->fail_message = xasprintf("Failed to create new replica set \"%s\": ", name);
    d->plan->met = name_is_met;
    CLEANUP_FREE char *text = xasprintf("%lld", (long long) revision);
    write_revision(d, text);
    deployment_created_new_set(d, name);
}

/* ---- strategies ---- */

static int compare_revision(const void *x, const void *y)
{
    const struct deployment_set *const *a = x, *const *b = y;
    int64_t a_rev = revision_of((*a)->obj), b_rev = revision_of((*b)->obj);
    return a_rev != b_rev ? (a_rev < b_rev ? -1 : 1) : compare_age(*a, *b);
}

/* Deletes the sets of the oldest revisions that are too many. */
static void clean_up(struct deployment *d)
{
    int64_t limit = number(d->d, "spec", "revisionHistoryLimit", INT32_MAX);
    struct deployment_set **old = xcalloc(d->n + 1, sizeof *old);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (&d->sets[i] != d->new_set && !d->sets[i].going) {
            old[n++] = &d->sets[i];
        }
    }
    qsort(old, n, sizeof *old, compare_revision);
    for (size_t i = 0; limit < INT32_MAX && i + (size_t) limit < n; i++) {
        const struct json *o = old[i]->obj;
        if (number(o, "status", "replicas", 0) == 0 && number(o, "spec", "replicas", 1) == 0 &&
            old[i]->size.replicas == 0 &&
            obj_generation(o) <= number(o, "status", "observedGeneration", 0)) {
            (void) workload_plan_delete(d->plan, WORKLOAD_MAIN, &workload_replica_sets, o);
        }
    }
    free(old);
}

/* Whether the status of each set is about its present size.  Before that it may count pods that
 * have gone already. */
static bool is_observed(const struct deployment *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct json *o = d->sets[i].obj;
        if (number(o, "status", "observedGeneration", 0) < obj_generation(o)) {
            return false;
        }
    }
    return true;
}

static void roll(struct deployment *d)
{
    int64_t size = rollout_new_size(&d->r, d->new_set->size.replicas);
    if (size != d->new_set->size.replicas) {
        d->new_set->size.replicas = size;
    } else if (is_observed(d) && !rollout_shrink_old(&d->r) && deployment_is_complete(d, d->d)) {
        clean_up(d);
    }
}

/* Whether pods of old sets may still run. */
static bool old_pods_run(const struct deployment *d, const struct json *const *pods, size_t n)
{
    for (size_t i = 0; i < d->n; i++) {
        if (&d->sets[i] != d->new_set && number(d->sets[i].obj, "status", "replicas", 0) > 0) {
            return true;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct json *ref = obj_controller(pods[i]);
        bool is_new = d->new_set && streq(json_get_text(ref, "uid"), obj_uid(d->new_set->obj));
        if (!is_new && !workload_pod_has_phase(pods[i], "Succeeded") &&
            !workload_pod_has_phase(pods[i], "Failed")) {
            return true;
        }
    }
    return false;
}

/* Returns whether the new set is to be created. */
static bool recreate(struct deployment *d, const struct json *const *pods, size_t n)
{
    bool shrunk = false;
    for (size_t i = 0; i < d->r.n_old; i++) {
        shrunk |= d->r.old_set[i]->replicas > 0;
        d->r.old_set[i]->replicas = 0;
    }
    if (shrunk || old_pods_run(d, pods, n)) {
        return false;
    }
    if (!d->new_set) {
        return true;
    }
    d->new_set->size.replicas = d->r.desired;
    if (deployment_is_complete(d, d->d)) {
        clean_up(d);
    }
    return false;
}

/* ---- the desired number ---- */

/* The desired number has changed since the sets were last scaled. */
static bool is_scaled(const struct deployment *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct json *o = d->sets[i].obj;
        if (d->sets[i].size.replicas > 0 &&
            annotated_number(o, DESIRED, d->r.desired) != d->r.desired) {
            return true;
        }
    }
    return false;
}

static bool is_saturated(const struct deployment *d)
{
    const struct deployment_set *s = d->new_set;
    return s && s->size.replicas == d->r.desired && s->size.available == d->r.desired &&
           annotated_number(s->obj, DESIRED, -1) == d->r.desired;
}

static void scale(struct deployment *d)
{
    struct rollout_set *single;
    bool alone = rollout_single(&d->r, &single);
    if (alone && single) {
        single->replicas = d->r.desired;
    } else if (!alone && is_saturated(d)) {
        for (size_t i = 0; i < d->r.n_old; i++) {
            d->r.old_set[i]->replicas = 0;
        }
    } else if (!alone && !d->recreate) {
        rollout_spread(&d->r);
    }
    /* Also a set whose size stays: else the number would look like a change for ever. */
    for (size_t i = 0; i < d->n; i++) {
        if (d->sets[i].size.replicas > 0 && number(d->sets[i].obj, "spec", "replicas", 1) > 0) {
            annotate_sizes(d, &d->sets[i]);
        }
    }
}

/* ---- the plan ---- */

static void load(struct deployment *d, const struct json *obj)
{
    const struct json *strategy = json_path(obj, "spec", "strategy", NULL);
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    d->d = obj;
    d->recreate = streq(json_get_text(strategy, "type"), "Recreate");
    d->paused = json_get_bool(json_path(obj, "spec", "paused", NULL), false);
    d->r.desired = MAX(number(obj, "spec", "replicas", 1), 0);
    d->r.status_replicas = number(obj, "status", "replicas", 0);
    if (!d->recreate) {
        rollout_bounds(json_get(rolling, "maxSurge"), json_get(rolling, "maxUnavailable"),
                       d->r.desired, &d->r.surge, &d->r.unavailable);
    }
}

bool deployment_needs_pods(const struct json *d)
{
    const struct json *strategy = json_path(d, "spec", "strategy", NULL);
    return streq(json_get_text(strategy, "type"), "Recreate") &&
           (number(d, "status", "updatedReplicas", 0) < number(d, "spec", "replicas", 1) ||
            number(d, "status", "observedGeneration", 0) < obj_generation(d));
}

static void decide(struct deployment *d, const struct json *const *pods, size_t n_pods)
{
    deployment_pause(d);
    if (d->new_set) {
        sync_new_set(d);
    }
    if (d->paused || is_scaled(d)) {
        scale(d);
        if (d->paused) {
            clean_up(d);
        }
        (void) write_sets(d);
        deployment_count(d);
        return;
    }
    if (d->recreate) {
        if (recreate(d, pods, n_pods)) {
            create_set(d);
            deployment_count(d);
            return;
        }
    } else if (!d->new_set) {
        create_set(d);
        deployment_count(d);
        return;
    } else {
        roll(d);
    }
    (void) write_sets(d);
    deployment_count(d);
    deployment_progress(d);
}

void deployment_plan(const struct json *obj, struct workload_child *sets, size_t n,
                     const struct json *const *pods, size_t n_pods, int64_t now_ms,
                     struct workload_plan *ret)
{
    struct deployment d = {.now_ms = now_ms, .plan = ret};
    load(&d, obj);
    n = workload_claim(ret, &workload_deployments, obj, json_path(obj, "spec", "selector", NULL),
                       &workload_replica_sets, sets, n);
    load_sets(&d, sets, n);
    ret->status = d.o = json_clone(obj);
    ret->outcome = deployment_outcome;
    if (obj_is_terminating(obj)) {
        deployment_count(&d);
    } else {
        decide(&d, pods, n_pods);
    }
    for (size_t i = 0; i < d.n; i++) {
        json_free(d.sets[i].body);
    }
    free(d.sets);
    free(d.r.old_set);
}
