/* SPDX-License-Identifier: Apache-2.0 */
/* Default roles, aggregation, and what certificates are signed for. */
#include "api/kind.h"
#include "apiserver/access/rbac.h"
#include "base/base64.h"
#include "base/mem.h"
#include "controller/obj.h"
#include "controllers/security/certificates.h"
#include "controllers/security/default_roles.h"
#include "controllers/security/join_tokens.h"
#include "controllers/security/role_aggregation.h"
#include "net/tls/pki_csr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void check_valid(const struct json *list)
{
    const struct json *o;
    JSON_FOREACH (o, list) {
        const struct api_kind *k = api_kind_by_name(json_path_string(o, "apiVersion", NULL),
                                                    json_path_string(o, "kind", NULL));
        CLEANUP(api_causes_done) struct api_causes c = {0};
        assert_non_null(k);
        api_validate_object(k, o, NULL, &c);
        if (c.n) {
            fail_msg("%s: %s: %s", obj_name(o), c.list[0].field, c.list[0].message);
        }
    }
}

static const struct json *find(const struct json *list, const char *name)
{
    const struct json *o;
    JSON_FOREACH (o, list) {
        if (streq(obj_name(o), name)) {
            return o;
        }
    }
    return NULL;
}

/* An evaluator with the default roles, their aggregation done, and 'role' given to jane
 * in "red". */
static struct rbac *with_role(const char *role)
{
    CLEANUP(json_free) struct json *roles = default_cluster_roles();
    struct rbac *r = rbac_new();
    struct json *o;
    /* "edit" gathers "view", and "admin" both: as often as it takes. */
    for (int pass = 0; pass < 3; pass++) {
        JSON_FOREACH (o, roles) {
            if (json_get(o, "aggregationRule")) {
                json_set(o, "rules", role_aggregation_rules(o, roles));
            }
        }
    }
    JSON_FOREACH (o, roles) {
        rbac_set_role(r, NULL, obj_name(o), o);
    }
    CLEANUP(json_free) struct json *b = json_object();
    struct json *ref = json_ensure_object(b, "roleRef");
    json_set_string(ref, "kind", "ClusterRole");
    json_set_string(ref, "name", role);
    struct json *s = json_append(json_ensure_array(b, "subjects"), json_object());
    json_set_string(s, "kind", "User");
    json_set_string(s, "name", "jane");
    rbac_set_binding(r, "red", "b", b);
    return r;
}

static bool may(const struct rbac *r, const char *verb, const char *group, const char *resource,
                const char *ns)
{
    char none[] = "";
    CLEANUP(user_unref) struct user_info *u = user_new("jane");
    struct attributes a = {.is_resource = true,
                           .verb = verb,
                           .path = none,
                           .group = (char *) group,
                           .resource = (char *) resource,
                           .subresource = none,
                           .namespace = (char *) ns,
                           .name = none};
    return rbac_allows(r, u, &a, NULL);
}

static void default_objects_are_valid_and_name_each_other(void **state)
{
    CLEANUP(json_free) struct json *roles = default_cluster_roles();
    CLEANUP(json_free) struct json *bindings = default_cluster_role_bindings(SDN_NETWORKPOLICY);
    CLEANUP(json_free) struct json *plain = default_cluster_role_bindings(SDN_MULTITENANT);
    CLEANUP(json_free) struct json *namespaces = default_namespaces();
    const struct json *b;
    check_valid(roles);
    check_valid(bindings);
    check_valid(namespaces);
    JSON_FOREACH (b, bindings) {
        assert_non_null(find(roles, json_path_string(b, "roleRef", "name", NULL)));
    }
    /* Nodes read all pods only where they need it. */
    assert_non_null(find(bindings, "system:sdn-policy-readers"));
    assert_null(find(plain, "system:sdn-policy-readers"));
    assert_int_equal(json_count(plain) + 1, json_count(bindings));
}

static bool names(const char *const *list, const char *s)
{
    while (list && *list && !streq(*list, s)) {
        list++;
    }
    return list && *list;
}

/* The kinds whose descriptions name no role, but which members of projects may read or change. */
static bool has_rules_of_its_own(const char *plural)
{
    static const char *const plurals[] = {"bindings", "namespaces", "projects", "secrets",
                                          "localsubjectaccessreviews"};
    for (size_t i = 0; i < ARRAY_SIZE(plurals); i++) {
        if (streq(plurals[i], plural)) {
            return true;
        }
    }
    return false;
}

