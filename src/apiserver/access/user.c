/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/user.h"

#include "base/mem.h"

struct user_info *user_new(const char *name)
{
    struct user_info *u = NEW(struct user_info);
    u->refs = 1;
    u->name = xstrdup(name);
    return u;
}

struct user_info *user_ref(struct user_info *u)
{
    u->refs++;
    return u;
}

struct user_info *user_unref(struct user_info *u)
{
    if (u && --u->refs == 0) {
        for (size_t i = 0; i < u->n_groups; i++) {
            free(u->groups[i]);
        }
        free(u->groups);
        free(u->name);
        free(u->uid);
        free(u->credential);
        json_free(u->extra);
        free(u);
    }
    return NULL;
}

bool user_in_group(const struct user_info *u, const char *group)
{
    for (size_t i = 0; i < u->n_groups; i++) {
        if (streq(u->groups[i], group)) {
            return true;
        }
    }
    return false;
}

void user_add_group(struct user_info *u, const char *group)
{
    if (!user_in_group(u, group)) {
        u->groups = xreallocarray(u->groups, u->n_groups + 1, sizeof *u->groups);
        u->groups[u->n_groups++] = xstrdup(group);
    }
}

void user_join(struct user_info *u, char *const *groups, size_t n)
{
    u->joins = true;
    u->n_own = u->n_groups;
    u->groups = n ? xreallocarray(u->groups, u->n_groups + n, sizeof *u->groups) : u->groups;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < u->n_own && !streq(u->groups[k], groups[i])) {
            k++;
        }
        if (k == u->n_own) {
            u->groups[u->n_groups++] = xstrdup(groups[i]);
        }
    }
}

struct user_info *user_own(const struct user_info *u)
{
    struct user_info *own = user_new(u->name);
    own->uid = u->uid ? xstrdup(u->uid) : NULL;
    own->credential = u->credential ? xstrdup(u->credential) : NULL;
    own->extra = u->extra ? json_clone(u->extra) : NULL;
    for (size_t i = 0; i < (u->joins ? u->n_own : u->n_groups); i++) {
        user_add_group(own, u->groups[i]);
    }
    return own;
}

void user_add_extra(struct user_info *u, const char *key, const char *value)
{
    if (!u->extra) {
        u->extra = json_object();
    }
    json_append(json_ensure_array(u->extra, key), json_string(value));
}

struct user_info *user_service_account(const char *ns, const char *name, const char *uid)
{
    CLEANUP_FREE char *full = xasprintf(SERVICE_ACCOUNT_PREFIX "%s:%s", ns, name);
    CLEANUP_FREE char *group = xasprintf(GROUP_SERVICE_ACCOUNTS ":%s", ns);
    struct user_info *u = user_new(full);
    u->uid = uid && *uid ? xstrdup(uid) : NULL;
    user_add_group(u, GROUP_SERVICE_ACCOUNTS);
    user_add_group(u, group);
    return u;
}

bool user_parse_service_account(const char *name, char **ret_ns, char **ret_name)
{
    if (!str_has_prefix(name, SERVICE_ACCOUNT_PREFIX)) {
        return false;
    }
    const char *ns = name + sizeof SERVICE_ACCOUNT_PREFIX - 1, *colon = strchr(ns, ':');
    if (!colon || colon == ns || !colon[1] || strchr(colon + 1, ':')) {
        return false;
    }
    if (ret_ns) {
        *ret_ns = xstrndup(ns, (size_t) (colon - ns));
    }
    if (ret_name) {
        *ret_name = xstrdup(colon + 1);
    }
    return true;
}

const char *user_node(const struct user_info *u)
{
    return str_has_prefix(u->name, NODE_PREFIX) && u->name[sizeof NODE_PREFIX - 1] &&
                   user_in_group(u, GROUP_NODES)
               ? u->name + sizeof NODE_PREFIX - 1
               : NULL;
}

struct json *user_object(const struct user_info *u)
{
    struct json *o = json_object();
    json_set_string(o, "username", u->name);
    json_set_string(o, "uid", u->uid);
    for (size_t i = 0; i < u->n_groups; i++) {
        json_append(json_ensure_array(o, "groups"), json_string(u->groups[i]));
    }
    if (u->extra) {
        json_set(o, "extra", json_clone(u->extra));
    }
    return o;
}

enum user_class user_class(const struct user_info *u)
{
    static const char system_accounts[] = GROUP_SERVICE_ACCOUNTS ":kube-system";
    if (user_in_group(u, GROUP_MASTERS)) {
        return USER_MASTER;
    }
    if (user_in_group(u, GROUP_NODES)) {
        return USER_NODE;
    }
    if (streq(u->name, USER_ANONYMOUS)) {
        return USER_UNKNOWN;
    }
    if (user_in_group(u, GROUP_SERVICE_ACCOUNTS)) {
        return user_in_group(u, system_accounts) ? USER_SYSTEM : USER_WORKLOAD;
    }
    return str_has_prefix(u->name, "system:") ? USER_SYSTEM : USER_PERSON;
}
