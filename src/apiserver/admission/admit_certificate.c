/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of certificate signing requests: the server writes their author, and approving and
 * signing take a right to the signer.  A request cannot make its author a member of system:masters,
 * and a node can request only its own certificate. */
#include "apiserver/admission/plugins.h"

#include "apiserver/access/authz.h"
#include "base/base64.h"
#include "net/tls/pki_csr.h"

#define CERTIFICATES "certificates.k8s.io"
#define OUR_SIGNERS "kubernetes.io/"
#define CLIENT_SIGNER OUR_SIGNERS "kube-apiserver-client"
#define KUBELET_SIGNER OUR_SIGNERS "kube-apiserver-client-kubelet"
#define SERVING_SIGNER OUR_SIGNERS "kubelet-serving"

/* Whether the user has 'verb' for the signer, or for all of its domain.  A request without a signer
 * needs the right for all signers. */
static int check_signer(struct request *q, const struct json *obj, const char *verb,
                        struct outcome *outcome)
{
    struct security *s = q->server->security;
    const char *signer = json_path_string(obj, "spec", "signerName", NULL);
    signer = signer ? signer : "";
    CLEANUP_FREE char *domain = xasprintf("%.*s/*", (int) strcspn(signer, "/"), signer);
    if (authz_may(s, q->user, verb, CERTIFICATES, "signers", NULL, signer) ||
        authz_may(s, q->user, verb, CERTIFICATES, "signers", NULL, domain)) {
        return 0;
    }
    CLEANUP_FREE char *why =
        xasprintf("user not permitted to %s requests with signerName \"%s\"", verb, signer);
    return admission_refuse(q, obj, why, outcome);
}

/* Checks the requested subject: the signer of clients never signs the group system:masters, and
 * a node can request only its own name. */
int certificate_validate_subject(struct request *q, const struct json *obj, const struct json *old,
                                 struct outcome *outcome)
{
    const struct json *text = json_path(obj, "spec", "request", NULL);
    const char *signer = json_path_string(obj, "spec", "signerName", NULL);
    const char *node = user_node(q->user);
    CLEANUP_STRBUF struct strbuf pem = STRBUF_INIT;
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    struct err e = {0};
    if (!json_is(text, JSON_STRING) || !signer ||
        base64_decode(json_get_string(text), json_string_size(text), &pem) < 0) {
        return 0; /* Validation refuses it. */
    }
    bool ours = str_has_prefix(signer, OUR_SIGNERS);
    if (pki_csr_read(strbuf_cstr(&pem), &c, &e) < 0 ||
        (ours && pki_csr_check_names(&c, streq(signer, SERVING_SIGNER), &e) < 0)) {
        outcome_invalid_field(outcome, q->kind, json_path_string(obj, "metadata", "name", NULL),
                              "spec.request", e.text);
        return -EACCES;
    }
    for (size_t i = 0; i < c.n_o; i++) {
        if (streq(signer, CLIENT_SIGNER) && streq(c.o[i], GROUP_MASTERS)) {
            return admission_refuse(q, obj,
                                    "use of " CLIENT_SIGNER
                                    " signer with system:masters group is not "
                                    "allowed",
                                    outcome);
        }
    }
    if (node && streq(signer, KUBELET_SIGNER) && !streq(c.cn, q->user->name)) {
        return admission_refuse(q, obj, "a node can only ask for its own certificate", outcome);
    }
    return 0;
}

/* The server overwrites the author that the client sent. */
int certificate_admit_user(struct request *q, struct json *obj, const struct json *old,
                           struct outcome *outcome)
{
    static const char *const fields[] = {"username", "uid", "groups", "extra"};
    struct json *spec = json_get(obj, "spec");
    if (!json_is(spec, JSON_OBJECT)) {
        return 0; /* Validation refuses it. */
    }
    CLEANUP(json_free) struct json *user = user_object(q->user);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        json_remove(spec, fields[i]);
        json_set(spec, fields[i], json_take(user, fields[i]));
    }
    return 1;
}

int certificate_validate_approval(struct request *q, const struct json *obj, const struct json *old,
                                  struct outcome *outcome)
{
    return streq(q->subresource, "approval") ? check_signer(q, obj, "approve", outcome) : 0;
}

int certificate_validate_signing(struct request *q, const struct json *obj, const struct json *old,
                                 struct outcome *outcome)
{
    return streq(q->subresource, "status") ? check_signer(q, obj, "sign", outcome) : 0;
}
