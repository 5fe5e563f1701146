/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in the protobuf form of responses (api/proto.h).
 *
 * Stored objects are kept as JSON.  The message of an object that a list or a watch needs is made
 * once and kept with the object, so that lists are joined from ready bytes in both forms.  Internal
 * to src/apiserver; loop's thread only. */
#pragma once

#include "apiserver/cache/object.h"
#include "apiserver/request/request.h"

/* Whether the response of the request can be protobuf: of kinds that have that form, and of the
 * metadata of any kind. */
bool encode_can_proto(const struct request *q, enum form form);
/* The message, without an envelope, of 'text', which request_text made; in the form that the client
 * requests: the object, or its metadata. */
void encode_message(const struct request *q, const struct blob *text, struct strbuf *out);
/* The message of 'o'; owned. */
struct blob *encode_cached(const struct request *q, struct object *o);
/* Appends the envelope of an object whose message is 'message', in the form that the client
 * requests. */
void encode_envelope(const struct request *q, const struct strbuf *message, struct strbuf *out);
/* Appends the head of the envelope of a list whose message has 'size' bytes. */
void encode_list_head(const struct request *q, size_t size, struct strbuf *out);
