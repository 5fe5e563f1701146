/* SPDX-License-Identifier: Apache-2.0 */
/* Environment of containers: each case is a pod's container, the objects it refers to, and the
 * variables or the error that Kubernetes makes of them. */
#include "pod/env.h"

#include "base/base64.h"
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

/* "configmaps/NAME" to the object. */
static struct json *objects;

static int find_object(void *ctx, enum pod_object_kind kind, const char *ns, const char *name,
                       const struct json **ret)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", pod_object_plural(kind), name);
    assert_string_equal(ns, "red");
    if (streq(name, "late")) {
        return -EAGAIN;
    }
    *ret = json_get(objects, key);
    return *ret ? 0 : -ENOENT;
}

static struct pod_facts facts = {.find_object = find_object};
static struct json *services, *allocatable;

static int set_up(void **state)
{
    static const char *const ips[] = {"10.1.0.7", "fd00::7"};
    objects = json_of("{'configmaps/m': {'data': {'a': '1', 'b': 'two', '9x': 'z', 'A B': 'q'}},"
                      "'configmaps/bin': {'data': {'a': '1'}, 'binaryData': {'b': 'AAE='}},"
                      "'secrets/s': {'data': {'pw': 'aHVudGVyMg==', 'zero': 'AGE=', 'bad': '*'}}}");
    services = json_of("[{'metadata': {'name': 'db', 'namespace': 'red'}, 'spec': {'clusterIP': "
                       "'172.30.0.9', 'ports': [{'port': 5432, 'protocol': 'TCP'}]}},"
                       "{'metadata': {'name': 'kubernetes', 'namespace': 'default'}, 'spec': {"
                       "'clusterIP': '172.30.0.1', 'ports': [{'name': 'https', 'port': 443}]}}]");
    allocatable = json_of("{'cpu': '3500m', 'memory': '7Gi', 'ephemeral-storage': '10Gi'}");
    facts.services = services;
    facts.allocatable = allocatable;
    facts.host_ip = "192.0.2.5";
    facts.pod_ips = (struct runtime_texts){ips, 2};
    return 0;
}

static int tear_down(void **state)
{
    json_free(objects);
    json_free(services);
    json_free(allocatable);
    return 0;
}

static struct json *pod_with(const char *container)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata': {'name': 'web-1', 'namespace': 'red', 'uid': 'u-1', 'labels': {'app': 'x',"
        "'a.b/c': 'y'}, 'annotations': {'note': 'one\\ntwo \\\"q\\\"'}}, 'spec': {'nodeName': "
        "'n1', 'serviceAccountName': 'robot', 'enableServiceLinks': false, 'containers': ["
        "{'name': 'other', 'resources': {'limits': {'memory': '100Mi'}}}, %s]}}",
        container);
    return json_of(text);
}

static int make(const char *container, struct pod_env *ret, struct err *e)
{
    CLEANUP(json_free) struct json *pod = pod_with(container);
    return pod_env_make(pod, json_at(json_path(pod, "spec", "containers", NULL), 1), &facts, ret,
                        e);
}

/* "NAME=VALUE;..." without the variables of services. */
static char *own_text(const struct pod_env *env)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < env->n; i++) {
        if (!str_has_prefix(env->v[i].key, "KUBERNETES_") &&
            !str_has_prefix(env->v[i].key, "DB_")) {
            strbuf_addf(&out, "%s=%s;", env->v[i].key, env->v[i].value);
        }
    }
    return strbuf_steal(&out);
}

