/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a container runtime, and what it has: plain data, without behaviour.
 *
 * The structs have CRI's fields by CRI's names (k8s.io/cri-api, runtime/v1/api.proto), but for what
 * Tenet never sends.  Strings and arrays are borrowed; a zeroed struct asks for nothing.  The pure
 * folder pod/ computes the specs, a back-end of runtime/ encodes them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runtime_pair {
    const char *key, *value;
};

struct runtime_pairs {
    const struct runtime_pair *v;
    size_t n;
};

struct runtime_texts {
    const char *const *v;
    size_t n;
};

/* The numbers are CRI's NamespaceMode. */
enum runtime_namespace {
    RUNTIME_NS_POD = 0,
    RUNTIME_NS_CONTAINER = 1,
    RUNTIME_NS_NODE = 2,
    RUNTIME_NS_TARGET = 3,
};

struct runtime_namespaces {
    enum runtime_namespace network, pid, ipc;
    const char *target_id; /* The container whose pid namespace is used, with RUNTIME_NS_TARGET. */
};

enum runtime_profile_type {
    RUNTIME_PROFILE_DEFAULT = 0,
    RUNTIME_PROFILE_UNCONFINED = 1,
    RUNTIME_PROFILE_LOCALHOST = 2,
};

/* A seccomp or AppArmor profile. */
struct runtime_profile {
    bool given;
    enum runtime_profile_type type;
    const char *localhost; /* A file of seccomp, a name of AppArmor. */
};

struct runtime_selinux {
    const char *user, *role, *type, *level; /* All NULL: none. */
};

/* Security of a sandbox or of a container; a sandbox has no capabilities, paths and names. */
struct runtime_security {
    bool privileged, readonly_rootfs, no_new_privs;
    struct runtime_texts add_capabilities, drop_capabilities; /* Without "CAP_". */
    struct runtime_namespaces namespaces;
    struct runtime_selinux selinux;
    bool has_user, has_group;
    int64_t user, group;
    const char *username; /* NULL: none. */
    const int64_t *groups;
    size_t n_groups;
    struct runtime_profile seccomp, apparmor;
    /* An empty list hides nothing. */
    struct runtime_texts masked_paths, readonly_paths;
};

struct runtime_hugepages {
    const char *size; /* "2MB" */
    uint64_t limit;   /* Bytes. */
};

/* 0: not set, as in CRI, where no limit is -1. */
struct runtime_resources {
    int64_t cpu_period, cpu_quota; /* Microseconds. */
    int64_t cpu_shares;
    int64_t memory_limit; /* Bytes. */
    int64_t oom_score_adj;
    const struct runtime_hugepages *hugepages;
    size_t n_hugepages;
    struct runtime_pairs unified; /* Files of cgroup v2 by name. */
};

enum runtime_protocol { RUNTIME_TCP = 0, RUNTIME_UDP = 1, RUNTIME_SCTP = 2 };

struct runtime_port {
    enum runtime_protocol protocol;
    uint16_t container_port, host_port;
    const char *host_ip;
};

struct runtime_sandbox_spec {
    const char *name, *uid, *namespace;
    uint32_t attempt;
    const char *hostname; /* NULL with the node's network. */
    const char *log_directory;
    struct runtime_texts dns_servers, dns_searches, dns_options;
    const struct runtime_port *ports;
    size_t n_ports;
    struct runtime_pairs labels, annotations;
    const char *cgroup_parent;
    struct runtime_security security;
    struct runtime_pairs sysctls;
    struct runtime_resources overhead, resources;
};

enum runtime_propagation {
    RUNTIME_PROPAGATE_NONE = 0,
    RUNTIME_PROPAGATE_TO_CONTAINER = 1,
    RUNTIME_PROPAGATE_BOTH = 2,
};

struct runtime_mount {
    const char *container_path, *host_path;
    bool readonly, selinux_relabel;
    enum runtime_propagation propagation;
};

struct runtime_device {
    const char *container_path, *host_path, *permissions;
};

struct runtime_container_spec {
    const char *name;
    uint32_t attempt;
    const char *image; /* The reference that the image's pull or status returned. */
    struct runtime_texts command, args;
    const char *working_dir;
    struct runtime_pairs env;
    const struct runtime_mount *mounts;
    size_t n_mounts;
    const struct runtime_device *devices;
    size_t n_devices;
    struct runtime_pairs labels, annotations;
    const char *log_path; /* Below the sandbox's log_directory. */
    bool stdin_open, stdin_once, tty;
    struct runtime_resources resources;
    struct runtime_security security;
};

struct runtime_sandbox {
    const char *id, *name, *uid, *namespace;
    uint32_t attempt;
    bool ready;
    int64_t created_ns; /* Since 1970. */
    const char *ip;     /* NULL: none, or not asked for. */
    struct runtime_texts more_ips;
    enum runtime_namespace network;
    struct runtime_pairs labels, annotations;
};

/* The numbers are CRI's ContainerState. */
enum runtime_state {
    RUNTIME_CREATED = 0,
    RUNTIME_RUNNING = 1,
    RUNTIME_EXITED = 2,
    RUNTIME_UNKNOWN = 3,
};

struct runtime_container {
    const char *id, *sandbox_id, *name;
    uint32_t attempt;
    enum runtime_state state;
    /* Since 1970; 0: not yet. A short container may have finished a little before it started:
     * containerd notes the start when it knows of it. */
    int64_t created_ns, started_ns, finished_ns;
    int32_t exit_code;
    const char *image, *image_ref; /* As written in the spec; what runs. */
    const char *reason, *message;  /* "OOMKilled", "StartError"; may be "". */
    const char *log_path;
    struct runtime_pairs labels, annotations;
};

struct runtime_exec_result {
    const char *out, *err;
    size_t out_size, err_size;
    int32_t exit_code;
};

struct runtime_streams {
    bool tty, in, out, err;
};

struct runtime_auth {
    const char *username, *password, *auth, *server_address, *identity_token, *registry_token;
};

struct runtime_image {
    const char *id;
    struct runtime_texts tags, digests;
    uint64_t size; /* Bytes. */
    bool has_user, pinned;
    int64_t user;
    const char *username;
};

struct runtime_filesystem {
    const char *mountpoint;
    uint64_t used_bytes, used_inodes;
};
