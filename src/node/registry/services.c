/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registry/services.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "controller/recorder.h"
#include "sdn/service_target.h"

#include <stdio.h>
#include <string.h>

LOG_MODULE("services");

#define HELD_A_SERVICE 16 /* Most packets held for a service. */
#define HELD_IN_ALL 1024  /* Most packets held for all services. */
#define HOLD_MS 120000    /* A packet is dropped after so long. */
#define LOOK_MS 5000      /* Interval in which packets that waited too long are found. */

/* A packet of a pod to an idle service. */
struct held_packet {
    struct list link;
    uint64_t since_ms;
    uint32_t port; /* Number of the pod's port in the datapath. */
    size_t size;
    uint8_t frame[];
};

/* A service without endpoints that waits for pods. */
struct idle {
    struct list link;
    uint64_t asked_ms; /* Time of the last Event NeedPods; 0: none yet. */
    struct list frames;
    size_t n;
    char *namespace, *name;
};

struct services {
    struct loop *loop;
    struct services_watch *watch;
    struct recorder *recorder;
    const struct services_ops *ops;
    void *ctx;
    struct datapath *datapath; /* NULL: nothing is sent to a datapath. */
    struct datapath_services source;
    bool compares_vnids;
    bool synced;
    struct sdn_service **host_ports; /* Sorted by address. */
    size_t n_host_ports;
    struct list idle;
    size_t n_held;
    struct loop_timer *look;
    /* Counters since the start, and the last count of services and endpoints. */
    struct services_stats stats;
    bool counted; /* The services and endpoints of 'stats' are up to date. */
};

/* ---- idle services ---- */

static bool is_waiting(const struct sdn_service *s)
{
    bool waits = false;
    for (size_t i = 0; s && s->cluster_ip && i < s->n_ports; i++) {
        waits |= sdn_service_waits(s, &s->ports[i]);
    }
    return waits;
}

static struct idle *find_idle(const struct services *s, const struct sdn_service *service)
{
    struct idle *i;
    LIST_FOREACH (i, struct idle, link, &s->idle) {
        if (streq(i->name, service->name) && streq(i->namespace, service->namespace)) {
            return i;
        }
    }
    return NULL;
}

static void held_packet_free(struct services *s, struct idle *i, struct held_packet *h)
{
    list_remove(&h->link);
    i->n--;
    s->n_held--;
    free(h);
}

static void idle_free(struct services *s, struct idle *i)
{
    struct held_packet *h;
    LIST_FOREACH (h, struct held_packet, link, &i->frames) {
        held_packet_free(s, i, h);
    }
    list_remove(&i->link);
    free(i->namespace);
    free(i->name);
    free(i);
}

/* Sends packets that waited for a port with endpoints now; called after the flows of the endpoints
 * are installed. */
static void release(struct services *s, struct idle *i, const struct sdn_service *now)
{
    struct held_packet *h;
    LIST_FOREACH (h, struct held_packet, link, &i->frames) {
        struct service_target t;
        const struct sdn_service_port *p =
            service_target_parse(h->frame, h->size, &t) == 0 ? service_target_port(now, &t) : NULL;
        if (p && sdn_service_waits(now, p)) {
            continue;
        }
        if (s->datapath) {
            datapath_release(s->datapath, h->port, h->frame, h->size);
            s->stats.sent++;
        }
        held_packet_free(s, i, h);
    }
}

static void update_idle(struct services *s, const struct sdn_service *old,
                        const struct sdn_service *now)
{
    struct idle *i = old ? find_idle(s, old) : NULL;
    bool waits = is_waiting(now);
    if (i && now) {
        release(s, i, now);
    }
    if (i && !waits) {
        s->stats.lost += i->n;
        idle_free(s, i);
    } else if (!i && waits) {
        i = NEW(struct idle);
        i->namespace = xstrdup(now->namespace);
        i->name = xstrdup(now->name);
        list_init(&i->frames);
        list_push_back(&s->idle, &i->link);
    }
}

static void on_look(void *ctx)
{
    struct services *s = ctx;
    uint64_t now = loop_now_ms(s->loop);
    struct idle *i;
    struct held_packet *h;
    LIST_FOREACH (i, struct idle, link, &s->idle) {
        LIST_FOREACH (h, struct held_packet, link, &i->frames) {
            if (now - h->since_ms >= HOLD_MS) {
                held_packet_free(s, i, h);
                s->stats.lost++;
            }
        }
    }
    if (s->n_held) {
        loop_timer_arm(s->look, LOOK_MS);
    }
}

