/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a new cluster starts with: namespace, ClusterNetwork, roles and bindings. */
#include "api/typed.h"
#include "controllers/bootstrap.h"

#include "controller/obj.h"
#include "controllers/security/default_roles.h"
#include "controllers/security/rbac_bootstrap.h"
#include "json_text.h"
#include "rig.h"

#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define NETWORK "/apis/network.openshift.io/v1/clusternetworks"

static struct harness *h;
static struct api_client *client;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    return 0;
}

static int tear_down(void **state)
{
    api_client_free(client);
    harness_free(h);
    return 0;
}

static void flag(void *ctx)
{
    *(bool *) ctx = true;
}

/* ---- roles and bindings ---- */

static void reconcile(enum sdn_plugin plugin)
{
    bool done = false;
    const struct rbac_bootstrap_config cfg = {plugin, flag, &done};
    struct rig_controller *b = rig_start(h, client, &rbac_bootstrap_controller, &cfg);
    rig_wait(h, &done);
    rig_stop(b);
}

/* The object at 'path' without the members that the server adds; owned. */
static struct json *object_at(const char *path)
{
    CLEANUP_FREE char *text = rig_text(h, path);
    CLEANUP(json_free) struct json *o = NULL;
    assert_int_equal(json_parse(text, strlen(text), &o, NULL), 0);
    static const char *const added[] = {"uid", "resourceVersion", "creationTimestamp",
                                        "generation"};
    for (size_t i = 0; i < ARRAY_SIZE(added); i++) {
        json_remove(json_get(o, "metadata"), added[i]);
    }
    return TAKE(o);
}

static void expect_all(const char *plural, const struct json *want)
{
    CLEANUP_FREE char *list_path = xasprintf(RBAC "%s", plural);
    CLEANUP_ANSWER struct answer list = ask(h, "GET", list_path, NULL);
    assert_int_equal(json_count(json_get(list.body, "items")), json_count(want));
    const struct json *o;
    JSON_FOREACH (o, want) {
        CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
        strbuf_addf(&path, "%s/", list_path);
        http_escape(obj_name(o), &path);
        CLEANUP(json_free) struct json *has = object_at(strbuf_cstr(&path));
        CLEANUP(json_free) struct json *full = json_clone(o);
        const char *version = json_path_string(o, "apiVersion", NULL);
        api_typed_complete(api_kind_by_name(version, json_path_string(o, "kind", NULL))->schema,
                           full);
        if (!json_equal(has, full)) {
            CLEANUP_FREE char *a = json_to_text(has);
            CLEANUP_FREE char *b = json_to_text(full);
            fail_msg("%s, not %s", a, b);
        }
    }
}

static void default_roles_are_created_and_repaired(void **state)
{
    CLEANUP(json_free) struct json *roles = default_cluster_roles();
    CLEANUP(json_free) struct json *bindings = default_cluster_role_bindings(SDN_NETWORKPOLICY);
    CLEANUP(json_free) struct json *fewer = default_cluster_role_bindings(SDN_MULTITENANT);
    reconcile(SDN_MULTITENANT);
    expect_all("clusterroles", roles);
    expect_all("clusterrolebindings", fewer);
    rig_expect(h, "/api/v1/namespaces/kube-system", NULL, "200");
    rig_expect(h, "/api/v1/namespaces/kube-public", NULL, "200");
    rig_expect(h, "/api/v1/namespaces/kube-node-lease", NULL, "200");
    /* A second run writes nothing. */
    CLEANUP_ANSWER struct answer before = ask(h, "GET", RBAC "clusterroles", NULL);
    reconcile(SDN_MULTITENANT);
    CLEANUP_ANSWER struct answer after = ask(h, "GET", RBAC "clusterroles", NULL);
    assert_true(json_equal(json_get(before.body, "items"), json_get(after.body, "items")));
    /* Missing objects, rules and subjects are added; the administrator's own stay. */
    put_in(h, "DELETE", RBAC "clusterroles/view", NULL, 200);
    put_in(h, "PUT", RBAC "clusterroles/system:basic-user",
           "{'metadata': {'name': 'system:basic-user'}, 'rules': [{'verbs': ['get'],"
           "'apiGroups': ['x'], 'resources': ['mine']}]}",
           200);
    put_in(h, "PUT", RBAC "clusterroles/system:monitoring",
           "{'metadata': {'name': 'system:monitoring', 'annotations': {"
           "'rbac.authorization.kubernetes.io/autoupdate': 'false'}}, 'rules': []}",
           200);
    put_in(h, "PUT", RBAC "clusterrolebindings/system:discovery",
           "{'metadata': {'name': 'system:discovery'}, 'roleRef': {'apiGroup':"
           "'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'system:discovery'},"
           "'subjects': [{'kind': 'User', 'apiGroup': 'rbac.authorization.k8s.io', 'name': 'me'}]}",
           200);
    reconcile(SDN_NETWORKPOLICY);
    rig_expect(h, RBAC "clusterrolebindings/system:discovery", "subjects.0.name", "me");
    rig_expect(h, RBAC "clusterrolebindings/system:discovery", "subjects.1.name",
               "system:authenticated");
    put_in(h, "DELETE", RBAC "clusterrolebindings/system:discovery", NULL, 200);
    reconcile(SDN_NETWORKPOLICY);
    expect_all("clusterrolebindings", bindings);
    rig_expect(h, RBAC "clusterroles/view", NULL, "200");
    rig_expect(h, RBAC "clusterroles/system:basic-user", "rules.0.resources.0", "mine");
    rig_expect(h, RBAC "clusterroles/system:basic-user", "rules.1.resources.0",
               "selfsubjectaccessreviews");
    rig_expect(h, RBAC "clusterroles/system:monitoring", "rules.0.verbs.0", "");
}

