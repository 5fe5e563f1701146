/* SPDX-License-Identifier: Apache-2.0 */
/* How a rollout of a DeploymentConfig is done: the strategies Rolling and Recreate, and hooks.
 *
 * It is one function for the deployer pod ("tenet deployer") and for the controllers.  Each call
 * makes one step from the objects as they are; what has been reached is in the two
 * ReplicationControllers and in the hooks' pods, so a deployer that begins anew goes on.  Only the
 * times since which something is waited for, and what was printed, are in the memory.
 *
 * Lines are those of OpenShift's deployer.  Rolling moves the pods by the arithmetic of Deployments
 * (rollout.h); the bounds are those of the original, and old pods that are not available go first.
 * Pure. */
#pragma once

#include "workload/deployer.h"

enum deploy_state {
    DEPLOY_GOES_ON,
    DEPLOY_REACHED, /* The condition 'until'. */
    DEPLOY_DONE,
    DEPLOY_FAILED,
};

struct deploy_input {
    const struct json *to; /* The ReplicationController that is rolled out. */
    /* All ReplicationControllers of its DeploymentConfig, 'to' among them. */
    const struct json *const *sets;
    size_t n_sets;
    const struct workload_child *hooks[N_HOOKS]; /* Pods of hooks; NULL: there is none. */
    bool old_pods_run;                           /* A pod of another of the sets has not ended. */
    const char *until;                           /* "start", "pre", "mid", "50%"; NULL: the end. */
    int64_t now_ms;
};

/* Zero-initialize; release with deploy_memory_done. */
struct deploy_memory {
    int64_t started_ms;   /* The first call. */
    int64_t progress_ms;  /* The last change of a number of pods. */
    int64_t step_ms;      /* The last time that the strategy scaled. */
    uint64_t numbers;     /* A checksum of the numbers of pods. */
    unsigned said;        /* Lines that were printed, as bits. */
    unsigned hooks_seen;  /* Hooks whose pods were seen, as bits. */
    unsigned hooks_ended; /* Hooks that have ended, as bits; the annotation has them later. */
    /* Errors of creating hooks' pods, which the caller fills in (deploy_refused); owned. */
    char *refused[N_HOOKS];
};
void deploy_memory_done(struct deploy_memory *m);

/* Plans the next step.  Appends to 'lines' what is to be printed, with line ends.  '*ret_why'
 * (owned) is set with DEPLOY_FAILED: the reason, and with DEPLOY_REACHED: what was reached. */
enum deploy_state deploy_plan(const struct deploy_input *in, struct deploy_memory *m,
                              struct workload_plan *plan, struct strbuf *lines, char **ret_why);
/* The server has refused a write of a plan: that of a hook's pod counts as the hook's failure, when
 * the error is lasting. */
void deploy_refused(struct deploy_memory *m, const struct workload_write *w, int error,
                    const char *why);
