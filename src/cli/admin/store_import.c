/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/store_import.h"

#include "base/mem.h"
#include "store/portable.h"
#include "store/sqlite/sqlite_file.h"

#include <string.h>
#include <unistd.h>

#define OPEN_MS 15000
#define PARALLEL 64
#define PAD_KEY STORE_OWN_PREFIX "import-revision-%u"

struct work {
    struct loop *loop;
    struct store *store;
    struct store_item *items; /* The items of the snapshot, sorted by key; owned. */
    size_t n_items;
    uint64_t revision; /* The newest known revision. */
    bool loaded;       /* The snapshot is complete. */
    bool idle;         /* At most 'below' writes are under way. */
    unsigned under_way, below;
    int error;        /* Of the first write that failed; 0: none did. */
    char reason[256]; /* Why the connection to the store was lost last; "": it was not. */
};

static void on_snapshot(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    struct work *w = ctx;
    if (w->loaded) {
        return; /* A snapshot after a reconnection: failed writes report what was lost. */
    }
    w->items = xcalloc(n, sizeof *w->items);
    w->n_items = n;
    for (size_t i = 0; i < n; i++) {
        w->items[i] =
            (struct store_item){xstrdup(items[i].key), TAKE(items[i].value), items[i].revision};
    }
    w->revision = revision;
    w->loaded = true;
}

static void on_event(void *ctx, const struct store_event *ev)
{
    struct work *w = ctx;
    w->revision = ev->revision;
}

static void on_lost(void *ctx, const char *reason)
{
    struct work *w = ctx;
    snprintf(w->reason, sizeof w->reason, "%s", reason);
}

static void work_close(struct work *w)
{
    w->store = store_close(w->store);
    for (size_t i = 0; i < w->n_items; i++) {
        free((char *) w->items[i].key);
        blob_unref(w->items[i].value);
    }
    free(w->items);
    loop_free(w->loop);
}

static int work_open(struct work *w, const struct store_config *cfg, struct err *e)
{
    static const struct store_watcher watcher = {
        .snapshot = on_snapshot, .event = on_event, .lost = on_lost};
    *w = (struct work){.loop = loop_new()};
    int r = store_open(w->loop, cfg, &w->store, e);
    if (r < 0) {
        loop_free(w->loop);
        return r;
    }
    store_start(w->store, &watcher, w);
    r = loop_run_until(w->loop, &w->loaded, OPEN_MS);
    if (r < 0) {
        r = err_set(e, r, "store %s: cannot be read%s%s", cfg->backend, *w->reason ? ": " : "",
                    w->reason);
        work_close(w);
    }
    return r;
}

/* ---- export ---- */

static int write_out(FILE *out, const struct strbuf *text, struct err *e)
{
    return fwrite(strbuf_cstr(text), 1, text->size, out) == text->size
               ? 0
               : err_sys(e, -errno, "write the export");
}

/* Whether the key is not exported: keys of the store itself, except for the marks that forbid to
 * allocate numbers, which hold for the copy, too. */
static bool is_left_out(const char *key)
{
    return str_has_prefix(key, STORE_OWN_PREFIX) && !streq(key, STORE_HOLD_SUBNETS) &&
           !streq(key, STORE_HOLD_VNIDS);
}

static int write_items(const struct work *w, FILE *out, size_t *ret_keys, struct err *e)
{
    CLEANUP(portable_free) struct portable *p = portable_new();
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    size_t n = 0;
    for (size_t i = 0; i < w->n_items; i++) {
        n += !is_left_out(w->items[i].key);
    }
    portable_write_head(p, w->revision, n, &text);
    int r = write_out(out, &text, e);
    for (size_t i = 0; i < w->n_items && r == 0; i++) {
        if (!is_left_out(w->items[i].key)) {
            strbuf_reset(&text);
            portable_write_item(p, &w->items[i], &text);
            r = write_out(out, &text, e);
        }
    }
    strbuf_reset(&text);
    portable_write_end(p, &text);
    *ret_keys = n;
    return r < 0 ? r : write_out(out, &text, e);
}

