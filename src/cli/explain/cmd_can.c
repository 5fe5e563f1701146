/* SPDX-License-Identifier: Apache-2.0 */
/* tenet can: whether the user may do something, and why.  The answer and its reason are the
 * server's (SelfSubjectAccessReview); a refusal gets what would allow it. */
#include "apiserver/access/scopes.h"
#include "base/mem.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/print.h"
#include "cli/login/identity.h"
#include "cli/session.h"
#include "cli/shown.h"

#include <stdio.h>

#define ACCESS_API "authorization.k8s.io/v1"
#define RBAC_API "rbac.authorization.k8s.io/v1"

static const char help[] =
    "usage: tenet can VERB RESOURCE [NAME] [--why] [OPTIONS]\n"
    "       tenet can VERB /PATH [--why]\n"
    "       tenet can --list\n"
    "\n"
    "Says whether the user may do something: \"yes\" with exit status 0, or \"no\" with 1.\n"
    "--why names the binding and the role that allow it, or what would allow it.\n";

enum { OPT_WHY = OPT_FIRST_FREE, OPT_LIST, OPT_SUBRESOURCE, OPT_USER, OPT_GROUPS, OPT_SCOPES };

static const struct command_option options[] = {
    {"why", OPT_WHY, NULL, "also says which binding of which role allows it, or what would"},
    {"list", OPT_LIST, NULL, "lists all that the user may do in the namespace"},
    {"quiet", 'q', NULL, "prints nothing: the exit status is the answer"},
    {"subresource", OPT_SUBRESOURCE, "NAME", "a part of the resource, such as log or scale"},
    {"all-namespaces", 'A', NULL, "asks for all namespaces"},
    {"user", OPT_USER, "USER", "asks about this user, with the right to create access reviews"},
    {"groups", OPT_GROUPS, "GROUP[,GROUP]", "groups of that user; may be repeated"},
    {"scopes", OPT_SCOPES, "SCOPE[,SCOPE]",
     "as if by a token with these scopes; by default of oneself; may be repeated"},
    {0},
};

struct question {
    struct session s;
    const struct command *command;
    const char *verb, *name, *subresource, *path;
    const struct api_kind *kind; /* NULL: 'resource' has a name that no kind has. */
    const char *resource;
    bool why, list, quiet, everywhere;
    /* About another user, or by a token with scopes: an access review that names the subject. */
    const char *user;
    struct json *groups, *scopes; /* Arrays; owned; NULL: not given. */
};

static int post(struct question *q, const char *plural, const struct json *body, struct json **ret)
{
    CLEANUP_FREE char *path = api_path(ACCESS_API, plural, NULL, NULL, NULL);
    struct err e = {0};
    return api_request_sync(q->s.client, "POST", path, NULL, NULL, body, ret, &e) < 0
               ? session_fail(&q->s, &e, NULL)
               : 0;
}

/* ---- one question ---- */

static const char *plural(const struct question *q)
{
    return q->kind ? q->kind->plural : q->resource;
}

/* The namespace of the question; NULL: the right has to hold in the whole cluster. */
static const char *namespace_of(const struct question *q)
{
    return q->everywhere || (q->kind && !q->kind->namespaced) ? NULL : q->s.ns;
}

static bool names_subject(const struct question *q)
{
    return q->user || q->groups || q->scopes;
}

