/* SPDX-License-Identifier: Apache-2.0 */
/* Role-based access control: who may do what, from the roles and bindings of
 * rbac.authorization.k8s.io/v1.
 *
 * Bindings are indexed by subject and namespace, so that a decision looks at the rules of the user
 * who asks and of no one else.  It is fed with the objects as they change.  Pure: no I/O, no
 * clock. */
#pragma once

#include "apiserver/access/attributes.h"
#include "apiserver/access/user.h"

struct rbac_list {
    char **at;
    size_t n;
};
/* A PolicyRule. */
struct rbac_rule {
    struct rbac_list verbs, groups, resources, names, urls;
};
struct rbac_rules {
    struct rbac_rule *at;
    size_t n;
};
/* From an array of PolicyRules; what is of the wrong type is left out.  rbac_rules_done frees. */
void rbac_rules_parse(const struct json *rules, struct rbac_rules *ret);
void rbac_rules_done(struct rbac_rules *r);
struct json *rbac_rule_object(const struct rbac_rule *r); /* Owned PolicyRule. */
bool rbac_rule_allows(const struct rbac_rule *r, const struct attributes *a);
/* Of verbs and groups: "*", or the same. */
bool rbac_list_allows(const struct rbac_list *l, const char *s);
/* "*", the resource (of 'n' bytes) with its subresource ("": none), and "*" with that
 * subresource. */
bool rbac_resources_allow(const struct rbac_list *l, const char *resource, size_t n,
                          const char *subresource);
/* "*" may end a path, and stands for any rest. */
bool rbac_urls_allow(const struct rbac_list *l, const char *path);

struct rbac;
struct rbac *rbac_new(void);
struct rbac *rbac_free(struct rbac *r);
/* A Role of 'ns', or a ClusterRole (NULL), and their bindings; 'obj' NULL: it is gone. */
void rbac_set_role(struct rbac *r, const char *ns, const char *name, const struct json *obj);
void rbac_set_binding(struct rbac *r, const char *ns, const char *name, const struct json *obj);

/* Whether a binding gives it to 'u'.  'why' (may be NULL) gets the roles that bindings of the user
 * name and that are not there. */
bool rbac_allows(const struct rbac *r, const struct user_info *u, const struct attributes *a,
                 struct strbuf *why);
/* Calls 'fn' for each rule that 'u' has in 'ns' (NULL: in the whole cluster only). */
typedef void rbac_rule_fn(void *ctx, const struct rbac_rule *rule);
void rbac_each_rule(const struct rbac *r, const struct user_info *u, const char *ns,
                    rbac_rule_fn *fn, void *ctx);
/* The rules of a role that a roleRef names, for a binding in 'ns' (NULL: a ClusterRoleBinding);
 * NULL: not there. */
const struct rbac_rules *rbac_role(const struct rbac *r, const char *ns, const char *kind,
                                   const char *name);

/* Whether 'u' has in 'ns' all that 'wanted' allows.  If not, 'missing' gets the rules that are not,
 * as Kubernetes prints them.  More than RBAC_MAX_COMBINATIONS of verb, group, resource and name:
 * no. */
#define RBAC_MAX_COMBINATIONS 200000
bool rbac_covers(const struct rbac *r, const struct user_info *u, const char *ns,
                 const struct rbac_rules *wanted, struct strbuf *missing);
