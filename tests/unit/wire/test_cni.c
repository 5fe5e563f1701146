/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "wire/cni.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CONF "{\"cniVersion\":\"1.0.0\",\"name\":\"tenet\",\"type\":\"tenet-cni\"}"
#define ARGS "IgnoreUnknown=1;K8S_POD_NAMESPACE=red;K8S_POD_NAME=web;K8S_POD_UID=1"

static const struct cni_env add_env = {.command = "ADD",
                                       .container_id = "0123abcdef",
                                       .netns = "/run/netns/web",
                                       .ifname = "eth0",
                                       .args = ARGS};

static int read_request(const struct cni_env *env, const char *conf, struct cni_request *r,
                        struct cni_error *e)
{
    return cni_request_read(env, conf, strlen(conf), r, e);
}

static void a_good_add_is_read_whole(void **state)
{
    (void) state;
    CLEANUP(cni_request_done) struct cni_request r = {0};
    struct cni_error e = {0};
    assert_int_equal(read_request(&add_env,
                                  "{\"cniVersion\":\"0.4.0\",\"name\":\"n.1\",\"type\":\"x\","
                                  "\"socket\":\"/s\",\"dns\":{\"nameservers\":[\"10.0.0.1\"]},"
                                  "\"args\":{\"a\":1},\"cni.dev/valid-attachments\":[],\"ipam\":{},"
                                  "\"runtimeConfig\":{\"portMappings\":[],\"dns\":null}}",
                                  &r, &e),
                     0);
    assert_int_equal(r.command, CNI_ADD);
    assert_string_equal(r.container_id, "0123abcdef");
    assert_string_equal(r.netns, "/run/netns/web");
    assert_string_equal(r.ifname, "eth0");
    assert_string_equal(r.pod_namespace, "red");
    assert_string_equal(r.pod_name, "web");
    assert_int_equal(r.config.version, CNI_0_4_0);
    assert_string_equal(r.config.name, "n.1");
    assert_string_equal(r.config.socket, "/s");
    assert_non_null(r.config.dns);
    assert_null(r.config.prev_result);
}

static void the_socket_has_a_default(void **state)
{
    (void) state;
    CLEANUP(cni_request_done) struct cni_request r = {0};
    struct cni_error e = {0};
    assert_int_equal(read_request(&add_env, CONF, &r, &e), 0);
    assert_string_equal(r.config.socket, CNI_DEFAULT_SOCKET);
}

static void bad_configurations_get_their_code_and_name_the_field(void **state)
{
    (void) state;
    static const struct {
        const char *conf;
        int code;
        const char *needle;
    } cases[] = {
        {"", 6, "standard input"},
        {"{", 6, "line 1"},
        {"{} x", 6, "standard input"},
        {"{\"a\":1,\"a\":2}", 6, "standard input"},
        {"[]", 7, "object"},
        {"null", 7, "object"},
        {"{}", 1, "cniVersion"},
        {"{\"cniVersion\":1}", 7, "cniVersion"},
        {"{\"cniVersion\":\"0.2.0\"}", 1, "\"0.2.0\""},
        {"{\"cniVersion\":\"1.2.0\"}", 1, "\"1.2.0\""},
        {"{\"cniVersion\":\"1.0.0\"}", 7, "name"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"\"}", 7, "name"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":7}", 7, "name"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"-a\",\"type\":\"x\"}", 7, "name"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a b\",\"type\":\"x\"}", 7, "name"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\"}", 7, "type"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"\"}", 7, "type"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"socket\":\"s\"}", 7, "socket"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"socket\":[]}", 7, "socket"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"socket\":\"/"
         "0123456789012345678901"
         "23456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
         "\"}",
         7, "socket"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"dns\":[]}", 7, "dns"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"dns\":{\"domain\":1}}", 7,
         "dns.domain"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"dns\":{\"search\":[1]}}", 7,
         "dns.search"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"dns\":{\"servers\":[]}}", 7,
         "dns.servers"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"prevResult\":{}}", 7,
         "prevResult"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"ipam\":{\"type\":\"dhcp\"}}", 2,
         "ipam: {\"type\":\"dhcp\"}"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"sockets\":\"/s\"}", 2,
         "sockets: \"/s\""},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"runtimeConfig\":"
         "{\"portMappings\":[{\"hostPort\":80}]}}",
         7, "runtimeConfig.portMappings[0]: containerPort"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"runtimeConfig\":"
         "{\"mac\":\"0a:58:0a:80:00:02\"}}",
         2, "runtimeConfig.mac"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"runtimeConfig\":"
         "{\"bandwidth\":{\"ingressRate\":1}}}",
         7, "runtimeConfig.bandwidth.ingressRate: 1 is not in"},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"chained\":[\"sbr\"]}", 7,
         "chained: \"sbr\""},
        {"{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"runtimeConfig\":3}", 7,
         "runtimeConfig"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cni_request_done) struct cni_request r = {0};
        struct cni_error e = {0};
        print_message("%s\n", cases[i].conf);
        assert_true(read_request(&add_env, cases[i].conf, &r, &e) < 0);
        assert_int_equal(e.code, cases[i].code);
        assert_non_null(strstr(e.details, cases[i].needle));
        assert_true(e.msg[0]);
        assert_null(r.container_id);
    }
}

