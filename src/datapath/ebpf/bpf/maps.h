/* SPDX-License-Identifier: Apache-2.0 */
/* What the eBPF programs and the agent share: the maps' keys and values.
 *
 * The agent writes, the programs read; only counters go the other way.  Every value is replaced as a whole, so a packet
 * sees one before or one after.  Addresses of packets are in network byte order (__be32), as they are compared
 * with packets; VTEPs are in host byte order, as the tunnel helpers want them.  A change of a layout makes
 * maps that are pinned unusable: the agent then makes new ones and swaps the programs (program.h). */
#pragma once

#include <linux/types.h>

/* Read only, set when the programs are loaded: code that is not for this kernel is cut off then. */
struct ebpf_options {
    __u32 redirect_peer; /* The kernel hands packets over to the other end of a veth pair. */
    __u32 scrub;         /* Likewise, as what came for whom they are for now. */
    __u32 events;        /* The kernel has ring buffers: who watches is told (EBPF_EVENTS). */
    __u32 encap;         /* The kernel lets programs put tunnel headers on and off. */
    __u32 under_test;    /* See EBPF_CB_PORT. */
    __u32 dry;           /* A trace: what the agent reads of maps stays as it is. */
};

/* Pods of this node, by address. */
#define EBPF_PODS "tenet_pods"
#define EBPF_PODS_MAX 65536 /* The largest subnet of a host. */
union ebpf_reach {
    struct {
        __u32 ifindex; /* Host end of its link; 0: not wired yet, nobody reaches it. */
        __u32 vnid;
    };
    __u64 both; /* Read as one: EBPF_NEAR changes so much at a time. */
};
struct ebpf_pod {
    union ebpf_reach reach;
    __u32
        inlet; /* The link by which its packets come in: the same, or one behind a queue that limits it. */
    __be32 addr;
    __u32 also_vnid; /* With EBPF_POD_ALSO: taken as well. */
    __u8 flags;
    __u8 zero[3];
    __u8 mac[6];
    __u8 unused[2];
};
#define EBPF_POD_ALSO 1   /* Its project moves to another VNID. */
#define EBPF_POD_QUEUED 2 /* What goes to it passes the queue of its link, which limits it. */

/* Once more, by the low bits of their address, but for those whose project moves: what is at its place in an array is found
 * without a hash's detours through memory, of which streams keep little in the caches.  Nor those with the same bits, which only
 * a large host subnet has: a place never changes from one pod to another while a packet looks at it. */
#define EBPF_NEAR "tenet_near"
#define EBPF_NEAR_MAX 2048

/* Links by which pods' packets come in, by ifindex: the pod's address.  Only to tell causes of drops apart. */
#define EBPF_PORTS "tenet_ports"

/* Where addresses are, longest prefix first; what no prefix has is outside. */
#define EBPF_ROUTES "tenet_routes"
#define EBPF_ROUTES_MAX 65536
struct ebpf_route_key {
    __u32 len;
    __be32 addr;
};
enum ebpf_route_kind {
    EBPF_CLUSTER = 1, /* A cluster network, of no node. */
    EBPF_SERVICE,
    EBPF_LOCAL,   /* This node's subnet, ... */
    EBPF_GATEWAY, /* ... and its first address. */
    EBPF_REMOTE,  /* Another node's subnet. */
};
struct ebpf_route {
    __u8 kind;
    __u8 has_fixed; /* Its packets leave with this VNID, whoever sends. */
    __u16 mtu;
    __u32 fixed_vnid;
    __u32 vtep; /* EBPF_REMOTE, host byte order. */
    /* The link that leads there (0: only the VXLAN device knows), its next hop, and (above) what fits. */
    __u32 ifindex;
    __be32 next;
};

/* Once more, those of other nodes whose prefix has the length that most have (ebpf_settings.subnet_len), but for such in which
 * a longer prefix lies: a trie of thousands is far to walk. */
#define EBPF_SUBNETS "tenet_subnets"

