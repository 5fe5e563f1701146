/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include "base/mem.h"
#include "cli/shown.h"
#include "client/kubeconfig_edit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define USER_AGENT "tenet/" TENET_VERSION
#define MAX_LOGLEVEL 10u
#define REQUESTS_LOGLEVEL 6u /* kubectl's level of a line for each request. */

const struct command_option session_options[] = {SESSION_OPTIONS, {0}};

int session_getopt(struct session *s, const struct command *c, int argc, char **argv,
                   const char **ret_name)
{
    for (;;) {
        int opt = command_getopt(c, argc, argv, ret_name);
        switch (opt) {
        case 's':
            s->server = optarg;
            break;
        case 'n':
            s->option_ns = optarg;
            break;
        case OPT_KUBECONFIG:
            s->kubeconfig = optarg;
            break;
        case OPT_CONTEXT:
            s->context = optarg;
            break;
        case OPT_BEARER:
            free(s->token);
            s->token = command_take_secret(optarg);
            break;
        case OPT_AS:
            s->as = optarg;
            break;
        case OPT_AS_GROUP:
            s->as_groups = s->as_groups ? s->as_groups : json_array();
            json_append(s->as_groups, json_string(optarg));
            break;
        case OPT_LOGLEVEL: {
            uint64_t level;
            if (str_to_u64(optarg, MAX_LOGLEVEL, &level) < 0) {
                (void) command_usage(c, "--loglevel \"%s\" is not a number from 0 to %u", optarg,
                                     MAX_LOGLEVEL);
                return '?';
            }
            s->loglevel = (unsigned) level;
            break;
        }
        default:
            return opt;
        }
    }
}

/* Without a kubeconfig, the user has to be told what makes one. */
static int no_config(const struct session *s, struct err *e)
{
    CLEANUP_FREE char *path = kubeconfig_path(s->kubeconfig);
    return err_set(
        e, -ENOENT,
        "no server is known: there is no kubeconfig %s. Log in with: %s login URL, or give "
        "--server or --kubeconfig",
        path, command_program());
}

int session_load(const struct session *s, struct kubeconfig *ret, struct err *e)
{
    CLEANUP_FREE char *path = kubeconfig_path(s->kubeconfig);
    CLEANUP(json_free) struct json *config = NULL;
    struct kubeconfig k = {0};
    if (s->server) {
        k.server = xstrdup(s->server);
    } else {
        int r = access(path, F_OK) < 0 && errno == ENOENT ? no_config(s, e) : 0;
        if (r < 0 || (r = kubeconfig_read(path, &config, e)) < 0 ||
            (r = kubeconfig_of_context(config, path, s->context, &k, e)) < 0) {
            return r;
        }
    }
    if (s->token) {
        /* The token alone: a certificate would name another user. */
        free(k.token);
        k.token = xstrdup(s->token);
        free(k.cert);
        k.cert = NULL;
        if (k.key) {
            explicit_bzero(k.key, strlen(k.key));
        }
        free(k.key);
        k.key = NULL;
    }
    *ret = k;
    return 0;
}

/* Each request then has the headers of impersonation. */
static int impersonate(struct session *s)
{
    const struct json *group;
    struct http_client *http = api_client_http(s->client);
    if (!s->as && s->as_groups) {
        return session_error("--as-group needs --as");
    }
    if (s->as) {
        http_client_add_header(http, "Impersonate-User", s->as);
    }
    JSON_FOREACH (group, s->as_groups) {
        http_client_add_header(http, "Impersonate-Group", json_get_string(group));
    }
    return 0;
}

static void print_request(const struct api_client *c, const char *method, const char *path,
                          int error, uint64_t ms)
{
    fprintf(stderr, "%s %s%s %s in %ju milliseconds\n", method, api_client_server(c), path,
            error < 0 ? strerrorname_np(-error) : "OK", (uintmax_t) ms);
}

int session_open(struct session *s)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct err e = {0};
    s->loop = loop_new();
    int r = session_load(s, &k, &e);
    r = r < 0 ? r : api_client_with(s->loop, &k, USER_AGENT, &s->client, &e);
    if (r < 0) {
        return session_error("%s", e.text);
    }
    s->has_token = k.token != NULL;
    if (s->loglevel >= REQUESTS_LOGLEVEL) {
        api_client_set_trace(s->client, print_request);
    }
    if (impersonate(s) != 0) {
        return 1;
    }
    s->ns = s->option_ns ? s->option_ns : api_client_namespace(s->client);
    return 0;
}

