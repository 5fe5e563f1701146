/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI documents of the kinds of a registry, generated from their schemas: for 'kubectl
 * explain', client-side validation and client generators.
 *
 * Version 3 has one document a group version; version 2 (Swagger) is one for all, as JSON or in
 * protobuf (message Document of gnostic's openapi/v2), the only form that older kubectls accept.
 * https://spec.openapis.org/oas/v3.0.3, https://swagger.io/specification/v2/, and the
 * x-kubernetes- extensions as Kubernetes has them. Pure. */
#pragma once

#include "api/registry.h"

/* "api/v1", "apis/GROUP/VERSION": the name of the kind's document. Owned. */
char *api_openapi_key(const struct api_kind *k);
/* The version 3 document of the group version 'key' (api_openapi_key); NULL: no kind is in it.
 * 'version' is the program's, for "info".  Owned. */
struct json *api_openapi_v3(const struct api_registry *r, const char *key, const char *version);
/* The version 2 document of all kinds. Owned. */
struct json *api_openapi_v2(const struct api_registry *r, const char *version);
/* Appends the protobuf form of the result of api_openapi_v2. */
void api_openapi_v2_encode(const struct json *doc, struct strbuf *out);