/* The caller's own name and groups, where only scopes were given. */
static int find_self(struct question *q, struct json *spec)
{
    CLEANUP_FREE char *path =
        api_path("authentication.k8s.io/v1", "selfsubjectreviews", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *body = json_object(), *answer = NULL;
    struct err e = {0};
    json_set_string(body, "kind", "SelfSubjectReview");
    json_set_string(body, "apiVersion", "authentication.k8s.io/v1");
    if (api_request_sync(q->s.client, "POST", path, NULL, NULL, body, &answer, &e) < 0) {
        return session_fail(&q->s, &e, NULL);
    }
    const struct json *info = json_path(answer, "status", "userInfo", NULL);
    json_set_string(spec, "user", json_get_text(info, "username"));
    json_set(spec, "groups", json_clone(json_get(info, "groups")));
    return 0;
}

static int add_subject(struct question *q, struct json *spec)
{
    int status = q->user || q->groups ? 0 : find_self(q, spec);
    if (q->user) {
        json_set_string(spec, "user", q->user);
    }
    if (q->groups) {
        json_set(spec, "groups", json_clone(q->groups));
    }
    if (q->scopes) {
        json_set(json_ensure_object(spec, "extra"), SCOPES_EXTRA, json_clone(q->scopes));
    }
    return status;
}

static struct json *review(const struct question *q)
{
    struct json *o = json_object(), *spec = json_ensure_object(o, "spec"), *what;
    json_set_string(o, "kind",
                    names_subject(q) ? "SubjectAccessReview" : "SelfSubjectAccessReview");
    json_set_string(o, "apiVersion", ACCESS_API);
    what = json_ensure_object(spec, q->path ? "nonResourceAttributes" : "resourceAttributes");
    json_set_string(what, "verb", q->verb);
    if (q->path) {
        json_set_string(what, "path", q->path);
        return o;
    }
    json_set_string(what, "group", q->kind ? q->kind->group : "");
    json_set_string(what, "resource", plural(q));
    json_set_string(what, "namespace", namespace_of(q));
    json_set_string(what, "name", q->name);
    json_set_string(what, "subresource", q->subresource);
    return o;
}

static bool lists(const struct json *list, const char *wanted)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        if (s && (streq(s, "*") || streq(s, wanted))) {
            return true;
        }
    }
    return false;
}

/* Whether a role allows what was asked. */
static bool role_allows(const struct question *q, const struct json *role)
{
    const struct json *rule;
    CLEANUP_FREE char *resource =
        q->subresource ? xasprintf("%s/%s", plural(q), q->subresource) : xstrdup(plural(q));
    JSON_FOREACH (rule, json_get(role, "rules")) {
        const struct json *names = json_get(rule, "resourceNames");
        if (lists(json_get(rule, "verbs"), q->verb) &&
            lists(json_get(rule, "apiGroups"), q->kind ? q->kind->group : "") &&
            lists(json_get(rule, "resources"), resource) &&
            (!json_count(names) || (q->name && lists(names, q->name)))) {
            return true;
        }
    }
    return false;
}

/* The least of the usual roles that would allow it; NULL: none does, or the user may not look. */
static const char *helpful_role(struct question *q)
{
    static const char *const in_project[] = {"view", "edit", "admin"};
    static const char *const in_cluster[] = {"cluster-reader", "cluster-admin"};
    const char *const *roles = namespace_of(q) ? in_project : in_cluster;
    size_t n = namespace_of(q) ? ARRAY_SIZE(in_project) : ARRAY_SIZE(in_cluster);
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *path = api_path(RBAC_API, "clusterroles", NULL, roles[i], NULL);
        CLEANUP(json_free) struct json *role = NULL;
        struct err unused = {0};
        if (api_request_sync(q->s.client, "GET", path, NULL, NULL, NULL, &role, &unused) == 0 &&
            role_allows(q, role)) {
            return roles[i];
        }
    }
    return NULL;
}

static void print_help_for(struct question *q)
{
    CLEANUP_FREE char *name = NULL;
    struct err unused = {0};
    const char *role = q->path ? NULL : helpful_role(q), *ns = q->path ? NULL : namespace_of(q);
    if (q->user) {
        name = xstrdup(q->user);
    } else if (identity_ask(q->s.client, &name, &unused) < 0) {
        return;
    }
    CLEANUP_FREE char *user = shown(name);
    printf("no binding of a role allows it to \"%s\"\n", user);
    if (!role) {
        puts("The usual roles do not allow it, or you may not read them: ask an administrator of "
             "the "
             "cluster.");
    } else if (ns) {
        printf("The role %s allows it. An administrator of the project can give it:\n\n"
               "    %s adm policy add-role-to-user %s %s -n %s\n",
               role, command_program(), role, user, ns);
    } else {
        printf("The role %s allows it. An administrator of the cluster can give it:\n\n"
               "    %s adm policy add-cluster-role-to-user %s %s\n",
               role, command_program(), role, user);
    }
}

