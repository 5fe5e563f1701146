/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/zone.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "dns/zone_priv.h"

#include <arpa/inet.h>
#include <stdio.h>

/* ---- names and addresses ---- */

/* The hash that OpenShift uses for endpoint names. */
static uint32_t fnv1a(const char *s)
{
    uint32_t h = 0x811c9dc5u;
    for (; *s; s++) {
        h = (h ^ (uint8_t) *s) * 0x01000193u;
    }
    return h;
}

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

void dns_map4(uint32_t ip, uint8_t out[DNS_IP6_SIZE])
{
    memcpy(out, mapped, sizeof mapped);
    dns_put32(out + sizeof mapped, ip);
}

bool dns_is4(const uint8_t ip[DNS_IP6_SIZE], uint32_t *ret)
{
    *ret = dns_get32(ip + sizeof mapped);
    return memcmp(ip, mapped, sizeof mapped) == 0;
}

size_t dns_reverse_key(const uint8_t ip[DNS_IP6_SIZE], const uint8_t **ret)
{
    uint32_t ip4;
    bool four = dns_is4(ip, &ip4);
    *ret = four ? ip + sizeof mapped : ip;
    return four ? sizeof ip4 : DNS_IP6_SIZE;
}

static void address_text(const uint8_t ip[DNS_IP6_SIZE], char out[INET6_ADDRSTRLEN])
{
    uint32_t ip4;
    if (dns_is4(ip, &ip4)) {
        snprintf(out, INET6_ADDRSTRLEN, "%s", IP4_TEXT(ip4));
    } else {
        inet_ntop(AF_INET6, ip, out, INET6_ADDRSTRLEN);
    }
}

size_t dns_address_label(const struct dns_address *a, const uint8_t *text,
                         uint8_t out[DNS_LABEL_MAX + 1])
{
    if (a->host) {
        memcpy(out, text + a->host, 1u + text[a->host]);
        return 1u + text[a->host];
    }
    char s[INET6_ADDRSTRLEN];
    address_text(a->ip, s);
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        out[1 + i] = (uint8_t) (s[i] == '.' || s[i] == ':' ? '-' : s[i]);
    }
    out[0] = (uint8_t) n;
    return 1 + n;
}

/* Appends 's' as a label; returns its offset, or 0 when it cannot be one. */
static uint32_t add_label(struct strbuf *b, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (n == 0 || n > DNS_LABEL_MAX) {
        return 0;
    }
    size_t at = b->size;
    strbuf_addc(b, (char) n);
    strbuf_add(b, s, n);
    dns_lower((uint8_t *) b->data + at + 1, n);
    return (uint32_t) at;
}

/* The key of a service; 0: its names are not valid in DNS. */
static size_t make_key(const char *name, const char *ns, uint8_t out[2 * (DNS_LABEL_MAX + 1)])
{
    size_t size = 0;
    const char *labels[] = {name, ns};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(labels[i]);
        if (n == 0 || n > DNS_LABEL_MAX) {
            return 0;
        }
        out[size] = (uint8_t) n;
        memcpy(out + size + 1, labels[i], n);
        size += 1 + n;
    }
    dns_lower(out, size);
    return size;
}

/* ---- the zone ---- */

int dns_zone_new(const char *domain, struct dns_zone **ret, struct err *e)
{
    struct dns_name d, prefix;
    struct dns_zone *z = NULL;
    /* Below it are four labels of services, all of maximum length at worst. */
    if (dns_name_parse(domain, &d) < 0 || d.size < 2 || d.size > DNS_DOMAIN_MAX + 2) {
        return err_set(e, -EINVAL, "\"%s\" is not a domain of 1 to %d characters", domain,
                       DNS_DOMAIN_MAX);
    }
    z = xcalloc(1, sizeof *z);
    z->domain = d;
    for (const uint8_t *p = d.wire; *p; p += 1u + *p) {
        z->domain_labels++;
    }
    const struct {
        const char *text;
        struct dns_name *name;
    } names[] = {{"ns.dns", &z->soa_name},
                 {"hostmaster", &z->soa_mail},
                 {"svc", &z->svc},
                 {"endpoints", &z->endpoints}};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        dns_name_parse(names[i].text, &prefix);
        dns_name_join(&prefix, &d, names[i].name);
    }
    dns_epochs_init(&z->epochs);
    dns_table_init(&z->services, &z->epochs);
    dns_table_init(&z->reverse, &z->epochs);
    dns_table_init(&z->pods, &z->epochs);
    dns_table_init(&z->projects, &z->epochs);
    /* Larger than that of an earlier process. */
    atomic_init(&z->serial, (uint32_t) (time_wall_ms() / 1000));
    *ret = z;
    return 0;
}