void session_done(struct session *s)
{
    s->kinds = discovery_free(s->kinds);
    s->client = api_client_free(s->client);
    s->loop = loop_free(s->loop);
    s->as_groups = json_free(s->as_groups);
    if (s->token) {
        explicit_bzero(s->token, strlen(s->token));
    }
    s->token = (free(s->token), NULL);
}

int session_error(const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    CLEANUP_FREE char *harmless = shown(strbuf_cstr(&text));
    fflush(stdout);
    fprintf(stderr, "error: %s\n", harmless);
    return 1;
}

/* Finds where the next cause of a list begins: ", " and then "FIELD: REASON". */
static const char *next_cause(const char *s)
{
    static const char *const reasons[] = {
        ": Required value",  ": Invalid value",     ": Forbidden",
        ": Duplicate value", ": Unsupported value", ": Too long",
        ": Too many",        ": Not found",         ": Internal error"};
    while ((s = strstr(s, ", "))) {
        s += 2;
        size_t n = strcspn(s, " :,\"");
        for (size_t i = 0; n > 0 && i < ARRAY_SIZE(reasons); i++) {
            if (str_has_prefix(s + n, reasons[i])) {
                return s;
            }
        }
    }
    return NULL;
}

/* Formats "KIND.GROUP "NAME" is invalid: [CAUSE, CAUSE]" like kubectl, one line a cause. */
static void invalid_text(const char *text, struct strbuf *out)
{
    size_t kind = strcspn(text, ". ");
    const char *rest = text + strcspn(text, " ");
    const char *causes = strstr(rest, ": [");
    size_t size = strlen(rest);
    strbuf_addf(out, "The %.*s", (int) kind, text);
    if (!causes || rest[size - 1] != ']') {
        strbuf_adds(out, rest);
        return;
    }
    strbuf_add(out, rest, (size_t) (causes - rest));
    strbuf_adds(out, ": ");
    for (const char *cause = causes + 3, *next; cause; cause = next) {
        next = next_cause(cause);
        const char *end = next ? next - 2 : rest + size - 1;
        strbuf_adds(out, "\n* ");
        strbuf_add(out, cause, (size_t) (end - cause));
    }
}

void session_error_text(const struct err *e, const char *server, const char *context,
                        struct strbuf *out)
{
    static const struct {
        int code;
        const char *reason;
    } reasons[] = {
        {-ENOENT, "NotFound"},
        {-EEXIST, "AlreadyExists"},
        {-ESTALE, "Conflict"},
        {-EACCES, "Forbidden"},
        {-EPERM, "Unauthorized"},
        {-EINVAL, "BadRequest"},
        {-EOPNOTSUPP, "MethodNotAllowed"},
    };
    const char *colon = context ? ": " : "";
    context = context ? context : "";
    /* "Node "n1" is invalid: ..." has a form of its own. */
    if (e->code == -EINVAL && strstr(e->text, "\" is invalid: ")) {
        invalid_text(e->text, out);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (e->code == reasons[i].code) {
            strbuf_addf(out, "Error from server (%s): %s%s%s", reasons[i].reason, context, colon,
                        e->text);
            return;
        }
    }
    if (e->code == -ECONNREFUSED) {
        const char *host = strstr(server, "://");
        host = host ? host + 3 : server;
        strbuf_addf(out,
                    "The connection to the server %.*s was refused - did you specify the right "
                    "host or port?",
                    (int) strcspn(host, "/"), host);
    } else if (e->code == -EAGAIN || e->code == -EPROTO) {
        strbuf_addf(out, "Error from server: %s%s%s", context, colon, e->text);
    } else {
        strbuf_addf(out, "Unable to connect to the server: %s", e->text);
    }
}

int session_fail(const struct session *s, const struct err *e, const char *context)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    session_error_text(e, api_client_server(s->client), context, &text);
    CLEANUP_FREE char *harmless = shown(strbuf_cstr(&text));
    fflush(stdout);
    fprintf(stderr, "%s\n", harmless);
    if (e->code == -EPERM) {
        fprintf(stderr, "%s: log in again with: %s login %s\n",
                s->has_token ? "The token is invalid or expired"
                             : "The server asks for credentials",
                command_program(), api_client_server(s->client));
    }
    return 1;
}
