/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes a request: a name, groups, and what else authentication found out.
 *
 * Immutable once it is attached to a request, and counted, so that watches, audit and impersonation
 * share one.  Pure but for memory; loop's thread only. */
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
    struct json *extra; /* {"key": ["value", ...]}; NULL: none. */
};

struct user_info *user_new(const char *name);
struct user_info *user_ref(struct user_info *u);
struct user_info *user_unref(struct user_info *u); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct user_info *, user_unref)
/* Only while the caller holds the one reference.  A group that is there is not added again. */
void user_add_group(struct user_info *u, const char *group);
void user_add_extra(struct user_info *u, const char *key, const char *value);
bool user_in_group(const struct user_info *u, const char *group);

/* A service account, with its groups; 'uid' may be NULL. */
struct user_info *user_service_account(const char *ns, const char *name, const char *uid);
/* Whether 'name' is that of a service account: its parts, owned (outputs may be NULL). */
bool user_parse_service_account(const char *name, char **ret_ns, char **ret_name);
/* The node whose identity this is (in the name), or NULL: it is no node's. */
const char *user_node(const struct user_info *u);

/* Owned UserInfo of authentication.k8s.io/v1. */
struct json *user_object(const struct user_info *u);

/* How urgent a user's requests are, the most urgent first: what limits and queues go by. */
enum user_class {
    USER_MASTER,   /* system:masters: administrators and our own controllers. */
    USER_NODE,     /* system:nodes. */
    USER_SYSTEM,   /* Service accounts of kube-system and other system: users. */
    USER_WORKLOAD, /* All other service accounts. */
    USER_PERSON,   /* Everyone else who is known. */
    USER_UNKNOWN,  /* system:anonymous. */
    USER_CLASS_MAX,
};
enum user_class user_class(const struct user_info *u);
