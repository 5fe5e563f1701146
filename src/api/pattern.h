/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of users: the "pattern" of a schema.
 *
 * PCRE2's language takes what Kubernetes' clients write (RE2, ECMA 262).  What could run away is left out or
 * bounded: no back-references, recursion or code, and a match that takes too many steps is given up.
 * Pure; a pattern is constant once made. */
#pragma once

#include "base/err.h"

struct pattern;
/* -EINVAL says what is wrong with it and where. */
int pattern_new(const char *text, struct pattern **ret, struct err *e);
struct pattern *pattern_free(struct pattern *p);
DEFINE_CLEANUP(struct pattern *, pattern_free)
/* Whether 's' (UTF-8) has a match anywhere: 1, 0, or -ETIMEDOUT when the match was given up. */
int pattern_match(const struct pattern *p, const char *s, size_t size);
