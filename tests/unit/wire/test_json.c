/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json.h"

#include "base/mem.h"
#include "wire/json_pool.h"

#include "rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static struct json *must_parse(const char *text)
{
    struct err e = {0};
    struct json *v = NULL;
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static void assert_text(const struct json *v, const char *expect)
{
    CLEANUP_FREE char *s = json_to_text(v);
    assert_string_equal(s, expect);
}

static void values_come_out_as_they_went_in(void **state)
{
    static const char *const same[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-12.50e+3",
        "1E400",
        "9007199254740993",
        "123456789012345678901234567890",
        "0.10000000000000000000000000001",
        "\"\"",
        "\"text\"",
        "\"\\u0001\\b\\f\\n\\r\\t\\\"\\\\\"",
        "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9d\x84\x9e\"",
        "[]",
        "{}",
        "[[],{},[1,[2]]]",
        "{\"\":1}",
        "{\"b\":1,\"a\":{\"z\":[true,null],\"fifteen bytes k\":1,\"sixteen bytes ke\":2}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
        CLEANUP(json_free) struct json *v = must_parse(same[i]);
        assert_text(v, same[i]);
        CLEANUP(json_free) struct json *c = json_clone(v);
        assert_text(c, same[i]);
        assert_true(json_equal(v, c));
    }
}

static void spaces_and_escapes_are_normalized(void **state)
{
    static const char *const table[][2] = {
        {" \t\r\n1 ", "1"},
        {" { \"a\" : [ 1 , 2 ] , \"b\" : { } } ", "{\"a\":[1,2],\"b\":{}}"},
        {"\"\\u0041\\/\\u00e9\\u20AC\"", "\"A/\xc3\xa9\xe2\x82\xac\""},
        {"\"\\ud834\\udd1e\"", "\"\xf0\x9d\x84\x9e\""},
        {"\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""},
        {"{\"\\u0061\":1}", "{\"a\":1}"},
        {"\"\x7f\"", "\"\x7f\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP(json_free) struct json *v = must_parse(table[i][0]);
        assert_text(v, table[i][1]);
    }
}

static void malformed_texts_are_refused(void **state)
{
    static const char *const table[][2] = {
        {"", "line 1 column 1: unexpected end"},
        {" ", "line 1 column 2: unexpected end"},
        {"nul", "unexpected end"},
        {"nulL", "not a JSON value"},
        {"True", "not a JSON value"},
        {"1 2", "line 1 column 3: text after the value"},
        {"{}}", "text after the value"},
        {"+1", "not a JSON value"},
        {".5", "not a JSON value"},
        {"01", "text after"},
        {"-", "unexpected end"},
        {"-a", "malformed number"},
        {"1.", "unexpected end"},
        {"1.e3", "malformed number"},
        {"1e", "unexpected end"},
        {"1e+", "unexpected end"},
        {"1ex", "malformed number"},
        {"0x10", "text after"},
        {"NaN", "not a JSON value"},
        {"Infinity", "not a JSON value"},
        {"'a'", "not a JSON value"},
        {"\"abc", "unexpected end"},
        {"\"a\nb\"", "control character"},
        {"\"a\x1f\"", "control character"},
        {"\"\\x41\"", "unknown escape"},
        {"\"\\u12g4\"", "bad \\u escape"},
        {"\"\\u0000\"", "NUL in a string"},
        {"\"\\ud800\"", "lone surrogate"},
        {"\"\\udc00\"", "lone surrogate"},
        {"\"\\ud800\\u0041\"", "lone surrogate"},
        {"\"\\ud800\\n\"", "lone surrogate"},
        {"\"\x80\"", "invalid UTF-8"},
        {"\"\xc3\"", "invalid UTF-8"},
        {"\"\xc0\xaf\"", "invalid UTF-8"},
        {"\"\xe0\x80\x80\"", "invalid UTF-8"},
        {"\"\xed\xa0\x80\"", "invalid UTF-8"},
        {"\"\xf0\x80\x80\x80\"", "invalid UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "invalid UTF-8"},
        {"\"\xf8\x88\x80\x80\x80\"", "invalid UTF-8"},
        {"\xef\xbb\xbf{}", "not a JSON value"},
        {"[1,]", "not a JSON value"},
        {"[,1]", "not a JSON value"},
        {"[1 2]", "expected ',' or ']'"},
        {"[1}", "expected ',' or ']'"},
        {"[", "unexpected end"},
        {"[1", "unexpected end"},
        {"{\"a\":1,}", "expected a key"},
        {"{,}", "expected a key"},
        {"{a:1}", "expected a key"},
        {"{1:1}", "expected a key"},
        {"{\"a\"}", "expected ':'"},
        {"{\"a\" 1}", "expected ':'"},
        {"{\"a\":}", "not a JSON value"},
        {"{\"a\":1 \"b\":2}", "expected ',' or '}'"},
        {"{\"a\":1]", "expected ',' or '}'"},
        {"/* no */ 1", "not a JSON value"},
        {"{\"a\":1,\n \"b\":2,\n\"a\":3}", "line 3 column 1: duplicate key \"a\""},
        {"{\"\\u0061\":1,\"a\":3}", "duplicate key \"a\""},
        {"[{\"a long key which is on the heap\":1,\"a long key which is on the heap\":2}]",
         "column 39: duplicate key \"a long key"},
        {"{\"\xc3\xbc\": 1,\n\"\xe2\x82\xac\": x}", "line 2 column 6: not a JSON value"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct json *v = (struct json *) &v;
        struct err e = {0};
        if (json_parse(table[i][0], strlen(table[i][0]), &v, &e) != -EINVAL) {
            fail_msg("%s", table[i][0]);
        }
        assert_ptr_equal(v, &v);
        assert_int_equal(e.code, -EINVAL);
        if (!strstr(e.text, table[i][1])) {
            fail_msg("%s: \"%s\" lacks \"%s\"", table[i][0], e.text, table[i][1]);
        }
        assert_int_equal(json_parse(table[i][0], strlen(table[i][0]), &v, NULL), -EINVAL);
    }
    struct json *v = NULL;
    assert_int_equal(json_parse("\"a\0b\"", 5, &v, NULL), -EINVAL);
    assert_int_equal(json_parse("1\0", 2, &v, NULL), -EINVAL);
    assert_int_equal(json_parse(NULL, 0, &v, NULL), -EINVAL);
}

static void depth_is_limited(void **state)
{
    char text[2 * JSON_MAX_DEPTH + 3];
    for (int extra = 0; extra < 2; extra++) {
        size_t depth = JSON_MAX_DEPTH + extra;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct json *v = NULL;
        struct err e = {0};
        assert_int_equal(json_parse(text, 2 * depth, &v, &e), extra ? -EINVAL : 0);
        if (extra) {
            assert_non_null(strstr(e.text, "nested too deeply"));
        }
        json_free(v);
    }
}

static void deep_trees_need_no_stack(void **state)
{
    enum { DEPTH = 1000000 };
    CLEANUP(json_free) struct json *root = json_array();
    struct json *v = root;
    for (size_t i = 1; i < DEPTH; i++) {
        v = json_append(v, json_array());
    }
    CLEANUP(json_free) struct json *copy = json_clone(root);
    assert_true(json_equal(root, copy));
    json_append(v, json_null());
    assert_false(json_equal(root, copy));
    CLEANUP_FREE char *text = json_to_text(copy);
    assert_int_equal(strlen(text), 2 * DEPTH);
}

/* Parses 'value' and what follows it cut at each byte: before the end of the value it must
 * ask for more, and then give 'expect'. */
static void stream_every_split(const char *value, const char *rest, const char *expect)
{
    CLEANUP_FREE char *text = xasprintf("%s%s", value, rest);
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        CLEANUP_FREE char *part = xmemdup(text, cut);
        struct json *v = NULL;
        size_t used = 12345;
        struct err e = {0};
        int r = json_parse_first(part, cut, &v, &used, &e);
        /* A number ends with the byte after it. */
        bool number = expect[0] == '-' || (expect[0] >= '0' && expect[0] <= '9');
        if (cut < strlen(value) + number) {
            assert_int_equal(r, -EAGAIN);
            assert_null(v);
            assert_int_equal(used, 12345);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(used, strlen(value));
            assert_text(v, expect);
            json_free(v);
        }
    }
}

static void streams_are_cut_into_values(void **state)
{
    stream_every_split("{\"a\":[1,\"x\\u00e9\\ud834\\udd1e\xe2\x82\xac\",-1.5e+7,true]}",
                       " {\"b\":2}",
                       "{\"a\":[1,\"x\xc3\xa9\xf0\x9d\x84\x9e\xe2\x82\xac\",-1.5e+7,true]}");
    stream_every_split(" \n[null,false,{}]", "x", "[null,false,{}]");
    stream_every_split("\"a\"", "\"b\"", "\"a\"");
    stream_every_split("  -12.5e3", ",", "-12.5e3");
    stream_every_split("0", " ", "0");
    stream_every_split("true", "", "true");

    struct json *v = NULL;
    size_t used;
    assert_int_equal(json_parse_first("{\"a\" 1", 6, &v, &used, NULL), -EINVAL);
    assert_int_equal(json_parse_first("trx", 3, &v, &used, NULL), -EINVAL);
    assert_int_equal(json_parse_first("\"\xc3(", 3, &v, &used, NULL), -EINVAL);
    assert_int_equal(json_parse_first("-x", 2, &v, &used, NULL), -EINVAL);
}

static void scan_finds_the_end_at_every_split(void **state)
{
    static const char text[] = " {\"a}\\\"]\":[1,{\"b\":\"\\\\\"}],\"c\":{}}[2]";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct json_scan s = {0};
        size_t end = json_scan_feed(&s, text, cut);
        if (!end) {
            end = json_scan_feed(&s, text + cut, sizeof text - 1 - cut);
            assert_true(end);
            end += cut;
        }
        assert_int_equal(end, sizeof text - 1 - 3);
        assert_int_equal(json_scan_feed(&s, text + end, 3), 3);
    }
}

static void a_member_at_a_path_is_left_out(void **state)
{
    static const char *const without[] = {"object", "metadata", "managedFields", NULL};
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"{\"object\":{\"metadata\":{\"managedFields\":[{\"a}\":[]}],\"name\":\"x\"}}}",
         "{\"object\":{\"metadata\":{\"name\":\"x\"}}}"},
        {"{\"object\":{\"metadata\":{\"name\":\"x\" , \"managedFields\" : {} } ,\"spec\":1}}",
         "{\"object\":{\"metadata\":{\"name\":\"x\"},\"spec\":1}}"},
        {"{\"object\":{\"metadata\":{\"managedFields\":[]}},\"type\":\"ADDED\"}",
         "{\"object\":{\"metadata\":{}},\"type\":\"ADDED\"}"},
        /* The same name elsewhere, as a part of another, and without a container. */
        {"{\"managedFields\":[1],\"object\":{\"managedFields\":[2],\"spec\":{\"managedFields\":[3]}"
         "}}",
         NULL},
        {"{\"object\":{\"metadata\":{\"managedFieldsOf\":[1],\"managed\":[2],\"a\":{"
         "\"managedFields\":[]}}}}",
         NULL},
        {"{\"metadata\":{\"managedFields\":[1]},\"object\":[{\"metadata\":{\"managedFields\":[]}}]"
         "}",
         NULL},
        {"{\"object\":{\"metadata\":{\"managedFields\":null}}}", NULL},
        {"[{\"object\":{\"metadata\":{\"managedFields\":[]}}}]", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *v = NULL;
        struct err e = {0};
        assert_int_equal(json_parse_without(cases[i].text, strlen(cases[i].text), without, &v, &e),
                         0);
        assert_text(v, cases[i].expect ? cases[i].expect : cases[i].text);
    }
    /* Every text that ends too early is refused. */
    const char *text = cases[0].text;
    for (size_t size = 0; size < strlen(text); size++) {
        CLEANUP_FREE char *part = xmemdup(text, size);
        struct json *v = NULL;
        assert_int_equal(json_parse_without(part, size, without, &v, NULL), -EINVAL);
        assert_null(v);
    }
}

static void accessors_take_anything(void **state)
{
    CLEANUP(json_free)
    struct json *o =
        must_parse("{\"s\":\"x\",\"n\":7,\"b\":true,\"o\":{\"p\":{\"q\":\"deep\"}},\"a\":[1]}");
    assert_int_equal(json_type(NULL), JSON_NULL);
    assert_false(json_is(NULL, JSON_NULL));
    assert_null(json_get(NULL, "x"));
    assert_null(json_get(json_get(o, "s"), "x"));
    assert_null(json_get_string(json_get(o, "n")));
    assert_null(json_number_text(json_get(o, "s")));
    assert_int_equal(strlen(json_get_text(o, "s")), 1);
    assert_string_equal(json_get_text(o, "n"), "");
    assert_string_equal(json_get_text(NULL, "x"), "");
    assert_true(json_get_bool(json_get(o, "b"), false));
    assert_true(json_get_bool(json_get(o, "n"), true));
    assert_int_equal(json_count(json_get(o, "s")), 0);
    assert_int_equal(json_count(o), 5);
    assert_null(json_at(o, 5));
    assert_null(json_key_at(o, 5));
    assert_null(json_key_at(json_get(o, "a"), 0));
    assert_string_equal(json_key_at(o, 3), "o");
    assert_string_equal(json_path_string(o, "o", "p", "q", NULL), "deep");
    assert_null(json_path_string(o, "o", "x", "q", NULL));
    assert_null(json_path(o, "s", "p", NULL));
    assert_ptr_equal(json_path(o, NULL), o);
    assert_int_equal(json_string_size(json_get(o, "s")), 1);
    assert_null(json_take(json_get(o, "a"), "x"));
    assert_false(json_remove(NULL, "x"));
    assert_false(json_remove_at(NULL, 0));
    assert_null(json_clone(NULL));
    assert_true(json_equal(NULL, NULL));
    assert_false(json_equal(NULL, o));
}

static void integers_are_exact_or_refused(void **state)
{
    static const struct {
        const char *text;
        int r;
        int64_t value;
    } table[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"-17", 0, -17},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -ERANGE, 0},
        {"-9223372036854775809", -ERANGE, 0},
        {"99999999999999999999999999", -ERANGE, 0},
        {"1.0", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"\"1\"", -EINVAL, 0},
        {"null", -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP(json_free) struct json *v = must_parse(table[i].text);
        int64_t n = -5;
        assert_int_equal(json_get_int(v, &n), table[i].r);
        assert_true(n == (table[i].r ? -5 : table[i].value));
        assert_true(json_get_int_or(v, 77) == (table[i].r ? 77 : table[i].value));
    }
    CLEANUP(json_free) struct json *min = json_int(INT64_MIN);
    assert_text(min, "-9223372036854775808");
    assert_null(json_number_n("1x", 2));
    assert_null(json_number_n("", 0));
    assert_null(json_number_n(".5", 2));
    CLEANUP(json_free) struct json *n = json_number_n("1.50 ", 4);
    assert_text(n, "1.50");
}

static void trees_are_built_and_changed(void **state)
{
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "kind", "Pod");
    struct json *meta = json_ensure_object(o, "metadata");
    assert_ptr_equal(json_ensure_object(o, "metadata"), meta);
    json_set_string(meta, "name", "a");
    json_set_int(meta, "generation", 1);
    json_set_bool(o, "ready", true);
    struct json *list = json_ensure_array(o, "list");
    json_append(list, json_stringf("%s-%d", "x", 5));
    json_append(list, json_string_n("abcdef", 3));
    json_append(list, json_null());
    json_append(list, json_array());
    assert_text(o,
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"generation\":1},\"ready\":true,"
                "\"list\":[\"x-5\",\"abc\",null,[]]}");

    json_set_string(meta, "name", "longer than it was");
    assert_string_equal(json_path_string(o, "metadata", "name", NULL), "longer than it was");
    assert_ptr_equal(json_set(meta, "name", json_get(meta, "name")), json_get(meta, "name"));
    assert_null(json_set(o, "nothing", NULL));
    assert_null(json_set_string(o, "nothing", NULL));
    assert_null(json_append(list, NULL));
    assert_null(json_get(o, "nothing"));

    CLEANUP(json_free) struct json *taken = json_take(o, "metadata");
    assert_ptr_equal(taken, meta);
    assert_null(json_take(o, "metadata"));
    assert_true(json_remove(o, "ready"));
    assert_false(json_remove(o, "ready"));
    assert_true(json_remove_at(list, 1));
    assert_true(json_remove_at(list, 2));
    assert_false(json_remove_at(list, 2));
    assert_true(json_remove_at(o, 0));
    assert_text(o, "{\"list\":[\"x-5\",null]}");

    json_ensure_array(json_ensure_object(o, "list"), "n");
    assert_text(o, "{\"list\":{\"n\":[]}}");
}