static void bad_environments_are_code_4_and_name_the_variable(void **state)
{
    (void) state;
    static const char long_id[] =
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567";
    CLEANUP_FREE char *long_name = xasprintf("K8S_POD_NAMESPACE=red;K8S_POD_NAME=%.254s", long_id);
    const struct {
        struct cni_env env;
        const char *needle;
    } cases[] = {
        {{NULL, "a", "/n", "eth0", ARGS}, "CNI_COMMAND"},
        {{"", "a", "/n", "eth0", ARGS}, "CNI_COMMAND"},
        {{"add", "a", "/n", "eth0", ARGS}, "CNI_COMMAND: \"add\""},
        {{"WIPE", "a", "/n", "eth0", ARGS}, "CNI_COMMAND"},
        {{"ADD", NULL, "/n", "eth0", ARGS}, "CNI_CONTAINERID"},
        {{"DEL", "", "/n", "eth0", ARGS}, "CNI_CONTAINERID"},
        {{"ADD", "../x", "/n", "eth0", ARGS}, "CNI_CONTAINERID"},
        {{"ADD", "a/b", "/n", "eth0", ARGS}, "CNI_CONTAINERID"},
        {{"ADD", long_id, "/n", "eth0", ARGS}, "CNI_CONTAINERID"},
        {{"ADD", "a", NULL, "eth0", ARGS}, "CNI_NETNS"},
        {{"ADD", "a", "", "eth0", ARGS}, "CNI_NETNS"},
        {{"ADD", "a", "n", "eth0", ARGS}, "CNI_NETNS"},
        {{"ADD", "a", "/n\n", "eth0", ARGS}, "CNI_NETNS"},
        {{"ADD", "a", "/n", NULL, ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "lo", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", ".", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "..", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "a/b", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "a:b", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "a b", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "0123456789abcdef", ARGS}, "CNI_IFNAME"},
        {{"ADD", "a", "/n", "eth0", NULL}, "K8S_POD_NAMESPACE"},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE=red"}, "K8S_POD_NAME "},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE=;K8S_POD_NAME=web"}, "K8S_POD_NAMESPACE"},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE=a/b;K8S_POD_NAME=w"}, "K8S_POD_NAMESPACE"},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE=red;K8S_POD_NAME=We"}, "K8S_POD_NAME:"},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE=-red;K8S_POD_NAME=w"}, "K8S_POD_NAMESPACE:"},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE=red.;K8S_POD_NAME=w"}, "K8S_POD_NAMESPACE:"},
        {{"ADD", "a", "/n", "eth0", long_name}, "K8S_POD_NAME:"},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE"}, "KEY=VALUE"},
        {{"ADD", "a", "/n", "eth0", "=x;K8S_POD_NAMESPACE=red"}, "KEY=VALUE"},
        {{"ADD", "a", "/n", "eth0", "K8S_POD_NAMESPACE=red;K8S_POD_NAME=web;FOO=1"}, "\"FOO\""},
        {{"ADD", "a", "/n", "eth0", "IgnoreUnknown=0;K8S_POD_NAMESPACE=red;K8S_POD_NAME=web;F=1"},
         "\"F\""},
        {{"ADD", "a", "/n", "eth0", ARGS ";K8S_POD_NAMESPACE=blue"},
         "\"K8S_POD_NAMESPACE\" is given twice"},
        {{"ADD", "a", "/n", "eth0", ARGS ";K8S_POD_NAME=web"}, "\"K8S_POD_NAME\" is given twice"},
        {{"ADD", "a", "/n", "eth0", ARGS ";IgnoreUnknown=0"}, "\"IgnoreUnknown\" is given twice"},
        {{"ADD", "a", "/n", "eth0", ARGS ";F=1;G=1;F=2"}, "\"F\" is given twice"},
        {{"DEL", "a", "/n", "eth0", ARGS ";K8S_POD_UID=2"}, "\"K8S_POD_UID\" is given twice"},
        {{"CHECK", "a", NULL, "eth0", ARGS}, "CNI_NETNS"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cni_request_done) struct cni_request r = {0};
        struct cni_error e = {0};
        const char *conf = "{\"cniVersion\":\"0.4.0\",\"name\":\"n\",\"type\":\"x\"}";
        if (cases[i].env.command && streq(cases[i].env.command, "CHECK")) {
            conf = "{\"cniVersion\":\"0.4.0\",\"name\":\"n\",\"type\":\"x\",\"prevResult\":{}}";
        }
        print_message("%zu %s\n", i, cases[i].needle);
        assert_true(read_request(&cases[i].env, conf, &r, &e) < 0);
        assert_int_equal(e.code, CNI_INVALID_ENVIRONMENT);
        assert_non_null(strstr(e.details, cases[i].needle));
        if (strstr(cases[i].needle, "CNI_COMMAND") == NULL) {
            assert_int_equal(e.version, CNI_0_4_0);
        }
    }
}

