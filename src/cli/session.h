/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the commands that are clients of a server: options, connection, and error
 * texts.
 *
 * Common options: --kubeconfig FILE, -s/--server URL, -n/--namespace NS, --context NAME,
 * --token TOKEN, --as USER and --as-group GROUP.  The server is that of
 * --server, else of the kubeconfig ($KUBECONFIG, then ~/.kube/config). */
#pragma once

#include "cli/command.h"
#include "client/discovery.h"
#include "client/kubeconfig.h"

#include <getopt.h>

struct session {
    struct loop *loop;
    struct api_client *client;
    /* Options; strings are the command line's. */
    const char *kubeconfig, *server, *option_ns, *context, *as;
    char *token;            /* Owned. */
    struct json *as_groups; /* An array of the groups of --as-group; owned; NULL: none. */
    unsigned loglevel;
    bool has_token;          /* The credentials are a token. */
    const char *ns;          /* The namespace to use, after session_open. */
    struct discovery *kinds; /* The kinds of the server; NULL: it was not asked. */
};

/* --namespace, --kubeconfig, --server, --context, --token, --as, --as-group, --loglevel: rows for
 * command.shared, and for longer lists of them. */
#define SESSION_OPTIONS                                                                         \
    {"namespace", 'n', "NS", "namespace; default: that of the kubeconfig", COMPLETE_NAMESPACE}, \
        {"kubeconfig", OPT_KUBECONFIG, "FILE", "default: $KUBECONFIG, then ~/.kube/config",     \
         COMPLETE_FILE},                                                                        \
        {"server", 's', "URL", "the API server, instead of a kubeconfig"},                      \
        {"context", OPT_CONTEXT, "NAME", "a context of the kubeconfig, not the current one"},   \
        {"token", OPT_BEARER, "TOKEN", "the user's token, instead of the kubeconfig's"},        \
        {"as", OPT_AS, "USER", "acts as this user, if allowed to impersonate"},                 \
        {"as-group", OPT_AS_GROUP, "GROUP", "a group of the user of --as; may be repeated"},    \
    {                                                                                           \
        "loglevel", OPT_LOGLEVEL, "LEVEL",                                                      \
            "0 to 10; from 6 on each request is written to standard error"                      \
    }
extern const struct command_option session_options[];

/* Like command_getopt; handles the common options. */
int session_getopt(struct session *s, const struct command *c, int argc, char **argv,
                   const char **ret_name);
/* Reads the kubeconfig of the session, with the values of its options.  'ret' as of
 * kubeconfig_load. */
int session_load(const struct session *s, struct kubeconfig *ret, struct err *e);
/* Prepares the connection; sends nothing yet.  Returns 0, or the exit status after the error was
 * printed. */
int session_open(struct session *s);
void session_done(struct session *s);
#define CLEANUP_SESSION __attribute__((cleanup(session_done)))

/* Prints a request's error 'e' like kubectl: "Error from server (NotFound): nodes "x" not found".
 * 'context' (may be NULL) goes before the server's text. Returns 1. */
int session_fail(const struct session *s, const struct err *e, const char *context);
/* Prints "error: TEXT"; returns 1. */
int session_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Pure: the line that session_fail prints. */
void session_error_text(const struct err *e, const char *server, const char *context,
                        struct strbuf *out);
