/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of texts that a schema can name ("ipv4", "uuid", "date-time", ...), with
 * Kubernetes' checks. Pure. */
#pragma once

#include "base/macro.h"

/* Whether 's' has the format; unknown formats are not checked. */
bool api_format_fits(const char *format, const char *s);
