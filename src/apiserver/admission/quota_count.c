/* SPDX-License-Identifier: Apache-2.0 */
/* Which quotas there are, which namespaces they bound, and what is used of them. */
#include "api/label_selector.h"
#include "api/obj.h"
#include "apiserver/admission/quota_priv.h"
#include "base/log.h"

LOG_MODULE("quota");

/* ---- one quota ---- */

static struct quota *quota_new(bool cluster, const char *key, const struct json *obj)
{
    struct quota *q = NEW(struct quota);
    const struct json *spec = json_get(obj, "spec");
    const struct json *bounds = cluster ? json_get(spec, "quota") : spec;
    q->refs = 1;
    q->cluster = cluster;
    q->key = xstrdup(key);
    q->uid = xstrdup(obj_uid(obj));
    q->raw = spec ? json_clone(spec) : json_object();
    q->spec = quota_spec_new(bounds);
    smap_init(&q->shares, free);
    list_init(&q->turns);
    return q;
}

void quota_unref(struct quota *q)
{
    if (--q->refs == 0) {
        smap_done(&q->shares);
        quota_spec_free(q->spec);
        json_free(q->raw);
        free(q->uid);
        free(q->key);
        free(q);
    }
}

const char *quota_name(const struct quota *q)
{
    const char *slash = strchr(q->key, '/');
    return slash ? slash + 1 : q->key;
}

char *quota_fence(const struct quota *q)
{
    return xasprintf(QUOTA_FENCE_PREFIX "%s/%s", q->key, q->uid);
}

char *quota_namespace(const char *key)
{
    const char *slash = strchr(key, '/');
    return xstrndup(key, slash ? (size_t) (slash - key) : 0);
}

/* ---- namespaces ---- */

void quota_space_free(void *p)
{
    struct quota_space *sp = p;
    for (size_t i = 0; i < sp->n; i++) {
        quota_unref(sp->list[i]);
    }
    free(sp->list);
    free(sp);
}

const struct quota_space *quota_space_find(const struct quotas *s, const char *namespace)
{
    return smap_get(&s->spaces, namespace);
}

/* Quotas of the namespace come before those of the cluster, each in the order of their keys. */
static bool comes_before(const struct quota *a, const struct quota *b)
{
    return a->cluster != b->cluster ? b->cluster : strcmp(a->key, b->key) < 0;
}

static void space_add(struct quotas *s, const char *namespace, struct quota *q)
{
    struct quota_space *sp = smap_get(&s->spaces, namespace);
    if (!sp) {
        sp = NEW(struct quota_space);
        smap_set(&s->spaces, namespace, sp);
    }
    size_t i = sp->n;
    sp->list = grow(sp->list, &sp->cap, sp->n + 1, sizeof *sp->list);
    for (; i > 0 && comes_before(q, sp->list[i - 1]); i--) {
        sp->list[i] = sp->list[i - 1];
    }
    sp->list[i] = quota_ref(q);
    sp->n++;
}

static void space_remove(struct quotas *s, const char *namespace, struct quota *q)
{
    struct quota_space *sp = smap_get(&s->spaces, namespace);
    for (size_t i = 0; sp && i < sp->n; i++) {
        if (sp->list[i] == q) {
            memmove(&sp->list[i], &sp->list[i + 1], (sp->n - i - 1) * sizeof *sp->list);
            sp->n--;
            quota_unref(q);
            break;
        }
    }
    if (sp && sp->n == 0) {
        smap_remove(&s->spaces, namespace);
    }
}

/* ---- charges ---- */

bool quota_concerns(const struct quota *q, const struct cache_kind *ck)
{
    return quota_spec_concerns(q->spec, ck->kind->group, ck->kind->plural);
}

struct quota_charge *quota_charge_add(struct quota_write *w, struct quota *q,
                                      const struct cache_kind *ck, const struct json *obj,
                                      const struct json *old)
{
    int64_t before[QUOTA_MAX_ITEMS], after[QUOTA_MAX_ITEMS];
    const struct api_kind *k = ck->kind;
    quota_spec_charge(q->spec, k->group, k->plural, old != NULL, old, before);
    quota_spec_charge(q->spec, k->group, k->plural, obj != NULL, obj, after);
    w->charges = grow(w->charges, &w->cap_charges, w->n_charges + 1, sizeof *w->charges);
    struct quota_charge *c = &w->charges[w->n_charges++];
    *c = (struct quota_charge){.quota = quota_ref(q),
                               .add = xcalloc(q->spec->n + 1, sizeof *c->add)};
    for (size_t i = 0; i < q->spec->n; i++) {
        c->add[i] = after[i] - before[i];
    }
    return c;
}

