/* SPDX-License-Identifier: Apache-2.0 */
/* Which images are removed, and how much is to be freed. */
#include "pod/image_gc.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define S INT64_C(1000000000)

static struct image_gc gc;
static struct smap used;
static char chosen[256];

static int set_up(void **state)
{
    image_gc_init(&gc);
    smap_init(&used, NULL);
    return 0;
}

static int tear_down(void **state)
{
    image_gc_done(&gc);
    smap_done(&used);
    return 0;
}

#define TAGS(...)                                                                     \
    {                                                                                 \
        (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / 8 \
    }

static const struct runtime_image images[] = {
    {.id = "a", .tags = TAGS("reg/a:1"), .size = 10},
    {.id = "b", .tags = TAGS("reg/b:1", "reg/b:2"), .size = 20},
    {.id = "c", .digests = TAGS("reg/c@sha256:1"), .size = 30},
    {.id = "p", .tags = TAGS("registry.k8s.io/pause:3.9"), .size = 5},
    {.id = "q", .tags = TAGS("reg/q:1"), .size = 5, .pinned = true},
};

/* The IDs that are chosen, with commas between. */
static const char *choose(size_t n, const char *pause, int64_t at_s, int64_t age_s, int64_t wanted,
                          int64_t want_bytes)
{
    struct image_gc_input in = {.images = images,
                                .n_images = n,
                                .used = &used,
                                .pause = pause,
                                .now_ns = at_s * S,
                                .min_age_ns = age_s * S,
                                .wanted = wanted};
    const char **ids;
    int64_t bytes;
    size_t size = 0, count = image_gc_choose(&gc, &in, &ids, &bytes);
    chosen[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size += (size_t) snprintf(chosen + size, sizeof chosen - size, "%s,", ids[i]);
    }
    free(ids);
    assert_int_equal(bytes, want_bytes);
    return chosen;
}

static void unused_images_go_the_least_recently_used_first(void **state)
{
    assert_string_equal(choose(5, NULL, 1, 0, 0, 0), "");
    assert_string_equal(choose(5, NULL, 2, 120, 100, 0), ""); /* All are too young. */
    smap_set(&used, "reg/b:2", &used);
    smap_set(&used, "reg/c@sha256:1", &used);
    assert_string_equal(choose(5, NULL, 200, 120, 100, 10), "a,");
    smap_remove(&used, "reg/c@sha256:1");
    assert_string_equal(choose(5, NULL, 300, 120, 100, 40), "a,c,");
    smap_remove(&used, "reg/b:2");
    smap_set(&used, "a", &used); /* A container has it by its ID. */
    assert_string_equal(choose(5, NULL, 400, 120, 100, 50), "c,b,");
    assert_string_equal(choose(5, NULL, 401, 120, 31, 50), "c,b,");
    assert_string_equal(choose(5, NULL, 402, 120, 30, 30), "c,");
}

static void an_image_that_was_away_is_new(void **state)
{
    assert_string_equal(choose(2, NULL, 1, 60, 100, 0), "");
    assert_string_equal(choose(1, NULL, 100, 60, 100, 10), "a,");
    assert_string_equal(choose(2, NULL, 101, 60, 100, 10), "a,");
    assert_string_equal(choose(2, NULL, 161, 60, 100, 30), "a,b,");
}

static void the_image_of_sandboxes_stays(void **state)
{
    assert_string_equal(choose(5, NULL, 1, 0, 100, 60), "a,b,c,");
    assert_string_equal(choose(5, "reg/b:2", 2, 0, 100, 45), "a,c,p,");
}

static void bytes_to_be_freed(void **state)
{
    static const struct {
        int64_t available, capacity, want;
    } rows[] = {{150, 1000, 50}, {151, 1000, 49}, {160, 1000, 0},  {0, 1000, 200},
                {1000, 1000, 0}, {0, 0, 0},       {100, 1000, 100}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(image_gc_wanted(rows[i].available, rows[i].capacity, 85, 80),
                         rows[i].want);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(unused_images_go_the_least_recently_used_first),
        TEST(an_image_that_was_away_is_new),
        TEST(the_image_of_sandboxes_stays),
        cmocka_unit_test(bytes_to_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
