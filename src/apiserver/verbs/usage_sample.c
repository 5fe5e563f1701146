/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/usage_sample.h"

#include "api/quantity.h"
#include "base/mem.h"
#include "wire/exposition.h"

#include <inttypes.h>

#define MAX_WINDOW_MS 600000
#define MIN_WINDOW_MS 100

static const struct usage_point no_point = {-1, -1, -1, -1};

/* What a metric tells, and in which unit (10^exponent) it is kept. */
struct reported {
    const char *name;
    bool node;
    size_t offset;
    int exponent;
};
static const struct reported metrics[] = {
    {"node_cpu_usage_seconds_total", true, offsetof(struct usage_point, cpu_ns), -9},
    {"node_memory_working_set_bytes", true, offsetof(struct usage_point, memory_bytes), 0},
    {"container_cpu_usage_seconds_total", false, offsetof(struct usage_point, cpu_ns), -9},
    {"container_memory_working_set_bytes", false, offsetof(struct usage_point, memory_bytes), 0},
    {"container_start_time_seconds", false, offsetof(struct usage_point, started_ms), -3},
};

static const struct reported *find_metric(const struct exposition_sample *x)
{
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        if (exposition_is(x, metrics[i].name)) {
            return &metrics[i];
        }
    }
    return NULL;
}

/* The point that the sample is about, made if it is new; NULL: it counts for nothing. */
static struct usage_point *find_point(struct usage_sample *s, const struct exposition_sample *x,
                                      bool node)
{
    static const char *const labels[] = {"namespace", "pod", "container"};
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    if (node) {
        return &s->node;
    }
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        size_t before = key.size;
        if (exposition_label(x, labels[i], &key) < 0 || key.size == before ||
            memchr(key.data + before, '/', key.size - before) ||
            memchr(key.data + before, '\0', key.size - before)) {
            return NULL;
        }
        if (i + 1 < ARRAY_SIZE(labels)) {
            strbuf_addc(&key, '/');
        }
    }
    struct usage_point *p = smap_get(&s->containers, strbuf_cstr(&key));
    if (!p && smap_size(&s->containers) < USAGE_MAX_POINTS) {
        p = NEW(struct usage_point);
        *p = no_point;
        smap_set(&s->containers, strbuf_cstr(&key), p);
    }
    return p;
}

static void take_sample(struct usage_sample *s, const struct exposition_sample *x, int64_t now_ms)
{
    const struct reported *m = find_metric(x);
    struct usage_point *p = m ? find_point(s, x, m->node) : NULL;
    int64_t v;
    if (!p || x->value_size > 40) {
        return;
    }
    CLEANUP_FREE char *text = xstrndup(x->value, x->value_size);
    if (api_quantity_value(text, m->exponent, &v, NULL) < 0 || v < 0 || v == INT64_MAX) {
        return;
    }
    memcpy((char *) p + m->offset, &v, sizeof v);
    if (m->offset == offsetof(struct usage_point, cpu_ns)) {
        p->time_ms = x->time_ms >= 0 ? x->time_ms : now_ms;
    }
}

struct usage_sample *usage_sample_free(struct usage_sample *s)
{
    if (s) {
        smap_done(&s->containers);
        free(s);
    }
    return NULL;
}

int usage_sample_read(const char *text, size_t size, int64_t now_ms, struct usage_sample **ret,
                      struct err *e)
{
    CLEANUP(usage_sample_free) struct usage_sample *s = NEW(struct usage_sample);
    struct exposition_sample x;
    const char *at = text;
    int r;
    s->node = no_point;
    smap_init(&s->containers, free);
    while ((r = exposition_next(&at, text + size, &x, e)) > 0) {
        take_sample(s, &x, now_ms);
    }
    if (r == 0) {
        *ret = TAKE(s);
    }
    return r;
}

bool usage_between(const struct usage_point *before, const struct usage_point *now,
                   struct usage_window *ret)
{
    if (!before || !now || before->cpu_ns < 0 || now->cpu_ns < before->cpu_ns ||
        now->memory_bytes < 0 || now->started_ms != before->started_ms ||
        now->time_ms - before->time_ms < MIN_WINDOW_MS ||
        now->time_ms - before->time_ms > MAX_WINDOW_MS) {
        return false;
    }
    int64_t length = now->time_ms - before->time_ms;
    double rate = (double) (now->cpu_ns - before->cpu_ns) * 1000 / (double) length;
    if (rate >= (double) INT64_MAX) {
        return false;
    }
    *ret = (struct usage_window){.nano_cores = (int64_t) rate,
                                 .memory_bytes = now->memory_bytes,
                                 .end_ms = now->time_ms,
                                 .length_ms = length};
    return true;
}

static void set_quantity(struct json *o, const char *key, int64_t n, const char *suffix)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP_FREE char *text = xasprintf("%" PRId64 "%s", n, suffix);
    api_quantity_format(text, false, &b, NULL);
    json_set_string(o, key, strbuf_cstr(&b));
}

struct json *usage_amounts(const struct usage_window *w)
{
    struct json *o = json_object();
    set_quantity(o, "cpu", w->nano_cores, "n");
    set_quantity(o, "memory", w->memory_bytes / 1024, "Ki");
    return o;
}
