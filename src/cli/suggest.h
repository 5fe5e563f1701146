/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...": the known word next to a mistyped one.  Pure. */
#pragma once

#include "base/macro.h"

/* Returns the word of 'words' ('n' words) that differs from 's' in the fewest letters, if these are
 * few; else NULL. */
const char *suggest(const char *s, const char *const *words, size_t n);
