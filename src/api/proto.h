/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in Kubernetes' protobuf form ("application/vnd.kubernetes.protobuf"), which kubectl sends for
 * some kinds however little the server says of it: "kubectl create namespace" is one.
 *
 * Decoding follows the schemas, whose fields have their numbers (api/kinds), for every kind that has a protobuf
 * form.  A field with a number that the schema does not have is an error, never dropped. */
#pragma once

#include "wire/json.h"

/* '*ret' is the object as JSON, with apiVersion and kind.  -EINVAL: malformed; -EPROTONOSUPPORT: another
 * kind, or a field that is not known. */
int api_proto_decode(const void *data, size_t size, struct json **ret, struct err *e);
