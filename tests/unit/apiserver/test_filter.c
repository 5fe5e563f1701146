/* SPDX-License-Identifier: Apache-2.0 */
/* The request filter: texts of 403, probes, PUT and PATCH that create, one reading of a path for
 * authorization and handlers, and changes of roles. */
#include "apiserver/access/authz.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/server_priv.h"
#include "csr.h"
#include "harness.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define RED "/api/v1/namespaces/red/"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){.anonymous = true});
    harness_listen_tls(h);
    free(make_namespace(h, "red"));
    give_rules(
        h, "red", "updater",
        "{'verbs': ['update', 'patch', 'get'], 'apiGroups': ['', 'apps', 'coordination.k8s.io'],"
        "'resources': ['configmaps', 'deployments/scale', 'leases']}");
    give_rules(h, "red", "maker",
               "{'verbs': ['create', 'update', 'patch'], 'apiGroups': ['coordination.k8s.io'],"
               "'resources': ['leases']}");
    give_rules(h, "red", "named",
               "{'verbs': ['update', 'patch', 'create'], 'apiGroups': ['coordination.k8s.io'],"
               "'resources': ['leases'], 'resourceNames': ['mine']}");
    give_rules(h, NULL, "reader",
               "{'verbs': ['get', 'list', 'watch'], 'apiGroups': ['*'],"
               "'resources': ['*']}");
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static void check(const char *who, const char *method, const char *path, const char *body,
                  int status, const char *message)
{
    CLEANUP_ANSWER struct answer a = ask_as(h, who, method, path, NULL, body);
    if (a.status != status || (message && !streq(at(&a, "message"), message))) {
        fail_msg("%s: %s %s: %d: %s", who, method, path, a.status, a.text);
    }
}

