/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the next state of a node's HostSubnet: the rules of the subnet controller.  Pure.
 *
 * A HostSubnet belongs to the Node whose uid its annotation node-uid holds.  One without that
 * annotation and without a Node of its name was made by an administrator for a host that is not a
 * node (a "ghost", such as an external load balancer).  A ghost is not changed, with one exception:
 * it gets a subnet if its annotation assign-subnet requests one (SUBNET_ASSIGN). */
#pragma once

#include "controllers/network/netconf.h"
#include "sdn/host_ports.h"

enum subnet_step {
    SUBNET_KEEP,   /* Nothing to do: it is in the desired state. */
    SUBNET_NONE,   /* There is neither Node nor HostSubnet. */
    SUBNET_REFUSE, /* The Node has no usable address and gets no subnet; an existing one stays. */
    SUBNET_CREATE, /* Allocate a subnet and create the HostSubnet. */
    SUBNET_ASSIGN, /* A ghost requests a subnet: allocate one and write it. */
    SUBNET_UPDATE, /* Write the Node's 'host_ip', 'uid' and annotations; the subnet stays. */
    SUBNET_DELETE, /* Delete it; if the Node exists, it gets a new one afterwards. */
};

/* Reasons of events and conditions. */
#define REASON_NO_SUBNET "NoSubnetAvailable"
#define REASON_BAD_ADDRESS "InvalidNodeAddress"
#define REASON_BAD_SUBNET "InvalidHostSubnet"
#define REASON_REFUSED "HostSubnetRefused"
#define REASON_ASSIGNED "SubnetAssigned"

struct subnet_plan {
    enum subnet_step step;
    const char *host_ip; /* For CREATE and UPDATE; belongs to the Node object. */
    const char *uid;     /* For CREATE and UPDATE; belongs to the Node object. */
    /* Annotations of the HostSubnet, owned; NULL: it has none. */
    char *addresses, *host_ports;
    const char *reason; /* The reason for an event; NULL: nothing to report. */
    char message[256];  /* Set with 'reason'. */
};

/* The addresses of type InternalIP of 'node' after the first one that it
 * may have (node_address_check), each once. */
void subnet_plan_addresses(const struct node_rules *rules, const struct json *node,
                           struct sdn_addresses *ret);
/* The inputs of a plan besides the Node and the HostSubnet. */
struct subnet_rules {
    const struct netconf *conf;
    const struct node_rules *addresses;
    const char *owner; /* Name of the HostSubnet whose hostIP is the node's address; NULL: none. */
    /* Further addresses of the Node that no other node has. */
    const struct sdn_addresses *further;
};
/* 'node' and 'hostsubnet' are the objects of one name, NULL when absent.  Only host ports that lead
 * to the HostSubnet's own subnet are taken from the Node: a node can announce only its own pods.
 * '*ret' is filled; subnet_plan_done frees it. */
void subnet_plan_make(const struct subnet_rules *rules, const struct json *node,
                      const struct json *hostsubnet, struct subnet_plan *ret);
void subnet_plan_done(struct subnet_plan *p);
static inline UNUSED void subnet_plan_donep(struct subnet_plan *p)
{
    subnet_plan_done(p);
}

/* An owned HostSubnet for a Node. */
struct json *subnet_plan_create(const char *name, const struct subnet_plan *plan,
                                struct ip4_prefix subnet);
/* An owned copy of 'hostsubnet' with 'host_ip', 'uid' and annotations. */
struct json *subnet_plan_update(const struct json *hostsubnet, const struct subnet_plan *plan);
/* An owned copy of 'hostsubnet' with a subnet in place of its request for one; its
 * identity (uid, resourceVersion) is kept. */
struct json *subnet_plan_assign(const struct json *hostsubnet, struct ip4_prefix subnet);

/* An owned copy of 'node' with the condition NetworkUnavailable: "True" with 'reason' and
 * 'message', or "False" with REASON_ASSIGNED when 'reason' is NULL.  NULL: the node has that
 * condition already, or has no problem that this controller reported. */
struct json *subnet_plan_condition(const struct json *node, const char *reason, const char *message,
                                   int64_t now_ms);

/* Two HostSubnets that exclude each other. */
struct subnet_conflict {
    const struct json *a, *b; /* 'a' is the older one. */
    const char *reason;       /* "OverlappingSubnets" or "DuplicateHostIP" */
};
/* All conflicts among 'objects', as an owned array.  Each object is listed
 * with the first one that it conflicts with. */
size_t subnet_conflicts(const struct json *const *objects, size_t n, struct subnet_conflict **ret);
