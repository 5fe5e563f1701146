/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the store takes writes: what /readyz and /healthz say of it.
 *
 * That the store has not failed yet says nothing: an etcd that hangs and a disk that is full are
 * found out by a write only.  A health request therefore waits for a write that changes nothing,
 * but for no longer than a second; all that come meanwhile share it, and one that succeeded less
 * than a second ago is good enough.  A write that is not answered in time fails the check until it
 * is answered.  On the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

struct probe;
/* Fills the outcome of a health request. */
typedef void probe_fn(struct request *q, const char *path, struct outcome *outcome);

struct probe *probe_new(struct apiserver *a);
/* After the store was closed; requests that wait are dropped. */
struct probe *probe_free(struct probe *p);

/* Calls 'fn' when it is known whether the store takes writes; maybe at once, with a copy of
 * 'path'. */
void probe_then(struct probe *p, struct request *q, const char *path, probe_fn *fn,
                struct outcome *outcome);
/* Why the store takes no writes, as far as is known; NULL: it does.  Valid until the loop goes
 * on. */
const char *probe_error(struct probe *p);
