/* SPDX-License-Identifier: Apache-2.0 */
/* tenet login: gets a token of a server's OAuth server, and writes it into the kubeconfig. */
#include "base/mem.h"
#include "cli/login/identity.h"
#include "cli/login/oauth.h"
#include "cli/login/projects.h"
#include "cli/login/terminal.h"
#include "cli/session.h"
#include "cli/shown.h"
#include "client/kubeconfig_edit.h"
#include "net/loop/process.h"

#include <stdio.h>

#define DEFAULT_SERVER "https://localhost:8443"
#define DEFAULT_PORT 8443
#define CA_MAX_SIZE (1u << 20)
#define MAX_LISTED 50 /* More projects are counted, not listed. */

static const char help[] =
    "usage: tenet login [URL] [-u USER] [-p PASSWORD] [OPTIONS]\n"
    "       tenet login [URL] --token TOKEN\n"
    "       tenet login [URL] --web\n"
    "\n"
    "Logs in to a server: its OAuth server proves the name and the password, and gives a token,\n"
    "which is written into the kubeconfig for this and later commands, also of kubectl. Without\n"
    "a URL it is the server of the kubeconfig; what is not given is asked for.\n";

enum { OPT_TOKEN = OPT_FIRST_FREE, OPT_CA, OPT_INSECURE, OPT_CALLBACK_PORT };

static const struct command_option options[] = {
    {"username", 'u', "USER", "the user's name; asked for when it is needed"},
    {"password", 'p', "PASSWORD", "the password; asked for without echo when it is needed", NULL,
     "Other users of the machine may see the command line: rather let the command ask, or give the "
     "password on standard input."},
    {"token", OPT_TOKEN, "TOKEN", "a token, in place of name and password"},
    {"web", 'w', NULL, "logs in by the browser: for providers that take no password here"},
    {"callback-port", OPT_CALLBACK_PORT, "PORT",
     "the port of 127.0.0.1 to which the browser returns; default: any"},
    {"certificate-authority", OPT_CA, "FILE", "certificates of the server's authorities, as PEM",
     COMPLETE_FILE},
    {"insecure-skip-tls-verify", OPT_INSECURE, "[=false]",
     "the server's certificate is not verified: others on the way can read what is sent"},
    {"namespace", 'n', "NS", "the project to use afterwards", COMPLETE_NAMESPACE},
    {"kubeconfig", OPT_KUBECONFIG, "FILE", "default: $KUBECONFIG, then ~/.kube/config",
     COMPLETE_FILE},
    {"server", 's', "URL", "the same as the argument"},
    {0},
};

struct login {
    const char *url, *user, *ns, *ca_file;
    char *password, *token; /* Owned; erased at the end. */
    int insecure;           /* -1: not given. */
    bool web;
    uint16_t port;
    char *path; /* Of the kubeconfig. */
    struct json *config;
    struct kubeconfig k; /* What will be written. */
    struct location at;  /* The server. */
    struct loop *loop;
    struct api_client *client;
    char *name; /* The user's name, as the server says it. */
    struct err error;
};

static void erase(char *secret)
{
    if (secret) {
        explicit_bzero(secret, strlen(secret));
    }
    free(secret);
}

static void login_done(struct login *l)
{
    erase(l->password);
    erase(l->token);
    free(l->path);
    json_free(l->config);
    kubeconfig_done(&l->k);
    location_done(&l->at);
    api_client_free(l->client);
    loop_free(l->loop);
    free(l->name);
}

/* ---- the server ---- */

/* "HOST" becomes "https://HOST:8443", and a slash at the end goes; owned. */
static char *normal_url(const char *url)
{
    bool bare = !strstr(url, "://");
    size_t size = strlen(url);
    while (size && url[size - 1] == '/') {
        size--;
    }
    bool port = memchr(url, ':', size) != NULL;
    return !bare  ? xstrndup(url, size)
           : port ? xasprintf("https://%.*s", (int) size, url)
                  : xasprintf("https://%.*s:%d", (int) size, url, DEFAULT_PORT);
}

