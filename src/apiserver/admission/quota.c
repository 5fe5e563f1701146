/* SPDX-License-Identifier: Apache-2.0 */
/* The decision about a write, and the changes of the cache that move the counters. */
#include "apiserver/admission/quota.h"

#include "apiserver/admission/admission.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/quota_priv.h"
#include "apiserver/request/metrics.h"

#define OWN_PLUGIN "ResourceQuota"
#define CLUSTER_PLUGIN "ClusterResourceQuota"

/* ---- changes of the cache ---- */

/* The write under way of this object; NULL: there is none. */
static struct quota_write *find_flight(struct quotas *s, const struct cache_kind *ck,
                                       const char *key)
{
    struct quota_write *w;
    LIST_FOREACH (w, struct quota_write, flight, &s->flights) {
        if (w->ck == ck && streq(w->key, key)) {
            return w;
        }
    }
    return NULL;
}

/* The amounts that the event adds to the quota.  They are in the charge of the write that caused
 * the event, if that was a write of this server. */
static const int64_t *added(const struct quota *q, const struct quota_write *cause,
                            struct quota_write *scratch, const struct cache_kind *ck,
                            const struct json *obj, const struct json *old)
{
    for (size_t i = 0; cause && i < cause->n_charges; i++) {
        if (cause->charges[i].quota == q) {
            return cause->charges[i].add;
        }
    }
    return quota_charge_add(scratch, (struct quota *) q, ck, obj, old)->add;
}

static void drop_charges(struct quotas *s, struct quota_write *w)
{
    for (size_t i = 0; i < w->n_charges; i++) {
        quota_release(s, &w->charges[i]);
        quota_unref(w->charges[i].quota);
        free(w->charges[i].add);
    }
    free(TAKE(w->charges));
    w->n_charges = w->cap_charges = 0;
}

/* Whether all that counts of the object is that it exists. */
static bool needs_tree(const struct quota_space *sp, const struct cache_kind *ck)
{
    for (size_t i = 0; i < sp->n; i++) {
        if (sp->list[i]->counted && quota_concerns(sp->list[i], ck) &&
            quota_spec_reads(sp->list[i]->spec, ck->kind->group, ck->kind->plural)) {
            return true;
        }
    }
    return false;
}

static void object_changed(struct quotas *s, const struct quota_space *sp, const char *namespace,
                           const struct cache_kind *ck, const struct cache_event *ev)
{
    const struct object *any = ev->new ? ev->new : ev->old;
    struct quota_write *w = find_flight(s, ck, any->key), scratch = {0};
    bool ours = w && w->value && ev->new &&object_same(ev->new, ck->head, w->value);
    bool tree = !ours && needs_tree(sp, ck);
    CLEANUP(json_free)
    struct json *obj = !ev->new || ours ? NULL : tree ? object_parse(ev->new) : json_object();
    CLEANUP(json_free)
    struct json *old = !ev->old || ours ? NULL : tree ? object_parse(ev->old) : json_object();
    for (size_t i = 0; i < sp->n; i++) {
        struct quota *q = sp->list[i];
        if (q->counted && quota_concerns(q, ck)) {
            quota_add(s, q, namespace, added(q, ours ? w : NULL, &scratch, ck, obj, old));
        }
    }
    drop_charges(s, &scratch);
}

/* The event shows that the write of the same object was done, or that it will fail because of its
 * condition: either way it adds nothing any more.  Only the creation of an object outlives the
 * deletion of the former one. */
static void end_flight(struct quotas *s, const struct cache_kind *ck, const struct cache_event *ev)
{
    struct quota_write *w = list_is_empty(&s->flights)
                                ? NULL
                                : find_flight(s, ck, ev->new ? ev->new->key : ev->old->key);
    for (size_t i = 0; w && (w->base || ev->new) && i < w->n_charges; i++) {
        quota_release(s, &w->charges[i]);
    }
}

