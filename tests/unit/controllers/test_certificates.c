/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the signers as a table, and the controller against an API server with access control. */
#include "controllers/security/certificates.h"

#include "base/base64.h"
#include "base/timeutil.h"
#include "csr.h"
#include "json_text.h"
#include "net/tls/pki_csr.h"
#include "rig.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define CSRS "/apis/certificates.k8s.io/v1/certificatesigningrequests"
#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define CLIENT "kubernetes.io/kube-apiserver-client"
#define KUBELET "kubernetes.io/kube-apiserver-client-kubelet"
#define SERVING "kubernetes.io/kubelet-serving"
#define HOUR_MS 3600000LL
#define NODE "system:node:n1 system:nodes"
#define JOINS "system:bootstrap:abcdef system:bootstrappers"

static const char *const nodes[] = {"system:nodes", NULL};
static const char *const dev[] = {"dev", NULL};
static const char *const masters[] = {"dev", "system:masters", NULL};
static const char *const masters_first[] = {"system:masters", "dev", NULL};
static const char *const two[] = {"system:nodes", "dev", NULL};

/* ---- rules of the signers ---- */

static void a_signer_signs_only_its_own_subjects_and_usages(void **state)
{
#define USAGES "'digital signature', 'key encipherment', "
#define NO_USAGES(usage) \
    "usages did not match: " usage ", and nothing beyond digital signature and key encipherment"
#define NO_NODE "the subject is not system:node:NAME of system:nodes, without other names"
#define NO_SERVER "the subject is not system:node:NAME of system:nodes, with names or addresses"
#define N1 "system:node:n1"
    static const struct {
        const char *signer, *user;
        struct csr_wish wish;
        const char *usages;
        int result;
        const char *error;
    } cases[] = {
        {CLIENT, "jane", {.cn = "jane"}, "'client auth'", 0, ""},
        {CLIENT, "jane", {.cn = "jane", .o = dev}, USAGES "'client auth'", 0, ""},
        {CLIENT, "jane", {.cn = "jane", .alt = "DNS:a"}, "'client auth'", 0, ""},
        {CLIENT, "jane", {.o = dev}, "'client auth'", -EINVAL, "the request has no common name"},
        {CLIENT,
         "jane",
         {.cn = "jane", .o = masters},
         "'client auth'",
         -EINVAL,
         "nobody gets the group system:masters by request"},
        {CLIENT,
         "jane",
         {.cn = "jane", .o = masters_first},
         "'client auth'",
         -EINVAL,
         "nobody gets the group system:masters by request"},
        {CLIENT, "jane", {.cn = "jane"}, USAGES "'server auth'", -EINVAL, NO_USAGES("client auth")},
        {CLIENT,
         "jane",
         {.cn = "jane"},
         "'client auth', 'server auth'",
         -EINVAL,
         NO_USAGES("client auth")},
        {CLIENT,
         "jane",
         {.cn = "jane"},
         "'client auth', 'cert sign'",
         -EINVAL,
         NO_USAGES("client auth")},
        {CLIENT, "jane", {.cn = "jane"}, "'client auth', 7", -EINVAL, NO_USAGES("client auth")},
        {CLIENT,
         "jane",
         {.cn = "jane"},
         USAGES "'digital signature'",
         -EINVAL,
         NO_USAGES("client auth")},
        {CLIENT, "jane", {.cn = "jane"}, "", -EINVAL, NO_USAGES("client auth")},
        {CLIENT,
         "jane",
         {.cn = "jane", .key = "RSA-1024"},
         "'client auth'",
         -EINVAL,
         "the request's key is neither RSA of 2048 bits and more, nor P-256 and more, nor "
         "Ed25519"},
        {KUBELET, "boot", {.cn = N1, .o = nodes}, "'client auth'", 0, ""},
        {KUBELET,
         "boot",
         {.cn = N1, .o = nodes, .alt = "DNS:n1"},
         "'client auth'",
         -EINVAL,
         NO_NODE},
        {KUBELET,
         "boot",
         {.cn = N1, .o = nodes, .alt = "IP:10.0.0.1"},
         "'client auth'",
         -EINVAL,
         NO_NODE},
        {KUBELET,
         "boot",
         {.cn = N1, .o = nodes, .alt = "email:a@b"},
         "'client auth'",
         -EINVAL,
         NO_NODE},
        {KUBELET, "boot", {.cn = N1, .o = nodes, .unit = "x"}, "'client auth'", -EINVAL, NO_NODE},
        {KUBELET, "boot", {.cn = N1, .o = two}, "'client auth'", -EINVAL, NO_NODE},
        {KUBELET, "boot", {.cn = N1, .o = dev}, "'client auth'", -EINVAL, NO_NODE},
        {KUBELET, "boot", {.cn = N1}, "'client auth'", -EINVAL, NO_NODE},
        {KUBELET,
         "boot",
         {.cn = "system:node:", .o = nodes},
         "'client auth'",
         -EINVAL,
         "the common name \"system:node:\" is of no node: a lowercase RFC 1123 subdomain must "
         "consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
         "an "
         "alphanumeric character (e.g. 'example.com', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
        {KUBELET, "boot", {.cn = "jane", .o = nodes}, "'client auth'", -EINVAL, NO_NODE},
        {KUBELET, "boot", {.o = nodes}, "'client auth'", -EINVAL, NO_NODE},
        {KUBELET,
         "boot",
         {.cn = N1, .o = nodes},
         "'server auth'",
         -EINVAL,
         NO_USAGES("client auth")},
        {SERVING, N1, {.cn = N1, .o = nodes, .alt = "DNS:n1"}, "'server auth'", 0, ""},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .alt = "DNS:n1,IP:10.0.0.1"},
         USAGES "'server auth'",
         0,
         ""},
        {SERVING, N1, {.cn = N1, .o = nodes}, "'server auth'", -EINVAL, NO_SERVER},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .alt = "DNS:n1,email:a@b"},
         "'server auth'",
         -EINVAL,
         NO_SERVER},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .alt = "DNS:n1,URI:http://n1"},
         "'server auth'",
         -EINVAL,
         NO_SERVER},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .alt = "IP:fd00::1,DNS:n1"},
         "'server auth'",
         -EINVAL,
         NO_SERVER},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .raw_dns = "n1\0evil", .raw_size = 7},
         "'server auth'",
         -EINVAL,
         NO_SERVER},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .alt = "DNS:n1", .unit = "x"},
         "'server auth'",
         -EINVAL,
         NO_SERVER},
        {SERVING, N1, {.cn = N1, .o = dev, .alt = "DNS:n1"}, "'server auth'", -EINVAL, NO_SERVER},
        {SERVING,
         "system:node:n2",
         {.cn = N1, .o = nodes, .alt = "DNS:n1"},
         "'server auth'",
         -EINVAL,
         "a node can only ask for its own certificate"},
        {SERVING,
         "",
         {.cn = N1, .o = nodes, .alt = "DNS:n1"},
         "'server auth'",
         -EINVAL,
         "a node can only ask for its own certificate"},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .alt = "DNS:n1"},
         "'client auth'",
         -EINVAL,
         NO_USAGES("server auth")},
        {SERVING,
         N1,
         {.cn = N1, .o = nodes, .alt = "DNS:n1"},
         "'server auth', 'client auth'",
         -EINVAL,
         NO_USAGES("server auth")},
        {"example.com/mine",
         "jane",
         {.cn = "jane"},
         "'client auth'",
         -ENOTSUP,
         "not one of our signers"},
        {CLIENT "-kubele",
         "jane",
         {.cn = "jane"},
         "'client auth'",
         -ENOTSUP,
         "not one of our signers"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *request = csr_text(&cases[i].wish);
        CLEANUP_FREE char *text =
            xasprintf("{'spec': {'request': '%s', 'signerName': '%s', 'username': '%s',"
                      "'usages': [%s]}}",
                      request, cases[i].signer, cases[i].user, cases[i].usages);
        CLEANUP(json_free) struct json *csr = from(text);
        struct err e = {0};
        bool node = streq(cases[i].signer, KUBELET) && cases[i].result == 0;
        if (certificates_check(csr, &e) != cases[i].result || !streq(e.text, cases[i].error) ||
            certificates_is_node_client(csr) != node) {
            fail_msg("case %zu: %s", i, e.text);
        }
    }
    static const char *const broken[] = {
        "{'spec': {'signerName': '" CLIENT "'}}",
        "{'spec': {'signerName': '" CLIENT "', 'request': '%'}}",
        "{'spec': {'signerName': '" CLIENT "', 'request': 'bm8='}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        CLEANUP(json_free) struct json *csr = from(broken[i]);
        struct err e = {0};
        assert_int_equal(certificates_check(csr, &e), -EINVAL);
        assert_string_equal(e.text, "not a certificate request in PEM form (CERTIFICATE REQUEST)");
    }
    CLEANUP(json_free) struct json *none = from("{'spec': {}}");
    assert_int_equal(certificates_check(none, NULL), -ENOTSUP);
}

