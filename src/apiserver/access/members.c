/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/members.h"

#include "api/kind.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#define USER_GROUP "user.openshift.io"

/* A list of owned names. */
struct names {
    char **at;
    size_t n, cap;
};

struct members {
    const struct api_kind *users, *groups;
    struct smap by_group; /* Name of the group to the struct names of its members. */
    struct smap by_user;  /* Name of the user to the struct names of its groups. */
};

static void names_free(void *p)
{
    struct names *l = p;
    for (size_t i = 0; i < l->n; i++) {
        free(l->at[i]);
    }
    free(l->at);
    free(l);
}

static void names_add(struct names *l, const char *name)
{
    l->at = grow(l->at, &l->cap, l->n + 1, sizeof *l->at);
    l->at[l->n++] = xstrdup(name);
}

struct members *members_new(void)
{
    struct members *m = NEW(struct members);
    m->users = api_kind_find(USER_GROUP, "v1", "users");
    m->groups = api_kind_find(USER_GROUP, "v1", "groups");
    smap_init(&m->by_group, names_free);
    smap_init(&m->by_user, names_free);
    return m;
}

struct members *members_free(struct members *m)
{
    if (m) {
        smap_done(&m->by_group);
        smap_done(&m->by_user);
        free(m);
    }
    return NULL;
}

static void leave(struct members *m, const char *user, const char *group)
{
    struct names *groups = smap_get(&m->by_user, user);
    size_t i = 0;
    while (groups && i < groups->n && !streq(groups->at[i], group)) {
        i++;
    }
    if (!groups || i == groups->n) {
        return;
    }
    free(groups->at[i]);
    groups->n--;
    memmove(&groups->at[i], &groups->at[i + 1], (groups->n - i) * sizeof *groups->at);
    if (!groups->n) {
        smap_remove(&m->by_user, user);
    }
}

static void join(struct members *m, const char *user, const char *group)
{
    struct names *groups = smap_get(&m->by_user, user);
    if (!groups) {
        groups = NEW(struct names);
        smap_set(&m->by_user, user, groups);
    }
    names_add(groups, group);
}

void members_set_group(struct members *m, const char *name, const struct json *obj)
{
    const struct names *old = smap_get(&m->by_group, name);
    for (size_t i = 0; old && i < old->n; i++) {
        leave(m, old->at[i], name);
    }
    smap_remove(&m->by_group, name);
    if (!obj || m->groups->check_name(name)) {
        return;
    }
    struct smap seen; /* A group may list a user twice. */
    smap_init(&seen, NULL);
    struct names *users = NEW(struct names);
    const struct json *item;
    JSON_FOREACH (item, json_get(obj, "users")) {
        const char *user = json_get_string(item);
        if (user && *user && !m->users->check_name(user) && !smap_get(&seen, user)) {
            smap_set(&seen, user, users);
            names_add(users, user);
            join(m, user, name);
        }
    }
    smap_set(&m->by_group, name, users);
    smap_done(&seen);
}

void members_add_groups(const struct members *m, struct user_info *u)
{
    const struct names *groups = smap_get(&m->by_user, u->name);
    user_join(u, groups ? groups->at : NULL, groups ? groups->n : 0);
}

struct user_info *members_renew(const struct members *m, struct user_info *u)
{
    if (!u->joins) {
        return user_ref(u);
    }
    struct user_info *now = user_own(u);
    members_add_groups(m, now);
    return now;
}
