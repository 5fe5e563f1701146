/* SPDX-License-Identifier: Apache-2.0 */
/* A node's /metrics/resource.  Points are bounded and have no amounts below zero; between two reports
 * is a window, or nothing.  The input is two texts with a form feed between them. */
#include "apiserver/verbs/usage_sample.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check_point(const struct usage_point *p)
{
    CHECK(p->cpu_ns >= -1 && p->memory_bytes >= -1 && p->started_ms >= -1 && p->time_ms >= -1);
    CHECK(p->cpu_ns < 0 || p->time_ms >= 0);
}

static void check_window(const struct usage_point *before, const struct usage_point *now)
{
    struct usage_window w;
    if (!usage_between(before, now, &w)) {
        return;
    }
    CHECK(w.nano_cores >= 0 && w.memory_bytes >= 0 && w.length_ms > 0);
    CLEANUP(json_free) struct json *amounts = usage_amounts(&w);
    CHECK(*json_get_text(amounts, "cpu") && *json_get_text(amounts, "memory"));
}

static struct usage_sample *read_sample(const char *text, size_t size)
{
    struct usage_sample *s = NULL;
    struct smap_entry *e;
    struct err err = {0};
    int r = usage_sample_read(text, size, 1000, &s, &err);
    CHECK((r == 0) == (s != NULL) && (r == 0 || err.text[0]));
    if (s) {
        check_point(&s->node);
        CHECK(smap_size(&s->containers) <= USAGE_MAX_POINTS);
        SMAP_FOREACH (e, &s->containers) {
            check_point(e->value);
        }
    }
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *) data;
    const char *cut = size ? memchr(text, '\f', size) : NULL;
    size_t n = cut ? (size_t) (cut - text) : size;
    struct smap_entry *e;
    CLEANUP(usage_sample_free) struct usage_sample *before = read_sample(text, n);
    CLEANUP(usage_sample_free)
    struct usage_sample *now = cut ? read_sample(cut + 1, size - n - 1) : NULL;
    if (before && now) {
        check_window(&before->node, &now->node);
        SMAP_FOREACH (e, &now->containers) {
            check_window(smap_get(&before->containers, e->key), e->value);
        }
    }
    return 0;
}
