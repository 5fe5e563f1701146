/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, pages, past states, forms of answers, discovery, health and metrics. */
#include "harness.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"
#define PODS "/api/v1/namespaces/default/pods"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

static int set_up(void **state)
{
    *state = harness_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

/* Names of the items, joined by ','; owned. */
static char *names(const struct answer *a)
{
    struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, json_get(a->body, "items")) {
        strbuf_addf(&b, "%s%s", b.size ? "," : "",
                    json_path_string(item, "metadata", "name", NULL));
    }
    strbuf_addc(&b, ';');
    return strbuf_steal(&b);
}

static void expect_names(struct harness *h, const char *path, const char *want)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    CLEANUP_FREE char *got = names(&a);
    if (!streq(got, want)) {
        fail_msg("%s: %s, not %s", path, got, want);
    }
}

static void delete (struct harness *h, const char *path)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "DELETE", path, NULL, 200);
}

static void make_pod(struct harness *h, const char *ns, const char *name)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s/pods", ns);
    CLEANUP_FREE char *body =
        xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"containers\":[{"
                  "\"name\":\"c\",\"image\":\"i\"}]}}",
                  name);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", path, body, 201);
}

static void lists_are_complete_and_in_order(void **state)
{
    struct harness *h = *state;
    free(make_net(h, "b", 12, "{\"t\":\"x\"}"));
    free(make_net(h, "a", 11, "{\"t\":\"y\"}"));
    CLEANUP_FREE char *last = make_net(h, "c", 13, NULL);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", NETS, NULL, 200);
    assert_string_equal(at(&a, "kind"), "NetNamespaceList");
    assert_string_equal(at(&a, "apiVersion"), "network.openshift.io/v1");
    assert_string_equal(at(&a, "metadata.resourceVersion"), last);
    /* The list says it for all of them. */
    assert_string_equal(at(&a, "items.0.kind"), "");
    assert_string_equal(at(&a, "items.0.apiVersion"), "");
    assert_string_equal(at(&a, "items.0.netname"), "a");
    expect_names(h, NETS, "a,b,c;");
    expect_names(h, NETS "?labelSelector=t%20in%20(x,y),t!%3Dy", "b;");
    expect_names(h, NETS "?fieldSelector=metadata.name%3Dc", "c;");
    expect_names(h, NETS "?fieldSelector=netid%3D11", "a;");
    expect_names(h, NETS "?labelSelector=none", ";");
    expect_names(h, NETS "?resourceVersion=0", "a,b,c;");
    expect_names(h, NETS "?resourceVersion=1&resourceVersionMatch=NotOlderThan", "a,b,c;");
}

static void a_namespace_has_its_own_list(void **state)
{
    struct harness *h = *state;
    /* '-' sorts before '/': neighbours must not mix. */
    free(make_namespace(h, "a"));
    free(make_namespace(h, "a-b"));
    make_pod(h, "a", "p1");
    make_pod(h, "a-b", "p2");
    make_pod(h, "a", "p3");
    make_pod(h, "default", "p4");
    expect_names(h, "/api/v1/namespaces/a/pods", "p1,p3;");
    expect_names(h, "/api/v1/namespaces/a-b/pods", "p2;");
    expect_names(h, "/api/v1/namespaces/none/pods", ";");
    expect_names(h, "/api/v1/pods", "p2,p1,p3,p4;");
    expect_names(h, "/api/v1/pods?fieldSelector=metadata.namespace%3Da", "p1,p3;");
}

