/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/addresses.h"

#include "apiserver/admission/admission.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <stdio.h>

#define KUBERNETES "default/kubernetes" /* The Endpoints that list the masters. */
#define NETWORK_GROUP "network.openshift.io"

struct addresses {
    struct cache_subscriber subscriber;
    struct node_rules rules;
    const struct cache_kind *nodes, *subnets, *services, *endpoints; /* NULL: not served. */
    /* Name of the object to its addresses, each between blanks: " 192.0.2.1 2001:db8::1 ". */
    struct smap of_nodes, of_subnets, of_services;
    char *of_masters;
};

/* ---- addresses as texts ---- */

/* Writes an address in its one canonical form; returns false for text that is no address. */
static bool normalize(const char *text, char out[INET6_ADDRSTRLEN], uint32_t *ret_ip4)
{
    struct in6_addr six;
    *ret_ip4 = 0;
    if (!text) {
        return false;
    }
    if (ip4_parse(text, ret_ip4) == 0) {
        inet_ntop(AF_INET, &(struct in_addr){htonl(*ret_ip4)}, out, INET6_ADDRSTRLEN);
        return true;
    }
    if (inet_pton(AF_INET6, text, &six) != 1) {
        return false;
    }
    if (IN6_IS_ADDR_V4MAPPED(&six) || IN6_IS_ADDR_V4COMPAT(&six)) {
        *ret_ip4 = ntohl(six.s6_addr32[3]);
        inet_ntop(AF_INET, &six.s6_addr32[3], out, INET6_ADDRSTRLEN);
        return true;
    }
    inet_ntop(AF_INET6, &six, out, INET6_ADDRSTRLEN);
    return true;
}

static void add_text(struct strbuf *b, const struct json *v)
{
    char text[INET6_ADDRSTRLEN];
    uint32_t ip;
    if (normalize(json_get_string(v), text, &ip)) {
        strbuf_addf(b, "%s%s ", b->size ? "" : " ", text);
    }
}

static bool has_text(const char *list, const char *ip)
{
    char word[INET6_ADDRSTRLEN + 2];
    (void) snprintf(word, sizeof word, " %s ", ip);
    return list && strstr(list, word);
}

static bool begins_with(const char *list, const char *ip)
{
    char word[INET6_ADDRSTRLEN + 2];
    (void) snprintf(word, sizeof word, " %s ", ip);
    return list && str_has_prefix(list, word);
}

/* ---- addresses of registered objects ---- */

static void read_node(const struct json *obj, struct strbuf *b)
{
    const struct json *item;
    JSON_FOREACH (item, json_path(obj, "status", "addresses", NULL)) {
        add_text(b, json_get(item, "address"));
    }
}

static void read_subnet(const struct json *obj, struct strbuf *b)
{
    add_text(b, json_get(obj, "hostIP"));
}

static void read_service(const struct json *obj, struct strbuf *b)
{
    const struct json *item;
    JSON_FOREACH (item, json_path(obj, "spec", "externalIPs", NULL)) {
        add_text(b, item);
    }
    JSON_FOREACH (item, json_path(obj, "status", "loadBalancer", "ingress", NULL)) {
        add_text(b, json_get(item, "ip"));
    }
}

static void read_endpoints(const struct json *obj, struct strbuf *b)
{
    const struct json *subset, *item;
    JSON_FOREACH (subset, json_get(obj, "subsets")) {
        JSON_FOREACH (item, json_get(subset, "addresses")) {
            add_text(b, json_get(item, "ip"));
        }
    }
}

static char *texts_of(const struct object *o,
                      void (*read)(const struct json *obj, struct strbuf *b))
{
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (obj) {
        read(obj, &b);
    }
    return b.size ? strbuf_steal(&b) : NULL;
}

static void note(struct smap *m, const char *key, const struct object *o,
                 void (*read)(const struct json *obj, struct strbuf *b))
{
    char *texts = texts_of(o, read);
    if (texts) {
        smap_set(m, key, texts);
    } else {
        (void) smap_remove(m, key);
    }
}

/* Avoids parsing the thousands of services without external addresses. */
static bool may_have_external(const struct object *o)
{
    return memmem(o->text->data, o->text->size, "\"externalIPs\"", 13) ||
           memmem(o->text->data, o->text->size, "\"ingress\"", 9);
}

