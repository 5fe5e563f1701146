/* SPDX-License-Identifier: Apache-2.0 */
/* Files of volumes made of API objects. */
#include "pod/files.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct json *json_of(const char *text)
{
    CLEANUP_FREE char *copy = xstrdup(text);
    struct json *v = NULL;
    struct err e;
    for (char *p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(copy, strlen(copy), &v, &e) < 0) {
        fail_msg("%s: %s", e.text, text);
    }
    return v;
}

static struct json *objects;

static int find_object(void *ctx, enum pod_object_kind kind, const char *ns, const char *name,
                       const struct json **ret)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", pod_object_plural(kind), name);
    *ret = json_get(objects, key);
    return streq(name, "late") ? -EAGAIN : *ret ? 0 : -ENOENT;
}

static const struct pod_facts facts = {.find_object = find_object};

static int set_up(void **state)
{
    objects = json_of("{'configmaps/m': {'data': {'a': '1', 'b': 'two'}, 'binaryData': {'c': "
                      "'AAE='}}, 'secrets/s': {'data': {'pw': 'aHVudGVyMg==', 'bad': '*'}},"
                      "'secrets/ok': {'data': {'a': 'c2VjcmV0'}}}");
    return 0;
}

static int tear_down(void **state)
{
    json_free(objects);
    return 0;
}

static int make_of(const char *spec, const char *volume, struct pod_files *ret, struct err *e)
{
    static const char *const tokens[] = {"tok-0", "tok-1"};
    CLEANUP_FREE char *text =
        xasprintf("{'metadata': {'name': 'p', 'namespace': 'red', 'labels': {'b': 'x', 'a': '1'},"
                  "'annotations': {'n': 'l1\\nl2 \\u0001'}}, 'spec': %s}",
                  spec);
    CLEANUP(json_free) struct json *pod = json_of(text);
    CLEANUP(json_free) struct json *v = json_of(volume);
    return pod_files_make(pod, v, &facts, (struct pod_tokens){tokens, 2}, ret, e);
}

static char *text_of(const struct pod_files *f)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < f->n; i++) {
        strbuf_addf(&out, "%s %o", f->v[i].path, f->v[i].mode);
        if (f->v[i].has_owner) {
            strbuf_addf(&out, " %u", f->v[i].owner);
        }
        strbuf_addf(&out, " %.*s%s;", (int) f->v[i].data->size, f->v[i].data->data,
                    memchr(f->v[i].data->data, 0, f->v[i].data->size) ? "(binary)" : "");
    }
    return strbuf_steal(&out);
}

#define SPEC "{'containers': [{'name': 'c', 'resources': {'limits': {'memory': '1Gi'}}}]}"
#define USER(a, b)                                                                     \
    "{'initContainers': [{'securityContext': {'runAsUser': " a "}}], 'containers': [{" \
    "'securityContext': {'runAsUser': " b "}}]}"
#define TOKEN \
    "{'projected': {'defaultMode': 420, 'sources': [{'serviceAccountToken': {'path': 'token'}}]}}"

