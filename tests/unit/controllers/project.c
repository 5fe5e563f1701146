/* SPDX-License-Identifier: Apache-2.0 */
#include "project.h"

#include "controller/obj.h"
#include "controllers/security/default_roles.h"
#include "controllers/security/default_sccs.h"
#include "controllers/security/role_aggregation.h"
#include "sdn/service_ranges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RBAC "/apis/rbac.authorization.k8s.io/v1"

struct answer by(struct harness *h, const char *user, const char *method, const char *path,
                 const char *body)
{
    return ask_as(h, user, method, path,
                  streq(method, "PATCH") ? "application/merge-patch+json" : NULL, body);
}

void check_by(struct harness *h, const char *user, const char *method, const char *path,
              const char *body, int want, const char *text)
{
    CLEANUP_ANSWER struct answer a = by(h, user, method, path, body);
    if (a.status != want || (text && !strstr(a.text, text))) {
        fail_msg("%s: %s %s %s: not %d with %s, but %d: %s", user, method, path, body ? body : "",
                 want, text ? text : "anything", a.status, a.text);
    }
}

void by_master(struct harness *h, const char *method, const char *path, const char *body)
{
    CLEANUP_FREE char *text = body ? quoted(body) : NULL;
    CLEANUP_ANSWER struct answer a =
        ask_full(h, method, path, NULL,
                 streq(method, "PATCH") ? "application/merge-patch+json" : NULL, text);
    if (a.status >= 300) {
        fail_msg("%s %s %s: %d: %s", method, path, body ? body : "", a.status, a.text);
    }
}

void give_role(struct harness *h, const char *ns, const char *user, const char *role)
{
    CLEANUP_FREE char *path = xasprintf(RBAC "/namespaces/%s/rolebindings", ns);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata':{'name':'%s-%s'},"
                  "'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole',"
                  "'name':'%s'},'subjects':[{'kind':'User','name':'%s'}]}",
                  user, role, role, user);
    by_master(h, "POST", path, body);
}

static void make_roles(struct harness *h)
{
    CLEANUP(json_free) struct json *roles = default_cluster_roles();
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
        CLEANUP_FREE char *text = json_to_text(o);
        by_master(h, "POST", RBAC "/clusterroles", text);
    }
}

static void make_sccs(struct harness *h)
{
    CLEANUP(json_free) struct json *sccs = default_sccs();
    const struct json *o;
    JSON_FOREACH (o, sccs) {
        CLEANUP_FREE char *text = json_to_text(o);
        CLEANUP_ANSWER
        struct answer a =
            ask(h, "POST", "/apis/security.openshift.io/v1/securitycontextconstraints", text);
        if (a.status != 201) {
            fail_msg("%s: %d: %s", text, a.status, a.text);
        }
    }
}

struct harness *project_new(void)
{
    const struct apiserver_security security = {.loopback_token = "loopback"};
    struct service_ranges ranges;
    service_ranges_defaults(&ranges);
    assert_int_equal(prefix_parse("172.30.0.0/16", &ranges.services, NULL), 0);
    assert_int_equal(prefix_parse("10.128.0.0/14", &ranges.pods[ranges.n_pods++], NULL), 0);
    struct apiserver_config cfg = {.security = &security, .services = &ranges};
    struct harness *h = harness_new(&cfg, NULL);
    make_roles(h);
    make_sccs(h);
    free(make_namespace(h, "red"));
    free(make_namespace(h, "blue"));
    give_role(h, "red", "vic", "view");
    give_role(h, "red", "eve", "edit");
    give_role(h, "red", "ada", "admin");
    return h;
}
