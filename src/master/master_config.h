/* SPDX-License-Identifier: Apache-2.0 */
/* The master's configuration: master-config.yaml and the flags that override it.  Pure.
 *
 * The rows of master_options describe all keys and flags; packaging/config/master-config.yaml shows
 * them.  A missing key has its default.  An unknown key or a value that is not allowed is an error
 * that names the key, because a misspelt key must not silently lose a setting. */
#pragma once

#include "apiserver/admission/plugin_config.h"
#include "controllers/network/netconf.h"
#include "master/dns_config.h"
#include "master/service_config.h"
#include "master/serving_limits.h"
#include "oauth/config.h"
#include "pod/scc_block.h"
#include "wire/options.h"

struct master_config {
    struct netconf network;
    struct service_config services;
    struct serving_limits limits;
    char *bind_address;    /* "HOST:PORT" */
    char *storage_backend; /* "sqlite", "etcd" or "memory" */
    char *storage_path;    /* sqlite */
    /* sqlite: space on the disk that is kept for deletions; 0: none. */
    int64_t storage_reserve_mb;
    char *encryption_config;              /* File; NULL: nothing is encrypted. */
    char *storage_endpoints;              /* etcd: "http://host:port[,...]"; NULL: not given */
    char *etcd_ca, *etcd_cert, *etcd_key; /* Files; NULL: not given */
    unsigned lease_ttl_s;
    char *tls;                                        /* "auto", "off"; NULL: not given */
    char *pki_dir, *cert_file, *key_file, *client_ca; /* NULL: not given */
    struct json *named_certs;                         /* namedCertificates; NULL: not given */
    char *min_tls;                                    /* NULL: not given */
    char **ciphers;                                   /* End with NULL; NULL: not given. */
    char **cors_origins;                              /* The same. */
    char *kubelet_ca, *kubelet_cert, *kubelet_key;    /* NULL: not given */
    char **names;                                     /* End with NULL; NULL: not given. */
    char *authorization_mode;                         /* "RBAC", "AlwaysAllow"; NULL: not given */
    bool anonymous, anonymous_given;
    struct address_ranges reserved;
    char **master_nodes;     /* Nodes on hosts of masters; end with NULL; NULL: not given. */
    char *sa_private_key;    /* NULL: not given */
    char **sa_public_keys;   /* End with NULL; NULL: none. */
    char **sa_managed_names; /* The same; NULL: not given. */
    bool limit_secret_references;
    bool audit_enabled;
    char *audit_path, *audit_policy; /* NULL: not given */
    int64_t audit_max_mb, audit_max_files;
    struct dns_config dns;
    char *signing_cert, *signing_key;         /* Files of the authority; NULL: not given. */
    char *status_address;                     /* Of controllers apart; "none": nowhere. */
    char *routing_subdomain;                  /* Domain of routes' hosts; NULL: not given. */
    char *node_selector;                      /* Of projects without one; NULL: not given. */
    char *project_message, *project_template; /* Of requests for projects; NULL: not given. */
    struct scc_blocks blocks;                 /* User IDs and SELinux levels of projects. */
    char **node_label_blacklist;              /* Labels of PodNodeConstraints; NULL: not given. */
    /* What Pod Security does not judge; NULL: not given. */
    char **exempt_users, **exempt_namespaces, **exempt_runtime_classes;
    char **disabled_admission;         /* Names of plug-ins; NULL: not given. */
    struct admission_config admission; /* All other keys of admissionConfig. */
    char *scheduler_policy;            /* File of OpenShift's policy; NULL: not given. */
    unsigned node_grace_s;             /* Silence of a kubelet before its node is unknown. */
    unsigned ended_pods;               /* Pods that have ended and are kept; 0: all. */
    bool scheduler;                    /* The controllers include the scheduler. */
    char *deployer_image;      /* The image of the pods that do rollouts of DeploymentConfigs. */
    bool deploy_in_process;    /* Such rollouts need no pod. */
    bool workloads;            /* And those of Deployments, Jobs and their like. */
    bool local_class;          /* The storage class "local" is made. */
    bool snapshot_kinds;       /* The definitions of volume snapshots are made. */
    char *log_level;           /* A text for log_set_levels; NULL: not given. */
    char *log_format;          /* "text" or "json"; NULL: not given. */
    struct oauth_config oauth; /* The OAuth server is on if it has providers. */
    unsigned n_network_flags;  /* How often --cluster-network was given. */
    struct option_findings findings; /* Keys of the file that have no effect. */
    struct {
        struct ip4_prefix cidr;
        int64_t bits;
    } older; /* clusterNetworkCIDR and hostSubnetLength, kept until the whole file is read. */
};

/* The processes that an option is for, as bits of option_row.daemons: the API server, the
 * controllers, and the commands that open the storage.  A file may have the keys of all. */
enum master_part {
    MASTER_API = 1,
    MASTER_CONTROLLERS = 2,
    MASTER_WHOLE = MASTER_API | MASTER_CONTROLLERS,
    MASTER_STORE = 4,
};
extern const struct option_table master_options;

/* Sets all defaults; master_config_done frees the strings that the struct owns. */
void master_config_init(struct master_config *c);
void master_config_done(struct master_config *c);
static inline UNUSED void master_config_donep(struct master_config *c)
{
    master_config_done(c);
}

/* Reads the settings of the document 'v'.  -EINVAL names the key: "networkConfig.mtu: ...".
 * Relative names of files are taken from 'dir'; NULL: they stay as they are. */
int master_config_read(struct master_config *c, const struct json *v, const char *dir,
                       struct err *e);
/* The settings that follow from several keys of 'v' together, after its single keys were read. */
int master_config_join(struct master_config *c, const struct json *v, struct err *e);
/* Like master_config_read, for the YAML or JSON file 'path', which the error names, too. */
int master_config_load(const char *path, struct master_config *c, struct err *e);
/* Checks that need the whole configuration, for a process that runs 'parts' (enum master_part):
 * controllers apart do not know how the API is served. */
int master_config_check(const struct master_config *c, unsigned parts, struct err *e);

/* Used by the rows: checks that a network of pods leaves 'bits' for a
 * node's subnet; appends a network. */
int master_config_check_host_bits(struct ip4_prefix cidr, int64_t bits, struct err *e);
int master_config_add_network(struct master_config *c, struct ip4_prefix cidr, int64_t bits,
                              struct err *e);

/* The way in which the API is served. */
enum master_tls_mode { MASTER_TLS_OFF, MASTER_TLS_AUTO, MASTER_TLS_FILES };
enum master_tls_mode master_config_tls(const struct master_config *c);
/* Whether every authenticated user may do everything. */
bool master_config_always_allows(const struct master_config *c);
/* Whether requests without a credential are accepted. */
bool master_config_anonymous(const struct master_config *c);
/* Whether only this host can connect to 'bind_address'. */
bool master_config_is_loopback(const struct master_config *c);
