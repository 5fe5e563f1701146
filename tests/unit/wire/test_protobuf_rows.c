/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as rows: what a message of every kind of row is in bytes, and what is refused. */
#include "wire/protobuf_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct part {
    const char *text;
    uint32_t number;
};

struct whole {
    bool flag, ready, has;
    uint16_t small;
    int32_t negative;
    int64_t value;
    const char *text, *maybe;
    const char *bytes;
    size_t n_bytes;
    const char *const *texts;
    size_t n_texts;
    const int64_t *numbers;
    size_t n_numbers;
    const struct part *list;
    size_t n_list;
    struct part always;
    const struct part *ref;
};

#define AT(m) offsetof(struct whole, m)

static const struct pb_row part_rows[] = {
    {1, PB_ROW_TEXT, offsetof(struct part, text), 0, NULL, 0},
    {2, PB_ROW_U32, offsetof(struct part, number), 0, NULL, 0},
};
static const struct pb_shape part = PB_SHAPE(struct part, part_rows);
static const struct pb_row view_rows[] = {
    {1, PB_ROW_I32, AT(negative), 0, NULL, 0},
    {2, PB_ROW_I64S, AT(numbers), AT(n_numbers), NULL, 0},
};
static const struct pb_shape view = PB_SHAPE(struct whole, view_rows);
static const struct pb_row value_rows[] = {{1, PB_ROW_I64, 0, 0, NULL, 0}};
static const struct pb_shape value = PB_SHAPE(int64_t, value_rows);
static const struct pb_row whole_rows[] = {
    {1, PB_ROW_BOOL, AT(flag), 0, NULL, 0},
    {2, PB_ROW_NOT_BOOL, AT(ready), 0, NULL, 0},
    {3, PB_ROW_U16, AT(small), 0, NULL, 0},
    {4, PB_ROW_PART, 0, 0, &view, 0},
    {5, PB_ROW_PART, AT(value), AT(has), &value, PB_ROW_HAS},
    {6, PB_ROW_TEXT, AT(text), 0, NULL, 0},
    {7, PB_ROW_TEXT_OR_NULL, AT(maybe), 0, NULL, 0},
    {8, PB_ROW_BYTES, AT(bytes), AT(n_bytes), NULL, 0},
    {9, PB_ROW_TEXTS, AT(texts), AT(n_texts), NULL, 0},
    {10, PB_ROW_LIST, AT(list), AT(n_list), &part, 0},
    {11, PB_ROW_PART, AT(always), 0, &part, PB_ROW_ALWAYS},
    {12, PB_ROW_REF, AT(ref), 0, &part, 0},
};
static const struct pb_shape whole = PB_SHAPE(struct whole, whole_rows);

static void assert_written(const struct whole *w, const char *bytes, size_t size)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pb_format(&b, &whole, w);
    assert_int_equal(b.size, size);
    assert_memory_equal(b.data, bytes, size);
}
#define ASSERT_WRITTEN(w, literal) assert_written(w, literal, sizeof(literal) - 1)

static void test_defaults_are_left_out(void **state)
{
    ASSERT_WRITTEN(&((struct whole){.ready = true}), "\x5a\x00");
    CLEANUP_PB_STORE struct pb_store s = PB_STORE_INIT(1000);
    struct whole w;
    assert_int_equal(pb_parse(&s, &whole, "", 0, &w), 0);
    assert_true(w.ready);
    assert_false(w.flag || w.has);
    assert_string_equal(w.text, "");
    assert_string_equal(w.always.text, "");
    assert_null(w.maybe);
    assert_null(w.ref);
    assert_int_equal(w.n_list + w.n_texts + w.n_numbers + w.n_bytes, 0);
}