static void del_needs_neither_netns_nor_pod(void **state)
{
    (void) state;
    CLEANUP(cni_request_done) struct cni_request r = {0};
    struct cni_error e = {0};
    struct cni_env env = {.command = "DEL", .container_id = "a", .ifname = "eth0", .netns = ""};
    assert_int_equal(read_request(&env,
                                  "{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\","
                                  "\"prevResult\":{\"cniVersion\":\"1.0.0\"}}",
                                  &r, &e),
                     0);
    assert_null(r.netns);
    assert_null(r.pod_name);
}

static void check_begins_with_0_4_0_and_needs_a_previous_result(void **state)
{
    (void) state;
    struct cni_env env = add_env;
    env.command = "CHECK";
    CLEANUP(cni_request_done) struct cni_request r = {0};
    struct cni_error e = {0};
    assert_true(read_request(&env, CONF, &r, &e) < 0);
    assert_int_equal(e.code, CNI_INVALID_CONFIG);
    assert_non_null(strstr(e.details, "prevResult"));
    assert_true(read_request(&env,
                             "{\"cniVersion\":\"0.3.1\",\"name\":\"a\",\"type\":\"x\","
                             "\"prevResult\":{}}",
                             &r, &e) < 0);
    assert_int_equal(e.code, CNI_INCOMPATIBLE_VERSION);
    assert_non_null(strstr(e.details, "0.3.1"));
}

static void errors_are_objects_of_the_specification_also_with_wild_texts(void **state)
{
    (void) state;
    struct cni_error e = {.version = CNI_0_3_1};
    assert_true(cni_fail(&e, CNI_TRY_AGAIN, "a \"b\"", "%s", "line\n\x01\xff end") < 0);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    cni_error_write(&e, &b);
    CLEANUP(json_free) struct json *v = NULL;
    assert_int_equal(json_parse(b.data, b.size, &v, NULL), 0);
    assert_string_equal(json_path_string(v, "cniVersion", NULL), "0.3.1");
    assert_int_equal(json_get_int_or(json_get(v, "code"), 0), 11);
    assert_string_equal(json_path_string(v, "msg", NULL), "a \"b\"");
    assert_non_null(strstr(json_path_string(v, "details", NULL), " end"));
}