void quota_reserve(struct quota_charge *c)
{
    for (size_t i = 0; i < c->quota->spec->n && !c->reserved; i++) {
        c->quota->reserved[i] += MAX(c->add[i], (int64_t) 0);
    }
    c->reserved = true;
}

void quota_release(struct quotas *s, struct quota_charge *c)
{
    if (c->reserved) {
        for (size_t i = 0; i < c->quota->spec->n; i++) {
            c->quota->reserved[i] -= MAX(c->add[i], (int64_t) 0);
        }
        c->reserved = false;
        quota_serve_next(s, c->quota);
    }
}

void quota_add(struct quotas *s, struct quota *q, const char *namespace, const int64_t *add)
{
    struct quota_share *share = q->cluster ? smap_get(&q->shares, namespace) : NULL;
    bool changes = false;
    for (size_t i = 0; i < q->spec->n; i++) {
        q->used[i] += add[i];
        changes |= add[i] != 0;
        if (share) {
            share->used[i] += add[i];
        }
    }
    if (changes) {
        quota_mark_dirty(s, q);
    }
}

/* ---- counting ---- */

/* Whether all that the quota reads of a pod is whether it has ended. */
static bool needs_phase_only(const struct quota *q)
{
    bool only = json_count(q->spec->scopes) == 0;
    for (size_t i = 0; i < q->spec->n; i++) {
        enum quota_measure m = q->spec->items[i].measure;
        only &= m != QUOTA_REQUESTS && m != QUOTA_LIMITS;
    }
    return only;
}

/* Adds the objects of one kind in the namespace to 'used'. */
static void count_kind(const struct quota *q, const struct cache_kind *ck, const char *namespace,
                       quota_total *used)
{
    const struct api_kind *k = ck->kind;
    bool reads = quota_spec_reads(q->spec, k->group, k->plural);
    bool pods = *k->group == '\0' && streq(k->plural, "pods");
    int phase = pods && needs_phase_only(q) ? api_field_find(k, "status.phase") : -1;
    CLEANUP_FREE char *first = xasprintf("%s/", namespace);
    CLEANUP(json_free) struct json *short_pod = json_object();
    struct json *status = json_ensure_object(short_pod, "status");
    struct keyset_pos pos = keyset_seek(&ck->objects, first);
    const struct object *o;
    int64_t add[QUOTA_MAX_ITEMS];
    while ((o = keyset_next(&ck->objects, &pos)) && str_has_prefix(o->key, first)) {
        CLEANUP(json_free) struct json *obj = NULL;
        if (reads && phase >= 0) {
            json_set_string(status, "phase", api_index_field(o->index, (size_t) phase));
        } else if (reads) {
            obj = object_parse(o);
        }
        quota_spec_charge(q->spec, k->group, k->plural, true, obj ? obj : short_pod, add);
        for (size_t i = 0; i < q->spec->n; i++) {
            used[i] += add[i];
        }
    }
}

static void count_namespace(const struct quotas *s, const struct quota *q, const char *namespace,
                            quota_total *used)
{
    const struct cache *c = &s->server->cache;
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (c->kinds[i]->kind->namespaced && quota_concerns(q, c->kinds[i])) {
            count_kind(q, c->kinds[i], namespace, used);
        }
    }
}

/* Reserves what the writes that were sent before the quota was known will add to it. */
static void count_flights(struct quotas *s, struct quota *q, const char *namespace)
{
    struct quota_write *w;
    CLEANUP_FREE char *first = xasprintf("%s/", namespace);
    LIST_FOREACH (w, struct quota_write, flight, &s->flights) {
        bool has = !quota_concerns(q, w->ck) || !str_has_prefix(w->key, first) || !w->value;
        for (size_t i = 0; i < w->n_charges; i++) {
            has |= w->charges[i].quota == q;
        }
        if (!has) {
            CLEANUP(json_free) struct json *obj = NULL;
            CLEANUP(json_free) struct json *old = w->base ? object_parse(w->base) : NULL;
            (void) json_parse(w->value->data, w->value->size, &obj, NULL);
            quota_reserve(quota_charge_add(w, q, w->ck, obj, old));
        }
    }
}

static void count_share(struct quotas *s, struct quota *q, const char *namespace,
                        struct quota_share *share)
{
    memset(share->used, 0, sizeof share->used);
    count_namespace(s, q, namespace, share->used);
    for (size_t i = 0; i < q->spec->n; i++) {
        q->used[i] += share->used[i];
    }
    count_flights(s, q, namespace);
}