static void a_refusal_names_user_verb_resource_and_namespace(void **state)
{
    static const struct {
        const char *who, *method, *path, *message;
    } cases[] = {
        {"jane", "GET", RED "pods",
         "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the "
         "namespace \"red\""},
        {"jane", "GET", RED "pods?watch=true",
         "pods is forbidden: User \"jane\" cannot watch resource \"pods\" in API group \"\" in the "
         "namespace \"red\""},
        {"jane", "GET", "/api/v1/nodes/n1",
         "nodes \"n1\" is forbidden: User \"jane\" cannot get resource \"nodes\" in API group \"\" "
         "at the cluster scope"},
        {"jane", "PUT", "/apis/apps/v1/namespaces/red/deployments/d/scale",
         "deployments.apps \"d\" is forbidden: User \"jane\" cannot update resource "
         "\"deployments/scale\" in API group \"apps\" in the namespace \"red\""},
        {"jane", "GET", "/metrics", "forbidden: User \"jane\" cannot get path \"/metrics\""},
        {"jane", "POST", "/healthz", "forbidden: User \"jane\" cannot post path \"/healthz\""},
        {"jane", "GET", "/healthz/ping",
         "forbidden: User \"jane\" cannot get path \"/healthz/ping\""},
        {"a<b>&c", "GET", "/x%3Cy",
         "forbidden: User \"a&lt;b&gt;&amp;c\" cannot get path \"/x&lt;y\""},
        /* Unknown kinds and paths get 403, too. */
        {"jane", "GET", "/apis/example.com/v1/namespaces/red/things/t",
         "things.example.com \"t\" is forbidden: User \"jane\" cannot get resource \"things\" in "
         "API group \"example.com\" in the namespace \"red\""},
        {"jane", "GET", "/nothing", "forbidden: User \"jane\" cannot get path \"/nothing\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        check(cases[i].who, cases[i].method, cases[i].path, NULL, 403, cases[i].message);
    }
    CLEANUP_ANSWER struct answer a = ask_as(h, "jane", "GET", "/api/v1/nodes/n1", NULL, NULL);
    assert_string_equal(at(&a, "kind"), "Status");
    assert_string_equal(at(&a, "reason"), "Forbidden");
    assert_string_equal(at(&a, "code"), "403");
    assert_string_equal(at(&a, "details.name"), "n1");
    assert_string_equal(at(&a, "details.kind"), "nodes");
}

static void a_browser_does_not_sniff_the_type_of_a_refusal(void **state)
{
    CLEANUP_FREE char *text =
        ask_raw(h, "GET /%3Cscript%3E HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Authorization: Bearer " HARNESS_TOKEN "\r\nImpersonate-User: jane\r\n\r\n");
    assert_non_null(strstr(text, "HTTP/1.1 403 "));
    assert_non_null(strstr(text, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_null(strstr(text, "<script>"));
}

static void probes_need_no_rights(void **state)
{
    static const struct {
        const char *method, *path;
        int status;
    } cases[] = {
        {"GET", "/healthz", 200}, {"GET", "/livez", 200},       {"GET", "/readyz", 200},
        {"PUT", "/readyz", 403},  {"GET", "/healthz/log", 403}, {"GET", "/livez/", 403},
        {"GET", "/version", 403}, {"GET", "/api", 403},         {"GET", "/metrics", 403},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a =
            ask_by(h, &(struct sender){.tls = true}, cases[i].method, cases[i].path, NULL);
        if (a.status != cases[i].status) {
            fail_msg("%s %s: %d", cases[i].method, cases[i].path, a.status);
        }
    }
    /* Attributes of a resource are no probe, whatever their path. */
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    char empty[] = "", path[] = "/healthz";
    struct attributes a = {.is_resource = true,
                           .verb = "get",
                           .path = path,
                           .group = empty,
                           .version = empty,
                           .resource = empty,
                           .subresource = empty,
                           .namespace = empty,
                           .name = empty,
                           .node = empty};
    assert_false(authz_allows(h->api->security, u, &a, NULL));
    a.is_resource = false;
    assert_true(authz_allows(h->api->security, u, &a, NULL));
}

#define APPLY "application/apply-patch+yaml"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/red/leases"

static int apply(const char *who, const char *name)
{
    CLEANUP_FREE char *path = xasprintf(LEASES "/%s?fieldManager=t", name);
    CLEANUP_FREE char *body = xasprintf("{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease',"
                                        "'metadata': {'name': '%s'}}",
                                        name);
    const char *headers[] = {"Authorization", "Bearer " HARNESS_TOKEN, "Impersonate-User", who,
                             NULL};
    CLEANUP_ANSWER struct answer a =
        ask_by(h, &(struct sender){.headers = headers, .type = APPLY}, "PATCH", path, body);
    return a.status;
}

/* PUT creates a missing Lease or Event, apply a missing object of any kind. */
static void the_right_to_update_does_not_create(void **state)
{
#define LEASE(name) "{'metadata': {'name': '" name "'}, 'spec': {'holderIdentity': 'x'}}"
#define FORBIDDEN(who, name)                                                           \
    "leases.coordination.k8s.io " name "is forbidden: User \"" who "\" cannot create " \
    "resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"red\""
    put_in(h, "POST", LEASES, LEASE("there"), 201);
    static const struct {
        const char *who, *method, *path, *body;
        int status;
        const char *message;
    } cases[] = {
        {"updater", "PATCH", LEASES "/there", LEASE("there"), 200, NULL},
        /* It has the right; a Lease is only replaced by those who know what they replace. */
        {"updater", "PUT", LEASES "/there", LEASE("there"), 422,
         "Lease.coordination.k8s.io \"there\" is invalid: metadata.resourceVersion: Invalid value: "
         "0x0: must be specified for an update"},
        {"updater", "PUT", LEASES "/new", LEASE("new"), 403, FORBIDDEN("updater", "\"new\" ")},
        {"updater", "POST", LEASES, LEASE("new"), 403, FORBIDDEN("updater", "")},
        {"updater", "PUT", RED "configmaps/new", "{'metadata': {'name': 'new'}}", 404, NULL},
        {"reader", "GET", LEASES "/new", NULL, 404, NULL},
        {"maker", "PUT", LEASES "/new", LEASE("new"), 201, NULL},
        {"maker", "GET", LEASES "/new", NULL, 403, NULL},
        {"named", "PUT", LEASES "/mine", LEASE("mine"), 201, NULL},
        {"named", "PUT", LEASES "/yours", LEASE("yours"), 403, NULL},
        {"named", "POST", LEASES, LEASE("mine"), 403, NULL},
        {"nobody", "PUT", LEASES "/there", LEASE("there"), 403, NULL},
        {"reader", "PUT", LEASES "/there", LEASE("there"), 403, NULL},
        {"reader", "GET", LEASES "/yours", NULL, 404, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        check(cases[i].who, cases[i].method, cases[i].path, cases[i].body, cases[i].status,
              cases[i].message);
    }
    assert_int_equal(apply("updater", "there"), 200);
    assert_int_equal(apply("updater", "applied"), 403);
    assert_int_equal(apply("maker", "applied"), 201);
}

/* Binds the user "waiter" to a missing Role in "red". */
static void bind_waiter(const char *role)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'roleRef': {'apiGroup':"
                  "'rbac.authorization.k8s.io', 'kind': 'Role', 'name': '%s'}, 'subjects': ["
                  "{'kind': 'User', 'apiGroup': 'rbac.authorization.k8s.io', 'name': 'waiter'}]}",
                  role, role);
    put_in(h, "POST", RBAC "namespaces/red/rolebindings", body, 201);
}

static void a_refusal_names_missing_roles(void **state)
{
    static const char late[] =
        "pods is forbidden: User \"waiter\" cannot list resource \"pods\" in API group \"\" in the "
        "namespace \"red\": RBAC: role.rbac.authorization.k8s.io \"late\" not found";
    bind_waiter("late");
    check("waiter", "GET", RED "pods", NULL, 403, late);
    check("waiter", "GET", "/api/v1/namespaces/blue/pods", NULL, 403,
          "pods is forbidden: User \"waiter\" cannot list resource \"pods\" in API group \"\" in "
          "the namespace \"blue\"");
    put_in(h, "POST", RBAC "namespaces/red/roles",
           "{'metadata': {'name': 'late'}, 'rules': [{'verbs': ['update', 'list'],"
           "'apiGroups': ['', 'coordination.k8s.io'], 'resources': ['pods', 'leases']}]}",
           201);
    check("waiter", "GET", RED "pods", NULL, 200, NULL);
    /* The refusal of a create by PUT names them, too. */
    bind_waiter("gone");
    check("waiter", "PUT", LEASES "/absent", LEASE("absent"), 403,
          FORBIDDEN("waiter",
                    "\"absent\" ") ": RBAC: role.rbac.authorization.k8s.io \"gone\" not found");
    put_in(h, "DELETE", RBAC "namespaces/red/rolebindings/late", NULL, 200);
    check("waiter", "GET", RED "pods", NULL, 403, NULL);
}

static void roles_and_bindings_are_read_again_with_the_registry(void **state)
{
    struct security *s = h->api->security;
    CLEANUP(user_unref) struct user_info *updater = user_new("updater");
    CLEANUP(user_unref) struct user_info *reader = user_new("reader");
    assert_true(authz_may(s, updater, "update", "", "configmaps", "red", "x"));
    assert_true(authz_may(s, reader, "get", "", "configmaps", "red", "x"));
    security_changed(s, NULL, NULL);
    assert_true(authz_may(s, updater, "update", "", "configmaps", "red", "x"));
    assert_true(authz_may(s, updater, "update", "apps", "deployments/scale", "red", "x"));
    assert_false(authz_may(s, updater, "update", "apps", "deployments", "red", "x"));
    assert_false(authz_may(s, updater, "update", "", "configmaps", "blue", "x"));
    assert_true(authz_may(s, reader, "get", "", "configmaps", "red", "x"));
    /* Roles that the registry no longer has are forgotten. */
    rbac_set_role(s->rbac, "red", "updater", NULL);
    assert_false(authz_may(s, updater, "update", "", "configmaps", "red", "x"));
    security_changed(s, NULL, NULL);
    assert_true(authz_may(s, updater, "update", "", "configmaps", "red", "x"));
    CLEANUP(json_free) struct json *all = NULL;
    static const char rules[] = "{\"rules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],"
                                "\"resources\":[\"*\"]}]}";
    assert_int_equal(json_parse(rules, sizeof rules - 1, &all, NULL), 0);
    rbac_set_role(s->rbac, "red", "updater", all);
    assert_true(authz_may(s, updater, "delete", "", "configmaps", "red", "x"));
    security_changed(s, NULL, NULL);
    assert_false(authz_may(s, updater, "delete", "", "configmaps", "red", "x"));
}

/* ---- one reading of the path ---- */

/* Each path is one that two readings could take for two things; the user may only do
 * what the other one would be. */
static void a_request_is_authorized_for_what_it_is_served(void **state)
{
    static const struct {
        const char *rules, *method, *path;
        int status;
    } cases[] = {
        /* A right for the whole cluster does not become one within a project. */
        {"{'verbs': ['list'], 'apiGroups': [''], 'resources': ['']}", "GET",
         "/api/v1/namespaces//pods", 403},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/status']}", "GET",
         RED "pods/web", 403},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}", "GET",
         RED "pods/web/status", 403},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/status']}", "GET",
         RED "pods/web/status/more", 404},
        {"{'verbs': ['list'], 'apiGroups': [''], 'resources': ['pods']}", "GET", "/api/v1//pods",
         403},
        {"{'verbs': ['list'], 'apiGroups': [''], 'resources': ['pods']}", "GET", "/apis//v1/pods",
         404},
        {"{'verbs': ['list'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['a']}",
         "GET", RED "pods?fieldSelector=metadata.name%3Da", 200},
        {"{'verbs': ['list'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['a']}",
         "GET", RED "pods?fieldSelector=metadata.name%3Db", 403},
        {"{'verbs': ['deletecollection'], 'apiGroups': [''], 'resources': ['pods'],"
         "'resourceNames': ['a']}",
         "DELETE", RED "pods?fieldSelector=metadata.name%3Da", 403},
        {"{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}", "GET",
         RED "pods/web?watch=1", 403},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *who = xasprintf("reader-%zu", i);
        give_rules(h, NULL, who, cases[i].rules);
        check(who, cases[i].method, cases[i].path, NULL, cases[i].status, NULL);
    }
}

