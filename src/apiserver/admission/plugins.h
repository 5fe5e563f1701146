/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the rows in admission.c, each in the file that its comment names.  Arguments and
 * results are as in struct admission_plugin. */
#pragma once

#include "apiserver/admission/admission.h"

/* admit_namespace.c: NamespaceLifecycle. */
int namespace_admit(struct request *q, struct json *obj, const struct json *old,
                    struct outcome *outcome);

/* admit_certificate.c: author, approval, signing and subject of certificate requests. */
int certificate_admit_user(struct request *q, struct json *obj, const struct json *old,
                           struct outcome *outcome);
int certificate_validate_approval(struct request *q, const struct json *obj, const struct json *old,
                                  struct outcome *outcome);
int certificate_validate_signing(struct request *q, const struct json *obj, const struct json *old,
                                 struct outcome *outcome);
int certificate_validate_subject(struct request *q, const struct json *obj, const struct json *old,
                                 struct outcome *outcome);

/* admit_scc.c: SecurityContextConstraint and SCCExecRestrictions. */
int scc_enter(const struct request *q, const struct json *pod, struct outcome *outcome);
int scc_admit(struct request *q, struct json *obj, const struct json *old, struct outcome *outcome);
int scc_validate(struct request *q, const struct json *obj, const struct json *old,
                 struct outcome *outcome);

/* admit_pod_security.c: PodSecurity. */
int pod_security_validate(struct request *q, const struct json *obj, const struct json *old,
                          struct outcome *outcome);

/* admit_service_account.c: ServiceAccount. */
bool service_account_awaits(const struct request *q, const struct json *obj);
int service_account_admit(struct request *q, struct json *obj, const struct json *old,
                          struct outcome *outcome);
int service_account_validate(struct request *q, const struct json *obj, const struct json *old,
                             struct outcome *outcome);

/* admit_priority.c: Priority. */
int priority_admit(struct request *q, struct json *obj, const struct json *old,
                   struct outcome *outcome);
int priority_validate(struct request *q, const struct json *obj, const struct json *old,
                      struct outcome *outcome);

/* admit_runtime_class.c: RuntimeClass. */
int runtime_class_admit(struct request *q, struct json *obj, const struct json *old,
                        struct outcome *outcome);

/* admit_tolerations.c: DefaultTolerationSeconds. */
int tolerations_admit(struct request *q, struct json *obj, const struct json *old,
                      struct outcome *outcome);

/* admit_secret.c: TokenSecrets. */
int secret_admit(struct request *q, struct json *obj, const struct json *old,
                 struct outcome *outcome);

/* admit_optional.c: plug-ins that are off by default. */
int pull_admit(struct request *q, struct json *obj, const struct json *old,
               struct outcome *outcome);
int pull_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome);
int run_once_admit(struct request *q, struct json *obj, const struct json *old,
                   struct outcome *outcome);
int override_admit(struct request *q, struct json *obj, const struct json *old,
                   struct outcome *outcome);
int anti_affinity_validate(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome);
int escalating_enter(const struct request *q, const struct json *pod, struct outcome *outcome);
int privileged_enter(const struct request *q, const struct json *pod, struct outcome *outcome);

/* admit_template.c: TemplateInstanceRequester. */
int template_admit_requester(struct request *q, struct json *obj, const struct json *old,
                             struct outcome *outcome);

/* admit_node.c: NodeRestriction. */
int node_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome);

/* admit_node_selector.c: OriginPodNodeEnvironment and PodNodeConstraints. */
int node_selector_admit(struct request *q, struct json *obj, const struct json *old,
                        struct outcome *outcome);
int node_selector_validate(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome);
int node_constraints_validate(struct request *q, const struct json *obj, const struct json *old,
                              struct outcome *outcome);

/* admit_owner.c: OwnerReferencesPermissionEnforcement. */
int owner_validate(struct request *q, const struct json *obj, const struct json *old,
                   struct outcome *outcome);

/* admit_rbac.c: RBACEscalation. */
int restriction_validate(struct request *q, const struct json *obj, const struct json *old,
                         struct outcome *outcome);
int rbac_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome);

/* admit_route.c: RouteHost and route.openshift.io/IngressAdmission. */
int route_admit(struct request *q, struct json *obj, const struct json *old,
                struct outcome *outcome);
int route_validate(struct request *q, const struct json *obj, const struct json *old,
                   struct outcome *outcome);
int ingress_validate(struct request *q, const struct json *obj, const struct json *old,
                     struct outcome *outcome);

/* admit_service.c: RestrictedEndpointsAdmission and RestrictedNodePorts. */
int endpoints_validate(struct request *q, const struct json *obj, const struct json *old,
                       struct outcome *outcome);
int node_ports_validate(struct request *q, const struct json *obj, const struct json *old,
                        struct outcome *outcome);

/* admit_limits.c: LimitRanger. */
int limits_admit(struct request *q, struct json *obj, const struct json *old,
                 struct outcome *outcome);
int limits_validate(struct request *q, const struct json *obj, const struct json *old,
                    struct outcome *outcome);

/* quota.c: ResourceQuota and ClusterResourceQuota. */
int quota_validate(struct request *q, const struct json *obj, const struct json *old,
                   struct outcome *outcome);
int cluster_quota_validate(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome);

/* integrity.c: NetworkNumberProtection. */
int integrity_check_number(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome);

/* admit_storage.c: StorageObjectInUseProtection, DefaultStorageClass, PersistentVolumeClaimResize;
 * what NodeRestriction says about storage. */
int storage_protect_admit(struct request *q, struct json *obj, const struct json *old,
                          struct outcome *outcome);
int default_class_admit(struct request *q, struct json *obj, const struct json *old,
                        struct outcome *outcome);
int claim_resize_validate(struct request *q, const struct json *obj, const struct json *old,
                          struct outcome *outcome);
int storage_validate_node(struct request *q, const char *node, const struct json *obj,
                          const struct json *old, struct outcome *outcome);
