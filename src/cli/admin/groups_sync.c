/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/groups_sync.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/admin/adm.h"
#include "cli/admin/ldap_reader.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <stdio.h>

#define GROUP_API "user.openshift.io/v1"
#define LABEL_HOST "openshift.io/ldap.host"
#define NOTE_URL "openshift.io/ldap.url"
#define NOTE_UID "openshift.io/ldap.uid"
#define NOTE_TIME "openshift.io/ldap.sync-time"
#define GROUP_PREFIX "group/"
#define MAX_FILE ((size_t) 16 << 20)
#define MAX_ATTEMPTS 10

struct run {
    struct session *s;
    struct ldap_sync sync;
    const struct groups_sync_options *options;
    struct json *only, *except;        /* UIDs; 'only' NULL: all. */
    struct json *named, *named_except; /* What the command line and files say. */
    struct ldap_entries groups, users;
    struct ldap_sync_groups made;
    struct json *shown; /* The list that a dry run prints. */
    int status;
};

static void run_done(struct run *r)
{
    ldap_sync_done(&r->sync);
    json_free(r->only);
    json_free(r->except);
    json_free(r->named);
    json_free(r->named_except);
    ldap_entries_done(&r->groups);
    ldap_entries_done(&r->users);
    ldap_sync_groups_done(&r->made);
    json_free(r->shown);
}

/* ---- input ---- */

static int load_config(struct run *r, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_FILE);
    CLEANUP(json_free) struct json *doc = NULL;
    const char *path = r->options->config;
    int x = file_read(path, MAX_FILE, &text, e);
    if (x < 0) {
        return x;
    }
    CLEANUP_FREE char *real = realpath(path, NULL);
    char *slash = real ? strrchr(real, '/') : NULL;
    if (slash) {
        slash[slash == real] = '\0';
    }
    x = yaml_parse(strbuf_cstr(&text), text.size, &doc, e);
    x = x < 0 ? x : ldap_sync_parse(doc, real ? real : ".", &r->sync, e);
    return x < 0 ? err_prefix(e, "%s", path) : 0;
}

/* Appends the lines of the file. */
static int load_lines(const char *path, struct json *into, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_FILE);
    int x = path ? file_read(path, MAX_FILE, &text, e) : 0;
    if (x < 0) {
        return x;
    }
    if (strlen(strbuf_cstr(&text)) != text.size) {
        return err_set(e, -EINVAL, "%s: has a NUL byte", path);
    }
    for (const char *p = strbuf_cstr(&text); *p;) {
        size_t n = strcspn(p, "\n"), used = n;
        while (used && strchr(" \t\r", p[used - 1])) {
            used--;
        }
        if (used) {
            json_append(into, json_string_n(p, used));
        }
        p += n + (p[n] != '\0');
    }
    return 0;
}

static int load(struct run *r, char *const *names)
{
    const struct groups_sync_options *o = r->options;
    struct err e = {0};
    r->named = json_array();
    r->named_except = json_array();
    if (load_config(r, &e) < 0 || load_lines(o->whitelist, r->named, &e) < 0 ||
        load_lines(o->blacklist, r->named_except, &e) < 0) {
        return session_error("%s", e.text);
    }
    for (; *names; names++) {
        json_append(r->named, json_string(*names));
    }
    return 0;
}

/* ---- groups of the API server ---- */

static const char *note(const struct json *group, const char *key)
{
    const char *text = json_path_string(group, "metadata", "annotations", key, NULL);
    return text ? text : "";
}

static const char *host_of(const struct json *group)
{
    const char *text = json_path_string(group, "metadata", "labels", LABEL_HOST, NULL);
    return text ? text : "";
}

/* Whether the group came from this server. */
static bool is_ours(const struct run *r, const struct json *group)
{
    return streq(host_of(group), r->sync.url.host) &&
           streq(note(group, NOTE_URL), r->sync.host_port) && *note(group, NOTE_UID);
}

static bool names_group(const struct json *names, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, names) {
        const char *s = json_get_string(item);
        if (streq(str_has_prefix(s, GROUP_PREFIX) ? s + strlen(GROUP_PREFIX) : s, name)) {
            return true;
        }
    }
    return false;
}

