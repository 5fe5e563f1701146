/* SPDX-License-Identifier: Apache-2.0 */
#include "base/said.h"

#include "base/mem.h"
#include "base/str.h"

bool said_is_news(struct said *s, const char *text)
{
    if (streq_null(s->text, text)) {
        return false;
    }
    free(s->text);
    s->text = text ? xstrdup(text) : NULL;
    return text != NULL;
}

void said_done(struct said *s)
{
    free(TAKE(s->text));
}
