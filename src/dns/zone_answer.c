/* SPDX-License-Identifier: Apache-2.0 */
/* Answering from a zone. */
#include "dns/zone_priv.h"

#define CHAIN_MAX 8 /* Maximum of CNAMEs within the cluster. */
#define SCHEMA_VERSION "1.1.0"
#define SRV_PRIORITY 10
#define SRV_WEIGHT 10
#define SOA_REFRESH 7200
#define SOA_RETRY 1800
#define SOA_EXPIRE 86400
#define REVERSE4_LABELS 6  /* d.c.b.a.in-addr.arpa */
#define REVERSE6_LABELS 34 /* 32 digits, ip6.arpa */

/* A name that is looked up, with its labels as in a query. */
struct place {
    const struct dns_name *name;
    const uint8_t *label;
    unsigned n_labels;
    const struct dns_name *owner; /* NULL: the name in question. */
};

/* The namespaces whose names the client may see. */
struct view {
    bool isolated; /* Otherwise the client sees all names. */
    /* Label of the client's own namespace; NULL: the client is no pod of this zone. */
    const uint8_t *own;
    struct sdn_vnids vnids;
};

struct lookup {
    const struct dns_zone *z;
    struct view view;
    struct dns_writer *w;
    struct dns_lookup *out;
    uint16_t type;
    unsigned turn;
    bool data;     /* The requested records were written. */
    bool deny;     /* The name does not exist. */
    bool empty;    /* The name exists only because of names below it. */
    bool wildcard; /* The name matches only because any name below a service does. */
    unsigned chain;
};

static const uint8_t *label_at(const struct place *p, unsigned i)
{
    return p->name->wire + p->label[i];
}

static bool label_is(const uint8_t *label, const char *s)
{
    return label[0] == strlen(s) && memcmp(label + 1, s, label[0]) == 0;
}

static bool wants(const struct lookup *l, uint16_t type)
{
    return l->type == type;
}

static bool label_equal(const uint8_t *a, const uint8_t *b)
{
    return a[0] == b[0] && memcmp(a + 1, b + 1, a[0]) == 0;
}

/* ---- isolation of namespaces ---- */

/* The namespace's label of the pod at 'client'; NULL: no pod of the zone. */
static const uint8_t *namespace_of(const struct dns_zone *z, uint32_t client)
{
    struct dns_cursor c = dns_table_cursor(&z->pods, hash32(&client, sizeof client));
    struct dns_item *item;
    while ((item = dns_cursor_next(&c)) != NULL) {
        const struct dns_pod *p = CONTAINER_OF(item, struct dns_pod, item);
        if (p->ip == client) {
            return p->label;
        }
    }
    return NULL;
}

static struct view view_of(const struct dns_zone *z, uint32_t client)
{
    struct view v = {.isolated = atomic_load_explicit(&z->isolated, memory_order_relaxed),
                     .vnids = {.id = SDN_VNID_NOBODY}};
    if (v.isolated && client) {
        v.own = namespace_of(z, client);
        const struct dns_project *p = v.own ? dns_zone_project(z, v.own) : NULL;
        v.vnids = p ? p->vnids : v.vnids;
    }
    return v;
}

static bool id_reaches(uint32_t id, const struct sdn_vnids *to)
{
    return sdn_vnid_may_reach(id, to->id) || (to->moving && sdn_vnid_may_reach(id, to->also));
}

/* Whether the client may see names of the namespace. */
static bool may_see(const struct lookup *l, const uint8_t *ns)
{
    const struct view *v = &l->view;
    if (!v->isolated || (v->own && label_equal(v->own, ns))) {
        return true;
    }
    const struct dns_project *p = dns_zone_project(l->z, ns);
    return p && (id_reaches(v->vnids.id, &p->vnids) ||
                 (v->vnids.moving && id_reaches(v->vnids.also, &p->vnids)));
}

/* ---- records ---- */

static bool end(struct lookup *l)
{
    bool fits = dns_writer_end(l->w);
    l->data = l->data || (fits && l->w->section == DNS_ANSWER);
    return fits;
}

static bool put_address(struct lookup *l, const struct dns_name *owner, const uint8_t *ip)
{
    uint32_t ip4;
    if (dns_is4(ip, &ip4)) {
        dns_writer_begin(l->w, owner, DNS_A, DNS_TTL);
        dns_writer_u32(l->w, ip4);
    } else {
        dns_writer_begin(l->w, owner, DNS_AAAA, DNS_TTL);
        dns_writer_bytes(l->w, ip, DNS_IP6_SIZE);
    }
    return end(l);
}

