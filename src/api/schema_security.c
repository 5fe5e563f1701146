/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of identities and access: secrets and service accounts, roles and bindings, certificates, and the kinds
 * that only ask. */
#include "api/schema_security.h"

#include "api/schema_core.h"

#define CORE "io.k8s.api.core.v1."
#define RBAC "io.k8s.api.rbac.v1."
#define AUTHN "io.k8s.api.authentication.v1."
#define AUTHZ "io.k8s.api.authorization.v1."
#define CERTIFICATES "io.k8s.api.certificates.v1."

/* ---- core ---- */

static const struct api_field secret_fields[] = {
    API_ROOT_API_VERSION,
    {"data", &api_schema_bytes_map, "Values by key, as base64"},
    {"immutable", &api_schema_boolean, "The data cannot be changed, and this neither"},
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"stringData", &api_schema_string_map,
     "Values as texts, which the server writes into data; never shown"},
    {"type", &api_schema_string, "What the data are for, which says what keys there must be"},
};
const struct api_schema api_schema_secret =
    API_OBJECT_OF(secret_fields, CORE "Secret", "What only those who need it may read");

static const struct api_field account_fields[] = {
    API_ROOT_API_VERSION,
    {"automountServiceAccountToken", &api_schema_boolean, "Whether pods get a token of it"},
    {"imagePullSecrets", API_PATCH_LIST(&api_schema_local_ref, "name"),
     "Secrets for pulling the images of its pods"},
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"secrets", API_MAP_LIST(&api_schema_object_reference, "name", "name"),
     "Secrets that its pods may use"},
};
const struct api_schema api_schema_service_account =
    API_OBJECT_OF(account_fields, CORE "ServiceAccount", "The identity of what runs in pods");

/* ---- rbac.authorization.k8s.io ---- */

static const struct api_field rule_fields[] = {
    {"apiGroups", &api_schema_string_list, "API groups of the resources; * is all of them"},
    {"nonResourceURLs", &api_schema_string_list,
     "Paths that are no resources; * at the end stands for anything"},
    {"resourceNames", &api_schema_string_list, "Names of objects; empty: all of them"},
    {"resources", &api_schema_string_list, "Resources, as pods or pods/status; * is all of them"},
    {"verbs", &api_schema_string_list, "What may be done; * is everything", true},
};
static const struct api_schema rule =
    API_OBJECT_OF(rule_fields, RBAC "PolicyRule", "What may be done with which resources or paths");
static const struct api_field aggregation_fields[] = {
    {"clusterRoleSelectors", API_LIST_OF(&api_schema_label_selector),
     "Labels of the roles whose rules this one gets"},
};
static const struct api_schema aggregation = API_OBJECT_OF(
    aggregation_fields, RBAC "AggregationRule", "Which other roles a role is made of");

static const struct api_field role_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"rules", API_LIST_OF(&rule), "What may be done in the role's namespace"},
};
const struct api_schema api_schema_role =
    API_OBJECT_OF(role_fields, RBAC "Role", "What may be done in one namespace");
static const struct api_field cluster_role_fields[] = {
    {"aggregationRule", &aggregation, "Rules are gathered from other roles: they are not written"},
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"rules", API_LIST_OF(&rule), "What may be done"},
};
const struct api_schema api_schema_cluster_role =
    API_OBJECT_OF(cluster_role_fields, RBAC "ClusterRole", "What may be done in the cluster");

static const struct api_field role_ref_fields[] = {
    {"apiGroup", &api_schema_string, "API group of the role", true},
    {"kind", &api_schema_string, "Role or ClusterRole", true},
    {"name", &api_schema_string, "Name of the role", true},
};
static const struct api_schema role_ref = {
    .type = API_OBJECT,
    .definition = RBAC "RoleRef",
    .description = "Names a role",
    .fields = role_ref_fields,
    .n_fields = ARRAY_SIZE(role_ref_fields),
    .atomic = true,
};
static const struct api_field subject_fields[] = {
    {"apiGroup", &api_schema_string, "API group of the subject; empty for service accounts"},
    {"kind", &api_schema_string, "User, Group or ServiceAccount", true},
    {"name", &api_schema_string, "Name of the subject", true},
    {"namespace", &api_schema_string, "Namespace of a service account"},
};
static const struct api_schema subject = {
    .type = API_OBJECT,
    .definition = RBAC "Subject",
    .description = "A user, a group or a service account",
    .fields = subject_fields,
    .n_fields = ARRAY_SIZE(subject_fields),
    .atomic = true,
};
static const struct api_field binding_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"roleRef", &role_ref, "The role that is given; it cannot be changed", true},
    {"subjects", API_LIST_OF(&subject), "Who gets the role"},
};
const struct api_schema api_schema_role_binding =
    API_OBJECT_OF(binding_fields, RBAC "RoleBinding", "Gives a role within one namespace");
const struct api_schema api_schema_cluster_role_binding =
    API_OBJECT_OF(binding_fields, RBAC "ClusterRoleBinding", "Gives a role in the whole cluster");