static void a_request_survives_the_way_to_the_agent(void **state)
{
    (void) state;
    static const char conf[] =
        "{\"cniVersion\":\"0.4.0\",\"name\":\"n\",\"type\":\"x\",\"socket\":\"/s\","
        "\"dns\":{\"domain\":\"d\"},\"prevResult\":{\n\"a\":[1]}}";
    struct cni_env env = add_env;
    env.command = "CHECK";
    CLEANUP(cni_request_done) struct cni_request r = {0}, s = {0};
    struct cni_error e = {0};
    assert_int_equal(read_request(&env, conf, &r, &e), 0);
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT, again = STRBUF_INIT;
    cni_request_write(&r, &line);
    assert_null(memchr(line.data, '\n', line.size));
    assert_int_equal(cni_request_parse(line.data, line.size, &s, &e), 0);
    assert_int_equal(s.command, CNI_CHECK);
    assert_string_equal(s.netns, "/run/netns/web");
    assert_true(json_equal(r.config.prev_result, s.config.prev_result));
    assert_true(json_equal(r.config.dns, s.config.dns));
    cni_request_write(&s, &again);
    assert_string_equal(again.data, line.data);
}

static void the_agent_validates_again(void **state)
{
    (void) state;
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"command\":\"VERSION\"}",
                                      "{\"command\":\"ADD\"}",
                                      "{\"command\":\"ADD\",\"config\":" CONF "}",
                                      "{\"command\":\"ADD\",\"config\":" CONF
                                      ",\"containerID\":\"a\",\"ifname\":\"../x\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(cni_request_done) struct cni_request r = {0};
        struct cni_error e = {0};
        assert_true(cni_request_parse(bad[i], strlen(bad[i]), &r, &e) < 0);
        assert_true(e.code > 0);
    }
}

static void a_request_that_cannot_be_read_is_refused_in_the_latest_version(void **state)
{
    (void) state;
    CLEANUP(cni_request_done) struct cni_request r = {0};
    struct cni_error e = {.version = CNI_0_3_1};
    assert_true(cni_request_parse("{", 1, &r, &e) < 0);
    assert_int_equal(e.version, CNI_1_1_0);
}

/* podman and cnitool name none. */
static void container_without_a_pod_is_of_the_configured_project(void **state)
{
    (void) state;
    CLEANUP(cni_request_done) struct cni_request r = {0}, named = {0}, bad = {0};
    struct cni_error e = {0};
    struct cni_env env = {"ADD", "abc123", "/n", "eth0", "IgnoreUnknown=1"};
    const char *conf =
        "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"x\",\"project\":\"red\"}";
    assert_int_equal(read_request(&env, conf, &r, &e), 0);
    assert_string_equal(r.pod_namespace, "red");
    assert_string_equal(r.pod_name, "abc123");
    CLEANUP(cni_request_done) struct cni_request podman = {0};
    env.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=;K8S_POD_NAME=wise_fox";
    assert_int_equal(read_request(&env, conf, &podman, &e), 0);
    assert_string_equal(podman.pod_namespace, "red");
    assert_string_equal(podman.pod_name, "abc123");
    /* Its engine binds its host ports itself, which the agent must know, and know after
     * it was started again. */
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
    CLEANUP(cni_request_done) struct cni_request sent = {0};
    cni_request_write(&podman, &line);
    assert_int_equal(cni_request_parse(line.data, line.size, &sent, &e), 0);
    assert_true(sent.config.runtime.by_engine);
    CLEANUP(cni_runtime_done) struct cni_runtime stored = {0};
    assert_int_equal(cni_host_ports_parse("tcp:8080:80,engine", &stored), 0);
    assert_true(stored.by_engine);
    CLEANUP_FREE char *text = cni_host_ports_text(&stored);
    assert_string_equal(text, "tcp:8080:80,engine");
    assert_int_equal(cni_host_ports_parse("tcp:8080:80", &stored), 0);
    assert_false(stored.by_engine);
    assert_int_equal(read_request(&add_env, conf, &named, &e), 0);
    assert_string_not_equal(named.pod_name, add_env.container_id);
    assert_true(read_request(&env,
                             "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"x\","
                             "\"project\":\"a b\"}",
                             &bad, &e) < 0);
    assert_int_equal(e.code, CNI_INVALID_CONFIG);
    assert_non_null(strstr(e.details, "project: \"a b\""));
}

