/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the known word that a mistyped one is probably meant to be, for "did you mean" in errors.
 * Pure. */
#pragma once

#include "base/macro.h"

/* Returns the word of 'words' ('n' words; borrowed) with the fewest letters to insert, delete,
 * replace or swap to get from 's' to it; the first one of several.  NULL if each word needs more
 * than a third of the letters of 's', plus one. */
const char *suggest(const char *s, const char *const *words, size_t n);
