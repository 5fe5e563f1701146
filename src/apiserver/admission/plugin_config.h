/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the admission plug-ins: admissionConfig of OpenShift's master-config.yaml,
 * and its older place kubernetesMasterConfig.admissionConfig (docs/admission.md).
 *
 * pluginConfig is a mapping of plug-ins to "location", the name of a file, or "configuration", the
 * same inline: a document of the plug-in's own kind, or DefaultAdmissionConfig with "disable".
 * Documents are read strictly: a plug-in that is not known, an unknown key, and settings that
 * cannot be combined are errors that name them.
 *
 * A struct admission_config owns what it has; zeroed before use, emptied by admission_config_done.
 * Any thread, while it starts. */
#pragma once

#include "wire/options.h"

/* How many projects the users with certain labels may request. */
struct project_limits {
    struct json *list;        /* [{"selector": {...}, "maxProjects": N}]; NULL: none. */
    int64_t system_users;     /* -1: no limit */
    int64_t service_accounts; /* The same. */
};

/* Percents of ClusterResourceOverride; 0: not given. */
struct resource_override {
    int64_t memory_request, cpu_request; /* Percent of the limit. */
    int64_t cpu_limit;                   /* Percent of the memory's limit: 100 is a core a GiB. */
};

struct admission_config {
    struct json *docs; /* The documents that were read, by plug-in; NULL: none. */
    struct json *on;   /* {"NAME": true or false}; NULL: all as by default. */
    char **order;      /* Names in order, NULL at the end; NULL: not given. */
    struct project_limits projects;
    struct resource_override override;
    int64_t run_once_s; /* RunOnceDuration; 0: not given. */
    char **node_labels; /* PodNodeConstraints; NULL at the end; NULL: not given. */
};

void admission_config_done(struct admission_config *c);
/* Takes relative names of files in a value of pluginConfig from the folder 'dir'. */
void admission_config_resolve(struct json *plugins, const char *dir);
/* The reason why an entry of pluginConfig has no effect: the plug-in is none here, and the entry
 * does not turn it off; NULL: it has one. */
const char *admission_config_idle(const char *name, const struct json *entry);
/* Reads a value of pluginConfig, and the files that it names, in addition to what was read before.
 * -EINVAL, -EPERM: ".NAME.configuration.KEY: reason". */
int admission_config_read(struct admission_config *c, const struct json *plugins, struct err *e);
/* Takes the names of pluginOrderOverride with commas between; "": none.  -EINVAL: a name is not
 * known, or another order was given before. */
int admission_config_set_order(struct admission_config *c, const char *list, struct err *e);
/* Checks what single keys cannot: 'disabled' are the names of disabledPlugins, 'node_labels' those
 * of nodeSelectorLabelBlacklist; NULL: not given.  -EINVAL, -EPERM: "KEY: reason". */
int admission_config_check(const struct admission_config *c, const char *const *disabled,
                           const char *const *node_labels, struct err *e);
