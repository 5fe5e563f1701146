/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime's optional settings for a pod's network: host ports, and bandwidth limits in both
 * directions.
 *
 * CNI hands these over as "runtimeConfig" ("portMappings" and "bandwidth", as the plug-ins portmap
 * and bandwidth have them); each is stored with the pod as one line of text.  Pure; a 'struct
 * cni_runtime' owns its ports.  Errors name the field. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/json.h"

#define CNI_MAX_HOST_PORTS 512 /* Maximum of one pod. */
/* The range that Kubernetes allows, in bits per second: 1k to 1P. */
#define CNI_MIN_RATE 1000ull
#define CNI_MAX_RATE 1000000000000000ull

enum { CNI_TCP = 6, CNI_UDP = 17, CNI_SCTP = 132 }; /* Numbers of the IP protocols. */
struct cni_host_port {
    uint8_t protocol;
    uint32_t host_ip; /* 0: all addresses of the host. */
    uint16_t host_port, port;
};

struct cni_bandwidth {
    bool elsewhere;                        /* A later plug-in of the chain applies the limit. */
    uint64_t to_pod, from_pod;             /* Bits per second; 0: no limit. */
    uint64_t to_pod_burst, from_pod_burst; /* Bits in a burst; 0: to be chosen. */
};

struct cni_runtime {
    bool has_ports, has_bandwidth; /* The setting was present, even if empty. */
    struct cni_host_port *ports;
    size_t n_ports;
    /* The container belongs to no pod: its engine binds the ports itself. */
    bool by_engine;
    struct cni_bandwidth bandwidth;
};
void cni_runtime_done(struct cni_runtime *r);
static inline UNUSED void cni_runtime_donep(struct cni_runtime *r)
{
    cni_runtime_done(r);
}

/* "TCP", in any case; 0: neither TCP nor UDP nor SCTP. */
uint8_t cni_protocol_parse(const char *name);
const char *cni_protocol_name(uint8_t protocol); /* "tcp" */

/* Adds a port; -EEXIST: the pod has the host port for two of its own ports. */
int cni_runtime_add_port(struct cni_runtime *r, const struct cni_host_port *p, struct err *e);
/* Whether some packet would match both. */
bool cni_host_port_overlaps(const struct cni_host_port *a, const struct cni_host_port *b);

/* The object "runtimeConfig"; members that are no capability of ours are -ENOTSUP
 * unless they are empty. */
int cni_runtime_parse(const struct json *v, struct cni_runtime *ret, struct err *e);
/* The same as an object (owned); NULL: no setting was present. */
struct json *cni_runtime_to_json(const struct cni_runtime *r);

/* "tcp:8080:80,udp:192.0.2.1:53:5353", followed by ",engine" when the engine binds them; owned,
 * NULL: none. */
char *cni_host_ports_text(const struct cni_runtime *r);
/* Fills the ports of '*r'; -EINVAL: the text is malformed, and no port is added. */
int cni_host_ports_parse(const char *text, struct cni_runtime *r);
/* "to=8000000/0,from=1000000/64000", or "elsewhere"; owned, NULL: no limit. */
char *cni_bandwidth_text(const struct cni_bandwidth *b);
int cni_bandwidth_parse(const char *text, struct cni_bandwidth *ret);