static void always_allow_and_masters_need_no_rules(void **state)
{
    h->api->security->always_allow = true;
    check("jane", "GET", "/api/v1/nodes", NULL, 200, NULL);
    h->api->security->always_allow = false;
    check("jane", "GET", "/api/v1/nodes", NULL, 403, NULL);
    check("jane system:masters", "GET", "/api/v1/nodes", NULL, 200, NULL);
    struct harness *trusting =
        harness_new_secure((struct apiserver_security){.always_allow = true});
    CLEANUP_ANSWER struct answer a = ask_as(trusting, "jane", "GET", "/api/v1/nodes", NULL, NULL);
    assert_int_equal(a.status, 200);
    harness_free(trusting);
    /* Without access control an impersonated user needs no rules either. */
    struct harness *open = harness_new(NULL, NULL);
    CLEANUP_ANSWER struct answer b = ask_as(open, "jane", "GET", "/api/v1/nodes", NULL, NULL);
    assert_int_equal(b.status, 200);
    harness_free(open);
}

/* A request before the registry is loaded, and its answer: users' rights and tokens are not
 * known. */
static void a_request_before_the_registry_is_loaded_is_repeated_later(void **state)
{
    static const char *const bearer[] = {"Authorization", "Bearer abcdef.0123456789abcdef", NULL};
    static const struct {
        struct sender by;
        int status;
        const char *says;
    } cases[] = {
        {{.tls = true, .headers = bearer}, 503, "the registry is being loaded"},
        {{.tls = true, .cn = "jane"}, 503, "the registry is being loaded"},
        {{.tls = true, .cn = "system:node:n1", .o = "system:nodes"},
         503,
         "the registry is being loaded"},
        {{.tls = true}, 503, "the registry is being loaded"},
        {{.tls = true, .cn = "root", .o = "system:masters"}, 404, "could not find"},
    };
    CLEANUP_ANSWER struct answer before = ask_by(h, &cases[0].by, "GET", RED "pods/web", NULL);
    assert_int_equal(before.status, 401);
    h->api->cache.ready = false;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a =
            ask_by(h, &cases[i].by, "GET", i == 4 ? "/no/such/path" : RED "pods/web", NULL);
        if (a.status != cases[i].status || !strstr(a.text, cases[i].says)) {
            fail_msg("case %zu: %d: %s", i, a.status, a.text);
        }
    }
    h->api->cache.ready = true;
}