void quota_count(struct quotas *s, struct quota *q)
{
    struct smap_entry *e;
    if (q->counted) {
        return;
    }
    memset(q->used, 0, sizeof q->used);
    if (q->cluster) {
        SMAP_FOREACH (e, &q->shares) {
            count_share(s, q, e->key, e->value);
        }
    } else {
        CLEANUP_FREE char *namespace = quota_namespace(q->key);
        count_namespace(s, q, namespace, q->used);
        count_flights(s, q, namespace);
    }
    q->counted = true;
    quota_mark_dirty(s, q);
}

/* ---- selectors ---- */

static bool selects(const struct quota *q, const struct json *namespace)
{
    const struct json *selector = json_get(q->raw, "selector");
    const struct json *labels = json_get(selector, "labels");
    const struct json *wanted = json_get(selector, "annotations");
    bool matches = !label_selector_is_empty(labels) || json_count(wanted);
    if (json_is(labels, JSON_OBJECT)) {
        matches = matches &&
                  label_selector_matches(labels, json_path(namespace, "metadata", "labels", NULL));
    }
    for (size_t i = 0; matches && json_is(wanted, JSON_OBJECT) && i < json_count(wanted); i++) {
        const char *value = obj_annotation(namespace, json_key_at(wanted, i));
        matches = streq_null(json_get_string(json_at(wanted, i)), value ? value : "") && value;
    }
    return matches;
}

static struct quota_share *add_share(struct quota *q, const char *namespace)
{
    struct quota_share *share = NEW(struct quota_share);
    smap_set(&q->shares, namespace, share);
    return share;
}

static void select_namespace(struct quotas *s, struct quota *q, const char *name)
{
    struct quota_share *share = add_share(q, name);
    space_add(s, name, q);
    if (q->counted) {
        count_share(s, q, name, share);
    }
    quota_mark_dirty(s, q);
}

static void deselect_namespace(struct quotas *s, struct quota *q, const char *name)
{
    CLEANUP_FREE struct quota_share *share = smap_take(&q->shares, name);
    for (size_t i = 0; q->counted && i < q->spec->n; i++) {
        q->used[i] -= share->used[i];
    }
    space_remove(s, name, q);
    quota_mark_dirty(s, q);
}

void quotas_namespace_changed(struct quotas *s, const char *name, struct object *o)
{
    struct smap_entry *e;
    if (smap_size(&s->cluster) == 0) {
        return;
    }
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    SMAP_FOREACH (e, &s->cluster) {
        struct quota *q = e->value;
        bool was = smap_get(&q->shares, name) != NULL, is = obj && selects(q, obj);
        if (is && !was) {
            select_namespace(s, q, name);
        } else if (was && !is) {
            deselect_namespace(s, q, name);
        }
    }
}

static void select_namespaces(struct quotas *s, struct quota *q)
{
    struct keyset_pos pos = keyset_seek(&s->namespaces->objects, "");
    const struct object *o;
    while ((o = keyset_next(&s->namespaces->objects, &pos))) {
        CLEANUP(json_free) struct json *obj = object_parse(o);
        if (selects(q, obj)) {
            select_namespace(s, q, o->key);
        }
    }
}

/* ---- quotas that come and go ---- */

/* Writes that wait for the quota's fence are decided anew. */
static void serve_turns(struct quotas *s, struct quota *q)
{
    struct list *turn;
    while ((turn = list_pop_front(&q->turns))) {
        list_push_back(&s->ready, turn);
        loop_task_queue(&s->serve);
    }
}

static void retire(struct quotas *s, struct quota *q)
{
    q->gone = true;
    if (q->is_dirty) {
        q->is_dirty = false;
        list_remove(&q->dirty);
        quota_unref(q);
    }
    serve_turns(s, q);
    if (q->cluster) {
        while (smap_size(&q->shares)) {
            CLEANUP_FREE char *name =
                xstrdup(CONTAINER_OF(q->shares.order.next, struct smap_entry, order)->key);
            (void) smap_remove(&q->shares, name);
            space_remove(s, name, q);
        }
    } else {
        CLEANUP_FREE char *namespace = quota_namespace(q->key);
        space_remove(s, namespace, q);
    }
}

static void fence_removed(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    if (error < 0 && error != -ENOENT && error != -EAGAIN && error != -ECANCELED) {
        log_limited(&limit, LOG_WARN, "the fence of a deleted quota remains in the store",
                    "error=\"%s\"", strerror(-error));
    }
}

