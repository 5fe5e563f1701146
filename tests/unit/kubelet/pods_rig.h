/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's workers between an API server and the double of a runtime, in virtual time
 * (virtual_time.h), with what the agent does for them: it passes the node's pods and the runtime's
 * events on.  One rig a program; mistakes of the test abort. */
#pragma once

#include "../apiserver/harness.h"
#include "fake_cri.h"
#include "kubelet/pods/workers_priv.h"

struct pods_rig {
    struct harness *h;
    char dir[32];
    char *root, *logs; /* Directories of the kubelet, below 'dir'. */
    struct fake_cri *cri;
    /* The kubelet; NULL while there is none. */
    struct pod_node node;
    struct json *services;
    struct api_client *client;
    struct runtime *runtime;
    struct pod_objects *objects;
    struct workers *workers;
    struct informer *informer;
};

/* The API server, and the directories. */
void pods_rig_open(struct pods_rig *r);
void pods_rig_close(struct pods_rig *r);
/* The runtime, with virtual time. */
void pods_rig_start_runtime(struct pods_rig *r);
void pods_rig_stop_runtime(struct pods_rig *r);
void pods_rig_start_kubelet(struct pods_rig *r);
void pods_rig_stop_kubelet(struct pods_rig *r); /* As if it were killed. */
/* Lets time go by. */
void pods_rig_pass(struct pods_rig *r, uint64_t ms);
/* Nothing is left of any pod, in the runtime, in memory and in directories: NULL, or what is. */
const char *pods_rig_left(const struct pods_rig *r);
