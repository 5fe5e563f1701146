/* SPDX-License-Identifier: Apache-2.0 */
/* Long lists, sent piece by piece.  Internal to src/apiserver. */
#pragma once

#include "apiserver/request/request.h"

/* Responds with 'head' (in protobuf: the list's metadata), the items, and the end of a list.  The
 * array is taken over, the objects are borrowed from the cache. */
void list_stream_begin(struct request *q, const struct strbuf *head, struct object **objects,
                       size_t n);
/* Appends 'o' in the form that 'q' requests. */
void list_write_item(struct request *q, const struct object *o, int64_t now_ms, struct strbuf *out);