/* Kinds of definitions come and go with all their objects: what counts them is counted anew. */
static void forget_counts(struct smap *all)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, all) {
        ((struct quota *) e->value)->counted = false;
    }
}

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    struct quotas *s = ctx;
    const char *key = ev->new ? ev->new->key : ev->old->key;
    if (ck->kind->namespaced && smap_size(&s->spaces)) {
        CLEANUP_FREE char *namespace = quota_namespace(key);
        const struct quota_space *sp = quota_space_find(s, namespace);
        if (sp) {
            object_changed(s, sp, namespace, ck, ev);
        }
    }
    end_flight(s, ck, ev);
    if (ck == s->quotas || ck == s->clusters) {
        quotas_quota_changed(s, ck == s->clusters, key, ev->new);
    } else if (ck == s->namespaces) {
        quotas_namespace_changed(s, key, ev->new);
    } else if (ck == s->definitions) {
        forget_counts(&s->own);
        forget_counts(&s->cluster);
    }
}

static void on_loaded(void *ctx)
{
    quotas_load(ctx);
}

static void on_resetting(void *ctx)
{
    quotas_clear(ctx);
}

/* ---- creation and end ---- */

static void serve(void *ctx);

struct quotas *quotas_new(struct apiserver *a)
{
    struct quotas *s = NEW(struct quotas);
    s->server = a;
    s->quotas = cache_find(&a->cache, api_kind_find("", "v1", "resourcequotas"));
    s->clusters =
        cache_find(&a->cache, api_kind_find("quota.openshift.io", "v1", "clusterresourcequotas"));
    s->namespaces = cache_find(&a->cache, api_kind_find("", "v1", "namespaces"));
    s->definitions = cache_find(&a->cache, api_kind_find(CRD_GROUP, CRD_VERSION, CRD_PLURAL));
    s->shared = store_is_shared(a->store);
    smap_init(&s->own, NULL);
    smap_init(&s->cluster, NULL);
    smap_init(&s->spaces, quota_space_free);
    list_init(&s->flights);
    list_init(&s->ready);
    list_init(&s->dirty);
    loop_task_init(&s->serve, a->loop, serve, s);
    s->timer = loop_timer_new(a->loop, quota_status_tick, s);
    s->subscriber = (struct cache_subscriber){.rank = CACHE_RANK_ADMISSION,
                                              .ctx = s,
                                              .changed = on_changed,
                                              .resetting = on_resetting,
                                              .loaded = on_loaded};
    cache_subscribe(&a->cache, &s->subscriber);
    return s;
}

struct quotas *quotas_free(struct quotas *s)
{
    if (s) {
        cache_unsubscribe(&s->subscriber);
        quotas_clear(s);
        loop_task_cancel(&s->serve);
        loop_timer_free(s->timer);
        smap_done(&s->own);
        smap_done(&s->cluster);
        smap_done(&s->spaces);
        free(s);
    }
    return NULL;
}

/* ---- writes that wait ---- */

void quota_serve_next(struct quotas *s, struct quota *q)
{
    struct list *turn = q->holder ? NULL : list_pop_front(&q->turns);
    if (turn) {
        list_push_back(&s->ready, turn);
        loop_task_queue(&s->serve);
    }
}

/* Ends the write's wait; the reference is the caller's. */
static struct quota *end_wait(struct quota_write *w)
{
    list_remove(&w->turn);
    w->waits = false;
    return TAKE(w->awaited);
}

static void serve(void *ctx)
{
    struct quotas *s = ctx;
    struct list now, *turn;
    list_init(&now);
    while ((turn = list_pop_front(&s->ready))) {
        list_push_back(&now, turn);
    }
    while ((turn = list_pop_front(&now))) {
        struct quota_write *w = CONTAINER_OF(turn, struct quota_write, turn);
        struct quota *q = end_wait(w);
        q->queued = false;
        w->again(w->ctx);
        if (!q->queued) {
            /* It did not need its turn, or is over: the next one may try. */
            quota_serve_next(s, q);
        }
        quota_unref(q);
    }
}

/* The order of the queue is that in which the writes came. */
static int wait_for(struct quotas *s, struct quota_write *w, struct quota *q,
                    const struct quota_attempt *at, struct outcome *outcome)
{
    w->again = at->again;
    w->ctx = at->ctx;
    w->waits = true;
    w->awaited = quota_ref(q);
    q->queued = true;
    list_push_back(&q->turns, &w->turn);
    drop_charges(s, w);
    outcome_take_over(outcome);
    return -EINPROGRESS;
}

/* ---- fences ---- */

