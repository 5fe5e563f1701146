/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the datapath "ebpf" itself: ebpf.c (the interface),
 * network.c (the desired network in maps and links) and members.c (the pods).  No other file
 * includes it.
 *
 * All state belongs to the loop's thread, except for the pods and their two maps, which workers
 * that wire a pod share under 'lock'. */
#pragma once

#include "datapath/ebpf/devices.h"
#include "datapath/ebpf/early.h"
#include "datapath/ebpf/firewall.h"
#include "datapath/ebpf/hook.h"
#include "datapath/ebpf/inlet.h"
#include "datapath/ebpf/paths.h"
#include "datapath/ebpf/policy.h"
#include "datapath/ebpf/program.h"
#include "datapath/ebpf/reserve.h"
#include "datapath/ebpf/table.h"
#include "datapath/ebpf/tcx_upgrade.h"
#include "datapath/ebpf/upcall.h"
#include "datapath/ebpf/watch.h"
#include "datapath/ops.h"
#include "datapath/outbox.h"

#include <pthread.h>

#define EBPF_RETRY_MS 1000
/* Interval of removing expired connections, and of retrying policy rows that did not fit. */
#define EBPF_SWEEP_MS 10000

struct member {
    struct dp_pod *pod; /* Written by the loop's thread, under the lock. */
    /* Called when the pod is on file and in the maps; NULL: it is. */
    datapath_done_fn *attached;
    void *attached_ctx;
    int ifindex;   /* ifindex of the pod's link; 0: not wired. */
    int inlet;     /* The link on which its packets arrive: its own, or one behind it (inlet.h). */
    bool queued;   /* The pod's link limits packets to it. */
    bool upgraded; /* tcx_upgrade.h got its link already. */
};

struct ebpf_dp {
    struct datapath dp; /* First. */
    struct loop *loop;
    struct datapath_events events;
    void *ctx;
    char *bpffs, *maps, *records; /* Folders. */
    char *hooks_dir;
    struct hooks hooks;
    struct early *early; /* Set until the programs are loaded. */
    struct program_features features;
    struct program program;
    bool loaded;

    struct sdn_network net;
    bool have_network, in_place;
    enum outbox_trouble trouble; /* Reported to the agent, and not over. */
    /* The new programs are loaded, and not at the links yet: they wait for the services, as the old
     * programs may have some, and for the end of 'reserve'. */
    bool hooks_due;
    bool services_set;           /* The services are in the maps. */
    struct reserve *reserve;     /* Reserves places at the links; NULL: it does not, or is done. */
    struct tcx_upgrade *upgrade; /* NULL: pods' links keep what they have. */
    struct devices devices;
    struct table routes, subnets, vteps, services, backends, serving;
    uint8_t subnet_len; /* Of 'subnets'. */
    bool has_services;  /* The maps have services. */
    char *node_name;
    const struct datapath_services *all_services; /* NULL: not settled yet. */
    struct loop_task services_task;               /* Brings the maps in line with them. */
    size_t connections_ended;
    struct policy_maps policy;
    struct firewall_maps firewalls;
    struct loop_task policy_task;
    struct loop_timer *sweep, *lend;
    struct paths *paths; /* NULL: all packets go by the VXLAN device. */
    size_t applied;      /* Changes of the other maps since the start. */
    /* Rows that did not fit: since the start, and now. */
    size_t pods_refused, nodes_refused, services_refused, nodes_left_out, services_left_out;
    struct upcalls *upcalls;
    struct watch *watch; /* NULL: nobody watches. */
    uint32_t watch_number;
    uint64_t drops[MODEL_N_CAUSES]; /* The counters when last read. */

    pthread_mutex_t lock; /* Protects the following members. */
    struct member *members;
    size_t n_members, cap_members;
    struct table pods, pod_cache, ports;
    size_t pods_applied; /* Changes of these. */

    const struct dp_pod **view; /* The array that ebpf_pods returned last. */
    struct loop_task task;
    struct loop_timer *retry;
    struct outbox outbox;
};

static inline struct ebpf_dp *ebpf_of(struct datapath *dp)
{
    return CONTAINER_OF(dp, struct ebpf_dp, dp);
}

/* Number of entries of a map. */
static inline uint32_t ebpf_room(const struct ebpf_dp *x, uint32_t usual)
{
    return x->features.max_entries ? MIN(x->features.max_entries, usual) : usual;
}

/* Reports, once until it is over, that a part is gone (OUTBOX_LOST) or that the kernel refuses a
 * change (OUTBOX_REFUSED); it is tried again. */
void ebpf_report(struct ebpf_dp *x, enum outbox_trouble t, const char *reason);

/* ---- members.c ---- */

/* Reads the pods on file, once at the start. */
int members_read(struct ebpf_dp *x, struct err *e);
/* With the lock held: the pod with this link, or NULL. */
struct member *members_find_link(struct ebpf_dp *x, const char *host_if);
/* With the lock held: finds the links of pods that an earlier agent process wired. */
int members_find_links(struct ebpf_dp *x, struct err *e);
/* With the lock held: updates the maps of pods; -ENOSPC when not all rows fit. */
int members_put(struct ebpf_dp *x, struct err *e);
/* With the lock held: attaches the programs to the links of pods. A pod whose link refuses is
 * skipped, so that the others work. */
int members_hook(struct ebpf_dp *x, struct err *e);
/* Continues with pods that are being attached, whose links workers create meanwhile; false:
 * there are none. */
bool members_settle(struct ebpf_dp *x);
/* The link on which packets from the link 'port' arrive. */
uint32_t members_inlet(struct ebpf_dp *x, uint32_t port);
/* The 'next' of struct tcx_upgrade_config. */
bool members_next_upgrade(void *ctx, struct hook_place *ret);

void ebpf_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                 datapath_done_fn *done, void *ctx);
void ebpf_detach(struct datapath *dp, const char *container_id, const char *ifname,
                 datapath_done_fn *done, void *ctx);
void ebpf_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                      const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                      void *ctx);
void ebpf_set_vnids(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v);
const struct dp_pod *const *ebpf_pods(struct datapath *dp, size_t *ret_n);
int ebpf_wire(struct datapath *dp, const struct dp_wire *w, struct err *e);
int ebpf_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e);
int ebpf_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e);

/* ---- network.c ---- */

/* While the programs are loaded: prepares for the network 'n' what is possible already. */
void network_expect(struct ebpf_dp *x, const struct sdn_network *n);
int network_put_settings(struct ebpf_dp *x, struct err *e);
/* Callbacks on the loop: timers, the task of policies, and changed policies. */
void network_retry(void *ctx);
void network_sweep(void *ctx);
void network_lend(void *ctx);
void network_put_policy(void *ctx);
void network_policy_changed(void *ctx);
void network_put_services(void *ctx);

void ebpf_set_network(struct datapath *dp, const struct sdn_network *n);
void ebpf_change_service(struct datapath *dp, const struct sdn_service *old,
                         const struct sdn_project_service *now);
void ebpf_settle_services(struct datapath *dp, const struct datapath_services *all);
void ebpf_set_firewall(struct datapath *dp, uint32_t vnid, const struct firewall_block *blocks,
                       size_t n);
void ebpf_release(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size);
void ebpf_link_gone(struct datapath *dp, const char *name);
