/* SPDX-License-Identifier: Apache-2.0 */
/* Role-based access control by the roles and bindings of rbac.authorization.k8s.io/v1.
 *
 * Bindings are indexed by subject and namespace, so that a decision evaluates the rules of the
 * requesting user only.  The caller passes in each object when it changes.  Pure: no I/O, no
 * clock. */
#pragma once

#include "apiserver/access/attributes.h"
#include "apiserver/access/user.h"

/* A list of one rule: verbs, API groups, resources, names or paths.  "*" is special in all but the
 * names. */
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
/* Parses an array of PolicyRules; values of the wrong type are omitted.
 * rbac_rules_done frees the result. */
void rbac_rules_parse(const struct json *rules, struct rbac_rules *ret);
void rbac_rules_done(struct rbac_rules *r);
struct json *rbac_rule_object(const struct rbac_rule *r); /* Owned PolicyRule. */
bool rbac_rule_allows(const struct rbac_rule *r, const struct attributes *a);
/* Whether a list of verbs or API groups contains "*" or 's'. */
bool rbac_list_allows(const struct rbac_list *l, const char *s);
/* Whether a list of resources contains "*", the resource (of 'n' bytes) with its subresource
 * ("": none), or "*" with that subresource. */
bool rbac_resources_allow(const struct rbac_list *l, const char *resource, size_t n,
                          const char *subresource);
/* Whether a list of paths contains 'path'; a "*" at the end of an entry matches any rest. */
bool rbac_urls_allow(const struct rbac_list *l, const char *path);

struct rbac;
struct rbac *rbac_new(void);
struct rbac *rbac_free(struct rbac *r);
/* Sets a Role of 'ns', a ClusterRole ('ns' NULL), or a binding; 'obj' NULL: it was deleted. */
void rbac_set_role(struct rbac *r, const char *ns, const char *name, const struct json *obj);
void rbac_set_binding(struct rbac *r, const char *ns, const char *name, const struct json *obj);

/* Whether a binding gives the right to 'u'.  'why' (may be NULL, and is empty) gets Kubernetes'
 * text about the binding: 'allowed by ClusterRoleBinding "x" of ClusterRole "y" to Group "z"'; when
 * none gives it, about the roles that the user's bindings name and that do not exist:
 * 'clusterrole.rbac.authorization.k8s.io "x" not found'. */
bool rbac_allows(const struct rbac *r, const struct user_info *u, const struct attributes *a,
                 struct strbuf *why);
/* Calls 'fn' for each rule that 'u' has in 'ns' (NULL: only the cluster-wide rules). */
typedef void rbac_rule_fn(void *ctx, const struct rbac_rule *rule);
void rbac_each_rule(const struct rbac *r, const struct user_info *u, const char *ns,
                    rbac_rule_fn *fn, void *ctx);
/* Calls 'fn' for each subject to whom a binding gives the right; a subject that several bindings
 * name comes several times, and a service account by the name of its user.  'missing' (empty) gets
 * the roles that bindings name and that do not exist, as in rbac_allows. */
typedef void rbac_subject_fn(void *ctx, const char *name, bool is_group);
void rbac_each_subject(const struct rbac *r, const struct attributes *a, rbac_subject_fn *fn,
                       void *ctx, struct strbuf *missing);
/* The rules of the role that a roleRef names, for a binding in 'ns' (NULL: a
 * ClusterRoleBinding); NULL: it does not exist. */
const struct rbac_rules *rbac_role(const struct rbac *r, const char *ns, const char *kind,
                                   const char *name);

/* Whether the rules of 'u' in 'ns' cover all of 'wanted'.  If not, 'missing' gets the
 * uncovered rules in Kubernetes' notation.  Returns false for more than
 * RBAC_MAX_COMBINATIONS of verb, group, resource and name. */
#define RBAC_MAX_COMBINATIONS 200000
bool rbac_covers(const struct rbac *r, const struct user_info *u, const char *ns,
                 const struct rbac_rules *wanted, struct strbuf *missing);
