/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler writes about a pod's claims before the pod gets its node: Bindings to volumes
 * that exist, and the annotation that selects the node for volumes that have to be made.
 *
 * The pod itself is bound by a later decision, when all its claims have their volumes.  So nothing
 * but the objects says how far it is, and another process continues after a crash.  One thread. */
#pragma once

#include "controller/workqueue.h"
#include "sched/sched.h"

struct claim_steps;
/* Copies the steps that need a write; NULL: none does.  'ns' is the pod's. */
struct claim_steps *claim_steps_new(const char *ns, const char *node,
                                    const struct sched_volume_step *list, size_t n);
struct claim_steps *claim_steps_free(struct claim_steps *s);
/* The name of the volume of step 'i'; NULL: it has none.  "": there is no such step. */
const char *claim_steps_volume(const struct claim_steps *s, size_t i);
/* Sends the first step that is not done.  False: all are done. */
bool claim_steps_send(const struct claim_steps *s, struct work *w, work_answer_fn *fn);
/* The step that was sent is done. */
void claim_steps_count(struct claim_steps *s);