static void gc_and_status_are_of_no_container_and_of_1_1_0(void **state)
{
    (void) state;
    static const struct {
        const char *command, *version, *valid;
        int code;
        const char *needle;
    } cases[] = {
        {"STATUS", "1.1.0", NULL, 0, NULL},
        {"STATUS", "1.0.0", NULL, CNI_INCOMPATIBLE_VERSION, "has no STATUS"},
        {"GC", "1.0.0", "[]", CNI_INCOMPATIBLE_VERSION, "has no GC"},
        {"GC", "1.1.0", NULL, CNI_INVALID_CONFIG, "cni.dev/valid-attachments: is missing"},
        {"GC", "1.1.0", "{}", CNI_INVALID_CONFIG, "cni.dev/valid-attachments: is not a list"},
        {"GC", "1.1.0", "[{\"containerID\":\"a\"}]", CNI_INVALID_CONFIG, "[0].ifname"},
        {"GC", "1.1.0", "[{\"containerID\":7,\"ifname\":\"eth0\"}]", CNI_INVALID_CONFIG,
         "[0].containerID"},
        {"GC", "1.1.0", "[]", 0, NULL},
        {"GC", "1.1.0", "[{\"containerID\":\"a\",\"ifname\":\"eth0\"}]", 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cni_request_done) struct cni_request r = {0};
        CLEANUP(cni_request_done) struct cni_request again = {0};
        CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
        struct cni_error e = {0};
        struct cni_env env = {.command = cases[i].command};
        CLEANUP_FREE char *valid =
            cases[i].valid ? xasprintf(",\"cni.dev/valid-attachments\":%s", cases[i].valid)
                           : xstrdup("");
        CLEANUP_FREE char *conf =
            xasprintf("{\"cniVersion\":\"%s\",\"cniVersions\":[\"1.0.0\",\"1.1.0\"],\"name\":\"n\","
                      "\"type\":\"x\"%s}",
                      cases[i].version, valid);
        int err = read_request(&env, conf, &r, &e);
        print_message("%zu %s\n", i, e.details);
        assert_int_equal(err < 0 ? (int) e.code : 0, cases[i].code);
        if (err < 0) {
            assert_non_null(strstr(e.details, cases[i].needle));
            continue;
        }
        cni_request_write(&r, &line);
        assert_int_equal(cni_request_parse(line.data, line.size, &again, &e), 0);
        assert_int_equal(again.command, r.command);
        if (i == ARRAY_SIZE(cases) - 1) {
            assert_true(cni_is_valid_attachment(again.config.valid, "a", "eth0"));
            assert_false(cni_is_valid_attachment(again.config.valid, "a", "eth1"));
            assert_false(cni_is_valid_attachment(again.config.valid, "b", "eth0"));
        }
    }
}

static void version_is_answered_in_the_version_asked(void **state)
{
    (void) state;
    static const char list[] = "\"supportedVersions\":[\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}";
    static const struct {
        const char *in, *version;
    } good[] = {{"", "1.1.0"},
                {"{}", "1.1.0"},
                {"{\"cniVersion\":\"0.3.1\"}", "0.3.1"},
                {"{\"cniVersion\":\"7.1.0\",\"x\":1}", "7.1.0"}};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct cni_error e = {0};
        assert_int_equal(cni_version_answer(good[i].in, strlen(good[i].in), &out, &e), 0);
        char want[200];
        snprintf(want, sizeof want, "{\"cniVersion\":\"%s\",%s", good[i].version, list);
        assert_string_equal(out.data, want);
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct cni_error e = {0};
    assert_true(cni_version_answer("{", 1, &out, &e) < 0);
    assert_int_equal(e.code, CNI_DECODE_FAILURE);
    assert_true(cni_version_answer("[]", 2, &out, &e) < 0);
    assert_int_equal(e.code, CNI_INVALID_CONFIG);
    assert_int_equal(out.size, 0);
}

static const struct cni_result result = {.host_if = "veth01234567",
                                         .host_mac =
                                             &(const struct mac){{0xee, 0x58, 10, 128, 0, 2}},
                                         .ifname = "eth0",
                                         .netns = "/run/netns/web",
                                         .mac = {{0x0a, 0x58, 10, 128, 0, 2}},
                                         .address = {0x0a800002, 23},
                                         .gateway = 0x0a800001,
                                         .mtu = 1450};

