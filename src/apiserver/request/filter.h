/* SPDX-License-Identifier: Apache-2.0 */
/* The way in: authenticate -> audit -> impersonate -> authorize, before anything is done.
 *
 * apiserver_handle calls filter_request with nothing but the HTTP request known, and goes on only
 * when it says so; from then on q->user is who asks.  Whatever limits or queues requests by user
 * comes after it, by user_class(q->user).  All decisions fail closed: what cannot be decided is
 * refused. Internal to src/apiserver. */
#pragma once

#include "apiserver/access/security.h"
#include "apiserver/request/request.h"

/* Fills q->attributes and q->user.  Negative: the request goes no further. */
int filter_request(struct request *q, struct outcome *outcome);
/* Whether who was let in to update or patch may create the object, too, which does not exist.
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
