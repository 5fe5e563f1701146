/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of datapath implements; datapath.h explains each call. */
#pragma once

#include "datapath/datapath.h"

struct datapath_ops {
    const char *kind;
    /* NULL: whatever is wrong is found when it is opened. */
    int (*check)(const struct datapath_config *cfg, const struct sdn_network *n, struct err *e);
    /* NULL: there is nothing to prepare. */
    struct datapath_prepared *(*prepare)(struct loop *l, const struct datapath_config *cfg);
    void (*unprepare)(struct datapath_prepared *p);
    int (*make_mounts)(const struct datapath_config *cfg, struct err *e);
    int (*open)(struct loop *l, const struct datapath_config *cfg, const struct datapath_events *ev,
                void *ctx, struct datapath **ret, struct err *e);
    void (*close)(struct datapath *dp);
    void (*set_network)(struct datapath *dp, const struct sdn_network *n);
    void (*attach)(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                   datapath_done_fn *done, void *ctx);
    void (*detach)(struct datapath *dp, const char *container_id, const char *ifname,
                   datapath_done_fn *done, void *ctx);
    int (*wire)(struct datapath *dp, const struct dp_wire *w, struct err *e);
    int (*unlimit)(struct datapath *dp, const struct dp_wire *w, struct err *e);
    int (*check_wire)(struct datapath *dp, const struct dp_wire *w, struct err *e);
    /* NULL: there is no such thing, and links are those of the host. */
    int (*end)(struct datapath *dp, const char *port, const char *host_if);
    int (*links)(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e);
    void (*link_gone)(struct datapath *dp, const char *name);
    void (*set_runtime)(struct datapath *dp, const char *container_id, const char *ifname,
                        const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                        void *ctx);
    void (*set_vnids)(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v);
    void (*set_flows)(struct datapath *dp, uint64_t cookie, struct of_flow_list *flows);
    /* NULL: it wants flows. */
    const struct policy_table_ops *(*policy_table)(struct datapath *dp, void **ret_ctx);
    /* NULL: it wants flows. */
    void (*set_services)(struct datapath *dp, const char *node, const struct model_service *list,
                         size_t n);
    /* NULL: it has no connections to services, and holds no frames. */
    void (*forget)(struct datapath *dp, const struct of_connection *c);
    void (*keep)(struct datapath *dp, const struct of_connection *c);
    void (*send_held)(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size);
    const struct dp_pod *const *(*pods)(struct datapath *dp, size_t *ret_n);
    const struct dp_pod *(*find)(struct datapath *dp, const char *container_id, const char *ifname);
    void (*get_status)(struct datapath *dp, struct datapath_status *ret);
    void (*drops)(struct datapath *dp, datapath_drops_fn *done, void *ctx);
    void (*rules)(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx);
    void (*trace)(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                  void *ctx);
    int (*watch)(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e);
    int (*maps)(struct datapath *dp, const char *name, const char *after, size_t limit,
                struct json **ret, struct err *e);
};

/* First member of each kind's own struct. */
struct datapath {
    const struct datapath_ops *ops;
};

struct datapath_prepared {
    const struct datapath_ops *ops;
};

extern const struct datapath_ops datapath_ovs, datapath_ebpf;
