/* SPDX-License-Identifier: Apache-2.0 */
/* The audit policy (a Policy of audit.k8s.io/v1): which requests are audited,
 * and in how much detail.  The first rule that matches a request gives its
 * level; if none matches, the level is None.  Pure. */
#pragma once

#include "apiserver/access/attributes.h"
#include "apiserver/access/user.h"

enum audit_level { AUDIT_NONE, AUDIT_METADATA, AUDIT_REQUEST, AUDIT_REQUEST_RESPONSE };
extern const char *const audit_level_names[];

/* AUDIT_STAGES is their number. */
enum audit_stage { AUDIT_RECEIVED, AUDIT_STARTED, AUDIT_COMPLETE, AUDIT_STAGES };
extern const char *const audit_stage_names[];

struct audit_policy;
/* Parses YAML or JSON.  An unknown key is an error, because a rule that silently lost its condition
 * would audit too little.  -EINVAL names the field. */
int audit_policy_parse(const char *text, size_t size, struct audit_policy **ret, struct err *e);
/* The policy that audits everything at level Metadata. */
struct audit_policy *audit_policy_default(void);
struct audit_policy *audit_policy_free(struct audit_policy *p);
DEFINE_CLEANUP(struct audit_policy *, audit_policy_free)

struct audit_decision {
    enum audit_level level;
    unsigned omit; /* Stages that are not logged: bit 1 << stage. */
};
/* The level and stages for a request of 'user' (NULL: authentication failed). */
struct audit_decision audit_policy_decide(const struct audit_policy *p,
                                          const struct user_info *user, const struct attributes *a);