static void pages_show_one_state_whatever_happens_meanwhile(void **state)
{
    struct harness *h = *state;
    static const char *const all[] = {"a", "c", "e", "g", "i", "k"};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        free(make_net(h, all[i], (int) (100 + i), NULL));
    }
    CLEANUP_ANSWER struct answer first = ask_ok(h, "GET", NETS "?limit=2", NULL, 200);
    CLEANUP_FREE char *got = names(&first);
    assert_string_equal(got, "a,c;");
    assert_int_equal(
        json_get_int_or(json_path(first.body, "metadata", "remainingItemCount", NULL), 0), 4);
    /* Before the next page: one comes, one goes, one changes, one goes and comes again. */
    free(make_net(h, "f", 200, NULL));
    delete (h, NETS "/g");
    CLEANUP_ANSWER struct answer patched =
        ask_full(h, "PATCH", NETS "/e", NULL, "application/merge-patch+json", "{\"netid\":999}");
    delete (h, NETS "/i");
    free(make_net(h, "i", 300, NULL));
    CLEANUP_FREE char *path =
        xasprintf(NETS "?limit=2&continue=%s", at(&first, "metadata.continue"));
    CLEANUP_ANSWER struct answer second = ask_ok(h, "GET", path, NULL, 200);
    CLEANUP_FREE char *got2 = names(&second);
    assert_string_equal(got2, "e,g;");
    assert_string_equal(at(&second, "items.0.netid"), "102");
    assert_string_equal(at(&second, "metadata.resourceVersion"),
                        at(&first, "metadata.resourceVersion"));
    CLEANUP_FREE char *path3 =
        xasprintf(NETS "?limit=2&continue=%s", at(&second, "metadata.continue"));
    CLEANUP_ANSWER struct answer third = ask_ok(h, "GET", path3, NULL, 200);
    CLEANUP_FREE char *got3 = names(&third);
    assert_string_equal(got3, "i,k;");
    assert_string_equal(at(&third, "items.0.netid"), "104");
    assert_string_equal(at(&third, "metadata.continue"), "");
    /* The same state by its version. */
    CLEANUP_FREE char *exact = xasprintf(NETS "?resourceVersion=%s&resourceVersionMatch=Exact",
                                         at(&first, "metadata.resourceVersion"));
    expect_names(h, exact, "a,c,e,g,i,k;");
    expect_names(h, NETS, "a,c,e,f,i,k;");
}

static void a_page_of_a_state_that_is_forgotten_is_gone(void **state)
{
    struct apiserver_config cfg = {.event_window = 2};
    struct harness *h = harness_new(&cfg, NULL);
    free(make_net(h, "a", 11, NULL));
    free(make_net(h, "b", 12, NULL));
    CLEANUP_ANSWER struct answer first = ask_ok(h, "GET", NETS "?limit=1", NULL, 200);
    for (int i = 0; i < 4; i++) {
        CLEANUP_FREE char *name = xasprintf("c%d", i);
        free(make_net(h, name, 20 + i, NULL));
    }
    CLEANUP_FREE char *path = xasprintf(NETS "?continue=%s", at(&first, "metadata.continue"));
    CLEANUP_ANSWER struct answer gone = ask_ok(h, "GET", path, NULL, 410);
    assert_string_equal(at(&gone, "reason"), "Expired");
    /* It says how to go on, in the state of now. */
    CLEANUP_FREE char *next = xasprintf(NETS "?continue=%s", at(&gone, "metadata.continue"));
    expect_names(h, next, "b,c0,c1,c2,c3;");
    CLEANUP_FREE char *exact = xasprintf(NETS "?resourceVersion=%s&resourceVersionMatch=Exact",
                                         at(&first, "metadata.resourceVersion"));
    CLEANUP_ANSWER struct answer too_old = ask_ok(h, "GET", exact, NULL, 410);
    assert_string_equal(at(&too_old, "reason"), "Expired");
    harness_free(h);
}

static void pages_respect_selectors(void **state)
{
    struct harness *h = *state;
    for (int i = 0; i < 9; i++) {
        CLEANUP_FREE char *name = xasprintf("n%d", i);
        free(make_net(h, name, 20 + i, i % 2 ? "{\"odd\":\"1\"}" : NULL));
    }
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", NETS "?limit=3&labelSelector=odd", NULL, 200);
    CLEANUP_FREE char *got = names(&a);
    assert_string_equal(got, "n1,n3,n5;");
    assert_null(json_path(a.body, "metadata", "remainingItemCount", NULL));
    CLEANUP_FREE char *path =
        xasprintf(NETS "?limit=3&labelSelector=odd&continue=%s", at(&a, "metadata.continue"));
    expect_names(h, path, "n7;");
}

