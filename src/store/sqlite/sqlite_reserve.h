/* SPDX-License-Identifier: Apache-2.0 */
/* PATH.reserve beside a database: room on the disk that is given up when the disk is full, so
 * that deletions, and writes that do not grow, still go through.  It is made again when there is
 * room for it twice; until then the file is there and empty, so that a restart does not forget
 * that the disk was full.  Blocking. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes the reserve, unless it is there with that size; size 0: there is to be none.  -ENOSPC:
 * the disk has no room for it twice. */
int sqlite_reserve_make(const char *path, uint64_t size, struct err *e);
/* Whether there was one; its room is free now. */
bool sqlite_reserve_release(const char *path);
/* Whether it was given up and not made again. */
bool sqlite_reserve_is_released(const char *path);
