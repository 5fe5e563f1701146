/* SPDX-License-Identifier: Apache-2.0 */
/* A store in memory for a benchmark's own API server, and the objects that it starts with.  One
 * that cannot go on says why and exits. */
#pragma once

#include "net/loop/loop.h"
#include "store/store.h"
#include "wire/json.h"

#define PRELOAD_RBAC "rbac.authorization.k8s.io/"
#define PRELOAD_WAIT_MS 120000

/* Owned by the benchmark. */
struct preload {
    struct loop *loop;
    struct store *store;
    size_t sent, stored;
    bool done; /* All that was put is stored. */
};
void preload_open(struct preload *s);
/* Runs the loop until the flag is set. */
void preload_await(struct preload *s, const char *what, const bool *flag);
/* Puts an object, of which 'text' is the JSON, under the resource ("group/plural"). */
void preload_put(struct preload *s, const char *resource, const char *ns, const char *text);
/* Puts the objects of an array, without a namespace; takes the array. */
void preload_put_all(struct preload *s, const char *resource, struct json *list);
/* Waits until all that was put is stored. */
void preload_settle(struct preload *s);
