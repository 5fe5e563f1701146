/* SPDX-License-Identifier: Apache-2.0 */
/* ProjectRequestLimit: how many projects a user may have by requests, as in OpenShift 3.
 *
 * Projects are counted by the annotation openshift.io/requester of the namespaces in the watch
 * cache.  Two of a user's projects that are being deleted do not count.  A request that is counted
 * also replaces the user's fence, a key in the store, at the revision that this server has seen.
 * So of two requests that count the same projects, through the same server or through two, one
 * fails in the store, and is counted again once the cache has the other one's project: no race
 * gives a user more than the limit.  Fences of users without projects are removed after a start.
 *
 * Internal to src/apiserver; everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

struct project_counts;
/* NULL: the configuration has no limits, and nothing is counted. */
struct project_counts *project_counts_new(struct apiserver *a);
struct project_counts *project_counts_free(struct project_counts *c);

/* The fence that one request replaces; zeroed before use. */
struct project_limit_write {
    struct store_claim fence; /* Key and value are owned. */
    size_t n;                 /* 1: there is a fence. */
};

/* Counts the request of the user for the project 'name', after discarding what 'w' had.  -EACCES:
 * the user has as many as the limit allows, and the outcome is filled. */
int project_limit_settle(struct request *q, struct project_limit_write *w, const char *name,
                         struct outcome *outcome);
void project_limit_drop(struct project_limit_write *w);
