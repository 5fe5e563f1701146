/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/subnets.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controllers/network/subnet_plan.h"

LOG_MODULE("subnets");

#define CONFLICT_DELAY_MS 500

/* The state of one name, in addition to the objects in the informers. */
struct entry {
    struct list waiting; /* In the controller's 'waiting', or unlinked. */
    bool has_mark;       /* 'mark' is the subnet of the HostSubnet in the informer. */
    bool blind;          /* The HostSubnet's subnet cannot be read, and may be any. */
    bool has_grant;      /* 'grant' was allocated, and its HostSubnet has not been seen yet. */
    struct ip4_prefix mark, grant;
    bool condition_checked; /* The work under way has checked the Node's condition. */
    struct said trouble;    /* The reported reason why the node has no subnet. */
    struct said conflict;   /* The reported conflict with another HostSubnet. */
    char *host_ip;          /* hostIP of its HostSubnet, stored or being written; NULL: none. */
    char *refused_ip;       /* Address refused because another entry has it; NULL: none. */
    char name[];
};

struct subnets {
    struct netconf conf;
    struct node_rules rules;
    struct recorder *recorder;
    struct workqueue *queue;
    struct informer *nodes, *hostsubnets;
    struct subnet_alloc *alloc;
    struct smap entries;
    struct smap owners;  /* hostIP to the entry that owns it. */
    size_t n_blind;      /* Number of blind entries; while it is not 0, no subnet is allocated. */
    struct list waiting; /* Entries for which no subnet was free, oldest first. */
    struct loop_timer *conflict_timer;
    bool started;
    struct log_limit limit;
};

/* ---- entries ---- */

static struct entry *entry_get(struct subnets *s, const char *name)
{
    struct entry *en = smap_get(&s->entries, name);
    if (!en) {
        size_t size = strlen(name) + 1;
        en = xcalloc(1, sizeof(*en) + size);
        memcpy(en->name, name, size);
        list_init(&en->waiting);
        smap_set(&s->entries, name, en);
    }
    return en;
}

static void entry_free(void *p)
{
    struct entry *en = p;
    if (en) {
        list_remove(&en->waiting);
        said_done(&en->trouble);
        said_done(&en->conflict);
        free(en->host_ip);
        free(en->refused_ip);
        free(en);
    }
}

/* ---- the addresses of nodes ---- */

/* Queues the nodes to which this address was refused. */
static void wake_refused(struct subnets *s, const char *ip)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &s->entries) {
        struct entry *en = se->value;
        if (streq_null(en->refused_ip, ip)) {
            free(TAKE(en->refused_ip));
            workqueue_add(s->queue, en->name);
        }
    }
}

static void give_up_host_ip(struct subnets *s, struct entry *en)
{
    CLEANUP_FREE char *ip = TAKE(en->host_ip);
    if (ip && smap_get(&s->owners, ip) == en) {
        (void) smap_remove(&s->owners, ip);
        wake_refused(s, ip);
    }
}

/* Records the hostIP of the entry's HostSubnet.  If two HostSubnets have one
 * hostIP already, the first one is the owner. */
static void take_host_ip(struct subnets *s, struct entry *en, const char *ip)
{
    if (!streq_null(en->host_ip, ip)) {
        give_up_host_ip(s, en);
        en->host_ip = xstrdup(ip);
        if (!smap_get(&s->owners, ip)) {
            smap_set(&s->owners, ip, en);
        }
    }
}

static const char *owner_of(const struct subnets *s, const struct json *node)
{
    const char *ip = node_internal_ip(node);
    const struct entry *en = ip ? smap_get(&s->owners, ip) : NULL;
    return en ? en->name : NULL;
}

/* Queues as many nodes that wait for a subnet as there are free subnets. */
static void wake_waiting(struct subnets *s)
{
    if (list_is_empty(&s->waiting)) {
        return;
    }
    uint64_t n = subnet_alloc_free_slots(s->alloc);
    struct entry *en;
    LIST_FOREACH (en, struct entry, waiting, &s->waiting) {
        if (n-- == 0) {
            break;
        }
        list_remove(&en->waiting);
        workqueue_add(s->queue, en->name);
    }
}

