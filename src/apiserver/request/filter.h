/* SPDX-License-Identifier: Apache-2.0 */
/* The way in: authenticate -> audit -> impersonate -> authorize, before anything is done.
 *
 * apiserver_handle calls filter_request with nothing but the HTTP request known, and goes on only
 * when it returns 0; from then on q->user is the user of the request.  Limits and queues by user
 * come after it, by user_class(q->user).  All decisions fail closed: what cannot be decided is
 * refused. */
#pragma once

#include "apiserver/access/security.h"
#include "apiserver/request/request.h"

/* Fills q->attributes and q->user.  Negative: the request goes no further. */
int filter_request(struct request *q, struct outcome *outcome);
/* Whether a user who may update or patch an object that does not exist may create it, too.
 * -EACCES: not. */
int filter_may_create(struct request *q, struct outcome *outcome);
/* The request was answered with 'code'; 'body' (JSON; NULL: none or not known) goes to the audit
 * log if its policy wants it.  Called once, before 'q' is freed. */
void filter_done(struct request *q, int code, const char *body, size_t size);
/* A stream begins. */
void filter_streaming(struct request *q);

/* 403 for 'u' (the asking user or the one in front of an impersonation), in Kubernetes' words. */
void outcome_forbidden(struct outcome *outcome, const struct user_info *u,
                       const struct attributes *a, const char *why);
