/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in tests: objects written with single quotes, and their comparison. */
#pragma once

#include "base/mem.h"
#include "wire/json.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

/* Owned value of 'text', in which ' stands for ". */
static inline UNUSED struct json *from(const char *text)
{
    CLEANUP_FREE char *s = xstrdup(text);
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(s, strlen(s), &v, &e) < 0) {
        fail_msg("%s: %s", e.text, s);
    }
    return v;
}

static inline UNUSED void assert_json(const struct json *v, const char *want)
{
    CLEANUP(json_free) struct json *w = from(want);
    if (!json_equal(v, w)) {
        CLEANUP_FREE char *got = json_to_text(v);
        fail_msg("got %s, want %s", got, want);
    }
}