static int ask(struct question *q)
{
    CLEANUP(json_free) struct json *body = review(q), *answer = NULL;
    int status = names_subject(q) ? add_subject(q, json_get(body, "spec")) : 0;
    status = status
                 ? status
                 : post(q, names_subject(q) ? "subjectaccessreviews" : "selfsubjectaccessreviews",
                        body, &answer);
    if (status) {
        return status;
    }
    const struct json *st = json_get(answer, "status");
    bool allowed = json_get_bool(json_get(st, "allowed"), false);
    CLEANUP_FREE char *reason = shown(json_get_text(st, "reason"));
    if (!q->quiet) {
        puts(allowed ? "yes" : "no");
    }
    if (q->why && *reason) {
        puts(reason);
    } else if (q->why && allowed) {
        puts("the server gives no reason");
    }
    if (q->why && !allowed && !q->scopes) {
        print_help_for(q);
    }
    return allowed ? 0 : 1;
}

/* ---- the list ---- */

/* "[a b]", or "group" appended to each resource: "pods.apps". */
static char *joined(const struct json *list, const struct json *groups)
{
    struct strbuf b = STRBUF_INIT;
    const struct json *item, *group;
    const char *gap = "";
    JSON_FOREACH (item, list) {
        if (!json_count(groups)) {
            strbuf_addf(&b, "%s%s", gap, json_get_string(item) ? json_get_string(item) : "");
            gap = " ";
        }
        JSON_FOREACH (group, groups) {
            const char *g = json_get_string(group) ? json_get_string(group) : "";
            strbuf_addf(&b, "%s%s%s%s", gap, json_get_string(item) ? json_get_string(item) : "",
                        *g ? "." : "", g);
            gap = " ";
        }
    }
    char *text = strbuf_steal(&b), *harmless = shown(text);
    free(text);
    return harmless;
}

struct table {
    char **cells;
    size_t n, cap;
};

static void add_cell(struct table *t, char *text)
{
    t->cells = grow(t->cells, &t->cap, t->n + 1, sizeof *t->cells);
    t->cells[t->n++] = text;
}

static char *bracketed(const struct json *list)
{
    CLEANUP_FREE char *text = joined(list, NULL);
    return xasprintf("[%s]", text);
}

