/* SPDX-License-Identifier: Apache-2.0 */
/* PATH.reserve beside a database: disk space that is released when the disk is full, so that
 * deletions, and writes that do not grow, still go through.  It is created again when the disk
 * has twice its size free; until then the file is empty, so that a restart does not forget that
 * the disk was full.  Blocking. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Creates the reserve, unless it exists with that size; size 0: there must be none. -ENOSPC: the
 * disk does not have twice its size free. */
int sqlite_reserve_make(const char *path, uint64_t size, struct err *e);
/* Whether there was one; its disk space is free now. */
bool sqlite_reserve_release(const char *path);
/* Whether it was released and not created again. */
bool sqlite_reserve_is_released(const char *path);
