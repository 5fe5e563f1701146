/* SPDX-License-Identifier: Apache-2.0 */
/* The agents and the API server that the explaining commands ask: the agents of all nodes of a lab,
 * or else the agent of this host.
 *
 * Agents are asked at their unix sockets (node/introspect/introspect.h), so only root can ask, and
 * only on the host itself: the answer of another host's agent is computed from the registry instead
 * (cli/explain/trace.h). */
#pragma once

#include "cli/command.h"
#include "client/client.h"

#include <getopt.h>

#define AGENT_SOCKET "/run/tenet/node/agent.sock"
#define CANNOT_TELL 3 /* Exit status: no agent could be asked. */

struct agent_ref {
    char *name; /* The node's name; for this host's agent NULL until its state was read. */
    char *socket;
    struct json *state; /* The answer to /v1/state; NULL: the agent does not answer. */
    struct err error;   /* Why the agent does not answer. */
};

struct agents {
    /* Options; strings are the command line's. */
    const char *lab, *socket, *kubeconfig, *server;
    const char *node; /* NULL: all nodes. */
    bool json;
    struct loop *loop;
    struct api_client *registry; /* NULL: no API server is configured. */
    struct json *lab_status;     /* lab_status; NULL: no lab. */
    struct agent_ref *items;
    size_t n;
};

/* --lab, --socket, --kubeconfig, --server, --output: rows for command.shared. */
extern const struct command_option agents_options[];
/* --node: a row for the options of commands that ask the agents of all nodes. */
#define AGENTS_NODE_OPTION                                                     \
    {                                                                          \
        "node", OPT_AGENTS_NODE, "NODE", "which node of the lab; default: all" \
    }
enum { OPT_AGENTS_LAB = 512, OPT_AGENTS_SOCKET, OPT_AGENTS_NODE };
/* Like command_getopt; handles the common options and --node. */
int agents_getopt(struct agents *a, const struct command *c, int argc, char **argv);

/* Finds the agents and reads the state of each; an agent that does not answer is no error.  Returns
 * 0, or the exit status 3 after the error was printed. */
int agents_open(struct agents *a);
/* Like agents_open, but having no agent of --node is an error. */
int agents_open_node(struct agents *a);
/* What a command shows of each agent. */
struct agents_view {
    int (*get)(void *ctx, struct agents *a, const char *socket, struct json **ret, struct err *e);
    void (*render)(void *ctx, const struct json *answer, struct strbuf *out);
};
/* Calls agents_open_node, and prints the view of each agent, or only of the agent of --node: as
 * text, or all as one JSON array.  Returns the exit status: 3 if an agent could not be asked, which
 * was printed. */
int agents_show(struct agents *a, const struct agents_view *v, void *ctx);
void agents_done(struct agents *a);
#define CLEANUP_AGENTS __attribute__((cleanup(agents_done)))

/* Sends GET 'path' to an agent.  The error has the agent's own text. */
int agents_get(struct agents *a, const char *socket, const char *path, struct json **ret,
               struct err *e);
/* Finds an agent by the node's name, or by its address (0: any); NULL: there is none. */
struct agent_ref *agents_find(const struct agents *a, const char *node, const char *host_ip);
/* Sends GET to the API server; -ENOTCONN: none is configured. */
int agents_registry_get(const struct agents *a, const char *api_version, const char *plural,
                        const char *ns, const char *name, struct json **ret, struct err *e);