static void release(struct subnets *s, bool *has, struct ip4_prefix p)
{
    if (*has) {
        *has = false;
        (void) subnet_alloc_release(s->alloc, p);
        wake_waiting(s);
    }
}

/* ---- conditions and events on Nodes ---- */

static void put_status(struct work *w, const struct json *node, work_answer_fn *then)
{
    CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, obj_name(node), "status");
    work_request(w, "PUT", path, node, then);
}

/* Reports each reason and message once, until the problem is over. */
static void report(struct subnets *s, struct entry *en, const struct json *node, const char *reason,
                   const char *message)
{
    CLEANUP_FREE char *text = xasprintf("%s: %s", reason, message);
    if (said_is_news(&en->trouble, text)) {
        log_limited(&s->limit, LOG_WARN, "node has no usable subnet",
                    "node=%s reason=%s message=\"%s\"", en->name, reason, message);
        recorder_event(s->recorder, "v1", "Node", node, EVENT_WARNING, reason, message);
    }
}

static void condition_set(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "set the node's condition", text);
    } else {
        work_done(w);
    }
}

/* The node stays without network: reports that in the Node's condition,
 * unless it is there already, and ends the work. */
static void refuse(struct subnets *s, struct work *w, struct entry *en, const struct json *node,
                   const char *reason, const char *message)
{
    CLEANUP(json_free)
    struct json *o = subnet_plan_condition(node, reason, message, time_wall_ms());
    if (o) {
        report(s, en, node, reason, message);
        put_status(w, o, condition_set);
    } else {
        work_done(w);
    }
}

/* ---- carrying out plans ---- */

static void reconcile(void *ctx, struct work *w, const char *key);

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0) {
        work_retry(w, error, "write the host subnet", text);
    } else {
        work_done(w);
    }
}

static void created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct subnets *s = ctx;
    struct entry *en = entry_get(s, work_key(w));
    if (error == 0) {
        log_info("host subnet created", "node=%s subnet=%s", en->name, PREFIX_TEXT(en->grant));
        work_done(w);
        return;
    }
    /* After these errors nothing was written.  After any other error the same subnet is tried
     * again, because it may have been written. */
    if (error == -EINVAL || error == -EACCES || error == -EPERM) {
        const struct json *node = informer_get(s->nodes, en->name);
        if (node) {
            report(s, en, node, REASON_REFUSED, text);
        }
        release(s, &en->has_grant, en->grant);
    }
    work_retry(w, error, "create the host subnet", text);
}

static void deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct subnets *s = ctx;
    struct entry *en = entry_get(s, work_key(w));
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "delete the host subnet", text);
        return;
    }
    /* The HostSubnet is deleted, or never existed. */
    release(s, &en->has_grant, en->grant);
    work_done(w);
}

static void delete_hostsubnet(struct work *w, const char *name, const struct json *hs)
{
    CLEANUP_FREE char *path = api_path(NETWORK_API_VERSION, "hostsubnets", NULL, name, NULL);
    CLEANUP(json_free) struct json *options = NULL;
    if (hs) {
        options = json_object();
        json_set_string(options, "kind", "DeleteOptions");
        json_set_string(options, "apiVersion", "v1");
        json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(hs));
    }
    work_request(w, "DELETE", path, options, deleted);
}

/* Allocates a subnet for the entry, or keeps the one that it has; false: none
 * is free, or none can be proved to be free. */
static bool grant(struct subnets *s, struct entry *en)
{
    if (!en->has_grant && !s->n_blind) {
        en->has_grant = subnet_alloc_allocate(s->alloc, &en->grant) == 0;
    }
    if (en->has_grant) {
        list_remove(&en->waiting);
    }
    return en->has_grant;
}

/* The name of a HostSubnet whose subnet cannot be read. */
static const char *blind_name(const struct subnets *s)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &s->entries) {
        if (((struct entry *) se->value)->blind) {
            return se->key;
        }
    }
    return "";
}

