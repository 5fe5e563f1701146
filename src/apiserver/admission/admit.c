/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: changes that depend on who makes them.
 *
 * Nobody gives more than they have (roles and bindings); who asks for a certificate is written by the server, and
 * who grants and signs one needs the signer's leave; a node writes only what is its own.  Owners are judged in
 * admit_owner.c, pods in admit_pod.c, services and endpoints in admit_service.c. */
#include "apiserver/access/security.h"
#include "apiserver/admission/addresses.h"
#include "apiserver/admission/alloc.h"
#include "base/base64.h"
#include "net/tls/pki_csr.h"

#define CERTIFICATES "certificates.k8s.io"
#define OUR_SIGNERS "kubernetes.io/"
#define CLIENT_SIGNER OUR_SIGNERS "kube-apiserver-client"
#define KUBELET_SIGNER OUR_SIGNERS "kube-apiserver-client-kubelet"
#define SERVING_SIGNER OUR_SIGNERS "kubelet-serving"

/* 403 of the request's object; -EACCES. */
static int refuse(struct request *q, const struct json *obj, const char *why,
                  struct outcome *outcome)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    outcome_status(outcome, 403, "Forbidden", name, "%s \"%s\" is forbidden: %s",
                   RESOURCE_TEXT(q->kind), name ? name : "", why);
    return -EACCES;
}

/* Absent and empty are the same. */
static bool same(const struct json *a, const struct json *b)
{
    return (!json_count(a) && !json_count(b)) || (a && b && json_equal(a, b));
}

/* ---- RBAC: no escalation ---- */

static void add_groups(struct strbuf *b, const struct user_info *u)
{
    strbuf_addc(b, '[');
    for (size_t i = 0; i < u->n_groups; i++) {
        strbuf_adds(b, i ? " " : "");
        json_write_string(u->groups[i], strlen(u->groups[i]), b);
    }
    strbuf_addc(b, ']');
}

/* Whether the request's user has all of 'rules' in 'ns'. */
static int check_covers(struct request *q, const struct json *obj, const char *ns,
                        const struct rbac_rules *rules, struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    if (rbac_covers(q->server->security->rbac, q->user, ns, rules, &missing)) {
        return 0;
    }
    strbuf_adds(&why, "user ");
    json_write_string(q->user->name, strlen(q->user->name), &why);
    strbuf_adds(&why, " (groups=");
    add_groups(&why, q->user);
    strbuf_addf(&why, ") is attempting to grant RBAC permissions not currently held:%s",
                strbuf_cstr(&missing));
    return refuse(q, obj, why.data, outcome);
}

/* Who gathers rules by labels can get any: that needs all there is. */
static int check_aggregation(struct request *q, const struct json *obj, const struct json *old,
                             struct outcome *outcome)
{
    static const char all[] = "[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]},"
                              "{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]";
    const struct json *rule = json_get(obj, "aggregationRule");
    const struct json *before = json_get(old, "aggregationRule");
    if (!rule || json_is(rule, JSON_NULL) || (before && json_equal(rule, before))) {
        return 0;
    }
    CLEANUP(json_free) struct json *v = NULL;
    struct rbac_rules rules;
    json_parse(all, sizeof all - 1, &v, NULL);
    rbac_rules_parse(v, &rules);
    int r = check_covers(q, obj, NULL, &rules, outcome);
    rbac_rules_done(&rules);
    return r;
}

static int admit_role(struct request *q, const struct json *obj, const struct json *old,
                      struct outcome *outcome)
{
    const struct json *rules = json_get(obj, "rules"), *before = json_get(old, "rules");
    const struct json *labels = json_path(obj, "metadata", "labels", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    int r = check_aggregation(q, obj, old, outcome);
    /* By its labels a role may become part of others. */
    bool unchanged = before && rules && json_equal(rules, before) &&
                     same(labels, json_path(old, "metadata", "labels", NULL));
    if (r < 0 || !rules || unchanged ||
        authz_may(q->server->security, q->user, "escalate", "rbac.authorization.k8s.io",
                  q->kind->plural, q->namespace, name)) {
        return r;
    }
    struct rbac_rules wanted;
    rbac_rules_parse(rules, &wanted);
    r = check_covers(q, obj, q->namespace, &wanted, outcome);
    rbac_rules_done(&wanted);
    return r;
}

static int admit_binding(struct request *q, const struct json *obj, const struct json *old,
                         struct outcome *outcome)
{
    struct security *s = q->server->security;
    const char *kind = json_path_string(obj, "roleRef", "kind", NULL);
    const char *name = json_path_string(obj, "roleRef", "name", NULL);
    const struct json *subjects = json_get(obj, "subjects"), *before = json_get(old, "subjects");
    if (!kind || !name) {
        return 0; /* For validation to refuse. */
    }
    if ((before && subjects && json_equal(subjects, before) &&
         json_equal(json_get(obj, "roleRef"), json_get(old, "roleRef"))) ||
        authz_may(s, q->user, "bind", "rbac.authorization.k8s.io",
                  streq(kind, "ClusterRole") ? "clusterroles" : "roles", q->namespace, name)) {
        return 0;
    }
    const struct rbac_rules *rules = rbac_role(s->rbac, q->namespace, kind, name);
    if (!rules) {
        outcome_status(outcome, 404, "NotFound", name,
                       "%s.rbac.authorization.k8s.io \"%s\" not found",
                       streq(kind, "ClusterRole") ? "clusterroles" : "roles", name);
        outcome->kind = xstrdup("roles");
        return -EACCES;
    }
    return check_covers(q, obj, q->namespace, rules, outcome);
}

/* ---- certificates ---- */

/* Whether the user has 'verb' for the signer, or for all of its domain.  A request without a signer needs the right for
 * all signers. */
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
    return refuse(q, obj, why, outcome);
}

