/* SPDX-License-Identifier: Apache-2.0 */
/* A service account token of a pod, for a projected volume: requested from the API server, bound to the
 * pod, and renewed after 80 % of its life or 24 hours, less up to 10 seconds (KEP 1205).
 *
 * Failures are tried again with a growing delay; the former token stays meanwhile.  Everything runs on
 * the loop's thread. */
#pragma once

#include "client/client.h"
#include "pod/files.h"

struct token;
/* 'changed' is called when token_text or token_failure has changed, and may free the token.  'pod' is
 * borrowed for the call. */
struct token *token_new(struct loop *l, struct api_client *c, const struct json *pod,
                        const struct pod_token_source *source, loop_fn *changed, void *ctx);
struct token *token_free(struct token *t);
const char *token_text(const struct token *t);    /* NULL: there is none yet. */
const char *token_failure(const struct token *t); /* NULL: the last request succeeded. */
/* Milliseconds from a token's issue to its renewal, for a life of 'seconds' and a random number.
 * Pure. */
uint64_t token_renewal_ms(int64_t seconds, uint32_t random);
