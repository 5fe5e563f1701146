/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm groups: makes groups of users, changes their members, takes them from a directory. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/admin/groups_sync.h"
#include "cli/session.h"

#include <stdio.h>

#define GROUP_API "user.openshift.io/v1"
#define MAX_ATTEMPTS 10

static const char help[] =
    "usage: tenet adm groups new GROUP [USER...]\n"
    "       tenet adm groups add-users GROUP USER...\n"
    "       tenet adm groups remove-users GROUP USER...\n"
    "       tenet adm groups sync --sync-config FILE [GROUP...] [--confirm]\n"
    "       tenet adm groups prune --sync-config FILE [GROUP...] [--confirm]\n"
    "\n"
    "Groups of users. A role that is bound to a group is given to each of its members.\n"
    "\n"
    "  new             makes a group, with these members\n"
    "  add-users       the users become members; they need not exist yet\n"
    "  remove-users    the users are no members any more\n"
    "  sync            makes and updates groups from an LDAP directory\n"
    "  prune           deletes groups that came from the directory and are there no more\n";

enum { OPT_CONFIG = OPT_FIRST_FREE, OPT_TYPE, OPT_WHITELIST, OPT_BLACKLIST, OPT_CONFIRM };
static const struct command_option options[] = {
    {"sync-config", OPT_CONFIG, "FILE",
     "sync, prune: an LDAPSyncConfig: the directory, queries, attributes", COMPLETE_FILE},
    {"type", OPT_TYPE, "TYPE",
     "sync: what GROUP and the lists name: ldap (UIDs of the directory, the default), openshift "
     "(groups that were made by sync before)",
     "ldap openshift"},
    {"whitelist", OPT_WHITELIST, "FILE", "sync, prune: a GROUP in each line; all others stay",
     COMPLETE_FILE},
    {"blacklist", OPT_BLACKLIST, "FILE", "sync, prune: a GROUP in each line that stays",
     COMPLETE_FILE},
    {"confirm", OPT_CONFIRM, NULL,
     "sync, prune: writes; without it, sync prints the groups as YAML, and prune their names"},
    {0}};

enum action { NEW, ADD, REMOVE, SYNC, PRUNE };
static const char *const actions[] = {[NEW] = "new",
                                      [ADD] = "add-users",
                                      [REMOVE] = "remove-users",
                                      [SYNC] = "sync",
                                      [PRUNE] = "prune"};

static bool has_user(const struct json *users, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, users) {
        if (streq_null(json_get_string(item), name)) {
            return true;
        }
    }
    return false;
}

/* The members after the action; owned. */
static struct json *members(const struct json *users, enum action action, char *const *names)
{
    struct json *out = json_array();
    const struct json *item;
    CLEANUP(json_free) struct json *given = json_array();
    for (size_t i = 0; names[i]; i++) {
        json_append(given, json_string(names[i]));
    }
    JSON_FOREACH (item, users) {
        if (action != REMOVE || !has_user(given, json_get_string(item))) {
            json_append(out, json_clone(item));
        }
    }
    JSON_FOREACH (item, given) {
        if (action != REMOVE && !has_user(out, json_get_string(item))) {
            json_append(out, json_clone(item));
        }
    }
    return out;
}

static int make(struct session *s, const char *group, char *const *names)
{
    CLEANUP_FREE char *path = api_path(GROUP_API, "groups", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *obj = json_object();
    struct err e = {0};
    json_set_string(obj, "kind", "Group");
    json_set_string(obj, "apiVersion", GROUP_API);
    json_set_string(json_ensure_object(obj, "metadata"), "name", group);
    json_set(obj, "users", members(NULL, NEW, names));
    return api_request_sync(s->client, "POST", path, NULL, NULL, obj, NULL, &e) < 0
               ? session_fail(s, &e, NULL)
               : 0;
}

/* Changes the group as it is at that moment: another client's change is not undone. */
static int change(struct session *s, enum action action, const char *group, char *const *names)
{
    CLEANUP_FREE char *path = api_path(GROUP_API, "groups", NULL, group, NULL);
    struct err e = {0};
    int r = -ESTALE;
    for (int i = 0; r == -ESTALE && i < MAX_ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *obj = NULL;
        r = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &obj, &e);
        if (r == 0) {
            json_set(obj, "users", members(json_get(obj, "users"), action, names));
            r = api_request_sync(s->client, "PUT", path, NULL, NULL, obj, NULL, &e);
        }
    }
    return r < 0 ? session_fail(s, &e, NULL) : 0;
}

static void print_done(enum action action, const char *group, char *const *names)
{
    printf("group.user.openshift.io/%s %s", group,
           action == NEW   ? "created"
           : action == ADD ? "added: "
                           : "removed: ");
    for (size_t i = 0; action != NEW && names[i]; i++) {
        printf("%s\"%s\"", i ? ", " : "", names[i]);
    }
    putchar('\n');
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    struct groups_sync_options o = {0};
    int opt;
    while ((opt = session_getopt(&s, &adm_groups, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_CONFIG:
            o.config = optarg;
            break;
        case OPT_TYPE:
            o.type = optarg;
            break;
        case OPT_WHITELIST:
            o.whitelist = optarg;
            break;
        case OPT_BLACKLIST:
            o.blacklist = optarg;
            break;
        case OPT_CONFIRM:
            o.confirm = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (optind == argc) {
        return command_usage(&adm_groups, "a command is missing");
    }
    const char *name = argv[optind++];
    size_t action = 0;
    while (action < ARRAY_SIZE(actions) && !streq(actions[action], name)) {
        action++;
    }
    if (action == ARRAY_SIZE(actions)) {
        return command_usage(&adm_groups, "unknown command \"%s\"", name);
    }
    if (action == SYNC || action == PRUNE) {
        return groups_sync_run(&s, action == PRUNE, &o, argv + optind);
    }
    if (o.config || o.type || o.whitelist || o.blacklist || o.confirm) {
        return command_usage(&adm_groups, "%s takes none of the options of sync and prune", name);
    }
    if (argc - optind < (action == NEW ? 1 : 2)) {
        return command_usage(&adm_groups, "%s needs a group%s", name,
                             action == NEW ? "" : " and users");
    }
    const char *group = argv[optind];
    char *const *names = argv + optind + 1; /* argv ends with NULL. */
    int status = session_open(&s);
    status = status          ? status
             : action == NEW ? make(&s, group, names)
                             : change(&s, (enum action) action, group, names);
    if (status == 0) {
        print_done((enum action) action, group, names);
    }
    return status;
}

const struct command adm_groups = {.name = "adm groups",
                                   .summary = "groups of users and their members",
                                   .help = help,
                                   .options = options,
                                   .shared = session_options,
                                   .complete = "new add-users remove-users sync prune",
                                   .run = run};