static void tables_are_made_on_request(void **state)
{
    struct harness *h = *state;
    free(make_net(h, "a", 11, NULL));
    CLEANUP_ANSWER struct answer t = ask_full(h, "GET", NETS, TABLE, NULL, NULL);
    assert_string_equal(at(&t, "kind"), "Table");
    assert_string_equal(at(&t, "apiVersion"), "meta.k8s.io/v1");
    assert_string_equal(at(&t, "columnDefinitions.1.name"), "NetID");
    assert_string_equal(at(&t, "rows.0.cells.1"), "11");
    assert_string_equal(at(&t, "rows.0.object.kind"), "PartialObjectMetadata");
    CLEANUP_ANSWER
    struct answer whole = ask_full(h, "GET", NETS "/a?includeObject=Object", TABLE, NULL, NULL);
    assert_string_equal(at(&whole, "rows.0.object.kind"), "NetNamespace");
    assert_string_equal(at(&whole, "rows.0.object.netname"), "a");
    CLEANUP_ANSWER
    struct answer none = ask_full(h, "GET", NETS "?includeObject=None", TABLE, NULL, NULL);
    assert_true(
        json_is(json_path(json_at(json_get(none.body, "rows"), 0), "object", NULL), JSON_NULL));
    CLEANUP_ANSWER
    struct answer beta =
        ask_full(h, "GET", NETS, "application/json;as=Table;v=v1beta1;g=meta.k8s.io", NULL, NULL);
    assert_string_equal(at(&beta, "apiVersion"), "meta.k8s.io/v1beta1");
    CLEANUP_ANSWER
    struct answer partial =
        ask_full(h, "GET", NETS, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                 NULL, NULL);
    assert_string_equal(at(&partial, "kind"), "PartialObjectMetadataList");
    assert_string_equal(at(&partial, "items.0.metadata.name"), "a");
    assert_null(json_get(json_at(json_get(partial.body, "items"), 0), "netid"));
}

#define PROTOBUF "application/vnd.kubernetes.protobuf"

static void the_most_wanted_form_is_taken(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *accept;
        int status;
        const char *type;
    } cases[] = {
        {"application/json", 200, "application/json"},
        {"*/*", 200, "application/json"},
        {"application/*", 200, "application/json"},
        {PROTOBUF ", application/json", 200, PROTOBUF},
        {"application/json, " PROTOBUF, 200, "application/json"},
        {PROTOBUF ";q=0.5, application/json", 200, "application/json"},
        {"application/json;q=0.5, " PROTOBUF ";q=0.6", 200, PROTOBUF},
        {"*/*, " PROTOBUF, 200, PROTOBUF},
        {"text/html, */*;q=0.1", 200, "application/json"},
        {"application/yaml", 200, "application/yaml"},
        {"text/html;q=0.9, application/json;q=0.1", 200, "application/json"},
        {"APPLICATION/JSON ; charset=utf-8", 200, "application/json"},
        {PROTOBUF, 200, PROTOBUF},
        {PROTOBUF ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 200, PROTOBUF},
        {PROTOBUF ";as=Table;g=meta.k8s.io;v=v1", 406, "application/json"},
        {PROTOBUF ";as=Table;g=meta.k8s.io;v=v1, application/json;as=Table;g=meta.k8s.io;v=v1", 200,
         "application/json"},
        {"text/html", 406, "application/json"},
        {"application/json;q=0", 406, "application/json"},
        {"application/json;as=Chart;v=v1;g=meta.k8s.io", 406, "application/json"},
        {"application/json;as=Table;v=v1", 406, "application/json"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a = ask_full(h, "GET", NETS, cases[i].accept, NULL, NULL);
        if (a.status != cases[i].status || !streq(a.content_type, cases[i].type)) {
            fail_msg("%s: %d %s", cases[i].accept, a.status, a.content_type);
        }
    }
    CLEANUP_ANSWER struct answer pretty = ask_ok(h, "GET", NETS "?pretty=true", NULL, 200);
    assert_non_null(strstr(pretty.text, "{\n  \"kind\": \"NetNamespaceList\""));
}

