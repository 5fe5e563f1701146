/* SPDX-License-Identifier: Apache-2.0 */
/* Registries that move between stores. */
#include "cli/admin/store_import.h"

#include "base/mem.h"
#include "net/loop/loop.h"
#include "net/loop/process.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define KEYS 100 /* More than are written at once. */

static char dir[] = "/tmp/tenet-store-XXXXXX";

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return dir_remove(dir, NULL);
}

struct writing {
    unsigned left;
    bool done, loaded;
};

static void on_snapshot(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    ((struct writing *) ctx)->loaded = true;
}

static void on_event(void *ctx, const struct store_event *ev)
{
}

static void on_lost(void *ctx, const char *reason)
{
    fail_msg("%s", reason);
}

static void on_written(void *ctx, int error, uint64_t revision)
{
    struct writing *w = ctx;
    assert_int_equal(error, 0);
    w->done = --w->left == 0;
}

/* Puts 'n' keys into the store; the value of each is its number. */
static void fill(const struct store_config *cfg, unsigned n)
{
    static const struct store_watcher watcher = {
        .snapshot = on_snapshot, .event = on_event, .lost = on_lost};
    struct loop *l = loop_new();
    struct writing w = {.left = n};
    struct store *s;
    struct err e = {0};
    if (store_open(l, cfg, &s, &e) < 0) {
        fail_msg("%s", e.text);
    }
    store_start(s, &watcher, &w);
    assert_int_equal(loop_run_until(l, &w.loaded, 10000), 0);
    for (unsigned i = 0; i < n; i++) {
        CLEANUP_FREE char *key = xasprintf("/registry/things/%03u", i);
        CLEANUP_FREE char *text = xasprintf("{\"n\":%u}", i);
        struct blob *b = blob_new(text, strlen(text));
        store_put(s, key, b, STORE_ANY, on_written, &w);
        blob_unref(b);
    }
    assert_int_equal(loop_run_until(l, &w.done, 10000), 0);
    store_close(s);
    loop_free(l);
}

static char *export_text(const struct store_config *cfg, size_t *ret_keys, uint64_t *ret_revision)
{
    struct err e = {0};
    FILE *f = tmpfile();
    assert_non_null(f);
    if (store_export(cfg, f, ret_keys, ret_revision, &e) < 0) {
        fail_msg("%s", e.text);
    }
    long size = ftell(f);
    char *text = xmalloc((size_t) size + 1);
    rewind(f);
    assert_int_equal(fread(text, 1, (size_t) size, f), (size_t) size);
    text[size] = '\0';
    fclose(f);
    return text;
}

static int import_text(const struct store_config *cfg, const char *text, bool force,
                       struct import_result *ret, struct err *e)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    int r = store_import(cfg, f, force, ret, e);
    fclose(f);
    return r;
}

static void what_was_exported_is_imported_whole_and_in_later_revisions(void **state)
{
    CLEANUP_FREE char *from = xasprintf("%s/from.db", dir);
    CLEANUP_FREE char *to = xasprintf("%s/to.db", dir);
    struct store_config a = {.backend = "sqlite", .path = from};
    struct store_config b = {.backend = "sqlite", .path = to};
    struct import_result r = {0};
    struct err e = {0};
    size_t keys = 0;
    uint64_t revision = 0, second = 0;
    fill(&a, KEYS);
    CLEANUP_FREE char *text = export_text(&a, &keys, &revision);
    assert_int_equal(keys, KEYS);
    assert_true(revision >= KEYS);
    if (import_text(&b, text, false, &r, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(r.keys, KEYS);
    assert_true(r.revision > revision);
    CLEANUP_FREE char *again = export_text(&b, &keys, &second);
    assert_int_equal(keys, KEYS);
    assert_true(second >= r.revision);
    assert_non_null(strstr(again, "/registry/things/099"));

    /* One that has something is replaced by force alone. */
    fill(&b, 3);
    assert_int_equal(import_text(&b, text, false, &r, &e), -EEXIST);
    assert_int_equal(import_text(&b, text, true, &r, &e), 0);
    assert_true(r.revision > second);
    assert_int_equal(import_text(&b, "nonsense", true, &r, &e) < 0, true);
}

static void a_key_of_the_stores_own_is_removed_once(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/keys.db", dir);
    struct store_config a = {.backend = "sqlite", .path = path};
    struct err e = {0};
    size_t keys = 0;
    uint64_t revision = 0;
    fill(&a, 3);
    assert_int_equal(store_remove_key(&a, "/registry/things/001", &e), 0);
    assert_int_equal(store_remove_key(&a, "/registry/things/001", &e), -ENOENT);
    CLEANUP_FREE char *text = export_text(&a, &keys, &revision);
    assert_int_equal(keys, 2);
    assert_null(strstr(text, "/registry/things/001"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_exported_is_imported_whole_and_in_later_revisions),
        cmocka_unit_test(a_key_of_the_stores_own_is_removed_once),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