struct dns_zone *dns_zone_free(struct dns_zone *z)
{
    if (z) {
        dns_table_done(&z->services);
        dns_table_done(&z->reverse);
        dns_table_done(&z->pods);
        dns_table_done(&z->projects);
        free(atomic_load(&z->networks));
        dns_epochs_done(&z->epochs);
        free(z);
    }
    return NULL;
}

struct dns_epochs *dns_zone_epochs(struct dns_zone *z)
{
    return &z->epochs;
}

size_t dns_zone_count(const struct dns_zone *z)
{
    return z->n_services;
}

const struct dns_service *dns_zone_find(const struct dns_zone *z, const uint8_t *key, size_t size)
{
    struct dns_cursor c = dns_table_cursor(&z->services, hash32(key, size));
    struct dns_item *item;
    while ((item = dns_cursor_next(&c)) != NULL) {
        const struct dns_service *s = CONTAINER_OF(item, struct dns_service, item);
        if (s->key_size == size && memcmp(s->text, key, size) == 0) {
            return s;
        }
    }
    return NULL;
}

void dns_service_address(const struct dns_service *s, uint32_t i, struct dns_address *ret)
{
    if (!s->plain) {
        *ret = ((const struct dns_address *) dns_service_addresses(s))[i];
        return;
    }
    const struct dns_address4 *a = (const struct dns_address4 *) dns_service_addresses(s) + i;
    *ret = (struct dns_address){.ip_hash = a->ip_hash};
    dns_map4(a->ip, ret->ip);
}

struct dns_backend dns_service_backend(const struct dns_service *s, const struct dns_port *p,
                                       uint32_t i)
{
    if (p->first == DNS_ALL_ADDRESSES) {
        return (struct dns_backend){.address = i, .port = p->target};
    }
    const struct dns_backend *all = (const void *) (dns_service_ports(s) + s->n_ports);
    return all[p->first + i];
}

/* ---- building a service ---- */

struct builder {
    const struct sdn_service *s;
    struct strbuf text;
    const struct sdn_endpoint **endpoints; /* Ready endpoints, by address, each address once. */
    size_t n_endpoints;
    struct dns_backend *backends;
    size_t n_backends;
    struct dns_port *ports;
};

static int compare_endpoints(const void *a, const void *b)
{
    return sdn_endpoint_compare(*(const struct sdn_endpoint *const *) a,
                                *(const struct sdn_endpoint *const *) b);
}

static void add_endpoints(struct builder *b, const struct sdn_backend *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((list[i].endpoint->flags & SDN_ENDPOINT_READY) || b->s->ready_or_not) {
            b->endpoints[b->n_endpoints++] = list[i].endpoint;
        }
    }
}

static void collect_endpoints(struct builder *b)
{
    const struct sdn_service *s = b->s;
    size_t max = s->n_addresses, out = 0;
    for (size_t i = 0; i < s->n_ports; i++) {
        max += s->ports[i].n_backends;
    }
    b->endpoints = xcalloc(max + 1, sizeof(struct sdn_endpoint *));
    add_endpoints(b, s->addresses, s->n_addresses);
    for (size_t i = 0; i < s->n_ports; i++) {
        add_endpoints(b, s->ports[i].backends, s->ports[i].n_backends);
    }
    qsort(b->endpoints, b->n_endpoints, sizeof b->endpoints[0], compare_endpoints);
    for (size_t i = 0; i < b->n_endpoints; i++) {
        if (!out || compare_endpoints(&b->endpoints[out - 1], &b->endpoints[i]) != 0) {
            b->endpoints[out++] = b->endpoints[i];
        }
    }
    b->n_endpoints = out;
}

/* Most ports have all endpoints, at one port: then they need not be listed. */
static void simplify_port(struct builder *b, struct dns_port *p)
{
    const struct dns_backend *list = b->backends + p->first;
    bool all = p->n == b->n_endpoints && p->n > 0;
    for (uint32_t i = 0; all && i < p->n; i++) {
        all = list[i].address == i && list[i].port == list[0].port;
    }
    if (all) {
        p->target = list[0].port;
        b->n_backends = p->first;
        p->first = DNS_ALL_ADDRESSES;
    }
}

