/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of CRI v1 that Tenet uses (k8s.io/cri-api, pkg/apis/runtime/v1/api.proto), and of
 * containerd's event service (containerd, api/services/events/v1), as rows over the structs of
 * runtime_spec.h.  The rows serve both directions: the back-end writes requests and reads answers,
 * the tests' server the reverse. Pure data, without I/O.
 *
 * Fields that Tenet never sends and never reads have no row. */
#pragma once

#include "runtime/runtime_spec.h"
#include "wire/protobuf_rows.h"

/* Largest message in either direction, as Kubernetes and containerd have it, in bytes. */
#define CRI_MESSAGE_MAX ((size_t) 16 << 20)

enum cri_method_id {
    CRI_VERSION,
    CRI_STATUS,
    CRI_RUN_SANDBOX,
    CRI_STOP_SANDBOX,
    CRI_REMOVE_SANDBOX,
    CRI_SANDBOX_STATUS,
    CRI_LIST_SANDBOXES,
    CRI_CREATE_CONTAINER,
    CRI_START_CONTAINER,
    CRI_STOP_CONTAINER,
    CRI_REMOVE_CONTAINER,
    CRI_CONTAINER_STATUS,
    CRI_LIST_CONTAINERS,
    CRI_UPDATE_RESOURCES,
    CRI_REOPEN_LOG,
    CRI_EXEC_SYNC,
    CRI_EXEC,
    CRI_ATTACH,
    CRI_PORT_FORWARD,
    CRI_LIST_IMAGES,
    CRI_IMAGE_STATUS,
    CRI_PULL_IMAGE,
    CRI_REMOVE_IMAGE,
    CRI_IMAGE_FS_INFO,
    CRI_EVENTS,        /* A stream of struct cri_event. */
    CONTAINERD_EVENTS, /* A stream of struct containerd_envelope. */
    CRI_METHODS,
};

/* The two shapes of a method; both are set, maybe to one without rows. */
struct cri_method {
    const char *path; /* "/runtime.v1.RuntimeService/Version" */
    const struct pb_shape *request, *response;
};
extern const struct cri_method cri_methods[CRI_METHODS];

/* ---- requests, in the order of the methods ---- */

/* One text as field 1: an id, a version, a URL, a reference; in requests and answers. */
struct cri_text {
    const char *text;
};

struct cri_run_sandbox {
    const struct runtime_sandbox_spec *config;
    const char *handler;
};

struct cri_list {
    const char *id;              /* "": any. */
    struct runtime_pairs labels; /* All must be there. */
};

struct cri_create_container {
    const char *sandbox_id;
    const struct runtime_container_spec *config;
    const struct runtime_sandbox_spec *sandbox;
};

struct cri_stop_container {
    const char *id;
    int64_t timeout_s;
};

struct cri_update_resources {
    const char *id;
    const struct runtime_resources *resources;
};

struct cri_exec_sync {
    const char *id;
    struct runtime_texts cmd;
    int64_t timeout_s;
};

struct cri_exec { /* Attach is the same without a command. */
    const char *id;
    struct runtime_texts cmd;
    struct runtime_streams streams;
};

struct cri_port_forward {
    const char *sandbox_id;
    const int64_t *ports;
    size_t n_ports;
};

struct cri_pull_image {
    const char *image;
    const struct runtime_auth *auth;
    const struct runtime_sandbox_spec *sandbox;
};

struct containerd_subscribe {
    struct runtime_texts filters; /* Any of them. */
};

/* ---- answers ---- */

struct cri_version {
    const char *version, *runtime_name, *runtime_version, *runtime_api_version;
};

struct cri_condition {
    const char *type; /* "RuntimeReady", "NetworkReady" */
    bool status;
    const char *reason, *message;
};

struct cri_status {
    const struct cri_condition *conditions;
    size_t n_conditions;
};

/* 'v' has one element or none in the answer about a single one. */
struct cri_sandboxes {
    const struct runtime_sandbox *v;
    size_t n;
};
struct cri_containers {
    struct runtime_container *v;
    size_t n;
};
struct cri_images {
    const struct runtime_image *v;
    size_t n;
};
struct cri_filesystems {
    const struct runtime_filesystem *v;
    size_t n;
};

/* ContainerEventResponse, as far as it says what changed. A sandbox's events have its id in both
 * members. */
struct cri_event {
    const char *container_id;
    const char *sandbox_id;
};

struct containerd_envelope {
    const char *namespace, *topic, *type; /* "k8s.io", "/tasks/exit" */
    const char *event;                    /* The event's own message. */
    size_t event_size;
};

/* TaskExit. 'exec_id' is the container's id when the container itself ended. */
struct containerd_exit {
    const char *container_id, *exec_id;
};
extern const struct pb_shape containerd_exit_shape;
/* TaskDelete: the exit of a container's first process, which containerd publishes when its output
 * has been read to the end. */
struct containerd_delete {
    const char *container_id;
    int64_t exit_status;
    int64_t at_s, at_ns; /* When it ended: seconds since 1970, and nanoseconds more. */
};
extern const struct pb_shape containerd_delete_shape;
/* A struct cri_text: the id with which the other events of tasks and containers begin. */
extern const struct pb_shape containerd_id_shape;
