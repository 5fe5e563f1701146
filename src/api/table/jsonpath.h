/* SPDX-License-Identifier: Apache-2.0 */
/* JSONPath templates as kubectl has them: for -o jsonpath=, and the columns of custom resources.  Pure.
 *
 *     {.items[*].metadata.name}
 *     {range .items[*]}{.metadata.name}{"\t"}{.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}
 *
 * Fields (.a, .a\.b for "a.b", ['a']), elements ([0], [-1], [1:3], [*], .*), descendants (..a), filters
 * ([?(@.a)], and ==, !=, <, <=, >, >= against a number, a string, true, false or another path), literals, and
 * range ... end.  Several results are separated by a blank; what is missing gives nothing. */
#pragma once

#include "wire/json.h"

#include <sys/types.h>

/* Appends what 'template' makes of 'v' to 'out'.  -EINVAL says what is wrong with the template. */
int jsonpath_print(const char *template, const struct json *v, struct strbuf *out, struct err *e);
/* As above with another text than a blank between several results. */
int jsonpath_join(const char *template, const struct json *v, const char *between,
                  struct strbuf *out, struct err *e);
/* What a path without braces (".spec.replicas") finds in 'v': up to 'max' values, which belong to 'v', in
 * '*ret'.  Returns how many there are.  -EINVAL: it is no path. */
ssize_t jsonpath_find(const char *path, const struct json *v, const struct json **ret, size_t max,
                      struct err *e);
