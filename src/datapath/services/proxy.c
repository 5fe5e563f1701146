/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/services/proxy.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "datapath/services/health.h"
#include "datapath/services/stale.h"

#include <malloc.h>
#include <stdio.h>

LOG_MODULE("proxy");

#define RETRY_MS 1000
#define LOOK_MS 50            /* Delay after a change by other software: changes come in groups. */
#define LOOK_AGAIN_MS 500     /* Maximum delay, as some changes never end. */
#define LARGE_BATCH (1 << 20) /* A larger batch buffer is freed. */

struct claim {
    struct claim *next; /* The next claim of the same frontend, in order of the services' keys. */
    struct service *service;
    struct entry *entry;
    struct sdn_frontend *frontend;
};

/* One allocation: there may be very many. */
struct service {
    struct hmap_node node;
    size_t n;
    struct claim claims[]; /* Then "namespace/name". */
};

/* A frontend's key with its claims. Freed when it has no claim and is not in the kernel. */
struct entry {
    struct hmap_node node;
    struct list changed; /* Linked while 'programmed' differs from the desired state. */
    struct sdn_frontend_key key;
    int port, programmed_port; /* The port of the userspace proxy. */
    bool by_proxy;             /* The userspace proxy knows the frontend. */
    struct claim *claims;      /* The first claim has the frontend. */
    /* The frontend in the kernel, or in the running job; NULL: none. */
    struct sdn_frontend *programmed;
};

struct chain {
    struct hmap_node node;
    struct list touched;
    struct services_chain chain;
    size_t refs; /* Number of 'programmed' frontends. */
    bool there;
};

enum job { IDLE, CHECK, CHANGE, REWRITE };

struct host_proxy {
    struct host_proxy_config cfg;
    struct userspace *userspace; /* Created in that mode, or with the first idle service. */
    struct service_health *health;
    struct services_base base;
    bool have_network, synced;
    bool known;    /* The kernel's table equals 'programmed'. */
    bool base_old; /* Except for its fixed part, which changed while a job was running. */
    bool look;     /* Other software may have changed it. */
    bool touched;  /* The last check found a change by other software. */
    struct hmap services, entries, chains;
    struct list changed;
    struct loop_timer *timer;
    uint64_t last_check_ms;
    uint64_t seen;       /* Changes of services. */
    struct said failure; /* The failure that was logged. */
    struct host_proxy_stats stats;

    /* Used by the worker while 'job' is not IDLE. */
    enum job job;
    struct nft *nft;
    struct nft_batch before, batch; /* Two transactions, one after the other. */
    bool has_before;
    struct services_digest digest;
    struct stale_list stale, stale_clients;
    size_t forgotten;
    struct err forget_error; /* A failure that does not require a new transaction. */
    uint64_t job_seen, began_ns;
    int result;
    struct err error;
};

static void step(struct host_proxy *p);

/* ---- desired state ---- */

static const struct sdn_frontend *wanted(const struct entry *en)
{
    return en->claims ? en->claims->frontend : NULL;
}

static bool is_programmed(const struct entry *en)
{
    const struct sdn_frontend *f = wanted(en);
    if (!f || !en->programmed) {
        return !f && !en->programmed;
    }
    return en->port == en->programmed_port && sdn_frontend_equal(f, en->programmed);
}

static struct entry *find_entry(struct host_proxy *p, const struct sdn_frontend_key *key)
{
    struct entry *en;
    HMAP_FOREACH_WITH_HASH (en, struct entry, node, sdn_frontend_key_hash(key), &p->entries) {
        if (sdn_frontend_key_equal(&en->key, key)) {
            return en;
        }
    }
    return NULL;
}

static size_t targets_of(const struct sdn_frontend *f)
{
    return f ? f->n[SDN_FROM_ANYWHERE] + f->n[SDN_FROM_OUTSIDE] : 0;
}

static const char *key_of(const struct service *s)
{
    return (const char *) (s->claims + s->n);
}