static void note_object(struct addresses *a, const struct cache_kind *ck, const char *key,
                        const struct object *o)
{
    if (ck == a->nodes) {
        note(&a->of_nodes, key, o, read_node);
    } else if (ck == a->subnets) {
        note(&a->of_subnets, key, o, read_subnet);
    } else if (ck == a->services) {
        note(&a->of_services, key, o && may_have_external(o) ? o : NULL, read_service);
    } else if (ck == a->endpoints && streq(key, KUBERNETES)) {
        free(a->of_masters);
        a->of_masters = texts_of(o, read_endpoints);
    }
}

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    note_object(ctx, ck, ev->new ? ev->new->key : ev->old->key, ev->new);
}

static void on_loaded(void *ctx);

struct addresses *addresses_new(struct cache *c, const struct node_rules *rules)
{
    struct addresses *a = NEW(struct addresses);
    if (rules) {
        a->rules = *rules;
    }
    a->nodes = cache_find(c, api_kind_find("", "v1", "nodes"));
    a->subnets = cache_find(c, api_kind_find(NETWORK_GROUP, "v1", "hostsubnets"));
    a->services = cache_find(c, api_kind_find("", "v1", "services"));
    a->endpoints = cache_find(c, api_kind_find("", "v1", "endpoints"));
    smap_init(&a->of_nodes, free);
    smap_init(&a->of_subnets, free);
    smap_init(&a->of_services, free);
    a->subscriber = (struct cache_subscriber){
        .rank = CACHE_RANK_ADMISSION, .ctx = a, .changed = on_changed, .loaded = on_loaded};
    cache_subscribe(c, &a->subscriber);
    return a;
}

struct addresses *addresses_free(struct addresses *a)
{
    if (a) {
        cache_unsubscribe(&a->subscriber);
        smap_done(&a->of_nodes);
        smap_done(&a->of_subnets);
        smap_done(&a->of_services);
        free(a->of_masters);
        free(a);
    }
    return NULL;
}

static void on_loaded(void *ctx)
{
    struct addresses *a = ctx;
    const struct cache_kind *kinds[] = {a->nodes, a->subnets, a->services, a->endpoints};
    smap_clear(&a->of_nodes);
    smap_clear(&a->of_subnets);
    smap_clear(&a->of_services);
    free(TAKE(a->of_masters));
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct object *o;
        struct keyset_pos pos = {0};
        if (kinds[i]) {
            pos = keyset_seek(&kinds[i]->objects, "");
        }
        while (kinds[i] && (o = keyset_next(&kinds[i]->objects, &pos))) {
            note_object(a, kinds[i], o->key, o);
        }
    }
}

/* ---- addresses of a Node ---- */

/* Returns the name of an object other than 'self' (may be NULL) with the address, 'first': as its
 * first one; NULL: there is none. */
static const char *owner_in(const struct smap *m, const char *self, const char *ip, bool first)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, m) {
        if (!streq_null(self, se->key) && (first ? begins_with : has_text)(se->value, ip)) {
            return se->key;
        }
    }
    return NULL;
}

/* 'main': the address is the one by which the node is known.  A further one may be listed by two
 * nodes for a while, when it moves between them; the subnet controller publishes it for one. */
static int check_owners(const struct addresses *a, const char *node, const char *ip, bool main,
                        struct err *e)
{
    const struct {
        const char *kind, *name;
    } owners[] = {{"Node", owner_in(&a->of_nodes, node, ip, !main)},
                  {"HostSubnet", owner_in(&a->of_subnets, node, ip, false)},
                  {"Service", owner_in(&a->of_services, NULL, ip, false)}};
    for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
        if (owners[i].name) {
            return err_set(e, -EADDRNOTAVAIL, "%s is an address of %s %s", ip, owners[i].kind,
                           owners[i].name);
        }
    }
    return 0;
}

static int check_six(const char *text, struct err *e)
{
    struct in6_addr ip;
    bool good = inet_pton(AF_INET6, text, &ip) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&ip) &&
                !IN6_IS_ADDR_LOOPBACK(&ip) && !IN6_IS_ADDR_LINKLOCAL(&ip) &&
                !IN6_IS_ADDR_MULTICAST(&ip);
    return good ? 0
                : err_set(e, -EADDRNOTAVAIL,
                          "%s is not an address at which other hosts reach a node", text);
}

