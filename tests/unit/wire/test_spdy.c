/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/spdy.h"

#include <setjmp.h>
#include <zlib.h>

#include <cmocka.h>

/* Reads the whole of 'b' in pieces of 'step' bytes; what each frame says is appended to 'seen'. */
static int read_all(struct spdy_reader *r, const struct strbuf *b, size_t step, struct strbuf *seen,
                    struct err *e)
{
    for (size_t at = 0; at < b->size;) {
        size_t used, n = MIN(step, b->size - at);
        struct spdy_frame f;
        int got = spdy_read(r, b->data + at, n, &used, &f, e);
        if (got < 0) {
            return got;
        }
        at += used;
        if (got == 0) {
            assert_int_equal(used, n);
            continue;
        }
        if (f.type == SPDY_DATA) {
            strbuf_add(seen, f.data, f.size);
        } else {
            strbuf_addf(seen, "[%d:%u:%u:%u]", (int) f.type, f.stream, f.code, f.id);
        }
        const char *type = spdy_header(&f, "streamtype");
        strbuf_addf(seen, "%s%s", type ? type : "", f.fin ? "." : "");
    }
    return 0;
}

static void frames_are_the_same_however_they_are_cut(void **state)
{
    static const char *const one[] = {"streamtype", "error", "port", "80"};
    static const char *const two[] = {"streamtype", "data", "requestid", "7"};
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, want = STRBUF_INIT;
    CLEANUP(spdy_writer_free) struct spdy_writer *w = spdy_writer_new();
    spdy_write_open(w, 1, false, one, 2, &b);
    spdy_write_open(w, 3, true, two, 2, &b);
    spdy_write_reply(w, 1, &b);
    spdy_write_data(1, false, 5, &b);
    strbuf_adds(&b, "hello");
    spdy_write_data(1, true, 0, &b);
    spdy_write_ping(9, &b);
    spdy_write_reset(3, SPDY_CANCEL, &b);
    spdy_write_goaway(3, 0, &b);
    strbuf_adds(&want, "[1:1:0:0]error[1:3:0:0]data.[2:1:0:0]hello.[6:0:0:9][3:3:5:0][7:0:0:3]");
    for (size_t step = 1; step <= b.size; step++) {
        CLEANUP(spdy_reader_free) struct spdy_reader *r = spdy_reader_new();
        CLEANUP_STRBUF struct strbuf seen = STRBUF_INIT;
        assert_int_equal(read_all(r, &b, step, &seen, NULL), 0);
        assert_string_equal(seen.data, want.data);
    }
}

/* The identifier in a zlib stream is the checksum of the dictionary, which SPDY/3 gives. */
static void dictionary_is_that_of_spdy_3(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP(spdy_writer_free) struct spdy_writer *w = spdy_writer_new();
    spdy_write_reply(w, 1, &b);
    assert_memory_equal(b.data + 8 + 4 + 2, "\xe3\xc6\xa7\xc2", 4);
}

/* A control frame with a header block of 'size' decompressed bytes. */
static void add_block(struct strbuf *b, const void *plain, size_t size)
{
    static char packed[1 << 17];
    CLEANUP(spdy_writer_free) struct spdy_writer *w = spdy_writer_new();
    CLEANUP_STRBUF struct strbuf first = STRBUF_INIT;
    z_stream z = {0};
    char dictionary_id[6];
    spdy_write_reply(w, 1, &first);
    memcpy(dictionary_id, first.data + 12, 6);
    /* Without the dictionary's words, but with its identifier: raw deflate behind zlib's head. */
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -11, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *) plain;
    z.avail_in = (uInt) size;
    z.next_out = (Bytef *) packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK);
    size_t n = z.total_out + sizeof dictionary_id;
    deflateEnd(&z);
    char head[12] = {(char) 0x80,
                     3,
                     0,
                     SPDY_SYN_REPLY,
                     0,
                     (char) ((n + 4) >> 16),
                     (char) ((n + 4) >> 8),
                     (char) (n + 4),
                     0,
                     0,
                     0,
                     1};
    strbuf_add(b, head, sizeof head);
    strbuf_add(b, dictionary_id, sizeof dictionary_id);
    strbuf_add(b, packed, n - sizeof dictionary_id);
}

