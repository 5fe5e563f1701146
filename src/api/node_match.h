/* SPDX-License-Identifier: Apache-2.0 */
/* What pods say about nodes: tolerations of taints, node selectors and node affinity.  Pure.
 *
 * It reads objects as the API has them (core/v1).  A part that is malformed never matches, so that
 * a pod with it gets no node. */
#pragma once

#include "wire/json.h"

/* The annotation of a namespace with the node selector of its pods. */
#define MATCH_PROJECT_NODES "openshift.io/node-selector"

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
/* Reads such a selector, "a=b,c=d", into an object of texts; owned.  -EINVAL: it is no list of
 * label=value. */
int match_parse_node_labels(const char *text, struct json **ret, struct err *e);
/* Whether the labels (NULL: none) have all those of the object 'want' (NULL: none). */
bool match_has_labels(const struct json *want, const struct json *labels);