/* Checks the rules of the configuration, with the masters that the Endpoints "kubernetes" list. */
static int check_rules(const struct addresses *a, const char *node, const char *text, uint32_t ip,
                       struct err *e)
{
    struct node_rules rules = a->rules;
    if (has_text(a->of_masters, text) && rules.masters.n < ADDRESS_MAX_RANGES) {
        rules.masters.list[rules.masters.n++] = (struct ip4_prefix){ip, 32};
    }
    return node_address_check(&rules, node, ip, e);
}

static int check_node_address(const struct addresses *a, const char *node, const char *address,
                              bool main, struct err *e)
{
    char text[INET6_ADDRSTRLEN];
    uint32_t ip;
    if (!normalize(address, text, &ip)) {
        return 0; /* A host name, whose form validation checks. */
    }
    int r = strchr(text, ':') ? check_six(text, e) : check_rules(a, node, text, ip, e);
    return r < 0 ? r : check_owners(a, node, text, main, e);
}

int addresses_check_use(const struct addresses *a, const char *name, const char *address,
                        struct err *e)
{
    uint32_t ip;
    if (ip4_parse(address, &ip) < 0) {
        return err_set(e, -EADDRNOTAVAIL, "%.64s is not an IPv4 address", address);
    }
    int r = host_address_check(ip, e);
    return r < 0 ? r : check_node_address(a, name, address, true, e);
}

static bool had_address(const struct json *old, const char *address)
{
    const struct json *item;
    JSON_FOREACH (item, json_path(old, "status", "addresses", NULL)) {
        if (streq_null(json_path_string(item, "address", NULL), address)) {
            return true;
        }
    }
    return false;
}

/* Whether the address stands at or before the first one of type InternalIP. */
static bool is_main(const struct json *old, const char *address)
{
    const struct json *item;
    JSON_FOREACH (item, json_path(old, "status", "addresses", NULL)) {
        if (streq_null(json_path_string(item, "address", NULL), address)) {
            return true;
        }
        if (streq_null(json_path_string(item, "type", NULL), "InternalIP")) {
            return false;
        }
    }
    return false;
}

int addresses_admit_node(struct request *q, const char *node, const struct json *obj,
                         const struct json *old, struct outcome *outcome)
{
    const struct json *list = json_path(obj, "status", "addresses", NULL);
    struct err e = {0};
    if (json_count(list) > ADDRESS_MAX_OF_NODE &&
        json_count(list) > json_count(json_path(old, "status", "addresses", NULL))) {
        err_set(&e, -E2BIG, "a node has at most %d addresses", ADDRESS_MAX_OF_NODE);
        return admission_refuse_field(q, obj, "status.addresses", e.text, outcome);
    }
    bool main = true; /* Up to the first of type InternalIP, which is the node's own. */
    for (size_t i = 0; i < json_count(list); i++) {
        const char *address = json_path_string(json_at(list, i), "address", NULL);
        const char *type = json_path_string(json_at(list, i), "type", NULL);
        if (address && !(had_address(old, address) && (!main || is_main(old, address))) &&
            check_node_address(q->server->addresses, node, address, main, &e) < 0) {
            return admission_refuse_field(q, obj, API_FIELD("status.addresses[%zu].address", i),
                                          e.text, outcome);
        }
        main = main && !streq_null(type, "InternalIP");
    }
    return 0;
}

/* ---- addresses of a Pod ---- */

/* The context in which a pod's new addresses are checked. */
struct pod_check {
    const struct addresses *a;
    const char *node;
    struct pod_site site;
};

static int check_own(const struct pod_check *c, const char *text, uint32_t ip, struct err *e)
{
    if (strchr(text, ':') ? has_text(smap_get(&c->a->of_nodes, c->node), text)
                          : c->site.host_ip && ip == c->site.host_ip) {
        return 0;
    }
    return err_set(e, -EADDRNOTAVAIL, "%s is not the address of node %s%s", text, c->node,
                   c->site.host_ip ? "" : ", which has no HostSubnet yet");
}

static int check_given(const struct pod_check *c, const char *text, uint32_t ip, struct err *e)
{
    if (c->site.host_network) {
        return check_own(c, text, ip, e);
    }
    if (strchr(text, ':')) {
        return err_set(e, -EADDRNOTAVAIL, "%s: the pod network gives out IPv4 addresses only",
                       text);
    }
    return pod_address_check(&c->site, &c->a->rules.foreign, ip, e);
}