/* The entry of the kubeconfig for the server, or of its current context; NULL: there is none. */
static const struct json *known_cluster(const struct login *l, const char *server)
{
    const struct json *item, *cluster;
    JSON_FOREACH (item, json_get(l->config, "clusters")) {
        cluster = json_get(item, "cluster");
        if (streq(json_get_text(cluster, "server"), server)) {
            return cluster;
        }
    }
    return NULL;
}

static const struct json *current_context(const struct login *l)
{
    return kubeconfig_entry(l->config, "contexts", "context",
                            json_get_text(l->config, "current-context"));
}

/* Owned URL of the server; NULL after the error was printed. */
static char *choose_server(const struct login *l)
{
    const struct json *cluster = kubeconfig_entry(l->config, "clusters", "cluster",
                                                  json_get_text(current_context(l), "cluster"));
    if (l->url) {
        return normal_url(l->url);
    }
    if (*json_get_text(cluster, "server")) {
        return normal_url(json_get_text(cluster, "server"));
    }
    if (!terminal_can_ask()) {
        session_error("no server is known: give its URL, as in \"%s login https://HOST:8443\"",
                      command_program());
        return NULL;
    }
    CLEANUP_FREE char *answer = terminal_ask("Server [" DEFAULT_SERVER "]: ");
    return normal_url(answer && *answer ? answer : DEFAULT_SERVER);
}

/* The authorities and the choice of verification: options first, then the kubeconfig. */
static int set_trust(struct login *l)
{
    CLEANUP_STRBUF struct strbuf pem = STRBUF_INIT;
    const struct json *cluster = known_cluster(l, l->k.server);
    struct err e = {0};
    if (l->ca_file) {
        if (file_read(l->ca_file, CA_MAX_SIZE, &pem, &e) < 0) {
            return session_error("--certificate-authority: %s", e.text);
        }
        l->k.ca = strbuf_steal(&pem);
    } else if (cluster && l->insecure != 1) {
        __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
        if (kubeconfig_trust_of(cluster, l->path, &k, &e) < 0) {
            return session_error("%s", e.text);
        }
        l->k.ca = TAKE(k.ca);
        l->k.server_name = TAKE(k.server_name);
        l->k.insecure = k.insecure && l->insecure != 0;
    }
    l->k.insecure |= l->insecure == 1;
    if (l->k.insecure && l->k.ca) {
        return session_error("--insecure-skip-tls-verify cannot be given beside authorities");
    }
    return 0;
}

static struct tls_client_config tls_of(const struct login *l)
{
    return (struct tls_client_config){
        .ca = l->k.ca, .server_name = l->k.server_name, .insecure = l->k.insecure};
}

static int connection_failed(const struct login *l, int r)
{
    CLEANUP_FREE char *text = shown(l->error.text);
    if (r == -ECONNREFUSED) {
        return session_error(
            "dial %s: the connection was refused - verify the address and the port "
            "of the server",
            l->k.server);
    }
    return session_error("%s", text);
}

/* The first request, by which the certificate is judged; any status will do. */
static int probe(struct login *l)
{
    struct web w = {.loop = l->loop, .tls = tls_of(l)};
    CLEANUP_WEB_ANSWER struct web_answer a = {0};
    int r = web_ask(&w, "HEAD", &l->at, NULL, NULL, &a, &l->error);
    if (r != -EKEYREJECTED) {
        return r < 0 ? connection_failed(l, r) : 0;
    }
    CLEANUP_FREE char *text = shown(l->error.text);
    if (!terminal_can_ask()) {
        return session_error("%s\nUse --certificate-authority with the server's authority, or "
                             "--insecure-skip-tls-verify to bypass the check",
                             text);
    }
    printf("The server uses a certificate signed by an unknown authority.\n"
           "(%s)\n"
           "You can bypass the certificate check, but any data you send to the server could be "
           "intercepted by others.\n",
           text);
    if (!terminal_confirm("Use insecure connections? (y/n): ")) {
        return session_error("%s", text);
    }
    putchar('\n');
    l->k.insecure = true;
    l->k.ca = (free(l->k.ca), NULL);
    return probe(l);
}

/* ---- credentials ---- */

