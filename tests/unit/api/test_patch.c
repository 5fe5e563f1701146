/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch/patch.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static void expect(const struct json *got, const char *want_text, const char *patch)
{
    CLEANUP(json_free) struct json *want = parse(want_text);
    if (!json_equal(got, want)) {
        CLEANUP_FREE char *text = json_to_text(got);
        fail_msg("%s: got %s, want %s", patch, text, want_text);
    }
}

/* The examples of RFC 7386, appendix A. */
static void merge_patches_do_what_the_rfc_says(void **state)
{
    static const char *const cases[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *obj = parse(cases[i][0]);
        CLEANUP(json_free) struct json *patch = parse(cases[i][1]);
        api_patch_merge(&obj, patch);
        expect(obj, cases[i][2], cases[i][1]);
        json_free(obj);
    }
}

static void json_patches_do_what_the_rfc_says(void **state)
{
    static const char *const cases[][3] = {
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
        {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}"},
        {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":2}]", "{\"a\":[1,3,2]}"},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}"},
        {"{\"a\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":0}]", "{\"a\":[0,1,2]}"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{}"},
        {"{\"a\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/a/1\"}]", "{\"a\":[1,3]}"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":{\"x\":1}}]",
         "{\"a\":{\"x\":1}}"},
        {"{\"a\":[1,2,3]}", "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":9}]",
         "{\"a\":[1,9,3]}"},
        {"{\"a\":{\"b\":1},\"c\":{}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/c/d\"}]",
         "{\"a\":{},\"c\":{\"d\":1}}"},
        {"{\"a\":[1,2,3]}", "[{\"op\":\"move\",\"from\":\"/a/0\",\"path\":\"/a/2\"}]",
         "{\"a\":[2,3,1]}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}]",
         "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1}"},
        {"{\"a/b\":1,\"m~n\":2}",
         "[{\"op\":\"remove\",\"path\":\"/a~1b\"},{\"op\":\"replace\",\"path\":\"/m~0n\","
         "\"value\":3}]",
         "{\"m~n\":3}"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"z\":1}}]", "{\"z\":1}"},
        {"{\"\":1}", "[{\"op\":\"remove\",\"path\":\"/\"}]", "{}"},
        {"{\"a\":1}", "[]", "{\"a\":1}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *obj = parse(cases[i][0]);
        CLEANUP(json_free) struct json *patch = parse(cases[i][1]);
        struct err e = {0};
        if (api_patch_json(&obj, patch, &e) < 0) {
            fail_msg("%s: %s", cases[i][1], e.text);
        }
        expect(obj, cases[i][2], cases[i][1]);
        json_free(obj);
    }
}

static void json_patches_that_cannot_be_applied_fail(void **state)
{
    static const struct {
        const char *patch;
        int error;
    } cases[] = {
        {"{}", -EINVAL},
        {"[{\"op\":\"add\",\"path\":\"/a\"}]", -EINVAL},
        {"[{\"op\":\"add\",\"value\":1}]", -EINVAL},
        {"[{\"path\":\"/a\",\"value\":1}]", -EINVAL},
        {"[{\"op\":\"drop\",\"path\":\"/a\",\"value\":1}]", -EINVAL},
        {"[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", -EINVAL},
        {"[{\"op\":\"add\",\"path\":\"/a~2\",\"value\":1}]", -EINVAL},
        {"[{\"op\":\"move\",\"path\":\"/a\"}]", -EINVAL},
        {"[{\"op\":\"move\",\"from\":\"/o\",\"path\":\"/o/x\"}]", -EINVAL},
        {"[3]", -EINVAL},
        {"[{\"op\":\"remove\",\"path\":\"/x\"}]", -ENOENT},
        {"[{\"op\":\"remove\",\"path\":\"\"}]", -ENOENT},
        {"[{\"op\":\"replace\",\"path\":\"/x\",\"value\":1}]", -ENOENT},
        {"[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":1}]", -ENOENT},
        {"[{\"op\":\"add\",\"path\":\"/l/3\",\"value\":1}]", -ENOENT},
        {"[{\"op\":\"add\",\"path\":\"/l/01\",\"value\":1}]", -ENOENT},
        {"[{\"op\":\"replace\",\"path\":\"/l/2\",\"value\":1}]", -ENOENT},
        {"[{\"op\":\"replace\",\"path\":\"/l/-\",\"value\":1}]", -ENOENT},
        {"[{\"op\":\"add\",\"path\":\"/s/x\",\"value\":1}]", -ENOENT},
        {"[{\"op\":\"test\",\"path\":\"/s\",\"value\":\"other\"}]", -ENOENT},
        {"[{\"op\":\"test\",\"path\":\"/x\",\"value\":null}]", -ENOENT},
        {"[{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"/y\"}]", -ENOENT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *obj = parse("{\"s\":\"text\",\"l\":[1,2],\"o\":{}}");
        CLEANUP(json_free) struct json *patch = parse(cases[i].patch);
        struct err e = {0};
        int r = api_patch_json(&obj, patch, &e);
        if (r != cases[i].error || !e.text[0]) {
            fail_msg("%s: %d (%s)", cases[i].patch, r, e.text);
        }
        json_free(obj);
    }
}