static void nothing_is_allowed_before_roles_are_loaded(void **state)
{
    CLEANUP(jws_keys_free) struct jws_keys *keys = jws_keys_new();
    struct apiserver_security cfg = {.issuer = "https://example.com", .keys = keys};
    struct security *s = security_new(&h->api->cache, &cfg);
    CLEANUP(user_unref) struct user_info *u = user_new("updater");
    assert_false(authz_may(s, u, "update", "", "configmaps", "red", "x"));
    assert_string_equal(s->issuer, "https://example.com");
    assert_null(s->loopback_token);
    assert_ptr_equal(s->keys, keys);
    assert_false(s->anonymous);
    assert_false(s->always_allow);
    assert_false(s->open);
    assert_null(security_free(s));
    assert_null(security_free(NULL));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_refusal_names_user_verb_resource_and_namespace),
        T(a_browser_does_not_sniff_the_type_of_a_refusal),
        T(probes_need_no_rights),
        T(the_right_to_update_does_not_create),
        T(a_refusal_names_missing_roles),
        T(roles_and_bindings_are_read_again_with_the_registry),
        T(a_request_is_authorized_for_what_it_is_served),
        T(always_allow_and_masters_need_no_rules),
        T(a_request_before_the_registry_is_loaded_is_repeated_later),
        T(nothing_is_allowed_before_roles_are_loaded),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
