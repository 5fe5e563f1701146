/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's own state, which the files of this folder share.
 *
 * agent.c the agent put together: start, run, release network.c the network from the registry's
 * objects, and its changes remotes.c the other nodes, and this node's addresses projects.c projects
 * and their VNIDs policy.c network policy services.c services of pods, of the host and from outside
 * ports.c host ports pod_events.c CNI requests, and what follows from pods that come and go
 * forwarding.c the datapath and the host's side of it: ready, lost, repaired readiness.c whether
 * the node is ready: a pure function of facts conditions.c those facts, and the node's conditions
 * and Events that follow from them report.c Events shutdown.c the end view.c the agent's state as
 * metrics and introspection see it
 *
 * Each file sets the members of its own group and reads the others.  Everything runs on the loop's
 * thread. */
#pragma once

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/client.h"
#include "client/objects.h"
#include "client/services.h"
#include "controller/recorder.h"
#include "datapath/datapath.h"
#include "datapath/services/proxy.h"
#include "node/agent/readiness.h"
#include "node/cni/cni_conf.h"
#include "node/cni/cni_server.h"
#include "node/cni/pods.h"
#include "node/config.h"
#include "node/host/host.h"
#include "node/host/host_sync.h"
#include "node/host/monitor.h"
#include "node/host/neigh.h"
#include "node/host/node_host_ports.h"
#include "node/introspect/introspect.h"
#include "node/registry/identity.h"
#include "node/registry/names.h"
#include "node/registry/policies.h"
#include "node/registry/registration.h"
#include "node/registry/resolver.h"
#include "node/registry/services.h"
#include "sdn/egress.h"

struct agent {
    /* agent.c */
    const struct node_config *cfg;
    const char *config_path;
    struct loop *loop;
    enum agent_phase phase;
    uint32_t host_ip;
    int lock_fd;
    char *socket_path;
    struct cni_conf conf; /* The CNI configuration file that the agent writes. */
    char *cni_config;     /* Path of that file. */
    struct api_client *client;
    struct identity *identity; /* NULL: the kubeconfig is kept by another program. */
    struct registration *registration;
    struct recorder *recorder; /* NULL before there is a client. */
    bool registered;           /* The Node object exists. */
    struct watchdog *watchdog; /* NULL: the service manager does not ask for reports. */
    struct loop_signal *sigterm, *sigint, *sighup;
    struct introspect *introspect;

    /* network.c */
    struct informer *networks, *subnets;
    struct sdn_network net;  /* In effect; the agent owns its remotes. */
    bool inventory;          /* The datapath knows its pods. */
    bool network_set;        /* The datapath has a network from this agent. */
    bool read_again;         /* Objects have changed since 'net' was made of them. */
    struct loop_timer *wait; /* Logs what the start waits for. */
    char wait_text[512];     /* AGENT_WAITING: what the agent waits for. */
    struct loop_timer *settle;
    struct loop_timer *look_again;
    char refused[512]; /* Why the ClusterNetwork is not followed; "": it is. */
    bool master_lost;
    size_t master_losses;

    /* remotes.c */
    struct smap skipped; /* Name of a HostSubnet to the reason why it is not used. */

    /* projects.c */
    struct informer *projects; /* NULL: the plug-in has no VNIDs. */
    uint64_t vnids_wanted_ms;  /* When a plug-in began to wait for VNIDs; 0: none waits. */
    char wanted_project[256];  /* The project that the log named as waited for. */

    /* policy.c */
    struct policies *policies; /* Under ovs-networkpolicy; else NULL. */

    /* egress.c */
    struct agent_egress *egress; /* NULL: not followed yet. */

    /* services.c */
    struct services_watch *services; /* Shared by everything on this node that serves them. */
    struct services *pod_services;   /* Services for pods, in the datapath. */
    struct host_proxy *host_proxy;   /* Services for the host and from outside. */
    bool proxy_failed;               /* An Event said so. */

    /* pod_events.c */
    struct pods *pods;
    struct cni_server *cni_server;
    struct resolver *resolver; /* NULL: pods get no DNS from this node. */

    /* ports.c */
    struct host_ports *host_ports;

    /* forwarding.c */
    struct datapath_prepared *prepared; /* For 'datapath', until that is opened. */
    struct datapath *datapath;
    enum part_state datapath_state;
    char datapath_text[256]; /* Unless PART_READY: why. */
    struct host_sync *host_sync;
    struct monitor *monitor;
    enum part_state host_state;
    char host_text[256]; /* Unless PART_READY: why. */
    struct neigh *neigh; /* NULL: the kernel resolves the VTEPs' neighbours. */
    size_t switch_losses, switch_refusals, host_losses;

    /* conditions.c */
    struct readiness published; /* The last that the node's conditions and Events said. */
    bool published_failure;     /* An Event said that the node is not ready. */
    struct readiness shown;     /* The last result of agent_readiness. */

    /* shutdown.c */
    int status; /* The process's exit status. */
    struct loop_timer *stop_timer;
    uint64_t stop_began;
};