static void json_patches_cannot_blow_up(void **state)
{
    struct json *obj = parse("{\"a\":\"0123456789012345678901234567890123456789\"}");
    CLEANUP(json_free) struct json *patch = json_array();
    for (int i = 0; i < 60; i++) {
        /* Each doubles the document. */
        struct json *op = json_append(patch, parse("{\"op\":\"copy\",\"from\":\"\"}"));
        json_set(op, "path", json_stringf("/b%d", i));
    }
    struct err e = {0};
    assert_int_equal(api_patch_json(&obj, patch, &e), -E2BIG);
    json_free(obj);

    obj = parse("{\"a\":1}");
    CLEANUP(json_free) struct json *many = json_array();
    for (int i = 0; i <= API_PATCH_MAX_OPS; i++) {
        json_append(many, parse("{\"op\":\"test\",\"path\":\"/a\",\"value\":1}"));
    }
    assert_int_equal(api_patch_json(&obj, many, &e), -E2BIG);
    json_free(obj);

    obj = json_object();
    struct json *list = json_set(obj, "l", json_array());
    for (int i = 0; i < 100000; i++) {
        json_append(list, json_null());
    }
    CLEANUP(json_free) struct json *shift = json_array();
    for (int i = 0; i < 1000; i++) {
        json_append(shift, parse("{\"op\":\"add\",\"path\":\"/l/0\",\"value\":1}"));
    }
    assert_int_equal(api_patch_json(&obj, shift, &e), -E2BIG);
    json_free(obj);
}

