/* SPDX-License-Identifier: Apache-2.0 */
/* tenet token: tokens by which nodes join, and the OAuth tokens of the user. */
#include "api/kind.h"
#include "base/base64.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/admin/join_command.h"
#include "cli/admin/own_tokens.h"
#include "cli/session.h"

#include <stdio.h>

#define DEFAULT_TTL_S 86400
#define MAX_TTL_S 315360000

static const char help[] =
    "usage: tenet token create [--print-join-command] [--ttl TIME] [--node NAME] [OPTIONS]\n"
    "       tenet token list [OPTIONS]\n"
    "       tenet token delete ID... [OPTIONS]\n"
    "       tenet token own [OPTIONS]\n"
    "       tenet token revoke (NAME... | --all) [OPTIONS]\n"
    "\n"
    "Bootstrap tokens: what a node shows to get its own certificate, once. \"create\" prints a "
    "new\n"
    "one.  With --print-join-command it prints the line to run on the host that is to be a node.\n"
    "With --write-kubeconfig it also writes what a node's bootstrapKubeConfig needs.\n"
    "\n"
    "\"own\" lists the user's own OAuth tokens, which logins made. \"revoke\" ends them: by their "
    "names,\n"
    "or with --all every one but that of this session.\n";

enum {
    OPT_TTL = OPT_FIRST_FREE,
    OPT_DESCRIPTION,
    OPT_WRITE,
    OPT_JOIN,
    OPT_NODE,
    OPT_USES,
    OPT_ALL
};
static const struct command_option options[] = {
    {"print-join-command", OPT_JOIN, NULL,
     "prints \"tenet setup node --join TOKEN HOST\" for one node and one hour",
     .detail = "The text has the hash of the cluster's authority, by which the node knows the "
               "master."},
    {"ttl", OPT_TTL, "TIME",
     "how long it is valid: 30m, 7d; 0: for ever; default: 24h, and 1h with --print-join-command"},
    {"node", OPT_NODE, "NAME", "the only node that may join by it; default: any"},
    {"uses", OPT_USES, "one|many",
     "whether one node may join by it or many; default: many, and one with --print-join-command",
     "one many"},
    {"description", OPT_DESCRIPTION, "TEXT", "a text for the list"},
    {"all", OPT_ALL, NULL, "revoke: all own tokens but that of this session"},
    {"write-kubeconfig", OPT_WRITE, "FILE",
     "the token, with the server and its CA of the kubeconfig in use", COMPLETE_FILE,
     .detail = "The file has mode 0600."},
    {0}};

struct token_command {
    struct session s;
    int64_t ttl_s; /* -1: the default. */
    const char *description, *write, *node, *uses;
    bool join, all;
};

/* "30m", "24h", "7d", "90s", "0" */
static int parse_ttl(const char *text, int64_t *ret)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    size_t n = strlen(text);
    int64_t value = 0;
    if (streq(text, "0")) {
        *ret = 0;
        return 0;
    }
    for (size_t i = 0; n > 1 && i < ARRAY_SIZE(units); i++) {
        CLEANUP_FREE char *number = xstrndup(text, n - 1);
        if (text[n - 1] == units[i].unit &&
            str_to_i64(number, 1, MAX_TTL_S / units[i].seconds, &value) == 0) {
            *ret = value * units[i].seconds;
            return 0;
        }
    }
    return -EINVAL;
}

static int write_kubeconfig(const struct token_command *t, const struct kubeconfig *k,
                            const char *token, struct err *e)
{
    struct kubeconfig w = {.server = k->server,
                           .ca = k->ca,
                           .server_name = k->server_name,
                           .insecure = k->insecure,
                           .token = (char *) token};
    return kubeconfig_write(t->write, "bootstrap", &w, e);
}

/* Prints the token, or the line that has it. */
static int show(const struct token_command *t, const struct kubeconfig *k, const char *token,
                struct err *e)
{
    CLEANUP_FREE char *line = NULL;
    int r = t->write ? write_kubeconfig(t, k, token, e) : 0;
    if (r == 0 && t->join) {
        r = join_command_text(k, token, &line, e);
    }
    if (r == 0) {
        puts(line ? line : token);
    }
    return r;
}

