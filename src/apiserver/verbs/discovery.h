/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that are no resources: discovery, version, and the ways to health, metrics and OpenAPI. */
#pragma once

#include "apiserver/request/request.h"

/* Returns false if there is no such path. */
bool handle_path(struct request *q, struct outcome *outcome);