/* The Content-Encoding of the answer as its content type; the body is not read. */
static struct answer ask_encoded(struct harness *h, const char *path, const char *encoding)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(h->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool never = false;
    struct answer a = {0};
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE char *head =
        xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\n\r\n", path, encoding);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    assert_int_equal(write(fd, head, strlen(head)), strlen(head));
    for (int i = 0; i < 20000 && !strstr(strbuf_cstr(&text), "\r\n\r\n"); i++) {
        char buf[4096];
        ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n > 0) {
            strbuf_add(&text, buf, (size_t) n);
        } else {
            loop_run_until(h->loop, &never, 1);
        }
    }
    close(fd);
    assert_int_equal(sscanf(strbuf_cstr(&text), "HTTP/1.1 %d", &a.status), 1);
    const char *at = strcasestr(text.data, "\r\ncontent-encoding: ");
    a.content_type = at ? xstrndup(at + 20, strcspn(at + 20, "\r")) : xstrdup("");
    return a;
}

static const struct json *resource_named(const struct json *list, const char *name)
{
    const struct json *r;
    JSON_FOREACH (r, json_get(list, "resources")) {
        if (streq_null(json_path_string(r, "name", NULL), name)) {
            return r;
        }
    }
    return NULL;
}

#define AGGREGATED ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