static char *no_subnet_message(const struct subnets *s)
{
    return s->n_blind
               ? xasprintf(
                     "no subnet is given out: that of HostSubnet %s cannot be read and may be any: "
                     "correct or delete it",
                     blind_name(s))
               : xasprintf(
                     "no subnet is free in the cluster network: all %llu are taken; add a range "
                     "to clusterNetworks or delete nodes",
                     (unsigned long long) subnet_alloc_slots(s->alloc));
}

static void no_subnet(struct subnets *s, struct work *w, struct entry *en, const struct json *node,
                      const struct json *hs)
{
    if (list_is_empty(&en->waiting)) {
        list_push_back(&s->waiting, &en->waiting);
    }
    CLEANUP_FREE char *message = no_subnet_message(s);
    if (node) {
        refuse(s, w, en, node, REASON_NO_SUBNET, message);
        return;
    }
    recorder_event(s->recorder, NETWORK_API_VERSION, "HostSubnet", hs, EVENT_WARNING,
                   REASON_NO_SUBNET, message);
    work_done(w);
}

static void condition_cleared(void *ctx, struct work *w, int error, const char *text,
                              struct json *obj)
{
    struct subnets *s = ctx;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "clear the node's condition", text);
        return;
    }
    entry_get(s, work_key(w))->condition_checked = true;
    reconcile(s, w, work_key(w));
}

/* Removes a condition that reports a missing network, before the HostSubnet is
 * written, so that a client that sees the HostSubnet no longer sees the condition.
 * Returns true if a request for that is under way. */
static bool clear_condition(struct work *w, struct entry *en, const struct json *node)
{
    (void) said_is_news(&en->trouble, NULL);
    CLEANUP(json_free) struct json *o = NULL;
    if (!en->condition_checked) {
        o = subnet_plan_condition(node, NULL, NULL, time_wall_ms());
    }
    if (o) {
        put_status(w, o, condition_cleared);
    }
    return o != NULL;
}

static void write_hostsubnet(struct work *w, const char *name, struct json *o)
{
    CLEANUP_FREE char *path = api_path(NETWORK_API_VERSION, "hostsubnets", NULL, name, NULL);
    work_request(w, "PUT", path, o, written);
    json_free(o);
}

static void create_hostsubnet(struct subnets *s, struct work *w, struct entry *en,
                              const struct json *node, const struct subnet_plan *plan)
{
    if (!grant(s, en)) {
        no_subnet(s, w, en, node, NULL);
        return;
    }
    take_host_ip(s, en, plan->host_ip);
    if (clear_condition(w, en, node)) {
        return;
    }
    CLEANUP_FREE char *path = api_path(NETWORK_API_VERSION, "hostsubnets", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *o = subnet_plan_create(en->name, plan, en->grant);
    work_request(w, "POST", path, o, created);
}

/* There is neither a Node nor a HostSubnet; a subnet that was allocated
 * may have been written nevertheless. */
static void clean_up(struct subnets *s, struct work *w, struct entry *en)
{
    if (en->has_grant) {
        delete_hostsubnet(w, en->name, NULL);
        return;
    }
    give_up_host_ip(s, en);
    smap_remove(&s->entries, work_key(w));
    work_done(w);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct subnets *s = ctx;
    entry_get(s, key)->condition_checked = false;
    reconcile(s, w, key);
}

/* Remembers the address, so that the node is queued when the owner of the address gives it up. */
static void note_refused_ip(struct entry *en, const struct subnet_plan *plan, const char *owner)
{
    bool taken = plan->step == SUBNET_REFUSE && owner && !streq(owner, en->name);
    free(TAKE(en->refused_ip));
    en->refused_ip = taken ? xstrdup(plan->host_ip) : NULL;
}

/* ---- further addresses ---- */

struct claims {
    const char *name;
    struct sdn_addresses *addresses; /* The addresses of the Node of this name. */
};

static void drop_claimed(struct sdn_addresses *a, const char *text)
{
    uint32_t ip;
    for (size_t i = 0; text && ip4_parse(text, &ip) == 0 && i < a->n;) {
        if (a->ip[i] == ip) {
            memmove(&a->ip[i], &a->ip[i + 1], (a->n - i - 1) * sizeof a->ip[0]);
            a->n--;
        } else {
            i++;
        }
    }
}

/* The first node that has an address keeps it. */
static void drop_addresses_of(void *ctx, const char *key, const struct json *obj)
{
    struct claims *c = ctx;
    if (streq(key, c->name)) {
        return;
    }
    drop_claimed(c->addresses, json_path_string(obj, "hostIP", NULL));
    const char *others = obj_annotation(obj, SDN_NODE_ADDRESSES);
    CLEANUP_FREE char *copy = xstrdup(others ? others : "");
    char *save = NULL;
    for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        drop_claimed(c->addresses, item);
    }
}

