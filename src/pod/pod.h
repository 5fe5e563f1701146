/* SPDX-License-Identifier: Apache-2.0 */
/* What the specification of a pod says, and the names under which a runtime keeps its parts.
 *
 * The functions take a pod as JSON, as the API server stores it, and fill in the API's defaults, for
 * static pods too.  Pure; results are borrowed from the pod. */
#pragma once

#include "wire/json.h"

#define POD_LABEL_NAME "io.kubernetes.pod.name"
#define POD_LABEL_NAMESPACE "io.kubernetes.pod.namespace"
#define POD_LABEL_UID "io.kubernetes.pod.uid"
#define POD_LABEL_CONTAINER "io.kubernetes.container.name"
#define POD_NOTE_HASH "io.kubernetes.container.hash"
#define POD_NOTE_RESTARTS "io.kubernetes.container.restartCount"
#define POD_NOTE_MESSAGE_PATH "io.kubernetes.container.terminationMessagePath"
#define POD_NOTE_MESSAGE_POLICY "io.kubernetes.container.terminationMessagePolicy"
#define POD_NOTE_PORTS "io.kubernetes.container.ports"
#define POD_NOTE_PRE_STOP "io.kubernetes.container.preStopHandler"
#define POD_NOTE_GRACE "io.kubernetes.pod.terminationGracePeriod"
/* The number of restarts in a row that came soon: the step of the back-off. */
#define POD_NOTE_LEVEL "tenet.io/restart-level"
#define POD_LOG_DEFAULT_MESSAGE_PATH "/dev/termination-log"

/* Where the pod comes from: "api", "file" or "http". */
#define POD_NOTE_SOURCE "kubernetes.io/config.source"

enum pod_container_kind { POD_INIT, POD_SIDECAR, POD_MAIN, POD_EPHEMERAL };
enum pod_restart_policy { POD_RESTART_ALWAYS, POD_RESTART_ON_FAILURE, POD_RESTART_NEVER };

const char *pod_name(const struct json *pod);
const char *pod_namespace(const struct json *pod);
const char *pod_uid(const struct json *pod);
enum pod_restart_policy pod_restart_policy(const struct json *pod);
/* Seconds that the pod is given to end: of its deletion if it is being deleted, else its own. */
int64_t pod_grace_s(const struct json *pod);
bool pod_is_deleted(const struct json *pod); /* Its deletion was asked for. */
bool pod_uses_host_network(const struct json *pod);
/* It comes from a file or URL of the node, not from the API; the agent sees to it that no user of the
 * API can say so. */
bool pod_is_static(const struct json *pod);
/* The node needs it: a static pod, or one of a system priority.  Pressure neither refuses nor evicts
 * it. */
bool pod_is_critical(const struct json *pod);
int64_t pod_priority(const struct json *pod);
/* "Succeeded" or "Failed": the pod never starts again. */
bool pod_phase_is_final(const char *phase);

/* The containers of a pod in the order: init containers and sidecars, main ones, ephemeral ones. */
size_t pod_count_containers(const struct json *pod);
const struct json *pod_container_at(const struct json *pod, size_t i,
                                    enum pod_container_kind *ret_kind);
/* The container with this name; NULL: the pod has none. */
const struct json *pod_container_named(const struct json *pod, const char *name,
                                       enum pod_container_kind *ret_kind);
/* The status of the container 'name' in pod.status; NULL: none. */
const struct json *pod_find_status(const struct json *status, const char *name);

/* A hash of what may change of a container of a running pod, its image, in hexadecimal digits. */
#define POD_HASH_SIZE 17
void pod_container_hash(const struct json *container, char out[POD_HASH_SIZE]);

/* The number of a port given as number or as the name of one of the container's ports; 0: there is
 * none. */
uint16_t pod_port(const struct json *container, const struct json *port);