static void a_decided_request_is_removed_after_an_hour_and_others_after_a_day(void **state)
{
#define MADE "'metadata': {'creationTimestamp': '2026-01-01T00:00:00Z'}"
    static const int64_t made = INT64_C(1767225600000);
    static const struct {
        const char *csr;
        int64_t after, left;
    } cases[] = {
        {"{" MADE "}", 0, 24 * HOUR_MS},
        {"{" MADE "}", 24 * HOUR_MS - 1, 1},
        {"{" MADE "}", 24 * HOUR_MS, 0},
        {"{" MADE "}", 30 * HOUR_MS, 0},
        {"{" MADE ", 'status': {'conditions': [{'type': 'Approved'}]}}", HOUR_MS, 23 * HOUR_MS},
        {"{" MADE ", 'status': {'conditions': [{'type': 'Denied'}]}}", HOUR_MS - 1, 1},
        {"{" MADE ", 'status': {'conditions': [{'type': 'Denied'}]}}", HOUR_MS, 0},
        {"{" MADE ", 'status': {'conditions': [{'type': 'Approved'}, {'type': 'Failed'}]}}",
         2 * HOUR_MS, 0},
        {"{" MADE ", 'status': {'certificate': 'x'}}", HOUR_MS, 0},
        {"{" MADE ", 'status': {'certificate': ''}}", HOUR_MS, 23 * HOUR_MS},
        {"{'metadata': {}}", 0, 24 * HOUR_MS},
        {"{'metadata': {'creationTimestamp': 'then'}}", 0, 24 * HOUR_MS},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *csr = from(cases[i].csr);
        int64_t left = certificates_left_ms(csr, made + cases[i].after);
        if (left != cases[i].left) {
            fail_msg("%s: %lld", cases[i].csr, (long long) left);
        }
    }
}