static bool adds(const struct quota_charge *c)
{
    for (size_t i = 0; i < c->quota->spec->n; i++) {
        if (c->add[i] > 0) {
            return true;
        }
    }
    return false;
}

/* The quota whose fence another write of this server has; NULL: all fences are free. */
static struct quota *find_held(const struct quota_write *w)
{
    for (size_t i = 0; i < w->n_charges; i++) {
        if (adds(&w->charges[i]) && w->charges[i].quota->holder) {
            return w->charges[i].quota;
        }
    }
    return NULL;
}

static void take_fences(struct quotas *s, struct quota_write *w)
{
    static const char text[] = "{}";
    for (size_t i = 0; i < w->n_charges; i++) {
        struct quota *q = w->charges[i].quota;
        if (!adds(&w->charges[i])) {
            continue;
        }
        uint64_t revision = STORE_ABSENT;
        char *key = quota_fence(q);
        if (!cache_unknown_value(&s->server->cache, key, &revision)) {
            revision = STORE_ABSENT;
        }
        q->holder = w;
        w->fences = grow(w->fences, &w->cap_fences, w->n_fences + 1, sizeof *w->fences);
        w->fences[w->n_fences++] =
            (struct store_claim){key, blob_new(text, sizeof text - 1), revision};
    }
}

static void drop_fences(struct quotas *s, struct quota_write *w)
{
    for (size_t i = 0; i < w->n_charges; i++) {
        struct quota *q = w->charges[i].quota;
        if (q->holder == w) {
            q->holder = NULL;
            quota_serve_next(s, q);
        }
    }
    for (size_t i = 0; i < w->n_fences; i++) {
        free((char *) w->fences[i].key);
        blob_unref(w->fences[i].value);
    }
    free(TAKE(w->fences));
    w->n_fences = w->cap_fences = 0;
}

/* ---- a write ---- */

void quota_drop(struct quotas *s, struct quota_write *w)
{
    if (w->sent) {
        list_remove(&w->flight);
        w->sent = false;
    }
    if (w->waits) {
        struct quota *q = end_wait(w);
        quota_serve_next(s, q);
        quota_unref(q);
    }
    drop_fences(s, w);
    drop_charges(s, w);
    w->value = NULL;
    w->base = NULL;
}

void quota_sent(struct quotas *s, struct quota_write *w, const struct cache_kind *ck,
                const char *key, const struct blob *value, const struct object *base)
{
    if (!ck->kind->namespaced) {
        return;
    }
    w->ck = ck;
    w->key = key;
    w->value = value;
    w->base = base;
    if (!w->sent) {
        w->sent = true;
        list_push_back(&s->flights, &w->flight);
    }
}

static bool is_enabled(const struct quotas *s, bool cluster)
{
    return admission_is_enabled(s->server->admission, cluster ? CLUSTER_PLUGIN : OWN_PLUGIN);
}

/* Whether the request can add to quotas.  The other subresources report what is, as in Kubernetes:
 * refusing them would not undo it. */
static bool is_decided(const struct quota_attempt *at)
{
    const char *part = at->q->subresource;
    return !at->old || !*part || streq(part, "resize");
}

static void count_refusal(struct quotas *s, const struct quota *q)
{
    CLEANUP_FREE char *namespace = quota_namespace(q->key);
    metrics_count_refusal(s->server->metrics, namespace, quota_name(q));
}

static int refuse(struct quotas *s, struct quota *q, const struct quota_attempt *at,
                  const char *why, struct outcome *outcome)
{
    count_refusal(s, q);
    metrics_count_admission(
        s->server->metrics,
        &(struct admission_call){.name = q->cluster ? CLUSTER_PLUGIN : OWN_PLUGIN,
                                 .type = "validate",
                                 .operation = at->old ? "UPDATE" : "CREATE",
                                 .rejected = true},
        0);
    return admission_refuse(at->q, at->obj, why, outcome);
}

