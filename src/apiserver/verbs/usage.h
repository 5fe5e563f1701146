/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.k8s.io: what nodes and pods use, which `kubectl top` shows.
 *
 * NodeMetrics and PodMetrics are not stored.  The API server asks the kubelets for them
 * (/metrics/resource, by the way of stream/node.h), every 15 s while somebody asks and for five
 * minutes after; the first client waits for two answers, from whose difference the CPU follows.  A
 * node that does not answer for a minute is not in the list.
 *
 * A node may lie about its own pods only: pods and the names of their containers come from the
 * registry, and a node's answer counts for the running pods that are bound to it.
 *
 * Everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

struct usage *usage_new(struct apiserver *a);
/* Answers the clients that wait with 503, and asks nodes no more. */
void usage_end(struct usage *u);
struct usage *usage_free(struct usage *u);

/* Whether the request is for those kinds. */
bool usage_is_asked(const struct request *q);
void handle_usage(struct request *q, struct outcome *outcome);
