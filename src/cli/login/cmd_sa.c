/* SPDX-License-Identifier: Apache-2.0 */
/* tenet sa: tokens of service accounts, and kubeconfigs with them. */
#include "base/base64.h"
#include "base/mem.h"
#include "cli/login/sa_token.h"
#include "client/kubeconfig_edit.h"
#include "wire/yaml.h"

#include <stdio.h>

#define TOKEN_TYPE "kubernetes.io/service-account-token"
#define ACCOUNT_NOTE "kubernetes.io/service-account.name"

static const char help[] =
    "usage: tenet sa get-token ACCOUNT\n"
    "       tenet sa new-token ACCOUNT [--duration SECONDS]\n"
    "       tenet sa create-kubeconfig ACCOUNT [--duration SECONDS]\n"
    "\n"
    "Tokens of service accounts of the project, on standard output.\n"
    "\n"
    "  get-token           the token of a secret of the account, which has no end\n"
    "  new-token           a new token, which ends by itself\n"
    "  create-kubeconfig   a kubeconfig with the token of a secret, else with a new one\n";

enum { OPT_DURATION = OPT_FIRST_FREE };

static const struct command_option options[] = {
    {"duration", OPT_DURATION, "SECONDS", "when a new token ends; default: as the server sets it"},
    {0},
};

/* Reads the token of a secret of the account.  -ENOENT: it has none. */
static int stored_token(struct session *s, const char *account, char **ret, struct err *e)
{
    CLEANUP_FREE char *path = api_path("v1", "secrets", s->ns, NULL, NULL);
    CLEANUP(json_free) struct json *list = NULL;
    const struct json *item;
    int r = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &list, e);
    if (r < 0) {
        return r;
    }
    JSON_FOREACH (item, json_get(list, "items")) {
        const char *token = json_get_text(json_get(item, "data"), "token");
        const struct json *notes = json_path(item, "metadata", "annotations", NULL);
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        if (streq(json_get_text(item, "type"), TOKEN_TYPE) &&
            streq(json_get_text(notes, ACCOUNT_NOTE), account) && *token &&
            base64_decode(token, strlen(token), &text) == 0) {
            *ret = strbuf_steal(&text);
            return 0;
        }
    }
    return err_set(e, -ENOENT,
                   "could not find a service account token for service account \"%s\": a secret of "
                   "type " TOKEN_TYPE " makes one, or use: %s sa new-token %s",
                   account, command_program(), account);
}

static int print_kubeconfig(const struct session *s, const char *account, char *token)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    CLEANUP(json_free) struct json *config = json_object();
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct err e = {0};
    if (session_load(s, &k, &e) < 0) {
        return session_error("%s", e.text);
    }
    /* The server is the session's, and the credentials are the account's alone. */
    struct kubeconfig made = {.server = k.server,
                              .ca = k.ca,
                              .server_name = k.server_name,
                              .insecure = k.insecure,
                              .token = token,
                              .ns = (char *) s->ns};
    kubeconfig_set_login(config, account, &made);
    yaml_write(config, &text);
    fwrite(strbuf_cstr(&text), 1, text.size, stdout);
    return 0;
}

static int execute(struct session *s, const char *action, const char *account, uint64_t seconds)
{
    CLEANUP_FREE char *token = NULL;
    bool stored = !streq(action, "new-token"), config = streq(action, "create-kubeconfig");
    struct err e = {0};
    int r = stored ? stored_token(s, account, &token, &e) : -ENOENT;
    if (!stored || (config && r == -ENOENT)) {
        r = sa_token_request(s, account, seconds, NULL, &token, &e);
    } else if (r == -ENOENT) {
        return session_error("%s", e.text);
    }
    if (r < 0) {
        return session_fail(s, &e, NULL);
    }
    int status = config ? print_kubeconfig(s, account, token) : (puts(token), 0);
    explicit_bzero(token, strlen(token));
    return status;
}

static int run(int argc, char **argv)
{
    static const char *const actions[] = {"get-token", "new-token", "create-kubeconfig"};
    CLEANUP_SESSION struct session s = {0};
    uint64_t seconds = 0;
    size_t i = 0;
    int opt;
    while ((opt = session_getopt(&s, &cmd_sa, argc, argv, NULL)) != -1) {
        if (opt != OPT_DURATION) {
            return opt == OPT_HELP ? 0 : 2;
        }
        if (str_to_u64(optarg, SA_TOKEN_MAX_SECONDS, &seconds) < 0 || !seconds) {
            return command_usage(&cmd_sa, "--duration \"%s\" is not a number of seconds", optarg);
        }
    }
    if (optind == argc) {
        return command_usage(&cmd_sa, "a command is missing");
    }
    const char *action = argv[optind++];
    while (i < ARRAY_SIZE(actions) && !streq(actions[i], action)) {
        i++;
    }
    if (i == ARRAY_SIZE(actions)) {
        return command_usage(&cmd_sa, "unknown command \"%s\"", action);
    }
    if (optind == argc) {
        return command_usage(&cmd_sa, "%s needs a service account", action);
    }
    if (seconds && i == 0) {
        return command_usage(&cmd_sa, "--duration is for new tokens");
    }
    const char *account = argv[optind++];
    if (command_expect_end(&cmd_sa, argc, argv) != -1) {
        return 2;
    }
    int status = session_open(&s);
    return status ? status : execute(&s, action, account, seconds);
}

const struct command cmd_sa = {.name = "sa",
                               .summary = "tokens of service accounts",
                               .help = help,
                               .options = options,
                               .shared = session_options,
                               .complete = "get-token new-token create-kubeconfig @serviceaccounts",
                               .run = run};
