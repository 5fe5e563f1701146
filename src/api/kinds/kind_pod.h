/* SPDX-License-Identifier: Apache-2.0 */
/* Rules shared by pods and pod templates. Internal to src/api. Pure. */
#pragma once

#include "api/kind.h"

/* Sets the fields of a pod's spec, or ('is_pod' false) of a template's, that are absent and whose
 * defaults depend on others. */
void pod_default_spec(struct json *spec, bool is_pod);
/* "Guaranteed", "Burstable" or "BestEffort" after the requests and limits of a spec. */
const char *pod_qos_class(const struct json *spec);
/* Checks the metadata's annotations and the spec of a pod ('is_new': which is created), or of a
 * template in 'field'.  Types fit the schema. */
void pod_validate_object(struct api_causes *c, const struct json *pod, bool is_new);
/* Checks the annotations alone, which may change while the spec stays. */
void pod_validate_annotations(struct api_causes *c, const struct json *pod);
void pod_validate_template(struct api_causes *c, const char *field, const struct json *template);

/* pod_update.c.  Whether the specs mean the same, after the defaults that an older server may not
 * have put into 'old'. */
bool pod_spec_is_same(const struct json *spec, const struct json *old);
/* Whether the specs of templates do. */
bool pod_template_is_same(const struct json *template, const struct json *old);
/* Checks the change from 'old' to 'obj': of the pod itself, of its status, of its ephemeral
 * containers. */
void pod_check_update(struct api_causes *c, const struct json *obj, const struct json *old);
void pod_check_status_update(struct api_causes *c, const struct json *obj, const struct json *old);
void pod_check_ephemeral_update(struct api_causes *c, const struct json *obj,
                                const struct json *old);
