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

/* The state of one service, or of slices whose service does not exist (yet).  There are tens of
 * thousands, so state that is needed only until a change is reported is separate. */
struct entry {
    struct hmap_node node;        /* In 'entries'. */
    struct sdn_service *reported; /* The state last reported to the listeners; NULL: none. */
    struct slice *slices;
    struct change *change; /* A change that is not reported yet; else NULL. */
    uint32_t version;      /* The hash of the Service's resourceVersion. */
    bool seen;             /* It was in the list being read. */
    char key[];            /* "namespace/name" */
};

struct change {
    struct list node; /* In 'changed'. */
    struct entry *entry;
    /* From the Service object, until joined with its slices and reported; NULL: it did not
     * change. */
    struct sdn_service *parsed;
    bool gone; /* The Service object was deleted. */
};

struct slice {
    struct slice *next;    /* The next slice of the same service. */
    struct hmap_node node; /* In 'slices', by "namespace/name". */
    struct entry *entry;
    struct sdn_slice *slice;
    uint32_t version; /* The hash of the slice's resourceVersion. */
    bool seen;
    char name[]; /* The name within the service's namespace. */
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
    struct loop_task report;
    size_t n_services;
    bool synced, said;
};

/* ---- state ---- */

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
        hmap_insert(&w->entries, &en->node, hash_string(key));
    }
    return en;
}

static void change_free(struct change *n)
{
    if (n) {
        list_remove(&n->node);
        sdn_service_free(n->parsed);
        free(n);
    }
}

static void entry_free(struct services_watch *w, struct entry *en)
{
    hmap_remove(&w->entries, &en->node);
    change_free(en->change);
    sdn_service_free(en->reported);
    free(en);
}

/* The pending change of 'en', which will be reported. */
static struct change *mark(struct services_watch *w, struct entry *en)
{
    if (!en->change) {
        en->change = NEW(struct change);
        *en->change = (struct change){.entry = en, .gone = !en->reported};
        list_push_back(&w->changed, &en->change->node);
        loop_task_queue(&w->report);
    }
    return en->change;
}

static struct slice *find_slice(const struct services_watch *w, const char *key)
{
    struct slice *s;
    size_t ns = strcspn(key, "/");
    HMAP_FOREACH_WITH_HASH (s, struct slice, node, hash_string(key), &w->slices) {
        if (strncmp(s->entry->key, key, ns + 1) == 0 && streq(s->name, key + ns + 1)) {
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

static uint32_t version_of(const struct json *obj)
{
    const char *version = json_path_string(obj, "metadata", "resourceVersion", NULL);
    return version ? hash_string(version) : 0;
}

static void slice_changed(struct services_watch *w, const char *key, const struct json *obj)
{
    struct err e = {0};
    CLEANUP(sdn_slice_unref) struct sdn_slice *parsed = NULL;
    struct slice *s = find_slice(w, key);
    uint32_t version = version_of(obj);
    if (s && version && s->version == version) {
        s->seen = true;
        return;
    }
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
    size_t ns = strcspn(key, "/");
    if (key[ns] == '\0') {
        return; /* Slices and services without a namespace are invalid. */
    }
    const char *name = key + ns + 1;
    CLEANUP_FREE char *service = xasprintf("%.*s/%s", (int) ns, key, parsed->service);
    size_t size = strlen(name) + 1;
    s = xcalloc(1, sizeof *s + size);
    memcpy(s->name, name, size);
    s->version = version;
    s->seen = true;
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
    uint32_t version = version_of(obj);
    bool known = en->change ? !en->change->gone : en->reported != NULL;
    en->seen = true;
    if (known && version && en->version == version) {
        return;
    }
    en->version = version;
    if (sdn_service_parse(obj, &parsed, &e) < 0) {
        log_warn("a Service cannot be served", "service=%s reason=\"%s\"", key, e.text);
    }
    struct change *n = mark(w, en);
    sdn_service_free(n->parsed);
    n->parsed = parsed;
    n->gone = parsed == NULL;
}

static void service_gone(struct services_watch *w, struct entry *en)
{
    struct change *n = mark(w, en);
    n->parsed = sdn_service_free(n->parsed);
    n->gone = true;
}

/* ---- reports ---- */

static void report_entry(struct services_watch *w, struct entry *en)
{
    struct sdn_service *old = en->reported;
    CLEANUP(sdn_service_free) struct sdn_service *now = TAKE(en->change->parsed);
    if (!now && !en->change->gone) {
        now = sdn_service_clone(old);
    }
    change_free(TAKE(en->change));
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
    en->reported = TAKE(now);
    sdn_service_free(old);
    if (!en->reported && !en->slices) {
        entry_free(w, en);
    }
}

/* Reports to a new listener the state that the other listeners were notified of. */
static void catch_up(struct services_watch *w, struct listener *l)
{
    struct entry *en;
    HMAP_FOREACH (en, struct entry, node, &w->entries) {
        if (en->reported) {
            l->ops->changed(l->ctx, NULL, en->reported);
        }
    }
    l->caught_up = true;
}

static void report(void *ctx)
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
        report_entry(w, CONTAINER_OF(node, struct change, node)->entry);
    }
    if (w->synced && !w->said) {
        w->said = true;
        log_info("services known", "services=%zu slices=%zu", w->n_services, w->slices.n);
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
            service_gone(w, en);
        }
    } else {
        struct slice *s = find_slice(w, key);
        if (s) {
            slice_remove(w, s);
        }
    }
}

