/* SPDX-License-Identifier: Apache-2.0 */
/* The access reviews of authorization.openshift.io: who may do what, and what somebody may do.
 *
 * They are answered from the same decisions as requests (authz.h, rbac.h).  The question of most of
 * them is in the body itself, not in a spec, and the answer is another kind.  Internal to
 * src/apiserver; loop's thread. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is for such a review. */
bool openshift_review_is_asked(const struct request *q);
/* Replaces '*body', a valid review, by the answer.  Negative: the outcome is filled, and '*body' is
 * unchanged. */
int openshift_review_body(struct request *q, struct json **body, struct outcome *outcome);