static void volumes_have_the_files_of_their_sources(void **state)
{
    static const struct {
        const char *spec, *volume, *want;
    } cases[] = {
        {SPEC, "{'configMap': {'name': 'm'}}", "a 644 1;b 644 two;c 644 (binary);"},
        {SPEC,
         "{'configMap': {'name': 'm', 'defaultMode': 256, 'items': [{'key': 'b', 'path': "
         "'d/e/f'}, {'key': 'a', 'path': './d//x', 'mode': 511}]}}",
         "d/e/f 400 two;d/x 777 1;"},
        {SPEC, "{'configMap': {'name': 'none', 'optional': true}}", ""},
        {SPEC,
         "{'configMap': {'name': 'm', 'optional': true, 'items': [{'key': 'zz', 'path': "
         "'z'}, {'key': 'a', 'path': 'a'}]}}",
         "a 644 1;"},
        {SPEC, "{'secret': {'secretName': 's', 'items': [{'key': 'pw', 'path': 'p..w'}]}}",
         "p..w 644 hunter2;"},
        {SPEC,
         "{'downwardAPI': {'items': [{'path': 'labels', 'fieldRef': {'fieldPath': "
         "'metadata.labels'}}, {'path': 'notes', 'fieldRef': {'fieldPath': "
         "'metadata.annotations'}, 'mode': 288}, {'path': 'mem', 'resourceFieldRef': {"
         "'containerName': 'c', 'resource': 'limits.memory', 'divisor': '1Mi'}}]}}",
         "labels 644 a=\"1\"\nb=\"x\";mem 644 1024;notes 440 n=\"l1\\nl2 \\x01\";"},
        {SPEC,
         "{'projected': {'sources': [{'configMap': {'name': 'm', 'items': [{'key': 'a', "
         "'path': 'a'}]}}, {'secret': {'name': 'ok'}}, {'downwardAPI': {'items': [{'path': "
         "'n', 'fieldRef': {'fieldPath': 'metadata.name'}}]}}, {'serviceAccountToken': "
         "{'path': 'token'}}, {'serviceAccountToken': {'path': 't2', 'audience': 'x'}}]}}",
         "a 644 secret;n 644 p;t2 644 tok-1;token 644 tok-0;"},
        {SPEC, TOKEN, "token 644 tok-0;"},
        {USER("7", "7"), TOKEN, "token 600 7 tok-0;"},
        {USER("7", "8"), TOKEN, "token 644 tok-0;"},
        {"{'securityContext': {'runAsUser': 9}, 'containers': [{}]}", TOKEN, "token 600 9 tok-0;"},
        {"{'securityContext': {'fsGroup': 9}, 'containers': [{}]}", TOKEN, "token 600 tok-0;"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(pod_files_done) struct pod_files f = {0};
        struct err e = {0};
        if (make_of(cases[i].spec, cases[i].volume, &f, &e) < 0) {
            fail_msg("%s: %s", cases[i].volume, e.text);
        }
        CLEANUP_FREE char *text = text_of(&f);
        assert_string_equal(text, cases[i].want);
    }
}

#define ITEM(path) "{'configMap': {'name': 'm', 'items': [{'key': 'a', 'path': " path "}]}}"

static void missing_objects_and_paths_that_lead_out_are_refused(void **state)
{
    static const struct {
        const char *volume;
        int error;
        const char *want;
    } cases[] = {
        {"{'configMap': {'name': 'none'}}", -ENOENT, "configmap \"none\" not found"},
        {"{'secret': {'secretName': 'none'}}", -ENOENT, "secret \"none\" not found"},
        {"{'secret': {'secretName': 'late', 'optional': true}}", -EAGAIN,
         "waiting for secret \"late\" from the API server"},
        {"{'secret': {'secretName': 's'}}", -EINVAL, "the value of key bad is not base64"},
        {"{'secret': {'secretName': 's', 'items': [{'key': 'zz', 'path': 'x'}]}}", -ENOENT,
         "references non-existent secret key: zz"},
        {"{'configMap': {'name': 'm', 'items': [{'key': 'zz', 'path': 'x'}]}}", -ENOENT,
         "configmap references non-existent config key: zz"},
        {ITEM("'../x'"), -EINVAL, "invalid path ../x: must not start with '..'"},
        {ITEM("'..data'"), -EINVAL, "invalid path ..data: must not start with '..'"},
        {ITEM("'a/../../x'"), -EINVAL,
         "invalid path a/../../x: must not contain '..' or a component of more than 255 bytes"},
        {ITEM("'a/..'"), -EINVAL,
         "invalid path a/..: must not contain '..' or a component of more than 255 bytes"},
        {ITEM("'/etc/passwd'"), -EINVAL, "invalid path /etc/passwd: must be relative"},
        {ITEM("''"), -EINVAL, "invalid path : must have 1 to 4095 characters"},
        {ITEM("'.'"), -EINVAL, "invalid path .: names no file"},
        {ITEM("'./..data'"), -EINVAL, "invalid path ./..data: must not start with '..'"},
        {"{'configMap': {'name': 'm', 'items': [{'key': 'a', 'path': 'x'}, {'key': 'a', 'path': "
         "'x/y'}]}}",
         -EINVAL, "conflicting paths x and x/y"},
        {"{'projected': {'sources': [{'clusterTrustBundle': {}}]}}", -EINVAL,
         "the projected source clusterTrustBundle is not supported"},
        {"{'emptyDir': {}}", -EINVAL, "the volume is not made of API objects"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(pod_files_done) struct pod_files f = {0};
        struct err e = {0};
        assert_int_equal(make_of(SPEC, cases[i].volume, &f, &e), cases[i].error);
        assert_string_equal(e.text, cases[i].want);
        assert_int_equal(f.n, 0);
    }
}

static void one_key_at_many_paths_is_bounded(void **state)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE char *large = xmalloc(1 << 20);
    CLEANUP(pod_files_done) struct pod_files f = {0};
    struct err e;
    memset(large, 'x', (1 << 20) - 1);
    large[(1 << 20) - 1] = '\0';
    json_set_string(json_path(objects, "configmaps/m", "data", NULL), "a", large);
    strbuf_adds(&text, "{'configMap': {'name': 'm', 'items': [");
    for (int i = 0; i < 100; i++) {
        strbuf_addf(&text, "%s{'key': 'a', 'path': 'p%d'}", i ? "," : "", i);
    }
    strbuf_adds(&text, "]}}");
    assert_int_equal(make_of(SPEC, strbuf_cstr(&text), &f, &e), -EFBIG);
}

static void secrets_and_tokens_belong_in_memory(void **state)
{
    static const struct {
        const char *volume;
        bool secret, made;
        size_t tokens;
    } cases[] = {
        {"{'configMap': {'name': 'm'}}", false, true, 0},
        {"{'secret': {'secretName': 'm'}}", true, true, 0},
        {"{'emptyDir': {}}", false, false, 0},
        {"{'downwardAPI': {}}", false, true, 0},
        {"{'projected': {'sources': [{'configMap': {}}]}}", false, true, 0},
        {"{'projected': {'sources': [{'configMap': {}}, {'secret': {}}]}}", true, true, 0},
        {"{'projected': {'sources': [{'serviceAccountToken': {'audience': 'a', "
         "'expirationSeconds': 700}}, {'serviceAccountToken': {}}]}}",
         true, true, 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *v = json_of(cases[i].volume);
        struct pod_token_source t;
        size_t n = 0;
        assert_int_equal(pod_files_is_secret(v), cases[i].secret);
        assert_int_equal(pod_files_has_source(v), cases[i].made);
        while (pod_files_token_source(v, n, &t)) {
            assert_string_equal(t.audience, n == 0 ? "a" : "");
            assert_int_equal(t.seconds, n == 0 ? 700 : 3600);
            n++;
        }
        assert_int_equal(n, cases[i].tokens);
    }
}

static void equal_files_are_equal(void **state)
{
    CLEANUP(pod_files_done) struct pod_files a = {0};
    CLEANUP(pod_files_done) struct pod_files b = {0};
    CLEANUP(pod_files_done) struct pod_files c = {0};
    CLEANUP(pod_files_done) struct pod_files none = {0};
    assert_int_equal(make_of(SPEC, "{'configMap': {'name': 'm'}}", &a, NULL), 0);
    assert_int_equal(make_of(SPEC, "{'configMap': {'name': 'm'}}", &b, NULL), 0);
    json_set_string(json_path(objects, "configmaps/m", "data", NULL), "a", "2");
    assert_int_equal(make_of(SPEC, "{'configMap': {'name': 'm'}}", &c, NULL), 0);
    assert_true(pod_files_equal(&a, &b));
    assert_false(pod_files_equal(&a, &c));
    assert_false(pod_files_equal(&a, &none));
    assert_true(pod_files_equal(&none, &none));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(volumes_have_the_files_of_their_sources),
        TEST(missing_objects_and_paths_that_lead_out_are_refused),
        TEST(one_key_at_many_paths_is_bounded),
        TEST(secrets_and_tokens_belong_in_memory),
        TEST(equal_files_are_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
