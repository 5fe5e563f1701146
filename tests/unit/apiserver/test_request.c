/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of requests: path and method, query flags, the Accept header, and the content
 * type of the body. */
#include "apiserver/access/security.h"
#include "apiserver/request/respond.h"
#include "harness.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red/"

static struct harness *h;
static struct http_server *server;
/* Fills the result of the next request; the request is answered after it. */
static void (*parse)(struct request *q, struct strbuf *out);
static struct strbuf result = STRBUF_INIT;

static void handle(void *ctx, struct http_exchange *x)
{
    struct request *q = NEW(struct request);
    *q = (struct request){.server = h->api, .x = x, .verb = VERB_OTHER, .subresource = ""};
    q->user = user_ref(h->api->security->master);
    attributes_parse(&q->attributes, http_method(x), http_path(x), request_flag(q, "watch"),
                     http_query(x, "fieldSelector"));
    strbuf_reset(&result);
    parse(q, &result);
    respond_error(q, 409, "Parsed", "parsed");
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
    strbuf_done(&result);
    harness_free(h);
    return 0;
}

/* The parser's result for a request with these headers (names and values; NULL at the
 * end); valid until the next. */
static const char *parsed(const char *method, const char *path, const char *const *headers)
{
    CLEANUP_ANSWER struct answer a =
        ask_by(h, &(struct sender){.headers = headers}, method, path, NULL);
    assert_true(a.status == 409 || a.status == 0);
    return strbuf_cstr(&result);
}

static void expect(const char *method, const char *path, const char *const *headers,
                   const char *want)
{
    const char *got = parsed(method, path, headers);
    if (!streq(got, want)) {
        fail_msg("%s %s %s: %s, not %s", method, path, headers ? headers[1] : "", got, want);
    }
}

/* "VERB GROUP/KIND NS NAME SUBRESOURCE", "-" for what is absent; or the error. */
static void parse_target(struct request *q, struct strbuf *out)
{
    struct err e = {0};
    int r = request_resolve(q, &e);
    if (r < 0) {
        strbuf_adds(out, r == -ENOENT ? "404" : r == -EOPNOTSUPP ? "405" : "?");
        assert_string_equal(
            e.text, r == -ENOENT
                        ? "the server could not find the requested resource"
                        : "the server does not allow this method on the requested resource");
        return;
    }
    strbuf_addf(out, "%s %s/%s %s %s %s", verb_names[q->verb], q->kind->group, q->kind->kind,
                q->namespace ? q->namespace : "-", q->name ? q->name : "-",
                *q->subresource ? q->subresource : "-");
}

