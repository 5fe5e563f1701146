/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prom.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* In milliseconds. */
static const unsigned bounds_ms[PROM_BUCKETS] = {1,   2,   5,   10,   25,   50,
                                                 100, 250, 500, 1000, 5000, 10000};

void prom_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void prom_one(struct strbuf *out, const char *name, const char *type, const char *help,
              uint64_t value)
{
    prom_head(out, name, type, help);
    strbuf_addf(out, "%s %" PRIu64 "\n", name, value);
}

static uint64_t value_of(const struct prom_metric *m, const void *facts)
{
    const void *p = (const char *) facts + m->offset;
    return m->size == sizeof(bool)       ? *(const bool *) p
           : m->size == sizeof(uint32_t) ? *(const uint32_t *) p
                                         : *(const uint64_t *) p;
}

void prom_write(const struct prom_table *t, const void *facts, struct strbuf *out)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct prom_metric *m = &t->rows[i];
        if (i == 0 || !streq(m[-1].name, m->name)) {
            prom_head(out, m->name, m->type, m->help);
        }
        if (m->write) {
            m->write(m, facts, out);
        } else if (m->label) {
            strbuf_addf(out, "%s{%s} %" PRIu64 "\n", m->name, m->label, value_of(m, facts));
        } else {
            strbuf_addf(out, "%s %" PRIu64 "\n", m->name, value_of(m, facts));
        }
    }
}

void prom_histogram_add(struct prom_histogram *h, uint64_t duration_ns)
{
    size_t b = 0;
    while (b < PROM_BUCKETS && duration_ns > bounds_ms[b] * UINT64_C(1000000)) {
        b++;
    }
    h->buckets[b]++;
    h->n++;
    h->sum_ns += duration_ns;
}

void prom_histogram_write(const struct prom_histogram *h, const char *name, const char *label,
                          struct strbuf *out)
{
    uint64_t below = 0;
    const char *comma = *label ? "," : "", *open = *label ? "{" : "", *close = *label ? "}" : "";
    if (!h->n) {
        return;
    }
    for (size_t b = 0; b < PROM_BUCKETS; b++) {
        below += h->buckets[b];
        strbuf_addf(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, label, comma,
                    bounds_ms[b] / 1000.0, below);
    }
    strbuf_addf(out,
                "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n"
                "%s_sum%s%s%s %.9g\n"
                "%s_count%s%s%s %" PRIu64 "\n",
                name, label, comma, h->n, name, open, label, close, (double) h->sum_ns / 1e9, name,
                open, label, close, h->n);
}

void prom_process(struct strbuf *out)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%*u %lu", &pages) != 1) {
            pages = 0;
        }
        fclose(f);
    }
    prom_one(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
             pages * (unsigned long) sysconf(_SC_PAGESIZE));
    struct rusage u = {0};
    getrusage(RUSAGE_SELF, &u);
    prom_head(out, "process_cpu_seconds_total", "counter", "Processor time, user and system.");
    strbuf_addf(out, "process_cpu_seconds_total %.3f\n",
                (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                    (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
}