/* ---- certificates.k8s.io ---- */

static const struct api_schema extra = {.type = API_OBJECT, .others = &api_schema_string_list};

static const struct api_field csr_spec_fields[] = {
    {"expirationSeconds", &api_schema_int32, "For how long the certificate is wanted"},
    {"extra", &extra, "More about who asks. Set by the server."},
    {"groups", &api_schema_string_list, "Groups of who asks. Set by the server."},
    {"request", &api_schema_bytes, "The request (PKCS #10) as PEM, in base64", true},
    {"signerName", &api_schema_string, "Who is to sign it", true},
    {"uid", &api_schema_string, "UID of who asks. Set by the server."},
    {"usages", &api_schema_string_list, "What the certificate is for"},
    {"username", &api_schema_string, "Name of who asks. Set by the server."},
};
static const struct api_schema csr_spec = API_OBJECT_OF(
    csr_spec_fields, CERTIFICATES "CertificateSigningRequestSpec", "The request, and who made it");
static const struct api_field csr_condition_fields[] = {
    {"lastTransitionTime", &api_schema_time, "When the status last changed"},
    {"lastUpdateTime", &api_schema_time, "When the condition was last written"},
    {"message", &api_schema_string, "Details for people"},
    {"reason", &api_schema_string, "Why, for programs"},
    {"status", &api_schema_string, "True, False or Unknown", true},
    {"type", &api_schema_string, "Approved, Denied or Failed", true},
};
static const struct api_schema csr_condition =
    API_OBJECT_OF(csr_condition_fields, CERTIFICATES "CertificateSigningRequestCondition",
                  "What was decided about a request");
static const struct api_field csr_status_fields[] = {
    {"certificate", &api_schema_bytes, "The certificate as PEM, in base64"},
    {"conditions", API_MAP_LIST(&csr_condition, NULL, "type"), "What was decided"},
};
static const struct api_schema csr_status = API_OBJECT_OF(
    csr_status_fields, CERTIFICATES "CertificateSigningRequestStatus", "What became of a request");
static const struct api_field csr_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &csr_spec, "The request; it cannot be changed", true},
    {"status", &csr_status, "What became of it"},
};
const struct api_schema api_schema_certificate_signing_request =
    API_OBJECT_OF(csr_fields, CERTIFICATES "CertificateSigningRequest",
                  "Asks for a certificate of the cluster's authority");

/* ---- authentication.k8s.io ---- */

static const struct api_field user_fields[] = {
    {"extra", &extra, "More about the user"},
    {"groups", &api_schema_string_list, "Groups that the user is in"},
    {"uid", &api_schema_string, "Tells users of the same name over time apart"},
    {"username", &api_schema_string, "Name of the user"},
};
static const struct api_schema user =
    API_OBJECT_OF(user_fields, AUTHN "UserInfo", "Who makes a request");

static const struct api_field token_review_spec_fields[] = {
    {"audiences", &api_schema_string_list, "One of which the token must be for; empty: the server"},
    {"token", &api_schema_string, "The bearer token"},
};
static const struct api_schema token_review_spec = API_OBJECT_OF(
    token_review_spec_fields, AUTHN "TokenReviewSpec", "The token that is asked about");
static const struct api_field token_review_status_fields[] = {
    {"audiences", &api_schema_string_list, "Those of the audiences that the token is for"},
    {"authenticated", &api_schema_boolean, "The token is that of a known user"},
    {"error", &api_schema_string, "Why it is not"},
    {"user", &user, "Whom the token belongs to"},
};
static const struct api_schema token_review_status =
    API_OBJECT_OF(token_review_status_fields, AUTHN "TokenReviewStatus", "Whom a token belongs to");
static const struct api_field token_review_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &token_review_spec, "The question", true},
    {"status", &token_review_status, "The answer"},
};
const struct api_schema api_schema_token_review =
    API_OBJECT_OF(token_review_fields, AUTHN "TokenReview", "Asks whom a bearer token belongs to");

static const struct api_field self_subject_status_fields[] = {
    {"userInfo", &user, "Who asks"},
};
static const struct api_schema self_subject_status = API_OBJECT_OF(
    self_subject_status_fields, AUTHN "SelfSubjectReviewStatus", "Who the server takes one for");
static const struct api_field self_subject_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"status", &self_subject_status, "The answer"},
};
const struct api_schema api_schema_self_subject_review =
    API_OBJECT_OF(self_subject_fields, AUTHN "SelfSubjectReview", "Asks who one is");

/* ---- authorization.k8s.io ---- */

