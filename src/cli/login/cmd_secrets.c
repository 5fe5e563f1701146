/* SPDX-License-Identifier: Apache-2.0 */
/* tenet secrets: secrets of the kinds that oc makes, and links of service accounts to them. */
#include "base/mem.h"
#include "cli/login/secret_kinds.h"
#include "cli/login/terminal.h"
#include "cli/session.h"
#include "net/loop/process.h"

#include <stdio.h>

#define MAX_SECRET (1u << 20) /* Bytes of a Secret's values, as Kubernetes. */
#define MAX_ATTEMPTS 5

static const char help[] =
    "usage: tenet secrets link ACCOUNT SECRET... [--for pull,mount]\n"
    "       tenet secrets unlink ACCOUNT SECRET...\n"
    "       tenet secrets new NAME [KEY=]FILE... [--type TYPE]\n"
    "       tenet secrets new-dockercfg NAME --docker-server HOST --docker-username USER\n"
    "                 (--docker-password PASSWORD | --prompt) [--docker-email ADDRESS]\n"
    "       tenet secrets new-basicauth NAME [--username USER] (--password PASSWORD | --prompt)\n"
    "                 [--ca-cert FILE] [--gitconfig FILE]\n"
    "       tenet secrets new-sshauth NAME --ssh-privatekey FILE [--ca-cert FILE] [--gitconfig "
    "FILE]\n"
    "\n"
    "Makes secrets, and says which of them pods of a service account may mount, or pull images\n"
    "with. \"add\" is another word for \"link\".\n";

enum {
    OPT_FOR = OPT_FIRST_FREE,
    OPT_TYPE,
    OPT_SERVER,
    OPT_USER,
    OPT_PASSWORD,
    OPT_EMAIL,
    OPT_CA,
    OPT_GITCONFIG,
    OPT_KEY,
    OPT_PROMPT
};

static const struct command_option options[] = {
    {"for", OPT_FOR, "USE[,USE]", "what a link is for: pull, mount, or both; default: mount",
     "pull mount pull,mount"},
    {"type", OPT_TYPE, "TYPE", "the secret's type; default: Opaque"},
    {"docker-server", OPT_SERVER, "HOST", "the registry",
     .detail = "default: https://index.docker.io/v1/"},
    {"docker-username", OPT_USER, "USER", "the user at the registry"},
    {"docker-password", OPT_PASSWORD, "PASSWORD", "the user's password at the registry"},
    {"docker-email", OPT_EMAIL, "ADDRESS", "the user's mail address, which some registries ask"},
    {"username", OPT_USER, "USER", "the user at the Git server"},
    {"password", OPT_PASSWORD, "PASSWORD", "the user's password or token at the Git server"},
    {"prompt", OPT_PROMPT, NULL, "asks for the password at the terminal"},
    {"ssh-privatekey", OPT_KEY, "FILE", "the private key for SSH", COMPLETE_FILE},
    {"ca-cert", OPT_CA, "FILE", "certificates of authorities for the Git server", COMPLETE_FILE},
    {"gitconfig", OPT_GITCONFIG, "FILE", "settings of Git", COMPLETE_FILE},
    {0},
};

struct secrets {
    struct session s;
    const char *type, *server, *user, *email, *ca, *gitconfig, *key;
    char *password; /* Owned. */
    bool pull, mount, prompt;
    unsigned given; /* A bit for each option, by its number from OPT_FOR on. */
};

/* ---- links ---- */

static bool change(const struct secrets *q, struct json *account, bool links, const char *name)
{
    bool changed = false;
    if (!links) {
        changed = secret_unlink(account, "secrets", name);
        return secret_unlink(account, "imagePullSecrets", name) || changed;
    }
    if (q->pull) {
        changed = secret_link(account, "imagePullSecrets", name);
    }
    if (q->mount || !q->pull) {
        changed = secret_link(account, "secrets", name) || changed;
    }
    return changed;
}

/* A link to a secret that does not exist would do nothing, and no user would notice. */
static int find_secrets(struct secrets *q, int n, char **names)
{
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *path = api_path("v1", "secrets", q->s.ns, names[i], NULL);
        struct err e = {0};
        if (api_request_sync(q->s.client, "GET", path, NULL, NULL, NULL, NULL, &e) < 0) {
            return session_fail(&q->s, &e, NULL);
        }
    }
    return 0;
}

