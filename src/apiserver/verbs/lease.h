/* SPDX-License-Identifier: Apache-2.0 */
/* Writes under a lease, which its holder names in a header. */
#pragma once

#include "apiserver/verbs/write.h"

/* Whether the lease that the request is made under, if any, is held. */
int lease_check(struct request *q, struct outcome *outcome);
bool lease_is_held(const struct write *w);
/* The store's key of that lease (owned), and the revision at which it must be; false: there is
 * none. */
bool lease_guard(const struct write *w, char **ret_key, uint64_t *ret_at);
void outcome_lease_lost(struct outcome *o, const struct request *q);
