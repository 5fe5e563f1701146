/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that sends responses: an outcome becomes the response in
 * the form that the client accepts. */
#pragma once

#include "apiserver/request/request.h"

/* The Kubernetes version whose API conventions this server follows; clients compare it with their
 * own version. */
#define KUBERNETES_MAJOR "1"
#define KUBERNETES_MINOR "32"

/* Sets the headers that all responses have: those of requests, and those that the HTTP server
 * makes by itself. 'cacheable': the response has a Cache-Control of its own. */
void respond_headers(struct http_exchange *x, const char *audit_id, bool cacheable);
/* A new object with one member, a new list with one element; 'v' is taken over. */
struct json *object_of(const char *key, struct json *v);
struct json *list_of(struct json *v);
/* The Status that represents the outcome; owned. */
struct json *status_object(const struct request *q, const struct outcome *o);
/* Turns the outcome into the response, and ends the request; has no
 * effect on an outcome that was taken over. */
void request_answer(struct request *q, struct outcome *o);
/* Responds with an error at once, for failures before a handler is called. */
void respond_error(struct request *q, int code, const char *reason, const char *text);
/* Adds a Warning to the response, whatever its outcome; 'agent' is "-" when the warning is about
 * the request.  A text that the response has already is not added again.  As in Kubernetes, the
 * texts are cut to 256 bytes each when they have more than 4096 together, and none is added beyond
 * that, nor beyond 64 warnings. */
void request_warn(struct request *q, const char *agent, const char *text);
/* Converts 'text', in the cached version of the request's kind, to the requested version; owned. */
struct blob *request_text(const struct request *q, struct blob *text);
/* Appends 'text', which request_text made, as an element of a list: of a compiled-in kind without
 * kind and apiVersion, which the list says, as in Kubernetes. */
void request_write_item(const struct request *q, const struct blob *text, struct strbuf *out);
/* Appends the PartialObjectMetadata of 'text', which request_text made, without parsing it. */
void request_write_partial(const struct request *q, const struct blob *text, struct strbuf *out);
/* Begins a response of the media type 'type' as a stream (http_stream_begin). */
void respond_stream(struct request *q, int status, const char *type, loop_fn *closed, void *ctx);
/* Answers without a body, and ends the request. */
void respond_bodyless(struct request *q, int status, const char *type);
/* Frees a request whose response was a stream that has ended. */
void respond_streamed(struct request *q);