static int ask_password(void *ctx, const char *where, const char *realm, char **ret_user,
                        char **ret_password, struct err *e)
{
    struct login *l = ctx;
    CLEANUP_FREE char *shown_realm = shown(realm);
    if (!l->user || !l->password) {
        printf(*realm ? "Authentication required for %s (%s)\n"
                      : "Authentication required for %s\n",
               where, shown_realm);
    }
    if (!l->user) {
        *ret_user = terminal_ask("Username: ");
    } else {
        *ret_user = xstrdup(l->user);
        if (!l->password) {
            printf("Username: %s\n", l->user);
        }
    }
    *ret_password = l->password ? xstrdup(l->password)
                    : *ret_user ? terminal_ask_secret("Password: ")
                                : NULL;
    if (!*ret_user || !*ret_password) {
        return err_set(e, -ECANCELED, "no name and password: give -u and -p, --token or --web");
    }
    return 0;
}

static bool trust(void *ctx, const char *where)
{
    (void) ctx;
    CLEANUP_FREE char *prompt = xasprintf(
        "The server sends you to %s, which asks for your password. Send it there? (y/n): ", where);
    return terminal_can_ask() && terminal_confirm(prompt);
}

static void open_browser(void *ctx, const char *url)
{
    (void) ctx;
    const char *const argv[] = {"xdg-open", url, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    struct err e = {0};
    pid_t pid;
    bool opened = false;
    spec.argv = argv;
    spec.new_session = true;
    if (tool_exists("xdg-open") && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"))) {
        opened = process_start(&spec, &pid, &e) == 0;
    }
    printf(opened ? "Opening login URL in the default browser: %s\n"
                  : "Open this address in a browser of this machine: %s\n",
           url);
    fflush(stdout);
}

static int login_failed(struct login *l, const struct oauth_login *o, int r)
{
    CLEANUP_FREE char *text = shown(l->error.text);
    if (r == -ENOTSUP) {
        CLEANUP_FREE char *notice = shown(o->notice ? o->notice : "");
        fflush(stdout);
        fprintf(stderr, "%s\n", notice);
        return session_error("%s: get a token there for --token, or use --web", text);
    }
    if (r == -EACCES && !l->web && str_has_prefix(text, "Login failed")) {
        printf("%s\nVerify you have provided the correct credentials.\n", text);
        return 1;
    }
    return session_error("%s", text);
}

/* Gets a token from the OAuth server. */
static int get_token(struct login *l)
{
    struct web w = {.loop = l->loop, .tls = tls_of(l)};
    struct oauth_login o = {.web = &w, .ask = ask_password, .trusts = trust, .ctx = l};
    __attribute__((cleanup(oauth_server_done))) struct oauth_server server = {0};
    int r = oauth_discover(&w, &l->at, &server, &l->error);
    if (r == 0) {
        r = l->web ? oauth_by_browser(&o, &server, l->port, open_browser, &l->k.token, &l->error)
                   : oauth_by_password(&o, &server, &l->k.token, &l->error);
    }
    int status = r < 0 ? login_failed(l, &o, r) : 0;
    free(o.notice);
    return status;
}

/* Asks who the credentials of 'k' are of. */
static int identify(struct login *l, const struct kubeconfig *k)
{
    l->client = api_client_free(l->client);
    int r = api_client_with(l->loop, k, "tenet/" TENET_VERSION, &l->client, &l->error);
    return r < 0 ? r : identity_ask(l->client, &l->name, &l->error);
}

/* Whether the context is of this server and of the user that was asked for. */
static bool fits(const struct login *l, const struct json *context)
{
    const struct json *cluster =
        kubeconfig_entry(l->config, "clusters", "cluster", json_get_text(context, "cluster"));
    const char *user = json_get_text(context, "user");
    size_t n = l->user ? strlen(l->user) : 0;
    CLEANUP_FREE char *url = normal_url(json_get_text(cluster, "server"));
    return streq(url, l->k.server) &&
           (!l->user || (strncmp(user, l->user, n) == 0 && (!user[n] || user[n] == '/')));
}

/* Tries the credentials that a context has.  True: they are good. */
static bool reuse(struct login *l, const char *context)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct err unused = {0};
    if (kubeconfig_of_context(l->config, l->path, context, &k, &unused) < 0 ||
        (!k.token && !k.cert)) {
        return false;
    }
    free(k.server);
    k.server = xstrdup(l->k.server);
    free(k.ca);
    k.ca = l->k.ca ? xstrdup(l->k.ca) : NULL;
    k.insecure = l->k.insecure;
    if (identify(l, &k) < 0 || (l->user && !streq(l->name, l->user))) {
        l->name = (free(l->name), NULL);
        return false;
    }
    l->k.token = TAKE(k.token);
    l->k.cert = TAKE(k.cert);
    l->k.key = TAKE(k.key);
    l->k.ns = TAKE(k.ns);
    printf("Logged into \"%s\" as \"%s\" using existing credentials.\n\n", l->k.server, l->name);
    return true;
}