static void discovery_lists_what_there_is(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer api = ask_ok(h, "GET", "/api", NULL, 200);
    assert_string_equal(at(&api, "kind"), "APIVersions");
    assert_string_equal(at(&api, "versions.0"), "v1");
    CLEANUP_ANSWER struct answer groups = ask_ok(h, "GET", "/apis", NULL, 200);
    assert_string_equal(at(&groups, "groups.0.name"), "network.openshift.io");
    assert_string_equal(at(&groups, "groups.0.preferredVersion.groupVersion"),
                        "network.openshift.io/v1");
    CLEANUP_ANSWER struct answer group = ask_ok(h, "GET", "/apis/network.openshift.io", NULL, 200);
    assert_string_equal(at(&group, "kind"), "APIGroup");
    CLEANUP_ANSWER struct answer core = ask_ok(h, "GET", "/api/v1", NULL, 200);
    CLEANUP_ANSWER
    struct answer net = ask_ok(h, "GET", "/apis/network.openshift.io/v1/", NULL, 200);
    assert_string_equal(at(&core, "groupVersion"), "v1");
    assert_string_equal(at(&net, "groupVersion"), "network.openshift.io/v1");
    static const char *const want[] = {"bindings",
                                       "componentstatuses",
                                       "configmaps",
                                       "endpoints",
                                       "events",
                                       "limitranges",
                                       "namespaces",
                                       "namespaces/finalize",
                                       "namespaces/status",
                                       "nodes",
                                       "nodes/proxy",
                                       "nodes/status",
                                       "persistentvolumeclaims",
                                       "persistentvolumeclaims/binding",
                                       "persistentvolumeclaims/status",
                                       "persistentvolumes",
                                       "persistentvolumes/status",
                                       "pods",
                                       "pods/attach",
                                       "pods/binding",
                                       "pods/ephemeralcontainers",
                                       "pods/eviction",
                                       "pods/exec",
                                       "pods/log",
                                       "pods/portforward",
                                       "pods/proxy",
                                       "pods/status",
                                       "podtemplates",
                                       "replicationcontrollers",
                                       "replicationcontrollers/scale",
                                       "replicationcontrollers/status",
                                       "resourcequotas",
                                       "resourcequotas/status",
                                       "secrets",
                                       "serviceaccounts",
                                       "serviceaccounts/token",
                                       "services",
                                       "services/proxy",
                                       "services/status"};
    assert_int_equal(json_count(json_get(core.body, "resources")), ARRAY_SIZE(want));
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        assert_non_null(resource_named(core.body, want[i]));
    }
    assert_string_equal(
        json_get_string(json_at(json_get(resource_named(core.body, "pods"), "shortNames"), 0)),
        "po");
    const struct json *token = resource_named(core.body, "serviceaccounts/token");
    assert_string_equal(json_get_string(json_get(token, "kind")), "TokenRequest");
    assert_string_equal(json_get_string(json_at(json_get(token, "verbs"), 0)), "create");
    /* A part whose type is of the list's own version does not repeat it. */
    const struct json *binding = resource_named(core.body, "pods/binding");
    assert_string_equal(json_get_string(json_get(binding, "kind")), "Binding");
    assert_null(json_get(binding, "group"));
    assert_string_equal(json_get_string(json_get(token, "group")), "authentication.k8s.io");
    const struct json *read = json_get(resource_named(core.body, "componentstatuses"), "verbs");
    assert_int_equal(json_count(read), 2);
    assert_non_null(resource_named(net.body, "hostsubnets"));
    assert_null(resource_named(net.body, "pods"));
    CLEANUP_ANSWER
    struct answer reviews = ask_ok(h, "GET", "/apis/authorization.k8s.io/v1", NULL, 200);
    assert_string_equal(at(&reviews, "resources.0.verbs.0"), "create");
    assert_string_equal(at(&reviews, "resources.0.verbs.1"), "");

    static const char aggregated[] = "application/json" AGGREGATED ",application/json";
    CLEANUP_ANSWER struct answer all = ask_full(h, "GET", "/apis", aggregated, NULL, NULL);
    assert_string_equal(at(&all, "kind"), "APIGroupDiscoveryList");
    assert_non_null(strstr(all.content_type, "as=APIGroupDiscoveryList"));
    assert_string_equal(at(&all, "items.0.metadata.name"), "network.openshift.io");
    assert_string_equal(at(&all, "items.0.versions.0.resources.1.resource"), "hostsubnets");
    static const struct {
        const char *path, *accept, *type;
    } forms[] = {
        {"/apis", PROTOBUF, PROTOBUF},
        {"/api", PROTOBUF, PROTOBUF},
        {"/api/v1", PROTOBUF ", application/json", PROTOBUF},
        {"/apis/apps", "application/json, " PROTOBUF, "application/json"},
        {"/apis/apps/v1", PROTOBUF, PROTOBUF},
        {"/version", PROTOBUF, "application/json"},
        {"/apis", PROTOBUF AGGREGATED, PROTOBUF AGGREGATED},
        {"/api/", PROTOBUF AGGREGATED ", application/json", PROTOBUF AGGREGATED},
        {"/apis/", "application/json;v=v2;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io",
         "application/json" AGGREGATED},
        {"/apis", "application/json" AGGREGATED ", " PROTOBUF, "application/json" AGGREGATED},
        {"/apis/apps", "application/json" AGGREGATED ", " PROTOBUF, PROTOBUF},
        {"/apis", "application/yaml" AGGREGATED ", " PROTOBUF, PROTOBUF},
        {"/apis", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList, " PROTOBUF,
         PROTOBUF},
        {"/apis", "application/json;g=meta.k8s.io;v=v2;as=APIGroupDiscoveryList, " PROTOBUF,
         PROTOBUF},
    };
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        CLEANUP_ANSWER
        struct answer a = ask_full(h, "GET", forms[i].path, forms[i].accept, NULL, NULL);
        if (a.status != 200 || !streq(a.content_type, forms[i].type)) {
            fail_msg("%s of %s: %d %s", forms[i].accept, forms[i].path, a.status, a.content_type);
        }
    }
    CLEANUP_ANSWER struct answer one = ask_full(h, "GET", "/api", aggregated, NULL, NULL);
    const struct json *r;
    bool found = false;
    JSON_FOREACH (
        r, json_get(json_at(json_get(json_at(json_get(one.body, "items"), 0), "versions"), 0),
                    "resources")) {
        found |= streq_null(json_path_string(r, "resource", NULL), "pods") &&
                 streq_null(
                     json_path_string(json_at(json_get(r, "subresources"), 8), "subresource", NULL),
                     "status");
    }
    assert_true(found);
}

