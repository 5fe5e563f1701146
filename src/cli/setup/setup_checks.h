/* SPDX-License-Identifier: Apache-2.0 */
/* What would fail on this host, before anything is changed: "tenet setup check".
 *
 * The facts are gathered by setup_facts.c; the checks are rows, each a pure function of the facts
 * and of what the host is to become.  A finding says what was looked at, what was found, and what
 * to do about it. */
#pragma once

#include "controllers/network/netconf.h"

enum setup_role { SETUP_MASTER = 1, SETUP_NODE = 2 };

/* Programs that are searched in PATH. */
enum setup_tool {
    SETUP_NFT,
    SETUP_VSWITCHD,
    SETUP_OVSDB_SERVER,
    SETUP_VSCTL,
    SETUP_N_TOOLS,
};
/* Features of the kernel, tried in a network namespace of their own. */
enum setup_feature {
    SETUP_VETH,
    SETUP_VXLAN,
    SETUP_MACVLAN,
    SETUP_NFTABLES,
    SETUP_BPF,
    SETUP_N_FEATURES,
};

/* A socket that listens for TCP, or is bound for UDP. */
struct setup_socket {
    bool udp;
    uint32_t addr; /* 0: all addresses. */
    uint16_t port;
    uint64_t inode;
    char owner[48]; /* "nginx (pid 12)"; "": not known. */
    bool tenet;     /* The owner is a program of Tenet. */
};

struct setup_link {
    char name[16], kind[16];
    uint32_t mtu;
    uint16_t vxlan_port;
};

struct setup_route {
    struct ip4_prefix dst;
    char link[16];
    bool gateway;
};

struct setup_facts {
    bool root, systemd;
    char host_name[256];
    unsigned kernel_major, kernel_minor;
    char kernel[64];
    bool tools[SETUP_N_TOOLS];
    bool features[SETUP_N_FEATURES], features_tried;
    char features_error[128]; /* Why they could not be tried. */
    bool ovs_answers, ovs_module;
    bool cni_plugin; /* tenet-cni is installed. */
    /* Time. */
    int64_t now_ms;
    bool clock_synced, rtc_local;
    char zone[64]; /* "Europe/Berlin"; "": /etc/localtime is missing or names no zone. */
    /* Addresses, links, routes, sockets. */
    struct netconf_host_net *nets;
    size_t n_nets;
    struct setup_link *links;
    size_t n_links;
    struct setup_route *routes;
    size_t n_routes;
    struct setup_socket *sockets;
    size_t n_sockets, sockets_cap;
    uint32_t address; /* Of the link with the default route; 0: none. */
    /* The disk of the state directory, and memory. */
    const char *state_dir; /* Not owned. */
    int64_t disk_free, inodes, inodes_free;
    bool disk_remote, disk_read_only;
    int64_t memory, memory_available;
    /* CNI configurations of other programs in /etc/cni/net.d, and Tenet's own. */
    char **cni;
    size_t n_cni;
    char runtime[64]; /* Socket of the container runtime; "": none. */
    bool firewalld, ufw;
    char etcd_error[160]; /* Why the first endpoint of etcd does not answer; "": it does. */
};
void setup_facts_done(struct setup_facts *f);

/* What this host is to become. */
struct setup_wish {
    unsigned roles;   /* enum setup_role */
    uint32_t address; /* 0: setup_facts.address. */
    uint16_t api_port;
    bool dns;                      /* The master answers DNS at its address. */
    const struct netconf *network; /* Networks, VXLAN port, and MTU (0: not chosen yet). */
    enum {
        SETUP_ALL,
        SETUP_HOST_ONLY,
        SETUP_NETWORK_ONLY
    } part;    /* HOST: 'network' is not known. */
    bool ebpf; /* The node's datapath. */
    bool kubelet;
    bool etcd;
};

enum setup_level { SETUP_OK, SETUP_WARN, SETUP_FAIL };
struct setup_finding {
    enum setup_level level;
    char what[32], found[256], todo[256]; /* 'todo' is "" when all is well. */
};
/* The most findings of one call. */
#define SETUP_MAX_FINDINGS 64
/* Fills 'ret' and returns the number of findings.  Pure. */
size_t setup_check(const struct setup_facts *f, const struct setup_wish *w,
                   struct setup_finding ret[SETUP_MAX_FINDINGS]);

/* Adds the sockets in the text of /proc/net/tcp, tcp6, udp or udp6 (proc(5)): those that listen, or
 * are bound.  Lines in another form are skipped.  Pure. */
void setup_sockets_add(struct setup_facts *f, const char *text, bool udp);
