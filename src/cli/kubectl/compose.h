/* SPDX-License-Identifier: Apache-2.0 */
/* New objects from a name, an image and a command: for "create deployment" and the like, and "run".
 * Pure. */
#pragma once

#include "api/kind.h"

struct compose_options {
    const char *name;
    const char *const *images; /* Ends with NULL. */
    char **command;            /* NULL: that of the image. */
    int n_command;
    int64_t replicas, port;    /* -1: not given. */
    const char *schedule;      /* CronJob */
    const char *restart;       /* Pod, Job, CronJob; NULL: the kind's usual policy. */
    bool arguments;            /* The command is given to that of the image. */
    const struct json *env;    /* [{"name": ..., "value": ...}]; NULL: none. */
    const struct json *labels; /* NULL: app=NAME, or run=NAME for a pod. */
};

/* 'kind': Deployment, DeploymentConfig, Job, CronJob or Pod.  Owned.  NULL: '*e' has the reason. */
struct json *compose_object(const char *kind, const struct compose_options *o, struct err *e);
/* A Job as the CronJob would make it now; owned. */
struct json *compose_job_from(const char *name, const struct json *cron_job);
/* The name of a container that runs the image: "web" for "registry:5000/a/web:1.2"; owned. */
char *compose_container_name(const char *image);