static void equality_ignores_the_order_of_members_only(void **state)
{
    CLEANUP(json_free)
    struct json *a = must_parse("{\"x\":1,\"y\":[1,2,{\"p\":null,\"q\":\"s\"}]}");
    static const struct {
        const char *text;
        bool equal;
    } table[] = {
        {"{\"y\":[1,2,{\"q\":\"s\",\"p\":null}],\"x\":1}", true},
        {"{\"y\":[2,1,{\"q\":\"s\",\"p\":null}],\"x\":1}", false},
        {"{\"y\":[1,2,{\"q\":\"s\",\"p\":null}],\"x\":1.0}", false},
        {"{\"y\":[1,2,{\"q\":\"s\",\"p\":false}],\"x\":1}", false},
        {"{\"y\":[1,2,{\"q\":\"t\",\"p\":null}],\"x\":1}", false},
        {"{\"y\":[1,2,{\"q\":\"s\",\"r\":null}],\"x\":1}", false},
        {"{\"y\":[1,2,{\"q\":\"s\"}],\"x\":1}", false},
        {"{\"y\":[1,2],\"x\":1}", false},
        {"{\"y\":{},\"x\":1}", false},
        {"[]", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP(json_free) struct json *b = must_parse(table[i].text);
        assert_int_equal(json_equal(a, b), table[i].equal);
        assert_int_equal(json_equal(b, a), table[i].equal);
    }
    assert_false(json_equal(json_bool(true), json_bool(false)));
}

static void indentation_matches_kubectl(void **state)
{
    CLEANUP(json_free) struct json *v = must_parse("{\"a\":[1,{\"b\":{}},[]],\"c\":\"d\"}");
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    json_write(v, 4, &b);
    assert_string_equal(b.data, "{\n    \"a\": [\n        1,\n        {\n            \"b\": {}\n"
                                "        },\n        []\n    ],\n    \"c\": \"d\"\n}");
    CLEANUP_STRBUF struct strbuf small = STRBUF_INIT_MAX(10);
    json_write(v, 2, &small);
    assert_true(small.failed);
    assert_true(small.size <= 10);
}

static void written_strings_are_always_valid(void **state)
{
    static const struct {
        const char *s;
        size_t size;
        const char *expect;
    } table[] = {
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\xff", 1, "\"\xef\xbf\xbd\""},
        {"a\xe2\x82", 3, "\"a\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\x1b[31m", 5, "\"\\u001b[31m\""},
        {"</script>", 9, "\"</script>\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        json_write_string(table[i].s, table[i].size, &b);
        assert_string_equal(b.data, table[i].expect);
    }
}

/* A byte is judged alike wherever it is among others: the parser looks at eight at a time. */
static void every_byte_is_checked_at_every_place(void **state)
{
    for (size_t size = 1; size <= 20; size++) {
        for (size_t at = 0; at < size; at++) {
            for (int c = 1; c < 256; c++) {
                char text[24] = {0};
                struct json *v = NULL;
                memset(text, '!', size + 2);
                text[0] = text[size + 1] = '"';
                text[1 + at] = (char) c;
                bool good = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
                int r = json_parse(text, size + 2, &v, NULL);
                assert_int_equal(r == 0, good);
                if (good) {
                    assert_memory_equal(json_get_string(v), text + 1, size);
                    assert_int_equal(json_string_size(v), size);
                }
                json_free(v);
            }
        }
    }
}

/* Runs the same random changes on an object and on a plain model of it, through all the sizes at
 * which the object changes how it stores things. */
static void objects_of_any_size_keep_order_and_values(void **state)
{
    enum { KEYS = 300, STEPS = 40000 };
    struct {
        bool present;
        int order, value;
    } model[KEYS] = {0};
    int order = 0, count = 0;
    uint32_t x = 12345;
    CLEANUP(json_free) struct json *o = json_object();
    for (int step = 0; step < STEPS; step++) {
        x = x * 1664525 + 1013904223;
        /* The range of keys, and the odds of removal, change slowly, so that it grows
         * and shrinks. */
        int k = (int) ((x >> 8) % (unsigned) (step / 4000 % 2 ? 12 : KEYS));
        bool removes = (x >> 24) % 10 < (step / 2000 % 2 ? 8u : 3u);
        char key[40];
        snprintf(key, sizeof key, k % 2 ? "k%d" : "a key that is rather long %d", k);
        if (removes) {
            assert_int_equal(json_remove(o, key), model[k].present);
            count -= model[k].present;
            model[k].present = false;
        } else {
            json_set_int(o, key, step);
            if (!model[k].present) {
                model[k].present = true;
                model[k].order = order++;
                count++;
            }
            model[k].value = step;
        }
        assert_int_equal(json_count(o), count);
        if (step % 97) {
            continue;
        }
        int last = -1;
        for (int i = 0; i < count; i++) {
            const char *s = json_key_at(o, i);
            uint64_t n = KEYS;
            assert_int_equal(str_to_u64(strpbrk(s, "0123456789"), KEYS - 1, &n), 0);
            assert_true(model[n].present && model[n].order > last);
            last = model[n].order;
            assert_int_equal(json_get_int_or(json_at(o, i), -1), model[n].value);
            assert_ptr_equal(json_get(o, s), json_at(o, i));
        }
        CLEANUP(json_free) struct json *copy = json_clone(o);
        assert_true(json_equal(o, copy));
        CLEANUP_FREE char *text = json_to_text(o);
        CLEANUP(json_free) struct json *parsed = must_parse(text);
        assert_true(json_equal(o, parsed));
    }
}

static void big_hostile_objects_take_linear_time(void **state)
{
    enum { KEYS = 200000 };
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (int i = 0; i < KEYS; i++) {
        strbuf_addf(&b, "%c\"%d\":0", i ? ',' : '{', i);
    }
    strbuf_adds(&b, "}");
    /* Quadratic handling of any of these would take minutes, and run into the test's time limit. */
    CLEANUP(json_free) struct json *v = must_parse(b.data);
    CLEANUP(json_free) struct json *copy = json_clone(v);
    assert_true(json_equal(v, copy));
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        json_set_int(v, key, 1);
        assert_true(json_remove(copy, key));
    }
    assert_int_equal(json_count(copy), 0);
    b.size--;
    strbuf_adds(&b, ",\"777\":1}");
    struct json *dup = NULL;
    struct err e = {0};
    assert_int_equal(json_parse(b.data, b.size, &dup, &e), -EINVAL);
    assert_non_null(strstr(e.text, "duplicate key \"777\""));
}

