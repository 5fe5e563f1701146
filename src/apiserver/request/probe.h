/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the store takes writes, for /readyz and /healthz.
 *
 * The absence of earlier errors proves nothing: only a write detects an etcd that hangs or a disk
 * that is full.  A health request therefore waits for a write that changes nothing, for at most a
 * second.  Requests that arrive in the meantime share that write, and the success of a write is
 * reused for a second.  A write that is not answered in time fails the check until it is
 * answered.  Everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

struct probe;
/* Fills the outcome of a health request. */
typedef void probe_fn(struct request *q, const char *path, struct outcome *outcome);

struct probe *probe_new(struct apiserver *a);
/* Call it after the store was closed; waiting requests are dropped. */
struct probe *probe_free(struct probe *p);

/* Calls 'fn' when it is known whether the store takes writes, possibly
 * before it returns, with a copy of 'path'. */
void probe_then(struct probe *p, struct request *q, const char *path, probe_fn *fn,
                struct outcome *outcome);
/* The last known reason why the store takes no writes; NULL: it takes them.
 * Valid until control returns to the loop. */
const char *probe_error(struct probe *p);