/* Between an Ethernet header and a packet in the tunnel (bpf/encap.h). */
#define EBPF_OUTER_SIZE 50
#define EBPF_ENCAP_FLAGS                                                                     \
    (BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_ENCAP_L4_UDP | \
     BPF_F_ADJ_ROOM_ENCAP_L2(ETH_HLEN) | BPF_F_ADJ_ROOM_ENCAP_L2_ETH)

/* Addresses of nodes, in host byte order: at all of them node ports are; subnets are believed from VTEPs only. */
#define EBPF_VTEPS "tenet_vteps"
enum ebpf_node_address { EBPF_IS_OTHER_ADDRESS = 1, EBPF_IS_VTEP = 2 };

/* Services: what a pod's connection to an address and port is translated to.  Of node ports the address is 0. */
#define EBPF_SERVICES "tenet_services"
#define EBPF_SERVICES_MAX 131072
struct ebpf_service_key {
    __be32 addr;
    __be16 port;
    __u8 protocol;
    __u8 zero;
};
struct ebpf_service {
    __u32 count; /* Of its backends: 0 to count - 1. */
    __u32 vnid;  /* Of its project. */
    __u32 also_vnid;
    __u32 affinity_s; /* A client gets the same backend for so long after it last asked; 0: not. */
    __u8 flags;
    __u8 zero[3];
};
#define EBPF_SERVICE_ALSO 1 /* As EBPF_POD_ALSO. */
#define EBPF_SERVICE_IDLE 2
#define EBPF_SERVICE_HOST_PORT 4 /* None, but a pod's host port: never the host's to translate. */

#define EBPF_BACKENDS "tenet_backends"
#define EBPF_BACKENDS_MAX 524288
struct ebpf_backend_key {
    struct ebpf_service_key service;
    __u32 index;
};
struct ebpf_backend {
    __be32 addr;
    __be16 port;
    __u8 zero[2];
};

/* The same backends, to ask whether one that was chosen before serves still; the value is 1. */
#define EBPF_SERVING "tenet_serving"
struct ebpf_serving_key {
    struct ebpf_service_key service;
    struct ebpf_backend backend;
};

/* Connections of pods here to services, both ways; and the backend that a client had last.  The programs write these, and
 * the kernel forgets the oldest. */
#define EBPF_CONNECTIONS "tenet_conns"
#define EBPF_CONNECTIONS_MAX 65536
enum ebpf_way { EBPF_ONWARD, EBPF_BACK };
struct ebpf_connection_key { /* As the packet comes. */
    __be32 src, dst;
    __be16 src_port, dst_port;
    __u8 protocol, way;
    __u8 zero[2];
};
/* Pods that have asked a service, by the low bits of their address; written by the programs: most packets are for others,
 * and no answers of services. */
#define EBPF_CLIENTS "tenet_clients"
#define EBPF_CLIENTS_MAX 1024
struct ebpf_clients { /* As much as a processor fetches at once. */
    __u8 asked[64];
};
static inline __u32 ebpf_clients_index(__u32 addr)
{
    return addr / sizeof(struct ebpf_clients) % EBPF_CLIENTS_MAX;
}
#define EBPF_AFFINITY "tenet_affinity"
struct ebpf_affinity_key {
    struct ebpf_service_key service;
    __be32 client;
};
struct ebpf_chosen { /* EBPF_BACK: the service's address and port. */
    struct ebpf_backend backend;
    __u32 asked_s; /* EBPF_AFFINITY: when the client last asked. */
};

/* ICMP errors that pods got, by address: no more than EBPF_REFUSALS_A_SECOND each. */
#define EBPF_REFUSALS "tenet_refusals"
#define EBPF_REFUSALS_MAX 4096
#define EBPF_REFUSALS_A_SECOND 10
struct ebpf_refusals {
    __u32 second, count;
};

/* Packets of pods to services that are idle, which the agent keeps; not pinned.  What it lets go on it sends by tun0 with
 * this mark, and from_pod sees it as if it came from its pod. */
