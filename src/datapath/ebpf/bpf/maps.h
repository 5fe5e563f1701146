/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the eBPF programs and the agent: the maps' keys and values.
 *
 * The agent writes most maps, and the programs read them. The programs write counters, events, and
 * what they remember of connections and senders; the comment of such a map says so. Every value is
 * replaced as a whole, so a packet sees the old one or the new one.  Addresses of packets are in network
 * byte order (__be32), as they are compared with packets; VTEPs are in host byte order, as the
 * tunnel helpers want them.  A changed layout makes pinned maps unusable: the agent then makes
 * new maps and replaces the programs (program.h). */
#pragma once

#include <linux/types.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded" /* Keys are hashed, and rows compared, as bytes. */

/* Read-only, set when the programs are loaded: code that this kernel cannot run is removed then. */
struct ebpf_options {
    /* The kernel can hand packets to the other end of a veth pair (bpf_redirect_peer). */
    __u32 redirect_peer;
    __u32 scrub;      /* The same helper for packets whose type is not PACKET_HOST yet. */
    __u32 events;     /* The kernel has ring buffers for EBPF_EVENTS. */
    __u32 encap;      /* The kernel lets programs add and remove tunnel headers. */
    __u32 under_test; /* See EBPF_CB_PORT. */
    __u32 dry;        /* A trace: the maps that the agent reads do not change. */
};

/* Pods of this node, by address. */
#define EBPF_PODS "tenet_pods"
#define EBPF_PODS_MAX 65536 /* The largest subnet of a host. */
union ebpf_reach {
    struct {
        __u32 ifindex; /* Host end of its link; 0: not wired yet, the pod is not reachable. */
        __u32 vnid;
    };
    __u64
        both; /* Both fields as one: the elements of EBPF_POD_CACHE are updated by 8 bytes at a time. */
};
struct ebpf_pod {
    union ebpf_reach reach;
    /* The link by which its packets arrive: the same, or one behind a queue that limits
     * them. */
    __u32 inlet;
    __be32 addr;
    __u32 also_vnid; /* With EBPF_POD_ALSO_VNID: packets with this VNID are accepted as well. */
    __u8 flags;
    __u8 zero[3];
    __u8 mac[6];
    __u8 unused[2];
};
#define EBPF_POD_ALSO_VNID 1 /* The pod's project moves to another VNID. */
#define EBPF_POD_QUEUED 2    /* Packets to it pass the queue of its link, which limits them. */

/* A direct-mapped cache of EBPF_PODS, which the agent fills: an array indexed by the low bits of
 * the pod's address. An array lookup touches less memory than a hash, and streams leave little in
 * the CPU caches. Pods whose project moves are left out, and so are pods whose low bits are equal,
 * which only a large host subnet has: an element never changes from one pod to another while a
 * packet uses it. */
#define EBPF_POD_CACHE "tenet_pod_cache"
#define EBPF_POD_CACHE_SIZE 2048

/* Links by which pods' packets arrive, by ifindex: the pod's address. Only to tell causes of
 * drops apart. */
#define EBPF_PORTS "tenet_ports"

/* Routes, longest prefix first; an address without a route is outside. */
#define EBPF_ROUTES "tenet_routes"
#define EBPF_ROUTES_MAX 65536
struct ebpf_route_key {
    __u32 len;
    __be32 addr;
};
enum ebpf_route_kind {
    EBPF_CLUSTER = 1, /* A cluster network's range that is no node's subnet. */
    EBPF_SERVICE,
    EBPF_LOCAL,   /* This node's subnet. */
    EBPF_GATEWAY, /* The first address of this node's subnet. */
    EBPF_REMOTE,  /* Another node's subnet. */
};
struct ebpf_route {
    __u8 kind;
    __u8 has_fixed; /* Packets leave with 'fixed_vnid', whatever the sender's VNID is. */
    __u16 mtu;      /* With 'ifindex': MTU of the path, for outer packets. */
    __u32 fixed_vnid;
    __u32 vtep;    /* EBPF_REMOTE, host byte order. */
    __u32 ifindex; /* EBPF_REMOTE: the link to that node; 0: only the VXLAN device knows. */
    __be32 next;   /* The next hop on that link. */
};

/* A second copy of the routes to other nodes whose prefix has the most common length
 * (ebpf_settings.subnet_len), without those that contain a longer prefix: a lookup in a trie of
 * thousands is slow. */
#define EBPF_SUBNETS "tenet_subnets"

/* The size of the headers between the outer Ethernet header and the inner packet (bpf/encap.h). */
#define EBPF_OUTER_SIZE 50
#define EBPF_ENCAP_FLAGS                                                                     \
    (BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_ENCAP_L4_UDP | \
     BPF_F_ADJ_ROOM_ENCAP_L2(ETH_HLEN) | BPF_F_ADJ_ROOM_ENCAP_L2_ETH)

