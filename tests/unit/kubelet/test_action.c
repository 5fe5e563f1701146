/* SPDX-License-Identifier: Apache-2.0 */
/* Actions of hooks and probes that users write, against servers of the test. */
#include "base/timeutil.h"
#include "kubelet/pods/action.h"
#include "net/http/http.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "net/tls/pki.h"

#include "json_text.h"

struct answer {
    struct loop *loop;
    bool done;
    enum action_outcome outcome;
    char text[256];
    int status;           /* What the test's server answers ... */
    const char *location; /* ... and where a path other than "/end" leads; NULL: nowhere. */
    bool silent;          /* It answers nothing, until the action has ended. */
    struct http_exchange *waiting;
    unsigned requests;
    char seen[256]; /* Of the last request: path, Host, User-Agent, Accept, X-Own. */
    struct tls_context *tls;
};

static void ended(void *ctx, enum action_outcome outcome, const char *text)
{
    struct answer *a = ctx;
    a->done = true;
    a->outcome = outcome;
    snprintf(a->text, sizeof a->text, "%s", text);
}

static void respond(void *ctx, struct http_exchange *x)
{
    struct answer *a = ctx;
    static const char *const names[] = {"host", "user-agent", "accept", "x-own"};
    size_t n = (size_t) snprintf(a->seen, sizeof a->seen, "%s", http_path(x));
    a->requests++;
    for (size_t i = 0; i < ARRAY_SIZE(names) && n < sizeof a->seen; i++) {
        const char *v = http_header(x, names[i]);
        n += (size_t) snprintf(a->seen + n, sizeof a->seen - n, "|%s", v ? v : "");
    }
    if (a->silent) {
        a->waiting = x;
        return;
    }
    if (a->location && !streq(http_path(x), "/end")) {
        http_set_header(x, "Location", a->location);
        http_respond(x, a->status, "text/plain", "moved", 5);
    } else {
        http_respond(x, a->location ? 200 : a->status, "text/plain", "x", 1);
    }
}

/* Runs 'handler' against a server that answers as 'a' says, whose port is named "web". */
static struct answer run_with(const char *handler, struct answer a, uint64_t timeout_ms)
{
    a.loop = loop_new();
    struct http_server *s = http_server_new(a.loop, NULL, respond, &a);
    int fd = -1;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    int port = sock_local_port(fd);
    assert_int_equal(http_server_add_listener_tls(s, fd, a.tls, NULL), 0);
    CLEANUP(json_free) struct json *v = from(handler);
    CLEANUP(json_free)
    struct json *container = from("{'name': 'c', 'ports': [{'name': 'web', 'containerPort': 1}]}");
    json_set_int(json_at(json_get(container, "ports"), 0), "containerPort", port);
    struct action_target t = {.container = container, .container_id = "c", .ip = "127.0.0.1"};
    struct action *action = action_begin(a.loop, NULL, v, &t, timeout_ms, ended, &a);
    assert_false(a.done);
    assert_int_equal(loop_run_until(a.loop, &a.done, 10000), 0);
    action_free(action);
    http_server_free(s);
    if (a.waiting) {
        http_respond(a.waiting, a.status, NULL, "", 0);
    }
    loop_free(a.loop);
    return a;
}

static struct answer run(const char *handler, int status, uint64_t timeout_ms)
{
    return run_with(handler, (struct answer){.status = status}, timeout_ms);
}

static void http_is_judged_by_its_status(void **state)
{
    /* As in Kubernetes, a redirect that leads nowhere is a success, with a warning. */
    static const struct {
        int status;
        enum action_outcome want;
    } rows[] = {{200, ACTION_SUCCESS}, {204, ACTION_SUCCESS}, {299, ACTION_SUCCESS},
                {302, ACTION_WARNING}, {304, ACTION_WARNING}, {399, ACTION_WARNING},
                {400, ACTION_FAILURE}, {404, ACTION_FAILURE}, {503, ACTION_FAILURE}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct answer a = run("{'httpGet': {'path': '/', 'port': 'web'}}", rows[i].status, 5000);
        assert_int_equal(a.outcome, rows[i].want);
        assert_int_equal(a.requests, 1);
    }
}