static void kinds_are_in_the_roles_that_their_descriptions_name(void **state)
{
    struct rbac *view = with_role("view"), *edit = with_role("edit");
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        if (has_rules_of_its_own(k->plural) || streq(k->group, "metrics.k8s.io")) {
            continue; /* Metrics are read by a role of their own, which is part of "view". */
        }
        bool reads = names(k->roles, "view"), writes = names(k->roles, "edit");
        if (may(view, "list", k->group, k->plural, "red") != reads ||
            may(edit, "update", k->group, k->plural, "red") != writes ||
            may(view, "update", k->group, k->plural, "red")) {
            fail_msg("%s: view reads %d, edit writes %d", k->plural, reads, writes);
        }
    }
    /* As in Kubernetes. */
    assert_true(may(view, "get", "apps", "controllerrevisions", "red"));
    assert_false(may(edit, "create", "apps", "controllerrevisions", "red"));
    assert_false(may(edit, "get", "", "podtemplates", "red"));
    rbac_free(view);
    rbac_free(edit);
}

static void a_scheduler_reads_all_and_binds(void **state)
{
    struct rbac *r = with_role("system:kube-scheduler");
    static const char *const core[] = {"namespaces", "nodes", "persistentvolumes",
                                       "services",   "pods",  "replicationcontrollers"};
    static const char *const storage[] = {"csidrivers", "csinodes", "storageclasses",
                                          "csistoragecapacities"};
    for (size_t i = 0; i < ARRAY_SIZE(core); i++) {
        assert_true(may(r, "watch", "", core[i], "red"));
        assert_false(may(r, "create", "", core[i], "red"));
    }
    for (size_t i = 0; i < ARRAY_SIZE(storage); i++) {
        assert_true(may(r, "list", "storage.k8s.io", storage[i], "red"));
        assert_false(may(r, "update", "storage.k8s.io", storage[i], "red"));
    }
    assert_true(may(r, "create", "", "bindings", "red"));
    assert_true(may(r, "list", "apps", "statefulsets", "red"));
    assert_true(may(r, "watch", "policy", "poddisruptionbudgets", "red"));
    assert_false(may(r, "update", "", "pods", "red"));
    assert_false(may(r, "get", "", "secrets", "red"));
    rbac_free(r);
}

static void project_roles_are_what_their_names_say(void **state)
{
    static const char rbac[] = "rbac.authorization.k8s.io";
    struct rbac *view = with_role("view"), *edit = with_role("edit"), *admin = with_role("admin");
    assert_true(may(view, "list", "", "pods", "red"));
    assert_false(may(view, "create", "", "pods", "red"));
    assert_false(may(view, "get", "", "secrets", "red"));
    assert_false(may(view, "list", rbac, "rolebindings", "red"));
    assert_false(may(view, "list", "", "pods", "blue"));
    assert_true(may(edit, "create", "", "pods", "red"));
    assert_true(may(edit, "get", "", "secrets", "red"));
    assert_true(may(edit, "impersonate", "", "serviceaccounts", "red"));
    assert_false(may(edit, "list", rbac, "rolebindings", "red"));
    assert_false(may(edit, "list", rbac, "roles", "red"));
    assert_false(may(edit, "update", "", "resourcequotas", "red"));
    assert_true(may(admin, "delete", "", "pods", "red"));
    assert_true(may(admin, "create", rbac, "rolebindings", "red"));
    assert_true(may(admin, "list", rbac, "roles", "red"));
    static const char *const writes[] = {"create", "update", "patch", "delete", "deletecollection"};
    for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
        assert_true(may(admin, writes[i], rbac, "roles", "red"));
        assert_false(may(edit, writes[i], rbac, "roles", "red"));
        assert_false(may(admin, writes[i], rbac, "clusterroles", ""));
    }
    /* The verbs that pass by the check of what an author of roles has. */
    assert_false(may(admin, "escalate", rbac, "roles", "red"));
    assert_false(may(admin, "bind", rbac, "roles", "red"));
    assert_false(may(admin, "bind", rbac, "clusterroles", "red"));
    assert_false(may(admin, "update", "", "resourcequotas", "red"));
    assert_true(may(admin, "get", "", "resourcequotas", "red"));
    assert_false(may(admin, "list", "", "nodes", ""));
    assert_true(may(admin, "create", "", "serviceaccounts", "red"));
    /* The namespace is the cluster administrator's. */
    static const char *const changes[] = {"create", "update", "patch", "delete",
                                          "deletecollection"};
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        assert_false(may(admin, changes[i], "", "namespaces", "red"));
    }
    assert_true(may(admin, "get", "", "namespaces", "red"));
    assert_true(may(admin, "update", "project.openshift.io", "projects", "red"));
    assert_true(may(admin, "delete", "project.openshift.io", "projects", "red"));
    assert_false(may(edit, "update", "project.openshift.io", "projects", "red"));
    assert_false(may(edit, "delete", "project.openshift.io", "projects", "red"));
    struct rbac *reader = with_role("cluster-reader"), *basic = with_role("basic-user");
    struct rbac *provisioner = with_role("self-provisioner");
    assert_true(may(reader, "list", "", "namespaces", "red"));
    assert_true(may(reader, "watch", "network.openshift.io", "hostsubnets", "red"));
    assert_false(may(reader, "get", "", "secrets", "red"));
    assert_false(may(reader, "update", "", "namespaces", "red"));
    assert_true(may(basic, "list", "project.openshift.io", "projectrequests", "red"));
    assert_true(may(basic, "create", "authorization.k8s.io", "selfsubjectaccessreviews", "red"));
    assert_false(may(basic, "list", "user.openshift.io", "users", "red"));
    assert_true(may(provisioner, "create", "project.openshift.io", "projectrequests", "red"));
    assert_false(may(provisioner, "create", "", "namespaces", "red"));
    rbac_free(reader);
    rbac_free(basic);
    rbac_free(provisioner);
    rbac_free(view);
    rbac_free(edit);
    rbac_free(admin);
}