static void entry_free(struct host_proxy *p, struct entry *en)
{
    if (p->userspace) {
        userspace_remove(p->userspace, &en->key);
    }
    hmap_remove(&p->entries, &en->node);
    list_remove(&en->changed);
    p->stats.targets -= targets_of(en->programmed);
    sdn_frontend_unref(en->programmed);
    p->stats.node_ports -= en->key.ip == 0;
    free(en);
}

static void on_need_pods(void *ctx, const struct sdn_frontend *f)
{
    struct host_proxy *p = ctx;
    const struct entry *en = find_entry(p, &f->key);
    if (en && en->claims) {
        const char *key = key_of(en->claims->service);
        CLEANUP_FREE char *ns = xstrndup(key, strcspn(key, "/"));
        p->cfg.need_pods(p->cfg.ctx, ns, key + strlen(ns) + 1, f->key.protocol, f->service_port);
    }
}

static bool on_may_leave(void *ctx, const struct sdn_frontend *f, uint32_t ip)
{
    struct host_proxy *p = ctx;
    const struct entry *en = find_entry(p, &f->key);
    if (!p->cfg.may_leave || !en || !en->claims) {
        return true;
    }
    const char *key = key_of(en->claims->service);
    CLEANUP_FREE char *ns = xstrndup(key, strcspn(key, "/"));
    return p->cfg.may_leave(p->cfg.ctx, ns, ip);
}

static int open_userspace(struct host_proxy *p, struct err *e)
{
    int r = p->userspace ? 0 : userspace_new(p->cfg.loop, on_need_pods, p, &p->userspace, e);
    if (r == 0) {
        userspace_set_filter(p->userspace, on_may_leave);
        userspace_set_cluster(p->userspace, p->base.cluster, p->base.n_cluster);
    }
    return r;
}

/* Sets the port that clients are sent to when nftables alone does not suffice. */
static void set_port(struct host_proxy *p, struct entry *en)
{
    struct sdn_frontend *f = en->claims->frontend;
    bool always = p->cfg.mode == SERVICES_USERSPACE;
    struct err e = {0};
    if (f->idle && open_userspace(p, &e) < 0) {
        static struct log_limit limit;
        log_limited(&limit, LOG_WARN, "an idle service cannot be waited for", "error=\"%s\"",
                    e.text);
    }
    en->by_proxy = en->by_proxy || always || (f->idle && p->userspace);
    int port = en->by_proxy ? userspace_set(p->userspace, f) : SERVICES_TRANSLATED;
    if (en->by_proxy && !always && !f->idle && f->key.protocol == SDN_UDP) {
        userspace_remove(p->userspace, &f->key); /* It has no pending connections. */
        en->by_proxy = false;
    }
    /* When the service is no longer idle, pending connections continue by the proxy, and new
     * ones bypass it. */
    en->port = always || f->idle ? port : SERVICES_TRANSLATED;
}

/* The owner or the content has changed. */
static void mark(struct host_proxy *p, struct entry *en)
{
    if (wanted(en)) {
        set_port(p, en);
    }
    if (list_is_empty(&en->changed)) {
        list_push_back(&p->changed, &en->changed);
    }
}

static void claim(struct host_proxy *p, struct service *s, struct claim *c, struct sdn_frontend *f)
{
    struct entry *en = find_entry(p, &f->key);
    if (!en) {
        en = NEW(struct entry);
        en->key = f->key;
        en->port = en->programmed_port = SERVICES_TRANSLATED;
        list_init(&en->changed);
        hmap_insert(&p->entries, &en->node, sdn_frontend_key_hash(&f->key));
        p->stats.node_ports += f->key.ip == 0;
    }
    *c = (struct claim){.service = s, .entry = en, .frontend = f};
    struct claim **at = &en->claims;
    while (*at && strcmp(key_of((*at)->service), key_of(s)) < 0) {
        at = &(*at)->next;
    }
    if (en->claims) {
        p->stats.conflicts++;
        static struct log_limit limit;
        log_limited(&limit, LOG_WARN,
                    "two services claim one address and port; the first by name has it",
                    "address=%s port=%u services=%s,%s", IP4_TEXT(f->key.ip), f->key.port,
                    key_of(en->claims->service), key_of(s));
    }
    c->next = *at;
    *at = c;
    mark(p, en);
}

