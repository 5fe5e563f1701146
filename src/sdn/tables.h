/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of br0's tables, and the contents of its registers; docs/pipeline.md explains each.
 * Internal to src/sdn. */
#pragma once

#include "sdn/pipeline.h"

enum table {
    CLASSIFY = 0,
    FROM_VXLAN = 10,
    FROM_POD = 20,
    SERVICE_ADDRESS = 21,
    SERVICE_NODE = 22,
    SERVICE_STATE = 23,
    SERVICE = 24,
    SERVICE_ISOLATION = 25,
    SERVICE_AFFINITY = 26, /* Learned flows only; used by resubmit. */
    SERVICE_CHOICE = 27,
    SERVICE_ENDPOINT = 28,
    SERVICE_TRANSLATED = 29,
    FROM_HOST = 30,
    TRACK = 31, /* 31 to 38 and 71 to 76 are used under ovs-networkpolicy only. */
    STATE = 32,
    EGRESS_SUBJECT = 33,
    EGRESS_PEER = 34,
    EGRESS_ADMIN = 35,
    EGRESS_POLICY = 36,
    EGRESS_BASELINE = 37,
    EGRESS_DENIED = 38,
    ARP = 40,
    ARP_REPLY = 45,
    ROUTE = 50,
    EGRESS_FIREWALL = 52,
    OUTSIDE = 55,
    REMOTE = 60,
    LOCAL = 70,
    INGRESS_SUBJECT = 71,
    INGRESS_PEER = 72,
    INGRESS_ADMIN = 73,
    INGRESS_POLICY = 74,
    INGRESS_BASELINE = 75,
    INGRESS_DENIED = 76,
    ISOLATION = 80,
    ANSWER = PIPELINE_TABLE_ANSWER,
    DELIVER = 86,
    TO_ITSELF = 87,
    TURN = 88,
    FROM_ITSELF = 89,
    HOST = 90,
};

#define REG_SRC_VNID 0
#define REG_DST_VNID 1
#define REG_DST_PORT PIPELINE_REG_DST_PORT
#define REG_SCRATCH 3
#define REG_SUBJECT 4 /* Class of the pod whose policies are evaluated. */
#define REG_PEER 5    /* Class of the other end; 0: no policy names it. */

/* The state of the packet, by the connection tracker and earlier verdicts. */
#define REG_STATE 6
/* In the original direction of a tracked connection, or of none and cannot begin one: the policies
 * judge it, and its delivery commits nothing. */
#define STATE_ORIGINAL 0
#define STATE_NEW 1   /* It begins a connection: judged, and its delivery commits the connection. */
#define STATE_REPLY 2 /* Answers or concerns an allowed connection: passes. */

/* The connection tracker's zone. The whole pod network is one zone, as its addresses are unique.
 * But Open vSwitch's own tracker (in user space) has no ports of SCTP: there each association has a
 * zone by a hash of its addresses and ports. */
#define REG_ZONE 7
#define CT_ZONE 4788
#define CT_SCTP_ZONE_BITS 15 /* Bits of the hash; the zone has the next higher bit set. */
#define CT_MARK_ALLOWED 0
/* A policy has denied the connection since it was established: its replies do not pass. */
#define CT_MARK_DENIED 1

/* Zone for the destinations of local pods' connections to services: from the addresses that the pods
 * use to those of endpoints. */
#define CT_SERVICE_ZONE PIPELINE_SERVICE_ZONE
/* Zone for the source of connections that come back to the sender. */
#define CT_ITSELF_ZONE 4786

#define REG_SERVICE 8      /* clusterIP of the service. */
#define REG_SERVICE_PORT 9 /* Identity of the service's port (pipeline_services.c). */
#define REG_TO_NODE 10     /* 1: to the address of a node. */
#define REG_SERVICE_VNID 11
#define REG_ENDPOINTS 12   /* Number of endpoints; SERVICE_IDLE: none, and the service is idle. */
#define REG_ENDPOINT 13    /* Index of the endpoint, from 0 on. */
#define REG_AFFINITY_IP 14 /* Endpoint of the sender's last connection; 0: unknown. */
#define REG_AFFINITY_PORT 15
#define SERVICE_IDLE UINT32_MAX

/* Priority of the flow of an isolated class that denies what no NetworkPolicy allows. */
#define PRIORITY_ISOLATED 10

#define ETH_IP4 0x0800
