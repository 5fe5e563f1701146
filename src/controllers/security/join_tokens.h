/* SPDX-License-Identifier: Apache-2.0 */
/* Removes expired bootstrap tokens. */
#pragma once

#include "controller/controller.h"

extern const struct controller join_tokens_controller;

/* Pure: milliseconds until the token in 'secret' expires, 0 when it has; -1: never. */
int64_t join_tokens_left_ms(const struct json *secret, int64_t now_ms);
