/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the API server, in Prometheus' text format. */
#include "apiserver/probe.h"
#include "base/timeutil.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Upper bounds of the latency histogram, in milliseconds. */
static const unsigned bounds_ms[] = {1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 10000};
#define N_BOUNDS ARRAY_SIZE(bounds_ms)

/* Of one verb on one kind of resource. */
struct counter {
    enum verb verb;
    int code;
    char *resource; /* A kind's plural, or "". */
    uint64_t n;
};

struct histogram {
    uint64_t buckets[N_BOUNDS + 1], n, sum_ns;
};

struct latency {
    enum verb verb;
    char *resource;
    struct histogram h;
};

struct metrics {
    struct counter *counters;
    size_t n_counters, counters_cap;
    struct latency *latencies;
    size_t n_latencies, latencies_cap;
    struct histogram store[2]; /* Puts; deletions. */
    uint64_t store_errors[2];
    int64_t started_ms;
};

struct metrics *metrics_new(void)
{
    struct metrics *m = NEW(struct metrics);
    m->started_ms = time_wall_ms();
    return m;
}

struct metrics *metrics_free(struct metrics *m)
{
    for (size_t i = 0; m && i < m->n_counters; i++) {
        free(m->counters[i].resource);
    }
    for (size_t i = 0; m && i < m->n_latencies; i++) {
        free(m->latencies[i].resource);
    }
    if (m) {
        free(m->counters);
        free(m->latencies);
        free(m);
    }
    return NULL;
}

static void observe(struct histogram *h, uint64_t duration_ns)
{
    size_t b = 0;
    while (b < N_BOUNDS && duration_ns > bounds_ms[b] * UINT64_C(1000000)) {
        b++;
    }
    h->buckets[b]++;
    h->n++;
    h->sum_ns += duration_ns;
}

void metrics_count(struct metrics *m, enum verb verb, const char *resource, int code,
                   uint64_t duration_ns)
{
    size_t i = 0;
    while (i < m->n_counters && !(m->counters[i].verb == verb && m->counters[i].code == code &&
                                  streq(m->counters[i].resource, resource))) {
        i++;
    }
    if (i == m->n_counters) {
        m->counters = grow(m->counters, &m->counters_cap, m->n_counters + 1, sizeof *m->counters);
        m->counters[m->n_counters++] = (struct counter){verb, code, xstrdup(resource), 0};
    }
    m->counters[i].n++;
    for (i = 0; i < m->n_latencies &&
                !(m->latencies[i].verb == verb && streq(m->latencies[i].resource, resource));) {
        i++;
    }
    if (i == m->n_latencies) {
        m->latencies =
            grow(m->latencies, &m->latencies_cap, m->n_latencies + 1, sizeof *m->latencies);
        m->latencies[m->n_latencies++] =
            (struct latency){.verb = verb, .resource = xstrdup(resource)};
    }
    observe(&m->latencies[i].h, duration_ns);
}

void metrics_count_store(struct metrics *m, bool deletion, int error, uint64_t duration_ns)
{
    observe(&m->store[deletion], duration_ns);
    m->store_errors[deletion] += error != 0;
}