static void variables_come_from_everything_in_the_kubelets_order(void **state)
{
#define FROM(source) "{'name': 'c', 'env': [{'name': 'X', 'valueFrom': {" source "}}]}"
#define FIELD(path) FROM("'fieldRef': {'fieldPath': " path "}")
    static const struct {
        const char *container, *want;
    } cases[] = {
        {"{'name': 'c'}", ""},
        {"{'name': 'c', 'env': [{'name': 'A', 'value': 'x'}, {'name': 'B'}, {'name': 'A', 'value': "
         "'y'}]}",
         "A=y;B=;"},
        {"{'name': 'c', 'envFrom': [{'configMapRef': {'name': 'm'}}, {'prefix': 'P_', "
         "'configMapRef': {'name': 'bin'}}], 'env': [{'name': 'b', 'value': '$(a)+$(P_a)'}]}",
         "a=1;b=1+1;P_a=1;"},
        {"{'name': 'c', 'envFrom': [{'secretRef': {'name': 'none', 'optional': true}}]}", ""},
        {"{'name': 'c', 'env': [{'name': 'A', 'value': '$(B)'}, {'name': 'B', 'value': 'b$(A)$$(A)"
         "$$$(A) $x $ $(A $('}, {'name': 'C', 'value': '$(KUBERNETES_SERVICE_HOST) $(nope)$'}]}",
         "A=$(B);B=b$(B)$(A)$$(B) $x $ $(A $(;C=172.30.0.1 $(nope)$;"},
        {FIELD("'metadata.name'"), "X=web-1;"},
        {FIELD("'metadata.namespace'"), "X=red;"},
        {FIELD("'metadata.uid'"), "X=u-1;"},
        {FIELD("'metadata.labels[\\u0027app\\u0027]'"), "X=x;"},
        {FIELD("'metadata.labels[\\u0027a.b/c\\u0027]'"), "X=y;"},
        {FIELD("'metadata.labels[\\u0027none\\u0027]'"), "X=;"},
        {FIELD("'metadata.annotations[\\u0027note\\u0027]'"), "X=one\ntwo \"q\";"},
        {FIELD("'spec.nodeName'"), "X=n1;"},
        {FIELD("'spec.serviceAccountName'"), "X=robot;"},
        {FIELD("'status.hostIP'"), "X=192.0.2.5;"},
        {FIELD("'status.podIP'"), "X=10.1.0.7;"},
        {FIELD("'status.podIPs'"), "X=10.1.0.7,fd00::7;"},
        {FROM("'resourceFieldRef': {'resource': 'limits.cpu'}"), "X=4;"},
        {FROM("'resourceFieldRef': {'resource': 'limits.cpu', 'divisor': '1m'}"), "X=3500;"},
        {FROM("'resourceFieldRef': {'resource': 'limits.memory', 'divisor': '0'}"),
         "X=7516192768;"},
        {FROM("'resourceFieldRef': {'resource': 'limits.memory', 'divisor': '1Mi', "
              "'containerName': 'other'}"),
         "X=100;"},
        {FROM("'resourceFieldRef': {'resource': 'limits.memory', 'divisor': '1Gi', "
              "'containerName': 'other'}"),
         "X=1;"},
        {FROM("'resourceFieldRef': {'resource': 'requests.cpu'}"), "X=0;"},
        {FROM("'configMapKeyRef': {'name': 'm', 'key': 'b'}"), "X=two;"},
        {FROM("'configMapKeyRef': {'name': 'm', 'key': 'zz', 'optional': true}"), ""},
        {FROM("'configMapKeyRef': {'name': 'none', 'key': 'zz', 'optional': true}"), ""},
        {FROM("'secretKeyRef': {'name': 's', 'key': 'pw'}"), "X=hunter2;"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(pod_env_done) struct pod_env env = {0};
        struct err e = {0};
        if (make(cases[i].container, &env, &e) < 0) {
            fail_msg("%s: %s", cases[i].container, e.text);
        }
        CLEANUP_FREE char *text = own_text(&env);
        assert_string_equal(text, cases[i].want);
    }
}

static void what_is_missing_is_an_error_in_the_kubelets_words(void **state)
{
    static const struct {
        const char *container;
        int error;
        const char *want;
    } cases[] = {
        {FROM("'configMapKeyRef': {'name': 'm', 'key': 'zz'}"), -ENOENT,
         "couldn't find key zz in ConfigMap red/m"},
        {FROM("'configMapKeyRef': {'name': 'bin', 'key': 'b'}"), -ENOENT,
         "couldn't find key b in ConfigMap red/bin"},
        {FROM("'secretKeyRef': {'name': 's', 'key': 'zz'}"), -ENOENT,
         "couldn't find key zz in Secret red/s"},
        {FROM("'configMapKeyRef': {'name': 'none', 'key': 'k'}"), -ENOENT,
         "configmap \"none\" not found"},
        {FROM("'secretKeyRef': {'name': 'none', 'key': 'k'}"), -ENOENT,
         "secret \"none\" not found"},
        {FROM("'secretKeyRef': {'name': 'late', 'key': 'k', 'optional': true}"), -EAGAIN,
         "waiting for secret \"late\" from the API server"},
        {FROM("'secretKeyRef': {'name': 's', 'key': 'bad'}"), -EINVAL,
         "secret s: the value of key bad is not base64"},
        {FROM("'secretKeyRef': {'name': 's', 'key': 'zero'}"), -EINVAL,
         "secret s: the value of key zero has a zero byte, which no variable can hold"},
        {"{'name': 'c', 'envFrom': [{'secretRef': {'name': 'none'}}]}", -ENOENT,
         "secret \"none\" not found"},
        {FIELD("'status.phase'"), -EINVAL, "unsupported fieldPath: status.phase"},
        {FIELD("'metadata.labels[\\u0027app'"), -EINVAL,
         "unsupported fieldPath: metadata.labels['app"},
        {FIELD("'metadata.labels[\\u0027]'"), -EINVAL, "unsupported fieldPath: metadata.labels[']"},
        {FROM("'resourceFieldRef': {'resource': 'limits.gpu'}"), -EINVAL,
         "unsupported container resource : limits.gpu"},
        {FROM("'resourceFieldRef': {'resource': 'limits.cpu', 'containerName': 'no'}"), -EINVAL,
         "container no not found"},
        {FROM("'fileKeyRef': {}"), -EINVAL, "valueFrom has no source that this kubelet knows"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(pod_env_done) struct pod_env env = {0};
        struct err e = {0};
        assert_int_equal(make(cases[i].container, &env, &e), cases[i].error);
        assert_string_equal(e.text, cases[i].want);
        assert_int_equal(env.n, 0);
    }
    facts.pod_ips.n = 0;
    CLEANUP(pod_env_done) struct pod_env env = {0};
    struct err e = {0};
    assert_int_equal(make(FIELD("'status.podIP'"), &env, &e), -EAGAIN);
    assert_string_equal(e.text, "status.podIP is not known yet");
}

static void keys_that_are_no_names_are_skipped_and_reported(void **state)
{
    CLEANUP(pod_env_done) struct pod_env env = {0};
    struct err e;
    assert_int_equal(
        make("{'name': 'c', 'envFrom': [{'configMapRef': {'name': 'm'}}, {'secretRef': {'name': "
             "'none', 'optional': true}}]}",
             &env, &e),
        0);
    assert_int_equal(json_count(env.skipped), 1);
    assert_string_equal(
        json_get_string(json_at(env.skipped, 0)),
        "Keys [9x, A B] from the EnvFrom configMap red/m were skipped since they are considered "
        "invalid environment variable names.");
}

static void services_are_overridden_and_their_links_can_be_off(void **state)
{
    CLEANUP(json_free)
    struct json *pod = json_of("{'metadata': {'namespace': 'red'}, 'spec': {'containers': [{'env': "
                               "[{'name': 'DB_SERVICE_PORT', 'value': 'mine'}, {'name': 'U', "
                               "'value': '$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)'}]}]}}");
    const struct json *c = json_at(json_path(pod, "spec", "containers", NULL), 0);
    CLEANUP(pod_env_done) struct pod_env env = {0};
    CLEANUP(pod_env_done) struct pod_env without = {0};
    assert_int_equal(pod_env_make(pod, c, &facts, &env, NULL), 0);
    assert_string_equal(pod_env_get(pod_env_pairs(&env), "DB_SERVICE_HOST"), "172.30.0.9");
    assert_string_equal(pod_env_get(pod_env_pairs(&env), "DB_SERVICE_PORT"), "mine");
    assert_string_equal(pod_env_get(pod_env_pairs(&env), "U"), "172.30.0.9:mine");
    json_set_bool(json_get(pod, "spec"), "enableServiceLinks", false);
    assert_int_equal(pod_env_make(pod, c, &facts, &without, NULL), 0);
    assert_null(pod_env_get(pod_env_pairs(&without), "DB_SERVICE_HOST"));
    assert_string_equal(pod_env_get(pod_env_pairs(&without), "KUBERNETES_SERVICE_HOST"),
                        "172.30.0.1");
    for (size_t i = 0; i < env.n; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(env.v[i].key, env.v[j].key);
        }
    }
}

static void a_doubling_environment_is_refused_before_it_fills_the_memory(void **state)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(pod_env_done) struct pod_env env = {0};
    struct err e;
    strbuf_adds(&text, "{'name': 'c', 'env': [{'name': 'A0', 'value': 'xxxxxxxxxxxxxxxx'}");
    for (int i = 1; i < 64; i++) {
        strbuf_addf(&text, ",{'name': 'A%d', 'value': '$(A%d)$(A%d)'}", i, i - 1, i - 1);
    }
    strbuf_adds(&text, "]}");
    assert_int_equal(make(strbuf_cstr(&text), &env, &e), -EINVAL);
    assert_string_equal(e.text, "$(A12)$(A12)... expands to more than 131071 bytes");
    strbuf_reset(&text);
    strbuf_adds(&text, "{'name': 'c', 'env': [{'name': 'A', 'value': '");
    for (int i = 0; i < 10000; i++) {
        strbuf_adds(&text, "xxxxxxxxxxxxx");
    }
    strbuf_adds(&text, "'}");
    for (int i = 1; i < 64; i++) {
        strbuf_addf(&text, ",{'name': 'B%d', 'value': '$(A)'}", i);
    }
    strbuf_adds(&text, "]}");
    assert_int_equal(make(strbuf_cstr(&text), &env, &e), -EINVAL);
    assert_string_equal(e.text, "the environment has more than 2097152 bytes");
}

