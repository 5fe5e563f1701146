/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a zone; for zone.c, which changes it, and zone_answer.c, which reads it. */
#pragma once

#include "base/str.h"
#include "dns/zone.h"

#define DNS_IP6_SIZE 16

enum dns_kind {
    DNS_KIND_NAMESPACE, /* Key: one label; for the other kinds service and namespace. */
    DNS_KIND_PENDING,   /* It has no address yet. */
    DNS_KIND_ADDRESS,
    DNS_KIND_HEADLESS,
    DNS_KIND_EXTERNAL,
};

struct dns_address {
    uint8_t ip[DNS_IP6_SIZE]; /* IPv4: ::ffff:a.b.c.d */
    /* FNV-1a hash of its text, and of the host name, which OpenShift uses as the name. */
    uint32_t ip_hash;
    uint32_t host_hash;
    uint32_t host; /* Offset of its label in 'text'; 0: none. */
};

/* The most common form: IPv4, without a host name. */
struct dns_address4 {
    uint32_t ip, ip_hash;
};

struct dns_backend {
    uint32_t address; /* Number. */
    uint16_t port;
};

struct dns_port {
    uint32_t name; /* Offset of its label in 'text'; 0: none. */
    uint32_t n;    /* Number of backends. */
    /* Index of the first backend; DNS_ALL_ADDRESSES: all addresses, at the port 'target'. */
    uint32_t first;
    uint16_t port, target;
    uint8_t protocol;
};
/* One small allocation: there are tens of thousands, and a query should read few cache lines.
 * After 'text' follow, aligned, its ready addresses, its ports and their backends. */
#define DNS_ALL_ADDRESSES UINT32_MAX
struct dns_service {
    struct dns_item item;
    uint8_t kind;
    uint8_t key_size;
    bool plain; /* Its addresses are struct dns_address4. */
    uint32_t ip;
    union {
        uint32_t services; /* For a namespace; only the changing thread reads it. */
        /* Offset of the external name in 'text', in wire form after its size; 0: none that is
         * valid. */
        uint32_t external;
    };
    uint32_t n_addresses, n_ports;
    uint32_t text_size;
    uint8_t text[]; /* Labels, each with its length; begins with the key. */
};

static inline size_t dns_text_room(size_t text_size)
{
    return (text_size + 3) / 4 * 4;
}
static inline const void *dns_service_addresses(const struct dns_service *s)
{
    return s->text + dns_text_room(s->text_size);
}
static inline size_t dns_address_size(const struct dns_service *s)
{
    return s->plain ? sizeof(struct dns_address4) : sizeof(struct dns_address);
}
static inline const struct dns_port *dns_service_ports(const struct dns_service *s)
{
    const uint8_t *p = dns_service_addresses(s);
    return (const void *) (p + s->n_addresses * dns_address_size(s));
}
void dns_service_address(const struct dns_service *s, uint32_t i, struct dns_address *ret);
/* Backend 'i' of p->n. */
struct dns_backend dns_service_backend(const struct dns_service *s, const struct dns_port *p,
                                       uint32_t i);

struct dns_reverse {
    struct dns_item item;
    uint8_t ip_size;     /* 4 or DNS_IP6_SIZE */
    uint8_t labels_size; /* Size of the labels before svc.DOMAIN. */
    uint8_t data[];      /* The address, then the labels. */
};
/* The key for 'ip' in its own address family; returns its size. */
size_t dns_reverse_key(const uint8_t ip[DNS_IP6_SIZE], const uint8_t **ret);
static inline bool dns_reverse_is(const struct dns_reverse *r, const uint8_t *key, size_t size)
{
    return r->ip_size == size && memcmp(r->data, key, size) == 0;
}

struct dns_pod {
    struct dns_item item;
    uint32_t ip;
    uint8_t label[]; /* Label of the namespace. */
};

struct dns_project {
    struct dns_item item;
    struct sdn_vnids vnids;
    uint8_t label[]; /* Label of the namespace. */
};

struct dns_networks {
    size_t n;
    struct ip4_prefix nets[];
};

struct dns_zone {
    struct dns_name domain;
    uint8_t domain_labels;
    struct dns_name soa_name, soa_mail, svc,
        endpoints; /* ns.dns, hostmaster, svc, and its endpoints. */
    struct dns_epochs epochs;
    struct dns_table services, reverse, pods, projects;
    _Atomic(struct dns_networks *) networks;
    _Atomic uint32_t server, serial;
    _Atomic bool complete, isolated, projects_complete;
    size_t n_services;
};

void dns_map4(uint32_t ip, uint8_t out[DNS_IP6_SIZE]);
bool dns_is4(const uint8_t ip[DNS_IP6_SIZE], uint32_t *ret);
static inline uint32_t dns_hash_ip(const uint8_t ip[DNS_IP6_SIZE])
{
    return hash32(ip, DNS_IP6_SIZE);
}
/* The label of an endpoint without a host name, with its length: "10-128-0-5"; returns its size. */
size_t dns_address_label(const struct dns_address *a, const uint8_t *text,
                         uint8_t out[DNS_LABEL_MAX + 1]);
/* NULL: the namespace has no VNIDs. */
const struct dns_project *dns_zone_project(const struct dns_zone *z, const uint8_t *label);
/* The service by its key: the labels of service and namespace. NULL: none. */
const struct dns_service *dns_zone_find(const struct dns_zone *z, const uint8_t *key, size_t size);