static void find_addresses(const struct subnets *s, const char *name, const struct json *node,
                           struct sdn_addresses *ret)
{
    struct claims c = {name, ret};
    *ret = (struct sdn_addresses){0};
    if (node) {
        subnet_plan_addresses(&s->rules, node, ret);
    }
    if (ret->n) {
        informer_each(s->hostsubnets, drop_addresses_of, &c);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct subnets *s = ctx;
    const struct json *node = informer_get(s->nodes, key);
    const struct json *hs = informer_get(s->hostsubnets, key);
    struct entry *en = entry_get(s, key);
    CLEANUP(subnet_plan_done) struct subnet_plan plan = {0};
    struct sdn_addresses addresses;
    if (node && obj_is_terminating(node)) {
        node = NULL;
    }
    find_addresses(s, key, node, &addresses);
    struct subnet_rules rules = {&s->conf, &s->rules, node ? owner_of(s, node) : NULL, &addresses};
    subnet_plan_make(&rules, node, hs, &plan);
    note_refused_ip(en, &plan, rules.owner);
    if (plan.step != SUBNET_CREATE && plan.step != SUBNET_ASSIGN) {
        /* The entry does not wait any more; if it was woken for a free subnet,
         * the next one can have it. */
        list_remove(&en->waiting);
        wake_waiting(s);
    }
    switch (plan.step) {
    case SUBNET_NONE:
        clean_up(s, w, en);
        return;
    case SUBNET_KEEP:
        if (!node || !clear_condition(w, en, node)) {
            work_done(w);
        }
        return;
    case SUBNET_REFUSE:
        refuse(s, w, en, node, plan.reason, plan.message);
        return;
    case SUBNET_CREATE:
        create_hostsubnet(s, w, en, node, &plan);
        return;
    case SUBNET_ASSIGN:
        if (grant(s, en)) {
            write_hostsubnet(w, key, subnet_plan_assign(hs, en->grant));
        } else {
            no_subnet(s, w, en, NULL, hs);
        }
        return;
    case SUBNET_UPDATE:
        log_info("host subnet follows its node", "node=%s hostIP=%s addresses=%s", key,
                 plan.host_ip, plan.addresses ? plan.addresses : "");
        take_host_ip(s, en, plan.host_ip);
        write_hostsubnet(w, key, subnet_plan_update(hs, &plan));
        return;
    case SUBNET_DELETE:
        log_info("host subnet deleted", "node=%s reason=\"%s\"", key,
                 plan.reason ? plan.message : "its node was deleted or replaced");
        if (plan.reason) {
            report(s, en, node, plan.reason, plan.message);
        }
        delete_hostsubnet(w, key, hs);
        return;
    }
}

/* ---- conflicts between HostSubnets ---- */

struct object_list {
    const struct json **list;
    size_t n, cap;
};

static void collect(void *ctx, const char *key, const struct json *obj)
{
    struct object_list *l = ctx;
    l->list = grow(l->list, &l->cap, l->n + 1, sizeof(*l->list));
    l->list[l->n++] = obj;
}

/* Reports each pair once; the allocator avoids both subnets in any case. */
static void check_conflicts(void *ctx)
{
    struct subnets *s = ctx;
    struct object_list all = {0};
    informer_each(s->hostsubnets, collect, &all);
    struct subnet_conflict *list = NULL;
    size_t n = subnet_conflicts(all.list, all.n, &list);
    for (size_t i = 0; i < n; i++) {
        const struct json *a = list[i].a, *b = list[i].b;
        const char *field = streq(list[i].reason, "DuplicateHostIP") ? "hostIP" : "subnet";
        CLEANUP_FREE char *message =
            xasprintf("%s %s of HostSubnet %s %s %s of HostSubnet %s: delete one of them", field,
                      json_path_string(b, field, NULL), obj_name(b),
                      streq(field, "subnet") ? "overlaps" : "is the same as",
                      json_path_string(a, field, NULL), obj_name(a));
        struct entry *en = entry_get(s, obj_name(b));
        if (said_is_news(&en->conflict, message)) {
            log_warn("host subnets conflict", "reason=%s message=\"%s\"", list[i].reason, message);
            recorder_event(s->recorder, NETWORK_API_VERSION, "HostSubnet", b, EVENT_WARNING,
                           list[i].reason, message);
        }
    }
    free(list);
    free(all.list);
}

/* ---- informers ---- */

/* Objects that exist when the controllers start are queued in a special order; see queue_all. */
static void queue(struct subnets *s, const char *key)
{
    if (s->started) {
        workqueue_add(s->queue, key);
    }
}

static void node_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    queue(ctx, key);
}

