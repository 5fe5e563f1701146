/* SPDX-License-Identifier: Apache-2.0 */
/* LDAPSyncConfig of OpenShift, and groups made of the entries of a directory.
 *
 * The configuration says with which queries groups and users are read, and which of their
 * attributes are names and memberships.  ldap_sync_make joins both lists in memory; the
 * directory may be hostile: a group with a wrong name or member is marked as one that must not be
 * written.  Pure; any thread. */
#pragma once

#include "wire/json.h"
#include "wire/ldap.h"

enum ldap_sync_schema { LDAP_SYNC_RFC2307, LDAP_SYNC_AD, LDAP_SYNC_AUGMENTED_AD };

struct ldap_sync_query {
    const char *base, *filter;
    enum ldap_scope scope;
    enum ldap_deref deref;
    uint32_t timeout_s, page_size; /* 0: none. */
};

/* All texts and JSON values are of 'doc'. */
struct ldap_sync {
    struct json *doc;
    struct ldap_url url;
    char *host_port; /* "ldap.example.com:389" */
    bool insecure;
    enum ldap_sync_schema schema;
    struct ldap_sync_query groups; /* Unused by LDAP_SYNC_AD. */
    struct ldap_sync_query users;
    const char *group_uid, *user_uid; /* Attributes, or "dn"; "" where the schema has none. */
    const struct json *group_names, *user_names, *memberships; /* Arrays of attributes. */
    const struct json *name_map;                               /* UIDs to names; may be NULL. */
    bool skip_missing, skip_outside; /* tolerateMember{NotFound,OutOfScope}Errors */
};
/* Copies what it needs of 'doc'.  Relative names of files are of 'dir'.  -EINVAL names the key. */
int ldap_sync_parse(const struct json *doc, const char *dir, struct ldap_sync *ret, struct err *e);
void ldap_sync_done(struct ldap_sync *s);

/* Calls 'fn' for each attribute that the query for groups or users must ask for. */
void ldap_sync_each_attribute(const struct ldap_sync *s, bool of_groups,
                              void (*fn)(void *ctx, const char *attribute), void *ctx);

/* Entries that a query found; the owner calls ldap_entries_done. */
struct ldap_entries {
    struct ldap_entry *list;
    size_t n, cap;
};
void ldap_entries_done(struct ldap_entries *l);

struct ldap_sync_group {
    char *uid, *name;
    struct json *users; /* An object whose keys are the names, in the directory's order. */
    char *wrong;        /* Why it must not be written; NULL: nothing is wrong. */
    bool absent;        /* It is not in the directory; 'wrong' says so. */
};
struct ldap_sync_groups {
    struct ldap_sync_group **list;
    size_t n, cap;
};
void ldap_sync_groups_done(struct ldap_sync_groups *g);

/* Makes the groups.  'only' and 'except' are arrays of UIDs; 'only' NULL: all groups.  A UID of
 * 'only' that the directory has not becomes a group that is 'absent'. */
void ldap_sync_make(const struct ldap_sync *s, const struct ldap_entries *groups,
                    const struct ldap_entries *users, const struct json *only,
                    const struct json *except, struct ldap_sync_groups *ret);
