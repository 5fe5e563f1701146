/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the API server, in Prometheus' text format. */
#include "apiserver/request/metrics.h"

#include "apiserver/request/flow.h"
#include "apiserver/request/probe.h"
#include "base/prom.h"
#include "base/timeutil.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The counter of one verb on one kind of resource. */
struct counter {
    enum verb verb;
    int code;
    char *resource; /* A kind's plural, or "". */
    uint64_t n;
};

struct latency {
    enum verb verb;
    char *resource;
    struct prom_histogram h;
};

struct admission_latency {
    struct admission_call call;
    struct prom_histogram h;
};

struct metrics {
    struct counter *counters;
    size_t n_counters, counters_cap;
    struct latency *latencies;
    size_t n_latencies, latencies_cap;
    struct admission_latency *admissions;
    size_t n_admissions, admissions_cap;
    struct prom_histogram store[2]; /* Latency of puts, and of deletions. */
    uint64_t store_errors[2];
    struct smap refusals; /* Of quotas: uint64_t by the labels. */
    /* Of webhooks: struct prom_histogram, and uint64_t thrice, by the labels. */
    struct smap hook_calls, hook_totals, hook_rejections, hook_open;
    struct smap pod_security[POD_SECURITY_COUNTS]; /* uint64_t by the labels. */
    int64_t started_ms;
};

struct metrics *metrics_new(void)
{
    struct metrics *m = NEW(struct metrics);
    m->started_ms = time_wall_ms();
    smap_init(&m->refusals, free);
    smap_init(&m->hook_calls, free);
    smap_init(&m->hook_totals, free);
    smap_init(&m->hook_rejections, free);
    smap_init(&m->hook_open, free);
    for (size_t i = 0; i < POD_SECURITY_COUNTS; i++) {
        smap_init(&m->pod_security[i], free);
    }
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
        free(m->admissions);
        smap_done(&m->refusals);
        smap_done(&m->hook_calls);
        smap_done(&m->hook_totals);
        smap_done(&m->hook_rejections);
        smap_done(&m->hook_open);
        for (size_t i = 0; i < POD_SECURITY_COUNTS; i++) {
            smap_done(&m->pod_security[i]);
        }
        free(m);
    }
    return NULL;
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
    prom_histogram_add(&m->latencies[i].h, duration_ns);
}

void metrics_count_admission(struct metrics *m, const struct admission_call *call,
                             uint64_t duration_ns)
{
    size_t i = 0;
    while (i < m->n_admissions &&
           !(m->admissions[i].call.name == call->name && m->admissions[i].call.type == call->type &&
             m->admissions[i].call.operation == call->operation &&
             m->admissions[i].call.rejected == call->rejected)) {
        i++;
    }
    if (i == m->n_admissions) {
        m->admissions =
            grow(m->admissions, &m->admissions_cap, m->n_admissions + 1, sizeof *m->admissions);
        m->admissions[m->n_admissions++] = (struct admission_latency){.call = *call};
    }
    prom_histogram_add(&m->admissions[i].h, duration_ns);
}

/* Series of webhooks that are kept: configurations come and go. */
#define MAX_HOOK_SERIES 2000

/* The value of the series, made when it is new; NULL: there are too many. */
static void *series(struct smap *map, const char *labels, size_t size)
{
    void *v = smap_get(map, labels);
    if (!v && smap_size(map) < MAX_HOOK_SERIES) {
        v = xcalloc(1, size);
        smap_set(map, labels, v);
    }
    return v;
}

static void count_series(struct smap *map, const char *labels)
{
    uint64_t *n = series(map, labels, sizeof *n);
    if (n) {
        ++*n;
    }
}

void metrics_count_webhook(struct metrics *m, const struct webhook_count *c, uint64_t duration_ns)
{
    CLEANUP_FREE char *labels =
        xasprintf("name=\"%s\",operation=\"%s\",rejected=\"%s\",type=\"%s\"", c->name, c->operation,
                  c->rejected ? "true" : "false", c->type);
    CLEANUP_FREE char *total = xasprintf("code=\"%d\",%s", c->code, labels);
    struct prom_histogram *h = series(&m->hook_calls, labels, sizeof *h);
    if (h) {
        prom_histogram_add(h, duration_ns);
    }
    count_series(&m->hook_totals, total);
    if (c->rejected) {
        CLEANUP_FREE char *why = xasprintf(
            "error_type=\"%s\",name=\"%s\",operation=\"%s\",rejection_code=\"%d\",type=\"%s\"",
            c->error_type, c->name, c->operation, c->code, c->type);
        count_series(&m->hook_rejections, why);
    }
    if (c->failed_open) {
        CLEANUP_FREE char *open = xasprintf("name=\"%s\",type=\"%s\"", c->name, c->type);
        count_series(&m->hook_open, open);
    }
}

