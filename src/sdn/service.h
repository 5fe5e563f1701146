/* SPDX-License-Identifier: Apache-2.0 */
/* A service as those who serve it need it: proxies, the flows of br0, DNS, traces.  Pure.
 *
 * One 'struct sdn_service' joins a Service object with all its EndpointSlices (services_watch in
 * client/services.h keeps them joined).  Whoever makes one owns it and everything in it; what is
 * given to others is const and valid during the call.  Objects are checked again here: they may
 * come from another API server.
 *
 * The rules are Kubernetes': which backends serve follows KEP-1669 (terminating ones only when no
 * other is left), traffic policies KEP-2086. */
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

/* An endpoint of a slice; what it points to is the slice's. */
struct sdn_endpoint {
    const char *node;     /* NULL: not said. */
    const char *pod;      /* Of the service's namespace; NULL: none. */
    const char *hostname; /* Its own name below the service's; NULL: none. */
    const uint8_t *ip6;   /* SDN_IP6_SIZE bytes; NULL: it has an IPv4 address. */
    uint32_t ip;          /* 0: it has an IPv6 address, which only DNS speaks of. */
    uint8_t flags;
};
/* By address. */
int sdn_endpoint_compare(const struct sdn_endpoint *a, const struct sdn_endpoint *b);

/* An endpoint as one of a service's port. */
struct sdn_backend {
    const struct sdn_endpoint *endpoint;
    uint16_t port; /* 0: one of 'addresses', which has none. */
};

struct sdn_service_port {
    const char *name;             /* NULL: it has none. */
    struct sdn_backend *backends; /* By address and port, each once. */
    uint32_t n_backends;
    uint16_t port, node_port; /* node_port 0: none. */
    uint8_t protocol;
};

/* There are tens of thousands of these. */
struct sdn_service {
    const char *namespace,
        *name;     /* In the same piece of memory, as are the ports and their names ... */
    uint32_t size; /* ... which has so many bytes. */
    enum sdn_service_type type;
    uint32_t cluster_ip; /* 0: headless, ExternalName, or not yet allocated. */
    bool headless;       /* clusterIP is "None". */
    bool host_ports; /* No Service: host ports of pods at 'cluster_ip', of a node (host_ports.h). */
    bool ready_or_not;                   /* publishNotReadyAddresses */
    bool internal_local, external_local; /* The traffic policies are "Local". */
    /* healthCheckNodePort, where balancers ask for endpoints of this node; 0: none. */
    uint16_t health_port;
    bool idle;           /* It has the annotation idling.alpha.openshift.io/idled-at. */
    bool restricted;     /* By source_ranges; else everyone may use the external addresses. */
    uint32_t affinity_s; /* sessionAffinity ClientIP; 0: None. */
    uint32_t n_ports, n_addresses, n_slices, n_external_ips, n_source_ranges;
    uint32_t n_ingress_ips; /* How many of external_ips are of status.loadBalancer. */
    uint32_t *external_ips; /* Those of status.loadBalancer, then spec.externalIPs, each once. */
    struct ip4_prefix *source_ranges; /* loadBalancerSourceRanges, none within another. */
    char *external_name;
    struct sdn_service_port *ports;
    /* All addresses behind a headless service, each once, whatever its ports. */
    struct sdn_backend *addresses;
    /* References; the backends point into them.  In one piece of memory with 'addresses' and all
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
    bool has_also; /* The project moves: packets of 'also_vnid' may go there, too. */
    uint32_t also_vnid;
};

/* Without values but the names of it and its ports, which are copied; owned by the caller. */
struct sdn_service *sdn_service_new(const char *ns, const char *name, const char *const *port_names,
                                    size_t n);
struct sdn_service *sdn_service_free(struct sdn_service *s);
DEFINE_CLEANUP(struct sdn_service *, sdn_service_free)
struct sdn_service *sdn_service_clone(const struct sdn_service *s); /* Without its backends. */
/* Everything is the same. */
bool sdn_service_equal(const struct sdn_service *a, const struct sdn_service *b);

#define SDN_IDLED_AT "idling.alpha.openshift.io/idled-at"
/* Label of an EndpointSlice that names its service. */
#define SDN_SERVICE_LABEL "kubernetes.io/service-name"

/* An EndpointSlice, in one piece of memory and shared by references: those who have one do not
 * change it. */
struct sdn_slice_port {
    const char *name; /* "": it has none. */
    uint8_t protocol;
    uint16_t port;
};
struct sdn_slice {
    uint32_t refs;
    uint32_t n_ports, n_endpoints;
    const char *service; /* Name, in the slice's namespace; NULL: of no service. */
    struct sdn_slice_port *ports;
    struct sdn_endpoint endpoints[]; /* Then the ports and all texts. */
};
/* A reference is the caller's.  -EINVAL: not one of addressType IPv4 or IPv6, or malformed; the
 * error names the field. */
int sdn_slice_parse(const struct json *obj, struct sdn_slice **ret, struct err *e);
struct sdn_slice *sdn_slice_ref(struct sdn_slice *s);
struct sdn_slice *sdn_slice_unref(struct sdn_slice *s); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct sdn_slice *, sdn_slice_unref)

/* A Service without backends; the same errors. */
int sdn_service_parse(const struct json *obj, struct sdn_service **ret, struct err *e);
/* Gives 's' the backends of the slices, in place of those it had, and a reference to each slice.  A
 * slice's port is the service's of the same name and protocol. */
void sdn_service_join(struct sdn_service *s, struct sdn_slice *const *slices, size_t n);

/* Which backends of 'p' new connections go to, in the order of p->backends; '*ret' is owned by the
 * caller. 'node' NULL: of any node; else only those of it.  Ready ones (or, as
 * publishNotReadyAddresses says, all); when there are none, those which still serve while they
 * terminate. */
size_t sdn_service_choose(const struct sdn_service *s, const struct sdn_service_port *p,
                          const char *node, const struct sdn_backend ***ret);
/* The service is idle and new connections to the port have nowhere to go: they wait for pods. */
bool sdn_service_waits(const struct sdn_service *s, const struct sdn_service_port *p);

/* "tcp", "udp", "sctp"; NULL: another. */
const char *sdn_protocol_name(uint8_t protocol);
/* Of an object, "TCP"; NULL is TCP; 0: none of these. */
uint8_t sdn_protocol_parse(const char *s);
