/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: how many requests are at work at once, and whose turn is next.
 *
 * A request owns its ticket until flow_release; request_free releases it. */
#pragma once

#include "apiserver/access/priority.h"
#include "apiserver/request/request.h"

struct flow_control *flow_new(struct apiserver *a);
/* Answers what still waits; then, when no request is left, frees. */
void flow_drop_all(struct flow_control *f);
struct flow_control *flow_free(struct flow_control *f);
/* The user is known: request_run is called now or later, or the request is answered with 429. */
void flow_admit(struct request *q);
/* Seats that the request needs, by its attributes and query: a list or a new watch costs one more
 * for each 100 objects that it reads. */
unsigned flow_cost(const struct request *q);
/* The request occupies nothing any more; once more is harmless. */
void flow_release(struct request *q);
/* Before an answer of 'size' bytes is given. */
void flow_answer(struct request *q, size_t size);
struct priority_stats flow_stats(const struct flow_control *f, enum priority_level level);
uint64_t flow_exempt(const struct flow_control *f);
