/* SPDX-License-Identifier: Apache-2.0 */
/* The short text that names what a template is made into: the label pod-template-hash, the names of
 * ReplicaSets and of ControllerRevisions.  Pure. */
#pragma once

#include "wire/json.h"

#define TEMPLATE_HASH_SIZE 16

/* Writes the hash of a value and of a number that tells collisions apart.  The order of members
 * does not matter.  The letters are those of Kubernetes, which make no words. */
void template_hash(const struct json *value, int64_t collisions, char out[TEMPLATE_HASH_SIZE]);
/* Whether two pod templates are the same but for the label pod-template-hash. */
bool template_equal(const struct json *a, const struct json *b);
#define LABEL_TEMPLATE_HASH "pod-template-hash"
