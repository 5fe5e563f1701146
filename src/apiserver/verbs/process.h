/* SPDX-License-Identifier: Apache-2.0 */
/* processedtemplates of template.openshift.io: a Template is processed and answered, nothing is
 * stored.  Internal to src/apiserver; loop's thread. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is for processedtemplates. */
bool process_is_asked(const struct request *q);
/* Replaces '*body', a valid Template, by the processed one.  -EINVAL: the outcome is filled, and
 * '*body' is unchanged. */
int process_body(struct request *q, struct json **body, struct outcome *outcome);