static void count_labels(struct smap *map, const char *labels)
{
    uint64_t *n = smap_get(map, labels);
    if (!n) {
        n = NEW(uint64_t);
        smap_set(map, labels, n);
    }
    ++*n;
}

void metrics_count_refusal(struct metrics *m, const char *namespace, const char *quota)
{
    CLEANUP_FREE char *labels = xasprintf("namespace=\"%s\",quota=\"%s\"", namespace, quota);
    count_labels(&m->refusals, labels);
}

void metrics_count_pod_security(struct metrics *m, enum pod_security_count what, const char *labels)
{
    count_labels(&m->pod_security[what], labels);
}

void metrics_count_store(struct metrics *m, bool deletion, int error, uint64_t duration_ns)
{
    prom_histogram_add(&m->store[deletion], duration_ns);
    m->store_errors[deletion] += error != 0;
}

/* Values of the rows. */
struct facts {
    const struct apiserver *server;
    const struct metrics *metrics;
    struct priority_stats levels[PRIORITY_MAX];
    uint64_t revision, unreadable, writes, watches, exempt;
    bool available;
    struct http_stats http;
    double cpu_s;
    uint64_t resident_bytes, virtual_bytes, open_fds, max_fds;
};

/* ---- requests ---- */

static const char *const store_labels[] = {"operation=\"put\"", "operation=\"delete\""};

static void write_requests(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    for (size_t i = 0; i < m->n_counters; i++) {
        const struct counter *c = &m->counters[i];
        strbuf_addf(out, "%s{verb=\"%s\",resource=\"%s\",code=\"%d\"} %" PRIu64 "\n", row->name,
                    verb_names[c->verb], c->resource, c->code, c->n);
    }
}

static void write_latencies(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    for (size_t i = 0; i < m->n_latencies; i++) {
        const struct latency *l = &m->latencies[i];
        CLEANUP_FREE char *labels =
            xasprintf("verb=\"%s\",resource=\"%s\"", verb_names[l->verb], l->resource);
        prom_histogram_write(&l->h, row->name, labels, out);
    }
}

static void write_admission(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    for (size_t i = 0; i < m->n_admissions; i++) {
        const struct admission_call *c = &m->admissions[i].call;
        CLEANUP_FREE char *labels =
            xasprintf("name=\"%s\",operation=\"%s\",rejected=\"%s\",type=\"%s\"", c->name,
                      c->operation, c->rejected ? "true" : "false", c->type);
        prom_histogram_write(&m->admissions[i].h, row->name, labels, out);
    }
}

static void write_refusals(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    const struct smap_entry *e;
    SMAP_FOREACH (e, &m->refusals) {
        strbuf_addf(out, "%s{%s} %" PRIu64 "\n", row->name, e->key, *(const uint64_t *) e->value);
    }
}

static void write_counters(const struct smap *map, const char *name, struct strbuf *out)
{
    const struct smap_entry *e;
    SMAP_FOREACH (e, map) {
        strbuf_addf(out, "%s{%s} %" PRIu64 "\n", name, e->key, *(const uint64_t *) e->value);
    }
}

static void write_pod_evaluations(const struct prom_metric *row, const void *facts,
                                  struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    write_counters(&m->pod_security[POD_SECURITY_EVALUATION], row->name, out);
}

static void write_pod_exemptions(const struct prom_metric *row, const void *facts,
                                 struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    write_counters(&m->pod_security[POD_SECURITY_EXEMPTION], row->name, out);
}

static void write_pod_errors(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    write_counters(&m->pod_security[POD_SECURITY_ERROR], row->name, out);
}

static void write_hook_calls(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct smap_entry *e;
    SMAP_FOREACH (e, &((const struct facts *) facts)->metrics->hook_calls) {
        prom_histogram_write(e->value, row->name, e->key, out);
    }
}

static void write_hook_totals(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    write_counters(&((const struct facts *) facts)->metrics->hook_totals, row->name, out);
}

