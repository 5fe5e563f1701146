/* SPDX-License-Identifier: Apache-2.0 */
/* Deletion of one object or of a collection. */
#pragma once

#include "apiserver/verbs/write.h"

void handle_delete(struct request *q, struct outcome *outcome);
/* Deletes the pod that the request evicts, with these DeleteOptions (NULL: none); answers 201. */
void delete_evicted(struct request *q, const struct json *options, struct outcome *outcome);
/* Reads the DeleteOptions of a request that deletes something that is no object of its own, and
 * begins its write: '*ret' gets metadata with the uid and resourceVersion that they demand. */
int delete_read_preconditions(struct request *q, struct json **ret, struct outcome *outcome);
void handle_delete_collection(struct request *q, struct outcome *outcome);

/* The store has finished its part of a deletion. */
void delete_stored(struct write *w, int error, uint64_t revision, struct outcome *outcome);
/* The write of a deletion is over: responds, unless other writes of a collection are under way. */
void delete_end(struct write *w, struct outcome *outcome);
/* Frees the part of the write that belongs to the deletion. */
void delete_drop(struct write *w);
