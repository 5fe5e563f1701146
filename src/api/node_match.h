/* SPDX-License-Identifier: Apache-2.0 */
/* What pods say about nodes: tolerations of taints, node selectors and node affinity.  Pure.
 *
 * It reads objects as the API has them (core/v1).  A part that is malformed never matches, so that
 * a pod with it gets no node. */
#pragma once

#include "wire/json.h"

/* The number of members of an object; 0 for what is none. */
size_t match_members(const struct json *v);
/* Whether one of the tolerations covers the taint, for the effect that the taint has. */
bool match_tolerates(const struct json *tolerations, const struct json *taint);
/* Whether it is a taint with this effect: "NoSchedule", "PreferNoSchedule" or "NoExecute". */
bool match_has_effect(const struct json *taint, const char *effect);
/* A NodeSelectorTerm for a node with these labels (NULL: none) and this name: all expressions
 * hold.  An empty term matches no node. */
bool match_node_term(const struct json *term, const struct json *labels, const char *name);
/* nodeSelector and the required node affinity of 'spec', which has the members of a PodSpec. */
bool match_node_required(const struct json *spec, const struct json *labels, const char *name);
/* A NodeSelector (of a PodSpec or PersistentVolume): one of its terms matches. */
bool match_node_selector(const struct json *selector, const struct json *labels, const char *name);
