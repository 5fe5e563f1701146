/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include <stdio.h>
#include <unistd.h>

#define USER_AGENT "tenet/" TENET_VERSION

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
        default:
            return opt;
        }
    }
}

int session_open(struct session *s)
{
    struct err e = {0};
    s->loop = loop_new();
    int r = s->server
                ? api_client_new(s->loop, s->server, USER_AGENT, &s->client, &e)
                : api_client_from_kubeconfig(s->loop, s->kubeconfig, USER_AGENT, &s->client, &e);
    if (r < 0) {
        return session_error("%s", e.text);
    }
    s->ns = s->option_ns ? s->option_ns : api_client_namespace(s->client);
    return 0;
}

void session_done(struct session *s)
{
    s->kinds = discovery_free(s->kinds);
    s->client = api_client_free(s->client);
    s->loop = loop_free(s->loop);
}

int session_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(stdout);
    fputs("error: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
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
    fflush(stdout);
    fprintf(stderr, "%s\n", strbuf_cstr(&text));
    return 1;
}