static bool is_wanted_address(const struct lookup *l, const uint8_t *ip)
{
    uint32_t ip4;
    return wants(l, dns_is4(ip, &ip4) ? DNS_A : DNS_AAAA);
}

static bool put_srv(struct lookup *l, const struct dns_name *owner, uint16_t port,
                    const struct dns_name *target)
{
    dns_writer_begin(l->w, owner, DNS_SRV, DNS_TTL);
    dns_writer_u16(l->w, SRV_PRIORITY);
    dns_writer_u16(l->w, SRV_WEIGHT);
    dns_writer_u16(l->w, port);
    dns_writer_name(l->w, target, false);
    return end(l);
}

static void put_soa(const struct dns_zone *z, struct dns_writer *w, uint32_t ttl)
{
    dns_writer_begin(w, &z->domain, DNS_SOA, ttl);
    dns_writer_name(w, &z->soa_name, true);
    dns_writer_name(w, &z->soa_mail, true);
    dns_writer_u32(w, atomic_load_explicit(&z->serial, memory_order_relaxed));
    dns_writer_u32(w, SOA_REFRESH);
    dns_writer_u32(w, SOA_RETRY);
    dns_writer_u32(w, SOA_EXPIRE);
    dns_writer_u32(w, DNS_NEGATIVE_TTL);
    dns_writer_end(w);
}

void dns_zone_deny(const struct dns_zone *z, struct dns_writer *w)
{
    w->section = DNS_AUTHORITY;
    put_soa(z, w, DNS_NEGATIVE_TTL);
}

/* Adds an address for the target of another record, if it fits. */
static bool put_additional(struct lookup *l, const struct dns_name *owner, const uint8_t *ip)
{
    bool truncated = l->w->truncated;
    l->w->section = DNS_ADDITIONAL;
    bool fits = put_address(l, owner, ip);
    l->w->section = DNS_ANSWER;
    l->w->truncated = truncated;
    return fits;
}

/* ---- services ---- */

static bool protocol_is(const uint8_t *label, uint8_t protocol)
{
    const char *name = sdn_protocol_name(protocol);
    return name && label[0] == strlen(name) + 1 && label[1] == '_' &&
           memcmp(label + 2, name, label[0] - 1u) == 0;
}

/* "_http" is the port "http". */
static bool port_is(const uint8_t *label, const struct dns_service *s, const struct dns_port *p)
{
    const uint8_t *name = s->text + p->name;
    return p->name && label[0] == name[0] + 1 && label[1] == '_' &&
           memcmp(label + 2, name + 1, name[0]) == 0;
}

/* A label that may name an endpoint, in each possible form. */
struct endpoint_label {
    const uint8_t *label;
    bool is_ip4, is_hash;
    uint32_t ip4, hash;
};

/* "10-128-0-5" */
static bool parse_dashed(const uint8_t *label, uint32_t *ret)
{
    char text[IP4_TEXT_SIZE];
    if (label[0] >= sizeof text) {
        return false;
    }
    for (size_t i = 0; i < label[0]; i++) {
        uint8_t c = label[1 + i];
        if (c == '.') {
            return false;
        }
        text[i] = (char) (c == '-' ? '.' : c);
    }
    text[label[0]] = '\0';
    return ip4_parse(text, ret) == 0;
}

static bool parse_hex(const uint8_t *p, size_t n, uint32_t *ret)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        bool digit = p[i] >= '0' && p[i] <= '9';
        if (!digit && (p[i] < 'a' || p[i] > 'f')) {
            return false;
        }
        v = v << 4 | (uint32_t) (digit ? p[i] - '0' : p[i] - 'a' + 10);
    }
    *ret = v;
    return true;
}

static struct endpoint_label read_endpoint_label(const uint8_t *label)
{
    struct endpoint_label l = {.label = label};
    l.is_ip4 = parse_dashed(label, &l.ip4);
    /* In its printed form: without leading zeros. */
    l.is_hash = label[0] <= 8 && (label[1] != '0' || label[0] == 1) &&
                parse_hex(label + 1, label[0], &l.hash);
    return l;
}

