/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/certificates.h"

#include "api/condition.h"
#include "base/base64.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/join_token.h"
#include "controller/obj.h"
#include "net/tls/pki_csr.h"

LOG_MODULE("certificates");

#define VERSION "certificates.k8s.io/v1"
#define SIGNER "kubernetes.io/"
#define SIGNER_CLIENT SIGNER "kube-apiserver-client"
#define SIGNER_KUBELET SIGNER "kube-apiserver-client-kubelet"
#define SIGNER_SERVING SIGNER "kubelet-serving"
#define NODES "system:nodes"
#define NODE "system:node:"
#define BOOTSTRAP_USER "system:bootstrap:"
#define HOUR_MS 3600000LL
/* Certificates are valid from this long before now, for clients whose clocks are late. */
#define BACKDATE_MS 300000LL
#define MAX_MS (365 * 24 * HOUR_MS)
#define SERVING_RETRY_MS 5000u

struct certificates {
    struct informer *requests;
    const struct pki_ca *ca;
};

/* ---- requested subject and usages ---- */

/* The PEM text of the request; owned, NULL: none. */
static char *pem_of(const struct json *csr)
{
    const struct json *v = json_path(csr, "spec", "request", NULL);
    struct strbuf b = STRBUF_INIT;
    if (!json_is(v, JSON_STRING) ||
        base64_decode(json_get_string(v), json_string_size(v), &b) < 0) {
        strbuf_done(&b);
        return NULL;
    }
    return strbuf_steal(&b);
}

static bool has(const struct json *list, const char *s)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), s)) {
            return true;
        }
    }
    return false;
}

/* Whether the usages are 'must', "digital signature" and "key encipherment", and no others. */
static bool usages_are(const struct json *csr, const char *must)
{
    const struct json *list = json_path(csr, "spec", "usages", NULL), *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        if (!s ||
            (!streq(s, must) && !streq(s, "digital signature") && !streq(s, "key encipherment"))) {
            return false;
        }
    }
    return has(list, must);
}

/* Whether the subject is system:node:NAME of system:nodes. */
static bool is_node(const struct pki_csr *c)
{
    return c->n_o == 1 && streq(c->o[0], NODES) && str_has_prefix(c->cn, NODE) &&
           c->cn[sizeof NODE - 1] && !c->n_others;
}

static int check_client(const struct json *csr, const struct pki_csr *c, struct err *e)
{
    if (!*c->cn) {
        return err_set(e, -EINVAL, "the request has no common name");
    }
    for (size_t i = 0; i < c->n_o; i++) {
        if (streq(c->o[i], "system:masters")) {
            return err_set(e, -EINVAL, "nobody gets the group system:masters by request");
        }
    }
    return usages_are(csr, "client auth")
               ? 0
               : err_set(e, -EINVAL,
                         "usages did not match: client auth, and nothing beyond "
                         "digital signature and key encipherment");
}

static int check_kubelet(const struct json *csr, const struct pki_csr *c, struct err *e)
{
    if (!is_node(c) || c->n_names) {
        return err_set(e, -EINVAL,
                       "the subject is not system:node:NAME of system:nodes, without other names");
    }
    return check_client(csr, c, e);
}

static int check_serving(const struct json *csr, const struct pki_csr *c, struct err *e)
{
    const char *user = json_path_string(csr, "spec", "username", NULL);
    if (!is_node(c) || !c->n_names) {
        return err_set(e, -EINVAL,
                       "the subject is not system:node:NAME of system:nodes, with names or "
                       "addresses");
    }
    if (!streq_null(user, c->cn)) {
        return err_set(e, -EINVAL, "a node can only ask for its own certificate");
    }
    return usages_are(csr, "server auth")
               ? 0
               : err_set(e, -EINVAL,
                         "usages did not match: server auth, and nothing beyond "
                         "digital signature and key encipherment");
}

int certificates_check(const struct json *csr, struct err *e)
{
    static const struct {
        const char *signer;
        int (*check)(const struct json *csr, const struct pki_csr *c, struct err *e);
    } signers[] = {{SIGNER_CLIENT, check_client},
                   {SIGNER_KUBELET, check_kubelet},
                   {SIGNER_SERVING, check_serving}};
    const char *signer = json_path_string(csr, "spec", "signerName", NULL);
    CLEANUP_FREE char *pem = pem_of(csr);
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    for (size_t i = 0; signer && i < ARRAY_SIZE(signers); i++) {
        if (streq(signer, signers[i].signer)) {
            int r = pki_csr_read(pem ? pem : "", &c, e);
            r = r < 0 ? r : pki_csr_check_names(&c, streq(signer, SIGNER_SERVING), e);
            return r < 0 ? r : signers[i].check(csr, &c, e);
        }
    }
    return err_set(e, -ENOTSUP, "not one of our signers");
}

