/* SPDX-License-Identifier: Apache-2.0 */
/* Processing of a Template (template.openshift.io/v1): the values of its parameters are put into
 * its message, its labels and its objects.
 *
 * The API server (processedtemplates), the controller of TemplateInstances and "tenet process" use
 * this one function.  ${NAME} is replaced anywhere in a text, also in the names of members.
 * "${{NAME}}" as a whole text becomes the value as JSON: a number, a boolean, an object.  An
 * unknown name stays as it is, and values are not searched for parameters again.  It follows
 * OpenShift's library-go (templateprocessing), and adds limits: a template of a user cannot make
 * the process take memory without bound.
 *
 * Pure; trees belong to the caller, random bytes come from the caller. */
#pragma once

#include "api/kind.h"
#include "workload/template_generate.h"

#define TEMPLATE_GROUP "template.openshift.io"
#define TEMPLATE_VERSION TEMPLATE_GROUP "/v1"
/* Bytes that substituted texts of one template may have together; a value inserted as JSON counts
 * eight times, because a tree is larger than its text. */
#define TEMPLATE_MAX_EXPANSION (4u << 20)

/* Gives the parameter a value, which takes precedence over its own value and its generator.
 * False: the template has no such parameter. */
bool template_set_parameter(struct json *template, const char *name, const char *value);

/* The group of a kind of OpenShift, which older objects name as "v1" without a group; NULL: it is
 * none. */
const char *template_legacy_group(const char *kind);

/* Processes a template of valid types (its schema): '*ret' is a copy with values, substituted texts
 * and complete objects, owned by the caller.  -EINVAL: 'causes' says which fields are wrong, and
 * '*ret' is unchanged. */
int template_process(const struct json *template, template_random_fn *random, struct json **ret,
                     struct api_causes *causes);