static void release(struct host_proxy *p, struct claim *c)
{
    struct entry *en = c->entry;
    struct claim **at = &en->claims;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    p->stats.conflicts -= en->claims != NULL;
    mark(p, en);
    sdn_frontend_unref(c->frontend);
}

static struct service *find_service(struct host_proxy *p, const char *key)
{
    struct service *s;
    HMAP_FOREACH_WITH_HASH (s, struct service, node, hash_string(key), &p->services) {
        if (streq(key_of(s), key)) {
            return s;
        }
    }
    return NULL;
}

static void service_free(struct host_proxy *p, struct service *s)
{
    for (size_t i = 0; i < s->n; i++) {
        release(p, &s->claims[i]);
    }
    hmap_remove(&p->services, &s->node);
    free(s);
}

/* Updates the health check for local endpoints; 'now' NULL: the service is removed. */
static void tell_health(struct host_proxy *p, const struct sdn_service *any,
                        const struct sdn_service *now)
{
    size_t most = 0;
    for (size_t i = 0; now && now->health_port && i < now->n_ports; i++) {
        CLEANUP_FREE const struct sdn_backend **list = NULL;
        size_t n = sdn_service_choose(now, &now->ports[i], p->cfg.node_name, &list);
        most = MAX(most, n);
    }
    service_health_set(p->health, any->namespace, any->name, now ? now->health_port : 0, most);
}

void host_proxy_service_changed(struct host_proxy *p, const struct sdn_service *old,
                                const struct sdn_service *now)
{
    const struct sdn_service *any = now ? now : old;
    CLEANUP_FREE char *key = xasprintf("%s/%s", any->namespace, any->name);
    struct service *s = find_service(p, key);
    CLEANUP_FREE struct sdn_frontend **list = NULL;
    size_t n = now ? sdn_frontends_of(now, p->cfg.node_name, &list) : 0;
    p->seen++;
    tell_health(p, any, now);
    if (s) {
        service_free(p, s);
    }
    if (n) {
        size_t size = strlen(key) + 1;
        s = xcalloc(1, sizeof *s + n * sizeof s->claims[0] + size);
        s->n = n;
        memcpy(s->claims + n, key, size);
        hmap_insert(&p->services, &s->node, hash_string(key));
        for (size_t i = 0; i < n; i++) {
            claim(p, s, &s->claims[i], list[i]);
        }
    }
}

/* Keeps only those marked entries that really differ. */
static void prune(struct host_proxy *p)
{
    struct entry *en;
    LIST_FOREACH (en, struct entry, changed, &p->changed) {
        if (!is_programmed(en)) {
            continue;
        }
        if (!en->claims) {
            entry_free(p, en);
        } else {
            list_remove(&en->changed);
        }
    }
}

/* ---- chains ---- */

static struct chain *get_chain(struct host_proxy *p, const struct services_chain *want)
{
    char name[SERVICES_CHAIN_SIZE], other[SERVICES_CHAIN_SIZE];
    services_chain_name(want, name);
    uint32_t hash = hash_string(name);
    struct chain *c;
    HMAP_FOREACH_WITH_HASH (c, struct chain, node, hash, &p->chains) {
        services_chain_name(&c->chain, other);
        if (streq(name, other)) {
            return c;
        }
    }
    c = NEW(struct chain);
    c->chain = *want;
    list_init(&c->touched);
    hmap_insert(&p->chains, &c->node, hash);
    return c;
}

static void chain_free(struct host_proxy *p, struct chain *c)
{
    hmap_remove(&p->chains, &c->node);
    list_remove(&c->touched);
    free(c);
}

static void count_chains(struct host_proxy *p, const struct sdn_frontend *f, int port, int by,
                         struct list *touched)
{
    struct services_chain want[SERVICES_MAX_CHAINS];
    size_t n = f ? services_chains_of(f, port, want) : 0;
    for (size_t i = 0; i < n; i++) {
        struct chain *c = get_chain(p, &want[i]);
        c->refs += (size_t) by;
        list_remove(&c->touched);
        list_push_back(touched, &c->touched);
    }
}

