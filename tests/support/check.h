/* SPDX-License-Identifier: Apache-2.0 */
/* A condition without which a test cannot go on: prints where it failed and why, and aborts.  For
 * helpers that programs without cmocka use as well. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond, ...)                                               \
    do {                                                               \
        if (!(cond)) {                                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
            fprintf(stderr, __VA_ARGS__);                              \
            fputc('\n', stderr);                                       \
            abort();                                                   \
        }                                                              \
    } while (0)