/* Addresses of nodes, in host byte order: node ports exist at all of them; tunnel packets are
 * accepted from VTEPs only. */
#define EBPF_VTEPS "tenet_vteps"
enum ebpf_node_address { EBPF_IS_OTHER_ADDRESS = 1, EBPF_IS_VTEP = 2 };

/* Services: what a pod's connection to an address and port is translated to. The address is 0
 * for node ports. */
#define EBPF_SERVICES "tenet_services"
#define EBPF_SERVICES_MAX 131072
struct ebpf_service_key {
    __be32 addr;
    __be16 port;
    __u8 protocol;
    __u8 zero;
};
struct ebpf_service {
    __u32 count;     /* Number of backends; their index is 0 to count - 1. */
    __u32 vnid;      /* VNID of its project. */
    __u32 also_vnid; /* With EBPF_SERVICE_ALSO_VNID: packets with this VNID are accepted as well. */
    /* Session affinity: seconds after the last connection that a client keeps its backend; 0:
     * none. */
    __u32 affinity_s;
    __u8 flags;
    __u8 zero[3];
};
#define EBPF_SERVICE_ALSO_VNID 1 /* Like EBPF_POD_ALSO_VNID. */
#define EBPF_SERVICE_IDLE 2      /* It has no endpoints, and its pods start when it is used. */
#define EBPF_SERVICE_HOST_PORT \
    4 /* No service, but a pod's host port: the host never translates it. */

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

/* The same backends by address, to check whether a backend chosen earlier is still one of the
 * service's; the value is 1. */
#define EBPF_SERVING "tenet_serving"
struct ebpf_serving_key {
    struct ebpf_service_key service;
    struct ebpf_backend backend;
};

/* Connections of local pods to services, in both directions; and the backend that a client had
 * last. The programs write these, and the kernel evicts the oldest (LRU). */
#define EBPF_CONNECTIONS "tenet_conns"
#define EBPF_CONNECTIONS_MAX 65536
enum ebpf_ct_dir {                    /* As in conntrack. */
                   EBPF_DIR_ORIGINAL, /* To the service. */
                   EBPF_DIR_REPLY,    /* From the backend. */
};
struct ebpf_connection_key { /* The packet's fields before any translation. */
    __be32 src, dst;
    __be16 src_port, dst_port;
    __u8 protocol, dir;
    __u8 zero[2];
};
/* Pods that have sent to a service, by the low bits of their address; written by the programs:
 * most packets are neither to services nor their answers. */