static void node_deleted(void *ctx, const char *key, const struct json *obj)
{
    queue(ctx, key);
}

static void check_conflicts_soon(struct subnets *s)
{
    if (s->started && !loop_timer_armed(s->conflict_timer)) {
        loop_timer_arm(s->conflict_timer, CONFLICT_DELAY_MS);
    }
}

static void set_blind(struct subnets *s, struct entry *en, bool blind)
{
    if (blind && !en->blind) {
        log_error("the subnet of a HostSubnet cannot be read: none is given out", "hostsubnet=%s",
                  en->name);
    }
    s->n_blind += (size_t) blind - (size_t) en->blind;
    en->blind = blind;
    if (!s->n_blind) {
        wake_waiting(s);
    }
}

static void hostsubnet_changed(void *ctx, const char *key, const struct json *old,
                               const struct json *obj)
{
    struct subnets *s = ctx;
    struct entry *en = entry_get(s, key);
    struct ip4_prefix p;
    bool has = hostsubnet_prefix(obj, &p) == 0;
    const char *ip = json_path_string(obj, "hostIP", NULL);
    take_host_ip(s, en, ip ? ip : "");
    set_blind(s, en, !has && !obj_annotation(obj, ANNOTATION_ASSIGN_SUBNET));
    if (has) {
        subnet_alloc_mark(s->alloc, p);
    }
    /* Allocation begins only now, so that no node gets a subnet that is in use already. */
    if (!en->blind) {
        release(s, &en->has_mark, en->mark);
    }
    if (has) {
        release(s, &en->has_grant, en->grant);
        en->mark = p;
        en->has_mark = true;
    }
    check_conflicts_soon(s);
    queue(s, key);
}

/* Whether the deleted HostSubnet 'obj' belongs to the existing Node.  Then an administrator deleted
 * it by hand, and the node gets the same subnet again, because its pods have addresses of it. */
static bool belongs_to_node(const struct subnets *s, const char *key, const struct json *obj)
{
    const struct json *node = informer_get(s->nodes, key);
    return node && !obj_is_terminating(node) &&
           streq_null(obj_annotation(obj, ANNOTATION_NODE_UID), obj_uid(node));
}

static void hostsubnet_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct subnets *s = ctx;
    struct entry *en = entry_get(s, key);
    set_blind(s, en, false);
    if (en->has_mark && !en->has_grant && belongs_to_node(s, key, obj) &&
        netconf_has_prefix(&s->conf, en->mark)) {
        (void) subnet_alloc_release(s->alloc, en->mark);
        en->has_mark = false;
        if (!subnet_alloc_overlaps(s->alloc, en->mark)) { /* Otherwise deleting it was right. */
            subnet_alloc_mark(s->alloc, en->mark);
            en->grant = en->mark;
            en->has_grant = true;
        } else {
            wake_waiting(s);
        }
    }
    release(s, &en->has_mark, en->mark);
    give_up_host_ip(s, en);
    (void) said_is_news(&en->conflict, NULL);
    check_conflicts_soon(s);
    queue(s, key);
}