static void clients_find_version_health_and_schema(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer version = ask_ok(h, "GET", "/version", NULL, 200);
    assert_string_equal(at(&version, "minor"), "32");
    static const char *const health[] = {"/healthz", "/readyz", "/livez"};
    for (size_t i = 0; i < ARRAY_SIZE(health); i++) {
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", health[i], NULL, 200);
        assert_string_equal(a.text, "ok");
    }
    CLEANUP_ANSWER struct answer index = ask_ok(h, "GET", "/openapi/v3", NULL, 200);
    assert_non_null(json_path(index.body, "paths", "apis/network.openshift.io/v1", NULL));
    CLEANUP_ANSWER struct answer doc =
        ask_ok(h, "GET", "/openapi/v3/apis/network.openshift.io/v1?hash=x", NULL, 200);
    const struct json *patch = json_path(
        doc.body, "paths", "/apis/network.openshift.io/v1/hostsubnets/{name}", "patch", NULL);
    assert_string_equal(json_path_string(patch, "x-kubernetes-group-version-kind", "kind", NULL),
                        "HostSubnet");
    assert_non_null(strstr(doc.text, "\"fieldValidation\""));
    CLEANUP_ANSWER struct answer v2 = ask_ok(h, "GET", "/openapi/v2", NULL, 200);
    assert_string_equal(at(&v2, "swagger"), "2.0");
    CLEANUP_ANSWER struct answer root = ask_ok(h, "GET", "/", NULL, 200);
    assert_string_equal(at(&root, "paths.0"), "/api");
}

/* More objects than are sent at once, some of which change before the client has taken all. */
static void a_long_list_is_one_state(void **state)
{
    struct harness *h = *state;
    for (int i = 0; i < 2100; i++) {
        CLEANUP_FREE char *name = xasprintf("n%05d", i);
        free(make_net(h, name, 11 + i, NULL));
    }
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(h->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int small = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    static const char head[] = "GET " NETS " HTTP/1.0\r\n\r\n";
    assert_int_equal(write(fd, head, sizeof head - 1), sizeof head - 1);
    bool never = false;
    loop_run_until(h->loop, &never, 20);
    CLEANUP_ANSWER struct answer gone = ask_ok(h, "DELETE", NETS "/n02050", NULL, 200);
    CLEANUP_ANSWER struct answer changed = ask_full(
        h, "PATCH", NETS "/n02051", NULL, "application/merge-patch+json", "{\"netid\":99999}");
    assert_int_equal(changed.status, 200);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (int i = 0; i < 20000; i++) {
        char buf[16384];
        ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n == 0) {
            break;
        }
        if (n > 0) {
            strbuf_add(&text, buf, (size_t) n);
        } else {
            loop_run_until(h->loop, &never, 1);
        }
    }
    close(fd);
    const char *body = strstr(strbuf_cstr(&text), "\r\n\r\n");
    CLEANUP(json_free) struct json *list = NULL;
    assert_non_null(body);
    assert_int_equal(json_parse(body + 4, strlen(body + 4), &list, NULL), 0);
    const struct json *items = json_get(list, "items");
    assert_int_equal(json_count(items), 2100);
    assert_string_equal(json_path_string(json_at(items, 2050), "metadata", "name", NULL), "n02050");
    assert_int_equal(json_get_int_or(json_get(json_at(items, 2051), "netid"), 0), 11 + 2051);
}

