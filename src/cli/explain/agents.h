/* SPDX-License-Identifier: Apache-2.0 */
/* The agents and the registry that the explaining commands ask: of a lab all of its nodes, else of this host.
 *
 * Agents are asked at their unix sockets (node/introspect/introspect.h), so only root can, and only on the host itself:
 * what another host would say is computed from the registry instead (cli/explain/trace.h). */
#pragma once

#include "cli/command.h"
#include "client/client.h"

#include <getopt.h>

#define AGENT_SOCKET "/run/tenet/node/agent.sock"
#define CANNOT_TELL 3 /* Exit status: nobody could be asked. */

struct agent_ref {
    char *name; /* NULL until its state was read, for this host's. */
    char *socket;
    struct json *state; /* /v1/state; NULL: it does not answer. */
    struct err error;   /* Why. */
};

struct agents {
    /* Options; strings are the command line's. */
    const char *lab, *socket, *kubeconfig, *server;
    struct loop *loop;
    struct api_client *registry; /* NULL: there is none to be found. */
    struct json *lab_status;     /* lab_status; NULL: no lab. */
    struct agent_ref *items;
    size_t n;
};

/* --lab, --socket, --kubeconfig, --server, --output: rows for command.shared. */
extern const struct command_option agents_options[];
/* As command_getopt; the common options are handled here, but for 'o'. */
int agents_getopt(struct agents *a, const struct command *c, int argc, char **argv);

/* Finds them and reads the state of each; an agent that does not answer is no error.  0, or the exit status 3
 * after the error was printed. */
int agents_open(struct agents *a);
/* The same; and one that has no agent of 'node' (NULL: any will do) is such an error. */
int agents_open_with(struct agents *a, const char *node);
/* That, and then 'fn' for each, or for that of 'node': it prints, or, for programs (json), appends to 'all', which is
 * printed in the end.  Returns the exit status: the worst that 'fn' returned. */
int agents_show(struct agents *a, const char *node, bool json,
                int (*fn)(void *ctx, struct agents *a, const struct agent_ref *agent,
                          struct json *all),
                void *ctx);
void agents_done(struct agents *a);
#define CLEANUP_AGENTS __attribute__((cleanup(agents_done)))

/* GET of 'path' from an agent.  The error has the agent's own words. */
int agents_get(struct agents *a, const char *socket, const char *path, struct json **ret,
               struct err *e);
/* By the node's name, or by its address (0: any); NULL. */
struct agent_ref *agents_find(const struct agents *a, const char *node, const char *host_ip);
/* GET from the registry; -ENOTCONN: there is none. */
int agents_registry_get(const struct agents *a, const char *api_version, const char *plural,
                        const char *ns, const char *name, struct json **ret, struct err *e);