static void test_every_kind(void **state)
{
    static const char bytes[] =
        "\x08\x01\x10\x01\x18\xff\xff\x03"
        "\x22\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x02\x05\x06"
        "\x2a\x00\x32\x01t\x3a\x01m\x42\x02\x00\x01\x4a\x00\x4a\x01x"
        "\x52\x00\x52\x05\x0a\x01y\x10\x07\x5a\x02\x10\x09\x62\x03\x0a\x01z";
    static const int64_t numbers[] = {5, 6};
    static const char *const texts[] = {"", "x"};
    static const struct part list[] = {{"", 0}, {"y", 7}}, ref = {"z", 0};
    struct whole w = {.flag = true,
                      .small = 65535,
                      .negative = -1,
                      .has = true,
                      .text = "t",
                      .maybe = "m",
                      .bytes = "\0\1",
                      .n_bytes = 2,
                      .texts = texts,
                      .n_texts = 2,
                      .numbers = numbers,
                      .n_numbers = 2,
                      .list = list,
                      .n_list = 2,
                      .always = {NULL, 9},
                      .ref = &ref};
    ASSERT_WRITTEN(&w, bytes);
    CLEANUP_PB_STORE struct pb_store s = PB_STORE_INIT(1000);
    struct whole r;
    assert_int_equal(pb_parse(&s, &whole, bytes, sizeof bytes - 1, &r), 0);
    assert_true(r.flag && !r.ready && r.has && r.value == 0);
    assert_int_equal(r.small, 65535);
    assert_int_equal(r.negative, -1);
    assert_int_equal(r.numbers[1], 6);
    assert_string_equal(r.texts[1], "x");
    assert_memory_equal(r.bytes, "\0\1", 2);
    assert_string_equal(r.list[0].text, "");
    assert_string_equal(r.list[1].text, "y");
    assert_string_equal(r.ref->text, "z");
    assert_written(&r, bytes, sizeof bytes - 1);
}

static int parse(const char *p, size_t size, size_t max)
{
    CLEANUP_PB_STORE struct pb_store s = PB_STORE_INIT(max);
    struct whole w;
    return pb_parse(&s, &whole, p, size, &w);
}
#define PARSE(literal) parse(literal, sizeof(literal) - 1, 1000)

static void test_what_is_refused(void **state)
{
    assert_int_equal(PARSE("\x0a\x00"), -EBADMSG);         /* A flag with bytes. */
    assert_int_equal(PARSE("\x30\x01"), -EBADMSG);         /* A text with a number. */
    assert_int_equal(PARSE("\x18\x80\x80\x04"), -EBADMSG); /* More than 16 bits. */
    assert_int_equal(PARSE("\x32\x02t"), -EBADMSG);        /* Cut off. */
    assert_int_equal(PARSE("\x22\x03\x12\x01\x80"), -EBADMSG);
    assert_int_equal(PARSE("\x0b"), -EBADMSG); /* A group. */
    /* Each element of a list takes more memory than its bytes. */
    static char many[2000];
    for (size_t i = 0; i < sizeof many; i += 2) {
        many[i] = '\x52';
    }
    assert_int_equal(parse(many, sizeof many, 1000 * sizeof(struct part)), 0);
    assert_int_equal(parse(many, sizeof many, 999 * sizeof(struct part)), -EMSGSIZE);
    assert_int_equal(parse("\x32\x01t", 3, 1), -EMSGSIZE);
}

static void test_what_is_read_with_tolerance(void **state)
{
    CLEANUP_PB_STORE struct pb_store s = PB_STORE_INIT(1000);
    struct whole w;
    /* Unknown fields of each type; a text with a NUL; numbers that are not packed; the last of two;
     * a part in two pieces. */
    static const char bytes[] = "\xa0\x06\x05\xa1\x06"
                                "12345678"
                                "\xa5\x06"
                                "1234"
                                "\x32\x03"
                                "a\0b"
                                "\x22\x04\x10\x05\x10\x06\x08\x01\x08\x00"
                                "\x5a\x03\x0a\x01k\x5a\x02\x10\x08";
    assert_int_equal(pb_parse(&s, &whole, bytes, sizeof bytes - 1, &w), 0);
    assert_string_equal(w.text, "a");
    assert_int_equal(w.n_numbers, 2);
    assert_int_equal(w.numbers[0] + w.numbers[1], 11);
    assert_false(w.flag);
    assert_string_equal(w.always.text, "k");
    assert_int_equal(w.always.number, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_left_out),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_what_is_read_with_tolerance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
