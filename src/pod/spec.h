/* SPDX-License-Identifier: Apache-2.0 */
/* A pod as the runtime takes it: the specifications of its sandbox and of its containers.
 *
 * Names of labels, annotations and log files are the kubelet's, so that crictl and log collectors know
 * them; they are also the agent's only record of what runs.  Everything is in the arena.  Pure. */
#pragma once

#include "pod/pod.h"
#include "pod/security.h"

/* What the node gives to all pods; borrowed. */
struct pod_node {
    const char *log_dir; /* "/var/log/pods" */
    const char *cgroup_root;
    bool systemd;            /* Control groups are systemd's slices. */
    int64_t memory_capacity; /* Bytes. */
    /* What all pods together may have: milliCPU, and bytes of memory that are enforced; 0: no
     * limit. */
    int64_t pods_cpu, pods_memory;
    const char *cluster_domain;
    struct runtime_texts cluster_dns;                            /* Addresses. */
    struct runtime_texts dns_servers, dns_searches, dns_options; /* The node's own. */
    struct pod_security_config security;
};

/* "/var/log/pods/NAMESPACE_NAME_UID" */
char *pod_log_directory(const struct json *pod, const struct pod_node *n, struct arena *a);
/* The pod's name of a host, at most 63 characters long, or with its domain where setHostnameAsFQDN asks
 * for that; NULL with the node's network.  -ENAMETOOLONG: more than Linux' 64 characters. */
int pod_hostname(const struct json *pod, const struct pod_node *n, struct arena *a,
                 const char **ret, struct err *e);

/* -ENAMETOOLONG: as pod_hostname; -EPERM and -EINVAL: as pod_sysctls and pod_security. */
int pod_sandbox_spec(const struct json *pod, uint32_t attempt, const struct pod_node *n,
                     struct arena *a, struct runtime_sandbox_spec *ret, struct err *e);

struct pod_container_input {
    const struct json *container;
    uint32_t restarts, level;
    const char *image_ref; /* From the image's pull or status. */
    struct runtime_pairs env;
    struct runtime_texts command, args; /* With variables replaced. */
    const struct runtime_mount *mounts;
    size_t n_mounts;
    const struct runtime_device *devices;
    size_t n_devices;
    const char *target_id; /* Of an ephemeral container; NULL: none. */
};
int pod_container_spec(const struct json *pod, const struct pod_container_input *in,
                       const struct pod_node *n, struct arena *a,
                       struct runtime_container_spec *ret, struct err *e);

/* The settings of the resolver by the pod's dnsPolicy and dnsConfig. */
void pod_dns(const struct json *pod, const struct pod_node *n, struct arena *a,
             struct runtime_sandbox_spec *ret);
/* What a resolver takes no more of: 3 name servers, 32 domains to search, of 2,048 characters.  The
 * texts of the Events (DNSConfigForming) about what pod_dns leaves out. */
struct runtime_texts pod_dns_left_out(const struct json *pod, const struct pod_node *n,
                                      struct arena *a);