/* Fails for each name of the whitelist that is no group of this server. */
static void check_named(struct run *r, const struct json *found)
{
    const struct json *item, *group;
    JSON_FOREACH (item, r->named) {
        CLEANUP(json_free) struct json *one = json_array();
        bool there = false;
        json_append(one, json_clone(item));
        JSON_FOREACH (group, found) {
            there |= names_group(one, json_path_string(group, "metadata", "name", NULL));
        }
        if (!there) {
            r->status = session_error("group \"%s\" did not come from %s", json_get_string(item),
                                      r->sync.host_port);
        }
    }
}

/* The groups that came from this server and that the whitelist and blacklist select. */
static int list_ours(struct run *r, struct json **ret)
{
    CLEANUP_FREE char *all = api_path(GROUP_API, "groups", NULL, NULL, NULL);
    CLEANUP_FREE char *path =
        xasprintf("%s?labelSelector=openshift.io%%2Fldap.host%%3D%s", all, r->sync.url.host);
    CLEANUP(json_free) struct json *list = NULL;
    struct err e = {0};
    if (api_request_sync(r->s->client, "GET", path, NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(r->s, &e, NULL);
    }
    *ret = json_array();
    const struct json *item;
    JSON_FOREACH (item, json_get(list, "items")) {
        const char *name = json_path_string(item, "metadata", "name", NULL);
        if (is_ours(r, item) && !names_group(r->named_except, name) &&
            (!json_count(r->named) || names_group(r->named, name))) {
            json_append(*ret, json_clone(item));
        }
    }
    check_named(r, *ret);
    return 0;
}

/* ---- sync ---- */

/* Why the group of the API server must stay as it is; NULL: it is that group. */
static char *obstacle(const struct run *r, const struct json *old, const char *uid)
{
    static const char *const keys[] = {LABEL_HOST, NOTE_URL, NOTE_UID};
    const char *have[] = {host_of(old), note(old, NOTE_URL), note(old, NOTE_UID)};
    const char *want[] = {r->sync.url.host, r->sync.host_port, uid};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!streq(have[i], want[i])) {
            return xasprintf("it exists with %s \"%.200s\", not \"%.200s\", and is left as it is",
                             keys[i], have[i], want[i]);
        }
    }
    return NULL;
}

/* Gives the group the marks and members; 'obj' is the group as it is, or an empty object. */
static void fill(const struct run *r, struct json *obj, const struct ldap_sync_group *g)
{
    char now[TIME_TEXT_SIZE];
    time_format_s(time_wall_ms(), now);
    json_set_string(obj, "kind", "Group");
    json_set_string(obj, "apiVersion", GROUP_API);
    struct json *meta = json_ensure_object(obj, "metadata");
    json_set_string(meta, "name", g->name);
    json_set_string(json_ensure_object(meta, "labels"), LABEL_HOST, r->sync.url.host);
    struct json *notes = json_ensure_object(meta, "annotations");
    json_set_string(notes, NOTE_TIME, now);
    json_set_string(notes, NOTE_UID, g->uid);
    json_set_string(notes, NOTE_URL, r->sync.host_port);
    struct json *users = json_set(obj, "users", json_array());
    for (size_t i = 0; i < json_count(g->users); i++) {
        json_append(users, json_string(json_key_at(g->users, i)));
    }
}

/* Writes one group, or appends it to the list of a dry run.  '*ret_why' (owned) says why a group
 * was left as it is. */
static int write_group(struct run *r, const struct ldap_sync_group *g, char **ret_why,
                       struct err *e)
{
    CLEANUP_FREE char *path = api_path(GROUP_API, "groups", NULL, g->name, NULL);
    CLEANUP_FREE char *all = api_path(GROUP_API, "groups", NULL, NULL, NULL);
    int x = -ESTALE;
    for (int i = 0; (x == -ESTALE || x == -EEXIST) && i < MAX_ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *obj = NULL;
        x = api_request_sync(r->s->client, "GET", path, NULL, NULL, NULL, &obj, e);
        bool is_new = x == -ENOENT;
        if (x < 0 && !is_new) {
            break;
        }
        *ret_why = is_new ? NULL : obstacle(r, obj, g->uid);
        if (*ret_why) {
            return 0;
        }
        if (is_new) {
            json_free(obj);
            obj = json_object();
        }
        fill(r, obj, g);
        if (!r->options->confirm) {
            json_append(json_ensure_array(r->shown, "items"), json_clone(obj));
            return 0;
        }
        x = api_request_sync(r->s->client, is_new ? "POST" : "PUT", is_new ? all : path, NULL, NULL,
                             obj, NULL, e);
    }
    return x;
}