static int read_block(const void *plain, size_t size, struct err *e)
{
    CLEANUP(spdy_reader_free) struct spdy_reader *r = spdy_reader_new();
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, seen = STRBUF_INIT;
    add_block(&b, plain, size);
    return read_all(r, &b, b.size, &seen, e);
}

static void header_blocks_are_bounded(void **state)
{
    static char bomb[1 << 24]; /* 16 MiB in some 16 KiB. */
    struct err e = {0};
    assert_int_equal(read_block(bomb, sizeof bomb, &e), -EMSGSIZE);
    assert_string_equal(e.text, "headers of more than 32768 bytes");
    assert_int_equal(read_block("\0\0\0\1\0\0\0\1a\0\0\0\1b", 14, &e), 0);
    /* Too many, and lengths beyond the block. */
    assert_int_equal(read_block("\0\0\0\x41", 4, &e), -EMSGSIZE);
    assert_int_equal(read_block("\0\0\0\1\xff\xff\xff\xff"
                                "a",
                                9, &e),
                     -EPROTO);
    assert_int_equal(read_block("\0\0\0\1\0\0\0\1a\0\0\0\2b", 14, &e), -EPROTO);
    assert_int_equal(read_block("\0\0\0\0x", 5, &e), -EPROTO);
    assert_int_equal(read_block("\0\0\0\1\0\0\0\0\0\0\0\0", 12, &e), -EPROTO);
    assert_int_equal(read_block("\0\0", 2, &e), -EPROTO);
}

static void several_values_of_a_header_give_the_first(void **state)
{
    CLEANUP(spdy_reader_free) struct spdy_reader *r = spdy_reader_new();
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct spdy_frame f;
    size_t used;
    add_block(&b, "\0\0\0\2\0\0\0\1a\0\0\0\3b\0c\0\0\0\1d\0\0\0\1e", 26);
    assert_int_equal(spdy_read(r, b.data, b.size, &used, &f, NULL), 1);
    assert_string_equal(spdy_header(&f, "a"), "b");
    assert_string_equal(spdy_header(&f, "d"), "e");
    assert_null(spdy_header(&f, "c"));
}

static void malformed_frames_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        int error;
    } cases[] = {
        {"\x80\x02\0\1\0\0\0\0", 8, -EPROTO},                    /* SPDY/2 */
        {"\x80\x03\0\1\0\xff\xff\xff", 8, -EMSGSIZE},            /* 16 MiB of control */
        {"\x80\x03\0\6\0\0\0\5\0\0\0\0\0", 13, -EPROTO},         /* a PING of 5 bytes */
        {"\x80\x03\0\3\0\0\0\x08\0\0\0\0\0\0\0\0", 16, -EPROTO}, /* a reset of stream 0 */
        {"\0\0\0\0\0\0\0\1x", 9, -EPROTO},                       /* data of stream 0 */
        {"\x80\x03\0\2\0\0\0\6\0\0\0\1zz", 14, -EPROTO},         /* headers that are not zlib */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(spdy_reader_free) struct spdy_reader *r = spdy_reader_new();
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, seen = STRBUF_INIT;
        strbuf_add(&b, cases[i].bytes, cases[i].size);
        assert_int_equal(read_all(r, &b, b.size, &seen, NULL), cases[i].error);
    }
    /* What is unknown is skipped. */
    CLEANUP(spdy_reader_free) struct spdy_reader *r = spdy_reader_new();
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, seen = STRBUF_INIT;
    strbuf_add(&b, "\x80\x03\0\x63\0\0\0\2xx\0\0\0\1\1\0\0\2hi", 20);
    assert_int_equal(read_all(r, &b, 3, &seen, NULL), 0);
    assert_string_equal(seen.data, "hi.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_the_same_however_they_are_cut),
        cmocka_unit_test(dictionary_is_that_of_spdy_3),
        cmocka_unit_test(header_blocks_are_bounded),
        cmocka_unit_test(several_values_of_a_header_give_the_first),
        cmocka_unit_test(malformed_frames_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
