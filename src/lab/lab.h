/* SPDX-License-Identifier: Apache-2.0 */
/* A lab: a whole cluster on one machine, each of its hosts a network namespace.
 *
 *     tenet-LAB-wire     a Linux bridge that plays the physical network, 10.245.2.0/24
 *     tenet-LAB-master   10.245.2.2, runs "tenet master" (and etcd, if asked for), no pod network;
 *                        several masters have ports of their own, from 8443 on
 *     tenet-LAB-NODE     10.245.2.3 and up; each with its own Open vSwitch and "tenet node".  The
 *                        host's link is eth0 in the bridge br-phy, which has the address; with the
 *                        datapath ebpf, which has no Open vSwitch, and with Open vSwitch's kernel
 *                        datapath, eth0 has it
 *     tenet-LAB-outside  10.245.2.254, the nodes' default gateway, and 198.51.100.10: "the
 *                        internet".  It has no route to pods, so that answers which reach pods
 *                        prove NAT
 *     tenet-LAB-pod-PROJECT.NAME   the pods that lab_pod_add makes, without containers
 *
 * With containers each node has a "tenet kubelet" and a containerd of its own, with the images of
 * images.h; their mounts are in a mount namespace of the node.
 *
 * Nothing is changed in the machine's own namespace; the API is reachable there through a
 * listening socket on 127.0.0.1 which the lab creates and passes to the master. All files are
 * below /run/tenet/lab/LAB, but layers of containers are below /var/lib/tenet/lab/LAB, and their
 * control groups below tenet-LAB. lab_down finds all remains of a lab by those names, whatever
 * happened to it.
 *
 * Functions block and are for command-line programs.  They report their steps through the
 * progress function, which may be called from several threads at once.  A 'struct lab' is used
 * by one thread. */
#pragma once

#include "wire/json.h"

#define LAB_ROOT "/run/tenet/lab"
#define LAB_NAME_MAX 32
#define LAB_NODES_MAX 200
#define LAB_MASTERS_MAX 9

struct lab;
typedef void lab_progress_fn(void *ctx, const char *line);

/* A handle; the lab is not read yet. -EINVAL: not a valid name (lower-case letters and digits:
 * with a dash "a-b" and the "b" of lab "a" would be the same). */
int lab_new(const char *name, lab_progress_fn *progress, void *ctx, struct lab **ret,
            struct err *e);
struct lab *lab_free(struct lab *l);
DEFINE_CLEANUP(struct lab *, lab_free)

struct lab_options {
    unsigned nodes;
    unsigned masters;            /* More than one requires etcd. */
    const char *plugin;          /* "redhat/openshift-ovs-multitenant" ... */
    const char *store;           /* "sqlite" or "etcd" */
    const char *datapath;        /* "ovs", "ebpf", or "ovs,ebpf": the nodes use them in turn. */
    const char *datapath_type;   /* Kind of Open vSwitch's datapath: "netdev" or "system" */
    const char *cluster_network; /* "10.128.0.0/14" */
    unsigned host_subnet_length; /* Host bits: 9 gives a /23. */
    unsigned mtu;                /* MTU of pods; the wire's is 50 more, if that is above 1500. */
    unsigned vxlan_port;
    bool containers; /* A containerd and a kubelet for each node. */
    bool tls;        /* HTTPS, and a certificate of its own for each node. */
    bool oauth;      /* An OAuth server where every name logs in; needs 'tls'. */
    bool keep;       /* After a failure keep everything, for inspection. */
};
#define LAB_OPTIONS_INIT                              \
    ((struct lab_options){                            \
        .nodes = 3,                                   \
        .masters = 1,                                 \
        .plugin = "redhat/openshift-ovs-multitenant", \
        .store = "sqlite",                            \
        .datapath = "ovs",                            \
        .datapath_type = "netdev",                    \
        .cluster_network = "10.128.0.0/14",           \
        .host_subnet_length = 9,                      \
        .mtu = 1450,                                  \
        .vxlan_port = 4789,                           \
        .containers = true,                           \
    })

/* Creates it and waits until every node is Ready. -EEXIST: there is (a part of) a lab with this
 * name. */
int lab_up(struct lab *l, const struct lab_options *o, struct err *e);
/* Removes everything of the lab; '*ret_found': whether it existed. */
int lab_down(struct lab *l, bool *ret_found, struct err *e);
/* The complete status: "kubeconfig", "nodes", "pods", ... Works without a master, too. */
int lab_status(struct lab *l, struct json **ret, struct err *e);

int lab_project_add(struct lab *l, const char *project, struct err *e);
/* Detaches its pods first. */
int lab_project_delete(struct lab *l, const char *project, struct err *e);

enum lab_action { LAB_START, LAB_STOP, LAB_RESTART, LAB_KILL };
/* 'number' from 1: one master; 0: all, and etcd. */
int lab_master(struct lab *l, unsigned number, enum lab_action action, struct err *e);
int lab_ovs(struct lab *l, const char *node, enum lab_action action, struct err *e);
/* Containers go on without their containerd, and without their kubelet. */
int lab_containerd(struct lab *l, const char *node, enum lab_action action, struct err *e);
int lab_kubelet(struct lab *l, const char *node, enum lab_action action, struct err *e);

int lab_node_add(struct lab *l, const char *node, struct err *e);
int lab_node_delete(struct lab *l, const char *node, struct err *e);
/* Acts on its agent. */
int lab_node_action(struct lab *l, const char *node, enum lab_action action, struct err *e);

/* Does the work of kubelet and runtime in a lab without containers (else -EOPNOTSUPP): Pod object,
 * namespace, CNI ADD, status. 'node' NULL: the node with the fewest pods. '*ret': "project",
 * "name", "podIP", "vnid", "node", "netns", "containerID". A failure leaves nothing behind.
 * 'labels' and 'ports' are those of the Pod and of its container; 'links': enableServiceLinks. */
int lab_pod_add(struct lab *l, const char *project, const char *name, const char *node,
                const struct json *labels, const struct json *ports, bool links, struct json **ret,
                struct err *e);
/* Sets the result of its readiness probe: services do not send to a pod that is not ready. */
int lab_pod_ready(struct lab *l, const char *project, const char *name, bool ready, struct err *e);
int lab_pod_delete(struct lab *l, const char *project, const char *name, struct err *e);

/* Owned path of one of our programs ("tenet-cni"): beside this one, in the build tree,
 * installed. */
int program_find(const char *name, char **ret, struct err *e);

/* Executes the program 'argv' in the namespace of a pod or node (or "master", "outside",
 * "wire"): returns only on failure. In a node OVS_RUNDIR is set, so that ovs-vsctl uses the
 * node's Open vSwitch. */
int lab_pod_exec(struct lab *l, const char *project, const char *name, char *const argv[],
                 struct err *e);
int lab_node_exec(struct lab *l, const char *node, char *const argv[], struct err *e);