static bool address_is(const struct endpoint_label *l, const struct dns_service *s,
                       const struct dns_address *a)
{
    uint32_t ip4;
    if (a->host && label_equal(l->label, s->text + a->host)) {
        return true;
    }
    if (l->is_hash && (l->hash == a->ip_hash || (a->host && l->hash == a->host_hash))) {
        return true;
    }
    if (dns_is4(a->ip, &ip4)) {
        return l->is_ip4 && l->ip4 == ip4;
    }
    struct dns_address plain = *a;
    uint8_t own[DNS_LABEL_MAX + 1];
    plain.host = 0;
    dns_address_label(&plain, NULL, own);
    return label_equal(l->label, own);
}

struct found {
    const struct dns_service *s;
    bool endpoints;       /* The name is below "endpoints". */
    struct dns_name name; /* Canonical. */
};

static void endpoint_name(const struct found *f, uint32_t address, struct dns_name *ret)
{
    uint8_t label[DNS_LABEL_MAX + 1];
    struct dns_address a;
    dns_service_address(f->s, address, &a);
    size_t size = dns_address_label(&a, f->s->text, label);
    if (dns_name_prepend(label, size, &f->name, ret) < 0) {
        *ret = f->name; /* Too long for a name; it cannot be queried either. */
    }
}

/* Records of one port. */
static void answer_port(struct lookup *l, const struct place *at, const struct found *f,
                        const struct dns_port *p)
{
    if (f->s->kind == DNS_KIND_ADDRESS && !f->endpoints) {
        uint8_t ip[DNS_IP6_SIZE];
        dns_map4(f->s->ip, ip);
        if (put_srv(l, at->owner, p->port, &f->name)) {
            put_additional(l, &f->name, ip);
        }
        return;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        struct dns_backend b = dns_service_backend(f->s, p, (i + l->turn % p->n) % p->n);
        struct dns_name target;
        endpoint_name(f, b.address, &target);
        if (!put_srv(l, at->owner, b.port, &target)) {
            return;
        }
    }
    for (uint32_t i = 0; i < p->n; i++) {
        struct dns_backend b = dns_service_backend(f->s, p, (i + l->turn % p->n) % p->n);
        struct dns_name target;
        struct dns_address a;
        endpoint_name(f, b.address, &target);
        dns_service_address(f->s, b.address, &a);
        if (!put_additional(l, &target, a.ip)) {
            return;
        }
    }
}

static void answer_addresses(struct lookup *l, const struct place *at, const struct found *f)
{
    const struct dns_service *s = f->s;
    if (s->kind == DNS_KIND_ADDRESS && !f->endpoints) {
        uint8_t ip[DNS_IP6_SIZE];
        dns_map4(s->ip, ip);
        if (is_wanted_address(l, ip)) {
            put_address(l, at->owner, ip);
        }
        return;
    }
    for (uint32_t i = 0; i < s->n_addresses; i++) {
        struct dns_address a;
        dns_service_address(s, (i + l->turn % s->n_addresses) % s->n_addresses, &a);
        if (is_wanted_address(l, a.ip) && !put_address(l, at->owner, a.ip)) {
            return;
        }
    }
}

/* "_PORT._PROTOCOL" and "_PROTOCOL" below a service. */
static void answer_port_name(struct lookup *l, const struct place *at, const struct found *f,
                             unsigned below)
{
    const struct dns_service *s = f->s;
    bool found = false;
    for (uint32_t i = 0; i < s->n_ports && below <= 2; i++) {
        const struct dns_port *p = dns_service_ports(s) + i;
        if (!p->name || !protocol_is(label_at(at, below - 1), p->protocol) ||
            (below == 2 && !port_is(label_at(at, 0), s, p)) ||
            ((s->kind != DNS_KIND_ADDRESS || f->endpoints) && p->n == 0)) {
            continue;
        }
        found = true;
        if (below == 2 && wants(l, DNS_SRV)) {
            answer_port(l, at, f, p);
        } else if (below == 2) {
            answer_addresses(l, at, f);
        }
    }
    l->deny = !found;
}

