/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers: generated.proto of k8s.io/api/core/v1, rbac/v1, authentication/v1, authorization/v1 and
 * certificates/v1.  The status of a question is the server's to fill, and skipped. */
#include "api/proto_internal.h"

/* ---- core ---- */

static const struct proto_field secret[] = {
    META,
    {2, "data", T_BYTES_MAP},
    {3, "type", T_STRING},
    {4, "stringData", T_MAP},
    {5, "immutable", T_BOOL},
};
static const struct proto_field reference_fields[] = {
    {1, "kind", T_STRING},      {2, "namespace", T_STRING},  {3, "name", T_STRING},
    {4, "uid", T_STRING},       {5, "apiVersion", T_STRING}, {6, "resourceVersion", T_STRING},
    {7, "fieldPath", T_STRING},
};
const struct proto_message proto_reference = PROTO_MESSAGE(reference_fields);
static const struct proto_field local_reference_fields[] = {{1, "name", T_STRING}};
static const struct proto_message local_reference = PROTO_MESSAGE(local_reference_fields);
static const struct proto_field service_account[] = {
    META,
    MEMBERS(2, "secrets", proto_reference),
    MEMBERS(3, "imagePullSecrets", local_reference),
    {4, "automountServiceAccountToken", T_BOOL},
};

/* ---- rbac ---- */

static const struct proto_field rule_fields[] = {
    STRINGS(1, "verbs"),         STRINGS(2, "apiGroups"),       STRINGS(3, "resources"),
    STRINGS(4, "resourceNames"), STRINGS(5, "nonResourceURLs"),
};
static const struct proto_message rule = PROTO_MESSAGE(rule_fields);
static const struct proto_field requirement_fields[] = {
    {1, "key", T_STRING}, {2, "operator", T_STRING}, STRINGS(3, "values")};
static const struct proto_message requirement = PROTO_MESSAGE(requirement_fields);
static const struct proto_field selector_fields[] = {{1, "matchLabels", T_MAP},
                                                     MEMBERS(2, "matchExpressions", requirement)};
static const struct proto_message selector = PROTO_MESSAGE(selector_fields);
static const struct proto_field aggregation_fields[] = {
    MEMBERS(1, "clusterRoleSelectors", selector)};
static const struct proto_message aggregation = PROTO_MESSAGE(aggregation_fields);
static const struct proto_field role[] = {META, MEMBERS(2, "rules", rule)};
static const struct proto_field cluster_role[] = {META, MEMBERS(2, "rules", rule),
                                                  MEMBER(3, "aggregationRule", aggregation)};
static const struct proto_field subject_fields[] = {
    {1, "kind", T_STRING},
    {2, "apiGroup", T_STRING},
    {3, "name", T_STRING},
    {4, "namespace", T_STRING},
};
static const struct proto_message subject = PROTO_MESSAGE(subject_fields);
static const struct proto_field role_ref_fields[] = {
    {1, "apiGroup", T_STRING}, {2, "kind", T_STRING}, {3, "name", T_STRING}};
static const struct proto_message role_ref = PROTO_MESSAGE(role_ref_fields);
static const struct proto_field binding[] = {META, MEMBERS(2, "subjects", subject),
                                             MEMBER(3, "roleRef", role_ref)};

/* ---- authentication ---- */

static const struct proto_field bound_fields[] = {{1, "kind", T_STRING},
                                                  {2, "apiVersion", T_STRING},
                                                  {3, "name", T_STRING},
                                                  {4, "uid", T_STRING}};
static const struct proto_message bound = PROTO_MESSAGE(bound_fields);
static const struct proto_field token_request_spec_fields[] = {
    STRINGS(1, "audiences"), MEMBER(3, "boundObjectRef", bound), {4, "expirationSeconds", T_INT}};
static const struct proto_message token_request_spec = PROTO_MESSAGE(token_request_spec_fields);
static const struct proto_field token_request[] = {
    META, MEMBER(2, "spec", token_request_spec), {3, "status", T_IGNORED}};
static const struct proto_field token_review_spec_fields[] = {{1, "token", T_STRING},
                                                              STRINGS(2, "audiences")};
static const struct proto_message token_review_spec = PROTO_MESSAGE(token_review_spec_fields);
static const struct proto_field token_review[] = {
    META, MEMBER(2, "spec", token_review_spec), {3, "status", T_IGNORED}};
