/* SPDX-License-Identifier: Apache-2.0 */
/* The openAPIV3Schema of a custom resource: whether it is a structural schema, and made into an api_schema.
 * Internal to src/api. */
#pragma once

#include "api/schema.h"

/* Adds a cause for what a structural schema may not have, and what this server does not evaluate.  'field' is
 * where 'schema' is. */
void crd_schema_check(const struct json *schema, const char *field, struct api_causes *c);

/* Owner of the nodes of schemas. */
struct crd_nodes;
struct crd_nodes *crd_nodes_new(void);
struct crd_nodes *crd_nodes_free(struct crd_nodes *n);
/* The root of a kind whose objects are as 'schema' (which must pass crd_schema_check, and outlive the nodes)
 * says; and of a value below it.  Owned by 'n'. */
const struct api_schema *crd_schema_make(struct crd_nodes *n, const struct json *schema);
const struct api_schema *crd_schema_make_value(struct crd_nodes *n, const struct json *schema);