static void ask_for_pods(struct services *s, struct idle *i, const struct sdn_service_port *p)
{
    uint64_t now = loop_now_ms(s->loop);
    if (i->asked_ms && now - i->asked_ms < HOLD_MS) {
        return;
    }
    i->asked_ms = now;
    s->stats.pods_asked++;
    char number[8];
    snprintf(number, sizeof number, "%u", p->port);
    CLEANUP_FREE char *text = xasprintf("The service-port %s/%s:%s needs pods.", i->namespace,
                                        i->name, p->name ? p->name : number);
    CLEANUP(json_free) struct json *about = json_object();
    struct json *metadata = json_ensure_object(about, "metadata");
    json_set_string(metadata, "name", i->name);
    json_set_string(metadata, "namespace", i->namespace);
    recorder_event(s->recorder, "v1", "Service", about, EVENT_NORMAL, "NeedPods", text);
    log_info("an idle service needs pods", "service=%s/%s", i->namespace, i->name);
}

void services_want_pods(struct services *s, const char *ns, const char *name, uint8_t protocol,
                        uint16_t port)
{
    const struct sdn_service *service = services_watch_get(s->watch, ns, name);
    struct idle *i = service ? find_idle(s, service) : NULL;
    for (size_t k = 0; i && k < service->n_ports; k++) {
        if (service->ports[k].protocol == protocol && service->ports[k].port == port) {
            ask_for_pods(s, i, &service->ports[k]);
            return;
        }
    }
}

/* When there are too many, the oldest is dropped: its sender has likely sent it again. */
static void keep(struct services *s, struct idle *i, uint32_t port, const uint8_t *frame,
                 size_t size)
{
    if (i->n >= HELD_A_SERVICE) {
        held_packet_free(s, i, CONTAINER_OF(i->frames.next, struct held_packet, link));
        s->stats.lost++;
    }
    if (s->n_held >= HELD_IN_ALL) {
        s->stats.lost++;
        return;
    }
    struct held_packet *h = xmalloc(sizeof *h + size);
    h->since_ms = loop_now_ms(s->loop);
    h->port = port;
    h->size = size;
    memcpy(h->frame, frame, size);
    list_push_back(&i->frames, &h->link);
    i->n++;
    s->n_held++;
    if (!loop_timer_armed(s->look)) {
        loop_timer_arm(s->look, LOOK_MS);
    }
}

void services_hold(struct services *s, uint32_t port, const uint8_t *frame, size_t size)
{
    struct service_target t;
    struct idle *i;
    if (!s->datapath || service_target_parse(frame, size, &t) < 0) {
        return;
    }
    LIST_FOREACH (i, struct idle, link, &s->idle) {
        const struct sdn_service *service = services_watch_get(s->watch, i->namespace, i->name);
        const struct sdn_service_port *p = service ? service_target_port(service, &t) : NULL;
        if (p && sdn_service_waits(service, p)) {
            keep(s, i, port, frame, size);
            ask_for_pods(s, i, p);
            return;
        }
    }
    /* The agent received endpoints after the switch sent this packet. */
    datapath_release(s->datapath, port, frame, size);
}

/* ---- the datapath ---- */

/* The service in the form that the datapath serves. */
static struct sdn_project_service with_vnids(const struct services *s, const struct sdn_service *v)
{
    struct sdn_vnids vnids = {.id = SDN_VNID_NOBODY};
    struct err e = {0};
    if (v->host_ports) {
        vnids.id = SDN_VNID_GLOBAL;
    } else if (s->compares_vnids) {
        s->ops->vnids(s->ctx, v->namespace, &vnids, &e);
    }
    return (struct sdn_project_service){v, vnids.id, vnids.moving, vnids.also};
}

static void replace(struct services *s, const struct sdn_service *old,
                    const struct sdn_service *now)
{
    s->counted = false;
    if (s->datapath) {
        struct sdn_project_service with = {0};
        if (now) {
            with = with_vnids(s, now);
        }
        datapath_change_service(s->datapath, old, now ? &with : NULL);
    }
}

/* Sends all services again, because the network or VNIDs changed. */
static void repeat(void *ctx, const struct sdn_service *v)
{
    replace(ctx, v, v);
}

static void settle(struct services *s)
{
    if (s->datapath && s->synced) {
        datapath_settle_services(s->datapath, &s->source);
    }
}

static void changed(void *ctx, const struct sdn_service *old, const struct sdn_service *now)
{
    struct services *s = ctx;
    replace(s, old, now);
    update_idle(s, old, now);
}

static void settled(void *ctx)
{
    settle(ctx);
}

static void synced(void *ctx)
{
    struct services *s = ctx;
    s->synced = true;
    s->ops->synced(s->ctx);
}

void services_begin(struct services *s, struct datapath *dp, const struct sdn_network *n)
{
    s->datapath = dp;
    s->compares_vnids = sdn_plugin_compares_vnids(n->plugin);
    services_watch_each(s->watch, repeat, s);
    for (size_t i = 0; i < s->n_host_ports; i++) {
        repeat(s, s->host_ports[i]);
    }
    settle(s);
}

static void free_host_ports(struct services *s)
{
    for (size_t i = 0; i < s->n_host_ports; i++) {
        sdn_service_free(s->host_ports[i]);
    }
    free(s->host_ports);
}

