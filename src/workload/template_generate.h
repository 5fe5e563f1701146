/* SPDX-License-Identifier: Apache-2.0 */
/* Random values from a pattern: the generator "expression" of a template's parameters, in the
 * language of OpenShift.
 *
 * "[a-zA-Z0-9]{8}" is eight letters and digits.  A class has letters, digits and ranges of them
 * ("a-z", both ends included, in the order a-z, A-Z, 0-9), and \w (letters, digits, underscore), \d
 * (digits), \a (letters and digits), \A (punctuation).  Each character of a class is equally
 * likely, however often the class names it.  A hyphen at an end of a class adds nothing.  Text
 * outside of "[...]{n}" is copied.  The original left out the last character of each range, stopped
 * with a panic for a class of one character, and took the time as the seed.
 *
 * Pure: the random bytes come from the caller.  Any thread. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Fills 'p' with 'size' random bytes, at most 256; random_bytes (base/random.h) but in tests. */
typedef void template_random_fn(void *p, size_t size);

#define TEMPLATE_MAX_REPEAT 255            /* The largest n of "[...]{n}". */
#define TEMPLATE_MAX_GENERATED (64u << 10) /* Bytes of a generated value. */

/* Appends a value for the pattern to 'out'.  -EINVAL: the pattern is wrong; -E2BIG: the value is
 * longer than TEMPLATE_MAX_GENERATED; 'out' is unchanged then. */
int template_generate(const char *pattern, template_random_fn *random, struct strbuf *out,
                      struct err *e);
