/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that a provider tells at a login: the user joins them, and leaves those that the provider
 * no longer tells.
 *
 * A group that does not exist is made, and is deleted when its last member leaves.  Only a group
 * with the provider's mark loses members, so that what an administrator lists in others stays.
 * Each group is a write of its own, computed again when it meets another write; a login whose
 * groups cannot be stored fails, since the user would keep rights that the provider has taken. */
#include "apiserver/oauth/oauth_priv.h"

#include "api/kinds.h"
#include "apiserver/cache/object.h"
#include "base/log.h"

LOG_MODULE("oauth");

#define GENERATED "oauth.openshift.io/generated"
#define MARK "oauth.openshift.io/idp."
#define SYNCED "synced"
#define MAX_TRIES 3

struct joining {
    struct oauth_request *f;
    map_fn *done;
    char *mark;         /* The annotation of the groups that the provider fills. */
    struct json *names; /* The groups to look at. */
    size_t at;
    unsigned tries;
};

static void finish(struct joining *j, const char *error)
{
    struct oauth_request *f = j->f;
    map_fn *done = j->done;
    free(j->mark);
    json_free(j->names);
    free(j);
    done(f, error);
}

static size_t position(const struct json *list, const char *text)
{
    size_t i = 0, n = json_count(list);
    while (i < n && !streq_null(json_get_string(json_at(list, i)), text)) {
        i++;
    }
    return i;
}

static bool has(const struct json *list, const char *text)
{
    return position(list, text) < json_count(list);
}

static bool has_mark(const struct json *group, const char *key, const char *value)
{
    return streq_null(json_path_string(group, "metadata", "annotations", key, NULL), value);
}

static bool tells(const struct oauth_request *f, const char *group)
{
    for (char **g = f->id.groups; *g; g++) {
        if (streq(*g, group)) {
            return true;
        }
    }
    return false;
}

static void step(struct joining *j);

static void stored(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    struct joining *j = ctx;
    if (error == 0) {
        j->at++;
        j->tries = 0;
        step(j);
    } else if ((error == -EEXIST || error == -ESTALE || error == -ENOENT) &&
               ++j->tries < MAX_TRIES) {
        step(j);
    } else {
        log_limited(&limit, LOG_ERROR, "the groups of a login were not stored",
                    "user=\"%s\" group=\"%s\" error=\"%s\"", j->f->user,
                    json_get_string(json_at(j->names, j->at)), strerror(-error));
        finish(j, "authentication_error");
    }
}

static void put(struct joining *j, struct cache_kind *ck, const char *name, struct json *group,
                const struct object *base)
{
    object_complete(ck->kind, group);
    objects_put(j->f->s, ck, name, group, base, &(struct store_terms){0}, stored, j);
}

static void join(struct joining *j, struct cache_kind *ck, const char *name, struct json *group,
                 const struct object *base)
{
    CLEANUP(json_free) struct json *made = group ? NULL : objects_new(ck, name);
    struct json *obj = group ? group : made;
    struct json *annotations =
        json_ensure_object(json_ensure_object(obj, "metadata"), "annotations");
    if (made) {
        json_set_string(annotations, GENERATED, "true");
    }
    json_set_string(annotations, j->mark, SYNCED);
    json_append(json_ensure_array(obj, "users"), json_string(j->f->user));
    log_info("a login adds the user to a group", "user=\"%s\" group=\"%s\"", j->f->user, name);
    put(j, ck, name, obj, base);
}

static void leave(struct joining *j, struct cache_kind *ck, const char *name, struct json *group,
                  const struct object *base)
{
    CLEANUP(json_free) struct json *rest = json_array();
    const struct json *item;
    JSON_FOREACH (item, json_get(group, "users")) {
        if (!streq_null(json_get_string(item), j->f->user)) {
            json_append(rest, json_clone(item));
        }
    }
    log_info("a login takes the user out of a group", "user=\"%s\" group=\"%s\"", j->f->user, name);
    if (!json_count(rest) && has_mark(group, GENERATED, "true")) {
        CLEANUP_FREE char *key = cache_store_key(ck, name);
        store_delete(j->f->s->a->store, key, base->revision, stored, j);
        return;
    }
    json_set(group, "users", TAKE(rest));
    put(j, ck, name, group, base);
}

/* Begins the next write, or ends. */
static void step(struct joining *j)
{
    struct cache_kind *ck = objects_kind(j->f->s, USER_GROUP, "groups");
    for (; j->at < json_count(j->names); j->at++) {
        const char *name = json_get_string(json_at(j->names, j->at));
        struct object *base = NULL;
        CLEANUP(json_free)
        struct json *group = objects_find(j->f->s, USER_GROUP, "groups", name, &base);
        bool listed = has(json_get(group, "users"), j->f->user);
        if (tells(j->f, name) && !listed) {
            join(j, ck, name, group, base);
            return;
        }
        if (!tells(j->f, name) && listed && has_mark(group, j->mark, SYNCED)) {
            leave(j, ck, name, group, base);
            return;
        }
    }
    finish(j, NULL);
}

/* Adds the groups with the provider's mark that list the user. */
static void add_present(struct joining *j)
{
    struct cache_kind *ck = objects_kind(j->f->s, USER_GROUP, "groups");
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    struct object *o;
    while ((o = keyset_next(&ck->objects, &pos))) {
        if (!memmem(o->text->data, o->text->size, j->mark, strlen(j->mark))) {
            continue;
        }
        CLEANUP(json_free) struct json *group = object_parse(o);
        if (has_mark(group, j->mark, SYNCED) && has(json_get(group, "users"), j->f->user) &&
            !has(j->names, o->key)) {
            json_append(j->names, json_string(o->key));
        }
    }
}

void groups_join(struct oauth_request *f, map_fn *done)
{
    if (!f->id.groups) {
        done(f, NULL);
        return;
    }
    CLEANUP_FREE char *mark = xasprintf(MARK "%s", f->provider_name);
    if (api_check_qualified_name(mark)) {
        log_warn("groups are not taken: the provider's name cannot be a part of an annotation",
                 "provider=\"%s\"", f->provider_name);
        done(f, NULL);
        return;
    }
    struct joining *j = NEW(struct joining);
    *j = (struct joining){.f = f, .done = done, .mark = TAKE(mark), .names = json_array()};
    for (char **g = f->id.groups; *g; g++) {
        if (group_check_name(*g)) {
            log_warn("a group is not taken: its name is invalid",
                     "provider=\"%s\" group=\"%.120s\"", f->provider_name, *g);
        } else if (!has(j->names, *g)) {
            json_append(j->names, json_string(*g));
        }
    }
    add_present(j);
    step(j);
}
