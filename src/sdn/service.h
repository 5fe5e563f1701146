/* SPDX-License-Identifier: Apache-2.0 */
/* A service in the form that its users need: proxies, the flows of br0, DNS, traces. Pure.
 *
 * One 'struct sdn_service' joins a Service object with all its EndpointSlices (services_watch in
 * client/services.h keeps them joined).  The maker owns it and everything in it; listeners get
 * const pointers that are valid during the call.  Objects are checked again here: they may come
 * from another API server.
 *
 * The rules are Kubernetes': which backends serve follows KEP-1669 (terminating ones only when
 * no other is left), traffic policies KEP-2086. */
#pragma once

#include "base/ip.h"
#include "wire/json.h"

enum sdn_service_type {
    SDN_SERVICE_CLUSTER_IP,
    SDN_SERVICE_NODE_PORT,
    SDN_SERVICE_LOAD_BALANCER,
    SDN_SERVICE_EXTERNAL_NAME,
};

#define SDN_TCP 6
#define SDN_UDP 17
#define SDN_SCTP 132
#define SDN_SERVICE_AFFINITY_SECONDS 10800 /* Kubernetes' default of ClientIP. */
#define SDN_IP6_SIZE 16

/* A slice's condition that is absent means ready and serving, and not terminating. */
enum {
    SDN_ENDPOINT_READY = 1,
    SDN_ENDPOINT_SERVING = 2,
    SDN_ENDPOINT_TERMINATING = 4,
};

/* An endpoint of a slice; the slice owns the memory that it points to. */
struct sdn_endpoint {
    const char *node;     /* NULL: not said. */
    const char *pod;      /* Pod in the service's namespace; NULL: none. */
    const char *hostname; /* Its DNS name below the service's; NULL: none. */
    const uint8_t *ip6;   /* SDN_IP6_SIZE bytes; NULL: it has an IPv4 address. */
    uint32_t ip;          /* 0: it has an IPv6 address, which only DNS uses. */
    uint8_t flags;
};
/* By address. */
int sdn_endpoint_compare(const struct sdn_endpoint *a, const struct sdn_endpoint *b);

/* An endpoint of one port of a service. */
struct sdn_backend {
    const struct sdn_endpoint *endpoint;
    uint16_t port; /* 0: one of 'addresses', which have no port. */
};

struct sdn_service_port {
    const char *name;             /* NULL: it has none. */
    struct sdn_backend *backends; /* By address and port, without duplicates. */
    uint32_t n_backends;
    uint16_t port, node_port; /* node_port 0: none. */
    uint8_t protocol;
};

/* Kept small: clusters have tens of thousands. */
struct sdn_service {
    const char *namespace,
        *name;     /* In the same allocation as the struct, like the ports and their names. */
    uint32_t size; /* Size of that allocation in bytes. */
    enum sdn_service_type type;
    uint32_t cluster_ip; /* 0: headless, ExternalName, or not yet allocated. */
    bool headless;       /* clusterIP is "None". */
    /* Not a Service object: host ports of pods at 'cluster_ip', an address of a node
     * (host_ports.h). */
    bool host_ports;
    bool ready_or_not;                   /* publishNotReadyAddresses */
    bool internal_local, external_local; /* The traffic policies are "Local". */
    /* healthCheckNodePort, at which load balancers ask for local endpoints; 0: none. */
    uint16_t health_port;
    bool idle; /* It has the annotation idling.alpha.openshift.io/idled-at. */
    /* Restricted by source_ranges; else all clients may use the external addresses. */
    bool restricted;
    uint32_t affinity_s; /* sessionAffinity ClientIP; 0: None. */
    uint32_t n_ports, n_addresses, n_slices, n_external_ips, n_source_ranges;
    uint32_t n_ingress_ips; /* Number of external_ips that are from status.loadBalancer. */
    /* From status.loadBalancer, then spec.externalIPs, without duplicates. */
    uint32_t *external_ips;
    struct ip4_prefix *source_ranges; /* loadBalancerSourceRanges, not overlapping. */
    char *external_name;
    struct sdn_service_port *ports;
    /* All addresses behind a headless service, without duplicates, whatever its ports. */
    struct sdn_backend *addresses;
    /* References; the backends point into them. In one allocation with 'addresses' and all
     * ports' backends. */
    struct sdn_slice **slices;
};