static void write_hook_rejections(const struct prom_metric *row, const void *facts,
                                  struct strbuf *out)
{
    write_counters(&((const struct facts *) facts)->metrics->hook_rejections, row->name, out);
}

static void write_hook_open(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    write_counters(&((const struct facts *) facts)->metrics->hook_open, row->name, out);
}

static void write_store(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    for (size_t i = 0; i < ARRAY_SIZE(m->store); i++) {
        prom_histogram_write(&m->store[i], row->name, store_labels[i], out);
    }
}

static void write_store_errors(const struct prom_metric *row, const void *facts, struct strbuf *out)
{
    const struct metrics *m = ((const struct facts *) facts)->metrics;
    for (size_t i = 0; i < ARRAY_SIZE(m->store); i++) {
        strbuf_addf(out, "%s{%s} %" PRIu64 "\n", row->name, store_labels[i], m->store_errors[i]);
    }
}

/* ---- kinds and levels ---- */

/* Values of one kind, and of one priority level, by the offset in the row. */
struct kind_values {
    size_t objects, watches, events, event_bytes;
};
struct level_values {
    double seats, running_seats, running, waiting, flows, begun, waited_s;
};

static void write_kinds(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct apiserver *a = ((const struct facts *) facts)->server;
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        const struct cache_kind *k = a->cache.kinds[i];
        struct kind_values v = {k->objects.n, k->n_watches, k->n_events, k->event_bytes};
        size_t value;
        memcpy(&value, (const char *) &v + m->offset, sizeof value);
        strbuf_addf(out, "%s{resource=\"%s\"} %zu\n", m->name, RESOURCE_TEXT(k->kind), value);
    }
}

static void write_levels(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    for (size_t l = 0; l < PRIORITY_MAX; l++) {
        const struct priority_stats *s = &((const struct facts *) facts)->levels[l];
        struct level_values v = {.seats = s->seats,
                                 .running_seats = s->running_seats,
                                 .running = s->running,
                                 .waiting = s->waiting,
                                 .flows = s->flows,
                                 .begun = (double) s->begun,
                                 .waited_s = (double) s->waited_ms / 1000};
        double value;
        memcpy(&value, (const char *) &v + m->offset, sizeof value);
        strbuf_addf(out, "%s{priority_level=\"%s\"} %.17g\n", m->name, priority_level_names[l],
                    value);
    }
}

static void write_rejected(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    for (size_t l = 0; l < PRIORITY_MAX; l++) {
        const struct priority_stats *s = &((const struct facts *) facts)->levels[l];
        strbuf_addf(out,
                    "%s{priority_level=\"%s\",reason=\"queue-full\"} %" PRIu64 "\n"
                    "%s{priority_level=\"%s\",reason=\"time-out\"} %" PRIu64 "\n",
                    m->name, priority_level_names[l], s->refused_full, m->name,
                    priority_level_names[l], s->refused_late);
    }
}

/* ---- the process ---- */

static void write_cpu(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    strbuf_addf(out, "%s %.6f\n", m->name, ((const struct facts *) facts)->cpu_s);
}

static void write_start(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct metrics *metrics = ((const struct facts *) facts)->metrics;
    strbuf_addf(out, "%s %.3f\n", m->name, (double) metrics->started_ms / 1e3);
}

/* ---- rows ---- */

#define GAUGE(metric, member, text) PROM_VALUE(metric, "gauge", text, struct facts, member)
#define COUNTER(metric, member, text) PROM_VALUE(metric, "counter", text, struct facts, member)
#define OF_KIND(metric, member, text)                                       \
    {                                                                       \
        .name = metric, .type = "gauge", .help = text, .label = "resource", \
        PROM_MEMBER(struct kind_values, member), .write = write_kinds       \
    }
#define OF_LEVEL(metric, kind, member, text)                                   \
    {                                                                          \
        .name = metric, .type = kind, .help = text, .label = "priority_level", \
        PROM_MEMBER(struct level_values, member), .write = write_levels        \
    }
#define FLOW "apiserver_flowcontrol_"