static void build_ports(struct builder *b)
{
    const struct sdn_service *s = b->s;
    size_t max = 0;
    for (size_t i = 0; i < s->n_ports; i++) {
        max += s->ports[i].n_backends;
    }
    b->backends = xcalloc(max + 1, sizeof b->backends[0]);
    b->ports = xcalloc(s->n_ports + 1, sizeof b->ports[0]);
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct sdn_service_port *from = &s->ports[i];
        struct dns_port *to = &b->ports[i];
        *to = (struct dns_port){.name = add_label(&b->text, from->name),
                                .protocol = from->protocol,
                                .port = from->port,
                                .first = (uint32_t) b->n_backends};
        for (size_t j = 0; j < from->n_backends; j++) {
            const struct sdn_endpoint *ep = from->backends[j].endpoint;
            const struct sdn_endpoint **at =
                bsearch(&ep, b->endpoints, b->n_endpoints, sizeof ep, compare_endpoints);
            if (at) {
                b->backends[b->n_backends++] = (struct dns_backend){
                    .address = (uint32_t) (at - b->endpoints), .port = from->backends[j].port};
            }
        }
        to->n = (uint32_t) b->n_backends - to->first;
        simplify_port(b, to);
    }
}

static void build_address(struct builder *b, const struct sdn_endpoint *ep, struct dns_address *a)
{
    char s[INET6_ADDRSTRLEN];
    if (ep->ip) {
        dns_map4(ep->ip, a->ip);
    } else {
        memcpy(a->ip, ep->ip6, sizeof a->ip);
    }
    address_text(a->ip, s);
    a->ip_hash = fnv1a(s);
    a->host = add_label(&b->text, ep->hostname);
    a->host_hash = a->host ? fnv1a(ep->hostname) : 0;
}

static uint32_t build_external(struct builder *b)
{
    struct dns_name n;
    if (dns_name_parse(b->s->external_name, &n) < 0 || n.size < 2) {
        return 0;
    }
    size_t at = b->text.size;
    strbuf_addc(&b->text, (char) n.size);
    strbuf_add(&b->text, n.wire, n.size);
    return (uint32_t) at;
}

static void copy(void *to, const void *from, size_t size)
{
    if (size) {
        memcpy(to, from, size);
    }
}

static void copy_plain(struct dns_address4 *to, const struct dns_address *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i].ip_hash = from[i].ip_hash;
        (void) dns_is4(from[i].ip, &to[i].ip);
    }
}

/* In one allocation, as dns/table.h requires. */
static struct dns_service *assemble(const struct builder *b, const struct dns_service *head,
                                    const struct dns_address *addresses)
{
    size_t n_ports = b->s ? b->s->n_ports : 0, backends = b->n_backends * sizeof *b->backends;
    struct dns_service *s = xcalloc(1, sizeof *s + dns_text_room(b->text.size) +
                                           b->n_endpoints * dns_address_size(head) +
                                           n_ports * sizeof(struct dns_port) + backends);
    *s = *head;
    s->text_size = (uint32_t) b->text.size;
    s->n_addresses = (uint32_t) b->n_endpoints;
    s->n_ports = (uint32_t) n_ports;
    memcpy(s->text, b->text.data, b->text.size);
    void *to = (void *) dns_service_addresses(s);
    if (s->plain) {
        copy_plain(to, addresses, b->n_endpoints);
    } else {
        copy(to, addresses, b->n_endpoints * sizeof *addresses);
    }
    struct dns_port *ports = (struct dns_port *) dns_service_ports(s);
    copy(ports, b->ports, n_ports * sizeof *ports);
    copy(ports + n_ports, b->backends, backends);
    s->item.hash = hash32(s->text, s->key_size);
    return s;
}

static struct dns_service *build(const struct sdn_service *s, const uint8_t *key, size_t key_size)
{
    struct builder b = {.s = s, .text = STRBUF_INIT};
    struct dns_service head = {.key_size = (uint8_t) key_size, .ip = s->cluster_ip, .plain = true};
    head.kind = s->type == SDN_SERVICE_EXTERNAL_NAME ? DNS_KIND_EXTERNAL
                : s->headless                        ? DNS_KIND_HEADLESS
                : s->cluster_ip                      ? DNS_KIND_ADDRESS
                                                     : DNS_KIND_PENDING;
    strbuf_add(&b.text, key, key_size);
    if (head.kind == DNS_KIND_EXTERNAL) {
        head.external = build_external(&b);
    }
    collect_endpoints(&b);
    build_ports(&b);
    struct dns_address *addresses = xcalloc(b.n_endpoints + 1, sizeof *addresses);
    for (size_t i = 0; i < b.n_endpoints; i++) {
        build_address(&b, b.endpoints[i], &addresses[i]);
        head.plain = head.plain && b.endpoints[i]->ip && !addresses[i].host;
    }
    struct dns_service *out = assemble(&b, &head, addresses);
    free(addresses);
    free(b.endpoints);
    free(b.backends);
    free(b.ports);
    strbuf_done(&b.text);
    return out;
}