#define EBPF_HELD "tenet_held"
#define EBPF_HELD_SIZE (256 * 1024)
#define EBPF_HELD_MARK 0x68656c64
#define EBPF_HELD_MAX 9216 /* Bytes of a frame; one that has more does not wait. */
struct ebpf_held {
    __u32 port; /* ifindex of its link. */
    __u32 size;
    __u8 frame[EBPF_HELD_MAX];
};

/* Network policy, as sdn/policy_table.h has it.  Rows say since which generation they are so and what they were before:
 * those of a change come into force at once, with the one write that makes its generation the current one. */
#define EBPF_GENERATION "tenet_policy" /* One element. */
struct ebpf_generation {
    __u64 current;
    __u32 closed; /* Something is missing that nobody can do without: everything is denied. */
    __u32 zero;
};

/* Addresses: their classes, by direction. */
#define EBPF_CLASSES "tenet_classes"
#define EBPF_CLASSES_MAX 524288
enum ebpf_direction { EBPF_EGRESS, EBPF_INGRESS };
struct ebpf_classes {
    __u32 subject[2], peer[2];
    __u32 unknown; /* A pod whose object is not known. */
};
struct ebpf_classes_row {
    __u64 since;
    struct ebpf_classes now, before;
};

/* Address blocks, longest prefix first: their class.  One that is about to go has that of the block around it. */
#define EBPF_BLOCKS "tenet_blocks"
#define EBPF_BLOCKS_MAX 131072
struct ebpf_block_key {
    __u32 len; /* With the direction. */
    __u32 dir;
    __be32 addr;
};
#define EBPF_BLOCK_DIR_BITS 32
struct ebpf_block_row {
    __u64 since;
    __u32 now, before;
};

/* What is said about a subject's class and a peer's. */
#define EBPF_PAIRS "tenet_pairs"
#define EBPF_PAIRS_MAX 1048576
enum ebpf_peer { EBPF_ANYBODY, EBPF_POD, EBPF_BLOCK };
struct ebpf_pair_key {
    __u32 subject, peer;
    __u8 dir, kind;
    __u8 zero[2];
};
struct ebpf_pair {
    __u32 ports; /* 0: nothing. */
    __u32 flags; /* Of EBPF_ANYBODY. */
};
#define EBPF_PAIR_ISOLATED 1
#define EBPF_PAIR_CUT_OFF 2 /* Not all about the subject fits into the maps. */
struct ebpf_pair_row {
    __u64 since;
    struct ebpf_pair now, before;
};

/* Sets of ports, which never change: the verdict of the longest prefix. */
#define EBPF_PORT_SETS "tenet_port_sets"
#define EBPF_PORT_SETS_MAX 1048576
struct ebpf_port_key {
    __u32 len;
    __u32 ports;
    __u8 zero, protocol;
    __be16 port;
};
#define EBPF_PORT_ANY_BITS 32   /* Of what is said whatever the protocol is, ... */
#define EBPF_PORT_PROTO_BITS 48 /* ... and of a protocol. */
enum ebpf_action { EBPF_ALLOW, EBPF_DENY, EBPF_PASS };
struct ebpf_port_verdict {
    __u16 admin, baseline; /* Priority of the rule, the highest is first; 0: none. */
    __u8 admin_action, baseline_action, allowed, zero;
};

/* Connections under network policy, whichever end a packet comes from; written by the programs, swept by the agent.  A pod
 * never has more of them than there is room left for others. */
#define EBPF_TRACKED "tenet_tracked"
#define EBPF_TRACKED_MAX 262144
struct ebpf_tracked_key { /* The end that is less comes first. */
    __be32 addr[2];
    __be16 port[2];
    __u8 protocol;
    __u8 zero[3];
};
struct ebpf_tracked {
    __u64 generation; /* Of the policies that allowed it last. */
    __u32 seen_s;
    __u16 owner;   /* Whose share it is of: the low bits of a pod's address. */
    __u8 first;    /* Which end began it. */
    __u8 answered; /* By the other one. */
    __u8 denied;   /* It was, after it was made: so are its answers. */
    __u8 ended[2]; /* TCP: an end said that it sends no more. */
    __u8 zero[5];
};
/* After so long a connection is none any more, in seconds. */
#define EBPF_TRACKED_UNANSWERED_S 30
#define EBPF_TRACKED_TCP_S 86400
#define EBPF_TRACKED_HALF_CLOSED_S 900
#define EBPF_TRACKED_CLOSED_S 30
#define EBPF_TRACKED_SCTP_S 3600
#define EBPF_TRACKED_OTHER_S 120