void services_set_host_ports(struct services *s, struct sdn_service **list, size_t n)
{
    size_t i = 0, k = 0;
    bool other = false;
    while (i < s->n_host_ports || k < n) {
        struct sdn_service *old = i < s->n_host_ports ? s->host_ports[i] : NULL;
        struct sdn_service *now = k < n ? list[k] : NULL;
        if (old && now && old->cluster_ip != now->cluster_ip) {
            if (old->cluster_ip < now->cluster_ip) {
                now = NULL;
            } else {
                old = NULL;
            }
        }
        i += old != NULL;
        k += now != NULL;
        if (!old || !now || !sdn_service_equal(old, now)) {
            replace(s, old, now);
            other = true;
        }
    }
    free_host_ports(s);
    s->host_ports = list;
    s->n_host_ports = n;
    if (other) {
        settle(s);
    }
}

struct of_project {
    struct services *services;
    const char *name;
};

static void repeat_of_project(void *ctx, const struct sdn_service *v)
{
    const struct of_project *p = ctx;
    if (!p->name || streq(v->namespace, p->name)) {
        repeat(p->services, v);
    }
}

void services_project_changed(struct services *s, const char *project)
{
    if (s->datapath && s->compares_vnids) {
        struct of_project p = {s, project};
        services_watch_each(s->watch, repeat_of_project, &p);
        settle(s);
    }
}

/* ---- the whole ---- */

struct listing {
    const struct services *services;
    struct sdn_project_service *list;
    size_t n;
};

static void list_one(void *ctx, const struct sdn_service *v)
{
    struct listing *l = ctx;
    l->list[l->n++] = with_vnids(l->services, v);
}

size_t services_list(const struct services *s, struct sdn_project_service **ret)
{
    struct listing l = {.services = s};
    l.list = xcalloc(services_watch_count(s->watch) + s->n_host_ports + 1, sizeof *l.list);
    services_watch_each(s->watch, list_one, &l);
    for (size_t i = 0; i < s->n_host_ports; i++) {
        list_one(&l, s->host_ports[i]);
    }
    *ret = l.list;
    return l.n;
}

static size_t list_all(void *ctx, struct sdn_project_service **ret)
{
    return services_list(ctx, ret);
}

struct services *services_new(struct loop *l, struct services_watch *watch,
                              struct api_client *client, const char *node_name,
                              const struct services_ops *ops, void *ctx)
{
    static const struct services_listener listener = {
        .changed = changed, .settled = settled, .synced = synced};
    struct services *s = NEW(struct services);
    s->loop = l;
    s->watch = watch;
    s->ops = ops;
    s->ctx = ctx;
    list_init(&s->idle);
    s->look = loop_timer_new(l, on_look, s);
    s->source = (struct datapath_services){.list = list_all, .ctx = s};
    CLEANUP_FREE char *component = xasprintf("tenet-node, %s", node_name);
    s->recorder = recorder_new(l, client, component);
    services_watch_add(watch, &listener, s);
    return s;
}

struct services *services_free(struct services *s)
{
    if (!s) {
        return NULL;
    }
    services_watch_remove(s->watch, s);
    struct idle *i;
    LIST_FOREACH (i, struct idle, link, &s->idle) {
        idle_free(s, i);
    }
    free_host_ports(s);
    loop_timer_free(s->look);
    recorder_free(s->recorder);
    free(s);
    return NULL;
}

bool services_synced(const struct services *s)
{
    return s->synced;
}

/* Counts distinct addresses and ports that serve; there are tens of thousands of services. */
struct counting {
    uint64_t *list;
    size_t n, cap, services;
};

static void count_service(void *ctx, const struct sdn_service *v)
{
    struct counting *c = ctx;
    c->services += v->cluster_ip != 0;
    for (size_t i = 0; v->cluster_ip && i < v->n_ports; i++) {
        const struct sdn_service_port *p = &v->ports[i];
        c->list = grow(c->list, &c->cap, c->n + p->n_backends, sizeof *c->list);
        for (size_t k = 0; k < p->n_backends; k++) {
            c->list[c->n++] = (uint64_t) p->backends[k].endpoint->ip << 16 | p->backends[k].port;
        }
    }
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return (x > y) - (x < y);
}

static void count(struct services *s)
{
    struct counting c = {0};
    services_watch_each(s->watch, count_service, &c);
    if (c.n) {
        qsort(c.list, c.n, sizeof *c.list, compare_u64);
    }
    s->stats.services = c.services;
    s->stats.endpoints = 0;
    for (size_t i = 0; i < c.n; i++) {
        s->stats.endpoints += i == 0 || c.list[i] != c.list[i - 1];
    }
    s->counted = true;
    free(c.list);
}

void services_get_stats(struct services *s, struct services_stats *ret)
{
    if (!s->counted) {
        count(s);
    }
    *ret = s->stats;
    ret->connected = services_watch_connected(s->watch);
    ret->idle = list_size(&s->idle);
    ret->held = s->n_held;
}
