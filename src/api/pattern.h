/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of users: the "pattern" of a schema.
 *
 * PCRE2 accepts the syntax of Kubernetes' clients (RE2, ECMA 262). Expensive constructs are
 * refused or limited: no back-references, recursion or code, and a match with too many steps is
 * aborted. Pure; a pattern is constant once made. */
#pragma once

#include "base/err.h"

struct pattern;
/* -EINVAL names the error and its position. */
int pattern_new(const char *text, struct pattern **ret, struct err *e);
struct pattern *pattern_free(struct pattern *p);
DEFINE_CLEANUP(struct pattern *, pattern_free)
/* Whether 's' (UTF-8) has a match anywhere: 1, 0, or -ETIMEDOUT when the match was aborted. */
int pattern_match(const struct pattern *p, const char *s, size_t size);
