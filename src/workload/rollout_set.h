/* SPDX-License-Identifier: Apache-2.0 */
/* The ReplicationController of one rollout of a DeploymentConfig: its names, labels, annotations
 * and phase, and the copy of the DeploymentConfig that it carries.
 *
 * Names and values are those of OpenShift 3.  A user of the project may write these annotations, so
 * each value is judged anew, and no namespace and no owner is taken from them.  Pure. */
#pragma once

#include "workload/plan.h"

/* Annotations of the ReplicationController. */
#define ROLLOUT_CONFIG "openshift.io/deployment-config.name" /* Also a label. */
#define ROLLOUT_VERSION "openshift.io/deployment-config.latest-version"
#define ROLLOUT_ENCODED "openshift.io/encoded-deployment-config"
#define ROLLOUT_PHASE "openshift.io/deployment.phase"
#define ROLLOUT_REASON "openshift.io/deployment.status-reason"
#define ROLLOUT_REPLICAS "openshift.io/deployment.replicas"
#define ROLLOUT_DESIRED "kubectl.kubernetes.io/desired-replicas"
#define ROLLOUT_CANCELLED "openshift.io/deployment.cancelled"
#define ROLLOUT_POD "openshift.io/deployer-pod.name"
#define ROLLOUT_POD_CREATED "openshift.io/deployer-pod.created-at"
#define ROLLOUT_POD_STARTED "openshift.io/deployer-pod.started-at"
#define ROLLOUT_POD_COMPLETED "openshift.io/deployer-pod.completed-at"
#define ROLLOUT_IGNORE "deploy.openshift.io/deployer-pod.ignore"
/* Tenet's own: how often the deployer pod was made again, the hooks that have ended, and that the
 * controllers do the rollout themselves. */
#define ROLLOUT_ATTEMPTS "tenet.io/deployer-pod.attempts"
#define ROLLOUT_HOOKS "tenet.io/deployment.hooks"
#define ROLLOUT_IN_PROCESS "tenet.io/deployment.in-process"
/* Of its pods: annotations with the names of the ReplicationController and DeploymentConfig, and
 * labels. */
#define ROLLOUT_NAME "openshift.io/deployment.name"
#define ROLLOUT_LABEL_CONFIG "deploymentconfig"
#define ROLLOUT_LABEL_SET "deployment"
/* Labels of the pods of the deployer and of hooks. */
#define ROLLOUT_POD_FOR "openshift.io/deployer-pod-for.name"
#define ROLLOUT_POD_TYPE "openshift.io/deployer-pod.type"

/* Reasons of ROLLOUT_REASON. */
#define ROLLOUT_REASON_USER "cancelled by the user"
#define ROLLOUT_REASON_NEWER "newer deployment was found running"
#define ROLLOUT_REASON_UNRELATED \
    "unrelated pod with the same name as this deployment is already running"
#define ROLLOUT_REASON_NO_POD "unable to create deployer pod"
#define ROLLOUT_REASON_GONE "deployer pod no longer exists"

#define ROLLOUT_DEADLINE_S 21600
#define ROLLOUT_TIMEOUT_S 600

enum rollout_phase {
    ROLLOUT_NEW,
    ROLLOUT_PENDING,
    ROLLOUT_RUNNING,
    ROLLOUT_COMPLETE,
    ROLLOUT_FAILED
};
const char *rollout_phase_name(enum rollout_phase phase);
/* The phase of the ReplicationController; ROLLOUT_NEW when the annotation has no valid value. */
enum rollout_phase rollout_phase(const struct json *rc);
bool rollout_has_ended(const struct json *rc); /* Complete or Failed. */
bool rollout_is_cancelled(const struct json *rc);
/* The number of the rollout; 0: the annotation has no valid value. */
int64_t rollout_version(const struct json *rc);
/* The number of pods that the rollout has to reach; -1: it has run to completion, or the annotation
 * has no valid value. */
int64_t rollout_desired(const struct json *rc);

/* Owned "NAME-VERSION". */
char *rollout_set_name(const char *config, int64_t version);
/* Owned: "BASE-SUFFIX", shortened to 253 characters with a hash as OpenShift does it. */
char *rollout_pod_name(const char *base, const char *suffix);

/* The copy of the DeploymentConfig in the ReplicationController; owned.  -ENOENT: there is none;
 * -EINVAL: it is no JSON object with a spec, and 'e' says why. */
int rollout_decode(const struct json *rc, struct json **ret, struct err *e);
/* The ReplicationController of the rollout status.latestVersion of the DeploymentConfig; owned. */
struct json *rollout_make_set(const struct json *config);

/* The seconds without success after which a step of the strategy has failed; at least 1. */
int64_t rollout_timeout_s(const struct json *strategy);
/* The seconds that a rollout may take in all; at least 1. */
int64_t rollout_deadline_s(const struct json *strategy);

/* Sorts the ReplicationControllers, those with the highest number first. */
void rollout_sort(const struct json **list, size_t n);
/* The newest one that is complete; NULL: there is none. */
const struct json *rollout_active(const struct json *const *list, size_t n);