/* Calls 'check' for a field whose value has changed. */
static int check_field(struct request *q, const struct pod_check *c, const struct json *obj,
                       const char *field, const struct json *v, const struct json *before,
                       int (*check)(const struct pod_check *c, const char *text, uint32_t ip,
                                    struct err *e),
                       struct outcome *outcome)
{
    char text[INET6_ADDRSTRLEN];
    uint32_t ip;
    struct err e = {0};
    if ((before && v && json_equal(v, before)) || !json_string_size(v) ||
        !normalize(json_get_string(v), text, &ip)) {
        return 0; /* Validation refuses malformed text. */
    }
    return check(c, text, ip, &e) < 0 ? admission_refuse_field(q, obj, field, e.text, outcome) : 0;
}

int addresses_of_pod(const struct addresses *a, const struct json *pod, uint32_t *ret,
                     struct err *e)
{
    const char *phase = json_path_string(pod, "status", "phase", NULL);
    const char *text = json_path_string(pod, "status", "podIP", NULL);
    const char *node = json_path_string(pod, "spec", "nodeName", NULL);
    const struct object *o = a->subnets && node ? keyset_get(&a->subnets->objects, node) : NULL;
    CLEANUP(json_free) struct json *host_subnet = o ? object_parse(o) : NULL;
    struct pod_site site;
    uint32_t ip;
    if (streq_null(phase, "Succeeded") || streq_null(phase, "Failed")) {
        /* Another pod may have its address by now. */
        return err_set(e, -EADDRNOTAVAIL, "it has ended");
    }
    if (!text || !*text) {
        return err_set(e, -EADDRNOTAVAIL, "it has no address yet");
    }
    pod_site_read(pod, host_subnet, &site);
    if (site.host_network) {
        return err_set(e, -EADDRNOTAVAIL, "it has the network of its node, not an own address");
    }
    if (ip4_parse(text, &ip) < 0) {
        return err_set(e, -EADDRNOTAVAIL, "%.64s is not an IPv4 address", text);
    }
    int r = host_address_check(ip, e);
    r = r < 0 ? r : pod_address_check(&site, &a->rules.foreign, ip, e);
    if (r == 0 &&
        (has_text(a->of_masters, IP4_TEXT(ip)) || address_ranges_contain(&a->rules.masters, ip))) {
        r = err_set(e, -EADDRNOTAVAIL, "%s is an address of a master", IP4_TEXT(ip));
    }
    r = r < 0 ? r : check_owners(a, NULL, IP4_TEXT(ip), true, e);
    if (r == 0) {
        *ret = ip;
    }
    return r;
}

int addresses_admit_pod(struct request *q, const char *node, const struct json *obj,
                        const struct json *old, struct outcome *outcome)
{
    static const struct {
        const char *one, *all;
        int (*check)(const struct pod_check *c, const char *text, uint32_t ip, struct err *e);
    } fields[] = {{"podIP", "podIPs", check_given}, {"hostIP", "hostIPs", check_own}};
    const struct addresses *a = q->server->addresses;
    const struct json *status = json_get(obj, "status"), *before = json_get(old, "status");
    const struct object *o = a->subnets ? keyset_get(&a->subnets->objects, node) : NULL;
    CLEANUP(json_free) struct json *host_subnet = o ? object_parse(o) : NULL;
    struct pod_check c = {.a = a, .node = node};
    if (!a->subnets) {
        return 0; /* Without the network's own kinds HostSubnets are unchecked custom resources. */
    }
    pod_site_read(obj, host_subnet, &c.site);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const struct json *list = json_get(status, fields[i].all);
        int r = check_field(q, &c, obj, API_FIELD("status.%s", fields[i].one),
                            json_get(status, fields[i].one), json_get(before, fields[i].one),
                            fields[i].check, outcome);
        for (size_t k = 0; r == 0 && k < json_count(list); k++) {
            r = check_field(q, &c, obj, API_FIELD("status.%s[%zu].ip", fields[i].all, k),
                            json_get(json_at(list, k), "ip"),
                            json_get(json_at(json_get(before, fields[i].all), k), "ip"),
                            fields[i].check, outcome);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}
