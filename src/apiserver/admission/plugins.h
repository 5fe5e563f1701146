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

/* admit_pod.c: SecurityContextConstraint. */
int pod_admit(struct request *q, struct json *obj, const struct json *old, struct outcome *outcome);
int pod_validate(struct request *q, const struct json *obj, const struct json *old,
                 struct outcome *outcome);

/* admit_secret.c: TokenSecrets. */
int secret_admit(struct request *q, struct json *obj, const struct json *old,
                 struct outcome *outcome);

/* admit_node.c: NodeRestriction. */
int node_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome);

/* admit_owner.c: OwnerReferencesPermissionEnforcement. */
int owner_validate(struct request *q, const struct json *obj, const struct json *old,
                   struct outcome *outcome);

/* admit_rbac.c: RBACEscalation. */
int rbac_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome);

/* admit_service.c: RestrictedEndpointsAdmission and RestrictedNodePorts. */
int endpoints_validate(struct request *q, const struct json *obj, const struct json *old,
                       struct outcome *outcome);
int node_ports_validate(struct request *q, const struct json *obj, const struct json *old,
                        struct outcome *outcome);

/* integrity.c: NetworkNumberProtection. */
int integrity_check_number(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome);
