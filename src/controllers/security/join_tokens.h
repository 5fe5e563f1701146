/* SPDX-License-Identifier: Apache-2.0 */
/* Removes bootstrap tokens when their time is over. */
#pragma once

#include "client/client.h"

struct join_tokens;
struct join_tokens *join_tokens_new(struct loop *l, struct api_client *client);
struct join_tokens *join_tokens_free(struct join_tokens *j);

/* Pure: milliseconds until the token in 'secret' is over, 0 when it is; -1: never. */
int64_t join_tokens_left_ms(const struct json *secret, int64_t now_ms);