/* The index by node agrees with what a walk over everything finds, for past states, too. */
static void pods_of_a_node_are_found(void **state)
{
    struct harness *h = *state;
    char *version = NULL;
    for (int i = 0; i < 60; i++) {
        CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"p%02d\"},\"spec\":{"
                                            "\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\","
                                            "\"image\":\"i\"}]}}",
                                            i,
                                            i % 3 == 0   ? ""
                                            : i % 3 == 1 ? "a"
                                                         : "b");
        CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", PODS, body, 201);
        free(version);
        version = xstrdup(at(&a, "metadata.resourceVersion"));
    }
    CLEANUP_ANSWER struct answer bound =
        ask_ok(h, "POST", PODS "/p00/binding",
               "{\"metadata\":{\"name\":\"p00\"},\"target\":{\"name\":\"a\"}}", 201);
    CLEANUP_ANSWER struct answer gone =
        ask_ok(h, "DELETE", PODS "/p01?gracePeriodSeconds=0", NULL, 200);
    CLEANUP_ANSWER
    struct answer now = ask_ok(h, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Da", NULL, 200);
    assert_int_equal(json_count(json_get(now.body, "items")), 20);
    assert_string_equal(at(&now, "items.0.metadata.name"), "p00");
    CLEANUP_FREE char *then = xasprintf(
        PODS "?fieldSelector=spec.nodeName%%3Da&resourceVersionMatch=Exact&resourceVersion=%s",
        version);
    CLEANUP_ANSWER struct answer past = ask_ok(h, "GET", then, NULL, 200);
    assert_int_equal(json_count(json_get(past.body, "items")), 20);
    assert_string_equal(at(&past, "items.0.metadata.name"), "p01");
    CLEANUP_ANSWER
    struct answer none = ask_ok(h, "GET", PODS "?fieldSelector=spec.nodeName%3D", NULL, 200);
    assert_int_equal(json_count(json_get(none.body, "items")), 19);
    CLEANUP_ANSWER struct answer one =
        ask_ok(h, "GET", PODS "?fieldSelector=metadata.name%3Dp05", NULL, 200);
    assert_int_equal(json_count(json_get(one.body, "items")), 1);
    /* All but those: the index of that value has none of them. */
    CLEANUP_ANSWER
    struct answer others =
        ask_ok(h, "GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3Da", NULL, 200);
    assert_int_equal(json_count(json_get(others.body, "items")), 39);
    CLEANUP_ANSWER
    struct answer but_one = ask_ok(h, "GET", PODS "?fieldSelector=metadata.name!%3Dp05", NULL, 200);
    assert_int_equal(json_count(json_get(but_one.body, "items")), 58);
    free(version);
}

/* Events have two names for everything, and are the same. */
static void events_are_seen_in_both_groups(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer old = ask_ok(
        h, "POST", "/api/v1/namespaces/default/events",
        "{\"metadata\":{\"name\":\"e1\"},\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\","
        "\"namespace\":\"default\"},\"message\":\"m\",\"source\":{\"component\":\"c\"},\"count\":"
        "3}",
        201);
    CLEANUP_ANSWER struct answer new = ask_ok(
        h, "POST", "/apis/events.k8s.io/v1/namespaces/default/events",
        "{\"metadata\":{\"name\":\"e2\"},\"regarding\":{\"kind\":\"Pod\",\"name\":\"q\","
        "\"namespace\":\"default\"},\"note\":\"n\",\"eventTime\":\"2026-01-01T00:00:00.000000Z\","
        "\"reportingController\":\"c\",\"reportingInstance\":\"i\",\"action\":\"a\",\"reason\":"
        "\"r\","
        "\"type\":\"Normal\"}",
        201);
    assert_string_equal(at(&new, "apiVersion"), "events.k8s.io/v1");
    assert_string_equal(at(&new, "note"), "n");
    CLEANUP_ANSWER struct answer a =
        ask_ok(h, "GET", "/apis/events.k8s.io/v1/namespaces/default/events/e1", NULL, 200);
    assert_string_equal(at(&a, "note"), "m");
    assert_string_equal(at(&a, "regarding.name"), "p");
    assert_string_equal(at(&a, "deprecatedSource.component"), "c");
    assert_string_equal(at(&a, "deprecatedCount"), "3");
    assert_null(json_get(a.body, "involvedObject"));
    CLEANUP_ANSWER struct answer b =
        ask_ok(h, "GET", "/api/v1/namespaces/default/events/e2", NULL, 200);
    assert_string_equal(at(&b, "apiVersion"), "v1");
    assert_string_equal(at(&b, "message"), "n");
    assert_string_equal(at(&b, "reportingComponent"), "c");
    CLEANUP_ANSWER struct answer list = ask_ok(
        h, "GET", "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp", NULL, 200);
    assert_int_equal(json_count(json_get(list.body, "items")), 1);
    assert_string_equal(at(&list, "items.0.note"), "m");
    /* A PUT makes an event that is not there, as clients' recorders expect. */
    CLEANUP_ANSWER struct answer put =
        ask_ok(h, "PUT", "/api/v1/namespaces/default/events/e3",
               "{\"involvedObject\":{\"namespace\":\"default\"},\"message\":\"x\"}", 201);
    CLEANUP_ANSWER struct answer bad =
        ask_ok(h, "POST", "/apis/events.k8s.io/v1/namespaces/default/events",
               "{\"metadata\":{\"name\":\"e4\"},\"regarding\":{\"namespace\":\"default\"}}", 422);
    assert_string_equal(at(&bad, "details.causes.0.field"), "eventTime");
}

