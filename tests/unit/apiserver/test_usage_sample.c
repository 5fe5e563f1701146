/* SPDX-License-Identifier: Apache-2.0 */
/* What a node reports of its use, and what follows from two reports. */
#include "apiserver/verbs/usage_sample.h"

#include "base/mem.h"
#include "wire/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define C "{container=\"c\",namespace=\"red\",pod=\"p\"}"

static struct usage_sample *sample(const char *text)
{
    struct usage_sample *s = NULL;
    struct err e = {0};
    if (usage_sample_read(text, strlen(text), 5000, &s, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return s;
}

static void a_report_is_read(void **state)
{
    CLEANUP(usage_sample_free)
    struct usage_sample *s = sample("# HELP x y\n# TYPE x counter\n\n"
                                    "container_cpu_usage_seconds_total" C " 4.71 1000\n"
                                    "container_memory_working_set_bytes" C " 1.3672448e+06 1000\n"
                                    "container_start_time_seconds" C " 12.5 1000\n"
                                    "container_other" C " 1 1000\n"
                                    "node_cpu_usage_seconds_total 10\n"
                                    "node_memory_working_set_bytes 2048 1000");
    const struct usage_point *p = smap_get(&s->containers, "red/p/c");
    assert_non_null(p);
    assert_int_equal(smap_size(&s->containers), 1);
    assert_int_equal(p->cpu_ns, 4710000000);
    assert_int_equal(p->memory_bytes, 1367245);
    assert_int_equal(p->started_ms, 12500);
    assert_int_equal(p->time_ms, 1000);
    assert_int_equal(s->node.cpu_ns, 10000000000);
    assert_int_equal(s->node.memory_bytes, 2048);
    assert_int_equal(s->node.time_ms, 5000); /* It has no time: that of its arrival. */
}

static void amounts_and_names_that_cannot_be_are_left_out(void **state)
{
    CLEANUP(usage_sample_free)
    struct usage_sample *s = sample(
        "node_cpu_usage_seconds_total NaN\nnode_cpu_usage_seconds_total -5\n"
        "node_memory_working_set_bytes +Inf\nnode_memory_working_set_bytes 1e30\n"
        "container_cpu_usage_seconds_total{container=\"c\",pod=\"p\"} 1\n"
        "container_cpu_usage_seconds_total{container=\"\",namespace=\"n\",pod=\"p\"} 1\n"
        "container_cpu_usage_seconds_total{container=\"c\",namespace=\"n\",pod=\"a/b\"} 1\n");
    assert_int_equal(smap_size(&s->containers), 0);
    assert_int_equal(s->node.cpu_ns, -1);
    assert_int_equal(s->node.memory_bytes, -1);
}

static void malformed_reports_are_refused(void **state)
{
    static const char *const texts[] = {"1x 2",        "x",
                                        "x{",          "x{a} 1",
                                        "x{a=b} 1",    "x{a=\"b} 1",
                                        "x{a=\"b\"",   "x{a=\"b\"c=\"d\"} 1",
                                        "x 1 2 3",     "x 1 -2",
                                        "x 1 a",       "x{a=\"b\\",
                                        "{a=\"b\"} 1", "x 1 99999999999999999999",
                                        "<html>"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct usage_sample *s = NULL;
        struct err e = {0};
        if (usage_sample_read(texts[i], strlen(texts[i]), 0, &s, &e) != -EINVAL || s) {
            fail_msg("accepted: %s", texts[i]);
        }
        assert_true(e.text[0]);
    }
}

static void containers_are_bounded(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (unsigned i = 0; i < USAGE_MAX_POINTS + 10; i++) {
        strbuf_addf(
            &b,
            "container_cpu_usage_seconds_total{container=\"c%u\",namespace=\"n\",pod=\"p\"} "
            "1\n",
            i);
    }
    CLEANUP(usage_sample_free) struct usage_sample *s = sample(b.data);
    assert_int_equal(smap_size(&s->containers), USAGE_MAX_POINTS);
}

static void labels_are_unescaped(void **state)
{
    static const char text[] = "\t x { a=\"1\" , b = \"q\\\"\\\\\\n{},\" ,} 7\t8 \r";
    const char *at = text;
    struct exposition_sample x;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_int_equal(exposition_next(&at, text + sizeof text - 3, &x, NULL), 1);
    assert_true(exposition_is(&x, "x") && !exposition_is(&x, "xx"));
    assert_int_equal(exposition_label(&x, "b", &b), 0);
    assert_string_equal(b.data, "q\"\\\n{},");
    assert_int_equal(exposition_label(&x, "c", &b), -ENOENT);
    assert_int_equal(x.value_size, 1);
    assert_int_equal(x.time_ms, 8);
    assert_int_equal(exposition_next(&at, text + sizeof text - 3, &x, NULL), 0);
}

static void windows(void **state)
{
    const struct usage_point a = {1000, 5000000000, 4096, 7};
    struct usage_point b = {16000, 12500000000, 8192, 7};
    struct usage_window w;
    assert_true(usage_between(&a, &b, &w));
    assert_int_equal(w.nano_cores, 500000000);
    assert_int_equal(w.memory_bytes, 8192);
    assert_int_equal(w.end_ms, 16000);
    assert_int_equal(w.length_ms, 15000);
    CLEANUP_FREE char *text = NULL;
    CLEANUP(json_free) struct json *amounts = usage_amounts(&w);
    text = json_to_text(amounts);
    assert_string_equal(text, "{\"cpu\":\"500m\",\"memory\":\"8Ki\"}");
    /* A container that was started again, counters that go back, no time, too much time. */
    b.started_ms = 8;
    assert_false(usage_between(&a, &b, &w));
    b = (struct usage_point){16000, 4000000000, 8192, 7};
    assert_false(usage_between(&a, &b, &w));
    b = (struct usage_point){1000, 6000000000, 8192, 7};
    assert_false(usage_between(&a, &b, &w));
    b = (struct usage_point){1000000000, 6000000000, 8192, 7};
    assert_false(usage_between(&a, &b, &w));
    b = (struct usage_point){16000, 6000000000, -1, 7};
    assert_false(usage_between(&a, &b, &w));
    b = (struct usage_point){2000, INT64_MAX, 1, 7};
    assert_false(usage_between(&(struct usage_point){1999, 0, 1, 7}, &b, &w));
    assert_false(usage_between(NULL, &b, &w));
    assert_false(usage_between(&a, NULL, &w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_read),
        cmocka_unit_test(amounts_and_names_that_cannot_be_are_left_out),
        cmocka_unit_test(malformed_reports_are_refused),
        cmocka_unit_test(containers_are_bounded),
        cmocka_unit_test(labels_are_unescaped),
        cmocka_unit_test(windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
