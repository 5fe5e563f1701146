/* SPDX-License-Identifier: Apache-2.0 */
/* tenet whoami: the user as which the server takes the caller, or what the kubeconfig says. */
#include "base/mem.h"
#include "cli/session.h"
#include "client/kubeconfig.h"

#include <stdio.h>

#define SELF_API "user.openshift.io/v1"
#define REVIEW_API "authentication.k8s.io/v1"

static const char help[] = "usage: tenet whoami [OPTIONS]\n"
                           "\n"
                           "Prints the name of the user that the server takes the caller for.\n";

enum { OPT_SHOW_SERVER = OPT_FIRST_FREE };

static const struct command_option options[] = {
    {"show-context", 'c', NULL, "prints the current context of the kubeconfig instead"},
    {"show-server", OPT_SHOW_SERVER, NULL, "prints the server's URL instead"},
    {"show-token", 't', NULL, "prints the token of the kubeconfig instead"},
    {0},
};

/* A server that has no kinds of OpenShift is asked for a review. */
static int ask(struct session *s, struct json **ret, const char **ret_name, struct err *e)
{
    CLEANUP_FREE char *self = api_path(SELF_API, "users", NULL, "~", NULL);
    CLEANUP_FREE char *review = api_path(REVIEW_API, "selfsubjectreviews", NULL, NULL, NULL);
    int r = api_request_sync(s->client, "GET", self, NULL, NULL, NULL, ret, e);
    if (r == 0) {
        *ret_name = json_path_string(*ret, "metadata", "name", NULL);
    }
    if (r != -ENOENT) {
        return r;
    }
    CLEANUP(json_free) struct json *body = json_object();
    json_set_string(body, "kind", "SelfSubjectReview");
    json_set_string(body, "apiVersion", REVIEW_API);
    r = api_request_sync(s->client, "POST", review, NULL, NULL, body, ret, e);
    *ret_name = r == 0 ? json_path_string(*ret, "status", "userInfo", "username", NULL) : NULL;
    return r;
}

static int print_user(struct session *s)
{
    CLEANUP(json_free) struct json *answer = NULL;
    const char *name = NULL;
    struct err e = {0};
    if (ask(s, &answer, &name, &e) < 0) {
        return session_fail(s, &e, NULL);
    }
    if (!name) {
        return session_error("the server's answer names no user");
    }
    puts(name);
    return 0;
}

/* Prints what the kubeconfig says, without asking the server. */
static int print_config(const struct session *s, int what)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct err e = {0};
    if (s->server) {
        return session_error("with --server there is no context and no token");
    }
    if (kubeconfig_load(s->kubeconfig, &k, &e) < 0) {
        return session_error("%s", e.text);
    }
    if (what == 't' && !k.token) {
        return session_error("no token is currently in use for this session");
    }
    puts(what == 't' ? k.token : k.context);
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    int opt, what = 0;
    while ((opt = session_getopt(&s, &cmd_whoami, argc, argv, NULL)) != -1) {
        if (opt == OPT_HELP || opt == '?') {
            return opt == OPT_HELP ? 0 : 2;
        }
        if (what) {
            return command_usage(&cmd_whoami,
                                 "only one of --show-context, --show-server and --show-token");
        }
        what = opt;
    }
    if (command_expect_end(&cmd_whoami, argc, argv) != -1) {
        return 2;
    }
    if (what == 't' || what == 'c') {
        return print_config(&s, what);
    }
    int status = session_open(&s);
    if (status == 0 && what == OPT_SHOW_SERVER) {
        puts(api_client_server(s.client));
        return 0;
    }
    return status ? status : print_user(&s);
}

const struct command cmd_whoami = {.name = "whoami",
                                   .summary = "the user that the server takes the caller for",
                                   .help = help,
                                   .options = options,
                                   .shared = session_options,
                                   .run = run};