static const struct api_field resource_fields[] = {
    {"group", &api_schema_string, "API group of the resource; * is all"},
    {"name", &api_schema_string, "Name of the object; empty: all"},
    {"namespace", &api_schema_string, "Namespace; empty: none, or all of them"},
    {"resource", &api_schema_string, "The resource; * is all"},
    {"subresource", &api_schema_string, "The subresource; empty: none"},
    {"verb", &api_schema_string, "What is to be done; * is everything"},
    {"version", &api_schema_string, "API version of the resource; * is all"},
};
static const struct api_schema resource = API_OBJECT_OF(resource_fields, AUTHZ "ResourceAttributes",
                                                        "What is to be done with a resource");
static const struct api_field path_fields[] = {
    {"path", &api_schema_string, "The path"},
    {"verb", &api_schema_string, "The method, in lower case"},
};
static const struct api_schema path =
    API_OBJECT_OF(path_fields, AUTHZ "NonResourceAttributes", "What is to be done with a path");
static const struct api_field access_spec_fields[] = {
    {"extra", &extra, "More about the user"},
    {"groups", &api_schema_string_list, "Groups of the user"},
    {"nonResourceAttributes", &path, "A path that is asked about"},
    {"resourceAttributes", &resource, "A resource that is asked about"},
    {"uid", &api_schema_string, "UID of the user"},
    {"user", &api_schema_string, "Name of the user"},
};
static const struct api_schema access_spec =
    API_OBJECT_OF(access_spec_fields, AUTHZ "SubjectAccessReviewSpec", "Who is to do what");
static const struct api_field access_status_fields[] = {
    {"allowed", &api_schema_boolean, "It may be done", true},
    {"denied", &api_schema_boolean, "It may not be done, whatever others say"},
    {"evaluationError", &api_schema_string, "What went wrong while it was decided"},
    {"reason", &api_schema_string, "Why it is so"},
};
static const struct api_schema access_status = API_OBJECT_OF(
    access_status_fields, AUTHZ "SubjectAccessReviewStatus", "Whether it may be done");
static const struct api_field access_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &access_spec, "The question", true},
    {"status", &access_status, "The answer"},
};
const struct api_schema api_schema_subject_access_review = API_OBJECT_OF(
    access_fields, AUTHZ "SubjectAccessReview", "Asks whether somebody may do something");
const struct api_schema api_schema_local_subject_access_review =
    API_OBJECT_OF(access_fields, AUTHZ "LocalSubjectAccessReview",
                  "Asks whether somebody may do something in one namespace");

static const struct api_field self_access_spec_fields[] = {
    {"nonResourceAttributes", &path, "A path that is asked about"},
    {"resourceAttributes", &resource, "A resource that is asked about"},
};
static const struct api_schema self_access_spec = API_OBJECT_OF(
    self_access_spec_fields, AUTHZ "SelfSubjectAccessReviewSpec", "What is to be done");
static const struct api_field self_access_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &self_access_spec, "The question", true},
    {"status", &access_status, "The answer"},
};
const struct api_schema api_schema_self_subject_access_review = API_OBJECT_OF(
    self_access_fields, AUTHZ "SelfSubjectAccessReview", "Asks whether one may do something");

static const struct api_field self_rules_spec_fields[] = {
    {"namespace", &api_schema_string, "The namespace that is asked about"},
};
static const struct api_schema self_rules_spec =
    API_OBJECT_OF(self_rules_spec_fields, AUTHZ "SelfSubjectRulesReviewSpec", "Where");
static const struct api_field resource_rule_fields[] = {
    {"apiGroups", &api_schema_string_list, "API groups; * is all of them"},
    {"resourceNames", &api_schema_string_list, "Names of objects; empty: all of them"},
    {"resources", &api_schema_string_list, "Resources; * is all of them"},
    {"verbs", &api_schema_string_list, "What may be done; * is everything", true},
};
static const struct api_schema resource_rule =
    API_OBJECT_OF(resource_rule_fields, AUTHZ "ResourceRule", "What may be done with resources");
static const struct api_field path_rule_fields[] = {
    {"nonResourceURLs", &api_schema_string_list, "Paths; * at the end stands for anything"},
    {"verbs", &api_schema_string_list, "What may be done; * is everything", true},
};
static const struct api_schema path_rule =
    API_OBJECT_OF(path_rule_fields, AUTHZ "NonResourceRule", "What may be done with paths");
static const struct api_field self_rules_status_fields[] = {
    {"evaluationError", &api_schema_string, "Why the rules may not be all of them"},
    {"incomplete", &api_schema_boolean, "There may be more rules", true},
    {"nonResourceRules", API_LIST_OF(&path_rule), "What may be done with paths", true},
    {"resourceRules", API_LIST_OF(&resource_rule), "What may be done with resources", true},
};
static const struct api_schema self_rules_status = API_OBJECT_OF(
    self_rules_status_fields, AUTHZ "SubjectRulesReviewStatus", "All that one may do");
static const struct api_field self_rules_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &self_rules_spec, "The question", true},
    {"status", &self_rules_status, "The answer"},
};
const struct api_schema api_schema_self_subject_rules_review = API_OBJECT_OF(
    self_rules_fields, AUTHZ "SelfSubjectRulesReview", "Asks what one may do in a namespace");
