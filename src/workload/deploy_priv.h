/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a rollout.  Internal to src/workload; pure. */
#pragma once

#include "workload/deploy.h"

struct deploy {
    const struct deploy_input *in;
    struct deploy_memory *m;
    struct workload_plan *plan;
    struct strbuf *lines;
    struct json *config; /* The copy of the DeploymentConfig. */
    const struct json *strategy;
    const struct json *from; /* The newest complete one before; NULL: there is none. */
    int64_t desired;
    int64_t timeout_s;
    char *why; /* Why it has failed, or what was reached; NULL: neither. */
};

/* Says a line once; 'bit' tells the lines apart. */
enum {
    SAY_SCALED_OLD,
    SAY_BEGINS,
    SAY_DOWN,
    SAY_ONE,
    SAY_ALL,
    SAY_ACCEPT,
    SAY_OLD_PODS,
    SAY_HOOK, /* And the bits that follow: three for each hook. */
};
void deploy_say(struct deploy *d, unsigned bit, const char *format, ...) PRINTF_LIKE(3, 4);
enum deploy_state deploy_fail(struct deploy *d, const char *format, ...) PRINTF_LIKE(2, 3);
/* The hook, NULL: nothing is to be done.  DEPLOY_DONE: it has ended, and the rollout goes on. */
enum deploy_state deploy_run_hook(struct deploy *d, const struct json *hook,
                                  enum deployer_hook which);
