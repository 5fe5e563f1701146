/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of whole numbers as texts: "1,3-5,7", as Jobs have them in their status.  Pure. */
#pragma once

#include "base/str.h"

/* The largest number of completions of an Indexed Job for which sets are kept. */
#define INDEXES_MAX 1000000

/* Numbers from 0 below 'n', one byte each. */
struct indexes {
    uint8_t *has;
    size_t n;
};

/* A set of numbers below 'n' with those of 'text' (NULL: none); what is no number is ignored. */
void indexes_parse(const char *text, size_t n, struct indexes *ret);
void indexes_done(struct indexes *s);
size_t indexes_count(const struct indexes *s);
void indexes_write(const struct indexes *s, struct strbuf *out);
