/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that answers: an outcome becomes the response in the form that the client
 * accepts. */
#pragma once

#include "apiserver/request/request.h"

/* A new object with one member, a new list with one element; 'v' is taken over. */
struct json *object_of(const char *key, struct json *v);
struct json *list_of(struct json *v);
/* The Status that the outcome stands for; owned. */
struct json *status_object(const struct request *q, const struct outcome *o);
/* Turns the outcome into the response, and ends the request; one that was taken over is left
 * alone. */
void request_answer(struct request *q, struct outcome *o);
/* Answers with an error at once: for what happens before a handler is called. */
void respond_error(struct request *q, int code, const char *reason, const char *text);
/* Adds a Warning to the response, whatever its outcome; 'agent' is "-" when the warning is about
 * the request. */
void request_warn(struct request *q, const char *agent, const char *text);
/* 'text', which is of the request's kind as the cache has it, in the version that is asked for;
 * owned. */
struct blob *request_text(const struct request *q, struct blob *text);
/* The PartialObjectMetadata of 'text', which request_text made: taken out of it without parsing. */
void request_write_partial(const struct request *q, const struct blob *text, struct strbuf *out);
/* A stream that answered a request has ended: what is left of it is freed. */
void respond_streamed(struct request *q);
