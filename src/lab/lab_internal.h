/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of src/lab: the handle, names and paths, daemons, hosts, API calls. */
#pragma once

#include "base/ip.h"
#include "client/client.h"
#include "lab/lab.h"
#include "net/loop/process.h"

#define WIRE_NET 0x0af50200u /* 10.245.2.0/24 */
#define WIRE_LEN 24
#define MASTER_IP (WIRE_NET + 2)
#define NODE_IP_FIRST (WIRE_NET + 3)
#define NODE_IP_LAST (WIRE_NET + 253)
#define OUTSIDE_IP (WIRE_NET + 254)
#define INTERNET_IP 0xc633640au /* 198.51.100.10 (RFC 5737) */
#define MASTER_PORT 8443
#define NETWORK_API "network.openshift.io/v1"

#define START_TIMEOUT_MS 60000
#define STOP_TIMEOUT_MS 10000

struct lab {
    char *name;
    char *dir; /* LAB_ROOT/NAME */
    lab_progress_fn *progress;
    void *progress_ctx;
    struct json *config; /* lab.json, once loaded. */
    int lock;
    struct loop *loop; /* Set with 'api', once connected. */
    struct api_client *api;
};

/* ---- lab.c: names, configuration, lock ---- */

void lab_say(struct lab *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Owned "tenet-LAB-HOST". */
char *lab_ns(const struct lab *l, const char *host);
char *lab_pod_ns(const struct lab *l, const char *project, const char *name);
/* Owned path below the lab's directory. */
char *lab_path(const struct lab *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
int lab_write(const struct lab *l, const char *text, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Names of the lab's namespaces, as a JSON array. */
struct json *lab_namespaces(const struct lab *l);
/* Removes the network namespace 'ns' and its folder in NETNS_ETC. */
int lab_netns_delete(const char *ns, struct err *e);
/* Loads lab.json; the error distinguishes "is not there" and "is half there". */
int lab_load(struct lab *l, struct err *e);
/* Makes 'l' the only one that adds to or removes from the lab, as long as it lives.  Programs
 * being started hold the lock, too, so that after a kill none starts concurrently with lab_down. */
int lab_lock(struct lab *l, struct err *e);
bool lab_is_locked(const struct lab *l); /* By somebody else. */
int lab_check_host_name(const char *name, struct err *e);
/* Waits until 'cond' holds; -ETIMEDOUT.  A negative value of 'cond' ends it. */
int lab_wait(int (*cond)(void *ctx), void *ctx, uint64_t timeout_ms);

/* ---- daemon.c: programs in the background; pid and log are DIR/NAME.pid and DIR/NAME.log ---- */

struct daemon {
    const char *dir, *name;
    const char *title; /* For messages: "the agent of node1". */
};
/* 's' lacks only the outputs. Success when it runs already, too ('*ret_started' false). */
int daemon_start(const struct daemon *d, const struct process_spec *s, bool *ret_started,
                 struct err *e);
pid_t daemon_pid(const struct daemon *d); /* 0: does not run. */
/* SIGTERM, after a while SIGKILL; 'hard': SIGKILL at once.  Waits for the end. */
int daemon_stop(const struct daemon *d, bool hard, struct err *e);
/* Waits until 'cond' holds; fails with the end of its log when it ends earlier or on timeout. */
int daemon_wait(const struct daemon *d, const char *what, int (*cond)(void *ctx), void *ctx,
                struct err *e);
/* Fails with the end of its log if it has ended. */
int daemon_ended(const struct daemon *d, struct err *e);
/* Runs a tool to its end; an exit status other than 0 is an error with the tool's output. */
int tool_run_spec(const struct process_spec *s, struct err *e);
int tool_run(const char *const argv[], int netns_fd, struct err *e);

/* ---- host.c: namespaces joined by the wire ---- */

int wire_create(struct lab *l, struct err *e);
uint32_t wire_mtu(const struct lab *l);
/* A reproducible MAC address: 02:00 and the four bytes of 'addr'. */
struct mac host_mac(uint32_t addr);
/* Creates the namespace of 'host' with eth0 on the wire, whose MAC address is host_mac(addr).
 * 'in_switch': eth0 goes into a switch, and gets no address itself. */
int host_create(struct lab *l, const char *host, uint32_t addr, bool in_switch, struct err *e);
/* Brings up link 'name' of 'host' with 'addr' and the default route. */
int host_address(struct lab *l, const char *host, const char *link, uint32_t addr, struct err *e);
int outside_create(struct lab *l, struct err *e);
int host_open(const struct lab *l, const char *host, int *ret_fd, struct err *e);

/* ---- master.c ---- */

unsigned master_count(const struct lab *l);
int master_create(struct lab *l, struct err *e);
/* Starts etcd, if there is one, and all masters that do not run. */
int master_start(struct lab *l, struct err *e);
/* With HTTPS: writes the credentials with which nodes join to bootstrap.kubeconfig. */
int master_write_join(struct lab *l, struct err *e);
bool lab_has_tls(const struct lab *l);
bool lab_has_oauth(const struct lab *l);
/* Where to log in: server and certificateAuthority; empty without an OAuth server. */
struct json *master_login(const struct lab *l);
bool master_runs(const struct lab *l); /* Any of them. */
/* Owned URLs of the masters except the first, separated by commas, as seen from nodes or from
 * the machine itself; NULL: there are none. */
char *master_more_servers(const struct lab *l, bool from_nodes);
struct json *master_status(struct lab *l);

/* ---- ovs.c ---- */

/* Whether the kernel forwards packets and finds the route to other hosts itself: there is no
 * br-phy. */
bool lab_switch_is_kernels(const struct lab *l);
int ovs_start(struct lab *l, const char *node, uint32_t addr, struct err *e);
int ovs_stop(struct lab *l, const char *node, bool hard, struct err *e);
bool ovs_running(struct lab *l, const char *node);

/* ---- node.c ---- */

/* Creates a new node including its switch; may be called on any thread. */
int node_prepare(struct lab *l, const char *node, uint32_t addr, struct err *e);
/* Starts its agent and waits until the node has a subnet. */
int node_join(struct lab *l, const char *node, struct err *e);
/* Waits until it has its CNI configuration and its Node object is Ready. */
int node_wait_ready(struct lab *l, const char *node, struct err *e);
/* Kills the node's processes and removes its namespace and files. */
int node_remove(struct lab *l, const char *node, struct err *e);
int node_check(struct lab *l, const char *node, struct err *e); /* Whether it is in the lab. */
int node_address(struct lab *l, const char *node, uint32_t *ret, struct err *e);
/* Returns the datapath of the node with this address, by the lab's list of datapaths, as an owned
 * text. */
char *node_datapath(const struct lab *l, uint32_t addr);
bool node_has_ovs(const struct lab *l, uint32_t addr);
/* Unmounts everything that agents have mounted below the lab's directory. */
void nodes_unmount(struct lab *l);
/* Names of the nodes in the order of their addresses. */
struct json *node_names(struct lab *l);
pid_t node_pid(struct lab *l, const char *node);
/* Owned configuration of the node's plug-in; -EAGAIN: it is not ready. For a chain only the
 * first plug-in: the others act on runtimeConfig, which the lab does not use. */
int node_cni_config(struct lab *l, const char *node, char **ret, struct err *e);

/* ---- containers.c: containerd, kubelet and their mount namespace ---- */

bool lab_has_containers(const struct lab *l);
/* Whether all programs are installed; the error says how to go on. */
int containers_check(struct err *e);
/* Writes the archive of the lab's images, which the nodes import. */
int containers_write_images(struct lab *l, struct err *e);
/* Makes the node's mount namespace, starts its containerd and gives it the images; may be called on
 * any thread. */
int containers_create(struct lab *l, const char *node, struct err *e);
int containerd_start(struct lab *l, const char *node, struct err *e);
/* Kills kubelet, containerd, the shims and the containers of the node, or of all with 'node' NULL.
 * Before the other processes of the node are killed: a shim's children are known by it only. */
void containers_kill(struct lab *l, const char *node);
/* Lets go of the mount namespace, whose mounts end with its last process. */
void containers_unmount(struct lab *l, const char *node);
/* Removes the cgroups, layers and images of the node, or of all with 'node' NULL. */
int containers_remove(struct lab *l, const char *node, struct err *e);
char *containerd_socket(const struct lab *l, const char *node); /* Owned path. */
pid_t containerd_pid(const struct lab *l, const char *node);
/* Writes the kubelet's configuration, which has the gateway of the node's subnet as name server. */
int kubelet_configure(struct lab *l, const char *node, struct err *e);
int kubelet_start(struct lab *l, const char *node, struct err *e);
/* Fails with the end of its log if it has ended. */
int kubelet_check(struct lab *l, const char *node, struct err *e);
pid_t kubelet_pid(const struct lab *l, const char *node);
/* Owned path below each hierarchy, without a slash before it; 'node' NULL: of the lab. */
char *node_cgroup(const struct lab *l, const char *node);

/* How to run 'command' in the namespaces of a node with containers. */
struct node_command {
    struct process_spec spec;
    const char **argv;
    char *mount;
    int netns;
};
/* Also after an error, node_command_done follows. */
int node_enter_spec(struct lab *l, const char *node, const char *const command[],
                    struct node_command *ret, struct err *e);
void node_command_done(struct node_command *c);

/* ---- pod.c ---- */

/* Detaches 'pod' (an object) and deletes it. 'gone': its node is gone, and nothing is detached. */
/* Writes the variables of the services that the pod in namespace 'ns' finds now. */
int pod_write_environment(struct lab *l, const char *project, const char *ns, bool links,
                          struct err *e);
/* Sets them in this process. */
void pod_enter_environment(const char *ns);
int pod_remove(struct lab *l, const struct json *pod, bool gone, struct err *e);

/* ---- api.c: '*ret' may be NULL ---- */

int lab_connect(struct lab *l, struct err *e);
int lab_call(struct lab *l, const char *method, const char *path, const struct json *body,
             struct json **ret, struct err *e);
/* By kind: GET of "nodes", DELETE of "namespaces" ...; name NULL: the list. */
int lab_get(struct lab *l, const char *api_version, const char *plural, const char *ns,
            const char *name, struct json **ret, struct err *e);
/* -ENOENT is success. */
int lab_delete(struct lab *l, const char *api_version, const char *plural, const char *ns,
               const char *name, struct err *e);
/* Waits until the object is gone. */
int lab_wait_absent(struct lab *l, const char *api_version, const char *plural, const char *name,
                    struct err *e);
