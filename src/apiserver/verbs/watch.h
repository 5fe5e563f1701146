/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: streams of the changes of one kind. */
#pragma once

#include "apiserver/request/request.h"

/* Makes the timer of the watches, and subscribes to the cache. */
void watch_init(struct apiserver *a);
void watch_end_kind(struct cache_kind *ck);
void watch_end_all(struct apiserver *a);
/* Frees the watches whose exchanges are gone with the HTTP server. */
void watch_drop_all(struct apiserver *a);

void handle_watch(struct request *q, struct outcome *outcome);