struct newest {
    const char *created;
    struct ip4_prefix subnet;
};

/* Finds the HostSubnet that was made most recently for a Node: allocation continues behind it. */
static void find_newest(void *ctx, const char *key, const struct json *obj)
{
    struct newest *newest = ctx;
    const char *created = json_path_string(obj, "metadata", "creationTimestamp", NULL);
    struct ip4_prefix p;
    if (!created || !obj_annotation(obj, ANNOTATION_NODE_UID) || hostsubnet_prefix(obj, &p) < 0) {
        return;
    }
    int r = newest->created ? strcmp(created, newest->created) : 1;
    if (r > 0 || (r == 0 && p.addr > newest->subnet.addr)) {
        *newest = (struct newest){created, p};
    }
}

static int by_age(const void *x, const void *y)
{
    const struct json *a = *(const struct json *const *) x, *b = *(const struct json *const *) y;
    const char *made_a = json_path_string(a, "metadata", "creationTimestamp", NULL);
    const char *made_b = json_path_string(b, "metadata", "creationTimestamp", NULL);
    int r = strcmp(made_a ? made_a : "", made_b ? made_b : "");
    return r ? r : strcmp(obj_name(a), obj_name(b));
}

/* Queues the oldest Node first: nodes that were created while no controller ran get
 * their subnets in the order of registration. */
static void queue_all(struct subnets *s, const struct informer *i)
{
    struct object_list all = {0};
    informer_each(i, collect, &all);
    if (all.n > 0) {
        qsort(all.list, all.n, sizeof(*all.list), by_age);
    }
    for (size_t k = 0; k < all.n; k++) {
        workqueue_add(s->queue, obj_name(all.list[k]));
    }
    free(all.list);
}

static void synced(void *state)
{
    struct subnets *s = state;
    struct newest newest = {0};
    informer_each(s->hostsubnets, find_newest, &newest);
    if (newest.created) {
        subnet_alloc_seek(s->alloc, newest.subnet);
    }
    s->started = true;
    check_conflicts_soon(s);
    queue_all(s, s->hostsubnets);
    queue_all(s, s->nodes);
    log_info("synced", "nodes=%zu hostsubnets=%zu free=%llu", informer_count(s->nodes),
             informer_count(s->hostsubnets),
             (unsigned long long) subnet_alloc_free_slots(s->alloc));
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    const struct subnets_config *cfg = config;
    struct subnet_alloc *alloc = NULL;
    int r = subnet_alloc_new(cfg->network.ranges, cfg->network.n_ranges, &alloc, e);
    if (r < 0) {
        return r;
    }
    struct subnets *s = NEW(struct subnets);
    s->conf = cfg->network;
    if (cfg->addresses) {
        s->rules = *cfg->addresses;
    } else {
        netconf_node_rules(&s->conf, &s->rules);
    }
    s->alloc = alloc;
    s->recorder = env->recorder;
    s->queue = env->queue;
    list_init(&s->waiting);
    smap_init(&s->entries, entry_free);
    smap_init(&s->owners, NULL);
    s->conflict_timer = loop_timer_new(env->loop, check_conflicts, s);
    return *ret = s, 0;
}

static void stop(void *state)
{
    struct subnets *s = state;
    loop_timer_free(s->conflict_timer);
    smap_done(&s->owners);
    smap_done(&s->entries);
    subnet_alloc_free(s->alloc);
    free(s);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "nodes",
     .informer = CONTROLLER_INFORMER(struct subnets, nodes),
     .changed = node_changed,
     .deleted = node_deleted},
    {.api_version = NETWORK_API_VERSION,
     .plural = "hostsubnets",
     .informer = CONTROLLER_INFORMER(struct subnets, hostsubnets),
     .changed = hostsubnet_changed,
     .deleted = hostsubnet_deleted},
};

const struct controller subnets_controller = {
    .name = "subnets",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 32,
    .start = start,
    .synced = synced,
    .reconcile = begin,
    .stop = stop,
};
