/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in Kubernetes' protobuf form ("application/vnd.kubernetes.protobuf"), which kubectl
 * sends for some kinds even if the server does not announce it, such as for "kubectl create
 * namespace".
 *
 * Decoding follows the schemas, whose fields have their numbers (api/kinds), for every kind that
 * has a protobuf form. A field with a number that is not in the schema is an error, never
 * ignored. */
#pragma once

#include "wire/json.h"

/* '*ret' is the object as JSON, with apiVersion and kind. -EINVAL: malformed; -EPROTONOSUPPORT:
 * another kind, or an unknown field. */
int api_proto_decode(const void *data, size_t size, struct json **ret, struct err *e);
