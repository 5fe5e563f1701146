/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm policy: roles of users and groups, who may use security context constraints, and what
 * these would allow.
 *
 * As oc of OpenShift 4 does it, the use is given by a binding to the ClusterRole
 * system:openshift:scc:NAME, which is made where it is missing.  Taking it away also removes the
 * subject from the lists of the constraints themselves, where oc of OpenShift 3 puts it. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/admin/adm_policy_reconcile.h"
#include "cli/admin/adm_policy_review.h"
#include "cli/admin/adm_policy_roles.h"
#include "cli/admin/adm_policy_who.h"
#include "cli/kubectl/learn.h"
#include "cli/session.h"
#include "pod/scc.h"

#include <stdio.h>
#include <stdlib.h>

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define RBAC_API RBAC_GROUP "/v1"
#define ROLE_PREFIX "system:openshift:scc:"
#define MAX_ATTEMPTS 10

static const char help[] =
    "usage: tenet adm policy add-role-to-user ROLE (USER... | -z ACCOUNT...)\n"
    "       tenet adm policy add-role-to-group ROLE GROUP...\n"
    "       tenet adm policy remove-role-from-user ROLE (USER... | -z ACCOUNT...)\n"
    "       tenet adm policy remove-role-from-group ROLE GROUP...\n"
    "       tenet adm policy add-cluster-role-to-user ROLE (USER... | -z ACCOUNT...)\n"
    "       tenet adm policy add-cluster-role-to-group ROLE GROUP...\n"
    "       tenet adm policy remove-cluster-role-from-user ROLE (USER... | -z ACCOUNT...)\n"
    "       tenet adm policy remove-cluster-role-from-group ROLE GROUP...\n"
    "       tenet adm policy add-scc-to-user SCC (USER... | -z ACCOUNT...)\n"
    "       tenet adm policy add-scc-to-group SCC GROUP...\n"
    "       tenet adm policy remove-scc-from-user SCC (USER... | -z ACCOUNT...)\n"
    "       tenet adm policy remove-scc-from-group SCC GROUP...\n"
    "       tenet adm policy scc-subject-review -f FILE... [-u USER] [-g GROUP...] [-z ACCOUNT]\n"
    "       tenet adm policy scc-review -f FILE... [-z ACCOUNT...]\n"
    "       tenet adm policy who-can VERB RESOURCE [NAME] [-A]\n"
    "       tenet adm policy who-can VERB /PATH\n"
    "       tenet adm policy reconcile-cluster-roles [NAME...] [--confirm]\n"
    "       tenet adm policy reconcile-cluster-role-bindings [NAME...] [--confirm]\n"
    "       tenet adm policy reconcile-sccs [NAME...] [--confirm]\n"
    "\n"
    "Roles of users, groups and service accounts: in the project of the session, or with\n"
    "-cluster-role- in the whole cluster. ROLE is a ClusterRole, or with --role-namespace a Role.\n"
    "\n"
    "Who may use security context constraints: a pod gets the settings of those that its user\n"
    "or its service account may use. With -n or -z this holds in that namespace, otherwise in\n"
    "the whole cluster.\n"
    "\n"
    "  scc-subject-review   which constraints allow the pods of files to a user, by default to "
    "oneself\n"
    "  scc-review           which constraints allow them to service accounts, by default to the "
    "pod's\n"
    "\n"
    "who-can lists the subjects that may do something, with the binding and the role that give "
    "it.\n"
    "\n"
    "The reconcile- commands bring the objects that every cluster has up to this release. Without\n"
    "--confirm they print what they would write. What administrators added stays.\n";

enum { OPT_ROLE_NAMESPACE = OPT_FIRST_FREE, OPT_BINDING, OPT_SUBRESOURCE, OPT_CONFIRM };

static const struct command_option options[] = {
    {"role-namespace", OPT_ROLE_NAMESPACE, "NS",
     "the role is a Role of this namespace, which is that of the session", COMPLETE_NAMESPACE},
    {"rolebinding-name", OPT_BINDING, "NAME", "the binding to change; default: one of the role"},
    {"filename", 'f', "FILE", "a file with pods or templates of pods; may be given repeatedly",
     COMPLETE_FILE},
    {"user", 'u', "USER", "user whom a review is about"},
    {"groups", 'g', "GROUP", "group of that user; may be given repeatedly"},
    {"serviceaccount", 'z', "ACCOUNT", "service account of the namespace; may be given repeatedly"},
    {"all-namespaces", 'A', NULL, "who-can: in all namespaces"},
    {"subresource", OPT_SUBRESOURCE, "NAME", "who-can: a part of the resource, such as log"},
    {"confirm", OPT_CONFIRM, NULL, "reconcile-: the objects are written"},
    {0},
};