/* In a transaction before that of the elements which refer to them: a packet during the change
 * may find new elements, but sees the old chains. An empty chain would let it continue
 * untranslated. */
static void create_chains(struct host_proxy *p, struct list *touched)
{
    struct chain *c;
    nft_batch_begin(&p->before, SERVICES_TABLE);
    LIST_FOREACH (c, struct chain, touched, touched) {
        if (c->refs && !c->there) {
            c->there = p->has_before = true;
            services_chain_create(&p->before, &c->chain, NULL);
        }
    }
    nft_batch_end(&p->before);
}

static void delete_chains(struct host_proxy *p, struct list *touched)
{
    struct chain *c;
    LIST_FOREACH (c, struct chain, touched, touched) {
        list_remove(&c->touched);
        if (!c->refs) {
            if (c->there) {
                char name[SERVICES_CHAIN_SIZE];
                services_chain_name(&c->chain, name);
                nft_delete_chain(&p->batch, name);
            }
            chain_free(p, c);
        }
    }
}

/* Counts the chains that all frontends need. */
static void count_all_chains(struct host_proxy *p)
{
    struct list touched;
    struct chain *c;
    struct entry *en;
    list_init(&touched);
    HMAP_FOREACH (c, struct chain, node, &p->chains) {
        c->refs = 0;
    }
    HMAP_FOREACH (en, struct entry, node, &p->entries) {
        count_chains(p, wanted(en), en->port, 1, &touched);
    }
    HMAP_FOREACH (c, struct chain, node, &p->chains) {
        list_remove(&c->touched);
        c->there = true;
        if (!c->refs) {
            chain_free(p, c);
        }
    }
}

/* ---- transactions ---- */

struct elements {
    struct services_element *list;
    size_t n, cap;
};

static void collect(void *ctx, const struct services_element *el)
{
    struct elements *c = ctx;
    c->list = grow(c->list, &c->cap, c->n + 1, sizeof *c->list);
    c->list[c->n++] = *el;
}

/* By set first. */
static int compare_elements(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct services_element));
}

static void sort(struct elements *c)
{
    if (c->n > 1) {
        qsort(c->list, c->n, sizeof *c->list, compare_elements);
    }
}

/* Removes the elements that are in both. */
static void drop_common(struct elements *a, struct elements *b)
{
    size_t i = 0, k = 0, n = 0, m = 0;
    while (i < a->n || k < b->n) {
        int r = i == a->n ? 1 : k == b->n ? -1 : compare_elements(&a->list[i], &b->list[k]);
        if (r < 0) {
            a->list[n++] = a->list[i++];
        } else if (r > 0) {
            b->list[m++] = b->list[k++];
        } else {
            i++;
            k++;
        }
    }
    a->n = n;
    b->n = m;
}

static void put_elements(struct nft_batch *b, const struct elements *c, bool add)
{
    for (size_t i = 0; i < c->n;) {
        uint8_t set = c->list[i].set;
        nft_elements_begin(b, services_sets[set], add);
        for (; i < c->n && c->list[i].set == set; i++) {
            services_element_put(b, &c->list[i]);
        }
        nft_elements_end(b);
    }
}

static void program(struct host_proxy *p, struct entry *en, bool known)
{
    struct sdn_frontend *now = en->claims ? sdn_frontend_ref(en->claims->frontend) : NULL;
    if (en->key.protocol == SDN_UDP) {
        stale_add(&p->stale, &en->key, en->port, now, en->programmed, known);
    }
    if (known && en->programmed && en->programmed->affinity_s) {
        stale_add(&p->stale_clients, &en->key, en->port, now, NULL, false);
    }
    p->stats.targets += targets_of(now) - targets_of(en->programmed);
    sdn_frontend_unref(en->programmed);
    en->programmed = now;
    en->programmed_port = en->port;
    list_remove(&en->changed);
}

