/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/ovsdb.h"

#define UUID_A "b5289f5d-c21b-4aab-8281-5e74791d7fef"
#define UUID_B "93e8efd3-e632-4705-93bb-75980d78dca3"

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static struct ovsdb_msg message(const char *text)
{
    struct ovsdb_msg m = {0};
    struct err e = {0};
    if (ovsdb_msg_parse(text, strlen(text), &m, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return m;
}

static void assert_text(const struct strbuf *got, const char *expected)
{
    CLEANUP(json_free) struct json *a = parse(strbuf_cstr(got));
    CLEANUP(json_free) struct json *b = parse(expected);
    if (!json_equal(a, b)) {
        fail_msg("%s is not %s", strbuf_cstr(got), expected);
    }
}

static void assert_json(struct json *got, const char *expected)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    json_write(got, 0, &text);
    json_free(got);
    assert_text(&text, expected);
}

/* ---- framing ---- */

static void frames_are_found_however_the_bytes_arrive(void **state)
{
    const char *messages[] = {"{\"a\":[1,{\"b\":\"}]{\"}]}", " \n{\"q\":\"\\\"\\\\\"}", "{}",
                              "{\"u\":\"\\u007d\"}"};
    struct strbuf all = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        strbuf_adds(&all, messages[i]);
    }
    for (size_t step = 1; step <= all.size; step++) {
        struct ovsdb_framer f = {0};
        size_t start = 0, found = 0;
        for (size_t have = step;; have = MIN(have + step, all.size)) {
            size_t n = 0;
            while (start < have && ovsdb_frame(&f, all.data + start, have - start, &n, NULL) == 0) {
                assert_int_equal(n, strlen(messages[found]));
                assert_memory_equal(all.data + start, messages[found], n);
                start += n;
                found++;
            }
            if (have == all.size) {
                break;
            }
        }
        assert_int_equal(found, ARRAY_SIZE(messages));
        assert_int_equal(start, all.size);
    }
    strbuf_done(&all);
}

static void what_is_no_object_is_refused(void **state)
{
    const char *bad[] = {"[1]", "x{}", "}", "\"a\""};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct ovsdb_framer f = {0};
        size_t n;
        struct err e = {0};
        assert_int_equal(ovsdb_frame(&f, bad[i], strlen(bad[i]), &n, &e), -EBADMSG);
        assert_non_null(strstr(e.text, "JSON-RPC"));
    }
}

static void kinds_of_messages_are_told_apart(void **state)
{
    struct ovsdb_msg m = message("{\"id\":\"echo\",\"method\":\"echo\",\"params\":[]}");
    uint64_t id = 7;
    assert_int_equal(m.kind, OVSDB_REQUEST);
    assert_false(ovsdb_msg_id(&m, &id));
    assert_int_equal(id, 7);
    ovsdb_msg_done(&m);
    m = message("{\"id\":null,\"method\":\"update2\",\"params\":[\"x\",{}]}");
    assert_int_equal(m.kind, OVSDB_NOTIFICATION);
    assert_non_null(ovsdb_update_of(&m, "x"));
    assert_null(ovsdb_update_of(&m, "y"));
    ovsdb_msg_done(&m);
    m = message("{\"id\":12,\"result\":{},\"error\":null}");
    assert_int_equal(m.kind, OVSDB_REPLY);
    assert_true(ovsdb_msg_id(&m, &id));
    assert_int_equal(id, 12);
    assert_null(m.error);
    ovsdb_msg_done(&m);
    const char *bad[] = {"{}",
                         "{\"id\":null,\"result\":{},\"error\":null}",
                         "{\"id\":1,\"result\":1,\"error\":\"x\"}",
                         "{\"id\":1,\"method\":5,\"params\":[]}",
                         "{\"id\":1,\"method\":\"echo\",\"params\":{}}",
                         "{\"id\":1,\"method\":\"echo\"}",
                         "{\"id\":1,\"id\":2,\"result\":{}}",
                         "{\"id\":1,]"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};
        assert_int_equal(ovsdb_msg_parse(bad[i], strlen(bad[i]), &m, &e), -EBADMSG);
        assert_int_equal(e.code, -EBADMSG);
    }
}

