/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, pages, past states, forms of answers, discovery, health and metrics. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"
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
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"%s\"}}", name);
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
    assert_string_equal(at(&a, "items.0.kind"), "NetNamespace");
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

static void the_first_acceptable_form_is_taken(void **state)
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
        {"application/vnd.kubernetes.protobuf, application/json", 200, "application/json"},
        {"application/yaml", 200, "application/yaml"},
        {"text/html;q=0.9, application/json;q=0.1", 200, "application/json"},
        {"APPLICATION/JSON ; charset=utf-8", 200, "application/json"},
        {"application/vnd.kubernetes.protobuf", 406, "application/json"},
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
    static const char *const want[] = {"events",
                                       "namespaces",
                                       "namespaces/finalize",
                                       "namespaces/status",
                                       "nodes",
                                       "nodes/status",
                                       "pods",
                                       "pods/status",
                                       "secrets",
                                       "serviceaccounts",
                                       "serviceaccounts/token"};
    assert_int_equal(json_count(json_get(core.body, "resources")), ARRAY_SIZE(want));
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        const struct json *r = json_at(json_get(core.body, "resources"), i);
        assert_string_equal(json_path_string(r, "name", NULL), want[i]);
    }
    assert_string_equal(at(&core, "resources.6.shortNames.0"), "po");
    assert_string_equal(at(&core, "resources.10.kind"), "TokenRequest");
    assert_string_equal(at(&core, "resources.10.verbs.0"), "create");
    assert_int_equal(json_count(json_get(net.body, "resources")), 3);
    CLEANUP_ANSWER
    struct answer reviews = ask_ok(h, "GET", "/apis/authorization.k8s.io/v1", NULL, 200);
    assert_string_equal(at(&reviews, "resources.0.verbs.0"), "create");
    assert_string_equal(at(&reviews, "resources.0.verbs.1"), "");

    static const char aggregated[] =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    CLEANUP_ANSWER struct answer all = ask_full(h, "GET", "/apis", aggregated, NULL, NULL);
    assert_string_equal(at(&all, "kind"), "APIGroupDiscoveryList");
    assert_non_null(strstr(all.content_type, "as=APIGroupDiscoveryList"));
    assert_string_equal(at(&all, "items.0.metadata.name"), "network.openshift.io");
    assert_string_equal(at(&all, "items.0.versions.0.resources.1.resource"), "hostsubnets");
    CLEANUP_ANSWER struct answer one = ask_full(h, "GET", "/api", aggregated, NULL, NULL);
    assert_string_equal(at(&one, "items.0.versions.0.resources.3.subresources.0.subresource"),
                        "status");
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
        T(the_first_acceptable_form_is_taken),
        T(discovery_lists_what_there_is),
        T(clients_find_version_health_and_schema),
        T(metrics_count_requests),
        T(a_client_reads_its_own_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