static void reconciling_adds_and_leaves_what_the_administrator_added(void **state)
{
    CLEANUP(json_free) struct json *roles = default_cluster_roles();
    const struct json *want = find(roles, "system:discovery");
    CLEANUP(json_free) struct json *have = json_clone(want);
    assert_null(default_reconciled(want, have));
    /* A rule and a label of the administrator's stay, what is missing comes. */
    struct json *mine = json_object();
    json_append(json_ensure_array(mine, "verbs"), json_string("mine"));
    json_set(have, "rules", json_array());
    json_append(json_get(have, "rules"), mine);
    CLEANUP(json_free) struct json *out = default_reconciled(want, have);
    assert_non_null(out);
    assert_int_equal(json_count(json_get(out, "rules")), json_count(json_get(want, "rules")) + 1);
    obj_set_annotation(have, ANNOTATION_AUTOUPDATE, "false");
    assert_null(default_reconciled(want, have));
}

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
    return v;
}

/* The rule that role admin had in earlier versions, and one like it. */
#define OLD_RULE                                                                 \
    "{\"verbs\":[\"get\",\"delete\",\"patch\",\"update\"],\"apiGroups\":[\"\"]," \
    "\"resources\":[\"namespaces\"]}"
#define LIKE_IT                                                                      \
    "{\"verbs\":[\"get\",\"delete\",\"patch\"],\"apiGroups\":[\"\"],\"resources\":[" \
    "\"namespaces\"]}"

static void reconciling_takes_away_what_was_withdrawn(void **state)
{
    static const char *const names[] = {"system:aggregate-to-admin", "admin"};
    CLEANUP(json_free) struct json *roles = default_cluster_roles();
    CLEANUP(json_free) struct json *old = parse(OLD_RULE);
    CLEANUP(json_free) struct json *like = parse(LIKE_IT);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct json *want = find(roles, names[i]), *rule;
        CLEANUP(json_free) struct json *have = json_clone(want);
        json_append(json_ensure_array(have, "rules"), json_clone(old));
        json_append(json_get(have, "rules"), json_clone(like));
        json_append(json_get(have, "rules"), json_clone(old));
        assert_false(default_keeps_withdrawn(have));
        CLEANUP(json_free) struct json *out = default_reconciled(want, have);
        assert_int_equal(json_count(json_get(out, "rules")),
                         json_count(json_get(want, "rules")) + 1);
        bool kept = false;
        JSON_FOREACH (rule, json_get(out, "rules")) {
            assert_false(json_equal(rule, old));
            kept |= json_equal(rule, like);
        }
        assert_true(kept);
        obj_set_annotation(have, ANNOTATION_AUTOUPDATE, "false");
        assert_null(default_reconciled(want, have));
        assert_true(default_keeps_withdrawn(have));
        obj_set_annotation(out, ANNOTATION_AUTOUPDATE, "false");
        assert_false(default_keeps_withdrawn(out));
    }
    /* Of another role nothing is taken. */
    const struct json *want = find(roles, "system:discovery");
    CLEANUP(json_free) struct json *have = json_clone(want);
    json_append(json_get(have, "rules"), json_clone(old));
    assert_null(default_reconciled(want, have));
}

