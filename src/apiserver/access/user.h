/* SPDX-License-Identifier: Apache-2.0 */
/* The user of a request: a name, groups, and other facts found by authentication.
 *
 * A user is immutable once it is attached to a request, and reference-counted, so that watches,
 * audit and impersonation share it.  Pure but for memory; loop's thread only. */
#pragma once

#include "wire/json.h"

#define USER_ANONYMOUS "system:anonymous"
#define GROUP_UNAUTHENTICATED "system:unauthenticated"
#define GROUP_AUTHENTICATED "system:authenticated"
#define GROUP_MASTERS "system:masters"
#define GROUP_NODES "system:nodes"
#define GROUP_BOOTSTRAPPERS "system:bootstrappers"
#define GROUP_SERVICE_ACCOUNTS "system:serviceaccounts"
#define SERVICE_ACCOUNT_PREFIX "system:serviceaccount:"
#define NODE_PREFIX "system:node:"

struct user_info {
    unsigned refs;
    char *name;
    char *uid; /* NULL: none. */
    char **groups;
    size_t n_groups;
    /* The last groups, after the first 'n_own' ones, are those of the Group objects that list the
     * user (members.h); false: the groups are given, and no object adds any. */
    bool joins;
    size_t n_own;
    char *credential;   /* The name of the OAuthAccessToken that proved the user; NULL: none. */
    struct json *extra; /* {"key": ["value", ...]}; NULL: none. */
};

struct user_info *user_new(const char *name);
struct user_info *user_ref(struct user_info *u);
struct user_info *user_unref(struct user_info *u); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct user_info *, user_unref)
/* Allowed only while the caller holds the only reference.  A group that
 * the user already has is not added again. */
void user_add_group(struct user_info *u, const char *group);
void user_add_extra(struct user_info *u, const char *key, const char *value);
/* Adds the groups of the objects that list the user, once; 'groups' has each of them once. */
void user_join(struct user_info *u, char *const *groups, size_t n);
/* A new user like 'u' without the groups of objects. */
struct user_info *user_own(const struct user_info *u);
bool user_in_group(const struct user_info *u, const char *group);

/* A service account, with its groups; 'uid' may be NULL. */
struct user_info *user_service_account(const char *ns, const char *name, const char *uid);
/* Whether 'name' is the name of a service account; '*ret_ns' and
 * '*ret_name' get its owned parts (each may be NULL). */
bool user_parse_service_account(const char *name, char **ret_ns, char **ret_name);
/* The name of the node that the user is (points into the user's name); NULL: the user is no
 * node. */
const char *user_node(const struct user_info *u);

/* Owned UserInfo of authentication.k8s.io/v1. */
struct json *user_object(const struct user_info *u);

/* The class of a user, the most urgent first, by which limits and queues are chosen. */
enum user_class {
    USER_MASTER,   /* Members of system:masters: administrators and the master's own controllers. */
    USER_NODE,     /* Members of system:nodes. */
    USER_SYSTEM,   /* Service accounts of kube-system and other system: users. */
    USER_WORKLOAD, /* All other service accounts. */
    USER_PERSON,   /* All other authenticated users. */
    USER_UNKNOWN,  /* system:anonymous. */
    USER_CLASS_MAX,
};
enum user_class user_class(const struct user_info *u);
