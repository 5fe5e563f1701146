/* SPDX-License-Identifier: Apache-2.0 */
/* The counters in the text format of Prometheus: histograms, storage, flows, the HTTP server and
 * the process. */
#include "apiserver/request/metrics.h"
#include "apiserver/request/server_priv.h"
#include "base/timeutil.h"
#include "harness.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cmocka.h>

#define MS UINT64_C(1000000) /* Nanoseconds. */

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

/* The value behind "NAME " at the begin of a line of /metrics. */
static double figure(const char *name)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/metrics", NULL, 200);
    CLEANUP_FREE char *line = xasprintf("\n%s ", name);
    const char *found = strstr(a.text, line);
    if (!found) {
        fail_msg("no %s in %s", name, a.text);
    }
    return strtod(found + strlen(line), NULL);
}

static void expect_figure(const char *name, double want)
{
    double got = figure(name);
    if (got < want || got > want) {
        fail_msg("%s: %g, not %g", name, got, want);
    }
}

static void a_duration_counts_in_each_bucket_that_it_fits(void **state)
{
#define BUCKET(bound) "{verb=\"get\",resource=\"testees\",le=\"" bound "\"}"
    static const char name[] = "apiserver_request_duration_seconds";
    static const struct {
        const char *metric;
        double want;
    } cases[] = {
        {"_bucket" BUCKET("0.001"), 2}, {"_bucket" BUCKET("0.002"), 3},
        {"_bucket" BUCKET("0.01"), 3},  {"_bucket" BUCKET("5"), 3},
        {"_bucket" BUCKET("10"), 4},    {"_bucket" BUCKET("+Inf"), 5},
    };
    struct metrics *m = h->api->metrics;
    metrics_count(m, VERB_GET, "testees", 200, 0);
    metrics_count(m, VERB_GET, "testees", 200, MS);
    metrics_count(m, VERB_GET, "testees", 404, MS + 1);
    metrics_count(m, VERB_GET, "testees", 200, 10000 * MS);
    metrics_count(m, VERB_GET, "testees", 404, 10000 * MS + 1);
    /* Another verb and another resource are counted apart. */
    metrics_count(m, VERB_LIST, "testees", 200, MS);
    metrics_count(m, VERB_GET, "others", 200, MS);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *metric = xasprintf("%s%s", name, cases[i].metric);
        expect_figure(metric, cases[i].want);
    }
    expect_figure("apiserver_request_duration_seconds_count{verb=\"get\",resource=\"testees\"}", 5);
    expect_figure("apiserver_request_duration_seconds_sum{verb=\"get\",resource=\"testees\"}",
                  20.002);
    expect_figure("apiserver_request_duration_seconds_count{verb=\"list\",resource=\"testees\"}",
                  1);
    expect_figure("apiserver_request_duration_seconds_count{verb=\"get\",resource=\"others\"}", 1);
    expect_figure("apiserver_request_total{verb=\"get\",resource=\"testees\",code=\"200\"}", 3);
    expect_figure("apiserver_request_total{verb=\"get\",resource=\"testees\",code=\"404\"}", 2);
    expect_figure("apiserver_request_total{verb=\"list\",resource=\"testees\",code=\"200\"}", 1);
    expect_figure("apiserver_request_total{verb=\"get\",resource=\"others\",code=\"200\"}", 1);
}

static void puts_and_deletions_are_counted_apart(void **state)
{
    /* A histogram is written from its first value on. */
    metrics_count_store(h->api->metrics, false, 0, MS);
    metrics_count_store(h->api->metrics, true, 0, MS);
    double puts = figure("apiserver_store_write_duration_seconds_count{operation=\"put\"}");
    double deletions = figure("apiserver_store_write_duration_seconds_count{operation=\"delete\"}");
    metrics_count_store(h->api->metrics, false, 0, MS);
    metrics_count_store(h->api->metrics, true, -EIO, MS);
    metrics_count_store(h->api->metrics, true, 0, MS);
    expect_figure("apiserver_store_write_duration_seconds_count{operation=\"put\"}", puts + 1);
    expect_figure("apiserver_store_write_duration_seconds_count{operation=\"delete\"}",
                  deletions + 2);
    expect_figure("apiserver_store_write_errors_total{operation=\"put\"}", 0);
    expect_figure("apiserver_store_write_errors_total{operation=\"delete\"}", 1);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 3; /* ".", ".." and that of the folder. */
}

static void the_process_is_described(void **state)
{
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    double now = (double) time_wall_ms() / 1e3, started = figure("process_start_time_seconds");
    assert_true(started <= now && started > now - 600);
    double resident = figure("process_resident_memory_bytes");
    assert_true(resident > 1 << 20);
    assert_true(figure("process_virtual_memory_bytes") > resident);
    expect_figure("process_open_fds", descriptors());
    expect_figure("process_max_fds", (double) files.rlim_cur);
    double cpu = figure("process_cpu_seconds_total");
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    double later = (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    assert_true(cpu > 0 && cpu <= later + 1e-6 && cpu > later - 1);
}

static void the_http_server_and_the_flows_are_described(void **state)
{
    apiserver_attach(h->api, h->http);
    assert_true(figure("http_server_accepted_total") > 0);
    assert_true(figure("http_server_connections") > 0);
    expect_figure("http_server_request_errors_total", 0);
    expect_figure("apiserver_flowcontrol_current_inqueue_requests{priority_level=\"low\"}", 0);
    apiserver_attach(h->api, NULL);
}

static void more(void *ctx, struct strbuf *out)
{
    strbuf_adds(out, ctx);
}

static void a_program_adds_metrics_of_its_own(void **state)
{
    apiserver_set_metrics(h->api, more, (void *) "mine 7\n");
    expect_figure("mine", 7);
    apiserver_set_metrics(h->api, NULL, NULL);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/metrics", NULL, 200);
    assert_null(strstr(a.text, "mine"));
    assert_string_equal(a.content_type, "text/plain; version=0.0.4; charset=utf-8");
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_duration_counts_in_each_bucket_that_it_fits),
        T(puts_and_deletions_are_counted_apart),
        T(the_process_is_described),
        T(the_http_server_and_the_flows_are_described),
        T(a_program_adds_metrics_of_its_own),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
