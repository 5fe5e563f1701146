/* SPDX-License-Identifier: Apache-2.0 */
/* tenet logout: ends the token of the session, at the server and in the kubeconfig. */
#include "base/mem.h"
#include "cli/login/identity.h"
#include "cli/login/oauth.h"
#include "cli/session.h"
#include "cli/shown.h"
#include "client/kubeconfig_edit.h"

#include <stdio.h>

#define OAUTH_API "oauth.openshift.io/v1"

static const char help[] =
    "usage: tenet logout [OPTIONS]\n"
    "\n"
    "Ends the session: the server forgets the token, and the kubeconfig loses it. Copies of the\n"
    "token are worthless afterwards. The server and its certificate stay in the kubeconfig.\n";

/* Deletes the token's object: by its hashed name, or on a server without these names by the token
 * itself.  -ENOENT: the server has no such object. */
static int delete_token(struct session *s, const char *token, struct err *e)
{
    CLEANUP_FREE char *name = oauth_token_name(token);
    CLEANUP_FREE char *own =
        api_path(OAUTH_API, "useroauthaccesstokens", NULL, name ? name : token, NULL);
    CLEANUP_FREE char *any =
        api_path(OAUTH_API, "oauthaccesstokens", NULL, name ? name : token, NULL);
    int r = api_request_sync(s->client, "DELETE", own, NULL, NULL, NULL, NULL, e);
    if (r == -ENOENT || r == -EACCES) {
        struct err other = {0};
        r = api_request_sync(s->client, "DELETE", any, NULL, NULL, NULL, NULL, &other);
        *e = r < 0 ? other : *e;
    }
    return r;
}

/* Takes the token out of each user entry that has it. */
static int forget(void *ctx, struct json *config, struct err *e)
{
    const char *token = ctx;
    struct json *item;
    (void) e;
    JSON_FOREACH (item, json_get(config, "users")) {
        struct json *user = json_get(item, "user");
        if (streq(json_get_text(user, "token"), token)) {
            json_remove(user, "token");
        }
    }
    return 0;
}

static int execute(struct session *s, const struct kubeconfig *k)
{
    CLEANUP_FREE char *name = NULL, *path = kubeconfig_path(s->kubeconfig);
    struct err e = {0};
    int r = identity_ask(s->client, &name, &e);
    if (r < 0 && r != -EPERM) {
        return session_fail(s, &e, NULL);
    }
    /* A token that the server no longer takes is gone already. */
    if (r == 0 && (r = delete_token(s, k->token, &e)) < 0 && r != -ENOENT) {
        return session_fail(s, &e, "the token is still valid");
    }
    if (r == -ENOENT) {
        fprintf(stderr,
                "warning: the server keeps no object for this token: it stays valid until it "
                "ends by itself\n");
    }
    if (kubeconfig_change(path, forget, k->token, &e) < 0) {
        return session_error("%s", e.text);
    }
    CLEANUP_FREE char *harmless = shown(name ? name : "");
    printf(name ? "Logged \"%s\" out on \"%s\"\n" : "The session%s on \"%s\" had ended already\n",
           harmless, k->server);
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct err e = {0};
    int opt = session_getopt(&s, &cmd_logout, argc, argv, NULL);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    if (command_expect_end(&cmd_logout, argc, argv) != -1) {
        return 2;
    }
    if (s.server) {
        return command_usage(&cmd_logout, "logout is for the server of the kubeconfig");
    }
    int r = session_load(&s, &k, &e);
    if (r < 0) {
        return session_error("%s", e.text);
    }
    if (!k.token) {
        return session_error("You must have a token in order to logout.");
    }
    int status = session_open(&s);
    status = status ? status : execute(&s, &k);
    explicit_bzero(k.token, strlen(k.token));
    return status;
}

const struct command cmd_logout = {.name = "logout",
                                   .summary = "end the session at the server",
                                   .help = help,
                                   .shared = session_options,
                                   .run = run};
