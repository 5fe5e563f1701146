/* SPDX-License-Identifier: Apache-2.0 */
/* The revisions of a workload: ReplicaSets of a Deployment, ControllerRevisions of a DaemonSet or
 * StatefulSet, ReplicationControllers of a DeploymentConfig. */
#pragma once

#include "cli/kubectl/target.h"

#define CHANGE_CAUSE "kubernetes.io/change-cause"
#define DC_NAME "openshift.io/deployment-config.name"
#define DC_VERSION "openshift.io/deployment-config.latest-version"
#define DC_PHASE "openshift.io/deployment.phase"
#define DC_REASON "openshift.io/deployment.status-reason"
#define DC_CANCELLED "openshift.io/deployment.cancelled"
#define DC_HELPER_FOR "openshift.io/deployer-pod-for.name"

struct history {
    /* The lowest number first; 'object' is borrowed from 'list'. */
    struct history_entry {
        int64_t revision;
        const struct json *object;
    } * entries;
    size_t n;
    struct json *list; /* The objects; owned. */
};
void history_done(struct history *h);
#define CLEANUP_HISTORY __attribute__((cleanup(history_done)))

/* Pure: the revisions among the objects of 'list' (taken over) that belong to 'owner'. */
void history_make(const struct api_kind *k, const struct json *owner, struct json *list,
                  struct history *ret);
/* Reads the revisions.  Returns 0, or the exit status after the error was printed. */
int history_load(struct targets *t, const struct target *g, struct history *ret);
/* The entry of the number; NULL: there is none.  0: the one before the latest. */
const struct history_entry *history_find(const struct history *h, int64_t revision);
/* Pure: the table of all revisions. */
void history_write(const struct api_kind *k, const struct history *h, struct strbuf *out);
/* Pure: the pod template of a revision, owned; NULL: it has none. 'owner' is the object itself. */
struct json *history_template(const struct api_kind *k, const struct json *owner,
                              const struct history_entry *entry);
/* Pure: describes a pod template. */
void history_describe(const struct json *template, struct strbuf *out);
/* Pure: whether a rollout of a DeploymentConfig has ended, by the annotation of its
 * ReplicationController. */
bool dc_phase_is_terminal(const struct json *rc);
/* The phase; "New" when the annotation is absent. */
const char *dc_phase(const struct json *rc);
