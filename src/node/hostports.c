/* SPDX-License-Identifier: Apache-2.0 */
#include "node/hostports.h"

#include "base/mem.h"

#define COMPARE(x, y)              \
    if ((x) != (y)) {              \
        return (x) < (y) ? -1 : 1; \
    }

static int compare(const void *a, const void *b)
{
    const struct nat_port *x = a, *y = b;
    COMPARE(x->port.protocol, y->port.protocol)
    COMPARE(x->port.host_port, y->port.host_port)
    COMPARE(x->port.host_ip, y->port.host_ip)
    COMPARE(x->pod_ip, y->pod_ip)
    return 0;
}

size_t host_ports_collect(struct datapath *dp, struct nat_port **ret)
{
    size_t n_pods, n = 0, cap = 0;
    struct nat_port *list = NULL;
    const struct dp_pod *const *pods = datapath_pods(dp, &n_pods);
    for (size_t i = 0; i < n_pods; i++) {
        CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
        if (!pods[i]->host_ports || cni_host_ports_parse(pods[i]->host_ports, &r) < 0) {
            continue;
        }
        for (size_t k = 0; k < r.n_ports; k++) {
            list = grow(list, &cap, n + 1, sizeof *list);
            list[n++] = (struct nat_port){.port = r.ports[k], .pod_ip = pods[i]->ip};
        }
    }
    if (n) {
        qsort(list, n, sizeof *list, compare);
    }
    *ret = list;
    return n;
}
