/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the API server, in Prometheus' text format. */
#include "apiserver/server.h"
#include "base/prom.h"

#include <inttypes.h>
#include <stdio.h>

struct counter {
    enum verb verb;
    int code;
    const char *resource; /* A kind's plural (that very pointer), or "". */
    uint64_t n;
};

struct metrics {
    struct counter *counters;
    size_t n, cap;
    struct prom_histogram latency[VERB_MAX];
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
    prom_histogram_add(&m->latency[verb], duration_ns);
}

static void write_requests(const struct metrics *m, struct strbuf *out)
{
    prom_head(out, "apiserver_request_total", "counter",
              "Requests by verb, resource and status code.");
    for (size_t i = 0; i < m->n; i++) {
        const struct counter *c = &m->counters[i];
        strbuf_addf(
            out, "apiserver_request_total{verb=\"%s\",resource=\"%s\",code=\"%d\"} %" PRIu64 "\n",
            verb_names[c->verb], c->resource, c->code, c->n);
    }
    prom_head(out, "apiserver_request_duration_seconds", "histogram",
              "Time from a request to its answer; watches: their length.");
    for (size_t v = 0; v < VERB_MAX; v++) {
        char label[64];
        snprintf(label, sizeof label, "verb=\"%s\"", verb_names[v]);
        prom_histogram_write(&m->latency[v], "apiserver_request_duration_seconds", label, out);
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
        prom_head(out, gauges[g].name, "gauge", gauges[g].help);
        for (size_t i = 0; i < a->cache.n_kinds; i++) {
            const struct cache_kind *ck = &a->cache.kinds[i];
            size_t value = g == 0 ? ck->objects.n : g == 1 ? ck->n_watches : ck->n_events;
            strbuf_addf(out, "%s{resource=\"%s\"} %zu\n", gauges[g].name, RESOURCE_TEXT(ck->kind),
                        value);
        }
    }
    prom_head(out, "apiserver_storage_revision", "counter", "Revision of the registry.");
    strbuf_addf(out, "apiserver_storage_revision %" PRIu64 "\n", a->cache.revision);
    prom_head(out, "apiserver_current_inflight_writes", "gauge", "Writes under way.");
    strbuf_addf(out, "apiserver_current_inflight_writes %u\n", a->inflight);
}

void handle_metrics(struct request *q)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    write_requests(q->server->metrics, &out);
    write_cache(q->server, &out);
    prom_process(&out);
    respond_text(q, 200, PROM_CONTENT_TYPE, &out);
}
