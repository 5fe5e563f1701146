/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm new-project: makes a project for somebody else, without the template and the limits of
 * project requests. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/admin/adm_policy_roles.h"

#include <stdio.h>

#define PROJECT_API "project.openshift.io/v1"

static const char help[] =
    "usage: tenet adm new-project NAME [--admin USER] [--admin-role ROLE] [--node-selector SEL]\n"
    "                             [--display-name TEXT] [--description TEXT] [OPTIONS]\n"
    "\n"
    "Makes a project. Unlike tenet new-project it asks neither the template nor the limits of\n"
    "project requests, and the user of --admin becomes its administrator.\n";

enum {
    OPT_ADMIN = OPT_FIRST_FREE,
    OPT_ADMIN_ROLE,
    OPT_DISPLAY,
    OPT_DESCRIPTION,
    OPT_NODE_SELECTOR
};

static const struct command_option options[] = {
    {"admin", OPT_ADMIN, "USER", "the project's administrator; default: none"},
    {"admin-role", OPT_ADMIN_ROLE, "ROLE", "the ClusterRole of the administrator; default: admin"},
    {"node-selector", OPT_NODE_SELECTOR, "SEL",
     "labels of the nodes of its pods; \"\": all nodes; default: that of the cluster"},
    {"display-name", OPT_DISPLAY, "TEXT", "the name that people see"},
    {"description", OPT_DESCRIPTION, "TEXT", "what the project is for"},
    {0},
};

struct request {
    const char *name, *admin, *role, *display, *description, *selector;
};

static void note(struct json *o, const char *key, const char *value)
{
    if (value) {
        struct json *meta = json_ensure_object(o, "metadata");
        json_set_string(json_ensure_object(meta, "annotations"), key, value);
    }
}

static int make(struct session *s, const struct request *q)
{
    CLEANUP_FREE char *path = api_path(PROJECT_API, "projects", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *o = json_object();
    struct err e = {0};
    json_set_string(o, "kind", "Project");
    json_set_string(o, "apiVersion", PROJECT_API);
    json_set_string(json_ensure_object(o, "metadata"), "name", q->name);
    note(o, "openshift.io/display-name", q->display);
    note(o, "openshift.io/description", q->description);
    note(o, "openshift.io/node-selector", q->selector);
    if (api_request_sync(s->client, "POST", path, NULL, NULL, o, NULL, &e) < 0) {
        return session_fail(s, &e, NULL);
    }
    printf("Created project %s\n", q->name);
    return 0;
}

/* Gives the role.  A failure is told with what to do: the project is there already. */
static int appoint(struct session *s, const struct request *q)
{
    CLEANUP(json_free) struct json *subjects = json_array(), *names = json_array();
    struct json *user = json_append(subjects, json_object());
    json_set_string(user, "kind", "User");
    json_set_string(user, "apiGroup", "rbac.authorization.k8s.io");
    json_set_string(user, "name", q->admin);
    json_append(names, json_string(q->admin));
    const struct policy_roles r = {
        .role = q->role, .ns = q->name, .subjects = subjects, .names = names};
    return policy_roles_run(s, &r);
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    struct request q = {.role = "admin"};
    int opt;
    while ((opt = session_getopt(&s, &adm_new_project, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_ADMIN:
            q.admin = optarg;
            break;
        case OPT_ADMIN_ROLE:
            q.role = optarg;
            break;
        case OPT_DISPLAY:
            q.display = optarg;
            break;
        case OPT_DESCRIPTION:
            q.description = optarg;
            break;
        case OPT_NODE_SELECTOR:
            q.selector = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (optind == argc) {
        return command_usage(&adm_new_project, "the project's name is missing");
    }
    q.name = argv[optind++];
    if (command_expect_end(&adm_new_project, argc, argv) != -1) {
        return 2;
    }
    int status = session_open(&s);
    status = status ? status : make(&s, &q);
    return status || !q.admin ? status : appoint(&s, &q);
}

const struct command adm_new_project = {.name = "adm new-project",
                                        .summary = "make a project for a user",
                                        .help = help,
                                        .options = options,
                                        .shared = session_options,
                                        .run = run};