/* Builds the batch for the difference between the kernel's and the desired state. */
static void build_change(struct host_proxy *p)
{
    struct elements old = {0}, now = {0};
    struct list touched;
    struct entry *en;
    list_init(&touched);
    LIST_FOREACH (en, struct entry, changed, &p->changed) {
        if (en->programmed) {
            services_elements(en->programmed, en->programmed_port, SERVICES_ALL_SETS, collect,
                              &old);
        }
        if (wanted(en)) {
            services_elements(wanted(en), en->port, SERVICES_ALL_SETS, collect, &now);
        }
        count_chains(p, wanted(en), en->port, 1, &touched);
        count_chains(p, en->programmed, en->programmed_port, -1, &touched);
        program(p, en, true);
        if (!en->claims) {
            entry_free(p, en);
        }
    }
    sort(&old);
    sort(&now);
    drop_common(&old, &now);
    create_chains(p, &touched);
    nft_batch_begin(&p->batch, SERVICES_TABLE);
    put_elements(&p->batch, &old, false);
    put_elements(&p->batch, &now, true);
    delete_chains(p, &touched);
    nft_batch_end(&p->batch);
    free(old.list);
    free(now.list);
}

static void put_element(void *ctx, const struct services_element *el)
{
    services_element_put(ctx, el);
}

/* Builds a batch that replaces the whole table, whatever the kernel has. */
static void build_rewrite(struct host_proxy *p)
{
    struct entry *en;
    struct chain *c;
    nft_batch_begin(&p->batch, SERVICES_TABLE);
    services_table_create(&p->batch, &p->base, NULL);
    count_all_chains(p);
    HMAP_FOREACH (c, struct chain, node, &p->chains) {
        services_chain_create(&p->batch, &c->chain, NULL);
    }
    for (unsigned set = 0; set < SERVICES_N_SETS; set++) {
        nft_elements_begin(&p->batch, services_sets[set], true);
        HMAP_FOREACH (en, struct entry, node, &p->entries) {
            if (wanted(en)) {
                services_elements(wanted(en), en->port, 1u << set, put_element, &p->batch);
            }
        }
        nft_elements_end(&p->batch);
    }
    nft_batch_end(&p->batch);
    HMAP_FOREACH (en, struct entry, node, &p->entries) {
        program(p, en, false);
        if (!en->claims) {
            entry_free(p, en);
        }
    }
}

static void digest_element(void *ctx, const struct services_element *el)
{
    services_element_digest(ctx, el);
}

/* Digest of the desired table, for comparison with the kernel's. */
static struct services_digest make_digest(struct host_proxy *p)
{
    struct services_digest d = {0};
    struct nft_batch scratch = {0};
    struct entry *en;
    struct chain *c;
    nft_batch_begin(&scratch, SERVICES_TABLE);
    services_table_create(&scratch, &p->base, &d);
    if (!p->known) {
        count_all_chains(p);
    }
    HMAP_FOREACH (c, struct chain, node, &p->chains) {
        services_chain_create(&scratch, &c->chain, &d);
    }
    HMAP_FOREACH (en, struct entry, node, &p->entries) {
        const struct sdn_frontend *f = p->known ? en->programmed : wanted(en);
        if (f) {
            services_elements(f, p->known ? en->programmed_port : en->port, SERVICES_ALL_SETS,
                              digest_element, &d);
        }
    }
    nft_batch_done(&scratch);
    return d;
}

/* ---- jobs ---- */

static void work(void *ctx)
{
    struct host_proxy *p = ctx;
    if (p->job == CHECK) {
        p->result = services_table_read(p->nft, &p->digest, &p->error);
        return;
    }
    p->result = p->has_before ? nft_send(p->nft, &p->before, &p->error) : 0;
    p->result = p->result < 0 ? p->result : nft_send(p->nft, &p->batch, &p->error);
    p->forgotten = 0;
    if (p->result == 0) {
        stale_forget(&p->stale, &p->forgotten, &p->forget_error);
        stale_forget_clients(&p->stale_clients, p->nft, &p->forget_error);
    }
}

