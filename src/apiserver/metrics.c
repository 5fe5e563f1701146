/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the API server, in Prometheus' text format. */
#include "apiserver/server.h"
#include "base/timeutil.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Upper bounds of the latency histogram, in milliseconds. */
static const unsigned bounds_ms[] = {1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 10000};
#define N_BOUNDS ARRAY_SIZE(bounds_ms)

struct counter {
    enum verb verb;
    int code;
    const char *resource; /* A kind's plural (that very pointer), or "". */
    uint64_t n;
};

struct latency {
    uint64_t buckets[N_BOUNDS + 1], n, sum_ns;
};

struct metrics {
    struct counter *counters;
    size_t n, cap;
    struct latency latency[VERB_MAX];
};

struct metrics *metrics_new(void)
{
    return NEW(struct metrics);
}

struct metrics *metrics_free(struct metrics *m)
{
    if (m) {
        free(m->counters);
        free(m);
    }
    return NULL;
}

void metrics_count(struct metrics *m, enum verb verb, const char *resource, int code,
                   uint64_t duration_ns)
{
    size_t i = 0;
    while (i < m->n && !(m->counters[i].verb == verb && m->counters[i].code == code &&
                         m->counters[i].resource == resource)) {
        i++;
    }
    if (i == m->n) {
        m->counters = grow(m->counters, &m->cap, m->n + 1, sizeof *m->counters);
        m->counters[m->n++] = (struct counter){verb, code, resource, 0};
    }
    m->counters[i].n++;
    struct latency *l = &m->latency[verb];
    size_t b = 0;
    while (b < N_BOUNDS && duration_ns > bounds_ms[b] * UINT64_C(1000000)) {
        b++;
    }
    l->buckets[b]++;
    l->n++;
    l->sum_ns += duration_ns;
}

static void head(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_requests(const struct metrics *m, struct strbuf *out)
{
    head(out, "apiserver_request_total", "counter", "Requests by verb, resource and status code.");
    for (size_t i = 0; i < m->n; i++) {
        const struct counter *c = &m->counters[i];
        strbuf_addf(
            out, "apiserver_request_total{verb=\"%s\",resource=\"%s\",code=\"%d\"} %" PRIu64 "\n",
            verb_names[c->verb], c->resource, c->code, c->n);
    }
    head(out, "apiserver_request_duration_seconds", "histogram",
         "Time from a request to its answer; watches: their length.");
    for (size_t v = 0; v < VERB_MAX; v++) {
        const struct latency *l = &m->latency[v];
        uint64_t below = 0;
        for (size_t b = 0; l->n && b < N_BOUNDS; b++) {
            below += l->buckets[b];
            strbuf_addf(out,
                        "apiserver_request_duration_seconds_bucket{verb=\"%s\",le=\"%g\"} %" PRIu64
                        "\n",
                        verb_names[v], bounds_ms[b] / 1000.0, below);
        }
        if (l->n) {
            strbuf_addf(out,
                        "apiserver_request_duration_seconds_bucket{verb=\"%s\",le=\"+Inf\"} "
                        "%" PRIu64 "\n"
                        "apiserver_request_duration_seconds_sum{verb=\"%s\"} %.9g\n"
                        "apiserver_request_duration_seconds_count{verb=\"%s\"} %" PRIu64 "\n",
                        verb_names[v], l->n, verb_names[v], (double) l->sum_ns / 1e9, verb_names[v],
                        l->n);
        }
    }
}

static void write_cache(const struct apiserver *a, struct strbuf *out)
{
    static const struct {
        const char *name, *help;
    } gauges[] = {
        {"apiserver_storage_objects", "Objects of each kind."},
        {"apiserver_registered_watchers", "Watches of each kind."},
        {"apiserver_watch_cache_events", "Events kept for watches that resume."},
    };
    for (size_t g = 0; g < ARRAY_SIZE(gauges); g++) {
        head(out, gauges[g].name, "gauge", gauges[g].help);
        for (size_t i = 0; i < a->cache.n_kinds; i++) {
            const struct cache_kind *ck = a->cache.kinds[i];
            size_t value = g == 0 ? ck->objects.n : g == 1 ? ck->n_watches : ck->n_events;
            strbuf_addf(out, "%s{resource=\"%s\"} %zu\n", gauges[g].name, RESOURCE_TEXT(ck->kind),
                        value);
        }
    }
    head(out, "apiserver_storage_revision", "counter", "Revision of the registry.");
    strbuf_addf(out, "apiserver_storage_revision %" PRIu64 "\n", a->cache.revision);
    head(out, "apiserver_current_inflight_writes", "gauge", "Writes under way.");
    strbuf_addf(out, "apiserver_current_inflight_writes %u\n", a->inflight);
}

static void write_process(struct strbuf *out)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%*u %lu", &pages) != 1) {
            pages = 0;
        }
        fclose(f);
    }
    head(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
    strbuf_addf(out, "process_resident_memory_bytes %lu\n",
                pages * (unsigned long) sysconf(_SC_PAGESIZE));
}

void handle_metrics(struct request *q)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    write_requests(q->server->metrics, &out);
    write_cache(q->server, &out);
    write_process(&out);
    respond_text(q, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}
