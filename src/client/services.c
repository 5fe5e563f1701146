/* SPDX-License-Identifier: Apache-2.0 */
#include "client/services.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <malloc.h>
#include <string.h>

LOG_MODULE("services");

enum { W_SERVICES, W_SLICES, N_WATCHED };

/* What is known of one service, or of slices whose service is not there (yet). */
struct entry {
    struct hmap_node node;      /* In 'entries'. */
    struct list changed;        /* In 'changed', while something was not told. */
    struct sdn_service *parsed; /* The object's news, until joined and told; NULL: none. */
    struct sdn_service *told;   /* NULL: no service was told. */
    bool gone;                  /* The object is not there. */
    struct slice *slices;
    char key[]; /* "namespace/name" */
};

struct slice {
    struct slice *next;    /* Of the same service. */
    struct hmap_node node; /* In 'slices'. */
    struct entry *entry;
    struct sdn_slice *slice;
    char key[]; /* Of the EndpointSlice. */
};

struct listener {
    struct list node;
    const struct services_listener *ops;
    void *ctx;
    bool caught_up, synced;
};

struct watched {
    struct services_watch *owner;
    int what;
    bool lost;
    struct informer *informer;
};

struct services_watch {
    struct loop *loop;
    struct watched watched[N_WATCHED];
    struct hmap entries, slices;
    struct list changed;
    struct list listeners;
    struct loop_task tell;
    size_t n_services;
    bool synced;
};

/* ---- what is known ---- */

static struct entry *find_entry(const struct services_watch *w, const char *key)
{
    struct entry *en;
    HMAP_FOREACH_WITH_HASH (en, struct entry, node, hash_string(key), &w->entries) {
        if (streq(en->key, key)) {
            return en;
        }
    }
    return NULL;
}

static struct entry *get_entry(struct services_watch *w, const char *key)
{
    struct entry *en = find_entry(w, key);
    if (!en) {
        size_t size = strlen(key) + 1;
        en = xcalloc(1, sizeof *en + size);
        memcpy(en->key, key, size);
        en->gone = true;
        list_init(&en->changed);
        hmap_insert(&w->entries, &en->node, hash_string(key));
    }
    return en;
}

static void entry_free(struct services_watch *w, struct entry *en)
{
    hmap_remove(&w->entries, &en->node);
    list_remove(&en->changed);
    sdn_service_free(en->parsed);
    sdn_service_free(en->told);
    free(en);
}

static void mark(struct services_watch *w, struct entry *en)
{
    if (list_is_empty(&en->changed)) {
        list_push_back(&w->changed, &en->changed);
    }
    loop_task_queue(&w->tell);
}

static struct slice *find_slice(const struct services_watch *w, const char *key)
{
    struct slice *s;
    HMAP_FOREACH_WITH_HASH (s, struct slice, node, hash_string(key), &w->slices) {
        if (streq(s->key, key)) {
            return s;
        }
    }
    return NULL;
}

static void slice_remove(struct services_watch *w, struct slice *s)
{
    struct slice **p = &s->entry->slices;
    while (*p != s) {
        p = &(*p)->next;
    }
    *p = s->next;
    mark(w, s->entry);
    hmap_remove(&w->slices, &s->node);
    sdn_slice_unref(s->slice);
    free(s);
}

static void slice_changed(struct services_watch *w, const char *key, const struct json *obj)
{
    struct err e = {0};
    CLEANUP(sdn_slice_unref) struct sdn_slice *parsed = NULL;
    struct slice *s = find_slice(w, key);
    int r = sdn_slice_parse(obj, &parsed, &e);
    if (r < 0) {
        log_warn("an EndpointSlice cannot be used", "slice=%s reason=\"%s\"", key, e.text);
    }
    if (s) {
        slice_remove(w, s);
    }
    if (r < 0 || !parsed->service) {
        return;
    }
    CLEANUP_FREE char *ns = xstrndup(key, strcspn(key, "/"));
    CLEANUP_FREE char *service = xasprintf("%s/%s", ns, parsed->service);
    size_t size = strlen(key) + 1;
    s = xcalloc(1, sizeof *s + size);
    memcpy(s->key, key, size);
    s->slice = TAKE(parsed);
    s->entry = get_entry(w, service);
    s->next = s->entry->slices;
    s->entry->slices = s;
    hmap_insert(&w->slices, &s->node, hash_string(key));
    mark(w, s->entry);
}