static void report_failure(struct host_proxy *p)
{
    p->stats.failures++;
    if (said_is_news(&p->failure, p->error.text)) {
        log_error("the services' nftables table cannot be brought up to date", "error=\"%s\"",
                  p->error.text);
    }
    p->cfg.on_result(p->cfg.ctx, p->result, p->error.text, false);
}

static void report_success(struct host_proxy *p, bool restored)
{
    if (p->failure.text) {
        log_info("services are as they should be", "");
        said_done(&p->failure);
    }
    p->stats.restored += restored;
    if (restored) {
        log_warn("another program changed the services' nftables table: restored",
                 "table=" SERVICES_TABLE);
    }
    p->cfg.on_result(p->cfg.ctx, 0, "", restored);
}

/* Evaluates a check: the table is known if the digests are equal. */
static void checked(struct host_proxy *p)
{
    struct services_digest want = make_digest(p);
    bool same = p->result == 0 && services_digest_equal(&p->digest, &want);
    p->stats.checks++;
    p->touched = p->known && !same;
    if (!same || p->known) {
        p->known = same;
        return; /* If necessary, the next step rebuilds it. */
    }
    struct entry *en;
    HMAP_FOREACH (en, struct entry, node, &p->entries) {
        program(p, en, true);
        if (!en->claims) {
            entry_free(p, en);
        }
    }
    stale_clear(&p->stale); /* The process was not interrupted. */
    stale_clear(&p->stale_clients);
    p->known = true;
    log_info("services are as they should be", "services=%zu frontends=%zu", p->services.n,
             p->entries.n);
    report_success(p, false);
}

static void done(void *ctx)
{
    struct host_proxy *p = ctx;
    enum job job = p->job;
    uint64_t took = time_mono_ns() - p->began_ns;
    p->job = IDLE;
    if (job == CHECK) {
        p->last_check_ms = loop_now_ms(p->cfg.loop);
        if (p->result < 0 && p->result != -ENOENT) {
            report_failure(p);
            loop_timer_arm(p->timer, RETRY_MS);
            return;
        }
        checked(p);
        step(p);
        return;
    }
    stale_clear(&p->stale);
    stale_clear(&p->stale_clients);
    if (p->batch.cap > LARGE_BATCH) {
        nft_batch_done(&p->batch);
        malloc_trim(0);
    }
    prom_histogram_add(&p->stats.duration, took);
    if (p->result < 0) {
        p->known = false;
        p->look = true;
        report_failure(p);
        loop_timer_arm(p->timer, job == CHANGE ? 0 : RETRY_MS);
        return;
    }
    if (p->forget_error.text[0]) {
        log_warn("clients of a service may reach a removed endpoint until their entries expire",
                 "error=\"%s\"", p->forget_error.text);
    }
    p->stats.syncs++;
    p->stats.rewrites += job == REWRITE;
    p->stats.forgotten += p->forgotten;
    p->stats.generation = p->job_seen;
    if (job == REWRITE) {
        p->known = !p->base_old;
        log_info("services programmed", "services=%zu frontends=%zu", p->services.n, p->entries.n);
    }
    report_success(p, job == REWRITE && p->touched);
    step(p);
}

static void start(struct host_proxy *p, enum job job)
{
    p->job = job;
    p->job_seen = p->seen;
    p->base_old = p->has_before = false;
    p->began_ns = time_mono_ns();
    err_clear(&p->error);
    err_clear(&p->forget_error);
    if (job == CHANGE) {
        build_change(p);
    } else if (job == REWRITE) {
        build_rewrite(p);
    }
    loop_work(p->cfg.loop, work, done, p);
}

/* Begins the next job, if none is running. */
static void step(struct host_proxy *p)
{
    if (p->job != IDLE || !p->synced || !p->have_network || loop_timer_armed(p->timer)) {
        return;
    }
    prune(p);
    if (p->look) {
        p->look = false;
        start(p, CHECK);
    } else if (!p->known) {
        start(p, REWRITE);
    } else if (!list_is_empty(&p->changed)) {
        start(p, CHANGE);
    } else {
        p->stats.generation = p->seen;
    }
}

static void on_timer(void *ctx)
{
    step(ctx);
}

void host_proxy_settled(struct host_proxy *p)
{
    step(p);
}

