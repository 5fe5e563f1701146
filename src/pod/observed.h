/* SPDX-License-Identifier: Apache-2.0 */
/* What a node knows of one pod: the runtime's sandboxes and containers, and the agent's own facts.
 *
 * The agent fills it from the runtime's lists and events; plan.h and status.h only read it.  It owns
 * its texts.  Times are nanoseconds since 1970, 0: not yet.  Pure, not thread-safe. */
#pragma once

#include "base/mem.h"
#include "runtime/runtime_spec.h"

struct observed_sandbox {
    char *id;
    uint32_t attempt;
    bool ready;
    int64_t created_ns;
    char *ip; /* NULL: none. */
    enum runtime_namespace network;
};

struct observed_container {
    char *id, *sandbox_id, *name;
    uint32_t attempt;
    enum runtime_state state;
    int64_t created_ns, started_ns, finished_ns;
    int32_t exit_code;
    char *image, *image_ref;
    char *reason, *message; /* "" when there is none. */
    char *log_path;
    char *hash; /* The hash of its specification; "" when it is not known. */
    /* The file inside of the container, and what to do when it is empty. */
    char *message_path, *message_policy;
    uint32_t restarts; /* How often a container of this name was started before. */
    uint32_t level;    /* The step of the back-off that led to it. */
    bool detailed;     /* Times, exit code and reason have been read. */
};

/* What the agent itself knows of the containers of one name. */
struct observed_fact {
    char *name;
    /* Why none can be started: ErrImagePull and the like; NULL: nothing hinders. */
    char *wait_reason, *wait_message;
    int64_t retry_ns; /* None is started before. */
    bool busy;        /* An operation on one of them is under way. */
    char *id;         /* The container that the following members are about; NULL: none. */
    bool hook;        /* Its postStart hook runs. */
    bool probed;      /* The results before its first probe are set. */
    bool ready, started;
    /* It must end, with the text of the Event; NULL: it may live. */
    char *kill_message;
    int64_t kill_grace_s; /* -1: the pod's. */
    bool again;           /* It is started again whatever the restart policy says. */
};

struct pod_observed {
    struct observed_sandbox *sandboxes;
    size_t n_sandboxes, cap_sandboxes;
    struct observed_container *containers;
    size_t n_containers, cap_containers;
    struct observed_fact *facts;
    size_t n_facts, cap_facts;

    bool sandbox_busy; /* A sandbox is being made, stopped or removed. */
    int64_t sandbox_retry_ns;
    uint32_t sandbox_attempt; /* The next sandbox has this attempt at least. */

    bool volumes_ready;
    char *volumes_message; /* NULL: nothing is wrong. */

    char *host_ip;
    int64_t first_seen_ns;
    bool gone;            /* The API has no such pod any more. */
    char *refused_reason; /* The node refuses or evicts the pod; NULL: it does not. */
    char *refused_message;
    bool hurried; /* The pod ends within 'hurry_s' seconds, however long its grace is. */
    int64_t hurry_s;
    /* When the pod began to be ended; 0: it is wanted. */
    int64_t ending_ns;
};

void pod_observed_done(struct pod_observed *o);
/* Forgets sandboxes and containers; the facts stay. */
void pod_observed_clear(struct pod_observed *o);
/* Copies 's' and 'c' to the end of their list. */
struct observed_sandbox *pod_observed_add_sandbox(struct pod_observed *o,
                                                  const struct runtime_sandbox *s);
struct observed_container *pod_observed_add_container(struct pod_observed *o,
                                                      const struct runtime_container *c);
/* Takes times, exit code, reason and message of a container from its status. */
void pod_observed_set_details(struct observed_container *c, const struct runtime_container *s);
struct observed_container *pod_observed_find(const struct pod_observed *o, const char *id);

/* The fact about 'name'; made by the first call, found or NULL by the second. */
struct observed_fact *pod_observed_fact(struct pod_observed *o, const char *name);
const struct observed_fact *pod_observed_find_fact(const struct pod_observed *o, const char *name);
/* Makes 'f' one about the container 'id', which forgets what was known of another one. */
void observed_fact_set_id(struct observed_fact *f, const char *id);
/* Replaces the reason for waiting; NULL: nothing hinders. */
void observed_fact_set_wait(struct observed_fact *f, const char *reason, const char *message);

/* The sandbox with the highest attempt; NULL: none. */
const struct observed_sandbox *pod_observed_sandbox(const struct pod_observed *o);
/* Whether the pod can live in 's': it is ready and has an address, if the pod needs one. */
bool observed_sandbox_is_usable(const struct observed_sandbox *s, bool host_network);
/* The newest container of 'name', and the one before it; NULL: none. */
const struct observed_container *pod_observed_newest(const struct pod_observed *o,
                                                     const char *name);
const struct observed_container *pod_observed_before(const struct pod_observed *o,
                                                     const struct observed_container *c);
/* Whether a process of 'c' may still run. */
bool observed_container_may_run(const struct observed_container *c);
