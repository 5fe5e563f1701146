/* SPDX-License-Identifier: Apache-2.0 */
/* How a unit test is left out: never without a printed reason.
 *
 * To be included after cmocka.h. Both end the test. */
#pragma once

#include <unistd.h>

#define LEAVE_OUT(why)                        \
    do {                                      \
        print_message("left out: %s\n", why); \
        skip();                               \
    } while (0)

#define NEEDS_ROOT()                 \
    do {                             \
        if (geteuid() != 0) {        \
            LEAVE_OUT("needs root"); \
        }                            \
    } while (0)
