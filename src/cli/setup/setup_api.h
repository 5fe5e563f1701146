/* SPDX-License-Identifier: Apache-2.0 */
/* What setup asks of the API.  Calls block. */
#pragma once

#include "client/client.h"

/* Whether the API answers the user of the kubeconfig: tries until 'wait_ms' have passed, at least
 * once.  '*e' has the last failure. */
bool setup_api_answers(const char *kubeconfig, uint64_t wait_ms, struct err *e);

/* The line (owned) that joins one node, with a token of this description: one that was made before
 * and is unused with half of its time left, else a new one. */
int setup_join_line(const char *kubeconfig, const char *description, char **ret,
                    int64_t *ret_until_ms, struct err *e);

/* GET of one object as the user of the kubeconfig ('*ret' is owned); errors as in client.h. */
int setup_api_get(const char *kubeconfig, const char *path, struct json **ret, struct err *e);