static const struct {
    const char *name, *kind, *list; /* The list is that of the constraints. */
    bool removes;
    enum { CHANGES, REVIEWS, ASKS_WHO, RECONCILES } what;
    enum { NO_ROLE, IN_PROJECT, IN_CLUSTER } role;
    enum policy_defaults defaults;
} actions[] = {
    {"add-role-to-user", "User", .role = IN_PROJECT},
    {"add-role-to-group", "Group", .role = IN_PROJECT},
    {"remove-role-from-user", "User", .removes = true, .role = IN_PROJECT},
    {"remove-role-from-group", "Group", .removes = true, .role = IN_PROJECT},
    {"add-cluster-role-to-user", "User", .role = IN_CLUSTER},
    {"add-cluster-role-to-group", "Group", .role = IN_CLUSTER},
    {"remove-cluster-role-from-user", "User", .removes = true, .role = IN_CLUSTER},
    {"remove-cluster-role-from-group", "Group", .removes = true, .role = IN_CLUSTER},
    {"add-scc-to-user", "User", "users", false},
    {"add-scc-to-group", "Group", "groups", false},
    {"remove-scc-from-user", "User", "users", true},
    {"remove-scc-from-group", "Group", "groups", true},
    {"scc-subject-review", "User", .what = REVIEWS},
    {"scc-review", "ServiceAccount", .what = REVIEWS},
    {"who-can", .what = ASKS_WHO},
    {"reconcile-cluster-roles", .what = RECONCILES, .defaults = POLICY_CLUSTER_ROLES},
    {"reconcile-cluster-role-bindings", .what = RECONCILES,
     .defaults = POLICY_CLUSTER_ROLE_BINDINGS},
    {"reconcile-sccs", .what = RECONCILES, .defaults = POLICY_SCCS},
};

struct policy {
    struct session s;
    size_t action;
    const char *scc;
    char *role;         /* The ClusterRole, and the name of the binding. */
    const char *ns;     /* NULL: the right holds in the whole cluster. */
    struct json *names; /* An array of the users or groups, in the order of the command line. */
    struct json *subjects;
    struct err error; /* Of the last request. */
    /* Of the options: */
    struct json *accounts, *groups, *files;
    const char *user, *role_namespace, *binding, *subresource;
    bool everywhere, confirm;
};

/* ---- subjects ---- */

static void add_subject(struct policy *p, const char *kind, const char *name, const char *ns)
{
    struct json *o = json_append(p->subjects, json_object());
    json_set_string(o, "kind", kind);
    if (ns) {
        json_set_string(o, "namespace", ns);
    } else {
        json_set_string(o, "apiGroup", RBAC_GROUP);
    }
    json_set_string(o, "name", name);
    json_append(p->names, json_string(name));
}

/* ---- requests ---- */

/* Returns the error of the request, whose text is in p->error. */
static int ask(struct policy *p, const char *method, const char *path, const struct json *body,
               struct json **ret)
{
    p->error = (struct err){0};
    return api_request_sync(p->s.client, method, path, NULL, NULL, body, ret, &p->error);
}

static struct json *role_ref(const struct policy *p)
{
    struct json *o = json_object();
    json_set_string(o, "apiGroup", RBAC_GROUP);
    json_set_string(o, "kind", "ClusterRole");
    json_set_string(o, "name", p->role);
    return o;
}

static struct json *object(const struct policy *p, const char *kind)
{
    struct json *o = json_object(), *meta;
    json_set_string(o, "kind", kind);
    json_set_string(o, "apiVersion", RBAC_API);
    meta = json_ensure_object(o, "metadata");
    json_set_string(meta, "name", p->role);
    return o;
}

