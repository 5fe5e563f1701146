/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gzip.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

#define WINDOW_BITS 15
#define GZIP_FORMAT 16 /* Added to the window's bits: a gzip header instead of zlib's. */
#define MEMORY_LEVEL 8

int gzip_compress(const void *p, size_t size, struct strbuf *out)
{
    z_stream z = {0};
    if (size > UINT_MAX || deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS + GZIP_FORMAT,
                                        MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        return -EFBIG;
    }
    uLong bound = deflateBound(&z, (uLong) size);
    char *to = bound > UINT_MAX ? NULL : strbuf_reserve(out, bound);
    int r = -EFBIG;
    if (to) {
        z.next_in = (Bytef *) p;
        z.avail_in = (uInt) size;
        z.next_out = (Bytef *) to;
        z.avail_out = (uInt) bound;
        /* The bound suffices for one step. */
        if (deflate(&z, Z_FINISH) == Z_STREAM_END) {
            out->size += z.total_out;
            out->data[out->size] = '\0';
            r = 0;
        }
    }
    deflateEnd(&z);
    return r;
}