static void results_are_in_the_form_of_their_version(void **state)
{
    (void) state;
    for (enum cni_version ver = CNI_0_3_1; ver < CNI_N_VERSIONS; ver++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        cni_result_write(&result, ver, &b);
        CLEANUP(json_free) struct json *v = NULL;
        assert_int_equal(json_parse(b.data, b.size, &v, NULL), 0);
        assert_string_equal(json_path_string(v, "cniVersion", NULL), cni_versions[ver]);
        struct json *ip = json_at(json_get(v, "ips"), 0);
        assert_string_equal(json_path_string(ip, "address", NULL), "10.128.0.2/23");
        assert_string_equal(json_path_string(ip, "gateway", NULL), "10.128.0.1");
        assert_int_equal(json_get_int_or(json_get(ip, "interface"), -1), 1);
        if (ver < CNI_1_0_0) {
            assert_string_equal(json_path_string(ip, "version", NULL), "4");
        } else {
            assert_null(json_get(ip, "version"));
        }
        struct json *eth = json_at(json_get(v, "interfaces"), 1);
        assert_string_equal(json_path_string(eth, "name", NULL), "eth0");
        assert_string_equal(json_path_string(eth, "mac", NULL), "0a:58:0a:80:00:02");
        assert_string_equal(json_path_string(eth, "sandbox", NULL), "/run/netns/web");
        assert_int_equal(json_get_int_or(json_get(eth, "mtu"), 0), ver < CNI_1_1_0 ? 0 : 1450);
        struct json *host = json_at(json_get(v, "interfaces"), 0);
        assert_string_equal(json_path_string(host, "name", NULL), "veth01234567");
        assert_null(json_get(host, "sandbox"));
        assert_string_equal(json_path_string(json_at(json_get(v, "routes"), 0), "dst", NULL),
                            "0.0.0.0/0");
        assert_true(json_is(json_get(v, "dns"), JSON_OBJECT));
        struct cni_error e = {0};
        assert_int_equal(cni_result_check(&result, v, &e), 0);
    }
    /* The runtime's own settings of DNS come back, in one line. */
    CLEANUP(json_free) struct json *dns = NULL;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct cni_result with_dns = result;
    assert_int_equal(json_parse("{\"domain\":\"a\"}", 14, &dns, NULL), 0);
    with_dns.dns = dns;
    cni_result_write(&with_dns, CNI_1_0_0, &b);
    assert_non_null(strstr(strbuf_cstr(&b), "\"dns\":{\"domain\":\"a\"}}"));
}

static void check_names_what_differs_from_the_previous_result(void **state)
{
    (void) state;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    cni_result_write(&result, CNI_1_0_0, &b);
    CLEANUP(json_free) struct json *prev = NULL;
    assert_int_equal(json_parse(b.data, b.size, &prev, NULL), 0);
    struct cni_error e = {0};
    struct cni_result r = result;
    r.ifname = "eth1";
    assert_true(cni_result_check(&r, prev, &e) < 0);
    assert_non_null(strstr(e.details, "eth1"));
    r = result;
    r.address.addr++;
    assert_true(cni_result_check(&r, prev, &e) < 0);
    assert_int_equal(e.code, CNI_CHECK_FAILED);
    assert_non_null(strstr(e.details, "10.128.0.3/23"));
    r = result;
    r.mac.b[5]++;
    assert_true(cni_result_check(&r, prev, &e) < 0);
    assert_non_null(strstr(e.details, "0a:58:0a:80:00:03"));
    r = result;
    r.netns = "/other";
    assert_true(cni_result_check(&r, prev, &e) < 0);
    assert_non_null(strstr(e.details, "/other"));
    json_remove(prev, "ips");
    assert_true(cni_result_check(&result, prev, &e) < 0);
    assert_int_equal(e.code, CNI_INVALID_CONFIG);
    assert_non_null(strstr(e.details, "prevResult.ips"));
}

