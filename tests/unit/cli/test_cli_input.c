/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands read: resources of the command line, and manifests. */
#include "cli/kubectl/manifest.h"
#include "cli/kubectl/resource.h"
#include "client/discovery.h"

#include "base/mem.h"
#include "net/loop/process.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* "KIND:NAME KIND: ..." of what 'n' arguments mean among 'known', or the error. */
static void assert_known_resources(const struct api_registry *known, int n, const char *const *args,
                                   const char *want)
{
    CLEANUP_RESOURCES struct resources r = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    if (resources_parse(known, n, (char *const *) args, &r, &e) < 0) {
        strbuf_adds(&out, e.text);
    }
    for (size_t i = 0; i < r.n; i++) {
        strbuf_addf(&out, "%s%s:%s", i ? " " : "", r.list[i].kind->kind,
                    r.list[i].name ? r.list[i].name : "*");
    }
    assert_string_equal(strbuf_cstr(&out), want);
}

static void assert_resources(int n, const char *const *args, const char *want)
{
    struct api_registry known;
    api_registry_init(&known, NULL);
    assert_known_resources(&known, n, args, want);
    api_registry_done(&known);
}
#define ARGS(...)                                                                 \
    (int) ARRAY_SIZE(((const char *const[]){__VA_ARGS__})), (const char *const[]) \
    {                                                                             \
        __VA_ARGS__                                                               \
    }

static void resources_are_understood_in_all_forms(void **state)
{
    assert_resources(ARGS("nodes"), "Node:*");
    assert_resources(ARGS("no"), "Node:*");
    assert_resources(ARGS("Node", "n1", "n2"), "Node:n1 Node:n2");
    assert_resources(ARGS("node,ns"), "Node:* Namespace:*");
    assert_resources(ARGS("project", "red"), "Project:red");
    assert_resources(ARGS("ns,netnamespaces", "red"), "Namespace:red NetNamespace:red");
    assert_resources(ARGS("node/n1", "ns/red"), "Node:n1 Namespace:red");
    assert_resources(ARGS("hostsubnets.network.openshift.io", "n1"), "HostSubnet:n1");
}

/* What a server answers to discovery, with two versions of a kind that is not compiled in. */
static const char discovered[] =
    "{'kind':'APIGroupDiscoveryList','items':[{'metadata':{'name':'example.com'},'versions':["
    "{'version':'v1','resources':[{'resource':'widgets','responseKind':{'kind':'Widget'},"
    "'scope':'Namespaced','singularResource':'widget','shortNames':['wd'],'categories':['all'],"
    "'verbs':['get','list','delete']}]},"
    "{'version':'v1beta1','resources':[{'resource':'widgets','responseKind':{'kind':'Widget'},"
    "'scope':'Namespaced','singularResource':'widget','categories':['all'],'verbs':['get']}]}]}]}";