static bool reuse_any(struct login *l)
{
    const char *current = json_get_text(l->config, "current-context");
    const struct json *item;
    if (l->password || l->web) {
        return false;
    }
    if (current_context(l) && fits(l, current_context(l)) && reuse(l, current)) {
        return true;
    }
    JSON_FOREACH (item, json_get(l->config, "contexts")) {
        const char *name = json_get_text(item, "name");
        if (!streq(name, current) && fits(l, json_get(item, "context")) && reuse(l, name)) {
            return true;
        }
    }
    return false;
}

static int prove(struct login *l)
{
    if (l->token) {
        l->k.token = TAKE(l->token);
        int r = identify(l, &l->k);
        if (r == -EPERM) {
            return session_error("The token provided is invalid or expired.");
        }
        if (r < 0) {
            return connection_failed(l, r);
        }
        printf("Logged into \"%s\" as \"%s\" using the token provided.\n\n", l->k.server, l->name);
        return 0;
    }
    if (reuse_any(l)) {
        return 0;
    }
    int status = get_token(l);
    if (status) {
        return status;
    }
    if (identify(l, &l->k) < 0) {
        CLEANUP_FREE char *text = shown(l->error.text);
        return session_error("the server gave a token, but does not take it: %s", text);
    }
    puts("Login successful.\n");
    return 0;
}

/* ---- afterwards ---- */

/* The project to use; owned; NULL: none. */
static char *choose_project(const struct login *l, const struct json *projects)
{
    const char *wanted = l->ns ? l->ns : l->k.ns ? l->k.ns : "default";
    return !json_count(projects)             ? NULL
           : projects_find(projects, wanted) ? xstrdup(wanted)
                                             : xstrdup(project_name(json_at(projects, 0)));
}

static void print_projects(const struct login *l, const struct json *projects, const char *chosen)
{
    size_t n = json_count(projects);
    const char *program = command_program();
    if (n == 1) {
        printf("You have one project on this server: \"%s\"\n\n", chosen);
    } else if (n > MAX_LISTED) {
        printf("You have access to %zu projects, the list has been suppressed. You can list all "
               "projects with '%s projects'\n\n",
               n, program);
    } else if (n) {
        printf("You have access to the following projects and can switch between them with "
               "'%s project <projectname>':\n\n",
               program);
        projects_print(projects, chosen);
        putchar('\n');
    } else if (projects_may_request(l->client)) {
        printf("You don't have any projects. You can try to create a new project, by running\n\n"
               "    %s new-project <projectname>\n\n",
               program);
    } else {
        puts("You don't have any projects. Contact your system administrator to request a "
             "project.");
    }
    if (chosen) {
        printf("Using project \"%s\".\n", chosen);
    }
}

/* The message of the day, if the administrator wrote one. */
static void print_motd(const struct login *l)
{
    CLEANUP_FREE char *path = api_path("v1", "configmaps", "openshift", "motd", NULL);
    CLEANUP(json_free) struct json *o = NULL;
    struct err unused = {0};
    if (api_request_sync(l->client, "GET", path, NULL, NULL, NULL, &o, &unused) == 0) {
        CLEANUP_FREE char *text = shown(json_get_text(json_get(o, "data"), "message"));
        if (*text) {
            puts(text);
        }
    }
}

static int change_config(void *ctx, struct json *config, struct err *e)
{
    struct login *l = ctx;
    (void) e;
    kubeconfig_set_login(config, l->name, &l->k);
    return 0;
}

