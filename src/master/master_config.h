/* SPDX-License-Identifier: Apache-2.0 */
/* The master's configuration: master-config.yaml and the options that override it.  Pure.
 *
 *     networkConfig:
 *       clusterNetworks:                      # or clusterNetworkCIDR and hostSubnetLength
 *       - cidr: 10.128.0.0/14
 *         hostSubnetLength: 9                 # bits for pods: 9 gives each node a /23
 *       serviceNetworkCIDR: 172.30.0.0/16
 *       foreignPodNetworkCIDRs: []            # addresses that other CNI plug-ins of the nodes give to pods
 *       reservedAddresses: []                 # addresses and networks that no node has: routers, balancers
 *       networkPluginName: redhat/openshift-ovs-subnet
 *       vxlanPort: 4789
 *       mtu: 1450
 *     kubernetesMasterConfig:                 # more of this and of networkConfig: see master/service_config.h
 *       masterNodes: []                       # nodes that run on masters' hosts; not given: the one of this host's name
 *     servingInfo:
 *       bindAddress: 127.0.0.1:8443
 *       tls: off                              # or auto: HTTPS, with a CA of its own in pkiDir
 *       pkiDir: /var/lib/tenet/pki            # giving it means auto
 *       names: []                             # more names and addresses of the master, for its certificate
 *       certFile: server.crt                  # HTTPS with what is given
 *       keyFile: server.key
 *       clientCA: ca.crt                      # of clients' certificates
 *     authorization:                          # with HTTPS only
 *       mode: RBAC                            # or AlwaysAllow
 *       anonymous: true                       # with RBAC; false with AlwaysAllow
 *     serviceAccountConfig:
 *       privateKeyFile: sa.key                # of pkiDir, where it is made
 *       publicKeyFiles: []                    # more keys that tokens may be signed with
 *       managedNames: [default, builder, deployer]
 *     auditConfig:
 *       auditFilePath: audit.log              # giving it means that there is an audit log
 *       policyFile: policy.yaml               # Metadata of everything, if it is not given
 *       maximumFileSizeMegabytes: 100
 *       maximumRetainedFiles: 10
 *     storage:
 *       backend: sqlite                       # or etcd, memory
 *       path: /var/lib/tenet/registry.db
 *       endpoints: http://127.0.0.1:2379      # etcd: several with commas between
 *     etcdClientInfo:                         # the same as OpenShift has it; giving urls means backend: etcd
 *       urls: [https://etcd1:2379]
 *       ca: etcd-ca.crt                       # of etcd's certificate; not given: the system's
 *       certFile: etcd-client.crt             # our own
 *       keyFile: etcd-client.key
 *     controllerLeaseTTL: 15                  # etcd: seconds after which another master's controllers take over
 *     dnsConfig: {}                           # see master/dns_config.h
 *     limits: {}                              # see master/serving_limits.h
 *     logLevel: info                          # and of modules: info,subnets=debug
 *
 * What is left out has the value shown.  A key that is not known, or a value that cannot be, is an error
 * that names the key: a misspelt key must not be a setting silently lost. */
#pragma once

#include "controllers/network/netconf.h"
#include "master/dns_config.h"
#include "master/service_config.h"
#include "master/serving_limits.h"

struct master_config {
    struct netconf network;
    struct service_config services;
    struct serving_limits limits;
    char *bind_address;                   /* "HOST:PORT" */
    char *storage_backend;                /* "sqlite", "etcd" or "memory" */
    char *storage_path;                   /* sqlite */
    int64_t storage_reserve_mb;           /* sqlite: room on the disk for deletions; 0: none. */
    char *storage_endpoints;              /* etcd: "http://host:port[,...]"; NULL: not given */
    char *etcd_ca, *etcd_cert, *etcd_key; /* Files; NULL: not given */
    unsigned lease_ttl_s;
    char *tls;                                        /* "auto", "off"; NULL: not given */
    char *pki_dir, *cert_file, *key_file, *client_ca; /* NULL: not given */
    char **names;
    size_t n_names;
    char *authorization_mode; /* "RBAC", "AlwaysAllow"; NULL: not given */
    bool anonymous, anonymous_given;
    struct address_ranges reserved;
    char **master_nodes;     /* Nodes on hosts of masters; end with NULL; NULL: not given. */
    char *sa_private_key;    /* NULL: not given */
    char **sa_public_keys;   /* End with NULL; NULL: none. */
    char **sa_managed_names; /* The same; NULL: not given. */
    char *audit_path, *audit_policy; /* NULL: not given */
    int64_t audit_max_mb, audit_max_files;
    struct dns_config dns;
    char *signing_cert, *signing_key; /* Of the authority; NULL: not given. */
    char *log_level;                  /* As log_set_levels takes it; NULL: not given. */
};

/* All defaults; master_config_done frees what the struct owns. */
void master_config_init(struct master_config *c);
void master_config_done(struct master_config *c);
static inline UNUSED void master_config_donep(struct master_config *c)
{
    master_config_done(c);
}

/* Takes over what the document 'v' sets.  -EINVAL names the key: "networkConfig.mtu: ...". */
int master_config_read(struct master_config *c, const struct json *v, struct err *e);
/* As above, of the YAML or JSON file 'path', which the error names too. */
int master_config_load(const char *path, struct master_config *c, struct err *e);
/* Sets one value from the command line; 'option' is a name of master_config_options.  The first
 * "cluster-network" replaces those of the file and the others add to it, which '*given' keeps track of (0 at
 * the start).  -EINVAL names the option. */
int master_config_set(struct master_config *c, const char *option, const char *value,
                      unsigned *given, struct err *e);
/* What can be checked only of the whole. */
int master_config_check(const struct master_config *c, struct err *e);

/* Names for master_config_set, NULL-terminated. */
extern const char *const master_config_options[];

/* How the API is served. */
enum master_tls_mode { MASTER_TLS_OFF, MASTER_TLS_AUTO, MASTER_TLS_FILES };
enum master_tls_mode master_config_tls(const struct master_config *c);
/* Whether whoever is known may do everything. */
bool master_config_always_allows(const struct master_config *c);
/* Whether requests without a credential are taken. */
bool master_config_anonymous(const struct master_config *c);
/* Whether only this host can connect to 'bind_address'. */
bool master_config_is_loopback(const struct master_config *c);