/* Decides about one charge.  1: there is room when another write under way fails. */
static int decide(struct quotas *s, const struct quota_charge *c, const struct quota_attempt *at,
                  struct outcome *outcome)
{
    struct quota *q = c->quota;
    quota_total used[QUOTA_MAX_ITEMS];
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    if (!adds(c)) {
        return 0;
    }
    CLEANUP_FREE char *namespace = quota_namespace(at->key);
    if (cache_unreadable(at->ck, NULL, q->cluster ? NULL : namespace)) {
        strbuf_addf(&why, "status unknown for quota: %s, resources: %s", quota_name(q),
                    at->ck->kind->plural);
        return refuse(s, q, at, strbuf_cstr(&why), outcome);
    }
    for (size_t i = 0; i < q->spec->n; i++) {
        used[i] = q->used[i] + q->reserved[i];
    }
    if (!quota_spec_refuses(q->spec, quota_name(q), used, c->add, &why)) {
        return 0;
    }
    strbuf_reset(&why);
    return quota_spec_refuses(q->spec, quota_name(q), q->used, c->add, &why)
               ? refuse(s, q, at, strbuf_cstr(&why), outcome)
               : 1;
}

/* Computes the charges, and decides about each; reserves nothing.  '*ret_full': a quota that has no
 * room before another write under way is over; NULL: none. */
static int charge(struct quotas *s, struct quota_write *w, const struct quota_space *sp,
                  const struct quota_attempt *at, struct quota **ret_full, struct outcome *outcome)
{
    *ret_full = NULL;
    for (size_t i = 0; i < sp->n; i++) {
        struct quota *q = sp->list[i];
        if (!quota_concerns(q, at->ck) || !is_enabled(s, q->cluster)) {
            continue;
        }
        quota_count(s, q);
        const struct quota_charge *c = quota_charge_add(w, q, at->ck, at->obj, at->old);
        int r = is_decided(at) ? decide(s, c, at, outcome) : 0;
        if (r < 0) {
            return r;
        }
        *ret_full = r > 0 ? q : *ret_full;
    }
    return 0;
}

int quota_settle(struct quotas *s, struct quota_write *w, const struct quota_attempt *attempt,
                 struct outcome *outcome)
{
    quota_drop(s, w);
    if (!attempt->ck->kind->namespaced || !smap_size(&s->spaces)) {
        return 0;
    }
    CLEANUP_FREE char *namespace = quota_namespace(attempt->key);
    const struct quota_space *sp = quota_space_find(s, namespace);
    if (!sp) {
        return 0;
    }
    struct quota *awaited;
    int r = charge(s, w, sp, attempt, &awaited, outcome);
    if (r < 0) {
        drop_charges(s, w);
        return r;
    }
    bool fenced = s->shared && !attempt->q->dry_run;
    if (!awaited && fenced) {
        awaited = find_held(w);
    }
    if (awaited) {
        return wait_for(s, w, awaited, attempt, outcome);
    }
    for (size_t i = 0; i < w->n_charges; i++) {
        quota_reserve(&w->charges[i]);
    }
    if (fenced) {
        take_fences(s, w);
    }
    return 0;
}

/* ---- the plug-ins ---- */

/* Refuses a pod whose containers do not state what the quotas of its namespace make obligatory. The
 * pod is counted later, when it is stored: see quota_settle. */
static int check_stated(struct request *q, const struct json *pod, bool cluster,
                        struct outcome *outcome)
{
    struct quotas *s = q->server->quotas;
    const struct quota_space *sp = quota_space_find(s, q->namespace);
    for (size_t i = 0; sp && i < sp->n; i++) {
        struct quota *quota = sp->list[i];
        CLEANUP_FREE char *missing =
            quota->cluster == cluster ? quota_spec_missing(quota->spec, pod) : NULL;
        if (missing) {
            CLEANUP_FREE char *why = xasprintf("failed quota: %s: %s", quota_name(quota), missing);
            count_refusal(s, quota);
            return admission_refuse(q, pod, why, outcome);
        }
    }
    return 0;
}

int quota_validate(struct request *q, const struct json *obj, const struct json *old,
                   struct outcome *outcome)
{
    return check_stated(q, obj, false, outcome);
}

int cluster_quota_validate(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome)
{
    return check_stated(q, obj, true, outcome);
}

/* ---- reports ---- */

const char **quotas_of_namespace(const struct quotas *s, const char *namespace)
{
    const struct quota_space *sp = quota_space_find(s, namespace);
    const char **names = xcalloc((sp ? sp->n : 0) + 1, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; sp && i < sp->n; i++) {
        if (sp->list[i]->cluster) {
            names[n++] = sp->list[i]->key;
        }
    }
    return names;
}