/* ---- requests ---- */

static void requests_have_the_form_of_the_rfc(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP(json_free) struct json *ops = json_array();
    struct json *row = json_object();
    json_set_string(row, "name", "p\"1");
    json_set(row, "interfaces", ovsdb_named_uuid("i"));
    json_append(ops, ovsdb_insert("Port", row, "p"));
    json_append(ops, ovsdb_comment("x"));
    ovsdb_put_transact(&out, 5, "Open_vSwitch", ops);
    assert_text(&out,
                "{\"id\":5,\"method\":\"transact\",\"params\":[\"Open_vSwitch\",{\"op\":\"insert\","
                "\"table\":\"Port\",\"uuid-name\":\"p\",\"row\":{\"name\":\"p\\\"1\","
                "\"interfaces\":[\"named-uuid\",\"i\"]}},{\"op\":\"comment\",\"comment\":\"x\"}]}");
    strbuf_reset(&out);
    CLEANUP(json_free) struct json *tables = parse("{\"T\":[{\"columns\":[\"a\"]}]}");
    ovsdb_put_monitor_cond(&out, 6, "D", "m", tables);
    assert_text(&out, "{\"id\":6,\"method\":\"monitor_cond\",\"params\":[\"D\",\"m\","
                      "{\"T\":[{\"columns\":[\"a\"]}]}]}");
    strbuf_reset(&out);
    ovsdb_put_echo(&out, 7);
    assert_text(&out, "{\"id\":7,\"method\":\"echo\",\"params\":[]}");
}

static void echo_is_answered_with_its_own_id_and_params(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct ovsdb_msg m = message("{\"id\":[\"e\",1],\"method\":\"echo\",\"params\":[{\"a\":1e3}]}");
    ovsdb_put_echo_reply(&out, &m);
    assert_text(&out, "{\"id\":[\"e\",1],\"result\":[{\"a\":1e3}],\"error\":null}");
    strbuf_reset(&out);
    ovsdb_put_unknown_method(&out, &m);
    assert_text(&out, "{\"id\":[\"e\",1],\"result\":null,\"error\":\"unknown method\"}");
    ovsdb_msg_done(&m);
}

static void operations_have_the_form_of_the_rfc(void **state)
{
    const char *where = "[[\"_uuid\",\"==\",[\"uuid\",\"" UUID_A "\"]]]";
    CLEANUP_FREE char *update =
        xasprintf("{\"op\":\"update\",\"table\":\"T\",\"where\":%s,\"row\":{\"a\":1}}", where);
    assert_json(ovsdb_update("T", ovsdb_where_uuid(UUID_A), parse("{\"a\":1}")), update);
    CLEANUP_FREE char *mutate =
        xasprintf("{\"op\":\"mutate\",\"table\":\"T\",\"where\":%s,\"mutations\":"
                  "[[\"n\",\"+=\",1],[\"s\",\"insert\",[\"set\",[]]]]}",
                  where);
    struct json *op = ovsdb_mutate("T", ovsdb_where_uuid(UUID_A), "n", "+=", json_int(1));
    assert_json(ovsdb_mutate_add(op, "s", "insert", ovsdb_set()), mutate);
    CLEANUP_FREE char *wait =
        xasprintf("{\"op\":\"wait\",\"table\":\"T\",\"where\":%s,\"columns\":[\"a\",\"b\"],"
                  "\"until\":\"==\",\"rows\":[{\"a\":1,\"b\":2}],\"timeout\":0}",
                  where);
    assert_json(ovsdb_wait_equal("T", ovsdb_where_uuid(UUID_A), parse("{\"a\":1,\"b\":2}")), wait);
    CLEANUP_FREE char *select = xasprintf(
        "{\"op\":\"select\",\"table\":\"T\",\"where\":%s,\"columns\":[\"next_cfg\"]}", where);
    assert_json(ovsdb_select("T", ovsdb_where_uuid(UUID_A), "next_cfg"), select);
    assert_json(ovsdb_map_add(ovsdb_map(), "k", "v"), "[\"map\",[[\"k\",\"v\"]]]");
    assert_json(ovsdb_set_add(ovsdb_set(), ovsdb_uuid(UUID_A)),
                "[\"set\",[[\"uuid\",\"" UUID_A "\"]]]");
}

