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
