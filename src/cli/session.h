/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the commands that are clients of a server: options, connection, and error
 * texts.
 *
 * Common options: --kubeconfig FILE, -s/--server URL, -n/--namespace NS.  The server is that of
 * --server, else of the kubeconfig ($KUBECONFIG, then ~/.kube/config). */
#pragma once

#include "cli/command.h"
#include "client/discovery.h"

#include <getopt.h>

struct session {
    struct loop *loop;
    struct api_client *client;
    /* Options; strings are the command line's. */
    const char *kubeconfig, *server, *option_ns;
    const char *ns;          /* The namespace to use, after session_open. */
    struct discovery *kinds; /* The kinds of the server; NULL: it was not asked. */
};

/* --namespace, --kubeconfig, --server: rows for command.shared, and for longer lists of them. */
#define SESSION_OPTIONS                                                                         \
    {"namespace", 'n', "NS", "namespace; default: that of the kubeconfig", COMPLETE_NAMESPACE}, \
        {"kubeconfig", OPT_KUBECONFIG, "FILE", "default: $KUBECONFIG, then ~/.kube/config",     \
         COMPLETE_FILE},                                                                        \
    {                                                                                           \
        "server", 's', "URL", "the API server, instead of a kubeconfig"                         \
    }
extern const struct command_option session_options[];

/* Like command_getopt; handles the common options. */
int session_getopt(struct session *s, const struct command *c, int argc, char **argv,
                   const char **ret_name);
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
