/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: a line of JSON (Event of audit.k8s.io/v1) for each stage
 * of a request that the policy selects.
 *
 * Lines are queued and written by a worker thread, so that a slow disk delays no request.
 * When more than AUDIT_QUEUE_MAX bytes are queued, lines are dropped and counted, and a
 * warning is logged.  The file is renamed when it reaches its maximum size, and the oldest
 * renamed files are removed.  All functions are called on the loop's thread. */
#pragma once

#include "apiserver/access/audit_policy.h"
#include "net/loop/loop.h"

#define AUDIT_QUEUE_MAX ((size_t) 16 << 20)
#define AUDIT_ID_MAX 64

struct audit_config {
    const char *path;
    const char *policy_file; /* NULL: Metadata for everything. */
    uint64_t max_size;       /* Bytes of a file; 0: 100 MiB. */
    unsigned max_backups;    /* Files kept beside the current one; 0: 10. */
};

struct audit_log;
/* Opens the file, which is appended to, and reads the policy; 'cfg' is copied.  Errors
 * name the path and the problem. */
int audit_log_open(struct loop *l, const struct audit_config *cfg, struct audit_log **ret,
                   struct err *e);
/* Waits for the worker thread, writes the queued lines, and frees the log.  It blocks, and runs the
 * loop meanwhile.  NULL is fine; returns NULL. */
struct audit_log *audit_log_close(struct audit_log *log);
/* Reads the policy again; on failure the previous one stays in force. */
int audit_log_reload(struct audit_log *log, struct err *e);

/* ---- audit events of one request (internal to src/apiserver) ---- */

struct http_exchange;
struct audit_event;
/* Makes the value of the request's header Audit-Id: the client's if it is valid, so that the lines
 * of several servers can be correlated; else a new UUID. */
void audit_make_id(const struct http_exchange *x, char out[AUDIT_ID_MAX + 1]);
/* Begins the event with the facts known before authorization ('user' NULL:
 * authentication failed); returns NULL when the request is not audited.  Logs the stage
 * RequestReceived. */
struct audit_event *audit_begin(struct audit_log *log, struct http_exchange *x, const char *id,
                                const struct user_info *user, const struct attributes *a);
/* The request continues with the rights of 'user'. */
void audit_impersonated(struct audit_event *ev, const struct user_info *user);
/* Records the decision of authorization and its reason. */
void audit_decision_set(struct audit_event *ev, bool allowed, const char *why);
/* Adds an annotation, which the lines of all later stages have; 'ev' may be NULL. */
void audit_annotate(struct audit_event *ev, const char *key, const char *value);
/* Logs that a stage was reached.  'x' (NULL: the exchange may be gone, as that of a watch) has the
 * request's body; 'body' of 'size' bytes is the response's (JSON; NULL: none or not known). */
void audit_stage(struct audit_event *ev, const struct http_exchange *x, enum audit_stage stage,
                 int code, const char *body, size_t size);
/* Logs nothing; the stages were logged by audit_stage.  NULL is fine; returns NULL. */
struct audit_event *audit_event_free(struct audit_event *ev);
