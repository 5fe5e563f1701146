/* SPDX-License-Identifier: Apache-2.0 */
/* Label selectors in objects (metav1.LabelSelector: matchLabels and matchExpressions): their
 * checks, what they select, and their text.
 *
 * Selectors in the parameters of requests are texts: api/selector.h. Trees belong to the caller;
 * an absent selector is NULL. Pure. */
#pragma once

#include "api/kind.h"

/* Adds a cause for each wrong key, operator and value, in the words of Kubernetes. */
void label_selector_check(struct api_causes *c, const char *field, const struct json *v);
/* Whether there is no requirement in it. */
bool label_selector_is_empty(const struct json *v);
/* Whether all requirements hold for 'labels' (an object of texts; NULL: no labels).  A requirement
 * that is malformed never holds. */
bool label_selector_matches(const struct json *v, const struct json *labels);
/* Writes the selector into the empty buffer as kubectl does: "a=b,c in (d,e),!f".  A
 * plain object of texts, such as the selector of a Service, is a selector by equality. */
void label_selector_write(const struct json *v, struct strbuf *out);
