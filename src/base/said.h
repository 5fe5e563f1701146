/* SPDX-License-Identifier: Apache-2.0 */
/* The last news about a thing, so that a log line or an Event comes once until there is other
 * news.
 *
 * Zeroed is valid: nothing was said.  Not thread-safe. */
#pragma once

#include "base/macro.h"

struct said {
    char *text; /* NULL: nothing. */
};

/* Remembers 'text'; true when it is other than the last one and thus to be said.  NULL: all is
 * well, which makes the same text news again. */
bool said_is_news(struct said *s, const char *text);
/* Forgets the news, and releases it. */
void said_done(struct said *s);