#define EBPF_CLIENTS "tenet_clients"
#define EBPF_CLIENTS_MAX 1024
struct ebpf_clients { /* One cache line. */
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
struct ebpf_chosen {
    __be32 addr; /* The backend's address and port; with EBPF_DIR_REPLY the service's. */
    __be16 port;
    /* The client's port beyond the translation, which the backend sees; with EBPF_DIR_REPLY the
     * client's own. 0: there is one port. */
    __be16 client_port;
    __u32 asked_s; /* EBPF_AFFINITY: when the client last connected. */
};
/* Where the datapath takes ports of clients from when two connections would be the same beyond the
 * translation: above those that Linux gives to sockets (ip_local_port_range). */
#define EBPF_CLIENT_PORT_FIRST 61000
#define EBPF_CLIENT_PORTS 4096

/* ICMP errors and upcalls for pods, by address: at most EBPF_REFUSALS_A_SECOND each. Written by the
 * programs. */
#define EBPF_REFUSALS "tenet_refusals"
#define EBPF_REFUSALS_MAX 4096
#define EBPF_REFUSALS_A_SECOND 10
struct ebpf_refusals {
    __u32 second; /* Of CLOCK_MONOTONIC. */
    __u32 count;  /* In that second. */
};

/* Packets of pods to idle services, for the agent, which keeps them; not pinned. The agent sends
 * released packets by tun0 with EBPF_REINJECT_MARK; from_host redirects these to the link of their
 * pod, where from_pod judges them as if the pod had sent them just now. */
#define EBPF_UPCALLS "tenet_upcalls"
#define EBPF_UPCALLS_SIZE (256 * 1024)
#define EBPF_REINJECT_MARK 0x68656c64
#define EBPF_UPCALL_MAX 9216 /* Bytes of a frame; a larger one is dropped. */
struct ebpf_upcall {
    __u32 port; /* ifindex of the pod's link. */
    __u32 size; /* Bytes of the frame. */
    __u8 frame[EBPF_UPCALL_MAX];
};

/* Network policy, as in sdn/policy_table.h. Each row says since which generation it is valid and
 * what it was before: all rows of a change come into force at once, by the one write that makes
 * its generation the current one. */
#define EBPF_GENERATION "tenet_policy" /* One element. */
struct ebpf_generation {
    __u64 current;
    __u32 closed; /* Part of the policy could not be written: everything is denied. */
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

/* Address blocks, longest prefix first: their class. A block that is about to be removed has the
 * class of the block around it. */
#define EBPF_BLOCKS "tenet_blocks"
#define EBPF_BLOCKS_MAX 131072
struct ebpf_block_key {
    __u32 len; /* Prefix length in bits, with EBPF_BLOCK_DIR_BITS for 'dir'. */
    __u32 dir; /* enum ebpf_direction */
    __be32 addr;
};
#define EBPF_BLOCK_DIR_BITS 32
struct ebpf_block_row {
    __u64 since;
    __u32 now, before;
};

/* The rules for a subject's class and a peer's class. */
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
    __u32 flags; /* Only in the row of EBPF_ANYBODY. */
};
#define EBPF_PAIR_ISOLATED 1
#define EBPF_PAIR_CUT_OFF 2 /* Some rules of the subject do not fit into the maps. */
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
#define EBPF_PORT_ANY_BITS 32   /* Prefix length of rules for any protocol. */
#define EBPF_PORT_PROTO_BITS 48 /* Prefix length of rules for one protocol. */
enum ebpf_action { EBPF_ALLOW, EBPF_DENY, EBPF_PASS };
struct ebpf_port_verdict {
    __u16 admin, baseline; /* Priority of the rule, the highest is first; 0: none. */
    __u8 admin_action, baseline_action, allowed, zero;
};

/* Egress firewalls, by VNID.  A changed firewall gets another list of blocks, which is complete
 * before this names it. */
#define EBPF_FIREWALLS "tenet_firewalls"
#define EBPF_FIREWALLS_MAX 65536
struct ebpf_firewall {
    __u32 list;
    __u32 closed; /* Its blocks do not fit into the map: every destination is denied. */
};

/* Blocks of those lists, longest prefix first: enum ebpf_action, without EBPF_PASS.  Each list has
 * one of the length 0, and loses its shorter blocks first: a packet that finds none is denied. */
#define EBPF_FIREWALL_BLOCKS "tenet_fw_blocks"
#define EBPF_FIREWALL_BLOCKS_MAX 524288
struct ebpf_firewall_key {
    __u32 len; /* Prefix length in bits, with EBPF_FIREWALL_LIST_BITS for 'list'. */
    __u32 list;
    __be32 addr;
};
#define EBPF_FIREWALL_LIST_BITS 32

/* Connections under network policy, one entry for both directions; written by the programs,
 * swept by the agent. The entries of one pod never use up the room of the others. */
#define EBPF_TRACKED "tenet_tracked"
#define EBPF_TRACKED_MAX 262144
struct ebpf_tracked_key { /* The smaller end comes first. */
    __be32 addr[2];
    __be16 port[2];
    __u8 protocol;
    __u8 zero[3];
};
struct ebpf_tracked {
    __u64 generation; /* Generation of the policies that allowed it last. */
    __u32 seen_s;
    __u16 owner;   /* The pod whose share it counts in: low bits of the address. */
    __u8 first;    /* The end that began the connection. */
    __u8 answered; /* The other end has answered. */
    __u8 denied;   /* Denied after it was established: so are its answers. */
    __u8 ended[2]; /* TCP: the end has sent FIN. */
    __u8 zero[5];
};
/* Seconds without a packet after which a connection is over. */
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

/* Another processor may have written 'seen' after 'now' was read, at the turn of a second. */
static inline int ebpf_tracked_is_over(const struct ebpf_tracked *t, __u8 protocol, __u32 now)
{
    return (__s32) (now - t->seen_s) > (__s32) ebpf_tracked_limit(t, protocol);
}

/* Number of tracked connections of a pod, by ebpf_tracked.owner; the last element counts all.
 * Written by the programs, and by the agent when it sweeps. */
#define EBPF_SHARES "tenet_shares"
#define EBPF_SHARES_MAX 65537

/* What later fragments of a packet do not carry: the ports of the first one, and the addresses after
 * service translation (0: none). Written by the programs. */
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
    __u32 tun_ifindex;  /* tun0: packets for the host arrive there. */
    __u32 host_ifindex; /* Its peer: packets from the host arrive there. */
    __u32 vxlan_ifindex;
    __be32 gateway, host; /* Addresses of this node. */
    __be32 local, mask;   /* This node's subnet, which contains the addresses of its pods. */
    __be16 vxlan_port;
    __u8 carry_vnids;   /* 0: every pod has VNID 0. */
    __u8 compare_vnids; /* 0: every pod may reach every other. */
    __u8 tun_mac[6];
    __u8 has_services;
    __u8 services_by_host; /* The host translates services. */
    __u8 has_policy;       /* Network policy is evaluated. */
    __u8 subnet_len;       /* Prefix length in EBPF_SUBNETS; 0: the map is empty. */
    __u8 zero[2];
    /* Until then (seconds of CLOCK_MONOTONIC) tunnel packets bypass the VXLAN device and the
     * host's stack: the agent's paths to other nodes are valid for so long. 0: never. */
    __u32 direct_until_s;
    /* Other than 0: flows are reported (EBPF_EVENTS); a change causes all flows to be reported
     * again. */
    __u32 watch;
    __u32 watch_second; /* Changes each second while flows are watched. */
    /* A firewall does not fit into EBPF_FIREWALLS: nothing of pods leaves the cluster. */
    __u32 firewalls_closed;
    __be32 metadata; /* Pods do not reach this address, except its DNS; 0: none is blocked. */
};