static void strategic_patches_merge_lists_by_their_key(void **state)
{
    static const char *const cases[][4] = {
        {"nodes",
         "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"x\":1},{\"type\":"
         "\"Disk\",\"status\":\"False\"}]}}",
         "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},{\"type\":\"New\","
         "\"status\":\"True\"}]}}",
         "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"x\":1},{\"type\":"
         "\"Disk\",\"status\":\"False\"},{\"type\":\"New\",\"status\":\"True\"}]}}"},
        {"nodes", "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"1\"}]}}",
         "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"2\"},{\"type\":"
         "\"Hostname\",\"address\":\"h\"}]}}",
         "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"2\"},{\"type\":"
         "\"Hostname\",\"address\":\"h\"}]}}"},
        {"nodes", "{\"spec\":{\"taints\":[{\"key\":\"a\"}]}}",
         "{\"spec\":{\"taints\":[{\"key\":\"b\"}]}}", "{\"spec\":{\"taints\":[{\"key\":\"b\"}]}}"},
        {"pods", "{\"metadata\":{\"finalizers\":[\"a/a\",\"b/b\"]}}",
         "{\"metadata\":{\"finalizers\":[\"b/b\",\"c/c\"],\"$deleteFromPrimitiveList/finalizers\":["
         "\"a/a\"]}}",
         "{\"metadata\":{\"finalizers\":[\"b/b\",\"c/c\"]}}"},
        {"pods", "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\"}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"b\",\"$patch\":\"delete\"},{\"name\":\"a\","
         "\"image\":\"2\",\"env\":[{\"name\":\"E\",\"value\":\"v\"}]}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"2\",\"env\":[{\"name\":\"E\","
         "\"value\":\"v\"}]}]}}"},
        {"pods", "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]}}",
         "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"c\"},{\"name\":\"a\"}],"
         "\"containers\":[{\"name\":\"c\",\"x\":1}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"b\"},{\"name\":\"c\",\"x\":1},{\"name\":\"a\"}]}"
         "}"},
        {"pods", "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}",
         "{\"spec\":{\"containers\":[{\"$patch\":\"replace\"},{\"name\":\"z\"}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"z\"}]}}"},
        {"pods", "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}",
         "{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"3\"}}}",
         "{\"metadata\":{\"labels\":{\"b\":\"2\",\"c\":\"3\"}}}"},
        {"pods", "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
         "{\"metadata\":{\"labels\":{\"$patch\":\"replace\",\"z\":\"1\"}}}",
         "{\"metadata\":{\"labels\":{\"z\":\"1\"}}}"},
        {"pods", "{\"spec\":{\"s\":{\"a\":1}}}", "{\"spec\":{\"s\":{\"$patch\":\"delete\"}}}",
         "{\"spec\":{}}"},
        {"pods", "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}",
         "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":[\"name\",\"hostPath\"],"
         "\"hostPath\":{\"path\":\"/x\"}}]}}",
         "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/x\"}}]}}"},
        {"pods", "{}", "{\"spec\":{\"containers\":[{\"name\":\"a\",\"x\":null}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}"},
        {"hostsubnets", "{\"egressIPs\":[\"1\"]}", "{\"egressIPs\":[\"2\"]}",
         "{\"egressIPs\":[\"2\"]}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *obj = parse(cases[i][1]);
        CLEANUP(json_free) struct json *patch = parse(cases[i][2]);
        struct err e = {0};
        if (api_patch_strategic(api_kind_by_alias(cases[i][0]), &obj, patch, &e) < 0) {
            fail_msg("%s: %s", cases[i][2], e.text);
        }
        expect(obj, cases[i][3], cases[i][2]);
        json_free(obj);
    }
}

static void malformed_strategic_patches_are_refused(void **state)
{
    static const struct {
        const char *patch;
        int error;
    } cases[] = {
        {"[]", -EINVAL},
        {"{\"spec\":{\"containers\":[{\"image\":\"x\"}]}}", -EINVAL},
        {"{\"spec\":{\"containers\":[\"x\"]}}", -EINVAL},
        {"{\"$patch\":\"delete\"}", -EINVAL},
        {"{\"spec\":{\"$patch\":\"burn\"}}", -ENOENT},
        {"{\"spec\":{\"absent\":{\"x\":[{\"$patch\":\"burn\"}]}}}", -ENOENT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *obj = parse("{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}");
        CLEANUP(json_free) struct json *patch = parse(cases[i].patch);
        struct err e = {0};
        int r = api_patch_strategic(api_kind_by_alias("pods"), &obj, patch, &e);
        if (r != cases[i].error || !e.text[0]) {
            fail_msg("%s: %d", cases[i].patch, r);
        }
        json_free(obj);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_patches_do_what_the_rfc_says),
        cmocka_unit_test(json_patches_do_what_the_rfc_says),
        cmocka_unit_test(json_patches_that_cannot_be_applied_fail),
        cmocka_unit_test(json_patches_cannot_blow_up),
        cmocka_unit_test(strategic_patches_merge_lists_by_their_key),
        cmocka_unit_test(malformed_strategic_patches_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
