/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of texts that a schema can name ("ipv4", "uuid", "date-time", ...), as Kubernetes checks them.  Pure. */
#pragma once

#include "base/macro.h"

/* Whether 's' is of 'format'; formats that are not known are not checked. */
bool api_format_fits(const char *format, const char *s);