/* A list begins: objects that are on none of its pages were deleted while there was no watch. */
static void listing(void *ctx)
{
    struct watched *wd = ctx;
    struct entry *en;
    struct slice *s;
    if (wd->what == W_SERVICES) {
        HMAP_FOREACH (en, struct entry, node, &wd->owner->entries) {
            en->seen = false;
        }
    } else {
        HMAP_FOREACH (s, struct slice, node, &wd->owner->slices) {
            s->seen = false;
        }
    }
}

static void listed(void *ctx)
{
    struct watched *wd = ctx;
    struct entry *en;
    struct slice *s;
    if (wd->what == W_SERVICES) {
        HMAP_FOREACH (en, struct entry, node, &wd->owner->entries) {
            if (!en->seen) {
                service_gone(wd->owner, en);
            }
        }
    } else {
        HMAP_FOREACH (s, struct slice, node, &wd->owner->slices) {
            if (!s->seen) {
                slice_remove(wd->owner, s);
            }
        }
    }
}

static void synced(void *ctx)
{
    struct services_watch *w = ((struct watched *) ctx)->owner;
    for (size_t i = 0; i < N_WATCHED; i++) {
        if (!informer_synced(w->watched[i].informer)) {
            return;
        }
    }
    w->synced = true;
    malloc_trim(0); /* Returns memory that the lists fragmented to the kernel. */
    loop_task_queue(&w->report);
}

static void connection(void *ctx, const char *lost_reason)
{
    ((struct watched *) ctx)->lost = lost_reason != NULL;
}

/* ---- public ---- */

/* Follows the objects through 'set', or, when that is NULL,
 * through a list and watch of its own by 'c'. */
static struct services_watch *watch_new(struct loop *l, struct api_client *c,
                                        struct informer_set *set)
{
    static const struct informer_ops ops = {.changed = changed,
                                            .deleted = deleted,
                                            .synced = synced,
                                            .connection = connection,
                                            /* This module keeps the state that it needs. */
                                            .transient = true,
                                            .listing = listing,
                                            .listed = listed};
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
    loop_task_init(&w->report, l, report, w);
    for (int i = 0; i < N_WATCHED; i++) {
        struct watched *wd = &w->watched[i];
        wd->owner = w;
        wd->what = i;
        wd->informer = set ? informer_set_add(set, kinds[i].api, kinds[i].plural, NULL, &ops, wd)
                           : informer_new(c, l, kinds[i].api, kinds[i].plural, NULL, &ops, wd);
        /* An older server without this kind counts as having no services. */
        informer_set_optional(wd->informer);
    }
    return w;
}

struct services_watch *services_watch_new(struct loop *l, struct api_client *c)
{
    return watch_new(l, c, NULL);
}

struct services_watch *services_watch_new_in(struct loop *l, struct informer_set *set)
{
    return watch_new(l, NULL, set);
}

struct services_watch *services_watch_free(struct services_watch *w)
{
    if (!w) {
        return NULL;
    }
    loop_task_cancel(&w->report);
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
    loop_task_queue(&w->report);
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
    return en ? en->reported : NULL;
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
        if (en->reported) {
            fn(ctx, en->reported);
        }
    }
}
