/* SPDX-License-Identifier: Apache-2.0 */
/* What is audited, and how much of it: a Policy of audit.k8s.io/v1.  The first rule that matches a
 * request says its level; without one it is None.  Pure. */
#pragma once

#include "apiserver/access/attributes.h"
#include "apiserver/access/user.h"

enum audit_level { AUDIT_NONE, AUDIT_METADATA, AUDIT_REQUEST, AUDIT_REQUEST_RESPONSE };
extern const char *const audit_level_names[];

enum audit_stage { AUDIT_RECEIVED, AUDIT_STARTED, AUDIT_COMPLETE, AUDIT_STAGES };
extern const char *const audit_stage_names[];

struct audit_policy;
/* YAML or JSON; a key that is not known is an error, as a rule that is silently without its
 * condition would audit too little.  -EINVAL names the field. */
int audit_policy_parse(const char *text, size_t size, struct audit_policy **ret, struct err *e);
/* Level Metadata for everything. */
struct audit_policy *audit_policy_default(void);
struct audit_policy *audit_policy_free(struct audit_policy *p);
DEFINE_CLEANUP(struct audit_policy *, audit_policy_free)

struct audit_decision {
    enum audit_level level;
    unsigned omit; /* Bits of stages that are not told. */
};
/* 'user' NULL: nobody that could be authenticated. */
struct audit_decision audit_policy_decide(const struct audit_policy *p,
                                          const struct user_info *user, const struct attributes *a);
