/* SPDX-License-Identifier: Apache-2.0 */
/* tenet project and tenet projects: which projects there are, and which one the commands use. */
#include "base/mem.h"
#include "cli/login/projects.h"
#include "cli/login/switch.h"
#include "cli/session.h"
#include "cli/shown.h"
#include "client/kubeconfig_edit.h"

#include <stdio.h>

static const char project_help[] =
    "usage: tenet project [NAME] [-q]\n"
    "\n"
    "Shows the current project, or makes another one the current project: the kubeconfig names it\n"
    "for this and later commands. NAME may also be a context of the kubeconfig.\n";
static const char projects_help[] = "usage: tenet projects [-q]\n"
                                    "\n"
                                    "Lists the projects that the user may see.\n";

static const struct command_option project_options[] = {
    {"short", 'q', NULL, "prints the project's name alone"}, {0}};
static const struct command_option projects_options[] = {{"short", 'q', NULL, "prints names alone"},
                                                         {0}};

/* ---- the current project ---- */

static int show(struct session *s, bool is_short)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct err e = {0};
    if (session_load(s, &k, &e) < 0) {
        return session_error("%s", e.text);
    }
    const char *ns = s->option_ns ? s->option_ns : k.ns;
    int r = ns ? project_exists(s->client, ns, &e) : 0;
    if (r < 0) {
        return session_fail(s, &e, NULL);
    }
    if (!ns) {
        return is_short ? session_error("no project has been set")
                        : (puts("No project has been set. Pass a project name to make that the "
                                "default."),
                           0);
    }
    if (r == 0) {
        return session_error("you do not have rights to view project \"%s\" specified in your "
                             "config or the project doesn't exist",
                             ns);
    }
    if (is_short) {
        puts(ns);
    } else {
        printf("Using project \"%s\" on server \"%s\".\n", ns, k.server);
    }
    return 0;
}

static int no_member(struct session *s, const char *name)
{
    CLEANUP(json_free) struct json *projects = NULL;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const struct json *item;
    struct err e = {0};
    if (projects_list(s->client, &projects, &e) == 0 && json_count(projects)) {
        strbuf_adds(&text, "\nYour projects are:\n");
        JSON_FOREACH (item, projects) {
            strbuf_addf(&text, "* %s\n", project_name(item));
        }
    }
    return session_error("You are not a member of project \"%s\".%s", name, strbuf_cstr(&text));
}

static int change(struct session *s, const char *name, bool is_short)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    CLEANUP_FREE char *path = kubeconfig_path(s->kubeconfig);
    CLEANUP(json_free) struct json *config = NULL;
    struct err e = {0};
    int r = kubeconfig_read(path, &config, &e);
    if (r < 0) {
        return session_error("%s", e.text);
    }
    bool context = kubeconfig_entry(config, "contexts", "context", name) != NULL;
    r = context ? 1 : project_exists(s->client, name, &e);
    if (r < 0) {
        return session_fail(s, &e, NULL);
    }
    if (r == 0) {
        return no_member(s, name);
    }
    r = context ? switch_context(path, name, &e) : switch_project(path, s->context, name, &e);
    s->context = NULL;
    if (r < 0 || (r = session_load(s, &k, &e)) < 0) {
        return session_error("%s", e.text);
    }
    const char *ns = k.ns ? k.ns : "default";
    if (is_short) {
        puts(ns);
    } else if (context) {
        printf("Now using project \"%s\" from context named \"%s\" on server \"%s\".\n", ns, name,
               k.server);
    } else {
        printf("Now using project \"%s\" on server \"%s\".\n", ns, k.server);
    }
    return 0;
}

/* Handles -q; the exit status in '*ret_status' when false. */
static bool read_options(struct session *s, const struct command *c, int argc, char **argv,
                         bool *ret_short, int *ret_status)
{
    int opt;
    while ((opt = session_getopt(s, c, argc, argv, NULL)) != -1) {
        if (opt != 'q') {
            *ret_status = opt == OPT_HELP ? 0 : 2;
            return false;
        }
        *ret_short = true;
    }
    return true;
}

static int run_project(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    bool is_short = false;
    int status = 0;
    if (!read_options(&s, &cmd_project, argc, argv, &is_short, &status)) {
        return status;
    }
    const char *name = optind < argc ? argv[optind++] : NULL;
    if (command_expect_end(&cmd_project, argc, argv) != -1) {
        return 2;
    }
    if (s.server) {
        return command_usage(&cmd_project, "the project is of the kubeconfig: give no --server");
    }
    status = session_open(&s);
    return status ? status : name ? change(&s, name, is_short) : show(&s, is_short);
}

/* ---- all projects ---- */

static int list(struct session *s, bool is_short)
{
    CLEANUP(json_free) struct json *projects = NULL;
    const struct json *item;
    struct err e = {0};
    if (projects_list(s->client, &projects, &e) < 0) {
        return session_fail(s, &e, NULL);
    }
    size_t n = json_count(projects);
    if (is_short) {
        JSON_FOREACH (item, projects) {
            CLEANUP_FREE char *harmless = shown(project_name(item));
            puts(harmless);
        }
        return 0;
    }
    if (n == 0) {
        puts("You are not a member of any projects. You can request a project to be created with "
             "the 'new-project' command.");
        return 0;
    }
    if (n == 1) {
        CLEANUP_FREE char *title = project_title(json_at(projects, 0));
        printf("You have one project on this server: \"%s\".\n", title);
    } else {
        printf("You have access to the following projects and can switch between them with '%s "
               "project <projectname>':\n\n",
               command_program());
        projects_print(projects, s->ns);
    }
    const char *server = api_client_server(s->client);
    if (projects_find(projects, s->ns)) {
        printf("\nUsing project \"%s\" on server \"%s\".\n", s->ns, server);
    } else {
        printf("\nThe current project \"%s\" is none of them, on server \"%s\".\n", s->ns, server);
    }
    return 0;
}

static int run_projects(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    bool is_short = false;
    int status = 0;
    if (!read_options(&s, &cmd_projects, argc, argv, &is_short, &status)) {
        return status;
    }
    if (command_expect_end(&cmd_projects, argc, argv) != -1) {
        return 2;
    }
    status = session_open(&s);
    return status ? status : list(&s, is_short);
}

const struct command cmd_project = {.name = "project",
                                    .summary = "show the current project, or use another one",
                                    .help = project_help,
                                    .options = project_options,
                                    .shared = session_options,
                                    .complete = "@projects",
                                    .run = run_project};
const struct command cmd_projects = {.name = "projects",
                                     .summary = "list one's projects",
                                     .help = projects_help,
                                     .options = projects_options,
                                     .shared = session_options,
                                     .run = run_projects};