static int make_role(struct policy *p)
{
    CLEANUP_FREE char *path = api_path(RBAC_API, "clusterroles", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *o = object(p, "ClusterRole");
    struct json *rule = json_append(json_ensure_array(o, "rules"), json_object());
    json_append(json_ensure_array(rule, "verbs"), json_string("use"));
    json_append(json_ensure_array(rule, "apiGroups"), json_string(SCC_GROUP));
    json_append(json_ensure_array(rule, "resources"), json_string(SCC_PLURAL));
    json_append(json_ensure_array(rule, "resourceNames"), json_string(p->scc));
    int r = ask(p, "POST", path, o, NULL);
    return r == -EEXIST ? 0 : r;
}

static char *bindings_path(const struct policy *p, const char *name)
{
    return api_path(RBAC_API, p->ns ? "rolebindings" : "clusterrolebindings", p->ns, name, NULL);
}

static int make_binding(struct policy *p)
{
    CLEANUP_FREE char *path = bindings_path(p, NULL);
    CLEANUP(json_free) struct json *o = object(p, p->ns ? "RoleBinding" : "ClusterRoleBinding");
    json_set(o, "roleRef", role_ref(p));
    json_set(o, "subjects", json_clone(p->subjects));
    return ask(p, "POST", path, o, NULL);
}

/* Changes the subjects of the binding as it is at that moment.  -ENOENT: there is none; -ECANCELED:
 * it is of another role, which was printed. */
static int change_binding(struct policy *p, bool removes)
{
    CLEANUP_FREE char *path = bindings_path(p, p->role);
    int r = -ESTALE;
    for (int i = 0; r == -ESTALE && i < MAX_ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *o = NULL;
        r = ask(p, "GET", path, NULL, &o);
        if (r < 0) {
            return r;
        }
        CLEANUP(json_free) struct json *ref = role_ref(p);
        if (!json_equal(json_get(o, "roleRef"), ref)) {
            return session_error("the binding %s gives another role", p->role), -ECANCELED;
        }
        struct json *list = json_array(), *item;
        JSON_FOREACH (item, json_get(o, "subjects")) {
            if (!removes || !policy_has_subject(p->subjects, item)) {
                json_append(list, json_clone(item));
            }
        }
        JSON_FOREACH (item, p->subjects) {
            if (!removes && !policy_has_subject(list, item)) {
                json_append(list, json_clone(item));
            }
        }
        json_set(o, "subjects", list);
        r = ask(p, "PUT", path, o, NULL);
    }
    return r;
}

static int add(struct policy *p)
{
    int r = make_role(p);
    r = r < 0 ? r : make_binding(p);
    return r == -EEXIST ? change_binding(p, false) : r;
}

/* The names by which the constraints list the subjects: an account has its user's name. */
static bool is_listed(const struct policy *p, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, p->subjects) {
        const char *ns = json_get_text(item, "namespace");
        CLEANUP_FREE char *user =
            *ns ? xasprintf("system:serviceaccount:%s:%s", ns, json_get_text(item, "name"))
                : xstrdup(json_get_text(item, "name"));
        if (streq(user, name)) {
            return true;
        }
    }
    return false;
}

/* Takes the subjects out of the lists of the constraints, unless none is there. */
static int change_constraints(struct policy *p)
{
    CLEANUP_FREE char *path = api_path(SCC_GROUP "/v1", SCC_PLURAL, NULL, p->scc, NULL);
    const char *key = actions[p->action].list;
    int r = -ESTALE;
    for (int i = 0; r == -ESTALE && i < MAX_ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *o = NULL;
        r = ask(p, "GET", path, NULL, &o);
        struct json *list = json_array();
        const struct json *item;
        JSON_FOREACH (item, json_get(o, key)) {
            if (json_get_string(item) && !is_listed(p, json_get_string(item))) {
                json_append(list, json_clone(item));
            }
        }
        if (r < 0 || json_count(list) == json_count(json_get(o, key))) {
            json_free(list);
            return r;
        }
        json_set(o, key, list);
        r = ask(p, "PUT", path, o, NULL);
    }
    return r;
}

static int take_away(struct policy *p)
{
    int r = change_binding(p, true);
    return r < 0 && r != -ENOENT ? r : change_constraints(p);
}

/* ---- the command ---- */

static int find_constraints(struct policy *p)
{
    CLEANUP_FREE char *path = api_path(SCC_GROUP "/v1", SCC_PLURAL, NULL, p->scc, NULL);
    CLEANUP(json_free) struct json *o = NULL;
    return ask(p, "GET", path, NULL, &o) < 0 ? session_fail(&p->s, &p->error, NULL) : 0;
}