/* Verdicts of packets, for a watcher: one event per flow, which is packets of one origin with
 * the same ends and the same verdict; reported again when 'watch' of the settings changes. The
 * agent polls for events; they do not wake it. */
#define EBPF_EVENTS "tenet_events"
#define EBPF_EVENTS_SIZE (256 * 1024)
struct ebpf_event {
    __u32 tag;       /* Tag of the flow; the same on every CPU. */
    __be32 src, dst; /* Addresses after translation; 0: none. */
    __be32 asked;    /* Address of the service before a backend was chosen; 0: none. */
    __be16 src_port, dst_port, asked_port;
    __be16 eth_type;
    __u8 protocol;
    __u8 entry;          /* enum ebpf_entry */
    __u8 verdict, cause; /* enum ebpf_verdict and ebpf_cause */
    __u32 port;          /* EBPF_FROM_POD: ifindex of its link. */
    __u32 outer_src;     /* EBPF_FROM_TUNNEL: address of the sending node, host byte order. */
    __u32 tunnel_id;     /* EBPF_FROM_TUNNEL: received tunnel id; EBPF_TUNNEL: sent tunnel id. */
    __u32 target;        /* Like EBPF_CB_TARGET. */
    __u32 size;          /* Bytes of the frame. */
};
enum ebpf_entry { EBPF_FROM_POD, EBPF_FROM_TUNNEL, EBPF_FROM_HOST };

/* Flows that a CPU has reported; one element. */
#define EBPF_WATCHED "tenet_watched"
#define EBPF_WATCHED_FLOWS 2048  /* Number of remembered flows; some evict others. */
#define EBPF_EVENTS_A_SECOND 256 /* Limit per CPU; further events are only counted. */
/* TCP packets with at least so many bytes, in the middle of their connection, are sampled. */
#define EBPF_DATA_SIZE 256
#define EBPF_DATA_LOOKED_AT 16 /* One of so many such packets is looked at, on each CPU. */
struct ebpf_watched {
    __u64 lost;                     /* Events since the start. */
    __u32 second, count;            /* In this second. */
    struct ebpf_event now;          /* The packet that this CPU handles. */
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
    EBPF_FIREWALL_DENIED,
    EBPF_METADATA,
    EBPF_N_CAUSES,
    /* Counters after those: ICMP errors sent about drops, and errors not sent because of the
     * pod's limit. */
    EBPF_ERRORS_SENT = EBPF_N_CAUSES,
    EBPF_ERRORS_LIMITED,
    EBPF_N_COUNTERS,
};

/* Under test (BPF_PROG_TEST_RUN) there are no links and no tunnel: the packet's cb[] gives its
 * origin, and returns the decision. */
#define EBPF_CB_PORT 0      /* In: ifindex of the pod's link. */
#define EBPF_CB_OUTER_SRC 1 /* In: outer source of the tunnel packet, host byte order. */
#define EBPF_CB_TUNNEL_ID 2 /* In and out: the tunnel id. */
/* Out: enum ebpf_verdict, and the cause in the upper 16 bits.  Errors are not limited. */
#define EBPF_CB_VERDICT 3
#define EBPF_CB_TARGET 4 /* Out: ifindex, or VTEP. */
enum ebpf_verdict {
    EBPF_DROP = 1,
    EBPF_REFUSED /* Dropped, and an ICMP error was sent to the pod. */,
    EBPF_DELIVER,
    EBPF_HOST,
    EBPF_TUNNEL,
    EBPF_ANSWER
};

#pragma GCC diagnostic pop