/* ---- values ---- */

static void an_atom_is_a_set_of_one(void **state)
{
    CLEANUP(json_free) struct json *one = parse("[\"uuid\",\"" UUID_A "\"]");
    CLEANUP(json_free)
    struct json *two = parse("[\"set\",[[\"uuid\",\"" UUID_A "\"],[\"uuid\",\"" UUID_B "\"]]]");
    CLEANUP(json_free) struct json *none = parse("[\"set\",[]]");
    assert_int_equal(ovsdb_set_count(one), 1);
    assert_string_equal(ovsdb_get_uuid(ovsdb_set_at(one, 0)), UUID_A);
    assert_null(ovsdb_set_at(one, 1));
    assert_int_equal(ovsdb_set_count(two), 2);
    assert_string_equal(ovsdb_get_uuid(ovsdb_set_at(two, 1)), UUID_B);
    assert_int_equal(ovsdb_set_count(none), 0);
    assert_int_equal(ovsdb_set_count(NULL), 0);
}

static void only_well_formed_uuids_are_uuids(void **state)
{
    const char *bad[] = {"[\"uuid\",\"b5289f5d-c21b-4aab-8281-5e74791d7fe\"]",
                         "[\"uuid\",\"b5289f5d-c21b-4aab-8281-5e74791d7feff\"]",
                         "[\"uuid\",\"b5289f5d+c21b-4aab-8281-5e74791d7fef\"]",
                         "[\"uuid\",\"\"]",
                         "[\"uuid\",5]",
                         "[\"named-uuid\",\"" UUID_A "\"]",
                         "[\"uuid\"]",
                         "\"" UUID_A "\""};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *v = parse(bad[i]);
        assert_null(ovsdb_get_uuid(v));
    }
}

static void columns_are_read_and_absent_ones_left_alone(void **state)
{
    CLEANUP(json_free)
    struct json *row = parse(
        "{\"s\":\"x\",\"e\":[\"set\",[]],\"i\":-1,\"o\":[\"set\",[5]],\"t\":[\"set\",[1,2]]}");
    char *s = xstrdup("old");
    int64_t i = 77;
    struct err e = {0};
    assert_int_equal(ovsdb_read_string(row, "absent", &s, &e), 0);
    assert_string_equal(s, "old");
    assert_int_equal(ovsdb_read_string(row, "s", &s, &e), 0);
    assert_string_equal(s, "x");
    assert_int_equal(ovsdb_read_string(row, "i", &s, &e), -EBADMSG);
    assert_int_equal(ovsdb_read_string(row, "t", &s, &e), -EBADMSG);
    assert_string_equal(s, "x");
    assert_int_equal(ovsdb_read_string(row, "e", &s, &e), 0);
    assert_null(s);
    assert_int_equal(ovsdb_read_int(row, "absent", 0, &i, &e), 0);
    assert_int_equal(i, 77);
    assert_int_equal(ovsdb_read_int(row, "i", 0, &i, &e), 0);
    assert_int_equal(i, -1);
    assert_int_equal(ovsdb_read_int(row, "o", 0, &i, &e), 0);
    assert_int_equal(i, 5);
    assert_int_equal(ovsdb_read_int(row, "t", 0, &i, &e), -EBADMSG);
    assert_int_equal(ovsdb_read_int(row, "s", 0, &i, &e), -EBADMSG);
    assert_int_equal(ovsdb_read_int(row, "e", 3, &i, &e), 0);
    assert_int_equal(i, 3);
}

static void assert_keys(const struct smap *m, const char *expected)
{
    CLEANUP_STRBUF struct strbuf got = STRBUF_INIT;
    struct smap_entry *x;
    SMAP_FOREACH (x, m) {
        strbuf_addf(&got, "%s ", x->key);
    }
    assert_string_equal(strbuf_cstr(&got), expected);
}