bool certificates_is_node_client(const struct json *csr)
{
    return streq_null(json_path_string(csr, "spec", "signerName", NULL), SIGNER_KUBELET) &&
           certificates_check(csr, NULL) == 0;
}

/* ---- conditions ---- */

static void add_condition(struct json *csr, const char *type, const char *reason,
                          const char *message)
{
    char now[TIME_TEXT_SIZE];
    int64_t now_ms = time_wall_ms();
    struct json *c = condition_set(csr, type, "True", reason, message, now_ms);
    if (c) {
        time_format_s(now_ms, now);
        json_set_string(c, "lastUpdateTime", now);
    }
}

/* A copy for writing, with the kind and version that members of lists lack. */
static struct json *copy_of(const struct json *csr)
{
    struct json *o = json_clone(csr);
    json_set_string(o, "apiVersion", VERSION);
    json_set_string(o, "kind", "CertificateSigningRequest");
    return o;
}

int64_t certificates_left_ms(const struct json *csr, int64_t now_ms)
{
    const char *made = json_path_string(csr, "metadata", "creationTimestamp", NULL);
    bool decided = json_string_size(json_path(csr, "status", "certificate", NULL)) ||
                   condition_find(csr, "Denied") || condition_find(csr, "Failed");
    int64_t since = now_ms;
    if (made) {
        (void) time_parse(made, &since);
    }
    return MAX(since + (decided ? HOUR_MS : 24 * HOUR_MS) - now_ms, (int64_t) 0);
}

/* ---- the steps ---- */

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "decide on a certificate request", text);
    } else {
        work_done(w); /* The change comes back as an event. */
    }
}

static void wait_end(struct certificates *c, struct work *w, const struct json *csr)
{
    int64_t ms = certificates_left_ms(csr, time_wall_ms());
    if (ms > 0) {
        work_wait(w, (uint64_t) ms);
        return;
    }
    CLEANUP_FREE char *path =
        api_path(VERSION, "certificatesigningrequests", NULL, work_key(w), NULL);
    work_request(w, "DELETE", path, NULL, written);
}

static void sign(struct certificates *c, struct work *w, const struct json *csr)
{
    CLEANUP(json_free) struct json *o = copy_of(csr);
    CLEANUP_FREE char *pem = pem_of(csr);
    CLEANUP_FREE char *cert = NULL;
    CLEANUP_FREE char *path =
        api_path(VERSION, "certificatesigningrequests", NULL, obj_name(csr), "status");
    struct err e = {0};
    int r = certificates_check(csr, &e);
    if (r == -ENOTSUP) {
        wait_end(c, w, csr);
        return;
    }
    if (r == 0) {
        const char *signer = json_path_string(csr, "spec", "signerName", NULL);
        int64_t seconds =
            json_get_int_or(json_path(csr, "spec", "expirationSeconds", NULL), MAX_MS / 1000);
        int64_t now = time_wall_ms();
        r = pki_csr_sign(c->ca, pem, streq(signer, SIGNER_SERVING) ? PKI_SERVER : PKI_CLIENT,
                         now - BACKDATE_MS, now + MIN(seconds * 1000, MAX_MS), &cert, &e);
    }
    if (r < 0) {
        log_warn("certificate request not signed", "name=%s reason=\"%s\"", obj_name(csr), e.text);
        add_condition(o, "Failed", "SignerValidationFailure", e.text);
    } else {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        base64_encode(cert, strlen(cert), &b);
        json_set_string(json_ensure_object(o, "status"), "certificate", strbuf_cstr(&b));
        log_info("certificate issued", "request=%s user=%s", obj_name(csr),
                 json_path_string(csr, "spec", "username", NULL));
    }
    work_request(w, "PUT", path, o, written);
}

static void decide(struct work *w, const struct json *csr, const char *type, const char *reason,
                   const char *message)
{
    CLEANUP(json_free) struct json *o = copy_of(csr);
    CLEANUP_FREE char *path =
        api_path(VERSION, "certificatesigningrequests", NULL, obj_name(csr), "approval");
    add_condition(o, type, reason, message);
    work_request(w, "PUT", path, o, written);
}

