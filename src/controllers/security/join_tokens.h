/* SPDX-License-Identifier: Apache-2.0 */
/* Removes bootstrap tokens when their time is over. */
#pragma once

#include "controller/controller.h"

extern const struct controller join_tokens_controller;

/* Pure: milliseconds until the token in 'secret' is over, 0 when it is; -1: never. */
int64_t join_tokens_left_ms(const struct json *secret, int64_t now_ms);