static void redirects_are_followed_to_the_same_host_alone(void **state)
{
    static const struct {
        int status;
        const char *location;
        enum action_outcome want;
        unsigned requests;
        const char *text;
    } rows[] = {
        {302, "/end", ACTION_SUCCESS, 2, ""},
        {301, "end?x=y", ACTION_SUCCESS, 2, ""},
        {308, "/again", ACTION_FAILURE, 11, "stopped after 10 redirects"},
        {307, "http://10.255.255.1/end", ACTION_WARNING, 1,
         "Probe terminated redirects, Response body: moved"},
        {303, "http://metadata.example.com/", ACTION_WARNING, 1,
         "Probe terminated redirects, Response body: moved"},
        {302, "ftp://127.0.0.1/", ACTION_FAILURE, 1,
         "failed to parse Location header: \"ftp://127.0.0.1/\" is no address of HTTP"},
        /* The same host, where nothing listens. */
        {302, "http://127.0.0.1:1/end", ACTION_FAILURE, 1, NULL},
        /* Not a redirect in the sense of HTTP. */
        {300, "/end", ACTION_WARNING, 1, NULL},
        {404, "/end", ACTION_FAILURE, 1, "HTTP probe failed with statuscode: 404"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct answer a =
            run_with("{'httpGet': {'path': '/begin', 'port': 'web'}}",
                     (struct answer){.status = rows[i].status, .location = rows[i].location}, 5000);
        assert_int_equal(a.outcome, rows[i].want);
        assert_int_equal(a.requests, rows[i].requests);
        if (rows[i].text) {
            assert_string_equal(a.text, rows[i].text);
        }
    }
}

static void headers_of_the_user_replace_those_of_the_probe(void **state)
{
    struct answer a = run("{'httpGet': {'path': '/p', 'port': 'web', 'httpHeaders': [{'name': "
                          "'host', 'value': 'example.com'}, {'name': 'X-Own', 'value': 'a b'},"
                          "{'name': 'Content-Length', 'value': '9'}]}}",
                          200, 5000);
    assert_int_equal(a.outcome, ACTION_SUCCESS);
    assert_string_equal(a.seen, "/p|example.com|kube-probe/1.32 tenet/" TENET_VERSION "|*/*|a b");
    a = run("{'httpGet': {'port': 'web', 'httpHeaders': [{'name': 'User-Agent', 'value': 'u'},"
            "{'name': 'Accept', 'value': 'text/html'}]}}",
            200, 5000);
    assert_string_equal(a.seen + strlen("/|127.0.0.1:") + strcspn(strstr(a.seen, ":") + 1, "|"),
                        "|u|text/html|");
}

static void certificates_are_not_verified(void **state)
{
    char dir[] = "/tmp/tenet-action-XXXXXX";
    static const char *const elsewhere[] = {"elsewhere.example.com"};
    int64_t now = time_wall_ms();
    struct pki_request q = {
        .cn = "x", .names = elsewhere, .n_names = 1, .from_ms = now - 2000, .until_ms = now - 1000};
    struct pki_ca *ca = pki_ca_new(now, now + 3600000);
    struct tls_context *tls = NULL;
    bool made;
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *cert = xasprintf("%s/crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/key", dir);
    assert_int_equal(pki_ensure_files(ca, &q, cert, key, now, &made, NULL), 0);
    struct tls_server_config c = {.cert_file = cert, .key_file = key};
    assert_int_equal(tls_server_new(&c, &tls, NULL), 0);
    static const char handler[] = "{'httpGet': {'port': 'web', 'scheme': 'HTTPS'}}";
    struct answer a = run_with(handler, (struct answer){.status = 200, .tls = tls}, 5000);
    assert_int_equal(a.outcome, ACTION_SUCCESS);
    a = run_with(handler, (struct answer){.status = 400, .tls = tls}, 5000);
    assert_int_equal(a.outcome, ACTION_FAILURE);
    assert_int_equal(run(handler, 200, 5000).outcome, ACTION_FAILURE); /* It speaks plain HTTP. */
    tls_context_free(tls);
    pki_ca_free(ca);
    assert_int_equal(dir_remove(dir, NULL), 0);
}

static void an_answer_that_is_too_late_is_a_failure(void **state)
{
    struct answer a = run_with("{'httpGet': {'port': 'web'}}",
                               (struct answer){.status = 200, .silent = true}, 50);
    assert_int_equal(a.outcome, ACTION_FAILURE);
    assert_int_equal(a.requests, 1);
    assert_true(*a.text);
}

static void a_tcp_connection_is_enough(void **state)
{
    assert_int_equal(run("{'tcpSocket': {'port': 'web'}}", 200, 5000).outcome, ACTION_SUCCESS);
    assert_int_equal(run("{'tcpSocket': {'port': 1}}", 200, 5000).outcome, ACTION_FAILURE);
}

static void what_no_request_can_have_is_an_error_and_sends_nothing(void **state)
{
    static const char *const rows[] = {
        "{'httpGet': {'path': '/ HTTP/1.1', 'port': 'web'}}",
        "{'httpGet': {'path': '/\\r\\nX: y', 'port': 'web'}}",
        "{'httpGet': {'path': '/', 'port': 'web', 'host': 'slow.example.com'}}",
        "{'httpGet': {'path': '/', 'port': 'web', 'httpHeaders': [{'name': 'A', 'value': "
        "'b\\r\\nC: d'}]}}",
        "{'httpGet': {'path': '/', 'port': 'web', 'httpHeaders': [{'name': 'A: b', 'value': ''}]}}",
        "{'httpGet': {'path': '/', 'port': 'web', 'httpHeaders': [{'name': '', 'value': ''}]}}",
        "{'httpGet': {'path': '/', 'port': 'none'}}",
        "{'tcpSocket': {'port': 0}}",
        "{}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct answer a = run(rows[i], 200, 5000);
        assert_int_equal(a.outcome, ACTION_ERROR);
        assert_int_equal(a.requests, 0);
        assert_true(*a.text);
    }
}

static void a_pause_is_a_success_also_when_it_is_cut(void **state)
{
    assert_int_equal(run("{'sleep': {'seconds': 0}}", 200, 5000).outcome, ACTION_SUCCESS);
    assert_int_equal(run("{'sleep': {'seconds': 600}}", 200, 1).outcome, ACTION_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_is_judged_by_its_status),
        cmocka_unit_test(redirects_are_followed_to_the_same_host_alone),
        cmocka_unit_test(headers_of_the_user_replace_those_of_the_probe),
        cmocka_unit_test(certificates_are_not_verified),
        cmocka_unit_test(an_answer_that_is_too_late_is_a_failure),
        cmocka_unit_test(a_tcp_connection_is_enough),
        cmocka_unit_test(what_no_request_can_have_is_an_error_and_sends_nothing),
        cmocka_unit_test(a_pause_is_a_success_also_when_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
