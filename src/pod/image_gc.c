/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/image_gc.h"

#include "base/mem.h"
#include "base/str.h"

struct record {
    int64_t found_ns, used_ns;
    bool seen; /* In this round. */
};

void image_gc_init(struct image_gc *g)
{
    smap_init(&g->records, free);
}

void image_gc_done(struct image_gc *g)
{
    smap_done(&g->records);
}

static bool is_used(const struct runtime_image *i, const struct smap *used)
{
    bool found = smap_get(used, i->id) != NULL;
    for (size_t k = 0; k < i->tags.n; k++) {
        found = found || smap_get(used, i->tags.v[k]);
    }
    for (size_t k = 0; k < i->digests.n; k++) {
        found = found || smap_get(used, i->digests.v[k]);
    }
    return found;
}

/* "registry.k8s.io/pause:3.9", "localhost/tenet-pause:1" */
static bool names_pause(const char *tag)
{
    const char *slash = strrchr(tag, '/'), *name = slash ? slash + 1 : tag;
    size_t size = strcspn(name, ":@");
    return size >= 5 && strncmp(name + size - 5, "pause", 5) == 0 &&
           (size == 5 || name[size - 6] == '-');
}

/* Runtimes before containerd 1.7 do not pin the image of sandboxes. */
static bool is_pause(const struct runtime_image *i, const char *pause)
{
    for (size_t k = 0; k < i->tags.n; k++) {
        if (pause ? streq(i->tags.v[k], pause) : names_pause(i->tags.v[k])) {
            return true;
        }
    }
    return false;
}

static struct record *record_of(struct image_gc *g, const char *id, int64_t now_ns)
{
    struct record *r = smap_get(&g->records, id);
    if (!r) {
        r = NEW(struct record);
        r->found_ns = now_ns;
        smap_set(&g->records, id, r);
    }
    return r;
}

struct candidate {
    const struct runtime_image *image;
    const struct record *record;
};

static int by_use(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int64_t p = x->record->used_ns, q = y->record->used_ns;
    if (p == q) {
        p = x->record->found_ns;
        q = y->record->found_ns;
    }
    return p < q ? -1 : p > q ? 1 : strcmp(x->image->id, y->image->id);
}

static void forget_absent(struct image_gc *g)
{
    CLEANUP_FREE char **absent = xcalloc(smap_size(&g->records) + 1, sizeof *absent);
    struct smap_entry *e;
    size_t n = 0;
    SMAP_FOREACH (e, &g->records) {
        struct record *r = e->value;
        if (!r->seen) {
            absent[n++] = xstrdup(e->key);
        }
        r->seen = false;
    }
    for (size_t i = 0; i < n; i++) {
        smap_remove(&g->records, absent[i]);
        free(absent[i]);
    }
}

size_t image_gc_choose(struct image_gc *g, const struct image_gc_input *in, const char ***ret,
                       int64_t *ret_bytes)
{
    CLEANUP_FREE struct candidate *v = xcalloc(in->n_images + 1, sizeof *v);
    const char **ids = xcalloc(in->n_images + 1, sizeof *ids);
    size_t n = 0, n_ids = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < in->n_images; i++) {
        const struct runtime_image *image = &in->images[i];
        struct record *r = record_of(g, image->id, in->now_ns);
        r->seen = true;
        if (is_used(image, in->used)) {
            r->used_ns = in->now_ns;
        } else if (!image->pinned && !is_pause(image, in->pause) &&
                   in->now_ns - r->found_ns >= in->min_age_ns) {
            v[n++] = (struct candidate){image, r};
        }
    }
    qsort(v, n, sizeof *v, by_use);
    for (size_t i = 0; i < n && bytes < in->wanted; i++) {
        int64_t size = (int64_t) MIN(v[i].image->size, (uint64_t) INT64_MAX);
        bytes = bytes > INT64_MAX - size ? INT64_MAX : bytes + size;
        ids[n_ids++] = v[i].image->id;
    }
    forget_absent(g);
    *ret = ids;
    *ret_bytes = bytes;
    return n_ids;
}

int64_t image_gc_wanted(int64_t available, int64_t capacity, unsigned high, unsigned low)
{
    if (capacity <= 0 || available < 0) {
        return 0;
    }
    __int128 used = 100 - (__int128) available * 100 / capacity;
    int64_t free_at_low = (int64_t) ((__int128) capacity * (100 - low) / 100);
    return used < high ? 0 : MAX(free_at_low - available, (int64_t) 0);
}
