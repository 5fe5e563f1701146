/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text format (version 0.0.4). */
#pragma once

#include "base/str.h"

#define PROM_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* One metric: a row from which the text and the table of docs/metrics.md come.  Rows of one name
 * follow each other, and the first has the help text. */
struct prom_metric {
    const char *name, *type; /* "counter", "gauge" or "histogram" */
    const char *help;        /* One sentence. */
    const char *label;       /* "result=\"sent\""; with 'write': names of labels, "cause". */
    size_t offset, size;     /* The value in the facts: a bool, or an integer of 4 or 8 bytes. */
    /* Writes the samples, for metrics of more than a value. */
    void (*write)(const struct prom_metric *m, const void *facts, struct strbuf *out);
};
struct prom_table {
    const struct prom_metric *rows;
    size_t n;
};
/* .PROM_MEMBER(struct facts, pods) of a row. */
#define PROM_MEMBER(type, member) \
    .offset = offsetof(type, member), .size = sizeof(((const type *) NULL)->member)
/* A row whose value is a member of 'facts' (a struct type), and one that a function writes. */
#define PROM_VALUE(metric, kind, text, facts, member)                          \
    {                                                                          \
        .name = metric, .type = kind, .help = text, PROM_MEMBER(facts, member) \
    }
#define PROM_WRITTEN(metric, kind, text, labels, function)                             \
    {                                                                                  \
        .name = metric, .type = kind, .help = text, .label = labels, .write = function \
    }

/* The text of all metrics of the table, with the values in 'facts'. */
void prom_write(const struct prom_table *t, const void *facts, struct strbuf *out);

/* The lines that open a metric; 'type' is "counter", "gauge" or "histogram". */
void prom_head(struct strbuf *out, const char *name, const char *type, const char *help);
/* A whole metric with its only sample. */
void prom_one(struct strbuf *out, const char *name, const char *type, const char *help,
              uint64_t value);

/* Latencies.  Upper bounds: 1 ms to 10 s. */
#define PROM_BUCKETS 12
struct prom_histogram {
    uint64_t buckets[PROM_BUCKETS + 1], n, sum_ns;
};
void prom_histogram_add(struct prom_histogram *h, uint64_t duration_ns);
/* The samples of one histogram; 'label' is "verb=\"get\"", or "".  Writes nothing when it is
 * empty. */
void prom_histogram_write(const struct prom_histogram *h, const char *name, const char *label,
                          struct strbuf *out);

/* process_resident_memory_bytes and process_cpu_seconds_total of this process. */
void prom_process(struct strbuf *out);
