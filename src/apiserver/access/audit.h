/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: a line of JSON (Event of audit.k8s.io/v1) for each request that the policy wants
 * to be told.
 *
 * Lines are queued and written by a worker thread, so that a slow disk keeps no request waiting;
 * when more is queued than AUDIT_QUEUE_MAX, lines are dropped, counted, and the log says so.  The
 * file is renamed when it is as large as it may be, and the oldest of those are removed.  Loop's
 * thread. */
#pragma once

#include "apiserver/access/audit_policy.h"
#include "net/loop/loop.h"

#define AUDIT_QUEUE_MAX ((size_t) 16 << 20)

struct audit_config {
    const char *path;
    const char *policy_file; /* NULL: Metadata for everything. */
    uint64_t max_size;       /* Bytes of a file; 0: 100 MiB. */
    unsigned max_backups;    /* Files kept beside the current one; 0: 10. */
};

struct audit_log;
int audit_log_open(struct loop *l, const struct audit_config *cfg, struct audit_log **ret,
                   struct err *e);
/* Writes what is queued, waiting for it. */
struct audit_log *audit_log_close(struct audit_log *log);
/* Reads the policy again; unchanged on failure. */
int audit_log_reload(struct audit_log *log, struct err *e);

/* ---- events of one request (internal to src/apiserver) ---- */

struct http_exchange;
struct audit_event;
/* What is known before a request is decided on ('user' NULL: nobody that could be authenticated);
 * NULL when it is not audited.  Also tells RequestReceived.  Sets the header Audit-Id. */
struct audit_event *audit_begin(struct audit_log *log, struct http_exchange *x,
                                const struct user_info *user, const struct attributes *a);
/* The request goes on as 'user'. */
void audit_impersonated(struct audit_event *ev, const struct user_info *user);
/* Why it was let in or refused. */
void audit_decision_set(struct audit_event *ev, bool allowed, const char *why);
/* A stage was reached.  'x' (NULL: the exchange may be gone, as that of a watch) has the request's
 * body, and 'body' of 'size' bytes is the response's (JSON; NULL: none or not known). */
void audit_stage(struct audit_event *ev, const struct http_exchange *x, enum audit_stage stage,
                 int code, const char *body, size_t size);
struct audit_event *audit_event_free(struct audit_event *ev);