int store_export(const struct store_config *cfg, FILE *out, size_t *ret_keys,
                 uint64_t *ret_revision, struct err *e)
{
    bool is_file = streq(cfg->backend, "sqlite");
    CLEANUP_FREE char *copy = xasprintf("%s.export", is_file ? cfg->path : "");
    CLEANUP_FREE char *lock = xasprintf("%s.lock", copy);
    struct store_config from = *cfg;
    struct sqlite_file_info info;
    struct work w;
    int r = 0;
    if (is_file) { /* Export a copy of the file, because a master may be changing the database. */
        (void) unlink(copy);
        r = sqlite_file_backup(cfg->path, copy, &info, e);
        from.path = copy;
    }
    if (r == 0 && (r = work_open(&w, &from, e)) == 0) {
        *ret_revision = w.revision;
        r = write_items(&w, out, ret_keys, e);
        work_close(&w);
    }
    if (r == 0 && fflush(out) != 0) {
        r = err_sys(e, -errno, "write the export");
    }
    if (is_file) {
        (void) unlink(copy);
        (void) unlink(lock);
    }
    return r;
}

/* ---- import ---- */

/* -ENOENT: a key that was to be deleted does not exist, which is no failure. */
static void written(void *ctx, int error, uint64_t revision)
{
    struct work *w = ctx;
    w->under_way--;
    if (error < 0 && error != -ENOENT && w->error == 0) {
        w->error = error;
    }
    w->revision = MAX(w->revision, revision);
    w->idle = w->under_way <= w->below;
}

/* Waits until at most 'below' writes are under way. */
static int wait_written(struct work *w, unsigned below, struct err *e)
{
    w->below = below;
    w->idle = w->under_way <= below;
    int r = loop_run_until(w->loop, &w->idle, 0);
    if (r == 0 && w->error) {
        r = err_sys(e, w->error, "write%s%s", *w->reason ? ": " : "", w->reason);
    }
    return r;
}

static int change(struct work *w, const char *key, struct blob *value, struct err *e)
{
    w->under_way++;
    if (value) {
        store_put(w->store, key, value, STORE_ANY, written, w);
    } else {
        store_delete(w->store, key, STORE_ANY, written, w);
    }
    return wait_written(w, PARALLEL - 1, e);
}

