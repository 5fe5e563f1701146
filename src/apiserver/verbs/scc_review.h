/* SPDX-License-Identifier: Apache-2.0 */
/* The reviews of security.openshift.io: which security context constraints would allow a pod to a
 * user, to the asking user, or to service accounts.  Internal to src/apiserver; loop's thread. */
#pragma once

#include "apiserver/request/request.h"

/* The owned status of a review of the request's kind; 'spec' is valid. */
struct json *scc_review_status(struct request *q, const struct json *spec);