static inline __u32 ebpf_tracked_limit(const struct ebpf_tracked *t, __u8 protocol)
{
    if (!t->answered) {
        return EBPF_TRACKED_UNANSWERED_S;
    }
    if (protocol == 132) {
        return EBPF_TRACKED_SCTP_S;
    }
    if (protocol != 6) {
        return EBPF_TRACKED_OTHER_S;
    }
    return t->ended[0] && t->ended[1]   ? EBPF_TRACKED_CLOSED_S
           : t->ended[0] || t->ended[1] ? EBPF_TRACKED_HALF_CLOSED_S
                                        : EBPF_TRACKED_TCP_S;
}

/* What another processor has seen meanwhile, at the turn of a second, it saw after 'now'. */
static inline int ebpf_tracked_is_over(const struct ebpf_tracked *t, __u8 protocol, __u32 now)
{
    return (__s32) (now - t->seen_s) > (__s32) ebpf_tracked_limit(t, protocol);
}

/* How many a pod has, by owner; the last one: all have. */
#define EBPF_SHARES "tenet_shares"
#define EBPF_SHARES_MAX 65537

/* What later fragments of a packet do not say: ports as the first one came, and the addresses that it was given for a
 * service's sake (0: none). */
#define EBPF_FRAGMENTS "tenet_fragments"
#define EBPF_FRAGMENTS_MAX 8192
struct ebpf_fragment_key {
    __be32 src, dst;
    __be16 id;
    __u8 protocol, zero;
};
struct ebpf_fragment {
    __be16 src_port, dst_port;
    __be32 src, dst;
};

/* One element. */
#define EBPF_SETTINGS "tenet_settings"
struct ebpf_settings {
    __u32 tun_ifindex;  /* tun0: what is for the host arrives there. */
    __u32 host_ifindex; /* Its peer: what the host sends is received there. */
    __u32 vxlan_ifindex;
    __be32 gateway, host; /* Addresses of this node, ... */
    __be32 local, mask;   /* ... and its subnet, which its pods have theirs of. */
    __be16 vxlan_port;
    __u8 carry_vnids;   /* Else every pod has VNID 0. */
    __u8 compare_vnids; /* Else everyone may reach everyone. */
    __u8 tun_mac[6];
    __u8 has_services;
    __u8 services_by_host; /* They are the host's to translate. */
    __u8 has_policy;       /* Network policy is asked. */
    __u8 subnet_len;       /* Of EBPF_SUBNETS; 0: there are none. */
    __u8 zero[2];
    /* Tunnel packets pass the VXLAN device and the host's stack by until then (seconds of CLOCK_MONOTONIC): so long the agent
     * answers for the ways to other nodes.  0: they do not. */
    __u32 direct_until_s;
    /* Other than 0: somebody watches (EBPF_EVENTS); changes when flows are to be told anew. */
    __u32 watch;
    __u32 watch_second; /* Changes each second of that. */
};

/* What becomes of packets, for who watches: one event a flow, which is packets of one origin with the same ends and the
 * same verdict, and again when 'watch' of the settings changes.  The agent looks for events; none wakes it. */