static int execute(struct policy *p)
{
    int status = find_constraints(p);
    if (status) {
        return status;
    }
    bool removes = actions[p->action].removes;
    int r = removes ? take_away(p) : add(p);
    if (r == -ESTALE) {
        return session_error("other clients change the same objects again and again: try later");
    }
    if (r < 0) {
        return r == -ECANCELED ? 1 : session_fail(&p->s, &p->error, NULL);
    }
    printf("clusterrole." RBAC_GROUP "/%s %s: ", p->role, removes ? "removed" : "added");
    for (size_t i = 0; i < json_count(p->names); i++) {
        printf("%s\"%s\"", i ? ", " : "", json_get_string(json_at(p->names, i)));
    }
    putchar('\n');
    return 0;
}

static int find_action(const char *name, size_t *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
        if (streq(actions[i].name, name)) {
            *ret = i;
            return 0;
        }
    }
    return -ENOENT;
}

/* Reads the arguments of a change, after its name. */
static int read_change(struct policy *p, int argc, char **argv)
{
    const struct json *accounts = p->accounts;
    const char *action = actions[p->action].name, *kind = actions[p->action].kind;
    bool users = streq(kind, "User");
    if (optind == argc || (optind + 1 == argc && !json_count(accounts))) {
        return command_usage(&adm_policy, "%s needs %s and %s", action,
                             actions[p->action].role ? "a role" : "security context constraints",
                             users ? "users" : "groups");
    }
    if (json_count(accounts) && !users) {
        return command_usage(&adm_policy, "%s takes no --serviceaccount", action);
    }
    if (p->user || json_count(p->groups) || json_count(p->files)) {
        return command_usage(&adm_policy, "%s takes neither --filename nor --user and --groups",
                             action);
    }
    if (!actions[p->action].role && (p->role_namespace || p->binding)) {
        return command_usage(&adm_policy,
                             "%s takes neither --role-namespace nor "
                             "--rolebinding-name",
                             action);
    }
    p->scc = argv[optind++];
    p->role = xasprintf(ROLE_PREFIX "%s", p->scc);
    int status = session_open(&p->s);
    if (status) {
        return status;
    }
    p->ns = p->s.option_ns || json_count(accounts) ? p->s.ns : NULL;
    for (; optind < argc; optind++) {
        add_subject(p, kind, argv[optind], NULL);
    }
    for (size_t i = 0; i < json_count(accounts); i++) {
        add_subject(p, "ServiceAccount", json_get_string(json_at(accounts, i)), p->s.ns);
    }
    return 0;
}

static int review(struct policy *p, int argc, char **argv)
{
    struct policy_review r = {.accounts_only = streq(actions[p->action].kind, "ServiceAccount"),
                              .user = p->user,
                              .groups = p->groups,
                              .accounts = p->accounts};
    const struct json *file;
    struct err e = {0};
    int status = 0;
    if (!json_count(p->files)) {
        return command_usage(&adm_policy, "%s needs --filename", actions[p->action].name);
    }
    if (r.accounts_only && (p->user || json_count(p->groups))) {
        return command_usage(&adm_policy, "scc-review takes neither --user nor --groups");
    }
    JSON_FOREACH (file, p->files) {
        if (status == 0 && manifests_read(&r.m, json_get_string(file), &e) < 0) {
            status = session_error("%s", e.text);
        }
    }
    status = status ? status : command_expect_end(&adm_policy, argc, argv) == -1 ? 0 : 2;
    status = status ? status : session_open(&p->s);
    status = status ? status : policy_review_run(&p->s, &r);
    manifests_done(&r.m);
    return status;
}

static int change_roles(struct policy *p)
{
    bool cluster = actions[p->action].role == IN_CLUSTER;
    if (cluster && p->role_namespace) {
        return command_usage(&adm_policy, "a role of a namespace holds in that namespace alone");
    }
    if (p->role_namespace && !streq(p->role_namespace, p->s.ns)) {
        return command_usage(&adm_policy,
                             "--role-namespace \"%s\" is not the namespace \"%s\" of "
                             "the binding",
                             p->role_namespace, p->s.ns);
    }
    const struct policy_roles r = {.role = p->scc,
                                   .ns = cluster ? NULL : p->s.ns,
                                   .local = p->role_namespace != NULL,
                                   .binding = p->binding,
                                   .removes = actions[p->action].removes,
                                   .subjects = p->subjects,
                                   .names = p->names};
    return policy_roles_run(&p->s, &r);
}

/* Options of a change and of a review mean nothing here. */
static int refuse_options(const struct policy *p)
{
    return p->user || p->role_namespace || p->binding || json_count(p->accounts) ||
                   json_count(p->groups) || json_count(p->files)
               ? command_usage(&adm_policy, "%s takes no options about subjects and roles",
                               actions[p->action].name)
               : 0;
}