static void kinds_are_learned_by_discovery(void **state)
{
    CLEANUP(discovery_free) struct discovery *d = discovery_new();
    CLEANUP(json_free) struct json *answer = NULL;
    CLEANUP_FREE char *text = xstrdup(discovered);
    struct err e = {0};
    for (char *p = text; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    assert_int_equal(json_parse(text, strlen(text), &answer, &e), 0);
    assert_int_equal(discovery_add(d, answer, &e), 0);
    const struct api_registry *known = discovery_registry(d);
    assert_int_equal(known->n, 2);
    assert_known_resources(known, ARGS("wd"), "Widget:*");
    assert_known_resources(known, ARGS("widgets.v1beta1.example.com", "a"), "Widget:a");
    assert_known_resources(known, ARGS("widget/a"), "Widget:a");
    assert_known_resources(known, ARGS("all"), "Widget:*");
    const struct api_kind *k = api_registry_by_alias(known, "wd");
    assert_string_equal(k->version, "v1");
    assert_true(discovery_is_preferred(d, k));
    assert_int_equal(discovery_verbs(k), DISCOVERY_GET | DISCOVERY_LIST | DISCOVERY_DELETE);
    k = api_registry_by_alias(known, "widgets.v1beta1.example.com");
    assert_false(discovery_is_preferred(d, k));
    /* Only the server knows all kinds of a category. */
    assert_resources(ARGS("all"), "the server doesn't have a resource type \"all\"");
    json_set_string(answer, "kind", "APIGroupList");
    assert_int_equal(discovery_add(d, answer, &e), -EPROTO);
}

static void wrong_resources_are_told(void **state)
{
    assert_resources(0, NULL, "you must specify the type of resource");
    assert_resources(ARGS("nosuch"), "the server doesn't have a resource type \"nosuch\"");
    assert_resources(ARGS("node,nosuch"), "the server doesn't have a resource type \"nosuch\"");
    assert_resources(ARGS("nosuch/x"), "the server doesn't have a resource type \"nosuch\"");
    assert_resources(ARGS("node/"),
                     "arguments in resource/name form must have a single resource and name");
    assert_resources(ARGS("node/a/b"),
                     "arguments in resource/name form must have a single resource and name");
    const char *mixed = "there is no need to specify a resource type as a separate argument when "
                        "passing arguments in resource/name form (e.g. 'tenet get resource/<name>' "
                        "instead of 'tenet get resource resource/<name>'";
    assert_resources(ARGS("node", "node/n1"), mixed);
    assert_resources(ARGS("node/n1", "n2"), mixed);
}

static void paths_and_labels_fit_the_kind(void **state)
{
    const struct api_kind *pod = api_kind_by_alias("pod"), *hs = api_kind_by_alias("hostsubnet");
    CLEANUP_FREE char *a = resource_path(pod, "red", "web");
    CLEANUP_FREE char *b = resource_path(pod, NULL, NULL);
    CLEANUP_FREE char *c = resource_path(hs, "red", "n/1");
    CLEANUP_FREE char *d = resource_label(hs);
    CLEANUP_FREE char *f = resource_label(pod);
    assert_string_equal(a, "/api/v1/namespaces/red/pods/web");
    assert_string_equal(b, "/api/v1/pods");
    assert_string_equal(c, "/apis/network.openshift.io/v1/hostsubnets/n%2F1");
    assert_string_equal(d, "hostsubnet.network.openshift.io");
    assert_string_equal(f, "pod");
    CLEANUP_STRBUF struct strbuf q = STRBUF_INIT;
    strbuf_adds(&q, "/p");
    resource_query(&q, "x", NULL);
    resource_query(&q, "x", "a b");
    resource_query(&q, "y", "c=d");
    assert_string_equal(strbuf_cstr(&q), "/p?x=a%20b&y=c%3Dd");
}

static void parse(const char *text, size_t want_n, const char *want_error)
{
    struct manifests m = {0};
    struct err e = {0};
    int r = manifests_parse(&m, "f", text, strlen(text), &e);
    assert_string_equal(e.text, want_error);
    assert_int_equal(r, *want_error ? -EINVAL : 0);
    assert_int_equal(m.n, want_n);
    manifests_done(&m);
}

static void manifests_hold_documents_and_lists(void **state)
{
    parse("", 0, "");
    parse("apiVersion: v1\nkind: Namespace\nmetadata: {name: red}\n", 1, "");
    parse("apiVersion: v1\nkind: Namespace\n---\n---\napiVersion: v1\nkind: Pod\n", 2, "");
    parse("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\"}", 1, "");
    parse("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node}\n"
          "- {apiVersion: network.openshift.io/v1, kind: HostSubnet}\n",
          2, "");
    parse("apiVersion: v1\nkind: List\nitems: []\n", 0, "");
}

static void wrong_manifests_are_told(void **state)
{
    parse("- a\n", 0, "f: a document is not an object");
    parse("kind: Pod\n", 0, "f: apiVersion not set");
    parse("apiVersion: v1\n", 0, "f: kind not set");
    struct manifests m = {0};
    struct api_registry known;
    struct err e = {0};
    static const char text[] =
        "apiVersion: v1\nkind: Pod\n---\napiVersion: v2\nkind: Pod\nmetadata: {name: x}\n";
    api_registry_init(&known, NULL);
    assert_int_equal(manifests_parse(&m, "f", text, strlen(text), &e), 0);
    assert_int_equal(manifests_resolve(&m, &known, &e), -ENOENT);
    assert_string_equal(e.text, "resource mapping not found for name: \"x\" namespace: \"\" from "
                                "\"f\": no matches for kind \"Pod\" in version \"v2\"");
    assert_string_equal(m.list[0].kind->plural, "pods");
    manifests_done(&m);
    api_registry_done(&known);
}

static void manifests_come_from_files_and_folders(void **state)
{
    char dir[] = "/tmp/tenet-unit-manifest-XXXXXX";
    assert_non_null(mkdtemp(dir));
    static const char *const names[] = {"b.yaml", "a.json", "c.txt"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", dir, names[i]);
        CLEANUP_FREE char *text = xasprintf(
            "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"%c\"}}",
            names[i][0]);
        assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
    }
    struct manifests m = {0};
    struct err e = {0};
    assert_int_equal(manifests_read(&m, dir, &e), 0);
    assert_int_equal(m.n, 2);
    assert_string_equal(json_path_string(m.list[0].object, "metadata", "name", NULL), "a");
    assert_string_equal(json_path_string(m.list[1].object, "metadata", "name", NULL), "b");
    CLEANUP_FREE char *absent = xasprintf("%s/absent", dir);
    assert_int_equal(manifests_read(&m, absent, &e), -ENOENT);
    assert_non_null(strstr(e.text, absent));

    /* What a shell makes of -f <(command). */
    static const char text[] = "{kind: Namespace, apiVersion: v1, metadata: {name: piped}}";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    close(ends[1]);
    CLEANUP_FREE char *piped = xasprintf("/dev/fd/%d", ends[0]);
    assert_int_equal(manifests_read(&m, piped, &e), 0);
    assert_int_equal(m.n, 3);
    close(ends[0]);
    manifests_done(&m);
    assert_int_equal(dir_remove(dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_are_understood_in_all_forms),
        cmocka_unit_test(wrong_resources_are_told),
        cmocka_unit_test(paths_and_labels_fit_the_kind),
        cmocka_unit_test(kinds_are_learned_by_discovery),
        cmocka_unit_test(manifests_hold_documents_and_lists),
        cmocka_unit_test(wrong_manifests_are_told),
        cmocka_unit_test(manifests_come_from_files_and_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
