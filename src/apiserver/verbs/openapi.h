/* SPDX-License-Identifier: Apache-2.0 */
/* /openapi/v2 and /openapi/v3.  The server owns the hashes of the documents. */
#pragma once

#include "apiserver/request/request.h"

struct openapi *openapi_new(void);
struct openapi *openapi_free(struct openapi *o);
void handle_openapi(struct request *q, const char *path, struct outcome *outcome);