static void differences_of_sets_toggle_members(void **state)
{
    struct smap set;
    smap_init(&set, NULL);
    CLEANUP(json_free) struct json *full = parse("{\"c\":[\"set\",[\"a\",\"b\"]]}");
    CLEANUP(json_free) struct json *diff = parse("{\"c\":[\"set\",[\"b\",\"c\"]]}");
    CLEANUP(json_free) struct json *one = parse("{\"c\":\"a\"}");
    CLEANUP(json_free) struct json *bad = parse("{\"c\":[\"set\",[\"z\",1]]}");
    assert_int_equal(ovsdb_read_set(full, "c", false, &set, NULL), 0);
    assert_keys(&set, "a b ");
    assert_int_equal(ovsdb_read_set(diff, "c", true, &set, NULL), 0);
    assert_keys(&set, "a c ");
    assert_int_equal(ovsdb_read_set(one, "c", true, &set, NULL), 0);
    assert_keys(&set, "c ");
    assert_int_equal(ovsdb_read_set(bad, "c", true, &set, NULL), -EBADMSG);
    assert_keys(&set, "c ");
    assert_int_equal(ovsdb_read_set(full, "c", false, &set, NULL), 0);
    assert_keys(&set, "a b ");
    smap_done(&set);
}

static void differences_of_maps_set_and_remove_pairs(void **state)
{
    struct smap map;
    smap_init(&map, free);
    CLEANUP(json_free) struct json *full = parse("{\"c\":[\"map\",[[\"a\",\"1\"],[\"b\",\"2\"]]]}");
    CLEANUP(json_free)
    struct json *diff = parse("{\"c\":[\"map\",[[\"a\",\"1\"],[\"b\",\"3\"],[\"d\",\"4\"]]]}");
    assert_int_equal(ovsdb_read_map(full, "c", false, &map, NULL), 0);
    assert_int_equal(ovsdb_read_map(diff, "c", true, &map, NULL), 0);
    assert_keys(&map, "b d ");
    assert_string_equal(smap_get(&map, "b"), "3");
    assert_string_equal(smap_get(&map, "d"), "4");
    const char *bad[] = {"{\"c\":\"x\"}", "{\"c\":[\"set\",[]]}", "{\"c\":[\"map\",[[\"a\"]]]}",
                         "{\"c\":[\"map\",[[\"a\",1]]]}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *row = parse(bad[i]);
        assert_int_equal(ovsdb_read_map(row, "c", false, &map, NULL), -EBADMSG);
        assert_keys(&map, "b d ");
    }
    smap_done(&map);
}

/* ---- replies ---- */