static const struct prom_metric rows[] = {
    PROM_WRITTEN("apiserver_request_total", "counter",
                 "Requests by verb, resource and status code.", "verb, resource, code",
                 write_requests),
    PROM_WRITTEN("apiserver_request_duration_seconds", "histogram",
                 "Seconds from a request to its response; for a watch, its duration.",
                 "verb, resource", write_latencies),
    PROM_WRITTEN("apiserver_admission_controller_admission_duration_seconds", "histogram",
                 "Seconds of one phase of an admission plug-in.", "name, operation, rejected, type",
                 write_admission),
    PROM_WRITTEN("apiserver_admission_webhook_admission_duration_seconds", "histogram",
                 "Seconds of a call of an admission webhook.", "name, operation, rejected, type",
                 write_hook_calls),
    PROM_WRITTEN("apiserver_admission_webhook_request_total", "counter",
                 "Calls of admission webhooks; code 0: the webhook failed and was ignored.",
                 "code, name, operation, rejected, type", write_hook_totals),
    PROM_WRITTEN("apiserver_admission_webhook_rejection_count", "counter",
                 "Writes that an admission webhook, or its failure, refused.",
                 "error_type, name, operation, rejection_code, type", write_hook_rejections),
    PROM_WRITTEN("apiserver_admission_webhook_fail_open_count", "counter",
                 "Failures of admission webhooks that their failurePolicy ignored.", "name, type",
                 write_hook_open),
    PROM_WRITTEN("apiserver_quota_refusals_total", "counter",
                 "Writes that a ResourceQuota or, without a namespace, a ClusterResourceQuota "
                 "refused.",
                 "namespace, quota", write_refusals),
    PROM_WRITTEN(
        "pod_security_evaluations_total", "counter",
        "Judgements of pods and templates by the Pod Security labels of a namespace: all of "
        "enforce, and those of audit and warn that found a violation.",
        "decision, mode, policy_level, policy_version, request_operation, resource, "
        "subresource",
        write_pod_evaluations),
    PROM_WRITTEN("pod_security_exemptions_total", "counter",
                 "Writes that podSecurity of the configuration exempts from Pod Security.",
                 "request_operation, resource, subresource", write_pod_exemptions),
    PROM_WRITTEN(
        "pod_security_errors_total", "counter",
        "Writes whose namespace has wrong Pod Security labels, or cannot be found (fatal).",
        "fatal, request_operation, resource, subresource", write_pod_errors),
    PROM_WRITTEN("apiserver_store_write_duration_seconds", "histogram",
                 "Seconds until the store has answered a write.", "operation", write_store),
    PROM_WRITTEN("apiserver_store_write_errors_total", "counter",
                 "Writes that the store refused or lost, including conflicts.", "operation",
                 write_store_errors),
    OF_KIND("apiserver_storage_objects", objects, "Objects of each kind."),
    OF_KIND("apiserver_registered_watchers", watches, "Watches of each kind."),
    OF_KIND("apiserver_watch_cache_events", events,
            "Events in the window from which watches resume."),
    OF_KIND("apiserver_watch_cache_event_bytes", event_bytes,
            "Bytes of objects that only these events reference."),
    COUNTER("apiserver_storage_revision", revision, "Revision of the registry."),
    GAUGE("apiserver_storage_available", available, "1 while the store takes writes, else 0."),
    GAUGE("apiserver_storage_unreadable_objects", unreadable,
          "Objects in the store that cannot be read."),
    GAUGE("apiserver_current_inflight_writes", writes, "Writes under way."),
    GAUGE("apiserver_longrunning_requests", watches, "Watches."),
    OF_LEVEL(FLOW "request_concurrency_limit", "gauge", seats, "Seats of a priority level."),
    OF_LEVEL(FLOW "current_executing_seats", "gauge", running_seats,
             "Seats that running requests occupy."),
    OF_LEVEL(FLOW "current_executing_requests", "gauge", running, "Requests being executed."),
    OF_LEVEL(FLOW "current_inqueue_requests", "gauge", waiting, "Requests waiting in the queue."),
    OF_LEVEL(FLOW "current_flows", "gauge", flows,
             "Flows with requests or a balance to account for."),
    OF_LEVEL(FLOW "dispatched_requests_total", "counter", begun, "Requests started."),
    OF_LEVEL(FLOW "request_wait_seconds_total", "counter", waited_s,
             "Seconds that the started requests had waited."),
    PROM_WRITTEN(FLOW "rejected_requests_total", "counter", "Requests answered with 429.",
                 "priority_level, reason", write_rejected),
    COUNTER(FLOW "exempt_requests_total", exempt, "Requests exempt from queues."),
};