static int list_all(struct question *q)
{
    static const char *const head[] = {"Resources", "Non-Resource URLs", "Resource Names", "Verbs"};
    CLEANUP(json_free) struct json *body = json_object(), *answer = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const struct json *rule;
    struct table t = {0};
    json_set_string(body, "kind", "SelfSubjectRulesReview");
    json_set_string(body, "apiVersion", ACCESS_API);
    json_set_string(json_ensure_object(body, "spec"), "namespace", q->s.ns);
    int status = post(q, "selfsubjectrulesreviews", body, &answer);
    if (status) {
        return status;
    }
    for (size_t i = 0; i < ARRAY_SIZE(head); i++) {
        add_cell(&t, xstrdup(head[i]));
    }
    const struct json *st = json_get(answer, "status");
    JSON_FOREACH (rule, json_get(st, "resourceRules")) {
        add_cell(&t, joined(json_get(rule, "resources"), json_get(rule, "apiGroups")));
        add_cell(&t, xstrdup("[]"));
        add_cell(&t, bracketed(json_get(rule, "resourceNames")));
        add_cell(&t, bracketed(json_get(rule, "verbs")));
    }
    JSON_FOREACH (rule, json_get(st, "nonResourceRules")) {
        add_cell(&t, xstrdup(""));
        add_cell(&t, bracketed(json_get(rule, "nonResourceURLs")));
        add_cell(&t, xstrdup("[]"));
        add_cell(&t, bracketed(json_get(rule, "verbs")));
    }
    size_t columns = ARRAY_SIZE(head);
    print_columns((const char *const *) t.cells, columns, t.n / columns, "", &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    for (size_t i = 0; i < t.n; i++) {
        free(t.cells[i]);
    }
    free(t.cells);
    if (json_get_bool(json_get(st, "incomplete"), false)) {
        CLEANUP_FREE char *text = shown(json_get_text(st, "evaluationError"));
        fprintf(stderr, "warning: the list may be incomplete: %s\n", text);
    }
    return 0;
}

/* ---- the command ---- */

/* Finds the kind of "pods", "deploy.apps", or "pods/NAME".  A name of no kind is asked about as it
 * is. */
static void find_kind(struct question *q, char *resource)
{
    char *slash = strchr(resource, '/');
    if (slash) {
        *slash = '\0';
        q->name = slash + 1;
    }
    q->resource = resource;
    q->kind = learn_kind(&q->s, resource);
}

static int read_arguments(struct question *q, int argc, char **argv)
{
    const struct command *c = q->command;
    if (q->list) {
        return command_expect_end(c, argc, argv) == -1 ? 0 : 2;
    }
    if (argc - optind < 2) {
        return command_usage(c, "a verb and a resource are needed, such as \"get pods\"");
    }
    q->verb = argv[optind++];
    char *resource = argv[optind++];
    int status = session_open(&q->s);
    if (status) {
        return status;
    }
    if (*resource == '/') {
        q->path = resource;
    } else {
        find_kind(q, resource);
        q->name = q->name ? q->name : optind < argc ? argv[optind++] : NULL;
    }
    return command_expect_end(c, argc, argv) == -1 ? 0 : 2;
}

static void question_done(struct question *q)
{
    json_free(q->groups);
    json_free(q->scopes);
    session_done(&q->s);
}

/* Adds the words between commas. */
static void add_words(struct json **list, const char *text)
{
    *list = *list ? *list : json_array();
    while (*text) {
        size_t n = strcspn(text, ",");
        if (n) {
            CLEANUP_FREE char *word = xstrndup(text, n);
            json_append(*list, json_string(word));
        }
        text += n + (text[n] == ',');
    }
}

static int run_as(const struct command *c, int argc, char **argv)
{
    struct question q = {.command = c};
    int opt, status;
    while ((opt = session_getopt(&q.s, c, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_WHY:
            q.why = true;
            break;
        case OPT_LIST:
            q.list = true;
            break;
        case OPT_SUBRESOURCE:
            q.subresource = optarg;
            break;
        case 'q':
            q.quiet = true;
            break;
        case 'A':
            q.everywhere = true;
            break;
        case OPT_USER:
            q.user = optarg;
            break;
        case OPT_GROUPS:
            add_words(&q.groups, optarg);
            break;
        case OPT_SCOPES:
            add_words(&q.scopes, optarg);
            break;
        default:
            question_done(&q);
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    status = q.quiet && (q.why || q.list) ? command_usage(c, "--quiet prints nothing")
             : q.list && names_subject(&q)
                 ? command_usage(c, "--list is about the caller: use --as for another user")
                 : 0;
    status = status ? status : read_arguments(&q, argc, argv);
    if (status == 0 && q.list) {
        status = session_open(&q.s);
    }
    status = status ? status : q.list ? list_all(&q) : ask(&q);
    question_done(&q);
    return status;
}

static int run_can(int argc, char **argv)
{
    return run_as(&cmd_can, argc, argv);
}

const struct command cmd_can = {.name = "can",
                                .summary = "whether one may do something, and why",
                                .help = help,
                                .options = options,
                                .shared = session_options,
                                .complete = "get list watch create update patch delete @kinds",
                                .run = run_can};

/* ---- as oc spells it ---- */

static int run_can_i(int argc, char **argv);

static const struct command policy_can_i = {
    .name = "policy can-i",
    .summary = "whether one may do something, and why",
    .help = "usage: tenet policy can-i VERB RESOURCE [NAME] [--why] [OPTIONS]\n"
            "       tenet policy can-i --list\n"
            "\n"
            "The same as tenet can.\n",
    .options = options,
    .shared = session_options,
    .run = run_can_i};

static int run_can_i(int argc, char **argv)
{
    return run_as(&policy_can_i, argc, argv);
}

static const struct command *const policy_groups[] = {&policy_can_i, NULL};

/* All words but can-i are those of "adm policy". */
static int run_policy(int argc, char **argv)
{
    bool own = argc < 2 || streq(argv[1], "can-i") || argv[1][0] == '-';
    for (size_t i = 0; !own && cmd_adm.groups[i]; i++) {
        if (streq(cmd_adm.groups[i]->name, "adm policy")) {
            return cmd_adm.groups[i]->run(argc, argv);
        }
    }
    return command_run_group(&cmd_policy, argc, argv);
}

const struct command cmd_policy = {.name = "policy",
                                   .summary = "what one may do, as oc spells it",
                                   .help = "usage: tenet policy can-i VERB RESOURCE [NAME]\n"
                                           "       tenet policy COMMAND ...\n"
                                           "\n"
                                           "  can-i   whether the user may do something\n"
                                           "\n"
                                           "COMMAND is one of tenet adm policy, such as who-can "
                                           "and scc-subject-review.\n",
                                   .groups = policy_groups,
                                   .run = run_policy};