static int create(struct token_command *t)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct err e = {0};
    char token[JOIN_TOKEN_SIZE];
    if ((t->write || t->join) && t->s.server) {
        return command_usage(&cmd_token, "--%s needs a kubeconfig, not --server",
                             t->write ? "write-kubeconfig" : "print-join-command");
    }
    if ((t->write || t->join) && kubeconfig_load(t->s.kubeconfig, &k, &e) < 0) {
        return session_error("%s", e.text);
    }
    CLEANUP_FREE char *unused = NULL;
    if (t->join && join_command_text(&k, "", &unused, &e) < 0) {
        return session_error("%s", e.text);
    }
    int64_t ttl = t->ttl_s >= 0 ? t->ttl_s : t->join ? JOIN_COMMAND_TTL_S : DEFAULT_TTL_S;
    struct join_token_spec spec = {.description =
                                       t->description ? t->description : "tenet token create",
                                   .until_ms = ttl ? time_wall_ms() + ttl * 1000 : 0,
                                   .node_name = t->node,
                                   .single_use = t->uses ? streq(t->uses, "one") : t->join};
    if (join_command_token(t->s.client, &spec, token, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    int r = show(t, &k, token, &e);
    explicit_bzero(token, sizeof token);
    return r < 0 ? session_error("%s", e.text) : 0;
}

static const char *value(const struct json *secret, const char *key, struct strbuf *b)
{
    const struct json *v = json_path(secret, "data", key, NULL);
    strbuf_reset(b);
    if (json_is(v, JSON_STRING)) {
        (void) base64_decode(json_get_string(v), json_string_size(v), b);
    }
    return strbuf_cstr(b);
}

static int list(struct token_command *t)
{
    struct err e = {0};
    CLEANUP(json_free) struct json *all = NULL;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *secret;
    if (api_request_sync(t->s.client, "GET",
                         "/api/v1/namespaces/" JOIN_TOKEN_NAMESPACE
                         "/secrets?fieldSelector=type%3D" JOIN_TOKEN_TYPE,
                         NULL, NULL, NULL, &all, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    printf("%-8s %-22s %-6s %s\n", "ID", "EXPIRES", "USES", "DESCRIPTION");
    JSON_FOREACH (secret, json_get(all, "items")) {
        printf("%-8s ", value(secret, "token-id", &b));
        const char *expires = value(secret, "expiration", &b);
        printf("%-22s ", *expires ? expires : "never");
        bool single = streq(value(secret, JOIN_TOKEN_SINGLE, &b), "true");
        printf("%-6s ", !single ? "many" : *value(secret, JOIN_TOKEN_USED, &b) ? "used" : "one");
        printf("%s\n", value(secret, "description", &b));
    }
    return 0;
}

static int delete (struct token_command *t, int n, char **ids)
{
    int status = 0;
    for (int i = 0; i < n; i++) {
        struct err e = {0};
        if (!join_token_is_id(ids[i])) {
            return command_usage(&cmd_token, "\"%s\" is not a token's id", ids[i]);
        }
        CLEANUP_FREE char *name = xasprintf("bootstrap-token-%s", ids[i]);
        CLEANUP_FREE char *path = api_path("v1", "secrets", JOIN_TOKEN_NAMESPACE, name, NULL);
        if (api_request_sync(t->s.client, "DELETE", path, NULL, NULL, NULL, NULL, &e) < 0) {
            status = session_fail(&t->s, &e, NULL);
        } else {
            printf("token %s deleted\n", ids[i]);
        }
    }
    return status;
}

static void done(struct token_command *t)
{
    session_done(&t->s);
}

/* Returns 0, or 2 after what is wrong was reported. */
static int check_arguments(const struct token_command *t, const char *verb, int n, char **args)
{
    static const struct {
        const char *verb, *names; /* What follows the verb; NULL: nothing. */
    } verbs[] = {{"create", NULL},
                 {"list", NULL},
                 {"delete", "the token's ID"},
                 {"own", NULL},
                 {"revoke", "the token's name, or --all,"}};
    bool revokes = streq(verb, "revoke");
    size_t i = 0;
    while (i < ARRAY_SIZE(verbs) && !streq(verbs[i].verb, verb)) {
        i++;
    }
    if (i == ARRAY_SIZE(verbs)) {
        return command_usage(&cmd_token, "must be one of create, list, delete, own, revoke");
    }
    if (t->all && !revokes) {
        return command_usage(&cmd_token, "--all is for revoke");
    }
    if (verbs[i].names && n == 0 && !t->all) {
        return command_usage(&cmd_token, "%s: %s is missing", verb, verbs[i].names);
    }
    return n && (!verbs[i].names || t->all)
               ? command_usage(&cmd_token, "unexpected argument \"%s\"", args[0])
               : 0;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(done))) struct token_command t = {.ttl_s = -1};
    int opt;
    while ((opt = session_getopt(&t.s, &cmd_token, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_TTL:
            if (parse_ttl(optarg, &t.ttl_s) < 0) {
                return command_usage(&cmd_token, "--ttl %s is not a time such as 24h", optarg);
            }
            break;
        case OPT_DESCRIPTION:
            t.description = optarg;
            break;
        case OPT_WRITE:
            t.write = optarg;
            break;
        case OPT_JOIN:
            t.join = true;
            break;
        case OPT_ALL:
            t.all = true;
            break;
        case OPT_NODE:
            if (api_check_dns_subdomain(optarg)) {
                return command_usage(&cmd_token, "--node: \"%s\" is not a node's name: %s", optarg,
                                     api_check_dns_subdomain(optarg));
            }
            t.node = optarg;
            break;
        case OPT_USES:
            if (!streq(optarg, "one") && !streq(optarg, "many")) {
                return command_usage(&cmd_token, "--uses must be one or many, not \"%s\"", optarg);
            }
            t.uses = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    const char *verb = optind < argc ? argv[optind++] : "";
    int status = check_arguments(&t, verb, argc - optind, argv + optind);
    status = status ? status : session_open(&t.s);
    if (status != 0) {
        return status;
    }
    return streq(verb, "create")   ? create(&t)
           : streq(verb, "list")   ? list(&t)
           : streq(verb, "own")    ? own_tokens_list(&t.s)
           : streq(verb, "revoke") ? own_tokens_revoke(&t.s, argc - optind, argv + optind, t.all)
                                   : delete (&t, argc - optind, argv + optind);
}

const struct command cmd_token = {.name = "token",
                                  .summary = "tokens by which nodes join; the user's own tokens",
                                  .help = help,
                                  .options = options,
                                  .shared = session_options,
                                  .complete = "create list delete own revoke",
                                  .run = run};