static void answer_endpoint(struct lookup *l, const struct place *at, const struct found *f)
{
    const struct dns_service *s = f->s;
    struct endpoint_label label = read_endpoint_label(label_at(at, 0));
    l->deny = true;
    for (uint32_t i = 0; i < s->n_addresses; i++) {
        struct dns_address a;
        dns_service_address(s, i, &a);
        if (!address_is(&label, s, &a)) {
            continue;
        }
        l->deny = false;
        if (is_wanted_address(l, a.ip)) {
            put_address(l, at->owner, a.ip);
        }
    }
}

static void answer_name(struct lookup *l, const struct dns_name *name,
                        const struct dns_name *owner);

/* The answer continues at 'target'. */
static void follow(struct lookup *l, const struct dns_name *owner, const struct dns_name *target)
{
    dns_writer_begin(l->w, owner, DNS_CNAME, DNS_TTL);
    dns_writer_name(l->w, target, true);
    if (!dns_writer_end(l->w) || wants(l, DNS_CNAME)) {
        l->data = true;
        return;
    }
    if (++l->chain > CHAIN_MAX) {
        l->out->rcode = DNS_SERVFAIL; /* The CNAMEs form a loop. */
        return;
    }
    answer_name(l, target, target);
}

static void answer_external(struct lookup *l, const struct place *at, const struct found *f)
{
    if (!f->s->external) {
        return;
    }
    const uint8_t *p = f->s->text + f->s->external;
    struct dns_name target = {.size = p[0]};
    memcpy(target.wire, p + 1, p[0]);
    follow(l, at->owner, &target);
}

/* The service whose label is number 'i' of 'at', followed by the namespace. */
static void answer_service(struct lookup *l, const struct place *at, unsigned i, bool endpoints)
{
    static const uint8_t openshift[] = "\11openshift\7default",
                         kubernetes[] = "\12kubernetes\7default";
    const uint8_t *key = label_at(at, i);
    size_t size = 2u + key[0] + label_at(at, i + 1)[0];
    if (!may_see(l, label_at(at, i + 1))) {
        l->deny = true;
        return;
    }
    struct found f = {.s = dns_zone_find(l->z, key, size), .endpoints = endpoints};
    if (!f.s && size == sizeof openshift - 1 && memcmp(key, openshift, size) == 0) {
        /* OpenShift's name for the master. */
        key = kubernetes;
        size = sizeof kubernetes - 1;
        f.s = dns_zone_find(l->z, key, size);
    }
    if (!f.s ||
        dns_name_prepend(key, size, endpoints ? &l->z->endpoints : &l->z->svc, &f.name) < 0) {
        l->deny = true;
        return;
    }
    const struct dns_service *s = f.s;
    bool own_address = s->kind == DNS_KIND_ADDRESS && !endpoints;
    if (s->kind == DNS_KIND_EXTERNAL) {
        l->deny = i > 0 || endpoints;
        if (!l->deny) {
            answer_external(l, at, &f);
        }
        return;
    }
    if (!own_address && s->kind != DNS_KIND_PENDING && s->n_addresses == 0) {
        l->deny = true;
        return;
    }
    if (i == 0 && wants(l, DNS_SRV)) {
        for (uint32_t p = 0; p < s->n_ports; p++) {
            answer_port(l, at, &f, dns_service_ports(s) + p);
        }
    } else if (i == 0) {
        answer_addresses(l, at, &f);
    } else if (label_at(at, i - 1)[1] == '_') {
        answer_port_name(l, at, &f, i);
    } else if (own_address) {
        l->wildcard = true;
        if (wants(l, DNS_SRV)) {
            return;
        }
        answer_addresses(l, at, &f);
    } else if (i == 1) {
        answer_endpoint(l, at, &f);
    } else {
        l->deny = true;
    }
}

/* ---- pods ---- */

bool dns_zone_is_own(const struct dns_zone *z, uint32_t ip)
{
    const struct dns_networks *nets = atomic_load_explicit(&z->networks, memory_order_acquire);
    for (size_t i = 0; nets && i < nets->n; i++) {
        if (prefix_contains(nets->nets[i], ip)) {
            return true;
        }
    }
    return false;
}

static void answer_pod(struct lookup *l, const struct place *at)
{
    uint32_t ip;
    uint8_t mapped[DNS_IP6_SIZE];
    const struct dns_networks *nets = atomic_load_explicit(&l->z->networks, memory_order_acquire);
    if (!may_see(l, label_at(at, 1)) || !parse_dashed(label_at(at, 0), &ip) ||
        (nets && nets->n && !dns_zone_is_own(l->z, ip))) {
        l->deny = true;
        return;
    }
    dns_map4(ip, mapped);
    if (is_wanted_address(l, mapped)) {
        put_address(l, at->owner, mapped);
    }
}

