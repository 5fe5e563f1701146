/* SPDX-License-Identifier: Apache-2.0 */
/* "tenet create deployment|deploymentconfig|job|cronjob NAME". */
#pragma once

#include "cli/command.h"

/* The kind that such a word names; NULL: the word names another one. */
const char *create_workload_kind(const char *word);
/* Makes an object of the kind.  The arguments are those of "create", with the word of the kind;
 * 'command' are the words after "--".  Returns the exit status. */
int create_workload(const char *kind, int argc, char **argv, char **command, int n_command);

/* Their options, apart from those of all commands that create objects: rows. */
enum {
    OPT_CREATE_IMAGE = OPT_FIRST_FREE,
    OPT_CREATE_REPLICAS,
    OPT_CREATE_PORT,
    OPT_CREATE_SCHEDULE,
    OPT_CREATE_RESTART,
    OPT_CREATE_FROM,
    OPT_CREATE_FREE
};
#define CREATE_WORKLOAD_OPTIONS                                                                  \
    {"image", OPT_CREATE_IMAGE, "IMAGE", "the image; may be repeated for a Deployment"},         \
        {"replicas", OPT_CREATE_REPLICAS, "N", "the number of pods; default: 1"},                \
        {"port", OPT_CREATE_PORT, "PORT", "the port on which the containers listen"},            \
        {"schedule", OPT_CREATE_SCHEDULE, "CRON", "when a CronJob makes a Job: */5 * * * *"},    \
        {"restart", OPT_CREATE_RESTART, "POLICY", "restart policy of a Job's or CronJob's pods", \
         "Never OnFailure"},                                                                     \
    {                                                                                            \
        "from", OPT_CREATE_FROM, "cronjob/NAME", "a Job as this CronJob would make it"           \
    }