static void results_of_transactions_name_the_operation_at_fault(void **state)
{
    static const struct {
        const char *reply;
        int r;
        size_t failed;
        const char *text;
    } cases[] = {
        {"{\"id\":1,\"result\":[{\"count\":1},{}],\"error\":null}", 0, 99, ""},
        {"{\"id\":1,\"result\":[{},{\"error\":\"timed out\"}],\"error\":null}", -EAGAIN, 1,
         "timed out"},
        {"{\"id\":1,\"result\":[{\"error\":\"constraint violation\",\"details\":\"d\"},null],"
         "\"error\":null}",
         -EEXIST, 0, "constraint violation: d"},
        {"{\"id\":1,\"result\":[{},{},{\"error\":\"referential integrity violation\"}],"
         "\"error\":null}",
         -ENOENT, 2, "referential integrity violation"},
        {"{\"id\":1,\"result\":[{},{\"error\":\"strange\"}],\"error\":null}", -EIO, 1, "strange"},
        {"{\"id\":1,\"result\":[{}],\"error\":null}", -EBADMSG, 2, "1 results for 2"},
        {"{\"id\":1,\"result\":{},\"error\":null}", -EBADMSG, 2, "0 results"},
        {"{\"id\":1,\"result\":null,\"error\":\"canceled\"}", -EIO, 2, "canceled"},
        {"{\"id\":1,\"result\":null,\"error\":{\"error\":\"unknown database\",\"details\":\"x\"}}",
         -EIO, 2, "unknown database: x"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct ovsdb_msg m = message(cases[i].reply);
        size_t failed = 99;
        struct err e = {0};
        assert_int_equal(ovsdb_transact_result(&m, 2, &failed, &e), cases[i].r);
        assert_int_equal(e.code, cases[i].r);
        assert_int_equal(failed, cases[i].failed);
        assert_non_null(strstr(e.text, cases[i].text));
        ovsdb_msg_done(&m);
    }
}

static void selected_row_is_found(void **state)
{
    struct ovsdb_msg m =
        message("{\"id\":1,\"result\":[{},{\"rows\":[{\"n\":4}]}],\"error\":null}");
    assert_int_equal(json_get_int_or(json_get(ovsdb_selected_row(&m, 1), "n"), 0), 4);
    assert_null(ovsdb_selected_row(&m, 0));
    assert_null(ovsdb_selected_row(&m, 2));
    ovsdb_msg_done(&m);
}

/* ---- updates ---- */

static int note(void *ctx, const char *table, const char *uuid, enum ovsdb_change change,
                const struct json *row, struct err *e)
{
    strbuf_addf(ctx, "%s %.2s %d %s;", table, uuid, change, row ? "row" : "-");
    return streq(table, "Stop") ? err_set(e, -EPERM, "stop") : 0;
}

static void updates_are_walked_row_by_row(void **state)
{
    CLEANUP_STRBUF struct strbuf seen = STRBUF_INIT;
    CLEANUP(json_free)
    struct json *u =
        parse("{\"A\":{\"" UUID_A "\":{\"initial\":{}},\"" UUID_B "\":{\"modify\":{\"x\":1}}},"
              "\"B\":{\"" UUID_A "\":{\"delete\":null},\"" UUID_B "\":{\"insert\":{}}}}");
    assert_int_equal(ovsdb_walk_updates(u, note, &seen, NULL), 0);
    assert_string_equal(strbuf_cstr(&seen), "A b5 0 row;A 93 1 row;B b5 2 -;B 93 0 row;");
    CLEANUP(json_free)
    struct json *stop =
        parse("{\"Stop\":{\"" UUID_A "\":{\"initial\":{}},\"" UUID_B "\":{\"initial\":{}}}}");
    strbuf_reset(&seen);
    struct err e = {0};
    assert_int_equal(ovsdb_walk_updates(stop, note, &seen, &e), -EPERM);
    assert_string_equal(strbuf_cstr(&seen), "Stop b5 0 row;");
    const char *bad[] = {"[]",
                         "{\"A\":5}",
                         "{\"A\":{\"x\":{\"delete\":null}}}",
                         "{\"A\":{\"" UUID_A "\":{}}}",
                         "{\"A\":{\"" UUID_A "\":5}}",
                         "{\"A\":{\"" UUID_A "\":{\"insert\":5}}}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *v = parse(bad[i]);
        strbuf_reset(&seen);
        assert_int_equal(ovsdb_walk_updates(v, note, &seen, &e), -EBADMSG);
        assert_string_equal(strbuf_cstr(&seen), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_found_however_the_bytes_arrive),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(kinds_of_messages_are_told_apart),
        cmocka_unit_test(requests_have_the_form_of_the_rfc),
        cmocka_unit_test(echo_is_answered_with_its_own_id_and_params),
        cmocka_unit_test(operations_have_the_form_of_the_rfc),
        cmocka_unit_test(an_atom_is_a_set_of_one),
        cmocka_unit_test(only_well_formed_uuids_are_uuids),
        cmocka_unit_test(columns_are_read_and_absent_ones_left_alone),
        cmocka_unit_test(differences_of_sets_toggle_members),
        cmocka_unit_test(differences_of_maps_set_and_remove_pairs),
        cmocka_unit_test(results_of_transactions_name_the_operation_at_fault),
        cmocka_unit_test(selected_row_is_found),
        cmocka_unit_test(updates_are_walked_row_by_row),
    };
    return cmocka_run_group_tests_name("wire/ovsdb", tests, NULL, NULL);
}
