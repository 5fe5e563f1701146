/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, paths and kubeconfig files. */
#include "../apiserver/harness.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"

static struct api_client *connect_to(struct harness *h)
{
    struct api_client *c;
    struct err e = {0};
    CLEANUP_FREE char *url = harness_url(h);
    if (api_client_new(h->loop, url, "test", &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

static void answers_become_objects_and_errors(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct api_client *c = connect_to(h);
    struct err e = {0};
    struct json *obj = NULL;
    free(make_net(h, "a", 11, NULL));
    assert_int_equal(api_request_sync(c, "GET", NETS "/a", NULL, NULL, NULL, &obj, &e), 0);
    assert_int_equal(json_get_int_or(json_get(obj, "netid"), 0), 11);

    static const struct {
        const char *method, *path, *body;
        int error;
        const char *text;
    } cases[] = {
        {"GET", NETS "/none", NULL, -ENOENT,
         "netnamespaces.network.openshift.io \"none\" not found"},
        {"POST", NETS, "{\"metadata\":{\"name\":\"a\"},\"netname\":\"a\",\"netid\":11}", -EEXIST,
         "already exists"},
        {"PUT", NETS "/a",
         "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"netname\":\"a\",\"netid\":11}",
         -ESTALE, "has been modified"},
        {"POST", NETS, "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\"}", -EINVAL, "netid"},
        {"POST", NETS, "[]", -EINVAL, "not an object"},
        {"POST", NETS "/a", "{}", -EOPNOTSUPP, "does not allow this method"},
        {"GET", NETS "?resourceVersion=999999", NULL, -EAGAIN, "Too large resource version"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *body = NULL, *ret = NULL;
        if (cases[i].body) {
            assert_int_equal(json_parse(cases[i].body, strlen(cases[i].body), &body, NULL), 0);
        }
        int r = api_request_sync(c, cases[i].method, cases[i].path, NULL, NULL, body, &ret, &e);
        if (r != cases[i].error || !strstr(e.text, cases[i].text) || ret) {
            fail_msg("%s %s: %d: %s", cases[i].method, cases[i].path, r, e.text);
        }
        json_free(body);
    }
    json_free(obj);
    api_client_free(c);
    harness_free(h);
}

/* "/STATUS/REASON" is answered so. */
static void answer_as_asked(void *ctx, struct http_exchange *x)
{
    const char *path = http_path(x);
    uint64_t status = 500;
    CLEANUP_FREE char *number = xstrndup(path + 1, strcspn(path + 1, "/"));
    assert_int_equal(str_to_u64(number, 599, &status), 0);
    CLEANUP_FREE char *body =
        xasprintf("{\"kind\":\"Status\",\"reason\":\"%s\",\"message\":\"said so\"}",
                  path + 2 + strlen(number));
    http_respond(x, (int) status, "application/json", body, strlen(body));
}

static void each_status_is_an_error_of_its_own(void **state)
{
    static const struct {
        const char *path;
        int error;
    } rows[] = {
        {"/400/BadRequest", -EINVAL},
        {"/415/UnsupportedMediaType", -EINVAL},
        {"/422/Invalid", -EINVAL},
        {"/401/Unauthorized", -EPERM},
        {"/403/Forbidden", -EACCES},
        {"/404/NotFound", -ENOENT},
        {"/405/MethodNotAllowed", -EOPNOTSUPP},
        {"/409/AlreadyExists", -EEXIST},
        {"/409/Conflict", -ESTALE},
        {"/410/Expired", -ESTALE},
        {"/429/TooManyRequests", -EAGAIN},
        {"/500/InternalError", -EAGAIN},
        {"/504/Timeout", -EAGAIN},
        {"/418/Teapot", -EPROTO},
        {"/499/Other", -EPROTO},
        {"/200/Success", 0},
        {"/201/Created", 0},
    };
    struct loop *loop = loop_new();
    struct http_server *server = http_server_new(loop, NULL, answer_as_asked, NULL);
    struct err e = {0};
    struct api_client *c;
    int fd;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", sock_local_port(fd));
    assert_int_equal(http_server_add_listener(server, fd, &e), 0);
    assert_int_equal(api_client_new(loop, url, "test", &c, &e), 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int r = api_request_sync(c, "GET", rows[i].path, NULL, NULL, NULL, NULL, &e);
        if (r != rows[i].error || (r < 0 && !strstr(e.text, "said so"))) {
            fail_msg("%s: %d: %s", rows[i].path, r, e.text);
        }
    }
    api_client_free(c);
    http_server_free(server);
    loop_free(loop);
}

static void a_kubeconfig_that_is_not_there_is_an_error(void **state)
{
    struct api_client *c = NULL;
    struct err e = {0};
    struct loop *loop = loop_new();
    assert_int_equal(api_client_from_kubeconfig(loop, "/nonexistent/config", "test", &c, &e),
                     -ENOENT);
    assert_null(c);
    char path[] = "/tmp/tenet-kubeconfig-XXXXXX";
    int fd = mkstemp(path);
    assert_true(dprintf(fd, "clusters: [{name: c, cluster: {server: 'ftp://a'}}]\n"
                            "contexts: [{name: x, context: {cluster: c}}]\n"
                            "current-context: x\n") > 0);
    close(fd);
    assert_int_equal(api_client_from_kubeconfig(loop, path, "test", &c, &e), -EINVAL);
    assert_non_null(strstr(e.text, "ftp://a"));
    assert_null(c);
    unlink(path);
    loop_free(loop);
}

static void nobody_there_is_an_error_that_names_the_address(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct api_client *c = connect_to(h);
    struct err e = {0};
    harness_stop_listening(h);
    int r = api_request_sync(c, "GET", NETS, NULL, NULL, NULL, NULL, &e);
    assert_int_equal(r, -ECONNREFUSED);
    assert_non_null(strstr(e.text, "127.0.0.1"));
    api_client_free(c);
    harness_free(h);
}

/* The request that fails is the caller's to repeat; it then goes to the next server,
 * and further ones too. */
static void the_next_server_is_used_when_one_fails(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    CLEANUP_FREE char *url = harness_url(h);
    struct kubeconfig k = {.server = (char *) "http://127.0.0.1:1", .more_servers = url};
    struct api_client *c;
    struct err e = {0};
    assert_int_equal(api_client_with(h->loop, &k, "test", &c, &e), 0);
    assert_string_equal(api_client_server(c), "http://127.0.0.1:1");
    assert_int_equal(api_request_sync(c, "GET", NETS, NULL, NULL, NULL, NULL, &e), -ECONNREFUSED);
    assert_string_equal(api_client_server(c), url);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(api_request_sync(c, "GET", NETS, NULL, NULL, NULL, NULL, &e), 0);
    }
    /* What is the client's own fault is no reason to go. */
    assert_int_equal(api_request_sync(c, "GET", NETS "/none", NULL, NULL, NULL, NULL, &e), -ENOENT);
    assert_string_equal(api_client_server(c), url);
    apiserver_shutdown(h->api);
    assert_int_equal(api_request_sync(c, "GET", NETS, NULL, NULL, NULL, NULL, &e), -EAGAIN);
    assert_string_equal(api_client_server(c), "http://127.0.0.1:1");
    api_client_free(c);
    k.more_servers = (char *) "http://127.0.0.1:2,nonsense";
    assert_int_equal(api_client_with(h->loop, &k, "test", &c, &e), -EINVAL);
    assert_non_null(strstr(e.text, "nonsense"));
    harness_free(h);
}

static void count_calls(void *ctx, int error, const char *text, struct json *obj)
{
    ++*(int *) ctx;
}

static void cancelled_requests_do_not_call_back(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct api_client *c = connect_to(h);
    int cancelled = 0, abandoned = 0, kept = 0;
    struct api_call *call = api_request(c, "GET", NETS, NULL, NULL, count_calls, &cancelled);
    api_request(c, "GET", NETS, NULL, NULL, count_calls, &kept);
    api_call_cancel(call);
    CLEANUP_ANSWER struct answer a = ask(h, "GET", NETS, NULL);
    assert_int_equal(api_request_sync(c, "GET", NETS, NULL, NULL, NULL, NULL, NULL), 0);
    assert_int_equal(cancelled, 0);
    assert_int_equal(kept, 1);
    api_request(c, "GET", NETS, NULL, NULL, count_calls, &abandoned);
    api_client_free(c);
    CLEANUP_ANSWER struct answer b = ask(h, "GET", NETS, NULL);
    assert_int_equal(abandoned, 0);
    harness_free(h);
}

static void paths_are_escaped(void **state)
{
    CLEANUP_FREE char *a = api_path("v1", "pods", "red", "web", "status");
    CLEANUP_FREE char *b = api_path("network.openshift.io/v1", "hostsubnets", NULL, "a b/c", NULL);
    CLEANUP_FREE char *c = api_path("v1", "nodes", NULL, NULL, NULL);
    assert_string_equal(a, "/api/v1/namespaces/red/pods/web/status");
    assert_string_equal(b, "/apis/network.openshift.io/v1/hostsubnets/a%20b%2Fc");
    assert_string_equal(c, "/api/v1/nodes");
}

/* ---- kubeconfig ---- */

static char *directory;

static int make_directory(void **state)
{
    char template[] = "/tmp/tenet-kubeconfig-XXXXXX";
    directory = xstrdup(mkdtemp(template));
    return 0;
}

static int remove_directory(void **state)
{
    CLEANUP_FREE char *config = xasprintf("%s/config", directory);
    CLEANUP_FREE char *token = xasprintf("%s/token", directory);
    unlink(config);
    unlink(token);
    rmdir(directory);
    free(directory);
    return 0;
}

static int load(const char *text, struct kubeconfig *ret, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/config", directory);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
    return kubeconfig_load(path, ret, e);
}

#define CONTEXTS                                                       \
    "current-context: b\n"                                             \
    "contexts:\n"                                                      \
    "- {name: a, context: {cluster: one, user: x}}\n"                  \
    "- {name: b, context: {cluster: two, user: me, namespace: red}}\n" \
    "clusters:\n"                                                      \
    "- {name: one, cluster: {server: 'http://192.0.2.1:1'}}\n"         \
    "- {name: two, cluster: {server: 'http://192.0.2.2:2'}}\n"

static void the_current_context_is_used(void **state)
{
    struct kubeconfig k = {0};
    struct err e = {0};
    assert_int_equal(load(CONTEXTS "users:\n- {name: me, user: {token: secret}}\n", &k, &e), 0);
    assert_string_equal(k.server, "http://192.0.2.2:2");
    assert_string_equal(k.token, "secret");
    assert_string_equal(k.ns, "red");
    kubeconfig_done(&k);
    /* Nobody needs a user. */
    assert_int_equal(load(CONTEXTS, &k, &e), 0);
    assert_null(k.token);
    kubeconfig_done(&k);
}

static void a_token_may_be_in_a_file_beside_it(void **state)
{
    struct kubeconfig k = {0};
    struct err e = {0};
    CLEANUP_FREE char *path = xasprintf("%s/token", directory);
    assert_int_equal(file_write_atomic(path, "abc\n", 4, 0600, NULL), 0);
    assert_int_equal(
        load(CONTEXTS "users:\n- {name: me, user: {tokenFile: token, token: other}}\n", &k, &e), 0);
    assert_string_equal(k.token, "abc");
    kubeconfig_done(&k);
    assert_int_equal(load(CONTEXTS "users:\n- {name: me, user: {tokenFile: none}}\n", &k, &e),
                     -ENOENT);
    assert_non_null(strstr(e.text, "tokenFile"));
}

static void what_is_wrong_in_a_kubeconfig_is_named(void **state)
{
    static const char *const cases[][2] = {
        {"{", "line"},
        {"", "current-context is not set"},
        {"current-context: x\n", "\"x\" is not in contexts"},
        {"current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n",
         "cluster \"c\" of context \"a\" has no server"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kubeconfig k = {0};
        struct err e = {0};
        assert_int_equal(load(cases[i][0], &k, &e), -EINVAL);
        if (!strstr(e.text, cases[i][1]) || !strstr(e.text, "/config")) {
            fail_msg("%s", e.text);
        }
    }
}

static void tls_settings_are_read(void **state)
{
    struct kubeconfig k = {0};
    struct err e = {0};
    static const char files[] =
        "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: token,\n"
        "  tls-server-name: api}}]\n"
        "users: [{name: u, user: {client-certificate: token, client-key-data: a2V5}}]\n";
    CLEANUP_FREE char *path = xasprintf("%s/token", directory);
    assert_int_equal(file_write_atomic(path, "pem\n", 4, 0600, NULL), 0);
    if (load(files, &k, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_string_equal(k.ca, "pem\n");
    assert_string_equal(k.cert, "pem\n");
    assert_string_equal(k.key, "key");
    assert_string_equal(k.server_name, "api");
    assert_false(k.insecure);
    kubeconfig_done(&k);
    static const char insecure[] =
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: true}}]\n";
    assert_int_equal(load(insecure, &k, &e), 0);
    assert_true(k.insecure);
    kubeconfig_done(&k);
}

static void new_certificates_need_a_server_with_https(void **state)
{
    static const struct {
        const char *server, *more;
        int want;
    } cases[] = {
        {"https://127.0.0.1:1", NULL, 0},
        {"https://127.0.0.1:1", "https://127.0.0.1:2", 0},
        {"http://127.0.0.1:1", NULL, -EINVAL},
        {"https://127.0.0.1:1", "http://127.0.0.1:2", -EINVAL},
    };
    CLEANUP(loop_free) struct loop *l = loop_new();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kubeconfig k = {.server = (char *) cases[i].server,
                               .more_servers = (char *) cases[i].more,
                               .insecure = true};
        struct api_client *c = NULL;
        struct err e = {0};
        assert_int_equal(api_client_with(l, &k, "test", &c, &e), 0);
        assert_int_equal(api_client_set_tls(c, &k, &e), cases[i].want);
        assert_true(cases[i].want == 0 || strstr(e.text, "not HTTPS"));
        api_client_free(c);
    }
}

static void tls_settings_that_cannot_be_are_named(void **state)
{
    static const struct {
        const char *cluster, *user;
        int error;
        const char *why;
    } cases[] = {
        {"certificate-authority-data: '*'", "", -EINVAL, "certificate-authority-data: not base64"},
        {"certificate-authority-data: AA==", "", -EINVAL, "not in PEM form"},
        {"certificate-authority: none", "", -ENOENT, "certificate-authority: read "},
        {"certificate-authority-data: AAAB, insecure-skip-tls-verify: true", "", -EINVAL, ""},
        {"certificate-authority-data: YQ==, insecure-skip-tls-verify: true", "", -EINVAL,
         "insecure-skip-tls-verify cannot"},
        {"", "client-certificate-data: YQ==", -EINVAL, "but not client-key"},
        {"", "client-key-data: YQ==", -EINVAL, "but not client-certificate"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kubeconfig k = {0};
        struct err e = {0};
        CLEANUP_FREE char *text =
            xasprintf("current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
                      "clusters: [{name: c, cluster: {server: 'https://h'%s%s}}]\n"
                      "users: [{name: u, user: {%s}}]\n",
                      *cases[i].cluster ? ", " : "", cases[i].cluster, cases[i].user);
        if (load(text, &k, &e) != cases[i].error || !strstr(e.text, cases[i].why)) {
            fail_msg("%zu: %s", i, e.text);
        }
    }
}

static void what_is_written_is_read_again(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/config", directory);
    struct kubeconfig k = {0}, w = {.server = (char *) "https://h:1",
                                    .token = (char *) "t",
                                    .ns = (char *) "red",
                                    .ca = (char *) "ca\n",
                                    .cert = (char *) "cert\n",
                                    .key = (char *) "key\n",
                                    .server_name = (char *) "api"};
    struct err e = {0};
    assert_int_equal(kubeconfig_write(path, "system:admin", &w, &e), 0);
    assert_int_equal(kubeconfig_load(path, &k, &e), 0);
    assert_string_equal(k.server, w.server);
    assert_string_equal(k.token, w.token);
    assert_string_equal(k.ns, w.ns);
    assert_string_equal(k.ca, w.ca);
    assert_string_equal(k.cert, w.cert);
    assert_string_equal(k.key, w.key);
    assert_string_equal(k.server_name, w.server_name);
    kubeconfig_done(&k);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void the_environment_says_where_it_is(void **state)
{
    struct kubeconfig k = {0};
    struct err e = {0};
    CLEANUP_FREE char *entries = xasprintf("%s/config:/nonexistent", directory);
    assert_int_equal(load(CONTEXTS, &k, &e), 0);
    kubeconfig_done(&k);
    setenv("KUBECONFIG", entries, 1);
    assert_int_equal(kubeconfig_load(NULL, &k, &e), 0);
    kubeconfig_done(&k);
    unsetenv("KUBECONFIG");
    setenv("HOME", directory, 1);
    assert_int_equal(kubeconfig_load(NULL, &k, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/.kube/config"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_become_objects_and_errors),
        cmocka_unit_test(each_status_is_an_error_of_its_own),
        cmocka_unit_test(a_kubeconfig_that_is_not_there_is_an_error),
        cmocka_unit_test(nobody_there_is_an_error_that_names_the_address),
        cmocka_unit_test(the_next_server_is_used_when_one_fails),
        cmocka_unit_test(cancelled_requests_do_not_call_back),
        cmocka_unit_test(paths_are_escaped),
        cmocka_unit_test(the_current_context_is_used),
        cmocka_unit_test(a_token_may_be_in_a_file_beside_it),
        cmocka_unit_test(what_is_wrong_in_a_kubeconfig_is_named),
        cmocka_unit_test(tls_settings_are_read),
        cmocka_unit_test(new_certificates_need_a_server_with_https),
        cmocka_unit_test(tls_settings_that_cannot_be_are_named),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(the_environment_says_where_it_is),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
