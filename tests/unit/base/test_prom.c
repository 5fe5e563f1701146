/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prom.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct facts {
    bool flag;
    unsigned small;
    uint64_t large;
    size_t sent, lost;
};

static void write_two(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    strbuf_addf(out, "%s{x=\"a\"} 1\n%s{x=\"b\"} 2\n", m->name, m->name);
}

static void rows_become_samples(void **state)
{
    static const struct prom_metric rows[] = {
        {"flag", "gauge", "A flag.", PROM_MEMBER(struct facts, flag)},
        {"small", "gauge", "A number.", PROM_MEMBER(struct facts, small)},
        {"large_total", "counter", "A large number.", PROM_MEMBER(struct facts, large)},
        {"two", "gauge", "Two values.", "x", .write = write_two},
        {"ends_total", "counter", "Ends.", "end=\"sent\"", PROM_MEMBER(struct facts, sent)},
        {"ends_total", "counter", "Ends.", "end=\"lost\"", PROM_MEMBER(struct facts, lost)},
    };
    const struct prom_table table = {rows, ARRAY_SIZE(rows)};
    const struct facts f = {true, 4000000000u, 1ull << 60, 3, 4};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    prom_write(&table, &f, &out);
    assert_string_equal(strbuf_cstr(&out),
                        "# HELP flag A flag.\n# TYPE flag gauge\nflag 1\n"
                        "# HELP small A number.\n# TYPE small gauge\nsmall 4000000000\n"
                        "# HELP large_total A large number.\n# TYPE large_total counter\n"
                        "large_total 1152921504606846976\n"
                        "# HELP two Two values.\n# TYPE two gauge\n"
                        "two{x=\"a\"} 1\ntwo{x=\"b\"} 2\n"
                        "# HELP ends_total Ends.\n# TYPE ends_total counter\n"
                        "ends_total{end=\"sent\"} 3\nends_total{end=\"lost\"} 4\n");
}

static void a_single_sample_has_a_head(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    prom_one(&out, "pods", "gauge", "The number of pods.", 1ull << 40);
    assert_string_equal(strbuf_cstr(&out), "# HELP pods The number of pods.\n# TYPE pods gauge\n"
                                           "pods 1099511627776\n");
}

/* Prometheus refuses a comma before the first label, and the whole answer with it. */
static void a_histogram_has_its_label_or_none(void **state)
{
    struct prom_histogram h = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    prom_histogram_write(&h, "h", "", &out);
    assert_int_equal(out.size, 0);
    prom_histogram_add(&h, 2000000);
    prom_histogram_write(&h, "h", "", &out);
    assert_true(str_has_prefix(strbuf_cstr(&out), "h_bucket{le=\"0.001\"} 0\n"));
    assert_non_null(strstr(strbuf_cstr(&out), "h_bucket{le=\"+Inf\"} 1\nh_sum 0.002\nh_count 1\n"));
    strbuf_reset(&out);
    prom_histogram_write(&h, "h", "a=\"b\"", &out);
    assert_true(str_has_prefix(strbuf_cstr(&out), "h_bucket{a=\"b\",le=\"0.001\"} 0\n"));
    assert_non_null(strstr(strbuf_cstr(&out), "h_sum{a=\"b\"} 0.002\nh_count{a=\"b\"} 1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_samples),
        cmocka_unit_test(a_single_sample_has_a_head),
        cmocka_unit_test(a_histogram_has_its_label_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