static void a_path_and_a_method_name_verb_kind_and_object(void **state)
{
    static const struct {
        const char *method, *path, *want;
    } cases[] = {
        {"GET", "/api/v1/nodes", "list /Node - - -"},
        {"GET", "/api/v1/nodes/", "list /Node - - -"},
        {"GET", "/api/v1/nodes/n", "get /Node - n -"},
        {"GET", "/api/v1/nodes/n?watch=true", "watch /Node - n -"},
        {"GET", "/api/v1/nodes?watch", "watch /Node - - -"},
        {"GET", "/api/v1/nodes?watch=1", "watch /Node - - -"},
        {"GET", "/api/v1/nodes?watch=0", "list /Node - - -"},
        {"GET", "/api/v1/nodes?watch=false", "list /Node - - -"},
        {"GET", "/api/v1/nodes?watch=False", "list /Node - - -"},
        {"POST", "/api/v1/nodes", "create /Node - - -"},
        {"PUT", "/api/v1/nodes/n", "update /Node - n -"},
        {"PATCH", "/api/v1/nodes/n", "patch /Node - n -"},
        {"DELETE", "/api/v1/nodes/n", "delete /Node - n -"},
        {"DELETE", "/api/v1/nodes", "deletecollection /Node - - -"},
        {"GET", "/api/v1/pods", "list /Pod - - -"},
        {"GET", RED "pods", "list /Pod red - -"},
        {"GET", RED "pods/p", "get /Pod red p -"},
        {"POST", RED "pods", "create /Pod red - -"},
        {"DELETE", RED "pods", "deletecollection /Pod red - -"},
        {"GET", RED "pods/p/status", "get /Pod red p status"},
        {"GET", RED "pods/p/status/", "get /Pod red p status"},
        {"PUT", RED "pods/p/status", "update /Pod red p status"},
        {"PATCH", RED "pods/p/status", "patch /Pod red p status"},
        {"POST", RED "serviceaccounts/s/token", "create /ServiceAccount red s token"},
        {"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn", "list /Node - - -"},
        {"GET", "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dn", "watch /Node - - -"},
        {"GET", "/api/v1/namespaces", "list /Namespace - - -"},
        {"GET", "/api/v1/namespaces/red", "get /Namespace - red -"},
        {"PUT", "/api/v1/namespaces/red/status", "update /Namespace - red status"},
        {"PUT", "/api/v1/namespaces/red/finalize", "update /Namespace - red finalize"},
        {"DELETE", "/api/v1/namespaces/red", "delete /Namespace - red -"},
        {"GET", "/apis/network.openshift.io/v1/hostsubnets/n",
         "get network.openshift.io/HostSubnet - n -"},
        {"GET", "/apis/coordination.k8s.io/v1/namespaces/red/leases/l",
         "get coordination.k8s.io/Lease red l -"},
        {"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
         "create authorization.k8s.io/SubjectAccessReview - - -"},
        /* No such resource. */
        {"GET", "/", "404"},
        {"GET", "/api", "404"},
        {"GET", "/api/v1", "404"},
        {"GET", "/apis/network.openshift.io/v1", "404"},
        {"GET", "/apis/v1/nodes", "404"},
        {"GET", "/api/v2/nodes", "404"},
        {"GET", "/apix/v1/nodes", "404"},
        {"GET", "/api/v1/things", "404"},
        {"GET", "/api/v1/namespaces/red/nodes", "404"},
        {"GET", "/api/v1/pods/p", "404"},
        {"GET", RED "pods/p/log", "get /Pod red p log"},
        {"POST", RED "pods/p/log", "405"},
        {"GET", RED "pods/p/exec", "create /Pod red p exec"},
        {"GET", "/api/v1/nodes/n/proxy/pods", "get /Node - n proxy"},
        {"GET", RED "pods/p/nothing", "404"},
        {"GET", RED "pods/p/status/x", "404"},
        {"GET", "/api/v1/namespaces/red/things", "404"},
        {"GET", "/apis/example.com/v1/namespaces/red/status", "404"},
        {"GET", "/api/v1//nodes", "404"},
        {"GET", "/api//v1/nodes", "404"},
        {"GET", "/apis//v1/nodes", "404"},
        {"GET", "/api/v1/namespaces//pods", "404"},
        {"GET", "/api/v1/nodes//status", "404"},
        {"GET", "/api/v1/nodes//", "404"},
        {"POST", "/api/v1/namespaces//pods", "404"},
        {"GET", "/apis/project.openshift.io/v1/namespaces/red/projects/red", "404"},
        /* No such method. */
        {"POST", "/api/v1/nodes/n", "405"},
        {"POST", "/api/v1/pods", "405"},
        {"PUT", "/api/v1/nodes", "405"},
        {"PATCH", "/api/v1/nodes", "405"},
        {"DELETE", "/api/v1/pods", "405"},
        {"DELETE", "/api/v1/namespaces", "405"},
        {"HEAD", "/api/v1/nodes", "405"},
        {"BREW", "/api/v1/nodes", "405"},
        {"DELETE", RED "pods/p/status", "405"},
        {"GET", RED "pods/p/status?watch=true", "405"},
        {"POST", RED "pods/p/status", "405"},
        {"GET", RED "serviceaccounts/s/token", "405"},
        {"PUT", RED "serviceaccounts/s/token", "405"},
        {"GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "405"},
        {"DELETE", "/apis/authorization.k8s.io/v1/subjectaccessreviews/x", "405"},
    };
    parse = parse_target;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        expect(cases[i].method, cases[i].path, NULL, cases[i].want);
    }
}

/* "FORM", then "yaml", "v1beta1", "pretty" and the name of 'include' where they are
 * set; or "none". */
static void parse_accept(struct request *q, struct strbuf *out)
{
    static const char *const forms[] = {"object", "table", "partial"};
    static const char *const includes[] = {
        [API_INCLUDE_OBJECT] = "object", [API_INCLUDE_NONE] = "none", [API_INCLUDE_METADATA] = ""};
    if (request_accept(q) < 0) {
        strbuf_adds(out, "none");
        return;
    }
    strbuf_addf(out, "%s%s%s%s%s%s", forms[q->accept.form], q->accept.yaml ? " yaml" : "",
                q->accept.v1beta1 ? " v1beta1" : "", q->accept.pretty ? " pretty" : "",
                *includes[q->accept.include] ? " " : "", includes[q->accept.include]);
}

