/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/host_ports.h"

#include "sdn/address.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define COMPARE(x, y)              \
    if ((x) != (y)) {              \
        return (x) < (y) ? -1 : 1; \
    }

int sdn_host_port_compare(const struct sdn_host_port *a, const struct sdn_host_port *b)
{
    COMPARE(a->port.protocol, b->port.protocol)
    COMPARE(a->port.host_port, b->port.host_port)
    COMPARE(a->port.host_ip, b->port.host_ip)
    COMPARE(a->pod_ip, b->pod_ip)
    return 0;
}

static int compare(const void *a, const void *b)
{
    return sdn_host_port_compare(a, b);
}

bool sdn_host_ports_have(const struct sdn_host_port *list, size_t n, const struct sdn_host_port *p)
{
    const struct sdn_host_port *found = n ? bsearch(p, list, n, sizeof *list, compare) : NULL;
    return found && found->port.port == p->port.port;
}

/* ---- text ---- */

char *sdn_host_ports_text(const struct sdn_host_port *list, size_t n)
{
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        const struct cni_host_port *p = &list[i].port;
        strbuf_addf(&out, "%s%s:", i ? "," : "", cni_protocol_name(p->protocol));
        if (p->host_ip) {
            strbuf_addf(&out, "%s:", IP4_TEXT(p->host_ip));
        }
        strbuf_addf(&out, "%u=%s:%u", p->host_port, IP4_TEXT(list[i].pod_ip), p->port);
    }
    return n ? strbuf_steal(&out) : NULL;
}

/* "80", or with an address before it. */
static int parse_end(char *text, bool must_have_ip, uint32_t *ret_ip, uint16_t *ret_port)
{
    char *colon = strrchr(text, ':');
    uint64_t port;
    if (colon) {
        *colon = '\0';
        if (ip4_parse(text, ret_ip) < 0) {
            return -EINVAL;
        }
    } else if (must_have_ip) {
        return -EINVAL;
    }
    if (str_to_u64(colon ? colon + 1 : text, 65535, &port) < 0 || port == 0) {
        return -EINVAL;
    }
    *ret_port = (uint16_t) port;
    return 0;
}

static int parse_host_port(char *item, struct sdn_host_port *ret)
{
    struct sdn_host_port p = {0};
    char *host = strchr(item, ':'), *pod = strchr(item, '=');
    if (!host || !pod || pod < host) {
        return -EINVAL;
    }
    *host = *pod = '\0';
    p.port.protocol = cni_protocol_parse(item);
    if (!p.port.protocol || parse_end(host + 1, false, &p.port.host_ip, &p.port.host_port) < 0 ||
        parse_end(pod + 1, true, &p.pod_ip, &p.port.port) < 0) {
        return -EINVAL;
    }
    *ret = p;
    return 0;
}

/* Keeps the first of each protocol and port (which are adjacent), and those that do not overlap
 * with it. */
static size_t drop_overlaps(struct sdn_host_port *list, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        bool overlaps = false;
        for (size_t k = used; k > 0 && list[k - 1].port.host_port == list[i].port.host_port; k--) {
            overlaps = overlaps || cni_host_port_overlaps(&list[k - 1].port, &list[i].port);
        }
        if (!overlaps) {
            list[used++] = list[i];
        }
    }
    return used;
}

size_t sdn_host_ports_parse(const char *text, struct ip4_prefix subnet, struct sdn_host_port **ret)
{
    CLEANUP_FREE char *copy = xstrdup(text ? text : "");
    struct sdn_host_port *list = NULL;
    size_t n = 0, cap = 0;
    char *save = NULL;
    for (char *item = strtok_r(copy, ",", &save); item && n < SDN_MAX_HOST_PORTS;
         item = strtok_r(NULL, ",", &save)) {
        struct sdn_host_port p;
        if (parse_host_port(item, &p) == 0 && prefix_contains(subnet, p.pod_ip) &&
            p.pod_ip != subnet.addr + 1) {
            list = grow(list, &cap, n + 1, sizeof *list);
            list[n++] = p;
        }
    }
    if (n) {
        qsort(list, n, sizeof *list, compare);
    }
    *ret = list;
    return drop_overlaps(list, n);
}