static void kubernetes_own_parts_find_their_roles(void **state)
{
#define SYSTEM RBAC "namespaces/kube-system/"
#define READER "extension-apiserver-authentication-reader"
#define OF_JOBS RBAC "clusterrolebindings/system:controller:job-controller"
    reconcile(SDN_MULTITENANT);
    rig_expect(h, RBAC "clusterrolebindings/system:kube-controller-manager", "subjects.0.name",
               "system:kube-controller-manager");
    rig_expect(h, OF_JOBS, "roleRef.name", "system:controller:job-controller");
    rig_expect(h, OF_JOBS, "subjects.0.kind", "ServiceAccount");
    rig_expect(h, OF_JOBS, "subjects.0.name", "job-controller");
    rig_expect(h, OF_JOBS, "subjects.0.namespace", "kube-system");
    rig_expect(h, SYSTEM "roles/" READER, "rules.0.resourceNames.0",
               "extension-apiserver-authentication");
    rig_expect(h, SYSTEM "rolebindings/system::" READER, "roleRef.kind", "Role");
    rig_expect(h, SYSTEM "rolebindings/system::" READER, "subjects.1.name",
               "system:kube-scheduler");
    /* The role is there for administrators to bind; the node's authorizer decides without it. */
    rig_expect(h, RBAC "clusterroles/system:node", NULL, "200");
    rig_expect(h, RBAC "clusterrolebindings/system:node", NULL, "404");
}

static void roles_are_written_when_the_server_recovers(void **state)
{
    for (int writes_only = 0; writes_only < 2; writes_only++) {
        bool done = false;
        put_in(h, "DELETE", RBAC "clusterroles/view", NULL, 200);
        rig_refuse(h, writes_only);
        const struct rbac_bootstrap_config cfg = {SDN_NETWORKPOLICY, flag, &done};
        struct rig_controller *b = rig_start(h, client, &rbac_bootstrap_controller, &cfg);
        rig_recover(h);
        rig_wait(h, &done);
        rig_stop(b);
        rig_expect(h, RBAC "clusterroles/view", NULL, "200");
    }
}

/* ---- the network ---- */

struct outcome {
    bool done;
    int code;
    char text[512];
};

static void begun(void *ctx, const struct err *e)
{
    struct outcome *o = ctx;
    o->done = true;
    o->code = e ? e->code : 0;
    snprintf(o->text, sizeof o->text, "%s", e ? e->text : "");
}

static struct outcome begin_at(struct harness *at, struct api_client *c, const struct netconf *conf,
                               bool network_only)
{
    struct outcome o = {0};
    const struct bootstrap_config cfg = {*conf, network_only, begun, &o};
    struct rig_controller *b = rig_start(at, c, &bootstrap_controller, &cfg);
    rig_wait(at, &o.done);
    rig_stop(b);
    return o;
}

static struct outcome begin(const struct netconf *conf, bool network_only)
{
    return begin_at(h, client, conf, network_only);
}