#define EBPF_EVENTS "tenet_events"
#define EBPF_EVENTS_SIZE (256 * 1024)
struct ebpf_event {
    __u32 tag;       /* Of the flow; the same on every CPU. */
    __be32 src, dst; /* As the packet is now; 0: it has none. */
    __be32 asked;    /* Of the service that was asked before the packet got a backend; 0: none. */
    __be16 src_port, dst_port, asked_port;
    __be16 eth_type;
    __u8 protocol;
    __u8 entry;          /* enum ebpf_entry */
    __u8 verdict, cause; /* enum ebpf_verdict and ebpf_cause */
    __u32 port;          /* EBPF_FROM_POD: ifindex of its link. */
    __u32 outer_src;     /* EBPF_FROM_TUNNEL: which it came by, host byte order, ... */
    __u32 tunnel_id;     /* ... with this id; EBPF_TUNNEL: leaves with it. */
    __u32 target;        /* As EBPF_CB_TARGET. */
    __u32 size;          /* Of the frame. */
};
enum ebpf_entry { EBPF_FROM_POD, EBPF_FROM_TUNNEL, EBPF_FROM_HOST };

/* What a CPU has told; one element. */
#define EBPF_WATCHED "tenet_watched"
#define EBPF_WATCHED_FLOWS 2048  /* Remembered, of which some push others out. */
#define EBPF_EVENTS_A_SECOND 256 /* A CPU; what is beyond is only counted. */
#define EBPF_DATA_SIZE 256       /* Of TCP packets with as many bytes or more, on their way, ... */
#define EBPF_DATA_LOOKED_AT 16   /* ... one in so many is looked at, on a CPU. */
struct ebpf_watched {
    __u64 lost;                     /* Events since the start. */
    __u32 second, count;            /* In this second. */
    struct ebpf_event now;          /* Of the packet that the processor is at. */
    __u32 seen[EBPF_WATCHED_FLOWS]; /* Tags. */
};

/* Packets dropped, by cause; one counter a CPU. */
#define EBPF_DROPS "tenet_drops"
enum ebpf_cause {
    EBPF_NOT_DROPPED,
    EBPF_VLAN_TAGGED,
    EBPF_NOT_IP,
    EBPF_MULTICAST,
    EBPF_NOT_FOR_THIS_NODE,
    EBPF_FORGED_TUNNEL,
    EBPF_UNKNOWN_PORT,
    EBPF_UNKNOWN_VTEP,
    EBPF_SPOOFED_SOURCE,
    EBPF_ARP_NOT_ASKED,
    EBPF_ARP_OFF_NETWORK,
    EBPF_SERVICE_NOT_AVAILABLE,
    EBPF_NO_SUCH_NODE,
    EBPF_NO_SUCH_POD,
    EBPF_OWN_ADDRESS,
    EBPF_VNID_MISMATCH,
    EBPF_BACK_TO_HOST,
    EBPF_SERVICE_INVALID,
    EBPF_SERVICE_FOREIGN,
    EBPF_SERVICE_NO_ENDPOINTS,
    EBPF_SERVICE_IS_IDLE,
    EBPF_CONNECTION_DENIED,
    EBPF_EGRESS_DENIED,
    EBPF_INGRESS_DENIED,
    EBPF_FORGED_ERROR,
    EBPF_N_CAUSES,
    /* Behind them: ICMP errors that were sent about drops, and that were not as the pod had enough of them. */
    EBPF_ERRORS_SENT = EBPF_N_CAUSES,
    EBPF_ERRORS_LIMITED,
    EBPF_N_COUNTERS,
};

/* Under test (BPF_PROG_TEST_RUN) there are no links and no tunnel: the packet's cb[] says where it came from, and
 * afterwards what was decided. */
#define EBPF_CB_PORT 0      /* In: ifindex of the pod's link. */
#define EBPF_CB_OUTER_SRC 1 /* In: of the tunnel, host byte order ... */
#define EBPF_CB_TUNNEL_ID 2 /* ... both in and out. */
#define EBPF_CB_VERDICT \
    3 /* Out: enum ebpf_verdict, and the cause in the upper 16 bits.  Errors are not limited. */
#define EBPF_CB_TARGET 4 /* Out: ifindex, or VTEP. */
enum ebpf_verdict {
    EBPF_DROP = 1,
    EBPF_REFUSED /* Dropped, and the pod hears of it. */,
    EBPF_DELIVER,
    EBPF_HOST,
    EBPF_TUNNEL,
    EBPF_ANSWER
};
