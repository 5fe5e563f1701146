/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities (resource.Quantity of k8s.io/apimachinery): amounts such as 100m, 1.5, 64Mi or 1e3.
 *
 * Kubernetes stores each quantity in one form, so that clients can compare texts.  This is the
 * parser and that form.  Pure; shared by all threads. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Appends the canonical form of 's' to 'out': "0.5" is "500m", "1024Mi" is "1Gi".  'milli': amounts
 * below a thousandth are rounded up to it, as in the lists of resources of pods and nodes.  -EINVAL:
 * no quantity, with Kubernetes' words in 'e'; 'out' is unchanged then. */
int api_quantity_format(const char *s, bool milli, struct strbuf *out, struct err *e);

/* The amount of 's' in units of 10^'exponent' (0: whole units such as bytes, -3: thousandths such as
 * milliCPU), rounded away from 0 as resource.Quantity's Value and MilliValue do; amounts beyond
 * int64_t become INT64_MAX or -INT64_MAX.  'exponent' is -9..9.  -EINVAL: no quantity. */
int api_quantity_value(const char *s, int exponent, int64_t *ret, struct err *e);
/* Compares two quantities: negative, 0 or positive.  A text that is no quantity counts as 0, and an
 * amount beyond 2^63 as that. */
int api_quantity_compare(const char *a, const char *b);
/* Whether the amount has no fraction, but for less than a thousandth. */
bool api_quantity_is_whole(const char *s);