static void head(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A metric of one value. */
static void single(struct strbuf *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    head(out, name, type, help);
    strbuf_addf(out, "%s %" PRIu64 "\n", name, value);
}

/* 'labels': name="value",... */
static void write_histogram(struct strbuf *out, const char *name, const char *labels,
                            const struct histogram *h)
{
    uint64_t below = 0;
    for (size_t b = 0; b < N_BOUNDS; b++) {
        below += h->buckets[b];
        strbuf_addf(out, "%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, labels,
                    bounds_ms[b] / 1000.0, below);
    }
    strbuf_addf(out,
                "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n"
                "%s_sum{%s} %.9g\n"
                "%s_count{%s} %" PRIu64 "\n",
                name, labels, h->n, name, labels, (double) h->sum_ns / 1e9, name, labels, h->n);
}

static void write_requests(const struct metrics *m, struct strbuf *out)
{
    static const char duration[] = "apiserver_request_duration_seconds";
    static const char store[] = "apiserver_store_write_duration_seconds";
    static const char *const operations[] = {"operation=\"put\"", "operation=\"delete\""};
    head(out, "apiserver_request_total", "counter", "Requests by verb, resource and status code.");
    for (size_t i = 0; i < m->n_counters; i++) {
        const struct counter *c = &m->counters[i];
        strbuf_addf(
            out, "apiserver_request_total{verb=\"%s\",resource=\"%s\",code=\"%d\"} %" PRIu64 "\n",
            verb_names[c->verb], c->resource, c->code, c->n);
    }
    head(out, duration, "histogram", "Time from a request to its answer; watches: their length.");
    for (size_t i = 0; i < m->n_latencies; i++) {
        const struct latency *l = &m->latencies[i];
        CLEANUP_FREE char *labels =
            xasprintf("verb=\"%s\",resource=\"%s\"", verb_names[l->verb], l->resource);
        write_histogram(out, duration, labels, &l->h);
    }
    head(out, store, "histogram", "Time until the store has answered a write.");
    for (size_t i = 0; i < ARRAY_SIZE(m->store); i++) {
        write_histogram(out, store, operations[i], &m->store[i]);
    }
    head(out, "apiserver_store_write_errors_total", "counter",
         "Writes that the store refused or lost, conflicts among them.");
    for (size_t i = 0; i < ARRAY_SIZE(m->store); i++) {
        strbuf_addf(out, "apiserver_store_write_errors_total{%s} %" PRIu64 "\n", operations[i],
                    m->store_errors[i]);
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
        {"apiserver_watch_cache_event_bytes", "Texts that only those hold."},
    };
    for (size_t g = 0; g < ARRAY_SIZE(gauges); g++) {
        head(out, gauges[g].name, "gauge", gauges[g].help);
        for (size_t i = 0; i < a->cache.n_kinds; i++) {
            const struct cache_kind *ck = a->cache.kinds[i];
            const size_t values[] = {ck->objects.n, ck->n_watches, ck->n_events, ck->event_bytes};
            strbuf_addf(out, "%s{resource=\"%s\"} %zu\n", gauges[g].name, RESOURCE_TEXT(ck->kind),
                        values[g]);
        }
    }
    uint64_t unreadable = 0;
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        unreadable += a->cache.kinds[i]->unreadable.map.n;
    }
    single(out, "apiserver_storage_revision", "counter", "Revision of the registry.",
           a->cache.revision);
    single(out, "apiserver_storage_available", "gauge", "Whether the store takes writes.",
           !probe_error(a->probe));
    single(out, "apiserver_storage_unreadable_objects", "gauge", "Objects that cannot be read.",
           unreadable);
    single(out, "apiserver_current_inflight_writes", "gauge", "Writes under way.", a->inflight);
    single(out, "apiserver_longrunning_requests", "gauge", "Watches.", a->n_watches);
}

static void write_flow(const struct apiserver *a, struct strbuf *out)
{
    static const struct {
        const char *name, *type, *help;
    } metrics[] = {
        {"apiserver_flowcontrol_request_concurrency_limit", "gauge", "Seats of a level."},
        {"apiserver_flowcontrol_current_executing_seats", "gauge", "Seats that are taken."},
        {"apiserver_flowcontrol_current_executing_requests", "gauge", "Requests at work."},
        {"apiserver_flowcontrol_current_inqueue_requests", "gauge", "Requests that wait."},
        {"apiserver_flowcontrol_current_flows", "gauge", "Flows that are known."},
        {"apiserver_flowcontrol_dispatched_requests_total", "counter", "Requests begun."},
        {"apiserver_flowcontrol_request_wait_seconds_total", "counter", "Time they had waited."},
    };
    static const char rejected[] = "apiserver_flowcontrol_rejected_requests_total";
    struct priority_stats s[PRIORITY_MAX];
    for (size_t l = 0; l < PRIORITY_MAX; l++) {
        s[l] = flow_stats(a->flow, (enum priority_level) l);
    }
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        head(out, metrics[i].name, metrics[i].type, metrics[i].help);
        for (size_t l = 0; l < PRIORITY_MAX; l++) {
            const double values[] = {s[l].seats,
                                     s[l].running_seats,
                                     s[l].running,
                                     s[l].waiting,
                                     s[l].flows,
                                     (double) s[l].begun,
                                     (double) s[l].waited_ms / 1000};
            strbuf_addf(out, "%s{priority_level=\"%s\"} %.17g\n", metrics[i].name,
                        priority_level_names[l], values[i]);
        }
    }
    head(out, rejected, "counter", "Requests answered with 429.");
    for (size_t l = 0; l < PRIORITY_MAX; l++) {
        strbuf_addf(out,
                    "%s{priority_level=\"%s\",reason=\"queue-full\"} %" PRIu64 "\n"
                    "%s{priority_level=\"%s\",reason=\"time-out\"} %" PRIu64 "\n",
                    rejected, priority_level_names[l], s[l].refused_full, rejected,
                    priority_level_names[l], s[l].refused_late);
    }
    single(out, "apiserver_flowcontrol_exempt_requests_total", "counter",
           "Requests that no queue holds up.", flow_exempt(a->flow));
}

