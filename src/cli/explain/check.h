/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of "tenet check": probe pods on every node whose agent can be asked, and what they try.
 *
 *     check_pods.c   makes two projects and in each a pod on every node, as a runtime does; removes them
 *     check_run.c    sends from their namespaces and waits
 *     check_text.c   the table */
#pragma once

#include "base/ip.h"
#include "cli/explain/agents.h"

#include <signal.h>

#define CHECK_PROJECTS 2
#define CHECK_TCP_PORT 8443

struct check_pod {
    const struct agent_ref *agent;
    unsigned project; /* Index. */
    char *netns;      /* Name. */
    char container[65];
    bool made, attached;
    uint32_t ip, gateway, mtu;
    uint32_t dns; /* The name server that it was told of; 0: none. */
};

struct check_set {
    struct agents *agents;
    char *projects[CHECK_PROJECTS];
    bool made[CHECK_PROJECTS]; /* In the registry. */
    struct check_pod *pods;
    size_t n;
    volatile sig_atomic_t *stop; /* Somebody wants it to end. */
};

/* Attaches all; on failure what was made stays for check_detach. */
int check_attach(struct check_set *s, struct err *e);
/* Removes pods, namespaces and projects; the first error is kept, and all are tried. */
int check_detach(struct check_set *s, struct err *e);

enum check_kind { CHECK_PING, CHECK_TCP, CHECK_DNS };
enum check_result { CHECK_OK, CHECK_FAILED, CHECK_SKIPPED };

struct check_probe {
    const char *name; /* "connectivity" */
    char from[64], to[64];
    enum check_kind kind;
    const struct check_pod *pod;
    uint32_t dst;
    uint32_t size;  /* CHECK_PING: of the IP packet, which may not be fragmented; 0: a small one. */
    bool forbidden; /* No answer is right. */

    bool answered, tried;
    enum check_result result;
    char detail[128];
};

/* Tries all at once, those of full size after the others, and judges each.  -EINTR: told to stop. */
int check_run(const struct check_set *s, struct check_probe *p, size_t n, struct err *e);

/* ---- pure ---- */

void check_judge(struct check_probe *p);
/* 0: nothing failed. */
int check_exit_status(const struct check_probe *p, size_t n);
void check_render(const struct check_probe *p, size_t n, struct strbuf *out);
struct json *check_json(const struct check_probe *p, size_t n);