void host_proxy_synced(struct host_proxy *p)
{
    p->synced = true;
    step(p);
}

void host_proxy_changed(struct host_proxy *p)
{
    p->look = true;
    if (p->job == IDLE && !loop_timer_armed(p->timer)) {
        uint64_t since = loop_now_ms(p->cfg.loop) - p->last_check_ms;
        loop_timer_arm(p->timer,
                       since < LOOK_AGAIN_MS ? MAX(LOOK_MS, LOOK_AGAIN_MS - since) : LOOK_MS);
    }
}

void host_proxy_set_network(struct host_proxy *p, const struct sdn_network *n)
{
    struct services_base base = {
        .mode = p->cfg.mode,
        .n_cluster = n->n_cluster,
        .service = n->service,
        .tunnel_port = n->vxlan_port,
    };
    memcpy(base.cluster, n->cluster, n->n_cluster * sizeof n->cluster[0]);
    if (p->userspace) {
        userspace_set_tunnel_port(p->userspace, n->vxlan_port);
    }
    bool same = p->have_network && base.n_cluster == p->base.n_cluster &&
                prefix_equal(base.service, p->base.service) &&
                base.tunnel_port == p->base.tunnel_port;
    for (size_t i = 0; same && i < base.n_cluster; i++) {
        same = prefix_equal(base.cluster[i], p->base.cluster[i]);
    }
    if (same) {
        return;
    }
    p->base = base;
    p->base_old = true;
    p->known = false;
    if (p->userspace) {
        userspace_set_cluster(p->userspace, base.cluster, base.n_cluster);
    }
    p->look = !p->have_network; /* An earlier agent may have left the same table. */
    p->have_network = true;
    step(p);
}

int host_proxy_new(const struct host_proxy_config *c, struct host_proxy **ret, struct err *e)
{
    struct host_proxy *p = NEW(struct host_proxy);
    p->cfg = *c;
    hmap_init(&p->services);
    hmap_init(&p->entries);
    hmap_init(&p->chains);
    list_init(&p->changed);
    p->timer = loop_timer_new(c->loop, on_timer, p);
    p->health = service_health_new(c->loop);
    int r = nft_open(&p->nft, e);
    if (r == 0 && c->mode == SERVICES_USERSPACE) {
        r = open_userspace(p, e);
    }
    if (r < 0) {
        host_proxy_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

struct host_proxy *host_proxy_free(struct host_proxy *p)
{
    if (!p) {
        return NULL;
    }
    assert(p->job == IDLE);
    struct service *s;
    HMAP_FOREACH (s, struct service, node, &p->services) {
        service_free(p, s);
    }
    struct entry *en;
    HMAP_FOREACH (en, struct entry, node, &p->entries) {
        entry_free(p, en);
    }
    struct chain *c;
    HMAP_FOREACH (c, struct chain, node, &p->chains) {
        chain_free(p, c);
    }
    hmap_done(&p->services);
    hmap_done(&p->entries);
    hmap_done(&p->chains);
    userspace_free(p->userspace);
    service_health_free(p->health);
    loop_timer_free(p->timer);
    nft_close(p->nft);
    nft_batch_done(&p->before);
    nft_batch_done(&p->batch);
    stale_clear(&p->stale);
    stale_clear(&p->stale_clients);
    said_done(&p->failure);
    free(p);
    return NULL;
}

uint32_t host_proxy_port(const struct host_proxy *p)
{
    return nft_port(p->nft);
}

bool host_proxy_busy(const struct host_proxy *p)
{
    return p->job != IDLE;
}

bool host_proxy_current(const struct host_proxy *p)
{
    return p->known && p->job == IDLE && !p->look && list_is_empty(&p->changed);
}

const struct host_proxy_stats *host_proxy_get_stats(struct host_proxy *p)
{
    p->stats.userspace = p->userspace ? userspace_get_stats(p->userspace) : NULL;
    p->stats.services = p->services.n;
    p->stats.frontends = p->entries.n;
    p->stats.waiting = list_size(&p->changed);
    return &p->stats;
}