static void aggregation_takes_what_selectors_match(void **state)
{
    static const char text[] =
        "[{\"metadata\":{\"name\":\"all\"},\"aggregationRule\":{\"clusterRoleSelectors\":["
        "{\"matchLabels\":{\"a\":\"1\"}},"
        "{\"matchExpressions\":[{\"key\":\"b\",\"operator\":\"In\",\"values\":[\"x\"]}]}]}},"
        "{\"metadata\":{\"name\":\"one\",\"labels\":{\"a\":\"1\",\"b\":\"x\"}},\"rules\":[1]},"
        "{\"metadata\":{\"name\":\"two\",\"labels\":{\"b\":\"x\"}},\"rules\":[2]},"
        "{\"metadata\":{\"name\":\"not\",\"labels\":{\"a\":\"2\"}},\"rules\":[3]}]";
    CLEANUP(json_free) struct json *roles = NULL;
    assert_int_equal(json_parse(text, sizeof text - 1, &roles, NULL), 0);
    CLEANUP(json_free) struct json *rules = role_aggregation_rules(json_at(roles, 0), roles);
    CLEANUP_FREE char *got = json_to_text(rules);
    assert_string_equal(got, "[1,2]");
}

static struct json *csr(const char *signer, const char *user, const char *cn, const char *group,
                        const char *usage)
{
    CLEANUP_FREE char *pem = NULL;
    CLEANUP_FREE char *key = NULL;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pki_csr_make(cn, &group, group ? 1 : 0, &pem, &key);
    base64_encode(pem, strlen(pem), &b);
    struct json *o = json_object(), *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "request", strbuf_cstr(&b));
    json_set_string(spec, "signerName", signer);
    json_set_string(spec, "username", user);
    json_append(json_ensure_array(spec, "usages"), json_string("digital signature"));
    json_append(json_ensure_array(spec, "usages"), json_string(usage));
    return o;
}

static void signers_sign_what_they_are_for(void **state)
{
#define CLIENT "kubernetes.io/kube-apiserver-client"
#define KUBELET CLIENT "-kubelet"
    static const struct {
        const char *signer, *cn, *group, *usage;
        int result;
        bool node;
    } cases[] = {
        {KUBELET, "system:node:n1", "system:nodes", "client auth", 0, true},
        {KUBELET, "system:node:", "system:nodes", "client auth", -EINVAL, false},
        {KUBELET, "n1", "system:nodes", "client auth", -EINVAL, false},
        {KUBELET, "system:node:n1", "system:masters", "client auth", -EINVAL, false},
        {KUBELET, "system:node:n1", NULL, "client auth", -EINVAL, false},
        {KUBELET, "system:node:n1", "system:nodes", "server auth", -EINVAL, false},
        {CLIENT, "jane", "dev", "client auth", 0, false},
        {CLIENT, "jane", "system:masters", "client auth", -EINVAL, false},
        {CLIENT, "jane", "dev", "any", -EINVAL, false},
        {"kubernetes.io/kubelet-serving", "system:node:n1", "system:nodes", "server auth", -EINVAL,
         false},
        {"example.com/mine", "jane", NULL, "client auth", -ENOTSUP, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free)
        struct json *o = csr(cases[i].signer, "boot", cases[i].cn, cases[i].group, cases[i].usage);
        struct err e = {0};
        if (certificates_check(o, &e) != cases[i].result ||
            certificates_is_node_client(o) != cases[i].node) {
            fail_msg("%zu: %s", i, e.text);
        }
    }
}

