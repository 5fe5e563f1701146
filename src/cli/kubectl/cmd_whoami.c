/* SPDX-License-Identifier: Apache-2.0 */
/* tenet whoami: the user as which the server takes the caller, or what the kubeconfig says. */
#include "base/mem.h"
#include "cli/login/identity.h"
#include "cli/session.h"
#include "cli/shown.h"
#include "client/kubeconfig.h"

#include <stdio.h>

static const char help[] = "usage: tenet whoami [OPTIONS]\n"
                           "\n"
                           "Prints the name of the user that the server takes the caller for.\n";

enum { OPT_SHOW_SERVER = OPT_FIRST_FREE, OPT_SHOW_CONSOLE };

static const struct command_option options[] = {
    {"show-context", 'c', NULL, "prints the current context of the kubeconfig instead"},
    {"show-console", OPT_SHOW_CONSOLE, NULL, "prints the address of the web console instead"},
    {"show-server", OPT_SHOW_SERVER, NULL, "prints the server's URL instead"},
    {"show-token", 't', NULL, "prints the token of the kubeconfig instead"},
    {0},
};

static int print_user(struct session *s)
{
    CLEANUP_FREE char *name = NULL;
    struct err e = {0};
    if (identity_ask(s->client, &name, &e) < 0) {
        return e.code == -EPROTO ? session_error("%s", e.text) : session_fail(s, &e, NULL);
    }
    CLEANUP_FREE char *harmless = shown(name);
    puts(harmless);
    return 0;
}

/* Prints the address of the web console; a cluster that tells none has it at the API server. */
static int print_console(struct session *s)
{
    CLEANUP_FREE char *path =
        api_path("v1", "configmaps", "openshift-config-managed", "console-public", NULL);
    CLEANUP(json_free) struct json *o = NULL;
    struct err e = {0};
    int r = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &o, &e);
    if (r < 0 && r != -ENOENT && r != -EACCES) {
        return session_fail(s, &e, NULL);
    }
    CLEANUP_FREE char *url = shown(json_get_text(json_get(o, "data"), "consoleURL"));
    puts(*url ? url : api_client_server(s->client));
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
                                 "only one of --show-console, --show-context, --show-server and "
                                 "--show-token");
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
    return status ? status : what == OPT_SHOW_CONSOLE ? print_console(&s) : print_user(&s);
}

const struct command cmd_whoami = {.name = "whoami",
                                   .summary = "the user that the server takes the caller for",
                                   .help = help,
                                   .options = options,
                                   .shared = session_options,
                                   .run = run};