static void write_http(const struct apiserver *a, struct strbuf *out)
{
    if (!a->http) {
        return;
    }
    struct http_stats s = http_server_stats(a->http);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } metrics[] = {
        {"http_server_connections", "gauge", "Open connections.", s.conns},
        {"http_server_http2_connections", "gauge", "Those that speak HTTP/2.", s.h2_conns},
        {"http_server_http2_streams", "gauge", "Open HTTP/2 streams.", s.streams},
        {"http_server_request_body_bytes", "gauge", "Bodies held.", s.body_bytes},
        {"http_server_accepted_total", "counter", "Connections accepted.", s.accepted},
        {"http_server_refused_total", "counter", "Connections that had to go for want of room.",
         s.refused},
        {"http_server_request_errors_total", "counter",
         "Requests too large, too slow or malformed.", s.errors},
        {"http_server_http2_floods_total", "counter", "Connections ended for too many frames.",
         s.floods},
        {"http_server_cut_total", "counter", "Responses broken off, for they were not read.",
         s.cut},
    };
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        single(out, metrics[i].name, metrics[i].type, metrics[i].help, metrics[i].value);
    }
}

static unsigned open_files(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));) {
        n += e->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return n ? n - 1 : 0; /* Not the one of the folder. */
}

/* The names that every exporter of Prometheus uses. */
static void write_process(const struct metrics *m, struct strbuf *out)
{
    unsigned long size = 0, pages = 0, page = (unsigned long) sysconf(_SC_PAGESIZE);
    struct rusage usage = {0};
    struct rlimit files = {0};
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%lu %lu", &size, &pages) != 2) {
            size = pages = 0;
        }
        fclose(f);
    }
    (void) getrusage(RUSAGE_SELF, &usage);
    (void) getrlimit(RLIMIT_NOFILE, &files);
    head(out, "process_cpu_seconds_total", "counter", "Time of the processors, user and system.");
    strbuf_addf(out, "process_cpu_seconds_total %.6f\n",
                (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    head(out, "process_start_time_seconds", "gauge", "When the server began, since 1970.");
    strbuf_addf(out, "process_start_time_seconds %.3f\n", (double) m->started_ms / 1e3);
    single(out, "process_resident_memory_bytes", "gauge", "Resident memory.", pages * page);
    single(out, "process_virtual_memory_bytes", "gauge", "Address space.", size * page);
    single(out, "process_open_fds", "gauge", "Open descriptors.", open_files());
    single(out, "process_max_fds", "gauge", "Most descriptors.", files.rlim_cur);
}

void apiserver_set_metrics(struct apiserver *a, apiserver_metrics_fn *fn, void *ctx)
{
    a->more_metrics = fn;
    a->more_metrics_ctx = ctx;
}

void handle_metrics(struct request *q)
{
    const struct apiserver *a = q->server;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    write_requests(a->metrics, &out);
    write_cache(a, &out);
    write_flow(a, &out);
    write_http(a, &out);
    write_process(a->metrics, &out);
    if (a->more_metrics) {
        a->more_metrics(a->more_metrics_ctx, &out);
    }
    respond_text(q, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}
