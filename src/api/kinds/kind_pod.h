/* SPDX-License-Identifier: Apache-2.0 */
/* Rules shared by pods and pod templates. Internal to src/api. Pure. */
#pragma once

#include "api/kind.h"

/* Sets the fields of a pod's spec that are absent and whose defaults depend on others. */
void pod_default_spec(struct json *spec);
/* Checks the spec of a pod, which is the member 'field' of its object; 'old' NULL: it is new.
 * Its types fit the schema. */
void pod_validate_spec(const char *field, const struct json *spec, const struct json *old,
                       struct api_causes *c);