static void answers_are_compressed_when_they_are_large(void **state)
{
    struct harness *h = *state;
    for (int i = 0; i < 1000; i++) {
        CLEANUP_FREE char *name = xasprintf("n%05d", i);
        free(make_net(h, name, 11 + i, NULL));
    }
    CLEANUP_ANSWER struct answer large = ask_encoded(h, NETS, "gzip");
    assert_true(large.status == 200);
    assert_string_equal(large.content_type, "gzip");
    CLEANUP_ANSWER struct answer small = ask_encoded(h, NETS "?limit=10", "gzip");
    assert_string_equal(small.content_type, "");
    CLEANUP_ANSWER struct answer plain = ask_encoded(h, NETS, "identity");
    assert_string_equal(plain.content_type, "");
    CLEANUP_ANSWER struct answer refused = ask_encoded(h, NETS, "gzip;q=0");
    assert_string_equal(refused.content_type, "");
}

static void metrics_count_requests(void **state)
{
    struct harness *h = *state;
    free(make_net(h, "a", 11, NULL));
    CLEANUP_ANSWER struct answer missing = ask_ok(h, "GET", NETS "/x", NULL, 404);
    struct watcher *w = watcher_new(h, NETS "?watch=1", NULL);
    CLEANUP_ANSWER struct answer m = ask_ok(h, "GET", "/metrics", NULL, 200);
    static const char *const lines[] = {
        "apiserver_request_total{verb=\"create\",resource=\"netnamespaces\",code=\"201\"} 1\n",
        "apiserver_request_total{verb=\"get\",resource=\"netnamespaces\",code=\"404\"} 1\n",
        "apiserver_request_duration_seconds_count{verb=\"create\",resource=\"netnamespaces\"} 1\n",
        "apiserver_storage_objects{resource=\"netnamespaces.network.openshift.io\"} 1\n",
        "apiserver_registered_watchers{resource=\"netnamespaces.network.openshift.io\"} 1\n",
        "# TYPE apiserver_request_duration_seconds histogram\n",
        "apiserver_storage_revision 2\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        if (!strstr(m.text, lines[i])) {
            fail_msg("no line %s in %s", lines[i], m.text);
        }
    }
    watcher_free(w);
}

static void a_client_reads_its_own_writes(void **state)
{
    struct harness *h = *state;
    for (int i = 0; i < 50; i++) {
        CLEANUP_FREE char *name = xasprintf("n%d", i);
        CLEANUP_FREE char *version = make_net(h, name, 20 + i, NULL);
        CLEANUP_FREE char *path = xasprintf(NETS "/%s?resourceVersion=%s", name, version);
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
        assert_string_equal(at(&a, "metadata.resourceVersion"), version);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(lists_are_complete_and_in_order),
        T(a_namespace_has_its_own_list),
        T(pages_show_one_state_whatever_happens_meanwhile),
        cmocka_unit_test(a_page_of_a_state_that_is_forgotten_is_gone),
        T(pages_respect_selectors),
        T(tables_are_made_on_request),
        T(the_most_wanted_form_is_taken),
        T(discovery_lists_what_there_is),
        T(clients_find_version_health_and_schema),
        T(metrics_count_requests),
        T(a_client_reads_its_own_writes),
        T(a_long_list_is_one_state),
        T(pods_of_a_node_are_found),
        T(events_are_seen_in_both_groups),
        T(answers_are_compressed_when_they_are_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
