/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of pods' service accounts: the account, its token's volume, its Secrets; mirrors. */
#include "apiserver/access/security.h"
#include "apiserver/request/server_priv.h"
#include "harness.h"
#include "net/http/http.h"
#include "net/loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red/"
#define TOKEN_PATH "/var/run/secrets/kubernetes.io/serviceaccount"
#define ROOT "root system:masters"
#define NODE "system:node:n1 system:nodes"
#define C(more) "{'name': 'c', 'image': 'i', 'resources': {}" more "}"
#define POD(meta, spec) "{'metadata': {" meta "}, 'spec': {'containers': [" C("") "]" spec "}}"
#define NAMED(name) "'name': '" name "'"
#define FORBIDDEN(name) "pods \"" name "\" is forbidden: "
#define MIRROR "'annotations': {'kubernetes.io/config.mirror': 'x'}"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    free(make_namespace(h, "red"));
    free(make_namespace(h, "blue"));
    give_rules(h, "red", "tenant", "{'verbs': ['*'], 'apiGroups': [''], 'resources': ['*']}");
    put_in(h, "POST", RED "serviceaccounts",
           "{'metadata': {'name': 'puller'}, 'imagePullSecrets': [{'name': 'registry'}]}", 201);
    put_in(h, "POST", RED "serviceaccounts",
           "{'metadata': {'name': 'silent'}, 'automountServiceAccountToken': false}", 201);
    put_in(h, "POST", RED "serviceaccounts",
           "{'metadata': {'name': 'strict', 'annotations': {"
           "'kubernetes.io/enforce-mountable-secrets': 'true'}},"
           "'secrets': [{'name': 'mine'}], 'imagePullSecrets': [{'name': 'registry'}]}",
           201);
    put_in(h, "POST", "/api/v1/namespaces/blue/serviceaccounts", "{'metadata': {'name': 'far'}}",
           201);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static struct answer create(const char *who, const char *body)
{
    return ask_as(h, who, "POST", RED "pods", NULL, body);
}

static void a_pod_gets_the_default_account_and_its_token(void **state)
{
    CLEANUP_ANSWER struct answer a = create(
        "tenant", "{'metadata': {" NAMED(
                      "p") "}, 'spec': {'initContainers': [{'name': 'i', 'image': 'i'}],"
                           "'containers': [" C(
                               "") ", {'name': 'own', 'image': 'i', 'volumeMounts': [{'name': 'v',"
                                   "'mountPath': '" TOKEN_PATH
                                   "'}]}], 'volumes': [{'name': 'v', 'emptyDir': {}}]}}");
    assert_int_equal(a.status, 201);
    assert_string_equal(at(&a, "spec.serviceAccountName"), "default");
    assert_string_equal(at(&a, "spec.serviceAccount"), "default");
    const char *volume = at(&a, "spec.volumes.1.name");
    assert_int_equal(strlen(volume), strlen("kube-api-access-xxxxx"));
    assert_memory_equal(volume, "kube-api-access-", 16);
    const struct json *sources =
        json_path(json_at(json_path(a.body, "spec", "volumes", NULL), 1), "projected", NULL);
    CLEANUP_FREE char *text = json_to_text(sources);
    CLEANUP(json_free)
    struct json *want = json_of(
        "{'defaultMode': 420, 'sources': [{'serviceAccountToken': {'expirationSeconds': 3607,"
        "'path': 'token'}}, {'configMap': {'name': 'kube-root-ca.crt', 'items': [{'key': 'ca.crt',"
        "'path': 'ca.crt'}]}}, {'downwardAPI': {'items': [{'path': 'namespace', 'fieldRef': {"
        "'apiVersion': 'v1', 'fieldPath': 'metadata.namespace'}}]}}]}");
    if (!json_equal(sources, want)) {
        fail_msg("%s", text);
    }
    static const char *const lists[] = {"initContainers", "containers"};
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FREE char *mount = xasprintf("spec.%s.0.volumeMounts.0", lists[i]);
        CLEANUP_FREE char *name = xasprintf("%s.name", mount);
        CLEANUP_FREE char *path = xasprintf("%s.mountPath", mount);
        assert_string_equal(at(&a, name), volume);
        assert_string_equal(at(&a, path), TOKEN_PATH);
        assert_true(json_get_bool(
            json_get(json_at(json_get(json_at(json_path(a.body, "spec", lists[i], NULL), 0),
                                      "volumeMounts"),
                             0),
                     "readOnly"),
            false));
    }
    /* What the pod mounts there itself stays. */
    assert_string_equal(at(&a, "spec.containers.1.volumeMounts.0.name"), "v");
    assert_string_equal(at(&a, "spec.containers.1.volumeMounts.1.name"), "");
}

