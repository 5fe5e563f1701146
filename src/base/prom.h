/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text format (version 0.0.4). */
#pragma once

#include "base/str.h"

#define PROM_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The lines that open a metric; 'type' is "counter", "gauge" or "histogram". */
void prom_head(struct strbuf *out, const char *name, const char *type, const char *help);
/* As above and its only sample. */
void prom_one(struct strbuf *out, const char *name, const char *type, const char *help,
              uint64_t value);

/* Latencies.  Upper bounds: 1 ms to 10 s. */
#define PROM_BUCKETS 12
struct prom_histogram {
    uint64_t buckets[PROM_BUCKETS + 1], n, sum_ns;
};
void prom_histogram_add(struct prom_histogram *h, uint64_t duration_ns);
/* The samples of one histogram; 'label' is "verb=\"get\"".  Nothing when it is empty. */
void prom_histogram_write(const struct prom_histogram *h, const char *name, const char *label,
                          struct strbuf *out);

/* process_resident_memory_bytes and process_cpu_seconds_total of this process. */
void prom_process(struct strbuf *out);
