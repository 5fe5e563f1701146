/* SPDX-License-Identifier: Apache-2.0 */
/* One URL of a provider that is asked over HTTP: requests with bounded answers, without redirects.
 *
 * The name is looked up for each request, on a worker; certificates are read again when their files
 * changed.  Connections are kept while address and certificates stay.  Everything runs on the
 * loop's thread. */
#pragma once

#include "net/http/http.h"

/* Bytes of the largest answer. */
#define REMOTE_MAX_ANSWER (1u << 20)

struct remote_config {
    const char *url;
    bool https_only;
    const char *ca, *cert, *key; /* Files; NULL or "": none. */
};
/* Checks the URL: http or https, no user, no fragment.  -EINVAL. */
int remote_check_url(const char *url, bool https_only, struct err *e);

struct remote;
int remote_new(struct loop *l, const struct remote_config *cfg, struct remote **ret, struct err *e);
struct remote *remote_free(struct remote *r); /* No call may be under way. */

struct remote_call;
/* 'fn' is called once, never from within: as of http_call.  'headers' are complete lines; 'query'
 * (escaped; NULL: none) is added to that of the URL. */
struct remote_call *remote_call(struct remote *r, const char *method, const char *query,
                                const char *headers, const char *content_type, const char *body,
                                http_result_fn *fn, void *ctx);
struct remote_call *remote_call_cancel(struct remote_call *c); /* NULL is fine. */
