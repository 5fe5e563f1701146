/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the API server about pods and security context constraints: the pod of an object,
 * in the form of the reviews of security.openshift.io.  Pure; the caller owns all trees. */
#pragma once

#include "wire/json.h"

/* The pod that the object is, or of which it has the template; NULL: there is none. */
const struct json *scc_question_pod(const struct json *obj);
/* Returns the pod's metadata and spec without what only a stored pod has; owned.  'account' (NULL:
 * the pod's) becomes its service account. */
struct json *scc_question_template(const struct json *pod, const char *account);