static const struct proto_field self_review[] = {META, {2, "status", T_IGNORED}};

/* ---- authorization ---- */

static const struct proto_field resource_fields[] = {
    {1, "namespace", T_STRING}, {2, "verb", T_STRING},     {3, "group", T_STRING},
    {4, "version", T_STRING},   {5, "resource", T_STRING}, {6, "subresource", T_STRING},
    {7, "name", T_STRING},
};
static const struct proto_message resource = PROTO_MESSAGE(resource_fields);
static const struct proto_field path_fields[] = {{1, "path", T_STRING}, {2, "verb", T_STRING}};
static const struct proto_message path = PROTO_MESSAGE(path_fields);
static const struct proto_field self_access_spec_fields[] = {
    MEMBER(1, "resourceAttributes", resource), MEMBER(2, "nonResourceAttributes", path)};
static const struct proto_message self_access_spec = PROTO_MESSAGE(self_access_spec_fields);
static const struct proto_field self_access[] = {
    META, MEMBER(2, "spec", self_access_spec), {3, "status", T_IGNORED}};
static const struct proto_field access_spec_fields[] = {
    MEMBER(1, "resourceAttributes", resource),
    MEMBER(2, "nonResourceAttributes", path),
    {3, "user", T_STRING},
    STRINGS(4, "groups"),
    {5, "extra", T_LIST_MAP},
    {6, "uid", T_STRING},
};
static const struct proto_message access_spec = PROTO_MESSAGE(access_spec_fields);
static const struct proto_field access_review[] = {
    META, MEMBER(2, "spec", access_spec), {3, "status", T_IGNORED}};
static const struct proto_field rules_spec_fields[] = {{1, "namespace", T_STRING}};
static const struct proto_message rules_spec = PROTO_MESSAGE(rules_spec_fields);
static const struct proto_field rules_review[] = {
    META, MEMBER(2, "spec", rules_spec), {3, "status", T_IGNORED}};

/* ---- certificates ---- */

static const struct proto_field csr_spec_fields[] = {
    {1, "request", T_BYTES},     {2, "username", T_STRING},
    {3, "uid", T_STRING},        STRINGS(4, "groups"),
    STRINGS(5, "usages"),        {6, "extra", T_LIST_MAP},
    {7, "signerName", T_STRING}, {8, "expirationSeconds", T_INT},
};
static const struct proto_message csr_spec = PROTO_MESSAGE(csr_spec_fields);
static const struct proto_field csr_condition_fields[] = {
    {1, "type", T_STRING},         {2, "reason", T_STRING},           {3, "message", T_STRING},
    {4, "lastUpdateTime", T_TIME}, {5, "lastTransitionTime", T_TIME}, {6, "status", T_STRING},
};
static const struct proto_message csr_condition = PROTO_MESSAGE(csr_condition_fields);
static const struct proto_field csr_status_fields[] = {MEMBERS(1, "conditions", csr_condition),
                                                       {2, "certificate", T_BYTES}};
static const struct proto_message csr_status = PROTO_MESSAGE(csr_status_fields);
static const struct proto_field csr[] = {META, MEMBER(2, "spec", csr_spec),
                                         MEMBER(3, "status", csr_status)};

const struct proto_kind proto_security_kinds[] = {
    {"Secret", PROTO_MESSAGE(secret)},
    {"ServiceAccount", PROTO_MESSAGE(service_account)},
    {"Role", PROTO_MESSAGE(role)},
    {"ClusterRole", PROTO_MESSAGE(cluster_role)},
    {"RoleBinding", PROTO_MESSAGE(binding)},
    {"ClusterRoleBinding", PROTO_MESSAGE(binding)},
    {"TokenRequest", PROTO_MESSAGE(token_request)},
    {"TokenReview", PROTO_MESSAGE(token_review)},
    {"SelfSubjectReview", PROTO_MESSAGE(self_review)},
    {"SelfSubjectAccessReview", PROTO_MESSAGE(self_access)},
    {"SubjectAccessReview", PROTO_MESSAGE(access_review)},
    {"LocalSubjectAccessReview", PROTO_MESSAGE(access_review)},
    {"SelfSubjectRulesReview", PROTO_MESSAGE(rules_review)},
    {"CertificateSigningRequest", PROTO_MESSAGE(csr)},
    {0},
};