/* ---- reverse names ---- */

/* 'labels' are the name before svc.DOMAIN. */
static void reverse_add(struct dns_zone *z, const uint8_t ip[DNS_IP6_SIZE], const uint8_t *labels,
                        size_t size)
{
    const uint8_t *key;
    size_t key_size = dns_reverse_key(ip, &key);
    struct dns_reverse *r = xmalloc(sizeof *r + key_size + size);
    r->item.hash = dns_hash_ip(ip);
    r->ip_size = (uint8_t) key_size;
    r->labels_size = (uint8_t) size;
    memcpy(r->data, key, key_size);
    memcpy(r->data + key_size, labels, size);
    dns_table_put(&z->reverse, &r->item);
}

static void reverse_remove(struct dns_zone *z, const uint8_t ip[DNS_IP6_SIZE],
                           const uint8_t *labels, size_t size)
{
    const uint8_t *key;
    size_t key_size = dns_reverse_key(ip, &key);
    struct dns_cursor c = dns_table_cursor(&z->reverse, dns_hash_ip(ip));
    struct dns_item *item;
    while ((item = dns_cursor_next(&c)) != NULL) {
        const struct dns_reverse *r = CONTAINER_OF(item, struct dns_reverse, item);
        if (dns_reverse_is(r, key, key_size) && r->labels_size == size &&
            memcmp(r->data + key_size, labels, size) == 0) {
            dns_table_remove(&z->reverse, item);
            return;
        }
    }
}

/* Calls 'fn' for all addresses with a reverse name of 's'. */
static void each_reverse(struct dns_zone *z, const struct dns_service *s,
                         void (*fn)(struct dns_zone *, const uint8_t *, const uint8_t *, size_t))
{
    uint8_t labels[3 * (DNS_LABEL_MAX + 1)];
    if (s->kind == DNS_KIND_ADDRESS) {
        uint8_t ip[DNS_IP6_SIZE];
        dns_map4(s->ip, ip);
        fn(z, ip, s->text, s->key_size);
    }
    for (uint32_t i = 0; s->kind == DNS_KIND_HEADLESS && i < s->n_addresses; i++) {
        struct dns_address a;
        dns_service_address(s, i, &a);
        size_t size = dns_address_label(&a, s->text, labels);
        memcpy(labels + size, s->text, s->key_size);
        size += s->key_size;
        if (size + z->svc.size <= DNS_NAME_MAX) {
            fn(z, a.ip, labels, size);
        }
    }
}

/* The reverse name of a service with an address does not depend on its endpoints. */
static bool same_reverse(const struct dns_service *a, const struct dns_service *b)
{
    return a->kind == DNS_KIND_ADDRESS && b->kind == DNS_KIND_ADDRESS && a->ip == b->ip;
}

/* ---- changing ---- */

/* A namespace's name exists as long as there is a service in it. */
static void count_namespace(struct dns_zone *z, const uint8_t *label, int change)
{
    size_t size = 1u + label[0];
    struct dns_service *ns = (struct dns_service *) dns_zone_find(z, label, size);
    if (!ns) {
        struct builder b = {.text = STRBUF_INIT};
        strbuf_add(&b.text, label, size);
        struct dns_service head = {.kind = DNS_KIND_NAMESPACE, .key_size = (uint8_t) size};
        ns = assemble(&b, &head, NULL);
        strbuf_done(&b.text);
        dns_table_put(&z->services, &ns->item);
    }
    ns->services += (uint32_t) change;
    if (ns->services == 0) {
        dns_table_remove(&z->services, &ns->item);
    }
}

static void changed(struct dns_zone *z)
{
    atomic_fetch_add_explicit(&z->serial, 1, memory_order_relaxed);
}

void dns_zone_set_service(struct dns_zone *z, const struct sdn_service *s)
{
    uint8_t key[2 * (DNS_LABEL_MAX + 1)];
    size_t size = make_key(s->name, s->namespace, key);
    if (!size) {
        return;
    }
    struct dns_service *old = (struct dns_service *) dns_zone_find(z, key, size);
    struct dns_service *now = build(s, key, size);
    bool same = old && same_reverse(old, now);
    if (old && !same) {
        each_reverse(z, old, reverse_remove);
    }
    if (!same) {
        each_reverse(z, now, reverse_add);
    }
    if (old) {
        dns_table_replace(&z->services, &old->item, &now->item);
    } else {
        dns_table_put(&z->services, &now->item);
        count_namespace(z, key + 1 + key[0], 1);
        z->n_services++;
    }
    changed(z);
}