static void sync_groups(struct run *r)
{
    r->shown = json_object();
    json_set_string(r->shown, "kind", "List");
    json_set_string(r->shown, "apiVersion", "v1");
    json_ensure_array(r->shown, "items");
    for (size_t i = 0; i < r->made.n; i++) {
        const struct ldap_sync_group *g = r->made.list[i];
        CLEANUP_FREE char *why = NULL;
        struct err e = {0};
        if (g->wrong) {
            r->status =
                session_error("group \"%s\" of %s: %s", g->uid, r->sync.host_port, g->wrong);
        } else if (write_group(r, g, &why, &e) < 0) {
            r->status = session_fail(r->s, &e, NULL);
        } else if (why) {
            r->status = session_error("group \"%s\": %s", g->name, why);
        } else if (r->options->confirm) {
            printf(GROUP_PREFIX "%s\n", g->name);
        }
    }
    if (!r->options->confirm) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        yaml_write(r->shown, &text);
        fputs(strbuf_cstr(&text), stdout);
    }
}

/* ---- prune ---- */

static bool is_absent(const struct run *r, const char *uid)
{
    for (size_t i = 0; i < r->made.n; i++) {
        if (r->made.list[i]->absent && streq(r->made.list[i]->uid, uid)) {
            return true;
        }
    }
    return false;
}

/* Deletes the group as it was read: a new one of that name, or a change, is left. */
static int delete_group(struct run *r, const struct json *group, const char *name, struct err *e)
{
    CLEANUP_FREE char *path = api_path(GROUP_API, "groups", NULL, name, NULL);
    CLEANUP(json_free) struct json *options = json_object();
    struct json *only = json_ensure_object(options, "preconditions");
    json_set_string(only, "uid", json_path_string(group, "metadata", "uid", NULL));
    json_set_string(only, "resourceVersion",
                    json_path_string(group, "metadata", "resourceVersion", NULL));
    int x = api_request_sync(r->s->client, "DELETE", path, NULL, NULL, options, NULL, e);
    return x == -ENOENT ? 0 : x;
}

static void prune_groups(struct run *r, const struct json *ours)
{
    const struct json *group;
    JSON_FOREACH (group, ours) {
        const char *name = json_path_string(group, "metadata", "name", NULL);
        struct err e = {0};
        if (!is_absent(r, note(group, NOTE_UID))) {
            continue;
        }
        if (r->options->confirm && delete_group(r, group, name, &e) < 0) {
            r->status = session_fail(r->s, &e, NULL);
        } else {
            printf(GROUP_PREFIX "%s\n", name);
        }
    }
}

/* ---- the command ---- */

/* The UIDs to read: of groups of the API server where the names are such groups. */
static int select_uids(struct run *r, bool by_groups, struct json **ours)
{
    if (!by_groups) {
        r->only = json_count(r->named) ? json_clone(r->named) : NULL;
        r->except = json_clone(r->named_except);
        return 0;
    }
    int status = list_ours(r, ours);
    const struct json *group;
    r->only = json_array();
    JSON_FOREACH (group, *ours) {
        json_append(r->only, json_string(note(group, NOTE_UID)));
    }
    return status;
}

int groups_sync_run(struct session *s, bool prune, const struct groups_sync_options *o,
                    char *const *names)
{
    __attribute__((cleanup(run_done))) struct run r = {.s = s, .options = o};
    CLEANUP(json_free) struct json *ours = NULL;
    struct err e = {0};
    bool by_groups = prune || (o->type && streq(o->type, "openshift"));
    if (!o->config) {
        return command_usage(&adm_groups, "--sync-config FILE is missing");
    }
    if (o->type && !streq(o->type, "ldap") && !by_groups) {
        return command_usage(&adm_groups, "--type must be ldap or openshift, not \"%s\"", o->type);
    }
    int status = load(&r, names);
    status = status ? status : session_open(s);
    status = status ? status : select_uids(&r, by_groups, &ours);
    if (status) {
        return status;
    }
    if (ldap_reader_read(s->loop, &r.sync, &r.groups, &r.users, &e) < 0) {
        return session_error("%s", e.text);
    }
    ldap_sync_make(&r.sync, &r.groups, &r.users, r.only, r.except, &r.made);
    if (prune) {
        prune_groups(&r, ours);
    } else {
        sync_groups(&r);
    }
    return r.status;
}
