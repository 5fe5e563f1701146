/* SPDX-License-Identifier: Apache-2.0 */
/* JSONPath templates in kubectl's syntax: for -o jsonpath=, and the columns of custom resources.
 * Pure.
 *
 *     {.items[*].metadata.name}
 *     {range .items[*]}{.metadata.name}{"\t"}{.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}
 *
 * Fields (.a, .a\.b for "a.b", ['a']), elements ([0], [-1], [1:3], [*], .*), descendants (..a),
 * filters ([?(@.a)], and ==, !=, <, <=, >, >= against a number, a string, true, false or another
 * path), literals, and range ... end. Several results are separated by a blank; a missing value
 * gives no text. */
#pragma once

#include "wire/json.h"

#include <sys/types.h>

/* Appends the result of 'template' for 'v' to 'out'. -EINVAL names the error of the template. */
int jsonpath_print(const char *template, const struct json *v, struct strbuf *out, struct err *e);
/* The same with another separator than a blank between several results. */
int jsonpath_join(const char *template, const struct json *v, const char *between,
                  struct strbuf *out, struct err *e);
/* The values at a path without braces (".spec.replicas") in 'v': up to 'max', owned by 'v', in
 * '*ret'. Returns their number. -EINVAL: malformed path. */
ssize_t jsonpath_find(const char *path, const struct json *v, const struct json **ret, size_t max,
                      struct err *e);