/* ---- reverse names ---- */

static bool parse_reverse4(const struct place *at, uint32_t *ret)
{
    uint32_t ip = 0;
    for (unsigned i = 4; i-- > 0;) {
        const uint8_t *label = label_at(at, i);
        unsigned byte = 0;
        for (size_t k = 1; k <= label[0]; k++) {
            byte = byte * 10 + (unsigned) (label[k] - '0');
            if (label[k] < '0' || label[k] > '9' || byte > 255 || k > 3) {
                return false;
            }
        }
        ip = ip << 8 | byte;
    }
    *ret = ip;
    return true;
}

static bool parse_reverse6(const struct place *at, uint8_t out[DNS_IP6_SIZE])
{
    for (unsigned i = 0; i < 2 * DNS_IP6_SIZE; i++) {
        const uint8_t *label = label_at(at, 2 * DNS_IP6_SIZE - 1 - i);
        uint32_t digit;
        if (label[0] != 1 || !parse_hex(label + 1, 1, &digit)) {
            return false;
        }
        out[i / 2] = (uint8_t) (out[i / 2] << 4 | digit);
    }
    return true;
}

/* The last label is the namespace. */
static const uint8_t *last_label(const struct dns_reverse *r)
{
    const uint8_t *label = r->data + r->ip_size, *end = label + r->labels_size;
    while (label + 1 + label[0] < end) {
        label += 1 + label[0];
    }
    return label;
}

/* true: the name is the cluster's, and was answered. */
static bool answer_reverse(struct lookup *l, const struct place *at)
{
    uint8_t ip[DNS_IP6_SIZE] = {0};
    uint32_t ip4 = 0;
    bool own = false;
    if (at->n_labels == REVERSE4_LABELS && label_is(label_at(at, 4), "in-addr") &&
        parse_reverse4(at, &ip4)) {
        dns_map4(ip4, ip);
        own = dns_zone_is_own(l->z, ip4);
    } else if (at->n_labels != REVERSE6_LABELS || !label_is(label_at(at, 32), "ip6") ||
               !parse_reverse6(at, ip)) {
        return false;
    }
    const uint8_t *key;
    size_t key_size = dns_reverse_key(ip, &key);
    struct dns_cursor c = dns_table_cursor(&l->z->reverse, dns_hash_ip(ip));
    struct dns_item *item;
    bool found = false;
    while ((item = dns_cursor_next(&c)) != NULL) {
        const struct dns_reverse *r = CONTAINER_OF(item, struct dns_reverse, item);
        struct dns_name n;
        if (!dns_reverse_is(r, key, key_size) || !may_see(l, last_label(r)) ||
            dns_name_prepend(r->data + key_size, r->labels_size, &l->z->svc, &n) < 0) {
            continue;
        }
        found = true;
        if (wants(l, DNS_PTR)) {
            dns_writer_begin(l->w, at->owner, DNS_PTR, DNS_TTL);
            dns_writer_name(l->w, &n, true);
            end(l);
        }
    }
    l->deny = own && !found;
    return own || found;
}

/* ---- names ---- */

static void answer_top(struct lookup *l, const struct place *at)
{
    uint8_t mapped[DNS_IP6_SIZE];
    if (wants(l, DNS_SOA)) {
        put_soa(l->z, l->w, DNS_TTL);
        l->data = true;
    } else if (wants(l, DNS_NS)) {
        dns_writer_begin(l->w, at->owner, DNS_NS, DNS_TTL);
        dns_writer_name(l->w, &l->z->soa_name, true);
        end(l);
        uint32_t server = atomic_load_explicit(&l->z->server, memory_order_relaxed);
        if (server) {
            dns_map4(server, mapped);
            put_additional(l, &l->z->soa_name, mapped);
        }
    }
}

static void answer_server(struct lookup *l, const struct place *at)
{
    uint8_t mapped[DNS_IP6_SIZE];
    uint32_t server = atomic_load_explicit(&l->z->server, memory_order_relaxed);
    dns_map4(server, mapped);
    if (server && is_wanted_address(l, mapped)) {
        put_address(l, at->owner, mapped);
    }
}