static int run_link(struct secrets *q, bool links, int n, char **args)
{
    int r = -ESTALE, status = session_open(&q->s);
    status = status || !links ? status : find_secrets(q, n - 1, args + 1);
    if (status) {
        return status;
    }
    struct err e = {0};
    CLEANUP_FREE char *path = api_path("v1", "serviceaccounts", q->s.ns, args[0], NULL);
    for (int i = 0; r == -ESTALE && i < MAX_ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *account = NULL;
        bool changed = false;
        e = (struct err){0};
        r = api_request_sync(q->s.client, "GET", path, NULL, NULL, NULL, &account, &e);
        for (int k = 1; r == 0 && k < n; k++) {
            changed |= change(q, account, links, args[k]);
        }
        if (changed) {
            r = api_request_sync(q->s.client, "PUT", path, NULL, NULL, account, NULL, &e);
        } else if (r == 0 && !links) {
            return session_error("the service account %s has no link to %s", args[0], args[1]);
        }
    }
    return r < 0 ? session_fail(&q->s, &e, NULL) : 0;
}

/* ---- new secrets ---- */

static int add_file(struct json *secret, const char *key, const char *path)
{
    struct strbuf b = STRBUF_INIT_MAX(MAX_SECRET + 1);
    struct err e = {0};
    int r = file_read(path, MAX_SECRET, &b, &e);
    if (r == 0) {
        secret_add(secret, key, b.data ? b.data : "", b.size);
    }
    if (b.data) {
        explicit_bzero(b.data, b.size);
    }
    strbuf_done(&b);
    return r < 0 ? session_error("%s", e.text) : 0;
}

static int add_optional(struct json *secret, const char *key, const char *path)
{
    return path ? add_file(secret, key, path) : 0;
}

/* "FILE" has the file's name as its key. */
static int add_argument(struct json *secret, char *text)
{
    char *equals = strchr(text, '='), *slash = strrchr(text, '/');
    const char *path = equals ? equals + 1 : text;
    CLEANUP_FREE char *key =
        equals ? xstrndup(text, (size_t) (equals - text)) : xstrdup(slash ? slash + 1 : text);
    if (json_get(json_get(secret, "data"), key)) {
        return session_error("the key %s is given twice", key);
    }
    return add_file(secret, key, path);
}

static int read_password(struct secrets *q)
{
    if (!q->password && q->prompt) {
        q->password = terminal_ask_secret("Password: ");
    }
    return q->password && *q->password ? 0 : session_error("the password is missing");
}

static int store(struct secrets *q, const struct json *secret)
{
    int status = session_open(&q->s);
    struct err e = {0};
    if (status) {
        return status;
    }
    CLEANUP_FREE char *path = api_path("v1", "secrets", q->s.ns, NULL, NULL);
    if (api_request_sync(q->s.client, "POST", path, NULL, NULL, secret, NULL, &e) < 0) {
        return session_fail(&q->s, &e, NULL);
    }
    printf("secret/%s\n", json_get_text(json_get(secret, "metadata"), "name"));
    return 0;
}

static int run_new(struct secrets *q, int n, char **args)
{
    CLEANUP(json_free) struct json *secret = secret_new(args[0], q->type ? q->type : "Opaque");
    int status = 0;
    for (int i = 1; status == 0 && i < n; i++) {
        status = add_argument(secret, args[i]);
    }
    return status ? status : store(q, secret);
}

static int run_dockercfg(struct secrets *q, const char *name)
{
    CLEANUP(json_free) struct json *secret = secret_new(name, "kubernetes.io/dockercfg");
    if (!q->user) {
        return command_usage(&cmd_secrets, "new-dockercfg needs --docker-username");
    }
    int status = read_password(q);
    if (status == 0) {
        secret_add_dockercfg(secret, q->server ? q->server : "https://index.docker.io/v1/", q->user,
                             q->password, q->email ? q->email : "");
        status = store(q, secret);
    }
    return status;
}

static int run_basicauth(struct secrets *q, const char *name)
{
    CLEANUP(json_free) struct json *secret = secret_new(name, "kubernetes.io/basic-auth");
    int status = read_password(q);
    if (status == 0) {
        secret_add(secret, "password", q->password, strlen(q->password));
        if (q->user) {
            secret_add(secret, "username", q->user, strlen(q->user));
        }
        status = add_optional(secret, "ca.crt", q->ca);
    }
    status = status ? status : add_optional(secret, ".gitconfig", q->gitconfig);
    return status ? status : store(q, secret);
}

static int run_sshauth(struct secrets *q, const char *name)
{
    CLEANUP(json_free) struct json *secret = secret_new(name, "kubernetes.io/ssh-auth");
    if (!q->key) {
        return command_usage(&cmd_secrets, "new-sshauth needs --ssh-privatekey");
    }
    int status = add_file(secret, "ssh-privatekey", q->key);
    status = status ? status : add_optional(secret, "ca.crt", q->ca);
    status = status ? status : add_optional(secret, ".gitconfig", q->gitconfig);
    return status ? status : store(q, secret);
}

/* ---- the command ---- */

enum action { LINK, UNLINK, NEW, DOCKERCFG, BASICAUTH, SSHAUTH };

#define BIT(option) (1u << ((option) -OPT_FOR))