static void a_certificate_names_what_a_node_can_be_called(void **state)
{
    static const struct {
        const char *cn;
        bool server;
        const char *name;  /* Another one; NULL: none. */
        const char *error; /* Its begin; NULL: good. */
    } cases[] = {
        {"system:node:n1", false, NULL, NULL},
        {"system:node:n1.example.com", false, NULL, NULL},
        {"jane", false, NULL, NULL},
        {"Jane Doe", false, NULL, NULL},
        {"system:node:", false, NULL, "the common name \"system:node:\" is of no node"},
        {"system:node:../../x", false, NULL,
         "the common name \"system:node:../../x\" is of no node"},
        {"system:node:NODE1", false, NULL, "the common name \"system:node:NODE1\" is of no node"},
        {"system:node:a b", false, NULL, "the common name \"system:node:a b\" is of no node"},
        {"system:node:a/b", false, NULL, "the common name \"system:node:a/b\" is of no node"},
        {"system:node:-a", false, NULL, "the common name \"system:node:-a\" is of no node"},
        {"system:node:a.", false, NULL, "the common name \"system:node:a.\" is of no node"},
        {"system:node:a\n", false, NULL, "the common name \"system:node:a\n\" is of no node"},
        {"system:node:n1", true, "n1.example.com", NULL},
        {"system:node:n1", true, "192.0.2.1", NULL},
        {"system:node:n1", true, "*.example.com", "the name \"*.example.com\" is of no host"},
        {"system:node:n1", true, "Kubernetes", "the name \"Kubernetes\" is of no host"},
        {"system:node:n1", true, "", "the name \"\" is of no host"},
        {"system:node:n1", true, "127.0.0.1", "the address: 127.0.0.1 is a loopback address"},
        {"system:node:n1", true, "0.0.0.0", "the address: 0.0.0.0 is not an address of a host"},
        {"system:node:n1", true, "224.0.0.1", "the address: 224.0.0.1 is a multicast address"},
        {"jane", false, "*.example.com", NULL}, /* It gets no names. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *names[] = {(char *) cases[i].name};
        struct pki_csr c = {
            .cn = (char *) cases[i].cn, .names = names, .n_names = cases[i].name != NULL};
        struct err e = {0};
        int r = pki_csr_check_names(&c, cases[i].server, &e);
        if (cases[i].error ? r != -EINVAL || !str_has_prefix(e.text, cases[i].error) : r != 0) {
            fail_msg("%s %s: %d %s", cases[i].cn, cases[i].name, r, e.text);
        }
    }
    CLEANUP_STRBUF struct strbuf longest = STRBUF_INIT;
    for (size_t i = 0; i < 254; i++) {
        strbuf_addc(&longest, i % 64 == 63 ? '.' : 'a');
    }
    CLEANUP_FREE char *cn = xasprintf("system:node:%s", strbuf_cstr(&longest));
    struct pki_csr c = {.cn = cn};
    assert_int_equal(pki_csr_check_names(&c, false, NULL), -EINVAL);
    cn[strlen(cn) - 1] = '\0'; /* 253 characters. */
    assert_int_equal(pki_csr_check_names(&c, false, NULL), 0);
}

/* Whoever wrote and approved it: as if the request had come past the API server's admission. */
static void no_signer_signs_for_a_name_that_no_node_has(void **state)
{
    static const char *const signers[] = {"kubernetes.io/kube-apiserver-client-kubelet",
                                          "kubernetes.io/kube-apiserver-client"};
    static const char *const names[] = {"system:node:../../x", "system:node:NODE1",
                                        "system:node:a b", "system:node:"};
    for (size_t i = 0; i < ARRAY_SIZE(signers); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
            CLEANUP(json_free)
            struct json *o = csr(signers[i], "boot", names[k], "system:nodes", "client auth");
            struct err e = {0};
            assert_int_equal(certificates_check(o, &e), -EINVAL);
            assert_true(str_has_prefix(e.text, "the common name \"system:node:"));
            assert_false(certificates_is_node_client(o));
        }
    }
}

static void tokens_end_at_their_time(void **state)
{
    static const struct {
        const char *expiration; /* 2026-01-01T00:00:00Z is 1767225600. */
        int64_t left;
    } cases[] = {
        {"2026-01-01T00:00:00Z", 0},
        {"2026-01-01T00:00:10Z", 10000},
        {"2025-01-01T00:00:00Z", 0},
        {"some time", -1},
        {"", -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *o = json_object();
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        base64_encode(cases[i].expiration, strlen(cases[i].expiration), &b);
        json_set_string(json_ensure_object(o, "data"), "expiration", strbuf_cstr(&b));
        assert_int_equal(join_tokens_left_ms(o, INT64_C(1767225600000)), cases[i].left);
    }
    CLEANUP(json_free) struct json *none = json_object();
    assert_int_equal(join_tokens_left_ms(none, 0), -1);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(default_objects_are_valid_and_name_each_other),
        T(kinds_are_in_the_roles_that_their_descriptions_name),
        T(a_scheduler_reads_all_and_binds),
        T(project_roles_are_what_their_names_say),
        T(reconciling_adds_and_leaves_what_the_administrator_added),
        T(reconciling_takes_away_what_was_withdrawn),
        T(aggregation_takes_what_selectors_match),
        T(signers_sign_what_they_are_for),
        T(a_certificate_names_what_a_node_can_be_called),
        T(no_signer_signs_for_a_name_that_no_node_has),
        T(tokens_end_at_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
