/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the node is ready for pods, as one function of facts.  Pure.
 *
 * The agent's parts report facts; readiness_judge alone decides what they mean.  CNI requests, the
 * node's conditions and Events, /healthz and `tenet node status` all show its result, so they
 * cannot contradict each other. */
#pragma once

#include <stdbool.h>

enum agent_phase {
    AGENT_WAITING,  /* The agent does not have the network's objects from the API server yet. */
    AGENT_STARTING, /* The datapath and the host are being set up for the first time. */
    AGENT_RUNNING,  /* The CNI socket is open. */
    AGENT_STOPPING,
};
/* "waiting", "starting", "running", "stopping" */
const char *agent_phase_name(enum agent_phase p);

enum part_state {
    PART_PENDING, /* It is being set up; nothing is known to be wrong. */
    PART_READY,
    PART_LOST,    /* It is gone, or could not be set up. */
    PART_REFUSED, /* It is reachable, but refuses what the agent asks. */
};

struct agent_facts {
    enum agent_phase phase;
    const char *waiting_for;            /* AGENT_WAITING: "the master at https://..." */
    enum part_state datapath;           /* State of the datapath. */
    const char *datapath_title;         /* "Open vSwitch" */
    const char *datapath_lost_reason;   /* "OpenVSwitchGone" */
    const char *datapath_refuse_reason; /* "OpenVSwitchRefused" */
    const char *datapath_text;          /* Unless PART_READY: why. */
    enum part_state host;               /* tun0, routes and NAT; never PART_REFUSED. */
    const char *host_text;              /* Unless PART_READY: why. */
    const char *network_refused;        /* Why the ClusterNetwork is not followed; NULL: it is. */
};

enum readiness_state {
    /* Not ready, and nothing is wrong: the node's conditions stay as they are. */
    READINESS_PENDING,
    READINESS_READY,
    READINESS_FAILED, /* Not ready, for a reason that users must see. */
};

struct readiness {
    enum readiness_state state;
    /* ADD and DEL of pods can be served.  This stays true while a changed ClusterNetwork is not
     * followed, although the node's condition is not ready then. */
    bool serves_pods;
    const char *reason; /* CamelCase, for conditions and Events. */
    char text[512]; /* A sentence without a full stop; "" when pods are served and all is well. */
};

/* The first fact of this list that is not ready decides: stopping, waiting, the datapath, the host,
 * the phase, the ClusterNetwork. */
void readiness_judge(const struct agent_facts *f, struct readiness *ret);
