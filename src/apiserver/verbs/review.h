/* SPDX-License-Identifier: Apache-2.0 */
/* Create-only kinds: reviews, templates to be processed, tokens for service accounts; and the paths
 * with the issuer's keys. */
#pragma once

#include "apiserver/request/request.h"

/* Answers a request for a create-only kind: a review, or serviceaccounts/token. */
void handle_review(struct request *q, struct outcome *outcome);
/* Answers the paths by which other programs verify this server's tokens (OpenID
 * Connect Discovery 1.0); false: another path. */
bool handle_issuer(struct request *q, struct outcome *outcome);