static void answer_version(struct lookup *l, const struct place *at)
{
    if (wants(l, DNS_TXT)) {
        dns_writer_begin(l->w, at->owner, DNS_TXT, DNS_TTL);
        dns_writer_bytes(l->w, "\5" SCHEMA_VERSION, sizeof SCHEMA_VERSION);
        end(l);
    }
}

static void answer_namespace(struct lookup *l, const uint8_t *label)
{
    l->deny = !may_see(l, label) || !dns_zone_find(l->z, label, 1u + label[0]);
    l->empty = true;
}

/* 'n' labels below the domain; the last one is a reserved word or (older form) a namespace. */
static void answer_below(struct lookup *l, const struct place *at, unsigned n)
{
    if (n == 0) {
        answer_top(l, at);
        return;
    }
    const uint8_t *last = label_at(at, n - 1);
    bool endpoints = label_is(last, "endpoints"), pod = label_is(last, "pod");
    bool dns = label_is(last, "dns");
    if (n == 1 && label_is(last, "dns-version")) {
        answer_version(l, at);
    } else if (n == 1 && (endpoints || pod || dns || label_is(last, "svc"))) {
        l->empty = true;
    } else if (n == 2 && dns && label_is(label_at(at, 0), "ns")) {
        answer_server(l, at);
    } else if (pod && n == 2) {
        l->deny = !may_see(l, label_at(at, 0));
        l->empty = true; /* Namespaces without services may have pods. */
    } else if (pod && n == 3) {
        answer_pod(l, at);
    } else if (pod) {
        l->deny = true;
    } else if (n == 1) {
        answer_namespace(l, last);
    } else if (n == 2 && (endpoints || label_is(last, "svc"))) {
        answer_namespace(l, label_at(at, 0));
    } else if (endpoints || label_is(last, "svc")) {
        answer_service(l, at, n - 3, endpoints);
    } else {
        answer_service(l, at, n - 2, false);
    }
}

/* Number of labels before 'domain', when 'at' is below it or equal; else -1. */
static int below_domain(const struct dns_zone *z, const struct place *at)
{
    const struct dns_name *d = &z->domain, *n = at->name;
    if (at->n_labels < z->domain_labels || n->size < d->size ||
        memcmp(n->wire + n->size - d->size, d->wire, d->size) != 0) {
        return -1;
    }
    unsigned below = at->n_labels - z->domain_labels;
    return at->label[below] == n->size - d->size ? (int) below : -1;
}

/* true: the name belongs to the cluster's domain. */
static bool answer_place(struct lookup *l, const struct place *at)
{
    int below = below_domain(l->z, at);
    if (below >= 0) {
        answer_below(l, at, (unsigned) below);
        return true;
    }
    return at->n_labels >= REVERSE4_LABELS && label_is(label_at(at, at->n_labels - 1), "arpa") &&
           answer_reverse(l, at);
}

static struct place make_place(const struct dns_name *name, const struct dns_name *owner,
                               uint8_t label[DNS_LABELS_MAX])
{
    struct place p = {.name = name, .label = label, .owner = owner};
    for (size_t i = 0; name->wire[i]; i += 1u + name->wire[i]) {
        label[p.n_labels++] = (uint8_t) i;
    }
    return p;
}

static void answer_name(struct lookup *l, const struct dns_name *name, const struct dns_name *owner)
{
    uint8_t label[DNS_LABELS_MAX];
    struct place p = make_place(name, owner, label);
    if (!answer_place(l, &p)) {
        l->out->elsewhere = true;
        l->out->target = *name;
    }
}

/* ---- the search list of a pod's resolver ---- */

/* Whether 'name' exists by itself and not only as a name below a service. */
static bool exists(const struct lookup *l, const struct dns_name *name)
{
    uint8_t scratch[DNS_UDP_PLAIN], label[DNS_LABELS_MAX];
    struct dns_query q = {.question_size = 0};
    struct dns_writer w;
    struct dns_lookup out = {0};
    /* A CNAME is not followed. */
    struct lookup probe = {.z = l->z, .view = l->view, .w = &w, .out = &out, .type = DNS_CNAME};
    struct place p = make_place(name, name, label);
    dns_writer_answer(&w, &q, NULL, scratch, sizeof scratch);
    return answer_place(&probe, &p) && !probe.deny && !probe.empty && !probe.wildcard;
}