static void service_changed(struct services_watch *w, const char *key, const struct json *obj)
{
    struct err e = {0};
    struct sdn_service *parsed = NULL;
    struct entry *en = get_entry(w, key);
    if (sdn_service_parse(obj, &parsed, &e) < 0) {
        log_warn("a Service cannot be served", "service=%s reason=\"%s\"", key, e.text);
    }
    sdn_service_free(en->parsed);
    en->parsed = parsed;
    en->gone = parsed == NULL;
    mark(w, en);
}

/* ---- telling ---- */

static void tell_entry(struct services_watch *w, struct entry *en)
{
    struct sdn_service *old = en->told;
    CLEANUP(sdn_service_free) struct sdn_service *now = TAKE(en->parsed);
    if (!now && !en->gone && old) {
        now = sdn_service_clone(old);
    }
    if (now) {
        size_t n = 0;
        for (struct slice *s = en->slices; s; s = s->next) {
            n++;
        }
        struct sdn_slice **slices = n ? xcalloc(n, sizeof *slices) : NULL;
        n = 0;
        for (struct slice *s = en->slices; s; s = s->next) {
            slices[n++] = s->slice;
        }
        sdn_service_join(now, slices, n);
        free(slices);
    }
    if ((now || old) && !(now && old && sdn_service_equal(old, now))) {
        struct listener *l;
        LIST_FOREACH (l, struct listener, node, &w->listeners) {
            if (l->caught_up && l->ops->changed) {
                l->ops->changed(l->ctx, old, now);
            }
        }
    }
    w->n_services += (now != NULL) - (size_t) (old != NULL);
    en->told = TAKE(now);
    sdn_service_free(old);
    if (!en->told && !en->slices) {
        entry_free(w, en);
    }
}

/* A new listener hears of all that the others have been told already. */
static void catch_up(struct services_watch *w, struct listener *l)
{
    struct entry *en;
    HMAP_FOREACH (en, struct entry, node, &w->entries) {
        if (en->told) {
            l->ops->changed(l->ctx, NULL, en->told);
        }
    }
    l->caught_up = true;
}

static void tell(void *ctx)
{
    struct services_watch *w = ctx;
    struct listener *l;
    struct list *node;
    LIST_FOREACH (l, struct listener, node, &w->listeners) {
        if (!l->caught_up) {
            catch_up(w, l);
        }
    }
    while ((node = list_pop_front(&w->changed)) != NULL) {
        tell_entry(w, CONTAINER_OF(node, struct entry, changed));
    }
    LIST_FOREACH (l, struct listener, node, &w->listeners) {
        if (l->ops->settled) {
            l->ops->settled(l->ctx);
        }
        if (w->synced && !l->synced) {
            l->synced = true;
            if (l->ops->synced) {
                l->ops->synced(l->ctx);
            }
        }
    }
}

/* ---- informers ---- */

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    (void) old;
    struct watched *wd = ctx;
    (wd->what == W_SERVICES ? service_changed : slice_changed)(wd->owner, key, obj);
}

static void deleted(void *ctx, const char *key, const struct json *obj)
{
    (void) obj;
    struct watched *wd = ctx;
    struct services_watch *w = wd->owner;
    if (wd->what == W_SERVICES) {
        struct entry *en = find_entry(w, key);
        if (en) {
            en->parsed = sdn_service_free(en->parsed);
            en->gone = true;
            mark(w, en);
        }
    } else {
        struct slice *s = find_slice(w, key);
        if (s) {
            slice_remove(w, s);
        }
    }
}

