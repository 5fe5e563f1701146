/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of "tenet set". */
#pragma once

#include "cli/kubectl/target.h"
#include "cli/workloads/template.h"

extern const struct command set_deployment_hook, set_env, set_image, set_probe, set_resources,
    set_selector, set_serviceaccount, set_triggers, set_volumes;

/* Splits the arguments: those before the first that is 'is_value' name objects.  Returns their
 * number. */
int set_split(int n, char *const *args, bool (*is_value)(const char *arg));
/* "KEY=VALUE" */
bool set_is_pair(const char *arg);
/* The error for a pattern that no container matches. */
int set_no_container(const char *pattern, struct err *e);
/* The error for an object without a pod template. */
int set_no_template(const struct api_kind *k, const struct json *object, struct err *e);
