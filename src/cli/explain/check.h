/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of "tenet check": probe pods on every node whose agent can be asked, and the probes
 * between them.
 *
 * check_pods.c makes two projects and in each a pod on every node, as a runtime does; and removes
 * them check_run.c sends from their namespaces and waits check_text.c the table */
#pragma once

#include "base/ip.h"
#include "cli/explain/agents.h"

#include <signal.h>

#define CHECK_PROJECTS 2
#define CHECK_TCP_PORT 8443

struct check_pod {
    const struct agent_ref *agent;
    unsigned project; /* Index in check_set.projects. */
    char *netns;      /* Name of the network namespace. */
    char container[65];
    bool made, attached;
    uint32_t ip, gateway, mtu;
    uint32_t dns; /* The name server in the pod's DNS settings; 0: none. */
};

struct check_set {
    struct agents *agents;
    char *projects[CHECK_PROJECTS];
    bool made[CHECK_PROJECTS]; /* The projects that were made in the registry. */
    struct check_pod *pods;
    size_t n;
    volatile sig_atomic_t *stop; /* Set when a signal ends the check. */
};

/* Attaches all pods; on failure the objects made so far stay for check_detach. */
int check_attach(struct check_set *s, struct err *e);
/* Removes pods, namespaces and projects; continues after an error, and returns the first one. */
int check_detach(struct check_set *s, struct err *e);

enum check_kind { CHECK_PING, CHECK_TCP, CHECK_DNS };
enum check_result { CHECK_OK, CHECK_FAILED, CHECK_SKIPPED };

struct check_probe {
    const char *name; /* "connectivity" */
    char from[64], to[64];
    enum check_kind kind;
    const struct check_pod *pod;
    uint32_t dst;
    /* CHECK_PING: size of the IP packet, which is not fragmented; 0: a small packet. */
    uint32_t size;
    bool forbidden; /* The probe succeeds if there is no answer. */

    bool answered, tried;
    enum check_result result;
    char detail[128];
};

/* Sends all probes in parallel, those of full size after the others, and sets the result of each.
 * -EINTR: a signal stopped the check. */
int check_run(const struct check_set *s, struct check_probe *p, size_t n, struct err *e);

/* ---- pure ---- */

void check_judge(struct check_probe *p);
/* Returns the exit status; 0: no probe failed. */
int check_exit_status(const struct check_probe *p, size_t n);
void check_render(const struct check_probe *p, size_t n, struct strbuf *out);
struct json *check_json(const struct check_probe *p, size_t n);