/* ---- the controller ---- */

static struct harness *h;
static struct pki_ca *ca;
static struct api_client *client;
static struct rig_controller *controller;

static void bind(const char *name, const char *subresource, const char *group)
{
    CLEANUP_FREE char *role =
        xasprintf("{'metadata': {'name': '%s'}, 'rules': [{'verbs': ['create'], 'apiGroups': ["
                  "'certificates.k8s.io'], 'resources': ['certificatesigningrequests%s']}]}",
                  name, subresource);
    CLEANUP_FREE char *binding =
        xasprintf("{'metadata': {'name': '%s'}, 'roleRef': {'apiGroup':"
                  "'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': '%s'}, 'subjects': ["
                  "{'kind': 'Group', 'apiGroup': 'rbac.authorization.k8s.io', 'name': '%s'}]}",
                  name, name, group);
    put_in(h, "POST", RBAC "clusterroles", role, 201);
    put_in(h, "POST", RBAC "clusterrolebindings", binding, 201);
}

/* A bootstrap token; 'more' are further keys: ", 'single-use': 'true'". */
static void add_token(const char *id, const char *more)
{
    CLEANUP_FREE char *secret = xasprintf(
        "{'metadata': {'name': 'bootstrap-token-%s', 'namespace': 'kube-system'}, 'type':"
        "'bootstrap.kubernetes.io/token', 'stringData': {'token-id': '%s',"
        "'token-secret': '0123456789abcdef', 'usage-bootstrap-authentication': 'true'%s}}",
        id, id, more);
    put_in(h, "POST", "/api/v1/namespaces/kube-system/secrets", secret, 201);
}

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    client = rig_client(h);
    put_in(h, "POST", "/api/v1/namespaces", "{'metadata': {'name': 'kube-system'}}", 201);
    add_token("abcdef", "");
    bind("asks", "", "system:authenticated");
    bind("joins", "/nodeclient", "system:bootstrappers");
    bind("renews", "/selfnodeclient", "system:nodes");
    ca = pki_ca_new(time_wall_ms(), time_wall_ms() + 2000 * 24 * HOUR_MS);
    controller = rig_start(h, client, &certificates_controller, &ca);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(controller);
    api_client_free(client);
    pki_ca_free(ca);
    harness_free(h);
    return 0;
}