/* What is asked for: nobody becomes a cluster's master that way, and a node only itself. */
static int check_request(struct request *q, struct json *obj, struct outcome *outcome)
{
    const struct json *text = json_path(obj, "spec", "request", NULL);
    const char *signer = json_path_string(obj, "spec", "signerName", NULL);
    const char *node = user_node(q->user);
    CLEANUP_STRBUF struct strbuf pem = STRBUF_INIT;
    CLEANUP(pki_csr_done) struct pki_csr c = {0};
    struct err e = {0};
    if (!json_is(text, JSON_STRING) || !signer ||
        base64_decode(json_get_string(text), json_string_size(text), &pem) < 0) {
        return 0; /* For validation to refuse. */
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
            return refuse(q, obj,
                          "use of " CLIENT_SIGNER " signer with system:masters group is not "
                          "allowed",
                          outcome);
        }
    }
    if (node && streq(signer, KUBELET_SIGNER) && !streq(c.cn, q->user->name)) {
        return refuse(q, obj, "a node can only ask for its own certificate", outcome);
    }
    return 0;
}

static int admit_csr(struct request *q, struct json *obj, const struct json *old,
                     struct outcome *outcome)
{
    if (old) {
        return streq(q->subresource, "approval") ? check_signer(q, obj, "approve", outcome)
               : streq(q->subresource, "status") ? check_signer(q, obj, "sign", outcome)
                                                 : 0;
    }
    static const char *const fields[] = {"username", "uid", "groups", "extra"};
    struct json *spec = json_get(obj, "spec");
    if (!json_is(spec, JSON_OBJECT)) {
        return 0; /* For validation to refuse. */
    }
    CLEANUP(json_free) struct json *user = user_object(q->user);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        json_remove(spec, fields[i]);
        json_set(spec, fields[i], json_take(user, fields[i]));
    }
    return check_request(q, obj, outcome);
}

/* ---- nodes ---- */

static bool is_reserved(const char *label)
{
    const char *slash = strchr(label, '/');
    static const char domain[] = "node-restriction.kubernetes.io";
    size_t n = slash ? (size_t) (slash - label) : 0, d = sizeof domain - 1;
    return n >= d && strncmp(slash - d, domain, d) == 0 && (n == d || slash[-(int) d - 1] == '.');
}

/* Labels by which others keep pods away from nodes are not the node's to set. */
static bool labels_differ(const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < json_count(a); i++) {
        const char *key = json_key_at(a, i);
        const struct json *other = json_get(b, key);
        if (is_reserved(key) && (!other || !json_equal(json_at(a, i), other))) {
            return true;
        }
    }
    return false;
}

static int admit_node_of(struct request *q, const char *node, const struct json *obj,
                         const struct json *old, struct outcome *outcome)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *labels = json_path(obj, "metadata", "labels", NULL);
    const struct json *before = json_path(old, "metadata", "labels", NULL);
    if (!streq_null(name, node)) {
        return refuse(q, obj, "a node is only allowed to change its own Node", outcome);
    }
    if (labels_differ(labels, before) || labels_differ(before, labels)) {
        return refuse(q, obj,
                      "a node is not allowed to set labels of "
                      "node-restriction.kubernetes.io",
                      outcome);
    }
    if (old &&
        !same(json_path(obj, "spec", "taints", NULL), json_path(old, "spec", "taints", NULL))) {
        return refuse(q, obj, "a node is not allowed to change its taints", outcome);
    }
    if (json_count(json_path(obj, "metadata", "ownerReferences", NULL)) &&
        !same(json_path(obj, "metadata", "ownerReferences", NULL),
              json_path(old, "metadata", "ownerReferences", NULL))) {
        return refuse(q, obj, "a node is not allowed to set owner references", outcome);
    }
    return addresses_admit_node(q, node, obj, old, outcome);
}

static int admit_for_node(struct request *q, const char *node, const struct json *obj,
                          const struct json *old, struct outcome *outcome)
{
    const struct api_kind *k = q->kind;
    if (streq(k->plural, "nodes") && !*k->group) {
        return admit_node_of(q, node, obj, old, outcome);
    }
    if (streq(k->plural, "pods") && !*k->group) {
        return addresses_admit_pod(q, node, obj, old, outcome);
    }
    if (streq(k->plural, "leases") && !old &&
        !streq_null(json_path_string(obj, "metadata", "name", NULL), node)) {
        return refuse(q, obj, "a node is only allowed to make the lease of its own name", outcome);
    }
    return 0;
}

int filter_admit(struct request *q, struct json *obj, const struct json *old,
                 struct outcome *outcome)
{
    const struct api_kind *k = q->kind;
    struct security *s = q->server->security;
    const char *node = s->always_allow ? NULL : user_node(q->user);
    if (streq(k->group, CERTIFICATES) && streq(k->plural, "certificatesigningrequests")) {
        return admit_csr(q, obj, old, outcome);
    }
    secrets_admit(q, obj);
    bool exempt = s->always_allow || user_in_group(q->user, GROUP_MASTERS);
    if (!exempt && owners_admit(q, obj, old, outcome) < 0) {
        return -EACCES;
    }
    if (!exempt && streq(k->group, "rbac.authorization.k8s.io")) {
        return streq(k->plural, "roles") || streq(k->plural, "clusterroles")
                   ? admit_role(q, obj, old, outcome)
                   : admit_binding(q, obj, old, outcome);
    }
    if (!exempt && pods_admit(q, obj, old, outcome) < 0) {
        return -EACCES;
    }
    return node ? admit_for_node(q, node, obj, old, outcome) : alloc_admit(q, obj, old, outcome);
}
