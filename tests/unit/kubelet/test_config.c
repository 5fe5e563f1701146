/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's configuration: where it takes the same value under several names. */
#include "kubelet/config.h"
#include "net/loop/process.h"

#include "json_text.h"

#include <unistd.h>

static int load(struct kubelet_config *c, const char *text, struct err *e)
{
    char path[] = "/tmp/tenet-kubelet-config-XXXXXX";
    CLEANUP(fd_close) int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    kubelet_config_init(c);
    int r = kubelet_config_load(c, path, e);
    unlink(path);
    return r;
}

static void durations(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms; /* 0: refused. */
    } cases[] = {{"20s", 20000}, {"20", 20000},     {"1m30s", 90000},
                 {"500ms", 500}, {"24h", 86400000}, {"", 0},
                 {"0", 0},       {"99ms", 0},       {"25h", 0},
                 {"s", 0},       {"1x", 0},         {"1m30", 0},
                 {"-1s", 0},     {"1.5s", 1500},    {"99999999999999999999s", 0},
                 {"1 s", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t ms = 0;
        struct err e = {0};
        int r = kubelet_config_duration(cases[i].text, &ms, &e);
        if (ms != cases[i].ms || (r < 0) != (cases[i].ms == 0)) {
            fail_msg("\"%s\": %d, %llu ms", cases[i].text, r, (unsigned long long) ms);
        }
    }
}

static void manifests_as_openshift_names_them(void **state)
{
    CLEANUP(kubelet_config_done) struct kubelet_config c;
    struct err e = {0};
    assert_int_equal(load(&c,
                          "podManifestConfig: {path: manifests, fileCheckIntervalSeconds: 7}\n"
                          "podManifestURLHeader: [\"Accept: a, b\", \"X: y\"]\n"
                          "kubeletArguments:\n  max-pods: [\"40\"]\n"
                          "  manifest-url: [\"http://m/\"]\n"
                          "  manifest-url-header: [\"Z: z\"]\n",
                          &e),
                     0);
    assert_string_equal(c.manifest_path, "/tmp/manifests");
    assert_string_equal(c.file_check, "7");
    assert_string_equal(c.http_check, "20s");
    assert_int_equal(c.max_pods, 40);
    assert_string_equal(c.manifest_url, "http://m/");
    assert_string_equal(c.manifest_headers[0], "Accept: a, b");
    assert_string_equal(c.manifest_headers[1], "X: y");
    assert_string_equal(c.manifest_headers[2], "Z: z");
    assert_null(c.manifest_headers[3]);
}

static void faults_are_named(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"kubeletArguments: {colour: [red]}", "kubeletArguments.colour: unknown key"},
        {"kubeletArguments: {max-pod: [\"4\"]}",
         "kubeletArguments.max-pod: unknown key; did you mean max-pods?"},
        {"kubeletArguments: {max-pods: [\"0\"]}",
         "kubeletArguments.max-pods[0]: 0 is not in 1-10000"},
        {"kubeletArguments: {max-pods: [4]}", "kubeletArguments.max-pods[0]: must be a string"},
        {"kubeletArguments: x", "kubeletArguments: must be a mapping of keys to values"},
        {"podManifestConfig: {path: [a]}", "podManifestConfig.path"},
        {"podManifestConfig: {fileCheckIntervalSeconds: soon}", "fileCheckIntervalSeconds"},
        {"podManifestURL: ftp://m/", "podManifestURL: \"ftp://m/\" is not a URL"},
        {"podManifestURLHeader: [secret]", "podManifestURLHeader[0]: a header is not NAME: VALUE"},
        {"podManifestURLHeader: \"A: b\"", "must be a list of headers"},
        {"fileCheckFrequency: 1ms", "fileCheckFrequency: \"1ms\" is not a time such as 20s"},
        {"shutdownGracePeriod: 30", "shutdownGracePeriod: \"30\" is not a duration such as 5m"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(kubelet_config_done) struct kubelet_config c;
        struct err e = {0};
        int r = load(&c, cases[i].text, &e);
        if (r != -EINVAL || !strstr(e.text, cases[i].want)) {
            fail_msg("%s: %d \"%s\", not \"%s\"", cases[i].text, r, e.text, cases[i].want);
        }
    }
}

/* The agent of the network and the kubelet read the same file. */
#define FILE_OF_OPENSHIFT "tests/integration/openshift/node-config.yaml"

static void a_file_of_openshift_is_read_with_warnings_only(void **state)
{
    CLEANUP(kubelet_config_done) struct kubelet_config c;
    struct err e = {0};
    kubelet_config_init(&c);
    if (kubelet_config_load(&c, FILE_OF_OPENSHIFT, &e) < 0 || kubelet_config_finish(&c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_string_equal(c.node_name, "node1.example.com");
    assert_true(*c.kubeconfig == '/');
    assert_true(c.findings.n > 5);
    for (const struct option_alias *a = kubelet_options.alias; a->path; a++) {
        assert_non_null(options_find(&kubelet_options, a->to));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),
        cmocka_unit_test(manifests_as_openshift_names_them),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(a_file_of_openshift_is_read_with_warnings_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
