/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery: the kinds that a server has, including those that are not compiled in.
 *
 * It is read in its aggregated form (apidiscovery.k8s.io/v2), two requests for all groups.  A kind
 * is listed in each served version, the preferred one first.  The kinds belong to the discovery;
 * they have names, scope and categories, but no schema or functions. */
#pragma once

#include "api/registry.h"
#include "client/client.h"

enum discovery_verb {
    DISCOVERY_GET = 1,
    DISCOVERY_LIST = 2,
    DISCOVERY_WATCH = 4,
    DISCOVERY_CREATE = 8,
    DISCOVERY_UPDATE = 16,
    DISCOVERY_PATCH = 32,
    DISCOVERY_DELETE = 64,
    DISCOVERY_DELETE_COLLECTION = 128,
};

struct discovery;
struct discovery *discovery_new(void);
struct discovery *discovery_free(struct discovery *d);
DEFINE_CLEANUP(struct discovery *, discovery_free)

/* Pure: adds the kinds of an APIGroupDiscoveryList; -EPROTO: it is not one. */
int discovery_add(struct discovery *d, const struct json *list, struct err *e);
/* In the order of the server; valid as long as 'd' is not added to. */
const struct api_registry *discovery_registry(const struct discovery *d);
/* The verbs that a kind of the registry supports: a set of discovery_verb. */
unsigned discovery_verbs(const struct api_kind *k);
/* 'k' is the first, preferred version of its kind. */
bool discovery_is_preferred(const struct discovery *d, const struct api_kind *k);

/* The result of discovery_fetch; the callee owns 'd', which is NULL when
 * 'error' is a negative errno. */
typedef void discovery_done_fn(void *ctx, int error, const char *text, struct discovery *d);
struct discovery_call;
struct discovery_call *discovery_fetch(struct api_client *c, discovery_done_fn *done, void *ctx);
void discovery_cancel(struct discovery_call *call); /* NULL is fine. */
/* Like discovery_fetch, but waits; for command-line programs. */
int discovery_fetch_sync(struct api_client *c, struct discovery **ret, struct err *e);