static void approve(struct work *w, const struct json *csr)
{
    decide(w, csr, "Approved", "AutoApproved",
           "Auto approving kubelet client certificate after SubjectAccessReview.");
}

/* ---- limits of a bootstrap token ---- */

/* A value of the Secret as owned text; NULL: absent. */
static char *secret_text(const struct json *secret, const char *key)
{
    const struct json *v = json_path(secret, "data", key, NULL);
    struct strbuf b = STRBUF_INIT;
    if (!json_is(v, JSON_STRING) ||
        base64_decode(json_get_string(v), json_string_size(v), &b) < 0) {
        strbuf_done(&b);
        return NULL;
    }
    return strbuf_steal(&b);
}

int certificates_check_token(const struct json *secret, const struct json *csr, char **ret_use,
                             struct err *e)
{
    CLEANUP_FREE char *pem = pem_of(csr);
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    CLEANUP_FREE char *node = secret_text(secret, JOIN_TOKEN_NODE);
    CLEANUP_FREE char *single = secret_text(secret, JOIN_TOKEN_SINGLE);
    CLEANUP_FREE char *used = secret_text(secret, JOIN_TOKEN_USED);
    int r = pki_csr_read(pem ? pem : "", &c, e);
    if (r < 0) {
        return r;
    }
    const char *name = str_has_prefix(c.cn, NODE) ? c.cn + strlen(NODE) : "";
    if (node && !streq(node, name)) {
        return err_set(e, -EPERM, "the bootstrap token is for the node %.253s alone", node);
    }
    if (!single || !streq(single, "true")) {
        return 0;
    }
    CLEANUP_FREE char *use = xasprintf("%s %s", name, c.pin);
    if (used && !streq(used, use)) {
        return err_set(e, -EPERM,
                       "the bootstrap token is for one use, and was used by the node %.*s",
                       (int) MIN(strcspn(used, " "), (size_t) 253), used);
    }
    if (!used) {
        *ret_use = TAKE(use);
    }
    return 0;
}

/* The Secret has the use: no other request can have it. */
static void claimed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct certificates *c = ctx;
    const struct json *csr = informer_get(c->requests, work_key(w));
    if (error < 0) {
        work_retry(w, error, "mark a bootstrap token as used", text);
    } else if (!csr) {
        work_done(w);
    } else {
        approve(w, csr);
    }
}

static void got_token(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct certificates *c = ctx;
    const struct json *csr = informer_get(c->requests, work_key(w));
    CLEANUP_FREE char *use = NULL;
    struct err e = {0};
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the bootstrap token of a certificate request", text);
    } else if (!csr) {
        work_done(w);
    } else if (error < 0) {
        decide(w, csr, "Denied", "BootstrapToken", "the bootstrap token is gone");
    } else if (certificates_check_token(obj, csr, &use, &e) < 0) {
        log_warn("certificate request denied", "name=%s reason=\"%s\"", obj_name(csr), e.text);
        decide(w, csr, "Denied", "BootstrapToken", e.text);
    } else if (!use) {
        approve(w, csr);
    } else {
        /* The resourceVersion in the object makes the first of several requests the only one. */
        CLEANUP(json_free) struct json *secret = json_clone(obj);
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        CLEANUP_FREE char *path =
            api_path("v1", "secrets", JOIN_TOKEN_NAMESPACE, obj_name(obj), NULL);
        base64_encode(use, strlen(use), &b);
        json_set_string(json_ensure_object(secret, "data"), JOIN_TOKEN_USED, strbuf_cstr(&b));
        work_request(w, "PUT", path, secret, claimed);
    }
}

/* The server has answered whether the author of the request may have a
 * node's certificate without an administrator. */
static void reviewed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct certificates *c = ctx;
    const struct json *csr = informer_get(c->requests, work_key(w));
    if (error < 0) {
        work_retry(w, error, "check the right to a node certificate", text);
        return;
    }
    if (!csr) {
        work_done(w);
        return;
    }
    if (!json_get_bool(json_path(obj, "status", "allowed", NULL), false)) {
        wait_end(c, w, csr);
        return;
    }
    const char *user = json_path_string(csr, "spec", "username", NULL);
    if (!user || !str_has_prefix(user, BOOTSTRAP_USER)) {
        approve(w, csr);
        return;
    }
    CLEANUP_FREE char *name = xasprintf("bootstrap-token-%s", user + strlen(BOOTSTRAP_USER));
    CLEANUP_FREE char *path = api_path("v1", "secrets", JOIN_TOKEN_NAMESPACE, name, NULL);
    work_request(w, "GET", path, NULL, got_token);
}