static const struct {
    const char *name;
    enum action action;
    int least, most; /* The number of arguments; 'most' 0: any. */
    unsigned takes;  /* Its options. */
    const char *needs;
} actions[] = {
    {"link", LINK, 2, 0, BIT(OPT_FOR), "a service account and secrets"},
    {"add", LINK, 2, 0, BIT(OPT_FOR), "a service account and secrets"},
    {"unlink", UNLINK, 2, 0, 0, "a service account and secrets"},
    {"new", NEW, 2, 0, BIT(OPT_TYPE), "a name and files"},
    {"new-dockercfg", DOCKERCFG, 1, 1,
     BIT(OPT_SERVER) | BIT(OPT_USER) | BIT(OPT_PASSWORD) | BIT(OPT_EMAIL) | BIT(OPT_PROMPT),
     "a name"},
    {"new-basicauth", BASICAUTH, 1, 1,
     BIT(OPT_USER) | BIT(OPT_PASSWORD) | BIT(OPT_PROMPT) | BIT(OPT_CA) | BIT(OPT_GITCONFIG),
     "a name"},
    {"new-sshauth", SSHAUTH, 1, 1, BIT(OPT_KEY) | BIT(OPT_CA) | BIT(OPT_GITCONFIG), "a name"},
};

static int execute(struct secrets *q, int n, char **args)
{
    size_t i = 0;
    if (n == 0) {
        return command_usage(&cmd_secrets, "a command is missing");
    }
    while (i < ARRAY_SIZE(actions) && !streq(actions[i].name, args[0])) {
        i++;
    }
    if (i == ARRAY_SIZE(actions)) {
        return command_usage(&cmd_secrets, "unknown command \"%s\"", args[0]);
    }
    n--;
    args++;
    if (n < actions[i].least) {
        return command_usage(&cmd_secrets, "%s needs %s", actions[i].name, actions[i].needs);
    }
    if (actions[i].most && n > actions[i].most) {
        return command_usage(&cmd_secrets, "unexpected argument \"%s\"", args[actions[i].most]);
    }
    for (const struct command_option *o = options; o->name; o++) {
        if (q->given & ~actions[i].takes & BIT(o->id)) {
            return command_usage(&cmd_secrets, "%s takes no --%s", actions[i].name, o->name);
        }
    }
    switch (actions[i].action) {
    case LINK:
    case UNLINK:
        return run_link(q, actions[i].action == LINK, n, args);
    case NEW:
        return run_new(q, n, args);
    case DOCKERCFG:
        return run_dockercfg(q, args[0]);
    case BASICAUTH:
        return run_basicauth(q, args[0]);
    default:
        return run_sshauth(q, args[0]);
    }
}

static int read_uses(struct secrets *q, const char *text)
{
    bool both = streq(text, "pull,mount") || streq(text, "mount,pull");
    q->pull = both || streq(text, "pull");
    q->mount = both || streq(text, "mount");
    return q->pull || q->mount
               ? 0
               : command_usage(&cmd_secrets, "--for \"%s\" is not pull, mount or both", text);
}

static int read_option(struct secrets *q, int opt)
{
    const char **const texts[] = {
        [OPT_TYPE - OPT_FOR] = &q->type, [OPT_SERVER - OPT_FOR] = &q->server,
        [OPT_USER - OPT_FOR] = &q->user, [OPT_EMAIL - OPT_FOR] = &q->email,
        [OPT_CA - OPT_FOR] = &q->ca,     [OPT_GITCONFIG - OPT_FOR] = &q->gitconfig,
        [OPT_KEY - OPT_FOR] = &q->key};
    q->given |= BIT(opt);
    if (opt == OPT_FOR) {
        return read_uses(q, optarg);
    }
    if (opt == OPT_PROMPT) {
        q->prompt = true;
    } else if (opt == OPT_PASSWORD) {
        free(q->password);
        q->password = command_take_secret(optarg);
    } else {
        *texts[opt - OPT_FOR] = optarg;
    }
    return 0;
}

static int run(int argc, char **argv)
{
    struct secrets q = {0};
    int opt, status = 0;
    while (status == 0 && (opt = session_getopt(&q.s, &cmd_secrets, argc, argv, NULL)) != -1) {
        if (opt == OPT_HELP || opt == '?') {
            session_done(&q.s);
            return opt == OPT_HELP ? 0 : 2;
        }
        status = read_option(&q, opt);
    }
    status = status ? status : execute(&q, argc - optind, argv + optind);
    if (q.password) {
        explicit_bzero(q.password, strlen(q.password));
    }
    free(q.password);
    session_done(&q.s);
    return status;
}

const struct command cmd_secrets = {.name = "secrets",
                                    .summary = "make secrets, and link service accounts to them",
                                    .help = help,
                                    .options = options,
                                    .shared = session_options,
                                    .complete =
                                        "link unlink new new-dockercfg new-basicauth new-sshauth",
                                    .run = run};
