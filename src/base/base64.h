/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 with padding (RFC 4648, section 4), and for addresses and tokens without
 * (section 5).  Pure. */
#pragma once

#include "base/str.h"

void base64_encode(const void *p, size_t size, struct strbuf *out);
/* Appends the decoded bytes of 'text'; -EINVAL when it is not canonical base64, -ENOBUFS: 'out'
 * is too small; 'out' is unchanged then.  Blanks and line ends are skipped. */
int base64_decode(const char *text, size_t size, struct strbuf *out);

void base64url_encode(const void *p, size_t size, struct strbuf *out);
/* Like base64_decode, but nothing is skipped, and padding is refused. */
int base64url_decode(const char *text, size_t size, struct strbuf *out);