static const struct prom_metric http_rows[] = {
    GAUGE("http_server_connections", http.conns, "Open connections."),
    GAUGE("http_server_http2_connections", http.h2_conns, "Open HTTP/2 connections."),
    GAUGE("http_server_http2_streams", http.streams, "Open HTTP/2 streams."),
    GAUGE("http_server_request_body_bytes", http.body_bytes,
          "Bytes of the bodies of requests under way."),
    COUNTER("http_server_accepted_total", http.accepted, "Connections accepted."),
    COUNTER("http_server_refused_total", http.refused,
            "Connections closed because the limit was reached."),
    COUNTER("http_server_request_errors_total", http.errors,
            "Requests too large, too slow or malformed."),
    COUNTER("http_server_http2_floods_total", http.floods,
            "Connections closed for too many frames."),
    COUNTER("http_server_cut_total", http.cut,
            "Responses aborted because the client did not read them."),
};

/* The names that every exporter of Prometheus uses. */
static const struct prom_metric process_rows[] = {
    PROM_WRITTEN("process_cpu_seconds_total", "counter",
                 "Processor time in seconds, user and system.", NULL, write_cpu),
    PROM_WRITTEN("process_start_time_seconds", "gauge",
                 "Start time of the process, in seconds since 1970.", NULL, write_start),
    GAUGE("process_resident_memory_bytes", resident_bytes, "Resident memory in bytes."),
    GAUGE("process_virtual_memory_bytes", virtual_bytes, "Virtual memory in bytes."),
    GAUGE("process_open_fds", open_fds, "Open file descriptors."),
    GAUGE("process_max_fds", max_fds, "Limit of open file descriptors."),
};

enum { REQUEST_TABLE, HTTP_TABLE, PROCESS_TABLE };

const struct prom_table apiserver_metric_tables[APISERVER_METRIC_TABLES] = {
    [REQUEST_TABLE] = {rows, ARRAY_SIZE(rows)},
    [HTTP_TABLE] = {http_rows, ARRAY_SIZE(http_rows)},
    [PROCESS_TABLE] = {process_rows, ARRAY_SIZE(process_rows)},
};

static void read_server(const struct apiserver *a, struct facts *f)
{
    f->server = a;
    f->metrics = a->metrics;
    for (size_t l = 0; l < PRIORITY_MAX; l++) {
        f->levels[l] = flow_stats(a->flow, (enum priority_level) l);
    }
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        f->unreadable += a->cache.kinds[i]->unreadable.map.n;
    }
    f->revision = (uint64_t) a->cache.revision;
    f->available = !probe_error(a->probe);
    f->writes = a->inflight;
    f->watches = a->n_watches;
    f->exempt = flow_exempt(a->flow);
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
    return n ? n - 1 : 0; /* Without the descriptor of the folder itself. */
}

static void read_process(struct facts *f)
{
    unsigned long size = 0, pages = 0, page = (unsigned long) sysconf(_SC_PAGESIZE);
    struct rusage usage = {0};
    struct rlimit files = {0};
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm) {
        if (fscanf(statm, "%lu %lu", &size, &pages) != 2) {
            size = pages = 0;
        }
        fclose(statm);
    }
    (void) getrusage(RUSAGE_SELF, &usage);
    (void) getrlimit(RLIMIT_NOFILE, &files);
    f->cpu_s = (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    f->resident_bytes = pages * page;
    f->virtual_bytes = size * page;
    f->open_fds = open_files();
    f->max_fds = files.rlim_cur;
}

void apiserver_set_metrics(struct apiserver *a, apiserver_metrics_fn *fn, void *ctx)
{
    a->more_metrics = fn;
    a->more_metrics_ctx = ctx;
}

void handle_metrics(struct request *q, struct outcome *outcome)
{
    const struct apiserver *a = q->server;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct facts f = {0};
    read_server(a, &f);
    prom_write(&apiserver_metric_tables[REQUEST_TABLE], &f, &out);
    if (a->http) {
        f.http = http_server_stats(a->http);
        prom_write(&apiserver_metric_tables[HTTP_TABLE], &f, &out);
    }
    read_process(&f);
    prom_write(&apiserver_metric_tables[PROCESS_TABLE], &f, &out);
    if (a->more_metrics) {
        a->more_metrics(a->more_metrics_ctx, &out);
    }
    outcome_text(outcome, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}