void quotas_quota_changed(struct quotas *s, bool cluster, const char *key, struct object *o)
{
    struct smap *all = cluster ? &s->cluster : &s->own;
    struct quota *old = smap_get(all, key);
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    struct quota *new = obj ? quota_new(cluster, key, obj) : NULL;
    if (old && new &&streq(old->uid, new->uid) && json_equal(old->raw, new->raw)) {
        quota_mark_dirty(s, old); /* Another client may have written the status. */
        quota_unref(new);
        return;
    }
    if (old) {
        retire(s, old);
        if (new &&streq(old->uid, new->uid)) {
            new->written_ms = old->written_ms;
        } else if (s->shared) {
            CLEANUP_FREE char *fence = quota_fence(old);
            store_delete(s->server->store, fence, STORE_ANY, fence_removed, NULL);
        }
        (void) smap_take(all, key);
        quota_unref(old);
    }
    if (new) {
        smap_set(all, key, new);
        if (cluster) {
            select_namespaces(s, new);
        } else {
            CLEANUP_FREE char *namespace = quota_namespace(key);
            space_add(s, namespace, new);
        }
        quota_mark_dirty(s, new);
    }
}

/* Counts a quota that does not exist yet. */
static void count_new(struct quotas *s, struct quota *q)
{
    struct keyset_pos pos = keyset_seek(&s->namespaces->objects, "");
    const struct object *o;
    if (!q->cluster) {
        CLEANUP_FREE char *namespace = quota_namespace(q->key);
        count_namespace(s, q, namespace, q->used);
        return;
    }
    while ((o = keyset_next(&s->namespaces->objects, &pos))) {
        CLEANUP(json_free) struct json *obj = object_parse(o);
        if (selects(q, obj)) {
            struct quota_share *share = add_share(q, o->key);
            count_namespace(s, q, o->key, share->used);
            for (size_t i = 0; i < q->spec->n; i++) {
                q->used[i] += share->used[i];
            }
        }
    }
}

void quota_fill_status(struct quotas *s, const struct cache_kind *ck, const char *key,
                       struct json *obj)
{
    if (ck != s->quotas && ck != s->clusters) {
        return;
    }
    bool cluster = ck == s->clusters;
    struct quota *q = quota_new(cluster, key, obj);
    struct quota *had = smap_get(cluster ? &s->cluster : &s->own, key);
    if (had && streq(had->uid, q->uid) && json_equal(had->raw, q->raw)) {
        quota_unref(q);
        q = quota_ref(had);
        quota_count(s, q);
    } else {
        count_new(s, q);
    }
    quota_set_status(q, ck, obj);
    quota_unref(q);
}

/* ---- the whole ---- */

static void clear_map(struct quotas *s, struct smap *all)
{
    while (smap_size(all)) {
        CLEANUP_FREE char *key =
            xstrdup(CONTAINER_OF(all->order.next, struct smap_entry, order)->key);
        struct quota *q = smap_take(all, key);
        retire(s, q);
        quota_unref(q);
    }
}

void quotas_clear(struct quotas *s)
{
    clear_map(s, &s->own);
    clear_map(s, &s->cluster);
}

static void load_kind(struct quotas *s, const struct cache_kind *ck, bool cluster)
{
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    struct object *o;
    while ((o = keyset_next(&ck->objects, &pos))) {
        quotas_quota_changed(s, cluster, o->key, o);
    }
}

/* Removes a fence whose quota is gone. */
static void check_fence(struct quotas *s, const char *key)
{
    const char *path = key + strlen(QUOTA_FENCE_PREFIX), *uid = strrchr(path, '/');
    CLEANUP_FREE char *of = xstrndup(path, uid ? (size_t) (uid - path) : 0);
    const struct quota *q = smap_get(strchr(of, '/') ? &s->own : &s->cluster, of);
    uint64_t revision;
    if ((!q || !streq(q->uid, uid + 1)) && cache_unknown_value(&s->server->cache, key, &revision)) {
        store_delete(s->server->store, key, revision, fence_removed, NULL);
    }
}

static void add_fence(void *ctx, const char *key)
{
    json_append(ctx, json_string(key));
}

void quotas_load(struct quotas *s)
{
    CLEANUP(json_free) struct json *fences = json_array();
    quotas_clear(s);
    load_kind(s, s->quotas, false);
    load_kind(s, s->clusters, true);
    cache_each_unknown(&s->server->cache, QUOTA_FENCE_PREFIX, add_fence, fences);
    for (size_t i = 0; i < json_count(fences); i++) {
        check_fence(s, json_get_string(json_at(fences, i)));
    }
}