static void review(struct work *w, const struct json *csr)
{
    static const char *const fields[] = {"uid", "groups", "extra"};
    const char *user = json_path_string(csr, "spec", "username", NULL);
    CLEANUP_FREE char *pem = pem_of(csr);
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    CLEANUP(json_free) struct json *o = json_object();
    bool self = pki_csr_read(pem, &c, NULL) == 0 && streq_null(user, c.cn);
    json_set_string(o, "apiVersion", "authorization.k8s.io/v1");
    json_set_string(o, "kind", "SubjectAccessReview");
    struct json *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "user", user);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const struct json *v = json_path(csr, "spec", fields[i], NULL);
        if (v) {
            json_set(spec, fields[i], json_clone(v));
        }
    }
    struct json *a = json_ensure_object(spec, "resourceAttributes");
    json_set_string(a, "group", "certificates.k8s.io");
    json_set_string(a, "resource", "certificatesigningrequests");
    json_set_string(a, "subresource", self ? "selfnodeclient" : "nodeclient");
    json_set_string(a, "verb", "create");
    work_request(w, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", o, reviewed);
}

/* ---- serving certificates ---- */

bool certificates_is_node_server(const struct json *csr)
{
    return streq_null(json_path_string(csr, "spec", "signerName", NULL), SIGNER_SERVING) &&
           certificates_check(csr, NULL) == 0;
}

bool certificates_fits_node(const struct json *csr, const struct json *node)
{
    CLEANUP_FREE char *pem = pem_of(csr);
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    const struct json *item;
    if (pki_csr_read(pem ? pem : "", &c, NULL) < 0 || !str_has_prefix(c.cn, NODE)) {
        return false;
    }
    const char *name = json_path_string(node, "metadata", "name", NULL);
    bool fits = c.n_names > 0 && streq_null(name, c.cn + sizeof NODE - 1);
    for (size_t i = 0; i < c.n_names && fits; i++) {
        uint32_t ip;
        fits = false;
        JSON_FOREACH (item, json_path(node, "status", "addresses", NULL)) {
            fits |= ip4_parse(c.names[i], &ip) == 0 &&
                    str_has_suffix(json_get_text(item, "type"), "IP") &&
                    streq(json_get_text(item, "address"), c.names[i]);
        }
    }
    return fits;
}

/* The Node has come: its addresses were admitted as its own, and no others are signed. */
static void got_node(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct certificates *c = ctx;
    const struct json *csr = informer_get(c->requests, work_key(w));
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the node of a certificate request", text);
    } else if (!csr) {
        work_done(w);
    } else if (error < 0 || !certificates_fits_node(csr, obj)) {
        /* The node may report the address a little later. */
        work_wait(w, MIN((uint64_t) certificates_left_ms(csr, time_wall_ms()), SERVING_RETRY_MS));
    } else {
        decide(w, csr, "Approved", "AutoApproved",
               "Auto approving kubelet serving certificate: the names are the Node's own.");
    }
}

static void ask_for_node(struct work *w, const struct json *csr)
{
    const char *user = json_path_string(csr, "spec", "username", NULL);
    CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, user + sizeof NODE - 1, NULL);
    work_request(w, "GET", path, NULL, got_node);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct certificates *c = ctx;
    const struct json *csr = informer_get(c->requests, key);
    if (!csr) {
        work_done(w);
    } else if (condition_find(csr, "Denied") || condition_find(csr, "Failed") ||
               json_string_size(json_path(csr, "status", "certificate", NULL))) {
        wait_end(c, w, csr);
    } else if (condition_find(csr, "Approved")) {
        sign(c, w, csr);
    } else if (certificates_is_node_client(csr)) {
        review(w, csr);
    } else if (certificates_is_node_server(csr) && certificates_left_ms(csr, time_wall_ms()) > 0) {
        ask_for_node(w, csr);
    } else {
        wait_end(c, w, csr);
    }
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct certificates *c = NEW(struct certificates);
    c->ca = *(const struct pki_ca *const *) config;
    *ret = c;
    return 0;
}

static const struct controller_watch watches[] = {
    {.api_version = VERSION,
     .plural = "certificatesigningrequests",
     .informer = CONTROLLER_INFORMER(struct certificates, requests)},
};

const struct controller certificates_controller = {
    .name = "certificates",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .start = start,
    .reconcile = begin,
    .stop = free,
};