static void account_and_pod_say_whether_the_token_is_mounted(void **state)
{
    static const struct {
        const char *spec;
        bool mounted;
    } cases[] = {
        {"", true},
        {", 'automountServiceAccountToken': false", false},
        {", 'serviceAccountName': 'silent'", false},
        {", 'serviceAccountName': 'silent', 'automountServiceAccountToken': true", true},
        {", 'serviceAccountName': 'puller'", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = xasprintf(POD("'name': 'm%zu'", "%s"), i, cases[i].spec);
        CLEANUP_ANSWER struct answer a = create("tenant", body);
        if (a.status != 201 ||
            (*at(&a, "spec.containers.0.volumeMounts.0.name") != '\0') != cases[i].mounted ||
            (*at(&a, "spec.volumes.0.name") != '\0') != cases[i].mounted) {
            fail_msg("%s: %d %s", cases[i].spec, a.status, a.text);
        }
    }
}

static void the_old_name_of_the_field_counts_and_stays_in_step(void **state)
{
    CLEANUP_ANSWER struct answer old =
        create("tenant", POD(NAMED("old"), ", 'serviceAccount': 'puller'"));
    assert_string_equal(at(&old, "spec.serviceAccountName"), "puller");
    assert_string_equal(at(&old, "spec.serviceAccount"), "puller");
    CLEANUP_ANSWER struct answer both =
        create("tenant",
               POD(NAMED("both"), ", 'serviceAccount': 'silent', 'serviceAccountName': 'puller'"));
    assert_string_equal(at(&both, "spec.serviceAccountName"), "puller");
    assert_string_equal(at(&both, "spec.serviceAccount"), "puller");
}

static void the_accounts_pull_secrets_are_for_pods_that_name_none(void **state)
{
    CLEANUP_ANSWER struct answer a =
        create("tenant", POD(NAMED("pulls"), ", 'serviceAccountName': 'puller'"));
    assert_string_equal(at(&a, "spec.imagePullSecrets.0.name"), "registry");
    CLEANUP_ANSWER struct answer b =
        create("tenant", POD(NAMED("own"), ", 'serviceAccountName': 'puller',"
                                           "'imagePullSecrets': [{'name': 'other'}]"));
    assert_string_equal(at(&b, "spec.imagePullSecrets.0.name"), "other");
    assert_string_equal(at(&b, "spec.imagePullSecrets.1.name"), "");
}

static void refusals_have_kubernetes_words(void **state)
{
#define LOOKUP(ns, name) \
    "error looking up service account " ns "/" name ": serviceaccount \"" name "\" not found"
#define STRICT ", 'serviceAccountName': 'strict'"
#define NOT_LISTED " is not allowed because service account strict does not reference that "
    static const struct {
        const char *who, *body, *message;
    } cases[] = {
        {"tenant", POD(NAMED("x"), ", 'serviceAccountName': 'nobody'"),
         FORBIDDEN("x") LOOKUP("red", "nobody")},
        /* Accounts of other namespaces do not exist for it. */
        {"tenant", POD(NAMED("x"), ", 'serviceAccountName': 'far'"),
         FORBIDDEN("x") LOOKUP("red", "far")},
        {ROOT, POD(NAMED("x"), ", 'serviceAccountName': 'blue/far'"), NULL},
        {"tenant",
         POD(NAMED("x"), STRICT ", 'volumes': [{'name': 'v', 'secret': {'secretName': 'yours'}}]"),
         FORBIDDEN("x") "volume with secret.secretName=\"yours\"" NOT_LISTED "secret"},
        {"tenant",
         POD(NAMED("x"), STRICT ", 'volumes': [{'name': 'v', 'projected': {'sources': ["
                                "{'secret': {'name': 'yours'}}]}}]"),
         FORBIDDEN("x") "volume with secret.secretName=\"yours\"" NOT_LISTED "secret"},
        {"tenant",
         POD(NAMED("x"), STRICT ", 'initContainers': [{'name': 'i', 'image': 'i', 'env': [{"
                                "'name': 'E', 'valueFrom': {'secretKeyRef': {'name': 'yours',"
                                "'key': 'k'}}}]}]"),
         FORBIDDEN("x") "init container i with envVar E referencing "
                        "secret.secretName=\"yours\"" NOT_LISTED "secret"},
        {"tenant",
         POD(NAMED("x"), STRICT ", 'initContainers': [{'name': 'i', 'image': 'i', 'envFrom': [{"
                                "'secretRef': {'name': 'yours'}}]}]"),
         FORBIDDEN(
             "x") "init container i with envFrom referencing secret.secretName=\"yours\"" NOT_LISTED
                  "secret"},
        {"tenant",
         POD(NAMED("x"), STRICT ", 'imagePullSecrets': [{'name': 'registry'}, {'name': 'mine'}]"),
         FORBIDDEN("x") "imagePullSecrets[1].name=\"mine\"" NOT_LISTED "imagePullSecret"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a = create(cases[i].who, cases[i].body);
        if (a.status != 403 || (cases[i].message && !streq(at(&a, "message"), cases[i].message))) {
            fail_msg("%zu: %d %s", i, a.status, a.text);
        }
    }
    CLEANUP_ANSWER struct answer good =
        create("tenant", POD(NAMED("good"), STRICT ", 'volumes': [{'name': 'v', 'secret': {"
                                                   "'secretName': 'mine'}}]"));
    assert_int_equal(good.status, 201);
    /* A server-side apply that creates is a creation. */
    CLEANUP_ANSWER struct answer applied =
        ask_as(h, "tenant", "PATCH", RED "pods/x?fieldManager=m", "application/apply-patch+yaml",
               "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'x'}, 'spec': {"
               "'serviceAccountName': 'nobody', 'containers': [{'name': 'c', 'image': 'i'}]}}");
    assert_int_equal(applied.status, 403);
    assert_string_equal(at(&applied, "message"), FORBIDDEN("x") LOOKUP("red", "nobody"));
}

static void the_configuration_limits_the_secrets_of_all_accounts(void **state)
{
    static const char *const body =
        POD(NAMED("limited"), ", 'serviceAccountName': 'puller', 'volumes': [{'name': 'v', "
                              "'secret': {'secretName': 'yours'}}]");
    h->api->cfg.limit_secret_references = true;
    CLEANUP_ANSWER struct answer a = create("tenant", body);
    CLEANUP_ANSWER struct answer good =
        create("tenant", POD(NAMED("listed"), ", 'serviceAccountName': 'strict', 'volumes': [{"
                                              "'name': 'v', 'secret': {'secretName': 'mine'}}]"));
    h->api->cfg.limit_secret_references = false;
    assert_int_equal(a.status, 403);
    assert_string_equal(at(&a, "message"),
                        FORBIDDEN("limited") "volume with secret.secretName=\"yours\" is not "
                                             "allowed because service account puller does not "
                                             "reference that secret");
    assert_int_equal(good.status, 201);
    CLEANUP_ANSWER struct answer free_again = create("tenant", body);
    assert_int_equal(free_again.status, 201);
}

static void a_tenants_mirror_annotation_gets_nothing(void **state)
{
    static const struct {
        const char *who, *body, *message;
    } cases[] = {
        {"tenant", POD(NAMED("m") ", " MIRROR, ", 'nodeName': 'n1'"),
         FORBIDDEN("m") "only a node may create a mirror pod"},
        {ROOT, POD(NAMED("m") ", " MIRROR, ", 'nodeName': 'n1', 'serviceAccountName': 'puller'"),
         FORBIDDEN("m") "a mirror pod may not reference service accounts"},
        {ROOT, POD(NAMED("m") ", " MIRROR, ", 'nodeName': 'n1', 'serviceAccount': 'puller'"),
         FORBIDDEN("m") "a mirror pod may not reference service accounts"},
        {ROOT,
         POD(NAMED("m") ", " MIRROR, ", 'nodeName': 'n1', 'volumes': [{'name': 'v', 'secret': {"
                                     "'secretName': 's'}}]"),
         FORBIDDEN("m") "a mirror pod may not reference secrets"},
        {ROOT,
         POD(NAMED("m") ", " MIRROR, ", 'nodeName': 'n1', 'volumes': [{'name': 'v', 'projected': {"
                                     "'sources': [{'serviceAccountToken': {'path': 't'}}]}}]"),
         FORBIDDEN("m") "a mirror pod may not use ServiceAccountToken volume projections"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a = create(cases[i].who, cases[i].body);
        if (a.status != 403 || !streq(at(&a, "message"), cases[i].message)) {
            fail_msg("%zu: %d %s", i, a.status, a.text);
        }
    }
}

static void a_node_creates_mirrors_of_its_own_pods_only(void **state)
{
    CLEANUP_FREE char *uid = make_object(h, "/api/v1/nodes", "{'metadata': {'name': 'n1'}}");
    free(make_object(h, "/api/v1/nodes", "{'metadata': {'name': 'n2'}}"));
#define OWNER                                                                              \
    "'ownerReferences': [{'apiVersion': 'v1', 'kind': 'Node', 'name': '%s', 'uid': '%s', " \
    "'controller': true}]"
#define HAS(text) "node \"n1\" can not create pods that reference " text
    static const struct {
        const char *annotations, *owner, *node, *spec, *why;
    } cases[] = {
        {"", "n1", "n1", "",
         "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only "
         "create mirror pods"},
        {MIRROR ", ", "n1", "n2", "",
         "node \"n1\" can only create pods with spec.nodeName set to itself"},
        {MIRROR ", ", "n2", "n1", "",
         "node \"n1\" can only create pods with an owner reference set to itself"},
        {MIRROR ", ", "n1", "n1", ", 'serviceAccountName': 'default'",
         "a mirror pod may not reference service accounts"},
        {MIRROR ", ", "n1", "n1", ", 'volumes': [{'name': 'v', 'secret': {'secretName': 's'}}]",
         "a mirror pod may not reference secrets"},
        {MIRROR ", ", "n1", "n1", ", 'volumes': [{'name': 'v', 'configMap': {'name': 's'}}]",
         HAS("configmaps")},
        {MIRROR ", ", "n1", "n1",
         ", 'volumes': [{'name': 'v', 'persistentVolumeClaim': {'claimName': 's'}}]",
         HAS("persistentvolumeclaims")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body =
            xasprintf(POD("'name': 's-n1', %s" OWNER, ", 'nodeName': '%s'%s"), cases[i].annotations,
                      cases[i].owner, uid, cases[i].node, cases[i].spec);
        CLEANUP_FREE char *message = xasprintf(FORBIDDEN("s-n1") "%s", cases[i].why);
        CLEANUP_ANSWER struct answer a = create(NODE, body);
        if (a.status != 403 || !streq(at(&a, "message"), message)) {
            fail_msg("%zu: %d %s", i, a.status, a.text);
        }
    }
    /* Its static pods may do what other pods may not: the node runs them anyway. */
    CLEANUP_FREE char *body = xasprintf(
        POD("'name': 's-n1', " MIRROR ", " OWNER, ", 'nodeName': 'n1', 'hostNetwork': true"), "n1",
        uid);
    CLEANUP_ANSWER struct answer a = create(NODE, body);
    assert_int_equal(a.status, 201);
    assert_string_equal(at(&a, "spec.serviceAccountName"), "");
    assert_string_equal(at(&a, "spec.volumes.0.name"), "");
    CLEANUP_ANSWER struct answer other =
        ask_as(h, "system:node:n2 system:nodes", "DELETE", RED "pods/s-n1", NULL, NULL);
    assert_int_equal(other.status, 403);
    CLEANUP_ANSWER struct answer gone =
        ask_as(h, NODE, "DELETE", RED "pods/s-n1", NULL, "{'gracePeriodSeconds': 0}");
    assert_int_equal(gone.status, 200);
}

/* ---- a new namespace ---- */

struct creation {
    bool done;
    int status;
    char *text;
};

static void created(void *ctx, const struct http_result *r)
{
    struct creation *c = ctx;
    c->done = true;
    c->status = r->status;
    c->text = xstrndup(r->body ? r->body : "", r->size);
}

static void begin_create(struct creation *c, const char *ns, const char *method, const char *type)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s/pods%s", ns,
                                        streq(method, "POST") ? "" : "/p?fieldManager=m");
    CLEANUP_FREE char *body =
        quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'},"
               "'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}");
    http_call(h->client, method, path, NULL, type, body, strlen(body), created, c);
}

static void a_pod_waits_for_the_account_of_a_new_namespace(void **state)
{
    static const struct {
        const char *ns, *method, *type;
    } cases[] = {{"posted", "POST", "application/json"},
                 {"applied", "PATCH", "application/apply-patch+yaml"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct creation c = {0};
        CLEANUP_FREE char *name = xasprintf("{'metadata': {'name': '%s'}}", cases[i].ns);
        CLEANUP_FREE char *accounts =
            xasprintf("/api/v1/namespaces/%s/serviceaccounts", cases[i].ns);
        put_in(h, "POST", "/api/v1/namespaces", name, 201);
        begin_create(&c, cases[i].ns, cases[i].method, cases[i].type);
        while (h->api->inflight == 0) {
            bool never = false;
            assert_false(c.done);
            loop_run_until(h->loop, &never, 1);
        }
        CLEANUP_ANSWER struct answer a =
            ask_as(h, ROOT, "POST", accounts, NULL, "{'metadata': {'name': 'default'}}");
        assert_int_equal(a.status, 201);
        assert_false(c.done);
        assert_int_equal(loop_run_until(h->loop, &c.done, 5000), 0);
        if (c.status != 201 || !strstr(c.text, "kube-api-access-")) {
            fail_msg("%s: %d %s", cases[i].ns, c.status, c.text);
        }
        free(c.text);
    }
}

static void an_account_that_never_comes_is_a_refusal(void **state)
{
    struct creation c = {0};
    put_in(h, "POST", "/api/v1/namespaces", "{'metadata': {'name': 'bare'}}", 201);
    begin_create(&c, "bare", "POST", "application/json");
    assert_int_equal(loop_run_until(h->loop, &c.done, 5000), 0);
    assert_int_equal(c.status, 403);
    assert_non_null(strstr(c.text, "error looking up service account bare/default: serviceaccount "
                                   "\\\"default\\\" not found"));
    free(c.text);
    assert_int_equal(h->api->inflight, 0);
    /* A server that ends frees the creations that wait. */
    struct creation dropped = {0};
    begin_create(&dropped, "bare", "POST", "application/json");
    while (h->api->inflight == 0) {
        bool never = false;
        loop_run_until(h->loop, &never, 1);
    }
    harness_free(h);
    assert_int_not_equal(dropped.status, 201);
    free(dropped.text);
    h = harness_new_secure((struct apiserver_security){0});
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_pod_gets_the_default_account_and_its_token),
        T(account_and_pod_say_whether_the_token_is_mounted),
        T(the_old_name_of_the_field_counts_and_stays_in_step),
        T(the_accounts_pull_secrets_are_for_pods_that_name_none),
        T(refusals_have_kubernetes_words),
        T(the_configuration_limits_the_secrets_of_all_accounts),
        T(a_tenants_mirror_annotation_gets_nothing),
        T(a_node_creates_mirrors_of_its_own_pods_only),
        T(a_pod_waits_for_the_account_of_a_new_namespace),
        T(an_account_that_never_comes_is_a_refusal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