static void commands_are_expanded_from_all_variables(void **state)
{
    const struct runtime_pair pairs[] = {{"A", "1"}, {"B", "$(A)"}};
    const struct runtime_pairs env = {pairs, 2};
    CLEANUP(json_free)
    struct json *list = json_of("['$(A)', '$$(A)', '$(B)', '$(C)', 'x$(A)y$(A)', '']");
    CLEANUP(json_free) struct json *out = NULL;
    CLEANUP(json_free) struct json *none = NULL;
    assert_int_equal(pod_env_expand_list(list, env, &out, NULL), 0);
    CLEANUP_FREE char *text = json_to_text(out);
    assert_string_equal(text, "[\"1\",\"$(A)\",\"$(A)\",\"$(C)\",\"x1y1\",\"\"]");
    assert_int_equal(pod_env_expand_list(NULL, env, &none, NULL), 0);
    assert_int_equal(json_count(none), 0);
}

static int note(void *ctx, const struct pod_reference *r)
{
    strbuf_addf(ctx, "%s ", r->name);
    return 0;
}

static void references_are_those_of_volumes_environment_and_pulls(void **state)
{
    CLEANUP(json_free)
    struct json *pod = json_of(
        "{'spec': {'volumes': [{'configMap': {'name': 'm1'}}, {'secret': {'secretName': 's1'}},"
        "{'projected': {'sources': [{'configMap': {'name': 'm2'}}, {'secret': {'name': 's2'}}]}},"
        "{'emptyDir': {}}], 'initContainers': [{'envFrom': [{'configMapRef': {'name': 'm3'}}]}],"
        "'containers': [{'env': [{'valueFrom': {'secretKeyRef': {'name': 's3'}}}]}],"
        "'ephemeralContainers': [{'envFrom': [{'secretRef': {'name': 's4'}}]}],"
        "'imagePullSecrets': [{'name': 's5'}, {}]}}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const struct json *spec = json_get(pod, "spec");
    assert_int_equal(pod_reference_each(spec, POD_CONFIG_MAP, note, &out), 0);
    assert_int_equal(pod_reference_each(spec, POD_SECRET, note, &out), 0);
    assert_string_equal(strbuf_cstr(&out), "m1 m2 m3 s1 s2 s3 s4 s5 ");
    assert_true(pod_refers_to(spec, POD_SECRET, "s2"));
    assert_false(pod_refers_to(spec, POD_CONFIG_MAP, "s2"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(variables_come_from_everything_in_the_kubelets_order),
        TEST(what_is_missing_is_an_error_in_the_kubelets_words),
        TEST(keys_that_are_no_names_are_skipped_and_reported),
        TEST(services_are_overridden_and_their_links_can_be_off),
        TEST(a_doubling_environment_is_refused_before_it_fills_the_memory),
        TEST(commands_are_expanded_from_all_variables),
        TEST(references_are_those_of_volumes_environment_and_pulls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