static void equal_parts_are_stored_once(void **state)
{
    static const char *const texts[] = {
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":\"x\"}},"
        "\"spec\":{\"list\":[1,{\"deep\":[]}]},\"n\":7}",
        "{\"metadata\":{\"name\":\"b\",\"labels\":{\"app\":\"x\"}},"
        "\"spec\":{\"list\":[1,{\"deep\":[]}]},\"n\":7}",
    };
    struct json_pool *p = json_pool_new();
    struct json *a = must_parse(texts[0]), *b = must_parse(texts[1]);
    json_pool_share(p, a);
    assert_int_equal(json_pool_count(p), 4); /* metadata, labels, spec, list */
    json_pool_share(p, b);
    assert_int_equal(json_pool_count(p), 5); /* and the other metadata */
    assert_ptr_equal(json_get(a, "spec"), json_get(b, "spec"));
    assert_ptr_equal(json_path(a, "metadata", "labels", NULL),
                     json_path(b, "metadata", "labels", NULL));
    json_pool_share(p, b); /* Nothing is left to share. */
    assert_int_equal(json_pool_count(p), 5);
    assert_text(a, texts[0]);
    assert_text(b, texts[1]);
    /* A copy can be changed, and stays. */
    CLEANUP(json_free) struct json *copy = json_clone(a);
    json_set_string(json_path(copy, "metadata", "labels", NULL), "app", "y");
    a = json_free(a);
    assert_int_equal(json_pool_count(p), 4);
    assert_text(b, texts[1]);
    /* The last value frees the parts, also when the pool was closed before. */
    p = json_pool_free(p);
    assert_text(b, texts[1]);
    json_free(b);
    assert_string_equal(json_path_string(copy, "metadata", "labels", "app", NULL), "y");
}

