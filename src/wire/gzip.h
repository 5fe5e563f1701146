/* SPDX-License-Identifier: Apache-2.0 */
/* Content coding gzip (RFC 1952), for large answers. Pure. */
#pragma once

#include "base/str.h"

/* Appends 'p' compressed, at the speed of level 1.  -EFBIG: it would not fit 'out',
 * which is unchanged then. */
int gzip_compress(const void *p, size_t size, struct strbuf *out);
