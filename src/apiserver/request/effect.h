/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that nothing acts upon yet, so that none of them pretends to have an effect.
 *
 * A kind's description says whether its effect is built (api/kind.h). Each successful write of a
 * kind without one is answered with a Warning; where safety depends on the effect, the write is
 * refused instead. These two functions are the only place that does so. Loop's thread. */
#pragma once

#include "apiserver/request/request.h"

/* Refuses a write of a kind that would be unsafe without its effect: 403, -EACCES. */
int effect_check_write(const struct request *q, struct outcome *outcome);
/* Adds the Warning to the response to a successful write; does nothing for other requests. */
void effect_warn(struct request *q);