/* A service and the VNIDs of its project: what a datapath needs to serve it to pods.  No two have
 * an address and port in common, but for host ports (host_ports.h): these come last in a list, have
 * VNID 0, and lose to a service that has their address and port. */
struct sdn_project_service {
    const struct sdn_service *service;
    uint32_t
        /* SDN_VNID_NOBODY: the project has none, and only global projects reach the service. */
        vnid;
    bool
        has_also_vnid; /* While the project moves, packets with 'also_vnid' are accepted as well. */
    uint32_t also_vnid;
};

/* Without values but the names of it and its ports, which are copied; owned by the caller. */
struct sdn_service *sdn_service_new(const char *ns, const char *name, const char *const *port_names,
                                    size_t n);
struct sdn_service *sdn_service_free(struct sdn_service *s);
DEFINE_CLEANUP(struct sdn_service *, sdn_service_free)
struct sdn_service *sdn_service_clone(const struct sdn_service *s); /* Without its backends. */
/* Whether all values are equal. */
bool sdn_service_equal(const struct sdn_service *a, const struct sdn_service *b);

#define SDN_IDLED_AT "idling.alpha.openshift.io/idled-at"
/* Label of an EndpointSlice that names its service. */
#define SDN_SERVICE_LABEL "kubernetes.io/service-name"

/* An EndpointSlice, in one allocation and shared by references; immutable. */
struct sdn_slice_port {
    const char *name; /* "": it has none. */
    uint8_t protocol;
    uint16_t port;
};
struct sdn_slice {
    uint32_t refs;
    uint32_t n_ports, n_endpoints;
    const char *service; /* Name of the service in the slice's namespace; NULL: none. */
    struct sdn_slice_port *ports;
    struct sdn_endpoint endpoints[]; /* The ports and all texts follow. */
};
/* The caller owns a reference. -EINVAL: not one of addressType IPv4 or IPv6, or malformed; the
 * error names the field. */
int sdn_slice_parse(const struct json *obj, struct sdn_slice **ret, struct err *e);
struct sdn_slice *sdn_slice_ref(struct sdn_slice *s);
struct sdn_slice *sdn_slice_unref(struct sdn_slice *s); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct sdn_slice *, sdn_slice_unref)

/* A Service without backends; the same errors. */
int sdn_service_parse(const struct json *obj, struct sdn_service **ret, struct err *e);
/* Replaces the backends of 's' by those of the slices, and takes a reference to each slice. A
 * slice's port belongs to the service's port with the same name and protocol. */
void sdn_service_join(struct sdn_service *s, struct sdn_slice *const *slices, size_t n);

/* The backends of 'p' for new connections, in the order of p->backends; '*ret' is owned by the
 * caller. 'node' NULL: those of all nodes; else only that node's.  Ready ones (or, as
 * publishNotReadyAddresses says, all); when there are none, those which still serve while they
 * terminate. */
size_t sdn_service_choose(const struct sdn_service *s, const struct sdn_service_port *p,
                          const char *node, const struct sdn_backend ***ret);
/* The service is idle and the port has no backend: new connections wait for pods. */
bool sdn_service_waits(const struct sdn_service *s, const struct sdn_service_port *p);

/* "tcp", "udp", "sctp"; NULL: another one. */
const char *sdn_protocol_name(uint8_t protocol);
/* Protocol of an object, "TCP"; NULL is TCP; 0: none of these. */
uint8_t sdn_protocol_parse(const char *s);
