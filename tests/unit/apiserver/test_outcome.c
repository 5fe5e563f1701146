/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes: the response that each becomes, and what an outcome that nobody filled becomes. */
#include "apiserver/request/respond.h"
#include "harness.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct harness *h;
static struct http_server *server;
/* Fills the outcome of the next request. */
static void (*fill)(struct request *q, struct outcome *o);

static void handle(void *ctx, struct http_exchange *x)
{
    CLEANUP(outcome_done) struct outcome o = {0};
    struct request *q = NEW(struct request);
    *q = (struct request){.server = h->api, .x = x, .verb = VERB_OTHER, .subresource = ""};
    attributes_parse(&q->attributes, http_method(x), http_path(x), false, NULL);
    (void) request_accept(q);
    assert_int_equal(request_resolve(q, NULL), 0);
    fill(q, &o);
    request_answer(q, &o);
}

static int set_up(void **state)
{
    struct err e = {0};
    int fd;
    h = harness_new(NULL, NULL);
    server = http_server_new(h->loop, NULL, handle, NULL);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    h->port = (uint16_t) sock_local_port(fd);
    assert_int_equal(http_server_add_listener(server, fd, &e), 0);
    return 0;
}

static int tear_down(void **state)
{
    http_server_free(server);
    harness_free(h);
    return 0;
}

static void fill_nothing(struct request *q, struct outcome *o)
{
}

static void fill_error(struct request *q, struct outcome *o)
{
    outcome_error(o, 503, "ServiceUnavailable", "%s is away", "the store");
}

static void fill_invalid(struct request *q, struct outcome *o)
{
    struct api_causes causes = {0};
    api_required(&causes, "spec.a", "must be set");
    api_required(&causes, "spec.b", "must be set, too");
    outcome_invalid(o, q->kind, "web", &causes);
    assert_int_equal(causes.n, 0);
}

static void fill_forbidden(struct request *q, struct outcome *o)
{
    outcome_status(o, 403, "Forbidden", "web", "no");
    outcome_add_cause(o, "FieldValueForbidden", "spec.a", "not you");
}

static void fill_deleted(struct request *q, struct outcome *o)
{
    outcome_deleted(o, "web", "1-2-3");
}

static void fill_json(struct request *q, struct outcome *o)
{
    request_warn(q, "-", "a \"quoted\" text\n");
    outcome_json(o, 201, NULL, json_of("{'a': 1}"));
}

static void fill_text(struct request *q, struct outcome *o)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, "hello");
    outcome_text(o, 200, "text/plain", &text);
}

static void each_outcome_becomes_its_response(void **state)
{
    static const char leases[] = "/apis/coordination.k8s.io/v1/namespaces/red/leases";
    static const struct {
        void (*fill)(struct request *q, struct outcome *o);
        const char *accept;
        int status;
        const char *text;
    } cases[] = {
        {fill_nothing, NULL, 500,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
         "\"message\":\"Internal error occurred: the request has no outcome\","
         "\"reason\":\"InternalError\",\"details\":{},\"code\":500}\n"},
        {fill_error, NULL, 503,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
         "\"message\":\"the store is away\",\"reason\":\"ServiceUnavailable\","
         "\"details\":{\"retryAfterSeconds\":1},\"code\":503}\n"},
        {fill_invalid, NULL, 422,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
         "\"message\":\"Lease.coordination.k8s.io \\\"web\\\" is invalid: [spec.a: Required value: "
         "must be "
         "set, spec.b: Required value: must be set, too]\",\"reason\":\"Invalid\","
         "\"details\":{\"name\":\"web\",\"group\":\"coordination.k8s.io\",\"kind\":\"Lease\","
         "\"causes\":["
         "{\"reason\":\"FieldValueRequired\",\"message\":\"Required value: must be set\","
         "\"field\":\"spec.a\"},{\"reason\":\"FieldValueRequired\",\"message\":\"Required value: "
         "must be set, too\",\"field\":\"spec.b\"}]},\"code\":422}\n"},
        {fill_forbidden, NULL, 403,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
         "\"message\":\"no\",\"reason\":\"Forbidden\",\"details\":{\"name\":\"web\","
         "\"group\":\"coordination.k8s.io\",\"kind\":\"leases\",\"causes\":[{\"reason\":"
         "\"FieldValueForbidden\",\"message\":\"not you\",\"field\":\"spec.a\"}]},\"code\":403}\n"},
        {fill_deleted, NULL, 200,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
         "\"details\":{\"name\":\"web\",\"group\":\"coordination.k8s.io\",\"kind\":\"leases\","
         "\"uid\":\"1-2-3\"}}\n"},
        {fill_deleted, "application/yaml", 200,
         "kind: Status\napiVersion: v1\nmetadata: {}\nstatus: Success\ndetails:\n  name: web\n"
         "  group: coordination.k8s.io\n  kind: leases\n  uid: 1-2-3\n"},
        {fill_json, NULL, 201, "{\"a\":1}\n"},
        {fill_json, "application/yaml", 201, "a: 1\n"},
        {fill_text, "application/yaml", 200, "hello"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fill = cases[i].fill;
        const char *headers[] = {cases[i].accept ? "Accept" : NULL, cases[i].accept, NULL};
        CLEANUP_ANSWER struct answer a =
            ask_by(h, &(struct sender){.headers = headers}, "GET", leases, NULL);
        assert_int_equal(a.status, cases[i].status);
        assert_string_equal(a.text, cases[i].text);
    }
}

static void a_response_has_the_headers_of_its_outcome(void **state)
{
    static const struct {
        void (*fill)(struct request *q, struct outcome *o);
        const char *header;
    } cases[] = {
        {fill_error, "Retry-After: 1\r\n"},
        {fill_forbidden, "X-Content-Type-Options: nosniff\r\n"},
        {fill_json, "Warning: 299 - \"a \\\"quoted\\\" text?\"\r\n"},
        {fill_text, "Content-Type: text/plain\r\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fill = cases[i].fill;
        CLEANUP_FREE char *answer =
            ask_raw(h, "GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        if (!strcasestr(answer, cases[i].header)) {
            fail_msg("%s is not in %s", cases[i].header, answer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_becomes_its_response),
        cmocka_unit_test(a_response_has_the_headers_of_its_outcome),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