/* As podman writes it, and containerd, whose structure's names are written as they are. */
static void what_the_runtime_hands_over_reaches_the_agent(void **state)
{
    (void) state;
    static const char *const confs[] = {
        "{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"chained\":[\"portmap\"],"
        "\"runtimeConfig\":{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,"
        "\"protocol\":\"tcp\"},{\"hostPort\":53,\"containerPort\":5353,\"protocol\":\"UDP\","
        "\"hostIP\":\"10.0.0.1\"},{\"hostPort\":0,\"containerPort\":5}],"
        "\"bandwidth\":{\"ingressRate\":8000000,\"ingressBurst\":2147483647,"
        "\"egressRate\":4000,\"egressBurst\":64000}}}",
        "{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"x\",\"chained\":[\"portmap\"],"
        "\"runtimeConfig\":{\"portMappings\":[{\"HostPort\":8080,\"ContainerPort\":80,"
        "\"Protocol\":\"tcp\",\"HostIP\":\"\"},{\"HostPort\":53,\"ContainerPort\":5353,"
        "\"Protocol\":\"udp\",\"HostIP\":\"10.0.0.1\"}],"
        "\"bandwidth\":{\"IngressRate\":8000000,\"IngressBurst\":4294967295,"
        "\"EgressRate\":4000,\"EgressBurst\":64000}}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(confs); i++) {
        CLEANUP(cni_request_done) struct cni_request sent = {0}, r = {0};
        struct cni_error e = {0};
        assert_int_equal(read_request(&add_env, confs[i], &sent, &e), 0);
        CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
        cni_request_write(&sent, &line);
        assert_int_equal(cni_request_parse(line.data, line.size, &r, &e), 0);
        assert_false(r.config.runtime.by_engine);
        CLEANUP_FREE char *ports = cni_host_ports_text(&r.config.runtime);
        CLEANUP_FREE char *bandwidth = cni_bandwidth_text(&r.config.runtime.bandwidth);
        assert_string_equal(ports, "tcp:8080:80,udp:10.0.0.1:53:5353");
        assert_string_equal(bandwidth, "to=8000000/0,from=4000/64000");
        assert_true(r.config.chained_portmap);
        assert_false(r.config.chained_bandwidth);
    }
}

