/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of pods to idle services: what is read of them is in them, and nothing beyond is looked at. */
#include "sdn/service_target.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sdn_service_port ports[] = {{.protocol = SDN_TCP, .port = 80, .node_port = 30080},
                                              {.protocol = SDN_UDP, .port = 53}};
    static const struct sdn_service service = {
        .cluster_ip = 0xac1e000a, .ports = ports, .n_ports = 2};
    struct service_target t;
    uint8_t *copy = malloc(size);
    if (copy) {
        memcpy(copy, data, size);
        service_frame_sum(copy, size);
        require(size < 14 || memcmp(copy, data, 14) == 0);
    }
    free(copy);
    if (service_target_parse(data, size, &t) < 0) {
        return 0;
    }
    size_t header = (size_t) (data[14] & 15) * 4;
    uint8_t dst[] = {(uint8_t) (t.dst >> 24), (uint8_t) (t.dst >> 16), (uint8_t) (t.dst >> 8),
                     (uint8_t) t.dst};
    require(size >= 14 + header + 4 && header >= 20);
    require(memcmp(data + 14 + 16, dst, sizeof dst) == 0 && data[14 + 9] == t.proto);
    require(data[14 + header + 2] == t.port >> 8 && data[14 + header + 3] == (t.port & 0xff));
    const struct sdn_service_port *p = service_target_port(&service, &t);
    require(!p || (p->protocol == t.proto && (p->port == t.port || p->node_port == t.port)));
    require(t.dst != service.cluster_ip || t.proto != SDN_TCP || t.port != 80 || p == &ports[0]);
    return 0;
}