void dns_zone_remove_service(struct dns_zone *z, const char *ns, const char *name)
{
    uint8_t key[2 * (DNS_LABEL_MAX + 1)];
    size_t size = make_key(name, ns, key);
    struct dns_service *old = size ? (struct dns_service *) dns_zone_find(z, key, size) : NULL;
    if (!old) {
        return;
    }
    each_reverse(z, old, reverse_remove);
    dns_table_remove(&z->services, &old->item);
    count_namespace(z, key + 1 + key[0], -1);
    z->n_services--;
    changed(z);
}

/* Makes the label of a namespace; returns false if DNS cannot have such a label. */
static bool make_label(const char *ns, uint8_t out[DNS_LABEL_MAX + 1])
{
    size_t n = ns ? strlen(ns) : 0;
    if (n == 0 || n > DNS_LABEL_MAX) {
        return false;
    }
    out[0] = (uint8_t) n;
    memcpy(out + 1, ns, n);
    dns_lower(out, 1 + n); /* A length byte is never a letter. */
    return true;
}

const struct dns_project *dns_zone_project(const struct dns_zone *z, const uint8_t *label)
{
    size_t size = 1u + label[0];
    struct dns_cursor c = dns_table_cursor(&z->projects, hash32(label, size));
    struct dns_item *item;
    while ((item = dns_cursor_next(&c)) != NULL) {
        const struct dns_project *p = CONTAINER_OF(item, struct dns_project, item);
        if (memcmp(p->label, label, size) == 0) {
            return p;
        }
    }
    return NULL;
}

void dns_zone_set_project(struct dns_zone *z, const char *ns, const struct sdn_vnids *vnids)
{
    uint8_t label[DNS_LABEL_MAX + 1];
    struct dns_project *now = NULL;
    if (!make_label(ns, label)) {
        return;
    }
    size_t size = 1u + label[0];
    struct dns_project *old = (struct dns_project *) dns_zone_project(z, label);
    if (vnids) {
        now = xmalloc(sizeof *now + size);
        now->item.hash = hash32(label, size);
        now->vnids = *vnids;
        memcpy(now->label, label, size);
    }
    if (old && now) {
        dns_table_replace(&z->projects, &old->item, &now->item);
    } else if (old) {
        dns_table_remove(&z->projects, &old->item);
    } else if (now) {
        dns_table_put(&z->projects, &now->item);
    }
}

void dns_zone_set_isolated(struct dns_zone *z, bool isolated)
{
    atomic_store(&z->isolated, isolated);
}

void dns_zone_set_projects_complete(struct dns_zone *z)
{
    atomic_store(&z->projects_complete, true);
}

void dns_zone_set_pod(struct dns_zone *z, uint32_t ip, const char *ns)
{
    uint8_t label[DNS_LABEL_MAX + 1];
    struct dns_pod *now = NULL, *old = NULL;
    uint32_t hash = hash32(&ip, sizeof ip);
    struct dns_cursor c = dns_table_cursor(&z->pods, hash);
    struct dns_item *item;
    while (!old && (item = dns_cursor_next(&c)) != NULL) {
        struct dns_pod *p = CONTAINER_OF(item, struct dns_pod, item);
        old = p->ip == ip ? p : NULL;
    }
    if (make_label(ns, label)) {
        now = xmalloc(sizeof *now + 1 + label[0]);
        now->item.hash = hash;
        now->ip = ip;
        memcpy(now->label, label, 1u + label[0]);
    }
    if (old && now) {
        dns_table_replace(&z->pods, &old->item, &now->item);
    } else if (old) {
        dns_table_remove(&z->pods, &old->item);
    } else if (now) {
        dns_table_put(&z->pods, &now->item);
    }
}

void dns_zone_set_networks(struct dns_zone *z, const struct ip4_prefix *nets, size_t n)
{
    struct dns_networks *now = xmalloc(sizeof *now + n * sizeof *nets);
    now->n = n;
    for (size_t i = 0; i < n; i++) {
        now->nets[i] = nets[i];
    }
    dns_epochs_retire(&z->epochs, atomic_exchange(&z->networks, now));
}

void dns_zone_set_complete(struct dns_zone *z)
{
    atomic_store(&z->complete, true);
}

void dns_zone_set_server(struct dns_zone *z, uint32_t ip)
{
    atomic_store(&z->server, ip);
}
