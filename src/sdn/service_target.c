/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/service_target.h"

#include "sdn/tables.h"

#include <string.h>

static bool has_external_ip(const struct sdn_service *s, uint32_t ip)
{
    for (size_t i = 0; i < s->n_external_ips; i++) {
        if (s->external_ips[i] == ip) {
            return true;
        }
    }
    return false;
}

#define ETHERNET 14
#define IP4_MIN 20

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}

int service_target_parse(const uint8_t *frame, size_t size, struct service_target *ret)
{
    if (size < ETHERNET + IP4_MIN || be16(frame + 12) != ETH_IP4 || frame[ETHERNET] >> 4 != 4) {
        return -EINVAL;
    }
    const uint8_t *ip = frame + ETHERNET;
    size_t header = (size_t) (ip[0] & 0xf) * 4;
    bool later = be16(ip + 6) & 0x1fff;
    if (header < IP4_MIN || later || size < ETHERNET + header + 4 ||
        (ip[9] != SDN_TCP && ip[9] != SDN_UDP)) {
        return -EINVAL;
    }
    *ret = (struct service_target){(uint32_t) be16(ip + 16) << 16 | be16(ip + 18), ip[9],
                                   be16(ip + header + 2)};
    return 0;
}

/* RFC 1071 */
static uint32_t add_words(uint32_t sum, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum += (uint32_t) p[i] << (i & 1 ? 0 : 8);
    }
    return sum;
}

void service_frame_sum(uint8_t *frame, size_t size)
{
    struct service_target t;
    if (service_target_parse(frame, size, &t) < 0) {
        return;
    }
    uint8_t *ip = frame + ETHERNET, *l4 = ip + (size_t) (ip[0] & 0xf) * 4;
    size_t header = (size_t) (l4 - ip), total = be16(ip + 2), at = t.proto == SDN_TCP ? 16 : 6;
    bool in_parts = be16(ip + 6) & 0x3fff;
    if (in_parts || total < header + at + 2 || total > size - ETHERNET ||
        (t.proto == SDN_UDP && be16(l4 + at) == 0)) {
        return;
    }
    l4[at] = l4[at + 1] = 0;
    uint32_t sum = add_words(t.proto + (uint32_t) (total - header), ip + 12, 8);
    sum = add_words(sum, l4, total - header);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    sum = sum ? sum : 0xffff; /* Zero would be none. */
    l4[at] = (uint8_t) (sum >> 8);
    l4[at + 1] = (uint8_t) sum;
}

const struct sdn_service_port *service_target_port(const struct sdn_service *s,
                                                   const struct service_target *t)
{
    bool own = s->cluster_ip == t->dst || has_external_ip(s, t->dst);
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct sdn_service_port *p = &s->ports[i];
        if (p->protocol == t->proto &&
            ((p->port == t->port && own) || (p->node_port && p->node_port == t->port && !own))) {
            return p;
        }
    }
    return NULL;
}
