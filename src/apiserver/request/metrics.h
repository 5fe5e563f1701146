/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the API server, in Prometheus' text format. */
#pragma once

#include "apiserver/request/request.h"

struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *m);
/* The store has answered a write, after 'duration_ns'. */
void metrics_count_store(struct metrics *m, bool deletion, int error, uint64_t duration_ns);
/* One phase of an admission plug-in; all texts are constant, and compared by their addresses. */
struct admission_call {
    const char *name, *type, *operation;
    bool rejected;
};
void metrics_count_admission(struct metrics *m, const struct admission_call *call,
                             uint64_t duration_ns);
/* A call of an admission webhook; all texts are copied. */
struct webhook_count {
    const char *name, *type, *operation;
    bool rejected, failed_open;
    const char *error_type; /* NULL: there was no error. */
    int code;               /* HTTP status of the answer to the client; 0: the webhook failed. */
};
void metrics_count_webhook(struct metrics *m, const struct webhook_count *c, uint64_t duration_ns);
/* A quota refused a write; 'namespace' "": a ClusterResourceQuota did. */
void metrics_count_refusal(struct metrics *m, const char *namespace, const char *quota);
/* The result of Pod Security for a write, with the metric's labels: judged it, exempted it, or met
 * an error. */
enum pod_security_count { POD_SECURITY_EVALUATION, POD_SECURITY_EXEMPTION, POD_SECURITY_ERROR };
#define POD_SECURITY_COUNTS 3
void metrics_count_pod_security(struct metrics *m, enum pod_security_count what,
                                const char *labels);
/* A request was answered; a watch when it ended. */
void metrics_count(struct metrics *m, enum verb verb, const char *resource, int code,
                   uint64_t duration_ns);

void handle_metrics(struct request *q, struct outcome *outcome);
