/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz, /livez and /readyz. */
#pragma once

#include "apiserver/request/request.h"

void health_init(struct apiserver *a);
/* false: no such endpoint or check. */
bool handle_health(struct request *q, const char *path, struct outcome *outcome);
