/* SPDX-License-Identifier: Apache-2.0 */
/* The openAPIV3Schema of a custom resource: checks that it is a structural schema, and compiles
 * it to an api_schema. Internal to src/api. */
#pragma once

#include "api/schema.h"

/* Adds a cause for each keyword that a structural schema must not have, or that this server does
 * not evaluate. 'field' is the path of 'schema'. */
void crd_schema_check(const struct json *schema, const char *field, struct api_causes *c);

/* Owner of the nodes of schemas. */
struct crd_nodes;
struct crd_nodes *crd_nodes_new(void);
struct crd_nodes *crd_nodes_free(struct crd_nodes *n);
/* The root of a kind whose objects are described by 'schema' (which must pass crd_schema_check,
 * and outlive the nodes); and a value below it. Owned by 'n'. */
const struct api_schema *crd_schema_make(struct crd_nodes *n, const struct json *schema);
const struct api_schema *crd_schema_make_value(struct crd_nodes *n, const struct json *schema);
