/* SPDX-License-Identifier: Apache-2.0 */
/* Makes claims and services agree, a few keys at a time. */
#pragma once

#include "apiserver/request/server_priv.h"
#include "sdn/service_ranges.h"

struct alloc_repair;
struct alloc_repair *alloc_repair_new(struct apiserver *a, const struct service_ranges *r);
struct alloc_repair *alloc_repair_free(struct alloc_repair *p);
/* Schedules a walk over all services and claims. */
void alloc_repair_start(struct alloc_repair *p);
