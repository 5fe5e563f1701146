/* SPDX-License-Identifier: Apache-2.0 */
/* tenet new-project: requests a project of one's own, and makes it the current one. */
#include "base/mem.h"
#include "cli/login/switch.h"
#include "cli/session.h"
#include "client/kubeconfig_edit.h"

#include <stdio.h>

#define PROJECT_API "project.openshift.io/v1"

static const char help[] =
    "usage: tenet new-project NAME [--display-name TEXT] [--description TEXT] [OPTIONS]\n"
    "\n"
    "Requests a project. Its name is unique in the cluster; the user becomes its administrator.\n"
    "The kubeconfig names it for later commands.\n";

enum { OPT_DISPLAY = OPT_FIRST_FREE, OPT_DESCRIPTION, OPT_SKIP };

static const struct command_option options[] = {
    {"display-name", OPT_DISPLAY, "TEXT", "the name that people see"},
    {"description", OPT_DESCRIPTION, "TEXT", "what the project is for"},
    {"skip-config-write", OPT_SKIP, NULL, "the current project stays what it is"},
    {0},
};

struct request {
    const char *name, *display, *description;
    bool skip;
};

static int request(struct session *s, const struct request *q)
{
    CLEANUP_FREE char *path = api_path(PROJECT_API, "projectrequests", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *body = json_object();
    struct err e = {0};
    /* The list is a probe: its refusal has the administrator's words for users. */
    int r = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, NULL, &e);
    if (r < 0) {
        return r == -EACCES ? session_error("%s", e.text) : session_fail(s, &e, NULL);
    }
    json_set_string(body, "kind", "ProjectRequest");
    json_set_string(body, "apiVersion", PROJECT_API);
    json_set_string(json_ensure_object(body, "metadata"), "name", q->name);
    json_set_string(body, "displayName", q->display);
    json_set_string(body, "description", q->description);
    r = api_request_sync(s->client, "POST", path, NULL, NULL, body, NULL, &e);
    return r < 0 ? session_fail(s, &e, NULL) : 0;
}

static int finish(struct session *s, const struct request *q)
{
    CLEANUP_FREE char *path = kubeconfig_path(s->kubeconfig);
    const char *program = command_program(), *server = api_client_server(s->client);
    struct err e = {0};
    if (q->skip || s->server) {
        printf("Project \"%s\" created on server \"%s\".\n\n"
               "To switch to this project and start adding applications, use:\n\n"
               "    %s project %s\n",
               q->name, server, program, q->name);
        return 0;
    }
    if (switch_project(path, s->context, q->name, &e) < 0) {
        return session_error("the project was created, but the kubeconfig does not name it: %s",
                             e.text);
    }
    printf("Now using project \"%s\" on server \"%s\".\n\n"
           "You can add applications to this project. For example, try:\n\n"
           "    %s create deployment hello --image=IMAGE\n"
           "    %s status\n",
           q->name, server, program, program);
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    struct request q = {0};
    int opt;
    while ((opt = session_getopt(&s, &cmd_new_project, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_DISPLAY:
            q.display = optarg;
            break;
        case OPT_DESCRIPTION:
            q.description = optarg;
            break;
        case OPT_SKIP:
            q.skip = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (optind == argc) {
        return command_usage(&cmd_new_project, "the project's name is missing");
    }
    q.name = argv[optind++];
    if (command_expect_end(&cmd_new_project, argc, argv) != -1) {
        return 2;
    }
    int status = session_open(&s);
    status = status ? status : request(&s, &q);
    return status ? status : finish(&s, &q);
}

const struct command cmd_new_project = {.name = "new-project",
                                        .summary = "request a project",
                                        .help = help,
                                        .options = options,
                                        .shared = session_options,
                                        .run = run};
