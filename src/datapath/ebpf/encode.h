/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the desired network and its pods to rows of the maps (bpf/maps.h), and the programs'
 * causes back. Pure. */
#pragma once

#include "datapath/ebpf/bpf/maps.h"
#include "datapath/ebpf/devices.h"
#include "datapath/ebpf/table.h"
#include "net/kernel/path.h"
#include "sdn/model.h"

/* Rows of EBPF_ROUTES and EBPF_VTEPS; owned by the caller. 'paths' has one entry for each remote;
 * NULL: no path is known. */
struct table_row *encode_routes(const struct sdn_network *n, const struct path *paths,
                                size_t *ret_n);
/* Rows of EBPF_SUBNETS made from rows of EBPF_ROUTES, owned by the caller; '*ret_len' is the
 * value for ebpf_settings.subnet_len. */
struct table_row *encode_subnets(const struct table_row *routes, size_t n, uint8_t *ret_len,
                                 size_t *ret_n);
struct table_row *encode_vteps(const struct sdn_network *n, size_t *ret_n);
struct ebpf_settings encode_settings(const struct sdn_network *n, const struct devices *d,
                                     bool has_services);

/* Rows of EBPF_SERVICES; and for each backend one of EBPF_BACKENDS and one of EBPF_SERVING. */
struct encoded_services {
    struct table_row *services, *backends, *serving; /* Owned. */
    size_t n_services, n_backends;
    size_t cap_services, cap_backends, cap_serving;
};
/* Encodes the services from the view of 'node'. */
void encode_services(const struct sdn_network *n, const char *node,
                     const struct sdn_project_service *list, size_t n_list,
                     struct encoded_services *ret);

struct encode_pod {
    uint32_t ip;
    struct mac mac;
    uint32_t vnid, also_vnid;
    bool has_also_vnid;
    bool queued;
    int ifindex; /* 0: not wired. */
    int inlet;   /* The link on which its packets arrive; 0: the same link. */
};
/* Rows of EBPF_PODS and, for a wired pod, of EBPF_PORTS. False: the address is not of this
 * node's subnet, and the pod is left out (it is about to be detached). */
bool encode_pod(const struct sdn_network *n, const struct encode_pod *p, struct table_row *ret_pod,
                struct table_row *ret_port);

/* Rows of EBPF_POD_CACHE made from rows of EBPF_PODS, owned by the caller. */
struct table_row *encode_pod_cache(const struct table_row *pods, size_t n, size_t *ret_n);

enum model_action encode_action(uint32_t verdict);
/* MODEL_NOT_DROPPED: no cause has this number. */
enum model_cause encode_cause(uint32_t cause);
