/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done about a pod now: a pure comparison of its object, of what the runtime has, and
 * of the time.
 *
 * The work on a pod goes through three states and never back: it is kept running, it is being ended,
 * it has ended.  The agent carries the actions out, at most one at a time for a sandbox or a
 * container name, and asks again after each change; the plan names only actions that may begin now.
 * The rules are those of the kubelet (k8s.io/kubernetes, pkg/kubelet/kuberuntime). */
#pragma once

#include "pod/observed.h"
#include "pod/pod.h"

enum pod_work { POD_SYNC, POD_ENDING, POD_ENDED };

struct pod_kill {
    const char *id, *name;
    const char *message; /* Of the Event Killing. */
    int64_t deadline_ns; /* When it is killed by force. */
};

struct pod_start {
    const char *name;
    enum pod_container_kind kind;
    const char *created_id; /* Made already, only to be started; NULL: to be made. */
    uint32_t restarts, level;
};

/* Texts are borrowed from the arguments of pod_plan, lists are owned. */
struct pod_actions {
    enum pod_work work;
    bool make_sandbox;
    bool sandbox_changed; /* There was one, which cannot be used. */
    uint32_t sandbox_attempt;
    const char *sandbox_id; /* The one in use; NULL: none. */
    const char **stop_sandboxes, **remove_sandboxes, **remove_containers;
    size_t n_stop_sandboxes, n_remove_sandboxes, n_remove_containers;
    struct pod_kill *kills;
    size_t n_kills;
    struct pod_start *starts;
    size_t n_starts;
    int64_t again_ns; /* Ask again then; 0: at the next change. */
};

void pod_actions_done(struct pod_actions *a);

/* 'status' is the pod's last status, the agent's own or the stored one. */
void pod_plan(const struct json *pod, const struct json *status, const struct pod_observed *o,
              int64_t now_ns, struct pod_actions *ret);

/* Whether the pod is not to run (any more), with the reason and message for its status; both are
 * NULL if its containers or its deletion say it. */
bool pod_must_end(const struct json *pod, const struct json *status, const struct pod_observed *o,
                  int64_t now_ns, const char **ret_reason, const char **ret_message);
/* When the pod's activeDeadlineSeconds end; 0: it has none. */
int64_t pod_deadline_ns(const struct json *pod, const struct json *status,
                        const struct pod_observed *o);

/* How the last container of a name ended, or that it did not. */
enum pod_last_state { POD_NEVER_RAN, POD_CREATED, POD_RUNS, POD_EXITED };
struct pod_last {
    enum pod_last_state state;
    const struct observed_container *c; /* NULL: the runtime has none, or has lost the last one. */
    int32_t exit_code;
    uint32_t restarts; /* Of the container that would be started next. */
};
/* 'status': the record of a container that the runtime has lost (exit code 137, as in
 * Kubernetes). */
void pod_last_of(const struct pod_observed *o, const struct json *status, const char *name,
                 struct pod_last *ret);
