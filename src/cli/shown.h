/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a server, before a terminal gets them.  A server, or a user of it who chose an object's
 * name, could otherwise move the cursor, change the title, or write what the user then executes.
 * Pure. */
#pragma once

#include "base/str.h"

/* Appends at most 'max' bytes of 's' ('max' 0: all); line ends and tabs stay, and each other
 * control character (C0, DEL, C1), and each character that changes the direction of text, becomes
 * "?". */
void shown_add(struct strbuf *out, const char *s, size_t max);
/* The same as an owned text. */
char *shown(const char *s);
