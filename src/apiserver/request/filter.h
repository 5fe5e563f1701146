/* SPDX-License-Identifier: Apache-2.0 */
/* The checks before a request is executed: authenticate -> audit -> impersonate -> authorize.
 *
 * apiserver_handle calls filter_request when only the HTTP request is known, and continues only
 * when it returns 0; from then on q->user is the user of the request.  Flow control follows, by
 * user_class(q->user).  All decisions fail closed: a request that cannot be decided on is
 * refused. */
#pragma once

#include "apiserver/access/security.h"
#include "apiserver/request/request.h"

/* Fills q->attributes and q->user.  Negative: the request is refused, and the outcome is filled. */
int filter_request(struct request *q, struct outcome *outcome);
/* Whether a user who may update or patch an object that does not exist may create it, too; and
 * whether a user may create an access review that is not about the user.  -EACCES: not. */
int filter_may_create(struct request *q, struct outcome *outcome);
/* The request was answered with 'code'; 'body' (JSON; NULL: none or not known) goes to the audit
 * log if the audit policy requires it.  Call it once, before 'q' is freed. */
void filter_done(struct request *q, int code, const char *body, size_t size);
/* The response of the request has become a stream. */
void filter_streaming(struct request *q);

/* Fills in a 403 for a user who may not request a project: with the configured text alone, because
 * clients print it as it is. */
void outcome_no_project(struct outcome *outcome, const struct request *q);
/* Fills in a 403 for 'u' (the requesting user, or the impersonator), in Kubernetes' words. */
void outcome_forbidden(struct outcome *outcome, const struct user_info *u,
                       const struct attributes *a, const char *why);