static void parts_go_in_any_order(void **state)
{
    struct json *v[64] = {0};
    struct json_pool *p = json_pool_new();
    rng_start(1);
    for (size_t i = 0; i < 20000; i++) {
        size_t at = below(ARRAY_SIZE(v));
        CLEANUP_FREE char *text =
            xasprintf("[{\"a\":[%d],\"b\":{\"c\":%d}},[[%d],%d],%d]", (int) below(3),
                      (int) below(3), (int) below(3), (int) below(3), (int) below(3));
        v[at] = json_free(v[at]);
        if (chance(70)) {
            v[at] = must_parse(text);
            json_pool_share(p, v[at]);
            assert_text(v[at], text);
        }
    }
    assert_true(json_pool_count(p) <= 3 + 3 + 9 + 3 + 9);
    for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
        json_free(v[i]);
    }
    assert_int_equal(json_pool_count(p), 0);
    json_pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_parts_are_stored_once),
        cmocka_unit_test(parts_go_in_any_order),
        cmocka_unit_test(values_come_out_as_they_went_in),
        cmocka_unit_test(spaces_and_escapes_are_normalized),
        cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(deep_trees_need_no_stack),
        cmocka_unit_test(streams_are_cut_into_values),
        cmocka_unit_test(scan_finds_the_end_at_every_split),
        cmocka_unit_test(a_member_at_a_path_is_left_out),
        cmocka_unit_test(accessors_take_anything),
        cmocka_unit_test(integers_are_exact_or_refused),
        cmocka_unit_test(trees_are_built_and_changed),
        cmocka_unit_test(equality_ignores_the_order_of_members_only),
        cmocka_unit_test(indentation_matches_kubectl),
        cmocka_unit_test(written_strings_are_always_valid),
        cmocka_unit_test(every_byte_is_checked_at_every_place),
        cmocka_unit_test(objects_of_any_size_keep_order_and_values),
        cmocka_unit_test(big_hostile_objects_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
