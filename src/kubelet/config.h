/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of "tenet kubelet": kubelet-config.yaml, and the flags that override it.
 *
 * Keys have the names of Kubernetes' KubeletConfiguration or of OpenShift's node-config.yaml, where
 * those have them; "kubeletArguments" takes the kubelet's flags, as in node-config.yaml.  Parsing asks
 * nothing of the system; kubelet_config_finish does. */
#pragma once

#include "pod/evict.h"
#include "wire/options.h"

/* The default of rootDir, and what it was in release 0.1.0 (kubelet/agent/root_dir.h). */
#define ROOT_DIR_DEFAULT "/var/lib/tenet-kubelet"
#define ROOT_DIR_OF_0_1 "/var/lib/tenet/kubelet"

struct kubelet_config {
    char *node_name;  /* NULL: the host's name. */
    char *node_ip;    /* NULL: the address of the link with the default route. */
    char *kubeconfig; /* NULL: $KUBECONFIG, then ~/.kube/config. */
    char *servers;    /* URLs of more masters, with commas between; NULL: none. */
    char *runtime_kind, *runtime_endpoint;
    char *root_dir, *log_dir;
    char *server_address;     /* "0.0.0.0:10250" or "none" */
    char *healthz_address;    /* "127.0.0.1:10248" or "none" */
    char *tls_cert, *tls_key; /* NULL: the cluster is asked for a certificate. */
    char *cluster_dns; /* Addresses, with commas between; NULL: pods get the node's servers. */
    char *cluster_domain;
    char *resolv_conf;
    char *cgroup_driver, *cgroup_root;
    char *seccomp_dir;
    char *local_margin;     /* A quantity of bytes. */
    char *recycle_prefixes; /* Directories, with commas between; NULL: none. */
    char **allowed_sysctls; /* NULL ends it; NULL: none. */
    uint32_t max_pods, parallel_pulls;
    char *log_max_size; /* A quantity of bytes. */
    uint32_t log_max_files;
    int64_t pod_pids_limit;
    char *kube_reserved, *system_reserved; /* "cpu=100m,memory=256Mi" */
    /* Lists with commas between, as in evict.h; NULL: none. */
    char *eviction_hard, *eviction_soft, *eviction_soft_grace, *eviction_reclaim;
    char *eviction_transition; /* "5m" */
    int64_t eviction_max_grace_s;
    char *shutdown_grace, *shutdown_grace_critical; /* "30s"; "0s": the host does not wait. */
    uint32_t image_gc_high, image_gc_low;           /* Percent. */
    char *image_min_age;                            /* "2m" */
    char *pause_image;                              /* NULL: known by its name. */
    bool register_node, node_lease;
    char *manifest_path;           /* File or directory of static pods; NULL: none. */
    char *manifest_url;            /* NULL: none. */
    char **manifest_headers;       /* "NAME: VALUE"; NULL ends it; NULL: none. */
    char *file_check, *http_check; /* Durations of kubelet_config_duration. */
    char *log_level;
    char *log_format;                /* "text" or "json"; NULL: unchanged. */
    struct option_findings findings; /* Keys of the file that have no effect. */
};

void kubelet_config_init(struct kubelet_config *c);
void kubelet_config_done(struct kubelet_config *c);
static inline UNUSED void kubelet_config_donep(struct kubelet_config *c)
{
    kubelet_config_done(c);
}
/* -EINVAL names the file and the key. */
int kubelet_config_load(struct kubelet_config *c, const char *path, struct err *e);
/* Fills in defaults that depend on this host. */
int kubelet_config_finish(struct kubelet_config *c, struct err *e);

/* The amount of a resource in "cpu=100m,memory=256Mi": milliCPU, else whole units; 0: not given. */
int64_t kubelet_config_reserved(const char *list, const char *name);

/* Milliseconds of "20s", "1m30s", "500ms" or "20" (seconds).  -EINVAL: it is none, or not within
 * 100 ms and a day. */
int kubelet_config_duration(const char *text, uint64_t *ret_ms, struct err *e);

extern const struct option_table kubelet_options;
/* The thresholds of eviction, whose texts were checked when they were read. */
void kubelet_config_eviction(const struct kubelet_config *c, struct evict_settings *ret);
