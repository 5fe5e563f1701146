/* SPDX-License-Identifier: Apache-2.0 */
/* Writes under a lease, which the client names in a header. */
#pragma once

#include "apiserver/verbs/write.h"

/* Checks that the lease named by the request, if any, has the named holder. */
int lease_check(struct request *q, struct outcome *outcome);
bool lease_is_held(const struct write *w);
/* The store's key of that lease (owned), and the revision that the store
 * must have; false: the request names none. */
bool lease_guard(const struct write *w, char **ret_key, uint64_t *ret_at);
void outcome_lease_lost(struct outcome *o, const struct request *q);
