/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gzip.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

static void what_is_compressed_comes_out_again(void **state)
{
    static char text[200000], back[sizeof text];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char) ('a' + i * i % 17);
    }
    for (size_t size = 0; size <= sizeof text; size = size ? size * 7 : 1) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        z_stream z = {0};
        strbuf_adds(&out, "head");
        assert_int_equal(gzip_compress(text, size, &out), 0);
        assert_memory_equal(out.data, "head\x1f\x8b", 6);
        z.next_in = (Bytef *) out.data + 4;
        z.avail_in = (uInt) (out.size - 4);
        z.next_out = (Bytef *) back;
        z.avail_out = sizeof back;
        assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
        assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
        assert_int_equal(z.total_out, size);
        assert_memory_equal(back, text, size);
        inflateEnd(&z);
    }
}

static void what_does_not_fit_leaves_the_buffer_alone(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(8);
    strbuf_adds(&out, "abc");
    assert_int_equal(gzip_compress("0123456789", 10, &out), -EFBIG);
    assert_string_equal(out.data, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_compressed_comes_out_again),
        cmocka_unit_test(what_does_not_fit_leaves_the_buffer_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
