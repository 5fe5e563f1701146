/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that are only asked: reviews; tokens for service accounts; the issuer's keys. */
#pragma once

#include "apiserver/request/request.h"

/* Answers a kind that is only asked: reviews; and serviceaccounts/token. */
void handle_review(struct request *q, struct outcome *outcome);
/* The paths by which others verify our tokens (OpenID Connect Discovery 1.0); false: another
 * path. */
bool handle_issuer(struct request *q, struct outcome *outcome);
