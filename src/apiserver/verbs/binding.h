/* SPDX-License-Identifier: Apache-2.0 */
/* Putting pods on nodes: POST of a Binding to pods/NAME/binding, or to bindings.
 *
 * A pod without a node gets spec.nodeName and the condition PodScheduled in one write; one that has
 * a node is refused. A scheduler needs no other right to pods than "create pods/binding". */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is such a POST. */
bool binding_is_asked(const struct request *q);
void handle_binding(struct request *q, struct outcome *outcome);