/* Binary search. */
static struct store_item *find(const struct work *w, const char *key)
{
    size_t lo = 0, hi = w->n_items;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(w->items[mid].key, key);
        if (order == 0) {
            return &w->items[mid];
        }
        if (order < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return NULL;
}

/* Reads 'in' from the beginning, checks it, and calls 'take' (unless NULL) for each item. */
static int read_all(FILE *in, struct portable *p,
                    int (*take)(void *ctx, const char *key, struct blob *value, struct err *e),
                    void *ctx, struct err *e)
{
    CLEANUP_FREE char *line = NULL;
    size_t cap = 0;
    ssize_t size;
    int r = 0;
    rewind(in);
    while (r == 0 && (size = getline(&line, &cap, in)) > 0) {
        CLEANUP_FREE char *key = NULL;
        CLEANUP(blob_unref) struct blob *value = NULL;
        uint64_t revision = 0;
        size -= line[size - 1] == '\n';
        r = (size_t) size > PORTABLE_MAX_LINE
                ? err_set(e, -EFBIG, "a line is longer than %zu bytes", PORTABLE_MAX_LINE)
                : portable_read_line(p, line, (size_t) size, &key, &value, &revision, e);
        if (r == 0 && key && take) {
            r = take(ctx, key, value, e);
        }
    }
    if (r == 0 && ferror(in)) {
        r = err_sys(e, -EIO, "read the export");
    }
    return r < 0 ? r : portable_read_end(p, e);
}

/* Writes an item of the import, unless the store has the same value. */
static int take_item(void *ctx, const char *key, struct blob *value, struct err *e)
{
    struct work *w = ctx;
    struct store_item *have = find(w, key);
    if (have) {
        have->revision = 0; /* Marks a key of the import: fill() deletes the others. */
        if (have->value->size == value->size &&
            memcmp(have->value->data, value->data, value->size) == 0) {
            return 0;
        }
    }
    return change(w, key, value, e);
}

/* Changes keys, and deletes them again, until revisions are beyond 'revision'. */
static int pad(struct work *w, uint64_t revision, struct err *e)
{
    CLEANUP(blob_unref) struct blob *value = blob_new("{}", 2);
    int r = 0;
    for (unsigned i = 0; r == 0 && w->revision < revision; i++) {
        CLEANUP_FREE char *key = xasprintf(PAD_KEY, i % PARALLEL);
        r = change(w, key, value, e);
    }
    for (unsigned i = 0; i < PARALLEL && r == 0; i++) {
        CLEANUP_FREE char *key = xasprintf(PAD_KEY, i);
        r = change(w, key, NULL, e);
    }
    return r < 0 ? r : wait_written(w, 0, e);
}

static int check_empty(const struct work *w, const struct portable *checked, bool force,
                       struct err *e)
{
    const struct store_item *mark = find(w, STORE_IMPORT_KEY);
    const char *sum = portable_checksum(checked);
    bool again = mark && mark->value->size == strlen(sum) &&
                 memcmp(mark->value->data, sum, mark->value->size) == 0;
    if (w->n_items && !force && !again) {
        return err_set(e, -EEXIST, "the store has %zu keys%s: --force replaces them", w->n_items,
                       mark ? ", of another import that was broken off" : "");
    }
    return 0;
}

/* Replaces the store's contents by 'in', in revisions after 'newest'. Until the end the store has
 * STORE_IMPORT_KEY with the checksum of 'in', which identifies an import that was broken off. */
static int fill(struct work *w, FILE *in, const struct portable *checked, uint64_t newest,
                struct err *e)
{
    CLEANUP(portable_free) struct portable *p = portable_new();
    const char *sum = portable_checksum(checked);
    CLEANUP(blob_unref) struct blob *mark = blob_new(sum, strlen(sum));
    int r = change(w, STORE_IMPORT_KEY, mark, e);
    if (r < 0 || (r = wait_written(w, 0, e)) < 0 || (r = pad(w, newest, e)) < 0 ||
        (r = read_all(in, p, take_item, w, e)) < 0 || (r = wait_written(w, 0, e)) < 0) {
        return r;
    }
    for (size_t i = 0; i < w->n_items && r == 0; i++) {
        if (w->items[i].revision) {
            r = change(w, w->items[i].key, NULL, e);
        }
    }
    if (r < 0 || (r = wait_written(w, 0, e)) < 0) {
        return r;
    }
    r = change(w, STORE_IMPORT_KEY, NULL, e);
    return r < 0 ? r : wait_written(w, 0, e);
}

/* Writes a new file, which then replaces the old one. */
static int import_file(const struct store_config *cfg, FILE *in, const struct portable *checked,
                       bool force, struct import_result *ret, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s.import", cfg->path);
    CLEANUP_FREE char *lock = xasprintf("%s.lock", path);
    uint64_t old = 0;
    struct work w;
    int r = sqlite_file_replaceable(cfg->path, force, &old, e);
    if (r < 0) {
        return r;
    }
    struct store_config to = *cfg;
    to.path = path;
    to.importing = true;
    to.min_revision = MAX(MAX(old, cfg->min_revision), portable_revision(checked));
    (void) unlink(path);
    r = work_open(&w, &to, e);
    if (r == 0) {
        /* pad() has nothing to do for a new file, whose revisions begin here. */
        w.revision = to.min_revision;
        r = fill(&w, in, checked, to.min_revision, e);
        ret->revision = w.revision;
        work_close(&w);
    }
    if (r == 0) {
        r = sqlite_file_replace(path, cfg->path, e);
    }
    (void) unlink(path);
    (void) unlink(lock);
    return r;
}

static int import_shared(const struct store_config *cfg, FILE *in, const struct portable *checked,
                         bool force, struct import_result *ret, struct err *e)
{
    struct work w;
    struct store_config to = *cfg;
    to.importing = true;
    int r = work_open(&w, &to, e);
    if (r < 0) {
        return r;
    }
    r = check_empty(&w, checked, force, e);
    if (r == 0) {
        r = fill(&w, in, checked, MAX(cfg->min_revision, portable_revision(checked)), e);
        ret->revision = w.revision;
    }
    work_close(&w);
    return r;
}

int store_import(const struct store_config *cfg, FILE *in, bool force, struct import_result *ret,
                 struct err *e)
{
    CLEANUP(portable_free) struct portable *checked = portable_new();
    int r = read_all(in, checked, NULL, NULL, e);
    if (r < 0) {
        return r;
    }
    ret->keys = portable_n_keys(checked);
    return streq(cfg->backend, "sqlite") ? import_file(cfg, in, checked, force, ret, e)
                                         : import_shared(cfg, in, checked, force, ret, e);
}

int store_remove_key(const struct store_config *cfg, const char *key, struct err *e)
{
    struct work w;
    int r = work_open(&w, cfg, e);
    if (r < 0) {
        return r;
    }
    bool there = find(&w, key);
    r = change(&w, key, NULL, e);
    if (r == 0 && (r = wait_written(&w, 0, e)) == 0 && !there) {
        r = -ENOENT;
    }
    work_close(&w);
    return r;
}
