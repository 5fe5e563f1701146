/* SPDX-License-Identifier: Apache-2.0 */
/* The security context constraints that every cluster has, with OpenShift's names.  Pure. */
#pragma once

#include "wire/json.h"

/* An owned array of SecurityContextConstraints. */
struct json *default_sccs(void);
/* The names of these, NULL at the end. */
extern const char *const default_scc_names[];