bool sdn_may_be_host(const struct sdn_network *n, uint32_t ip)
{
    for (size_t i = 0; i < n->n_cluster; i++) {
        if (prefix_contains(n->cluster[i], ip)) {
            return false;
        }
    }
    return !(n->service.len && prefix_contains(n->service, ip)) &&
           host_address_check(ip, NULL) == 0;
}

char *sdn_addresses_text(const struct sdn_addresses *a)
{
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < a->n; i++) {
        strbuf_addf(&out, "%s%s", i ? "," : "", IP4_TEXT(a->ip[i]));
    }
    return a->n ? strbuf_steal(&out) : NULL;
}

void sdn_addresses_parse(const char *text, const struct sdn_network *n, struct sdn_addresses *ret)
{
    CLEANUP_FREE char *copy = xstrdup(text ? text : "");
    char *save = NULL;
    *ret = (struct sdn_addresses){0};
    for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        uint32_t ip;
        if (ip4_parse(item, &ip) == 0 && sdn_may_be_host(n, ip)) {
            sdn_addresses_add(ret, ip);
        }
    }
}

/* ---- as a service ---- */

/* One endpoint per port, which the port's name selects. */
static struct sdn_slice *slice_of(const struct sdn_host_port *p, const char *name)
{
    size_t size = strlen(name) + 1;
    struct sdn_slice *s = xcalloc(1, sizeof *s + sizeof s->endpoints[0] + sizeof *s->ports + size);
    s->refs = 1;
    s->n_endpoints = s->n_ports = 1;
    s->endpoints[0] =
        (struct sdn_endpoint){.ip = p->pod_ip, .flags = SDN_ENDPOINT_READY | SDN_ENDPOINT_SERVING};
    s->ports = (struct sdn_slice_port *) (void *) (s->endpoints + 1);
    char *text = (char *) (s->ports + 1);
    memcpy(text, name, size);
    s->ports[0] =
        (struct sdn_slice_port){.name = text, .protocol = p->port.protocol, .port = p->port.port};
    return s;
}

static bool is_at(const struct sdn_host_port *p, uint32_t address)
{
    return (p->port.host_ip == 0 || p->port.host_ip == address) &&
           (p->port.protocol == CNI_TCP || p->port.protocol == CNI_UDP);
}

struct sdn_service *sdn_host_ports_service(uint32_t address, const struct sdn_host_port *list,
                                           size_t n)
{
    CLEANUP_FREE struct sdn_slice **slices = xcalloc(n + 1, sizeof *slices);
    CLEANUP_FREE const char **names = xcalloc(n + 1, sizeof *names);
    CLEANUP_FREE const struct sdn_host_port **here = xcalloc(n + 1, sizeof *here);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_at(&list[i], address)) {
            here[used] = &list[i];
            CLEANUP_FREE char *name = xasprintf("%s-%u", cni_protocol_name(list[i].port.protocol),
                                                list[i].port.host_port);
            slices[used] = slice_of(&list[i], name);
            names[used] = slices[used]->ports[0].name;
            used++;
        }
    }
    struct sdn_service *s = used ? sdn_service_new("", IP4_TEXT(address), names, used) : NULL;
    for (size_t i = 0; i < used; i++) {
        s->ports[i].protocol = here[i]->port.protocol;
        s->ports[i].port = here[i]->port.host_port;
    }
    if (s) {
        s->cluster_ip = address;
        s->host_ports = true;
        sdn_service_join(s, slices, used);
    }
    for (size_t i = 0; i < used; i++) {
        sdn_slice_unref(slices[i]);
    }
    return s;
}
