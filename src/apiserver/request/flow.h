/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: limits the number of requests executed at once, and chooses the next one.
 *
 * A request owns its ticket until flow_release; request_free releases it. */
#pragma once

#include "apiserver/access/priority.h"
#include "apiserver/request/request.h"

struct flow_control *flow_new(struct apiserver *a);
/* Refuses all waiting requests with 429 and stops the timers.  flow_free follows when
 * no request has a ticket any more. */
void flow_drop_all(struct flow_control *f);
struct flow_control *flow_free(struct flow_control *f);
/* Call it when the user is known: request_run is called now or later, or
 * the request is answered with 429. */
void flow_admit(struct request *q);
/* The seats that the request needs, computed from its attributes and query: a list or a new watch
 * costs one more for each 100 objects that it reads. */
unsigned flow_cost(const struct request *q);
/* Returns the seats of the request; calling it again has no effect. */
void flow_release(struct request *q);
/* Call it before a response of 'size' bytes is sent: a large response keeps the seats of its
 * request until it has been sent, although the request itself ends earlier. */
void flow_answer(struct request *q, size_t size);
/* The state of one level, and the number of requests that were exempt from waiting. */
struct priority_stats flow_stats(const struct flow_control *f, enum priority_level level);
uint64_t flow_exempt(const struct flow_control *f);