static void the_network_is_created_changed_or_kept(void **state)
{
    struct netconf conf;
    netconf_defaults(&conf);
    assert_int_equal(begin(&conf, false).code, 0);
    rig_expect(h, NETWORK "/default", "serviceNetwork", "172.30.0.0/16");
    CLEANUP_FREE char *first = rig_text(h, NETWORK "/default");
    assert_int_equal(begin(&conf, true).code, 0);
    CLEANUP_FREE char *same = rig_text(h, NETWORK "/default");
    assert_string_equal(first, same);
    conf.mtu = 1400;
    assert_int_equal(begin(&conf, false).code, 0);
    rig_expect(h, NETWORK "/default", "mtu", "1400");
    /* A network that does not contain all nodes is refused, and nothing is written. */
    put_in(h, "POST", "/apis/network.openshift.io/v1/hostsubnets",
           "{'metadata': {'name': 'n1'}, 'host': 'n1', 'hostIP': '192.0.2.1',"
           "'subnet': '10.128.0.0/23'}",
           201);
    conf.mtu = 1300;
    conf.ranges[0].cidr = (struct ip4_prefix){0x0a400000, 14}; /* 10.64.0.0 */
    struct outcome o = begin(&conf, false);
    assert_int_equal(o.code, -EINVAL);
    assert_non_null(strstr(o.text, "n1"));
    rig_expect(h, NETWORK "/default", "mtu", "1400");
    netconf_defaults(&conf);
    conf.service = (struct ip4_prefix){0xac1f0000, 16}; /* 172.31.0.0 */
    o = begin(&conf, false);
    assert_int_equal(o.code, -EINVAL);
    rig_expect(h, NETWORK "/default", "serviceNetwork", "172.30.0.0/16");
    put_in(h, "DELETE", "/apis/network.openshift.io/v1/hostsubnets/n1", NULL, 200);
    /* A network that does not contain all pods is refused. */
    put_in(h, "POST", "/api/v1/namespaces/default/pods",
           "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}",
           201);
    put_in(h, "PUT", "/api/v1/namespaces/default/pods/p/status",
           "{'metadata': {'name': 'p'}, 'status': {'podIP': '10.128.0.5'}}", 200);
    netconf_defaults(&conf);
    conf.ranges[0].cidr = (struct ip4_prefix){0x0a400000, 14};
    o = begin(&conf, false);
    assert_int_equal(o.code, -EINVAL);
    assert_non_null(strstr(o.text, "p"));
}

static void the_network_is_written_when_the_server_recovers(void **state)
{
    for (int writes_only = 0; writes_only < 2; writes_only++) {
        struct harness *other = harness_new(NULL, NULL);
        struct api_client *c = rig_client(other);
        struct netconf conf;
        netconf_defaults(&conf);
        /* It is created, then changed. */
        for (int i = 0; i < 2; i++) {
            struct outcome o = {0};
            conf.mtu -= 10;
            rig_refuse(other, writes_only);
            const struct bootstrap_config cfg = {conf, i, begun, &o};
            struct rig_controller *b = rig_start(other, c, &bootstrap_controller, &cfg);
            rig_recover(other);
            rig_wait(other, &o.done);
            rig_stop(b);
            assert_int_equal(o.code, 0);
            rig_expect(other, NETWORK "/default", "mtu", i ? "1430" : "1440");
        }
        api_client_free(c);
        harness_free(other);
    }
}

static void a_network_that_the_server_refuses_is_reported(void **state)
{
    struct netconf conf;
    netconf_defaults(&conf);
    conf.mtu = 1;
    rig_uproot(h, "network.openshift.io", "clusternetworks", "default");
    struct outcome o = begin(&conf, true);
    assert_int_equal(o.code, -EINVAL);
    assert_true(str_has_prefix(o.text, "ClusterNetwork default: "));
}

static void network_only_leaves_the_namespace_to_the_other_api_server(void **state)
{
    struct harness *other = harness_new(NULL, NULL);
    struct api_client *c = rig_client(other);
    struct netconf conf;
    netconf_defaults(&conf);
    rig_uproot(other, "", "namespaces", "default");
    rig_expect(other, "/api/v1/namespaces/default", NULL, "404");
    assert_int_equal(begin_at(other, c, &conf, true).code, 0);
    rig_expect(other, "/api/v1/namespaces/default", NULL, "404");
    rig_expect(other, NETWORK "/default", NULL, "200");
    assert_int_equal(begin_at(other, c, &conf, false).code, 0);
    rig_expect(other, "/api/v1/namespaces/default", NULL, "200");
    api_client_free(c);
    harness_free(other);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(default_roles_are_created_and_repaired),
        T(kubernetes_own_parts_find_their_roles),
        T(the_network_is_created_changed_or_kept),
        T(roles_are_written_when_the_server_recovers),
        T(the_network_is_written_when_the_server_recovers),
        T(a_network_that_the_server_refuses_is_reported),
        T(network_only_leaves_the_namespace_to_the_other_api_server),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
