/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that pages of other web sites make by a browser (CORS, the Fetch standard, 3.2).
 *
 * The list corsAllowedOrigins has the origins that may do so.  As in Kubernetes' API server, they
 * may send and read everything that the API serves, with the browser's credentials.  All other
 * origins get answers without these headers, and the browser keeps them from the page.  Loop's
 * thread only. */
#pragma once

#include "base/err.h"
#include "net/http/http.h"

struct cors;

/* Whether 'origin' can be one of the list: a host ("example.com", "127.0.0.1:9000"), which is
 * compared with the origin's host, and its port if it has one; or a regular expression
 * (api/pattern.h) that matches anywhere in an origin.  -EINVAL: why not. */
int cors_check(const char *origin, struct err *e);
/* The origins have passed cors_check; NULL ends, NULL: none, and the result is NULL. */
struct cors *cors_new(const char *const *origins);
struct cors *cors_free(struct cors *c);

/* Adds the headers of the answer to 'x'.  Whether it is answered already, because the request asks
 * for permission only.  'c' NULL: nothing is done. */
bool cors_handle(const struct cors *c, struct http_exchange *x);