static void found_elsewhere(struct lookup *l, const struct dns_name *target)
{
    dns_writer_reset(l->w);
    l->data = l->deny = l->empty = l->wildcard = false;
    follow(l, NULL, target);
}

/* 'at' is X.NAMESPACE.svc.DOMAIN of the asking pod's own namespace, and does not exist, or only
 * as a name below a service; looks up the next names of the pod's search list. */
static void search(struct lookup *l, const struct place *at, unsigned below)
{
    const struct dns_zone *z = l->z;
    const struct dns_name root = {.size = 1};
    const struct dns_name *suffixes[] = {&z->svc, &z->domain, &root};
    size_t size = at->label[below - 2]; /* Size of X. */
    struct dns_name target = root;
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        if (dns_name_prepend(at->name->wire, size, suffixes[i], &target) == 0 &&
            exists(l, &target)) {
            found_elsewhere(l, &target);
            return;
        }
    }
    uint8_t label[DNS_LABELS_MAX];
    struct place x = make_place(&target, NULL, label);
    if (!l->wildcard && below_domain(z, &x) < 0) {
        found_elsewhere(l, &target);
        l->out->searched = l->out->elsewhere;
    }
}

static void search_for_pod(struct lookup *l, const struct place *at, uint32_t client)
{
    int below = below_domain(l->z, at);
    /* X has at least two labels: a single one is no service with its namespace, and is not
     * forwarded. */
    if (below < 4 || !label_is(label_at(at, (unsigned) below - 1), "svc")) {
        return;
    }
    const uint8_t *ns = namespace_of(l->z, client);
    if (ns && label_equal(ns, label_at(at, (unsigned) below - 2))) {
        search(l, at, (unsigned) below);
    }
}

uint32_t dns_zone_announce(const struct dns_zone *z, const struct dns_query *q)
{
    struct place at = {.name = &q->name, .label = q->label, .n_labels = q->n_labels};
    unsigned behind = z->domain_labels + 1u; /* The key's labels. */
    if (at.n_labels > behind + 1) {
        const uint8_t *last = label_at(&at, at.n_labels - behind);
        behind += label_is(last, "svc") || label_is(last, "endpoints");
    }
    if (at.n_labels <= behind) {
        return 0;
    }
    const uint8_t *key = label_at(&at, at.n_labels - behind - 1);
    const uint8_t *end = label_at(&at, at.n_labels - behind + 1);
    uint32_t hash = hash32(key, (size_t) (end - key));
    dns_table_announce(&z->services, hash);
    return hash;
}

void dns_zone_fetch(const struct dns_zone *z, uint32_t hash)
{
    dns_table_fetch(&z->services, hash);
}

/* Whether a name can be denied: all services, and for isolation all VNIDs, are known. */
static bool is_complete(const struct lookup *l)
{
    return atomic_load_explicit(&l->z->complete, memory_order_relaxed) &&
           (!l->view.isolated ||
            atomic_load_explicit(&l->z->projects_complete, memory_order_relaxed));
}

void dns_zone_answer(const struct dns_zone *z, uint32_t client, unsigned turn, struct dns_writer *w,
                     struct dns_lookup *ret)
{
    const struct dns_query *q = w->query;
    struct lookup l = {
        .z = z, .view = view_of(z, client), .w = w, .out = ret, .type = q->type, .turn = turn};
    struct place at = {.name = &q->name, .label = q->label, .n_labels = q->n_labels};
    ret->rcode = DNS_NOERROR;
    ret->elsewhere = ret->searched = ret->authoritative = false;
    if (!answer_place(&l, &at)) {
        ret->elsewhere = true;
        ret->target = q->name;
        return;
    }
    ret->authoritative = true;
    if (l.deny && !is_complete(&l)) {
        dns_writer_reset(w);
        ret->authoritative = ret->elsewhere = false;
        ret->rcode = DNS_SERVFAIL;
        return;
    }
    if ((l.deny || l.wildcard) && client) {
        search_for_pod(&l, &at, client);
    }
    if (ret->elsewhere || ret->rcode) {
        return;
    }
    ret->rcode = l.deny ? DNS_NXDOMAIN : DNS_NOERROR;
    if (l.deny || (!l.data && !w->truncated)) {
        dns_zone_deny(z, w);
    }
}