static int ask_who(struct policy *p, int argc, char **argv)
{
    struct policy_question q = {.group = "", .subresource = "", .name = "", .resource = ""};
    if (argc - optind < 2) {
        return command_usage(&adm_policy,
                             "a verb and a resource are needed, such as \"who-can get pods\"");
    }
    q.verb = argv[optind++];
    char *word = argv[optind++];
    int status = session_open(&p->s);
    if (status) {
        return status;
    }
    if (*word == '/') {
        q.url = word;
    } else {
        const struct api_kind *k = learn_kind(&p->s, word);
        q.resource = k ? k->plural : word;
        q.group = k ? k->group : "";
        q.subresource = p->subresource ? p->subresource : "";
        q.name = optind < argc ? argv[optind++] : "";
        p->everywhere |= k && !k->namespaced;
    }
    return command_expect_end(&adm_policy, argc, argv) != -1
               ? 2
               : policy_who_run(&p->s, &q, p->everywhere ? NULL : p->s.ns);
}

static int reconcile(struct policy *p, char **argv)
{
    int status = session_open(&p->s);
    return status ? status
                  : policy_reconcile_run(&p->s, actions[p->action].defaults, argv + optind,
                                         p->confirm);
}

static int dispatch(struct policy *p, int argc, char **argv)
{
    if (optind == argc) {
        return command_usage(&adm_policy, "a command is missing");
    }
    if (find_action(argv[optind], &p->action) < 0) {
        return command_usage(&adm_policy, "unknown command \"%s\"", argv[optind]);
    }
    optind++;
    unsigned what = actions[p->action].what;
    if ((p->confirm && what != RECONCILES) ||
        ((p->everywhere || p->subresource) && what != ASKS_WHO)) {
        return command_usage(&adm_policy, "%s takes no --%s", actions[p->action].name,
                             p->confirm      ? "confirm"
                             : p->everywhere ? "all-namespaces"
                                             : "subresource");
    }
    if (what == REVIEWS) {
        return review(p, argc, argv);
    }
    int status = what == CHANGES ? read_change(p, argc, argv) : refuse_options(p);
    if (what != CHANGES) {
        return status ? status : what == ASKS_WHO ? ask_who(p, argc, argv) : reconcile(p, argv);
    }
    return status ? status : actions[p->action].role ? change_roles(p) : execute(p);
}

static int run(int argc, char **argv)
{
    struct policy p = {.names = json_array(),
                       .subjects = json_array(),
                       .accounts = json_array(),
                       .groups = json_array(),
                       .files = json_array()};
    int opt;
    while ((opt = session_getopt(&p.s, &adm_policy, argc, argv, NULL)) != -1) {
        if (opt == OPT_HELP || opt == '?') {
            break;
        }
        if (opt == 'u') {
            p.user = optarg;
        } else if (opt == OPT_ROLE_NAMESPACE) {
            p.role_namespace = optarg;
        } else if (opt == OPT_BINDING) {
            p.binding = optarg;
        } else if (opt == OPT_SUBRESOURCE) {
            p.subresource = optarg;
        } else if (opt == 'A') {
            p.everywhere = true;
        } else if (opt == OPT_CONFIRM) {
            p.confirm = true;
        } else {
            json_append(opt == 'z'   ? p.accounts
                        : opt == 'g' ? p.groups
                                     : p.files,
                        json_string(optarg));
        }
    }
    int status = opt == -1 ? dispatch(&p, argc, argv) : opt == OPT_HELP ? 0 : 2;
    session_done(&p.s);
    json_free(p.names);
    json_free(p.subjects);
    json_free(p.accounts);
    json_free(p.groups);
    json_free(p.files);
    free(p.role);
    return status;
}

const struct command adm_policy = {
    .name = "adm policy",
    .summary = "roles, who may use security context constraints, and what they would allow",
    .help = help,
    .options = options,
    .shared = session_options,
    .complete = "add-role-to-user add-role-to-group remove-role-from-user remove-role-from-group "
                "add-cluster-role-to-user add-cluster-role-to-group remove-cluster-role-from-user "
                "remove-cluster-role-from-group add-scc-to-user add-scc-to-group "
                "remove-scc-from-user remove-scc-from-group "
                "scc-subject-review scc-review who-can reconcile-cluster-roles "
                "reconcile-cluster-role-bindings reconcile-sccs",
    .run = run};
