/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the agent: node-config.yaml, whose keys are OpenShift's where it has them, and
 * the flags that override it.  The rows of node_options describe all of them;
 * packaging/config/node-config.yaml shows them. Parsing changes nothing and asks nothing of the
 * system; defaults that depend on it (name, address) stay empty until node_config_finish. */
#pragma once

#include "base/err.h"
#include "base/map.h"
#include "sdn/network.h"
#include "wire/options.h"

struct node_config {
    char *node_name;  /* NULL: the host's name. */
    uint32_t node_ip; /* 0: the address of the link with the default route. */
    char *kubeconfig; /* NULL: $KUBECONFIG, then ~/.kube/config. */
    /* URLs of more masters, with commas between; NULL: only the server of 'kubeconfig'. */
    char *servers;
    char *bootstrap_kubeconfig; /* NULL: the administrator maintains 'kubeconfig'. */
    char *plugin_name;          /* NULL: the plug-in of the ClusterNetwork. */
    uint32_t mtu;               /* Bytes, for pods; 0: the MTU of the ClusterNetwork. */
    char *run_dir, *cni_conf_dir, *cni_conf_name;
    bool chain_portmap, chain_bandwidth; /* "cniPlugins": plug-ins chained after tenet-cni. */
    char *datapath;                      /* "ovs" or "ebpf" */
    /* Settings of the datapaths: text by key ("ovs.bridge").  Only a datapath interprets them. */
    struct smap datapath_settings;
    bool block_metadata;   /* Pods do not reach the metadata address of clouds. */
    bool proxy_userspace;  /* "proxyArguments.proxy-mode" is userspace; else nftables translate. */
    char *metrics_address; /* "127.0.0.1:9101"; NULL: metrics are at the agent's socket only. */
    char *log_level;       /* NULL: unchanged. */
    char *log_format;      /* "text" or "json"; NULL: unchanged. */
    /* DNS for pods, see docs/dns.md. */
    char *dns_domain;       /* NULL: cluster.local. */
    char *dns_bind_address; /* "ADDRESS[:PORT]", "none"; NULL: the subnet's gateway, port 53. */
    uint32_t dns_ip;        /* The name server in the pods' DNS configuration; 0: the gateway. */
    /* "ADDRESS[:PORT][,...]", "none"; NULL: the servers of 'dns_resolv_conf'. */
    char *dns_nameservers;
    char *dns_resolv_conf; /* NULL: /etc/resolv.conf. */
    /* Under ovs-multitenant, DNS answers a pod only with names of projects that the pod can
     * reach. */
    bool dns_isolate_projects;
    struct option_findings findings; /* Keys of the file that have no effect. */
};

/* Sets all defaults that do not depend on this host. */
void node_config_init(struct node_config *c);
void node_config_done(struct node_config *c);
static inline UNUSED void node_config_donep(struct node_config *c)
{
    node_config_done(c);
}

/* Reads 'text' over the present members of 'c'; relative paths are taken from 'dir' (of
 * the file; NULL: they stay relative).  -EINVAL, with '*e' naming the key:
 * "networkConfig.mtu: 70000 is not in 576-65535". */
int node_config_parse(struct node_config *c, const char *text, size_t size, const char *dir,
                      struct err *e);
/* Calls node_config_parse for the file 'path'; relative paths are taken from its folder. */
int node_config_load(struct node_config *c, const char *path, struct err *e);
/* Fills in the defaults that depend on this host, and checks rules that join several keys. */
int node_config_finish(struct node_config *c, struct err *e);

/* The rows of all keys and flags. */
extern const struct option_table node_options;