static void what_the_runtime_may_not_ask_for_is_named(void **state)
{
    (void) state;
    static const struct {
        const char *config;
        int error;
        const char *says;
    } rows[] = {
        {"[]", -EINVAL, "is not an object"},
        {"{\"ips\":[],\"mac\":null,\"aliases\":{}}", 0, NULL},
        {"{\"ips\":[\"10.0.0.1\"]}", -ENOTSUP, "ips: [\"10.0.0.1\"]"},
        {"{\"aliases\":{\"a\":[]}}", -ENOTSUP, "aliases"},
        {"{\"mac\":\"\"}", -ENOTSUP, "mac"},
        {"{\"portMappings\":{}}", -EINVAL, "portMappings: is not a list"},
        {"{\"portMappings\":[7]}", -EINVAL, "portMappings[0]: is not an object"},
        {"{\"portMappings\":[{\"hostPort\":80,\"containerPort\":0}]}", -EINVAL,
         "portMappings[0]: containerPort: is not a number in 1-65535"},
        {"{\"portMappings\":[{\"hostPort\":65536,\"containerPort\":1}]}", -EINVAL,
         "portMappings[0]: hostPort: is not a number in 0-65535"},
        {"{\"portMappings\":[{\"hostPort\":-1,\"containerPort\":1}]}", -EINVAL, "hostPort"},
        {"{\"portMappings\":[{\"hostPort\":65535,\"containerPort\":65535}]}", 0, NULL},
        {"{\"portMappings\":[{\"hostPort\":80,\"containerPort\":1,\"protocol\":\"icmp\"}]}",
         -EINVAL, "portMappings[0]: protocol: \"icmp\" is not tcp, udp or sctp"},
        {"{\"portMappings\":[{\"hostPort\":80,\"containerPort\":1,\"protocol\":\"\"}]}", 0, NULL},
        {"{\"portMappings\":[{\"hostPort\":80,\"containerPort\":1,\"hostIP\":\"::1\"}]}", -EINVAL,
         "portMappings[0]: hostIP: \"::1\" is not an IPv4 address"},
        {"{\"portMappings\":[{\"hostPort\":80,\"containerPort\":1,\"hostIP\":\"::\"}]}", 0, NULL},
        {"{\"portMappings\":[{\"hostPort\":80,\"containerPort\":1},{\"hostPort\":80,"
         "\"containerPort\":2}]}",
         -EEXIST, "portMappings[1]"},
        {"{\"bandwidth\":[]}", -EINVAL, "bandwidth: is not an object"},
        {"{\"bandwidth\":{\"ingressRate\":999}}", -EINVAL, "bandwidth.ingressRate: 999"},
        {"{\"bandwidth\":{\"ingressRate\":1000}}", 0, NULL},
        {"{\"bandwidth\":{\"egressRate\":1000000000000000}}", 0, NULL},
        {"{\"bandwidth\":{\"egressRate\":1000000000000001}}", -EINVAL, "bandwidth.egressRate"},
        {"{\"bandwidth\":{\"egressRate\":-1}}", -EINVAL, "bandwidth.egressRate"},
        {"{\"bandwidth\":{\"egressBurst\":\"1\"}}", -EINVAL, "bandwidth.egressBurst"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
        CLEANUP(json_free) struct json *v = NULL;
        struct err e = {0};
        assert_int_equal(json_parse(rows[i].config, strlen(rows[i].config), &v, NULL), 0);
        int k = cni_runtime_parse(v, &r, &e);
        if (k != rows[i].error || (k < 0 && !strstr(e.text, rows[i].says))) {
            fail_msg("%s: %d: %s", rows[i].config, k, e.text);
        }
    }
}

/* 512 ports of the host for a pod, and no more. */
static void a_pod_has_so_many_host_ports(void **state)
{
    (void) state;
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
    for (unsigned i = 0; i <= CNI_MAX_HOST_PORTS; i++) {
        struct err e = {0};
        const struct cni_host_port p = {CNI_TCP, 0, (uint16_t) (i + 1), 80};
        int k = cni_runtime_add_port(&r, &p, &e);
        assert_true(i < CNI_MAX_HOST_PORTS ? k == 0 : k < 0);
    }
    assert_int_equal(r.n_ports, CNI_MAX_HOST_PORTS);
}

static void stored_texts_are_read_back_or_refused(void **state)
{
    (void) state;
    static const char *const bad_ports[] = {"tcp",         "tcp:1",       "tcp:0:1",
                                            "tcp:1:0",     "icmp:1:1",    "tcp:x:1:1",
                                            "tcp:1:1:1:1", "tcp:65536:1", "tcp:1:1,tcp:1:2"};
    static const char *const bad_rates[] = {"",
                                            "to=",
                                            "to=1/2",
                                            "to=1/2,from=3",
                                            "to=1/2,from=3/x",
                                            "to=-1/2,from=3/4",
                                            "to=1/2,from=3/4,"};
    struct cni_runtime r = {0};
    struct cni_bandwidth b;
    for (size_t i = 0; i < ARRAY_SIZE(bad_ports); i++) {
        assert_int_equal(cni_host_ports_parse(bad_ports[i], &r), -EINVAL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad_rates); i++) {
        assert_int_equal(cni_bandwidth_parse(bad_rates[i], &b), -EINVAL);
    }
    assert_int_equal(cni_bandwidth_parse("elsewhere", &b), 0);
    assert_true(b.elsewhere && !b.to_pod);
    assert_int_equal(cni_bandwidth_parse("to=5000/0,from=0/0", &b), 0);
    assert_true(b.to_pod == 5000 && !b.elsewhere);
    cni_runtime_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_add_is_read_whole),
        cmocka_unit_test(the_socket_has_a_default),
        cmocka_unit_test(bad_configurations_get_their_code_and_name_the_field),
        cmocka_unit_test(bad_environments_are_code_4_and_name_the_variable),
        cmocka_unit_test(del_needs_neither_netns_nor_pod),
        cmocka_unit_test(check_begins_with_0_4_0_and_needs_a_previous_result),
        cmocka_unit_test(errors_are_objects_of_the_specification_also_with_wild_texts),
        cmocka_unit_test(a_request_survives_the_way_to_the_agent),
        cmocka_unit_test(the_agent_validates_again),
        cmocka_unit_test(a_request_that_cannot_be_read_is_refused_in_the_latest_version),
        cmocka_unit_test(what_the_runtime_hands_over_reaches_the_agent),
        cmocka_unit_test(what_the_runtime_may_not_ask_for_is_named),
        cmocka_unit_test(a_pod_has_so_many_host_ports),
        cmocka_unit_test(stored_texts_are_read_back_or_refused),
        cmocka_unit_test(container_without_a_pod_is_of_the_configured_project),
        cmocka_unit_test(gc_and_status_are_of_no_container_and_of_1_1_0),
        cmocka_unit_test(version_is_answered_in_the_version_asked),
        cmocka_unit_test(results_are_in_the_form_of_their_version),
        cmocka_unit_test(check_names_what_differs_from_the_previous_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
