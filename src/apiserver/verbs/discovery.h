/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that are not resources: discovery and version, and dispatch to health, metrics and
 * OpenAPI. */
#pragma once

#include "apiserver/request/request.h"

/* Returns false if there is no such path. */
bool handle_path(struct request *q, struct outcome *outcome);