static void synced(void *ctx)
{
    struct services_watch *w = ((struct watched *) ctx)->owner;
    for (size_t i = 0; i < N_WATCHED; i++) {
        /* The first may be complete before the last was made. */
        if (!w->watched[i].informer || !informer_synced(w->watched[i].informer)) {
            return;
        }
    }
    w->synced = true;
    log_info("services known", "services=%zu slices=%zu",
             informer_count(w->watched[W_SERVICES].informer),
             informer_count(w->watched[W_SLICES].informer));
    malloc_trim(0); /* The lists left holes. */
    loop_task_queue(&w->tell);
}

static void connection(void *ctx, const char *lost_reason)
{
    ((struct watched *) ctx)->lost = lost_reason != NULL;
}

/* ---- public ---- */

struct services_watch *services_watch_new(struct loop *l, struct api_client *c)
{
    static const struct informer_ops ops = {
        .changed = changed, .deleted = deleted, .synced = synced, .connection = connection};
    static const struct {
        const char *api, *plural;
    } kinds[N_WATCHED] = {
        [W_SERVICES] = {"v1", "services"},
        [W_SLICES] = {"discovery.k8s.io/v1", "endpointslices"},
    };
    struct services_watch *w = NEW(struct services_watch);
    w->loop = l;
    hmap_init(&w->entries);
    hmap_init(&w->slices);
    list_init(&w->changed);
    list_init(&w->listeners);
    loop_task_init(&w->tell, l, tell, w);
    for (int i = 0; i < N_WATCHED; i++) {
        struct watched *wd = &w->watched[i];
        wd->owner = w;
        wd->what = i;
        wd->informer = informer_new(c, l, kinds[i].api, kinds[i].plural, NULL, &ops, wd);
        informer_keep_keys_only(wd->informer);
        informer_set_optional(
            wd->informer); /* A server of before has no services: there are none. */
    }
    return w;
}

struct services_watch *services_watch_free(struct services_watch *w)
{
    if (!w) {
        return NULL;
    }
    loop_task_cancel(&w->tell);
    for (size_t i = 0; i < N_WATCHED; i++) {
        informer_free(w->watched[i].informer);
    }
    struct slice *s;
    HMAP_FOREACH (s, struct slice, node, &w->slices) {
        hmap_remove(&w->slices, &s->node);
        sdn_slice_unref(s->slice);
        free(s);
    }
    struct entry *en;
    HMAP_FOREACH (en, struct entry, node, &w->entries) {
        entry_free(w, en);
    }
    hmap_done(&w->slices);
    hmap_done(&w->entries);
    struct listener *l;
    LIST_FOREACH (l, struct listener, node, &w->listeners) {
        free(l);
    }
    free(w);
    return NULL;
}

void services_watch_add(struct services_watch *w, const struct services_listener *ops, void *ctx)
{
    struct listener *l = NEW(struct listener);
    l->ops = ops;
    l->ctx = ctx;
    list_push_back(&w->listeners, &l->node);
    loop_task_queue(&w->tell);
}

void services_watch_remove(struct services_watch *w, void *ctx)
{
    struct listener *l;
    LIST_FOREACH (l, struct listener, node, &w->listeners) {
        if (l->ctx == ctx) {
            list_remove(&l->node);
            free(l);
        }
    }
}

bool services_watch_synced(const struct services_watch *w)
{
    return w->synced;
}

bool services_watch_connected(const struct services_watch *w)
{
    return !w->watched[W_SERVICES].lost && !w->watched[W_SLICES].lost;
}

const struct sdn_service *services_watch_get(const struct services_watch *w, const char *ns,
                                             const char *name)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", ns, name);
    const struct entry *en = find_entry(w, key);
    return en ? en->told : NULL;
}

size_t services_watch_count(const struct services_watch *w)
{
    return w->n_services;
}

void services_watch_each(const struct services_watch *w,
                         void (*fn)(void *ctx, const struct sdn_service *s), void *ctx)
{
    struct entry *en;
    HMAP_FOREACH (en, struct entry, node, &w->entries) {
        if (en->told) {
            fn(ctx, en->told);
        }
    }
}
