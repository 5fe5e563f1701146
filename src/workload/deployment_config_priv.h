/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a DeploymentConfig's plan.  Internal to src/workload; pure. */
#pragma once

#include "workload/deployment_config.h"

#define CONFIG_PROGRESSING "Progressing"
#define CONFIG_CREATE_ERROR "ReplicationControllerCreateError"
#define CONFIG_NO_IMAGE "WaitingForImage"

struct config {
    const struct json *config;
    struct json *o; /* The plan's object, whose status is made. */
    /* Its ReplicationControllers, the newest first, as they will be after the plan's writes. */
    const struct json **sets;
    size_t n;
    const struct json *latest; /* Of status.latestVersion; NULL: there is none. */
    int64_t version;           /* status.latestVersion */
    bool waits;                /* For an image: the condition Progressing says so. */
    int64_t now_ms;
    struct workload_plan *plan;
};

/* ---- deployment_config_trigger.c ---- */
bool config_has_trigger(const struct json *config, const char *type);
/* Fills the condition Progressing, and returns true, if a container has no image yet, or the first
 * rollout waits for the image of a trigger. */
bool config_waits_for_image(struct config *c);
/* Whether a trigger begins a rollout; then its causes are in the status. */
bool config_is_triggered(struct config *c);
/* ---- deployment_config_status.c ---- */
/* The numbers, and the conditions Available and Progressing.  'observed': the spec as it is now has
 * been acted upon. */
void config_count(struct config *c, bool observed);
void config_created(struct config *c, const char *name);
void config_outcome(struct json *object, const struct workload_write *w, const char *why,
                    int64_t now_ms);