static void ask_for(const char *who, const char *name, const char *signer,
                    const struct csr_wish *wish, const char *usage, const char *more)
{
    CLEANUP_FREE char *text = csr_text(wish);
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}, 'spec': {'request': '%s',"
                                        "'signerName': '%s', 'usages': ['%s']%s}}",
                                        name, text, signer, usage, more);
    CLEANUP_ANSWER struct answer a = ask_as(h, who, "POST", CSRS, NULL, body);
    if (a.status != 201) {
        fail_msg("%s: %s", name, a.text);
    }
}

static void decide(const char *name, const char *type)
{
    CLEANUP_FREE char *path = xasprintf(CSRS "/%s/approval", name);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'status': {'conditions': [{'type': '%s',"
                  "'status': 'True', 'reason': 'r', 'message': 'm'}]}}",
                  name, type);
    put_in(h, "PUT", path, body, 200);
}

static struct answer get(const char *name)
{
    CLEANUP_FREE char *path = xasprintf(CSRS "/%s", name);
    return ask(h, "GET", path, NULL);
}

/* The types of its conditions, then "certificate" when it has one; "absent" when it is
 * deleted; owned. */
static char *state_of(const char *name)
{
    CLEANUP_ANSWER struct answer a = get(name);
    struct strbuf b = STRBUF_INIT;
    const struct json *c;
    JSON_FOREACH (c, json_path(a.body, "status", "conditions", NULL)) {
        strbuf_addf(&b, "%s ", json_path_string(c, "type", NULL));
    }
    strbuf_adds(&b, a.status == 404                         ? "absent"
                    : *at(&a, "status.certificate") != '\0' ? "certificate"
                                                            : "");
    return strbuf_steal(&b);
}

static void expect(const char *name, const char *want)
{
    bool never = false;
    CLEANUP_FREE char *got = NULL;
    for (int i = 0; i < 4000; i++) {
        free(got);
        got = state_of(name);
        if (streq(got, want)) {
            return;
        }
        loop_run_until(h->loop, &never, 5);
    }
    fail_msg("%s: %s, not %s", name, got, want);
}

/* Waits until the controller has decided on two later requests, and so has seen all
 * earlier ones. */
static void settle(void)
{
    static int n;
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *name = xasprintf("settle-%d", n++);
        ask_for(JOINS, name, KUBELET, &(struct csr_wish){.cn = N1, .o = nodes}, "client auth", "");
        expect(name, "Approved certificate");
    }
}

/* The certificate in the request 'name'; owned. */
static X509 *certificate(const char *name)
{
    CLEANUP_ANSWER struct answer a = get(name);
    CLEANUP_STRBUF struct strbuf pem = STRBUF_INIT;
    const char *text = at(&a, "status.certificate");
    assert_int_equal(base64_decode(text, strlen(text), &pem), 0);
    BIO *b = BIO_new_mem_buf(strbuf_cstr(&pem), -1);
    X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
    BIO_free(b);
    assert_non_null(x);
    return x;
}

static void expect_certificate(const char *name, const char *subject, unsigned usage,
                               const char *host, int64_t days)
{
    X509 *x = certificate(name);
    char text[256];
    X509_NAME_oneline(X509_get_subject_name(x), text, sizeof text);
    assert_string_equal(text, subject);
    assert_int_equal(X509_get_extended_key_usage(x), usage);
    assert_int_equal(X509_check_host(x, host ? host : "n1", 0, 0, NULL), host != NULL);
    assert_int_equal(X509_check_ca(x), 0);
    int from_days, from_s, until_days, until_s;
    ASN1_TIME *now = ASN1_TIME_set(NULL, time_wall_ms() / 1000);
    assert_int_equal(ASN1_TIME_diff(&from_days, &from_s, X509_get0_notBefore(x), now), 1);
    assert_int_equal(ASN1_TIME_diff(&until_days, &until_s, now, X509_get0_notAfter(x)), 1);
    ASN1_TIME_free(now);
    assert_int_equal(from_days, 0);
    assert_in_range(from_s, 300, 600); /* Backdated, for clocks that are behind. */
    assert_in_range((int64_t) until_days * 86400 + until_s, days * 86400 - 300, days * 86400);
    X509_free(x);
}

/* The node is N1; only its addresses, and nothing else, are signed without an administrator. */
static void a_serving_certificate_is_for_the_nodes_own_addresses(void **state)
{
    static const struct {
        const char *name, *author, *alt, *want;
        const char *cn;
    } cases[] = {
        {"s-own", NODE, "IP:192.0.2.1", "Approved certificate", N1},
        {"s-both", NODE, "IP:192.0.2.1,IP:192.0.2.2", "Approved certificate", N1},
        {"s-other", NODE, "IP:192.0.2.1,IP:192.0.2.9", "", N1},
        {"s-dns", NODE, "IP:192.0.2.1,DNS:n1", "", N1},
        {"s-api", NODE, "DNS:kubernetes.default.svc", "", N1},
        {"s-other-node", NODE, "IP:192.0.2.1", "", "system:node:n2"},
        {"s-foreign", "jane dev", "IP:192.0.2.1", "", N1},
    };
    put_in(h, "POST", "/api/v1/nodes", "{'metadata': {'name': 'n1'}}", 201);
    put_in(h, "PUT", "/api/v1/nodes/n1/status",
           "{'metadata': {'name': 'n1'}, 'status': {'addresses': ["
           "{'type': 'Hostname', 'address': 'kubernetes.default.svc'},"
           "{'type': 'InternalIP', 'address': '192.0.2.1'},"
           "{'type': 'ExternalIP', 'address': '192.0.2.2'},"
           "{'type': 'InternalDNS', 'address': 'n1'}]}}",
           200);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ask_for(cases[i].author, cases[i].name, SERVING,
                &(struct csr_wish){.cn = cases[i].cn, .o = nodes, .alt = cases[i].alt},
                "server auth", "");
    }
    settle();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        expect(cases[i].name, cases[i].want);
    }
    expect_certificate("s-own", "/O=system:nodes/CN=system:node:n1", XKU_SSL_SERVER, NULL, 365);
    X509 *x = certificate("s-own");
    assert_int_equal(X509_check_ip_asc(x, "192.0.2.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(x, "192.0.2.2", 0), 0);
    X509_free(x);
}

static void a_nodes_client_certificate_needs_no_administrator(void **state)
{
    ask_for(JOINS, "first", KUBELET, &(struct csr_wish){.cn = N1, .o = nodes}, "client auth", "");
    ask_for(NODE, "again", KUBELET, &(struct csr_wish){.cn = N1, .o = nodes}, "client auth",
            ", 'expirationSeconds': 864000");
    expect("first", "Approved certificate");
    expect("again", "Approved certificate");
    expect_certificate("first", "/O=system:nodes/CN=system:node:n1", XKU_SSL_CLIENT, NULL, 365);
    expect_certificate("again", "/O=system:nodes/CN=system:node:n1", XKU_SSL_CLIENT, NULL, 10);
    CLEANUP_ANSWER struct answer a = get("first");
    assert_string_equal(at(&a, "status.conditions.0.reason"), "AutoApproved");
    assert_string_equal(at(&a, "status.conditions.0.status"), "True");
    assert_string_equal(at(&a, "status.conditions.0.message"),
                        "Auto approving kubelet client certificate after SubjectAccessReview.");
    int64_t updated, changed;
    assert_int_equal(time_parse(at(&a, "status.conditions.0.lastUpdateTime"), &updated), 0);
    assert_int_equal(time_parse(at(&a, "status.conditions.0.lastTransitionTime"), &changed), 0);
    assert_true(updated > time_wall_ms() - HOUR_MS && changed == updated);
}

/* ---- limits of bootstrap tokens ---- */

static char *encoded(const char *text)
{
    struct strbuf b = STRBUF_INIT;
    base64_encode(text, strlen(text), &b);
    return strbuf_steal(&b);
}

static void a_token_allows_its_node_and_its_number_of_uses(void **state)
{
    CLEANUP_FREE char *pem = csr_make(&(struct csr_wish){.cn = N1, .o = nodes}, NULL);
    CLEANUP_FREE char *request = encoded(pem);
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    assert_int_equal(pki_csr_read(pem, &c, NULL), 0);
    CLEANUP_FREE char *own = xasprintf("n1 %s", c.pin);
    CLEANUP_FREE char *other_name = xasprintf("n2 %s", c.pin);
    const struct {
        const char *node, *single, *used; /* NULL: the Secret has no such key. */
        int result;
        const char *error;
        bool use; /* The Secret is to get the use. */
    } cases[] = {
        {NULL, NULL, NULL, 0, "", false},
        {NULL, "false", NULL, 0, "", false},
        {NULL, "false", "n2 0123", 0, "", false},
        {NULL, "True", NULL, 0, "", false},
        {"n1", NULL, NULL, 0, "", false},
        {"n2", NULL, NULL, -EPERM, "the bootstrap token is for the node n2 alone", false},
        {"n", NULL, NULL, -EPERM, "the bootstrap token is for the node n alone", false},
        {"n11", NULL, NULL, -EPERM, "the bootstrap token is for the node n11 alone", false},
        {"", NULL, NULL, -EPERM, "the bootstrap token is for the node  alone", false},
        {NULL, "true", NULL, 0, "", true},
        {NULL, "true", own, 0, "", false},
        {NULL, "true", "n1 0123", -EPERM,
         "the bootstrap token is for one use, and was used by the node n1", false},
        {NULL, "true", other_name, -EPERM,
         "the bootstrap token is for one use, and was used by the node n2", false},
        {NULL, "true", "", -EPERM, "the bootstrap token is for one use, and was used by the node ",
         false},
        {"n1", "true", NULL, 0, "", true},
        {"n1", "true", own, 0, "", false},
        {"n2", "true", NULL, -EPERM, "the bootstrap token is for the node n2 alone", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *secret = json_object();
        CLEANUP(json_free) struct json *csr = json_object();
        const char *const keys[] = {"node-name", "single-use", "used-by"};
        const char *const values[] = {cases[i].node, cases[i].single, cases[i].used};
        CLEANUP_FREE char *use = NULL;
        struct err e = {0};
        json_set_string(json_ensure_object(csr, "spec"), "request", request);
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
            CLEANUP_FREE char *value = values[k] ? encoded(values[k]) : NULL;
            json_set_string(json_ensure_object(secret, "data"), keys[k], value);
        }
        int r = certificates_check_token(secret, csr, &use, &e);
        if (r != cases[i].result || !streq(e.text, cases[i].error) ||
            (use != NULL) != cases[i].use || (use && !streq(use, own))) {
            fail_msg("case %zu: %d \"%s\" use=%s", i, r, e.text, use ? use : "none");
        }
    }
}

static void join_by(const char *id, const char *name, const char *node, const char *text)
{
    CLEANUP_FREE char *who = xasprintf("system:bootstrap:%s system:bootstrappers", id);
    CLEANUP_FREE char *cn = xasprintf("system:node:%s", node);
    CLEANUP_FREE char *made = text ? NULL : csr_text(&(struct csr_wish){.cn = cn, .o = nodes});
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'spec': {'request': '%s', 'signerName': '" KUBELET
                  "', 'usages': ['client auth']}}",
                  name, text ? text : made);
    CLEANUP_ANSWER struct answer a = ask_as(h, who, "POST", CSRS, NULL, body);
    assert_int_equal(a.status, 201);
}

static void a_token_for_one_use_serves_one_node(void **state)
{
    CLEANUP_FREE char *text = csr_text(&(struct csr_wish){.cn = N1, .o = nodes});
    add_token("onceaa", ", 'single-use': 'true'");
    join_by("onceaa", "once-first", "n1", text);
    expect("once-first", "Approved certificate");
    join_by("onceaa", "once-other-node", "n2", NULL);
    join_by("onceaa", "once-other-key", "n1", NULL);
    join_by("onceaa", "once-again", "n1", text);
    expect("once-other-node", "Denied ");
    expect("once-other-key", "Denied ");
    expect("once-again", "Approved certificate");
    CLEANUP_ANSWER struct answer a = get("once-other-node");
    assert_string_equal(at(&a, "status.conditions.0.message"),
                        "the bootstrap token is for one use, and was used by the node n1");
}

static void many_requests_at_once_use_a_token_once(void **state)
{
    enum { N = 12 };
    unsigned approved = 0;
    add_token("onceab", ", 'single-use': 'true'");
    for (int i = 0; i < N; i++) {
        CLEANUP_FREE char *name = xasprintf("race-%d", i);
        CLEANUP_FREE char *node = xasprintf("r%d", i);
        join_by("onceab", name, node, NULL);
    }
    settle();
    for (int i = 0; i < N; i++) {
        CLEANUP_FREE char *name = xasprintf("race-%d", i);
        CLEANUP_ANSWER struct answer a = get(name);
        bool yes = streq(at(&a, "status.conditions.0.type"), "Approved");
        approved += yes;
        expect(name, yes ? "Approved certificate" : "Denied ");
    }
    assert_int_equal(approved, 1);
}

static void a_token_for_a_node_serves_no_other(void **state)
{
    add_token("namedd", ", 'node-name': 'n7'");
    join_by("namedd", "named-other", "n8", NULL);
    join_by("namedd", "named-own", "n7", NULL);
    join_by("namedd", "named-own-again", "n7", NULL);
    expect("named-other", "Denied ");
    expect("named-own", "Approved certificate");
    expect("named-own-again", "Approved certificate");
}

static void a_request_by_a_deleted_token_is_denied(void **state)
{
    join_by("gonegg", "gone", "n1", NULL);
    expect("gone", "Denied ");
}

static void other_requests_wait_for_approval(void **state)
{
    /* Requests without the right to be approved automatically. */
    ask_for("jane", "janes-node", KUBELET, &(struct csr_wish){.cn = N1, .o = nodes}, "client auth",
            "");
    ask_for("n1 system:nodes", "no-self", KUBELET, &(struct csr_wish){.cn = N1, .o = nodes},
            "client auth", "");
    ask_for(JOINS, "joins-client", CLIENT, &(struct csr_wish){.cn = "jane"}, "client auth", "");
    ask_for(JOINS, "joins-named", KUBELET,
            &(struct csr_wish){.cn = N1, .o = nodes, .alt = "DNS:n1"}, "client auth", "");
    ask_for(NODE, "serving", SERVING, &(struct csr_wish){.cn = N1, .o = nodes, .alt = "DNS:n1"},
            "server auth", "");
    ask_for(NODE, "foreign", SERVING,
            &(struct csr_wish){.cn = "system:node:n2", .o = nodes, .alt = "DNS:n2"}, "server auth",
            "");
    ask_for("jane", "client", CLIENT, &(struct csr_wish){.cn = "jane", .o = dev, .alt = "DNS:x"},
            "client auth", ", 'expirationSeconds': 94608000");
    ask_for("jane", "denied", CLIENT, &(struct csr_wish){.cn = "jane"}, "client auth", "");
    ask_for("jane", "mine", "example.com/mine", &(struct csr_wish){.cn = "jane"}, "client auth",
            "");
    ask_for("jane", "usages", CLIENT, &(struct csr_wish){.cn = "jane"}, "server auth", "");
    settle();
    static const char *const undecided[] = {"janes-node", "no-self", "joins-client", "joins-named",
                                            "serving",    "foreign", "client",       "denied",
                                            "mine",       "usages"};
    for (size_t i = 0; i < ARRAY_SIZE(undecided); i++) {
        CLEANUP_FREE char *got = state_of(undecided[i]);
        if (!streq(got, "")) {
            fail_msg("%s: %s", undecided[i], got);
        }
    }
    static const struct {
        const char *name, *verdict, *want, *failure;
    } cases[] = {
        {"janes-node", "Approved", "Approved certificate", NULL},
        {"joins-named", "Approved", "Approved Failed ", NO_NODE},
        {"serving", "Approved", "Approved certificate", NULL},
        {"foreign", "Approved", "Approved Failed ", "a node can only ask for its own certificate"},
        {"client", "Approved", "Approved certificate", NULL},
        {"usages", "Approved", "Approved Failed ", NO_USAGES("client auth")},
        {"denied", "Denied", "Denied ", NULL},
        {"mine", "Approved", "Approved ", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        decide(cases[i].name, cases[i].verdict);
    }
    settle();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        expect(cases[i].name, cases[i].want);
        CLEANUP_ANSWER struct answer a = get(cases[i].name);
        if (cases[i].failure) {
            assert_string_equal(at(&a, "status.conditions.1.message"), cases[i].failure);
            assert_string_equal(at(&a, "status.conditions.1.reason"), "SignerValidationFailure");
        }
    }
    expect_certificate("serving", "/O=system:nodes/CN=system:node:n1", XKU_SSL_SERVER, "n1", 365);
    /* A client certificate has no names, and is valid for a year at most. */
    expect_certificate("client", "/O=dev/CN=jane", XKU_SSL_CLIENT, NULL, 365);
}

/* ---- expired requests ---- */

/* Stores a request that is 'age_ms' old. */
static void plant(const char *name, int64_t age_ms, const char *status)
{
    CLEANUP_FREE char *request = csr_text(&(struct csr_wish){.cn = "jane"});
    char made[TIME_TEXT_SIZE];
    time_format_s(time_wall_ms() - age_ms, made);
    CLEANUP_FREE char *text =
        xasprintf("{'kind': 'CertificateSigningRequest', 'apiVersion': 'certificates.k8s.io/v1',"
                  "'metadata': {'name': '%s', 'uid': '%s', 'creationTimestamp': '%s'},"
                  "'spec': {'request': '%s', 'signerName': '" CLIENT "', 'usages': ['client auth'],"
                  "'username': 'jane'}, 'status': {%s}}",
                  name, name, made, request, status);
    rig_plant(h, "certificates.k8s.io", "certificatesigningrequests", name, text);
}

static void expired_requests_are_removed(void **state)
{
#define DENIED "'conditions': [{'type': 'Denied', 'status': 'True'}]"
#define DONE "'conditions': [{'type': 'Approved', 'status': 'True'}], 'certificate': 'eA=='"
#define FAILED "'conditions': [{'type': 'Approved', 'status': 'True'}, {'type': 'Failed'}]"
    static const struct {
        const char *name;
        int64_t age;
        const char *status, *want;
    } cases[] = {
        {"old", 25 * HOUR_MS, "", "absent"},
        {"old-denied", 2 * HOUR_MS, DENIED, "absent"},
        {"old-done", 2 * HOUR_MS, DONE, "absent"},
        {"old-failed", 2 * HOUR_MS, FAILED, "absent"},
        {"young", 2 * HOUR_MS, "", ""},
        {"young-denied", HOUR_MS / 2, DENIED, "Denied "},
        {"young-done", HOUR_MS / 2, DONE, "Approved certificate"},
        {"young-failed", HOUR_MS / 2, FAILED, "Approved Failed "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        plant(cases[i].name, cases[i].age, cases[i].status);
    }
    settle();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        expect(cases[i].name, cases[i].want);
    }
}

/* More deleted requests than the controller works on at once. */
static void deleted_requests_do_not_block_the_others(void **state)
{
    enum { N = 20 };
    for (int i = 0; i < N; i++) {
        CLEANUP_FREE char *name = xasprintf("deleted-%d", i);
        CLEANUP_FREE char *path = xasprintf(CSRS "/%s", name);
        ask_for("jane", name, CLIENT, &(struct csr_wish){.cn = "jane"}, "client auth", "");
        put_in(h, "DELETE", path, NULL, 200);
    }
    settle();
}

static void a_request_to_the_server_that_fails_is_tried_again(void **state)
{
    rig_refuse(h, false);
    plant("again-old", 25 * HOUR_MS, "");
    rig_recover(h);
    expect("again-old", "absent");
    rig_refuse(h, false);
    plant("again-sign", 0, "'conditions': [{'type': 'Approved', 'status': 'True'}]");
    rig_recover(h);
    expect("again-sign", "Approved certificate");
    CLEANUP_FREE char *request = csr_text(&(struct csr_wish){.cn = N1, .o = nodes});
    CLEANUP_FREE char *text =
        xasprintf("{'kind': 'CertificateSigningRequest', 'apiVersion': 'certificates.k8s.io/v1',"
                  "'metadata': {'name': 'again-review', 'uid': 'u'}, 'spec': {'request': '%s',"
                  "'signerName': '" KUBELET "', 'usages': ['client auth'], 'username': 'b',"
                  "'groups': ['system:bootstrappers']}}",
                  request);
    rig_refuse(h, false);
    rig_plant(h, "certificates.k8s.io", "certificatesigningrequests", "again-review", text);
    rig_recover(h);
    expect("again-review", "Approved certificate");
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_signer_signs_only_its_own_subjects_and_usages),
        T(a_decided_request_is_removed_after_an_hour_and_others_after_a_day),
        T(a_serving_certificate_is_for_the_nodes_own_addresses),
        T(a_nodes_client_certificate_needs_no_administrator),
        T(a_token_allows_its_node_and_its_number_of_uses),
        T(a_token_for_one_use_serves_one_node),
        T(many_requests_at_once_use_a_token_once),
        T(a_token_for_a_node_serves_no_other),
        T(a_request_by_a_deleted_token_is_denied),
        T(other_requests_wait_for_approval),
        T(expired_requests_are_removed),
        T(a_request_to_the_server_that_fails_is_tried_again),
        T(deleted_requests_do_not_block_the_others),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
