/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_parses(const char *text, const char *expect_json)
{
    struct err e = {0};
    struct json *docs = NULL;
    if (yaml_parse_all(text, strlen(text), &docs, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    CLEANUP_FREE char *got = json_to_text(docs);
    json_free(docs);
    if (!streq(got, expect_json)) {
        fail_msg("%s: got %s, not %s", text, got, expect_json);
    }
}

/* The expectations were taken from kubectl, but that big and fractional numbers are
 * kept exactly. */
static void plain_scalars_mean_what_kubectl_reads(void **state)
{
    static const char *const table[][2] = {
        {"y", "true"},
        {"Yes", "true"},
        {"ON", "true"},
        {"true", "true"},
        {"n", "false"},
        {"off", "false"},
        {"False", "false"},
        {"tRUE", "\"tRUE\""},
        {"oN", "\"oN\""},
        {"yES", "\"yES\""},
        {"yeS", "\"yeS\""},
        {"~", "null"},
        {"Null", "null"},
        {"nULL", "\"nULL\""},
        {"0644", "420"},
        {"0800", "800"},
        {"08", "8"},
        {"0x1F", "31"},
        {"-0x1f", "-31"},
        {"0b101", "5"},
        {"0b2", "\"0b2\""},
        {"0o17", "15"},
        {"0x", "\"0x\""},
        {"0xg", "\"0xg\""},
        {"1_000", "1000"},
        {"0_7", "7"},
        {"_1", "\"_1\""},
        {"+1", "1"},
        {"-1", "-1"},
        {"-0", "0"},
        {"00", "0"},
        {"+.5", "0.5"},
        {".5", "0.5"},
        {"._5", "\"._5\""},
        {".5_0", "\".5_0\""},
        {"1.", "1"},
        {"1.0", "1"},
        {"1.10", "1.10"},
        {"1.0e2", "1.0e2"},
        {"007.5", "7.5"},
        {"1e3", "1e3"},
        {"1.5e-3", "1.5e-3"},
        {".e5", "\".e5\""},
        {"1e", "\"1e\""},
        {"1e999", "\"1e999\""},
        {"12e45678", "\"12e45678\""},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"18446744073709551615", "18446744073709551615"},
        {"-9223372036854775809", "-9223372036854775809"},
        {"9007199254740993", "9007199254740993"},
        {"2001-01-01", "\"2001-01-01\""},
        {"12:30:45", "\"12:30:45\""},
        {"1.2.3", "\"1.2.3\""},
        {"10.128.0.0/14", "\"10.128.0.0/14\""},
        {"-", "\"-\""},
        {"+", "\"+\""},
        {".inf2", "\".inf2\""},
        {"\"yes\"", "\"yes\""},
        {"'1'", "\"1\""},
        {"\"\"", "\"\""},
        {"\"a\\tb\\x41\\u20ac\"", "\"a\\tbA\xe2\x82\xac\""},
        {"|\n  a\n  b", "\"a\\nb\""},
        {">-\n  a\n  b\n", "\"a b\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *text = xasprintf("k: %s", table[i][0]);
        CLEANUP_FREE char *expect = xasprintf("[{\"k\":%s}]", table[i][1]);
        assert_parses(streq(table[i][0], "-") ? "{k: -}" : text, expect);
    }
}

static void documents_become_trees(void **state)
{
    static const char *const table[][2] = {
        {"", "[]"},
        {"# nothing\n", "[]"},
        {"---\n---\n# nothing\n---\n", "[]"},
        {"---\na: 1\n---\n---\nb: 2\n...\n", "[{\"a\":1},{\"b\":2}]"},
        {"null", "[null]"},
        {"text", "[\"text\"]"},
        {"a:\nb: [1, two, {c: d}]\ne:\n- f\n- - g\n  - h\n",
         "[{\"a\":null,\"b\":[1,\"two\",{\"c\":\"d\"}],\"e\":[\"f\",[\"g\",\"h\"]]}]"},
        {"80: a\nyes: b\n0644: c\nNo: d\n\"80x\": e\n",
         "[{\"80\":\"a\",\"true\":\"b\",\"420\":\"c\",\"false\":\"d\",\"80x\":\"e\"}]"},
        {"\"<<\": 1\n", "[{\"<<\":1}]"},
        {"&anchor a: 1\n", "[{\"a\":1}]"},
        {"? a\n: 1\n", "[{\"a\":1}]"},
        {"%YAML 1.1\n---\na: 1\n", "[{\"a\":1}]"},
        {"\xef\xbb\xbf"
         "a: 1\n",
         "[{\"a\":1}]"},
        {"a: 1\r\nb: 2\r\n", "[{\"a\":1,\"b\":2}]"},
        /* JSON, with what YAML does not have. */
        {" {\"a\":\"\\ud834\\udd1e\\/\",\"n\":1.0}\n", "[{\"a\":\"\xf0\x9d\x84\x9e/\",\"n\":1.0}]"},
        {"{\"a\":1}\n{\"b\":2}", "[{\"a\":1},{\"b\":2}]"},
        {"{a: 1, 'b': [x]}", "[{\"a\":1,\"b\":[\"x\"]}]"},
        {"{\"a\":1}\n---\nb: 2\n", "[{\"a\":1},{\"b\":2}]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_parses(table[i][0], table[i][1]);
    }
}

static void what_is_unsafe_or_ambiguous_is_refused(void **state)
{
    static const char *const table[][2] = {
        {"a: &x [1]\nb: *x\n", "line 2 column 4: aliases"},
        {"a: &x\n  <<: *x\n", "merge keys"},
        {"<<: {a: 1}", "merge keys"},
        {"*x : 1", "aliases"},
        {"a: !!str 5", "line 1 column 4: tags"},
        {"!foo {a: 1}", "tags"},
        {"a: ! x", "tags"},
        {"- !!seq []", "tags"},
        {"a: 1\nb: 2\na: 3\n", "line 3 column 1: duplicate key \"a\""},
        {"1: a\n\"1\": b\n", "duplicate key \"1\""},
        {"true: a\nyes: b\n", "duplicate key \"true\""},
        {"{\"a\":1,\"a\":2}", "duplicate key \"a\""},
        {"~: 1", "null is not a key"},
        {": 1", "line 1"},
        {"[a]: 1", "only scalars"},
        {"{a: 1}: 1", "only scalars"},
        {"? - a\n: 1", "only scalars"},
        {"a: .inf", "infinity"},
        {"a: -.Inf", "infinity"},
        {"a: .nan", "infinity"},
        {"a: \"x\\0y\"", "NUL"},
        {"a: \"\\ud800\"", "line 1"},
        {"a: [1, 2", "line 2 column 1"},
        {"a: b: c", "line 1"},
        {"a: 1\n b: 2", "line 2"},
        {"a:\n\t- b", "line 2"},
        {"a: 'x", "line 1"},
        {"a: \x01", "control characters"},
        {"a: \xff", "UTF-8"},
        {"a: @x", "line 1"},
        {"{\"a\":1} x", "line 1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct json *v = (struct json *) &v;
        struct err e = {0};
        if (yaml_parse_all(table[i][0], strlen(table[i][0]), &v, &e) != -EINVAL) {
            fail_msg("%s", table[i][0]);
        }
        assert_ptr_equal(v, &v);
        if (!strstr(e.text, table[i][1])) {
            fail_msg("%s: \"%s\" lacks \"%s\"", table[i][0], e.text, table[i][1]);
        }
    }
    struct json *v = NULL;
    assert_int_equal(yaml_parse("a\0b", 3, &v, NULL), -EINVAL);
}

static void depth_is_limited(void **state)
{
    for (size_t depth = JSON_MAX_DEPTH; depth <= JSON_MAX_DEPTH + 1; depth++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        for (size_t i = 0; i < depth; i++) {
            strbuf_adds(&b, "- ");
        }
        strbuf_adds(&b, "x\n");
        struct json *v = NULL;
        struct err e = {0};
        assert_int_equal(yaml_parse(b.data, b.size, &v, &e), depth > JSON_MAX_DEPTH ? -EINVAL : 0);
        assert_int_equal(strstr(e.text, "nested too deeply") != NULL, depth > JSON_MAX_DEPTH);
        json_free(v);
    }
}

static void one_document_is_one(void **state)
{
    struct json *v = NULL;
    struct err e = {0};
    assert_int_equal(yaml_parse("# only a comment", 16, &v, &e), 0);
    assert_true(json_is(v, JSON_OBJECT) && json_count(v) == 0);
    v = json_free(v);
    assert_int_equal(yaml_parse("a: [1]", 6, &v, &e), 0);
    assert_int_equal(json_get_int_or(json_at(json_get(v, "a"), 0), 0), 1);
    v = json_free(v);
    assert_int_equal(yaml_parse("a: 1\n---\nb: 2", 13, &v, &e), -EINVAL);
    assert_non_null(strstr(e.text, "2 documents"));
    assert_null(v);
    assert_int_equal(yaml_parse(NULL, 0, &v, &e), 0);
    v = json_free(v);
}

static void written_as_kubectl_does(void **state)
{
    static const char json[] =
        "{\"apiVersion\":\"v1\",\"items\":[{\"a\":\"b\",\"c\":[]},[1,[true]],null],\"num\":1.50,"
        "\"o\":{},"
        "\"s\":{\"bool\":\"yes\",\"colon\":\"a: "
        "b\",\"date\":\"2026-11-21T07:29:34Z\",\"door\":\":10\",\"empty\":\"\","
        "\"lines\":\"a\\nb\\n\",\"mac\":\"0a:58:0a:80:00:02\",\"num\":\"0644\",\"plain\":\"it's\","
        "\"time\":\"12:30\",\"y\":\"x\"}}";
    static const char expect[] = "apiVersion: v1\n"
                                 "items:\n"
                                 "- a: b\n"
                                 "  c: []\n"
                                 "- - 1\n"
                                 "  - - true\n"
                                 "- null\n"
                                 "num: 1.50\n"
                                 "o: {}\n"
                                 "s:\n"
                                 "  bool: \"yes\"\n"
                                 "  colon: 'a: b'\n"
                                 "  date: \"2026-11-21T07:29:34Z\"\n"
                                 "  door: :10\n"
                                 "  empty: \"\"\n"
                                 "  lines: |\n"
                                 "    a\n"
                                 "    b\n"
                                 "  mac: 0a:58:0a:80:00:02\n"
                                 "  num: \"0644\"\n"
                                 "  plain: it's\n"
                                 "  time: \"12:30\"\n"
                                 "  \"y\": x\n";
    CLEANUP(json_free) struct json *v = NULL;
    assert_int_equal(json_parse(json, strlen(json), &v, NULL), 0);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    yaml_write(v, &b);
    assert_false(b.failed);
    assert_string_equal(b.data, expect);

    CLEANUP_STRBUF struct strbuf small = STRBUF_INIT_MAX(20);
    yaml_write(v, &small);
    assert_true(small.failed);
}

#define WORDS "words and words and words and "
#define LONG_LINE WORDS WORDS WORDS WORDS WORDS

static void strings_survive_a_round_trip(void **state)
{
    static const char *const strings[] = {
        "",
        " ",
        "true",
        "y",
        "no",
        "null",
        "~",
        "1",
        "1.5",
        "0x1f",
        "1e3",
        "017",
        "12:30",
        "1:2:3",
        "-",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "'a'",
        "\"a\"",
        "a\nb",
        "a\nb\n",
        "a\n\nb\n\n",
        "\n",
        "\n a",
        " a\nb",
        "a\tb",
        "\ta",
        "a ",
        "a \nb",
        "\xc3\xa9\xe2\x82\xac",
        "\x1b[m",
        "\x7f",
        "%a",
        "@a",
        "`a",
        "&a",
        "*a",
        "!a",
        "|a",
        ">a",
        "?",
        "? a",
        ":",
        ":a",
        "a:",
        "[a]",
        "{a}",
        "a,b",
        "=",
        "<<",
        "...",
        "---",
        "--- a",
        "\r",
        "a\r\nb",
        "-1",
        ".5",
        ".inf",
        "+.INF",
        "._5",
        "0800",
        "1_000",
        "\xe2\x80\xa8",
        "\xc2\x85",
        "\xef\xbb\xbf",
        "\xf0\x9d\x84\x9e",
        "2001-01-01",
        LONG_LINE,
    };
    CLEANUP(json_free) struct json *v = json_object();
    struct json *list = json_ensure_array(v, "list"), *map = json_ensure_object(v, "map");
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        json_append(list, json_string(strings[i]));
        json_set_string(map, strings[i], strings[i]);
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    yaml_write(v, &b);
    assert_false(b.failed);
    CLEANUP(json_free) struct json *back = NULL;
    struct err e = {0};
    if (yaml_parse(b.data, b.size, &back, &e) < 0) {
        fail_msg("%s\n%s", e.text, b.data);
    }
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        assert_string_equal(json_get_string(json_at(json_get(back, "list"), i)), strings[i]);
        assert_string_equal(json_path_string(back, "map", strings[i], NULL), strings[i]);
    }
    assert_true(json_equal(v, back));
}

static void the_line_of_a_path_is_found(void **state)
{
    static const char text[] =
        "# comment\na:\n  b:\n  - x: 1\n  - x: 2\n    y: {z: 3,\n      w: 4}\n"
        "ab: 5\nc: [6,\n  7]\n";
    static const struct {
        const char *path;
        size_t line;
    } cases[] = {{"a", 2},          {"a.b", 3},    {"a.b[0]", 4},    {"a.b[1].x", 5},
                 {"a.b[1].y.w", 7}, {"ab", 8},     {"c[1]", 10},     {"a.b[7].x", 3},
                 {"a.nosuch", 2},   {"nosuch", 0}, {"a.b[1].y.q", 6}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(yaml_find_line(text, strlen(text), cases[i].path), cases[i].line);
    }
    assert_int_equal(yaml_find_line("a: [", 4, "b"), 0);
    assert_int_equal(yaml_find_line("? {a: b}\n: c\nd: e\n", 18, "d"), 0);
    assert_int_equal(yaml_find_line(NULL, 0, "d"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_mean_what_kubectl_reads),
        cmocka_unit_test(documents_become_trees),
        cmocka_unit_test(what_is_unsafe_or_ambiguous_is_refused),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(one_document_is_one),
        cmocka_unit_test(written_as_kubectl_does),
        cmocka_unit_test(strings_survive_a_round_trip),
        cmocka_unit_test(the_line_of_a_path_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
