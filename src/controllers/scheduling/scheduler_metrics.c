/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/scheduling/scheduler_metrics.h"

#include "base/mem.h"

#include <inttypes.h>

#define PROFILE "default-scheduler"

static const char *const results[SCHEDULER_RESULTS] = {
    [SCHEDULER_SCHEDULED] = "scheduled",
    [SCHEDULER_UNSCHEDULABLE] = "unschedulable",
    [SCHEDULER_ERROR] = "error",
};

static void write_pending(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct scheduler_facts *f = facts;
    const struct {
        const char *queue;
        size_t n;
    } queues[] = {{"active", f->active},
                  {"backoff", f->backoff},
                  {"unschedulable", f->unschedulable},
                  {"gated", f->gated}};
    for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
        strbuf_addf(out, "%s{queue=\"%s\"} %zu\n", m->name, queues[i].queue, queues[i].n);
    }
}

static void write_attempts(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct scheduler_facts *f = facts;
    for (size_t i = 0; i < SCHEDULER_RESULTS; i++) {
        strbuf_addf(out, "%s{profile=\"" PROFILE "\",result=\"%s\"} %" PRIu64 "\n", m->name,
                    results[i], f->attempts[i]);
    }
}

static void write_decisions(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct scheduler_facts *f = facts;
    for (size_t i = 0; i < SCHEDULER_RESULTS; i++) {
        CLEANUP_FREE char *label = xasprintf("profile=\"" PROFILE "\",result=\"%s\"", results[i]);
        prom_histogram_write(&f->decisions[i], m->name, label, out);
    }
}

static const struct prom_metric rows[] = {
    PROM_WRITTEN("scheduler_pending_pods", "gauge",
                 "Pods without a node: tried next, waiting for the end of a delay, waiting for an "
                 "event that helps, or with scheduling gates.",
                 "queue", write_pending),
    PROM_WRITTEN("scheduler_schedule_attempts_total", "counter",
                 "Attempts to give a pod a node, by result.", "profile, result", write_attempts),
    PROM_WRITTEN("scheduler_scheduling_attempt_duration_seconds", "histogram",
                 "Time of a decision, without the Binding.", "profile, result", write_decisions),
    PROM_VALUE("scheduler_preemption_attempts_total", "counter",
               "Attempts to make room for a pod by ending less important ones.",
               struct scheduler_facts, preemptions),
    PROM_VALUE("tenet_scheduler_preemption_victims_total", "counter",
               "Pods that had to go for more important ones.", struct scheduler_facts, victims),
};
const struct prom_table scheduler_metrics = {rows, ARRAY_SIZE(rows)};