static void an_accept_header_names_the_form(void **state)
{
#define TABLE "application/json;as=Table;g=meta.k8s.io;v=v1"
    static const struct {
        const char *accept, *want;
    } cases[] = {
        {NULL, "object"},
        {"", "object"},
        {"*/*", "object"},
        {"application/*", "object"},
        {"application/json", "object"},
        {"Application/JSON", "object"},
        {"application/yaml", "object yaml"},
        {"text/html", "none"},
        {"text/html, application/json", "object"},
        {"text/html,application/yaml,application/json", "object yaml"},
        {"application/json;q=0", "none"},
        {"application/json; q=0.5", "object"},
        {"application/json;q=0, */*", "object"},
        {TABLE, "table"},
        {TABLE ", application/json", "table"},
        {"application/json; as=Table ;\tg=meta.k8s.io ; v=v1beta1", "table v1beta1"},
        {"application/json;as=Table;v=v1", "none"},
        {"application/json;as=Table;v=v1,application/json", "object"},
        {"application/json;as=Tables;g=meta.k8s.io", "none"},
        {"application/json;as=", "object"},
        {"application/yaml;as=Table;g=meta.k8s.io;v=v1", "none"},
        {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "partial"},
        {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "partial"},
        {"application/vnd.kubernetes.protobuf,application/json", "object"},
        {"application/jsonx", "none"},
        {"application/jso", "none"},
        {",application/json", "object"},
        {";application/json", "none"},
    };
    parse = parse_accept;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *headers[] = {cases[i].accept ? "Accept" : NULL, cases[i].accept, NULL};
        expect("GET", "/", headers, cases[i].want);
    }
    static const struct {
        const char *query, *agent, *want;
    } forms[] = {
        {"", "curl/8.0", "object pretty"},
        {"", "Wget/1", "object pretty"},
        {"", "Mozilla/5.0", "object pretty"},
        {"", "kubectl/1", "object"},
        {"", "xcurl/8.0", "object"},
        {"?pretty=true", "kubectl/1", "object pretty"},
        {"?pretty=false", "curl/8.0", "object"},
        {"?pretty", "kubectl/1", "object pretty"},
        {"?includeObject=Object", "x", "object object"},
        {"?includeObject=None", "x", "object none"},
        {"?includeObject=Metadata", "x", "object"},
        {"?includeObject=x", "x", "object"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        CLEANUP_FREE char *path = xasprintf("/%s", forms[i].query);
        CLEANUP_FREE char *text =
            xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nUser-Agent: %s\r\n\r\n",
                      path, forms[i].agent);
        CLEANUP_FREE char *answer = ask_raw(h, text);
        assert_string_equal(strbuf_cstr(&result), forms[i].want);
    }
}

static bool patching;

static void parse_type(struct request *q, struct strbuf *out)
{
    q->verb = patching ? VERB_PATCH : VERB_CREATE;
    CLEANUP_FREE char *type = request_content_type(q);
    CLEANUP(json_free) struct json *v = NULL;
    struct err e = {0};
    int r = request_body(q, &v, &e);
    strbuf_addf(out, "%s %s", type,
                r == 0                  ? "read"
                : r == -EPROTONOSUPPORT ? "unknown"
                                        : "malformed");
}

static void the_content_type_selects_the_parser_of_the_body(void **state)
{
    static const struct {
        const char *type, *body, *want;
        bool patching;
    } cases[] = {
        {"", "{\"a\": 1}", "application/json read"},
        {"Content-Type:\r\n", "{\"a\": 1}", "application/json read"},
        {"Content-Type: application/json\r\n", "{\"a\": 1}", "application/json read"},
        {"Content-Type: \t Application/JSON; charset=utf-8\r\n", "{}", "application/json read"},
        {"Content-Type: application/json\r\n", "a: 1", "application/json malformed"},
        {"Content-Type: application/yaml\r\n", "a: 1", "application/yaml read"},
        {"Content-Type: application/x-yaml\r\n", "a: 1", "application/x-yaml read"},
        {"Content-Type: application/apply-patch+yaml\r\n", "a: 1",
         "application/apply-patch+yaml read", true},
        {"Content-Type: application/merge-patch+json\r\n", "{}",
         "application/merge-patch+json read", true},
        {"Content-Type: application/merge-patch+json\r\n", "a: 1",
         "application/merge-patch+json malformed", true},
        /* A patch's type makes no object. */
        {"Content-Type: application/apply-patch+yaml\r\n", "a: 1",
         "application/apply-patch+yaml unknown"},
        {"Content-Type: application/merge-patch+json\r\n", "{}",
         "application/merge-patch+json unknown"},
        {"Content-Type: application/vnd.kubernetes.protobuf\r\n", "{}",
         "application/vnd.kubernetes.protobuf malformed"},
        {"Content-Type: text/plain\r\n", "{}", "text/plain unknown"},
        {"Content-Type: application/jsonx\r\n", "{}", "application/jsonx unknown"},
    };
    parse = parse_type;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        patching = cases[i].patching;
        CLEANUP_FREE char *text =
            xasprintf("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n"
                      "%s\r\n%s",
                      strlen(cases[i].body), cases[i].type, cases[i].body);
        CLEANUP_FREE char *answer = ask_raw(h, text);
        if (!streq(strbuf_cstr(&result), cases[i].want)) {
            fail_msg("%s: %s", cases[i].type, strbuf_cstr(&result));
        }
    }
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_path_and_a_method_name_verb_kind_and_object),
        T(an_accept_header_names_the_form),
        T(the_content_type_selects_the_parser_of_the_body),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