static int finish(struct login *l)
{
    CLEANUP(json_free) struct json *projects = NULL;
    struct err e = {0};
    bool first = json_count(json_get(l->config, "clusters")) == 0;
    if (projects_list(l->client, &projects, &e) < 0) {
        projects = json_array(); /* A user may be allowed nothing but to log in. */
    }
    if (l->ns && !projects_find(projects, l->ns)) {
        return session_error("You are not a member of project \"%s\".", l->ns);
    }
    char *chosen = choose_project(l, projects);
    free(l->k.ns);
    l->k.ns = chosen;
    if (kubeconfig_change(l->path, change_config, l, &e) < 0) {
        return session_error("%s", e.text);
    }
    print_motd(l);
    print_projects(l, projects, chosen);
    if (first) {
        printf("Welcome! See '%s help' to get started.\n", command_program());
    }
    return 0;
}

static int execute(struct login *l)
{
    struct err e = {0};
    if (kubeconfig_read(l->path, &l->config, &e) < 0) {
        return session_error("%s", e.text);
    }
    l->k.server = choose_server(l);
    if (!l->k.server) {
        return 1;
    }
    if (web_parse(l->k.server, &l->at, &e) < 0) {
        return session_error("the server's address: %s", e.text);
    }
    if (!l->at.https && !web_is_loopback(&l->at)) {
        return session_error("%s is not HTTPS: what is sent to it, others on the way can read",
                             l->k.server);
    }
    int status = set_trust(l);
    status = status ? status : probe(l);
    status = status ? status : prove(l);
    return status ? status : finish(l);
}

/* ---- the command ---- */

static int set_option(struct login *l, int opt, const char **kubeconfig)
{
    uint64_t port;
    switch (opt) {
    case 'u':
        l->user = optarg;
        break;
    case 'p':
        erase(l->password);
        l->password = command_take_secret(optarg);
        break;
    case OPT_TOKEN:
        erase(l->token);
        l->token = command_take_secret(optarg);
        break;
    case 'w':
        l->web = true;
        break;
    case 'n':
        l->ns = optarg;
        break;
    case 's':
        l->url = optarg;
        break;
    case OPT_CA:
        l->ca_file = optarg;
        break;
    case OPT_KUBECONFIG:
        *kubeconfig = optarg;
        break;
    case OPT_CALLBACK_PORT:
        if (str_to_u64(optarg, UINT16_MAX, &port) < 0) {
            return command_usage(&cmd_login, "--callback-port \"%s\" is not a port", optarg);
        }
        l->port = (uint16_t) port;
        break;
    default:
        if (optarg && !streq(optarg, "true") && !streq(optarg, "false")) {
            return command_usage(&cmd_login, "--insecure-skip-tls-verify is true or false");
        }
        l->insecure = !optarg || streq(optarg, "true");
    }
    return 0;
}

static int check_options(const struct login *l)
{
    if (l->token && (l->user || l->password)) {
        return command_usage(&cmd_login,
                             "--token already names the user: give no --username and --password");
    }
    if (l->web && (l->user || l->password || l->token)) {
        return command_usage(&cmd_login, "--web takes no --username, --password and --token");
    }
    if (l->port && !l->web) {
        return command_usage(&cmd_login, "--callback-port is for --web");
    }
    return 0;
}

static int run(int argc, char **argv)
{
    struct login l = {.insecure = -1};
    const char *kubeconfig = NULL;
    int opt, status = 0;
    while (status == 0 && (opt = command_getopt(&cmd_login, argc, argv, NULL)) != -1) {
        if (opt == OPT_HELP || opt == '?') {
            login_done(&l);
            return opt == OPT_HELP ? 0 : 2;
        }
        status = set_option(&l, opt, &kubeconfig);
    }
    if (status == 0 && optind < argc) {
        status = l.url ? command_usage(&cmd_login, "the server is given twice") : 0;
        l.url = argv[optind++];
    }
    if (status == 0 && command_expect_end(&cmd_login, argc, argv) != -1) {
        status = 2;
    }
    status = status ? status : check_options(&l);
    if (status == 0) {
        l.loop = loop_new();
        l.path = kubeconfig_path(kubeconfig);
        status = execute(&l);
    }
    login_done(&l);
    return status;
}

const struct command cmd_login = {
    .name = "login", .summary = "log in to a server", .help = help, .options = options, .run = run};
