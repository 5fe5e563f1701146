/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/vnids.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/said.h"
#include "controller/obj.h"
#include "controllers/network/vnid_move.h"
#include "controllers/network/vnid_plan.h"
#include "sdn/vnid_alloc.h"

#include <stdio.h>

LOG_MODULE("vnids");

#define PAUSE_MS 1000 /* Far longer than a node needs to receive a change. */
#define FULL_LOOK_MS 500
/* Longer than the client oc waits, so that oc reports the missing answer itself. */
#define GIVE_UP_MS 20000

/* The state of one project, in addition to the objects in the informers. */
struct entry {
    /* The project has 'id': that of its NetNamespace, or of one that is being created. */
    bool has_id;
    bool edited;   /* Another client wrote its id. */
    bool moves;    /* It also has 'other': the id that it moves to or from. */
    bool switched; /* It moves from 'other'. */
    bool asks;     /* Its NetNamespace has a request. */
    bool blind;    /* The id of its NetNamespace cannot be read, and may be any. */
    uint32_t id;   /* Counted as one user in the allocator if it is allocatable, like 'other'. */
    uint32_t other;
    struct vnid_state seen; /* The state of its NetNamespace, without the texts. */
    uint64_t since_ms;      /* The time at which its last step was seen. */
    uint64_t refused_ms;    /* The time since which its request is refused; 0: it is not. */
    struct said no_id;      /* The reported reason why it gets no id. */
    struct said duplicate;  /* The reported project with the same id. */
};

struct vnids {
    struct loop *loop;
    struct vnids_config cfg;
    struct recorder *recorder;
    struct workqueue *queue;
    struct informer *namespaces, *netnamespaces;
    struct vnid_alloc *alloc;
    struct smap entries;
    size_t n_blind; /* Number of blind entries; while it is not 0, no id is allocated. */
};

static void entry_free(void *p)
{
    struct entry *en = p;
    said_done(&en->no_id);
    said_done(&en->duplicate);
    free(en);
}

static struct entry *entry_get(struct vnids *v, const char *name)
{
    struct entry *en = smap_get(&v->entries, name);
    if (!en) {
        en = NEW(struct entry);
        smap_set(&v->entries, name, en);
    }
    return en;
}

static void give_up_other(struct vnids *v, struct entry *en)
{
    if (en->moves) {
        (void) vnid_alloc_release(v->alloc, en->other);
        en->moves = false;
    }
}

static void give_up_ids(struct vnids *v, struct entry *en)
{
    give_up_other(v, en);
    if (en->has_id) {
        (void) vnid_alloc_release(v->alloc, en->id);
        en->has_id = false;
    }
}

/* Makes the ids of the project those of its NetNamespace, and releases others.  Ids
 * that are not allocatable need no accounting. */
static void hold(struct vnids *v, struct entry *en, const struct vnid_state *s)
{
    bool moves = s->has_next || s->has_previous;
    (void) vnid_alloc_share(v->alloc, s->id);
    if (moves) {
        (void) vnid_alloc_share(v->alloc, s->other);
    }
    give_up_ids(v, en);
    en->has_id = true;
    en->id = s->id;
    en->moves = moves;
    en->switched = s->has_previous;
    en->other = moves ? s->other : 0;
    if (!vnid_state_same_step(&en->seen, s)) {
        en->since_ms = loop_now_ms(v->loop);
    }
    en->seen = *s;
    en->seen.request = en->seen.refused = NULL;
}

/* ---- duplicates ---- */

struct search {
    const char *but;
    uint32_t vnid;
    const char *found;
};

static void find_same(void *ctx, const char *key, const struct json *obj)
{
    struct search *s = ctx;
    uint32_t vnid = 0;
    if (!streq(key, s->but) && netnamespace_vnid(obj, &vnid) == 0 && vnid == s->vnid) {
        s->found = key;
    }
}

/* Two joined projects share one id on purpose.  When another client edited an id, the owner of the
 * project is notified if the plug-in isolates projects. */
static void check_duplicate(struct vnids *v, const char *name, struct entry *en,
                            const struct json *nn)
{
    if (vnid_alloc_users(v->alloc, en->id) < 2) {
        (void) said_is_news(&en->duplicate, NULL);
        return;
    }
    struct search s = {.but = name, .vnid = en->id};
    informer_each(v->netnamespaces, find_same, &s);
    if (!s.found || !en->edited || v->cfg.fixed) {
        return;
    }
    CLEANUP_FREE char *message = xasprintf(
        "netid %u is also that of project %s: pods of both reach each other", en->id, s.found);
    if (!said_is_news(&en->duplicate, message)) {
        return;
    }
    log_warn("duplicate netid", "project=%s netid=%u other=%s", name, en->id, s.found);
    recorder_event(v->recorder, NETWORK_API_VERSION, "NetNamespace", nn, EVENT_WARNING,
                   "DuplicateNetID", message);
}

/* ---- carrying out plans ---- */

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0) {
        work_retry(w, error, "write the net namespace", text);
    } else {
        work_done(w);
    }
}

static void created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct vnids *v = ctx;
    if (error == 0) {
        log_info("net namespace created", "project=%s netid=%u", work_key(w),
                 entry_get(v, work_key(w))->id);
    }
    /* After an error the same id is tried again: it may have been written. */
    written(ctx, w, error, text, obj);
}

static void deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct vnids *v = ctx;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "delete the net namespace", text);
        return;
    }
    /* While the informer still has the object, its deletion event will release the id. */
    if (!informer_get(v->netnamespaces, work_key(w))) {
        give_up_ids(v, entry_get(v, work_key(w)));
    }
    work_done(w);
}

static void delete_netnamespace(struct work *w, const char *name)
{
    CLEANUP_FREE char *path = api_path(NETWORK_API_VERSION, "netnamespaces", NULL, name, NULL);
    work_request(w, "DELETE", path, NULL, deleted);
}

/* Allocates an id; false: none is free, or none can be proved to be free. */
static bool new_id(struct vnids *v, uint32_t *ret)
{
    return !v->n_blind && vnid_alloc_allocate(v->alloc, ret) == 0;
}

static const char *no_id_text(const struct vnids *v)
{
    return v->n_blind ? "no netid is given out: that of another NetNamespace cannot be read"
                      : "no netid is free: all are taken by other projects";
}

/* Allocates an id for the project, or keeps the one that it has; false: none is free. */
static bool take_id(struct vnids *v, const char *name, struct entry *en)
{
    if (!en->has_id) {
        en->id = SDN_VNID_GLOBAL;
        en->has_id = vnid_plan_is_global(name) || new_id(v, &en->id);
    }
    return en->has_id;
}

static void create_netnamespace(struct vnids *v, struct work *w, const char *name, struct entry *en,
                                const struct json *ns)
{
    if (!take_id(v, name, en)) {
        if (said_is_news(&en->no_id, no_id_text(v))) {
            log_warn("no netid is given", "project=%s reason=\"%s\"", name, no_id_text(v));
            recorder_event(v->recorder, "v1", "Namespace", ns, EVENT_WARNING, "NoNetIDAvailable",
                           no_id_text(v));
        }
        work_wait(w, 10000);
        return;
    }
    (void) said_is_news(&en->no_id, NULL);
    CLEANUP_FREE char *path = api_path(NETWORK_API_VERSION, "netnamespaces", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *o = vnid_plan_create(name, en->id);
    work_request(w, "POST", path, o, created);
}

static void make_global(struct work *w, const char *name, const struct json *nn)
{
    CLEANUP(json_free) struct json *o = json_clone(nn);
    json_set_int(o, "netid", SDN_VNID_GLOBAL);
    CLEANUP_FREE char *path = api_path(NETWORK_API_VERSION, "netnamespaces", NULL, name, NULL);
    work_request(w, "PUT", path, o, written);
}

/* ---- moves ---- */

static bool id_of(void *ctx, const char *project, uint32_t *ret)
{
    struct vnids *v = ctx;
    struct vnid_state s;
    const struct json *nn = informer_get(v->netnamespaces, project);
    if (!nn || vnid_state_read(nn, &s) < 0) {
        return false;
    }
    *ret = s.has_next ? s.other : s.id;
    return true;
}

static unsigned users(void *ctx, uint32_t id)
{
    struct vnids *v = ctx;
    return vnid_alloc_users(v->alloc, id);
}

/* Calls 'fn' for all projects that move or have a request. */
static void each(void *ctx, vnid_each_fn *fn, void *arg)
{
    struct vnids *v = ctx;
    struct smap_entry *it;
    SMAP_FOREACH (it, &v->entries) {
        const struct entry *en = it->value;
        const struct json *nn =
            en->moves || en->asks ? informer_get(v->netnamespaces, it->key) : NULL;
        struct vnid_state s;
        if (!nn || vnid_state_read(nn, &s) < 0) {
            continue;
        }
        if (en->moves && !s.has_next && !s.has_previous) {
            s.has_next = true; /* This step was decided, and is perhaps not written yet. */
            s.other = en->other;
        }
        s.since_ms = en->since_ms;
        if (!fn(arg, it->key, &s)) {
            return;
        }
    }
}

static void write_step(struct work *w, const char *name, const struct json *nn)
{
    CLEANUP_FREE char *path = api_path(NETWORK_API_VERSION, "netnamespaces", NULL, name, NULL);
    work_request(w, "PUT", path, nn, written);
}

/* The request cannot be fulfilled now.  It is tried again later for a limited time, so that
 * the change does not happen unexpectedly. */
static void wait_refused(struct vnids *v, struct work *w, const char *name, struct entry *en,
                         const struct json *nn, uint64_t wait_ms)
{
    uint64_t now = loop_now_ms(v->loop);
    if (!en->refused_ms) {
        en->refused_ms = now;
    }
    if (now - en->refused_ms < v->cfg.give_up_ms) {
        work_wait(w, MIN(wait_ms, v->cfg.give_up_ms));
        return;
    }
    log_info("change of network given up", "project=%s", name);
    CLEANUP(json_free) struct json *o = vnid_move_give_up(nn);
    write_step(w, name, o);
}

static void report_refused(struct vnids *v, const char *name, const struct json *nn,
                           const struct vnid_move *m)
{
    log_warn("change of network refused", "project=%s reason=\"%s\"", name, m->reason);
    recorder_event(v->recorder, NETWORK_API_VERSION, "NetNamespace", nn, EVENT_WARNING,
                   "NetworkChangeRefused", m->reason);
}

/* Allocates an id for a request that needs one of its own, and reserves it until the object
 * has it. */
static void allocate(struct vnids *v, const char *name, struct entry *en,
                     const struct vnid_state *s, const struct vnid_view *view, struct vnid_move *m)
{
    if (new_id(v, &en->other)) {
        en->moves = true;
        en->switched = false;
        vnid_move_plan(name, s, en->other, view, m);
    } else {
        snprintf(m->reason, sizeof m->reason, "%s",
                 v->n_blind ? no_id_text(v) : "no netid is free");
        m->wait_ms = FULL_LOOK_MS;
        m->step = streq_null(s->refused, m->reason) ? VNID_MOVE_WAIT : VNID_MOVE_REFUSE;
    }
}

static void begin_move(struct vnids *v, const char *name, struct entry *en,
                       const struct vnid_state *s, const struct vnid_move *m)
{
    log_info("project moves", "project=%s from=%u to=%u request=%s", name, s->id, m->to,
             s->request);
    if (en->moves && en->other != m->to) {
        give_up_other(v, en); /* The attempt before could not be written, and its target changed. */
    }
    if (!en->moves) {
        (void) vnid_alloc_share(v->alloc, m->to);
        en->moves = true;
        en->switched = false;
        en->other = m->to;
    }
    en->since_ms = loop_now_ms(v->loop);
}

/* The project has its NetNamespace: carries out a request to move to another network. */
static void move(struct vnids *v, struct work *w, const char *name, struct entry *en,
                 const struct json *nn)
{
    const struct vnid_view view = {.id_of = id_of,
                                   .users = users,
                                   .each = each,
                                   .ctx = v,
                                   .now_ms = loop_now_ms(v->loop),
                                   .pause_ms = v->cfg.pause_ms,
                                   .fixed = v->cfg.fixed};
    struct vnid_state s;
    struct vnid_move m;
    if (vnid_state_read(nn, &s) < 0) {
        work_done(w);
        return;
    }
    s.since_ms = en->since_ms;
    vnid_move_plan(name, &s, en->moves ? en->other : 0, &view, &m);
    if (m.step == VNID_MOVE_ALLOCATE) {
        allocate(v, name, en, &s, &view, &m);
    }
    if (!m.reason[0]) {
        en->refused_ms = 0;
    }
    switch (m.step) {
    case VNID_MOVE_NONE:
        check_duplicate(v, name, en, nn);
        work_done(w);
        return;
    case VNID_MOVE_WAIT:
        if (m.reason[0]) {
            wait_refused(v, w, name, en, nn, m.wait_ms);
        } else {
            work_wait(w, m.wait_ms);
        }
        return;
    case VNID_MOVE_REFUSE:
        report_refused(v, name, nn, &m);
        break;
    case VNID_MOVE_PREPARE:
        begin_move(v, name, en, &s, &m);
        break;
    case VNID_MOVE_FINISH:
        log_info("project moved", "project=%s netid=%u", name, s.id);
        break;
    default:
        break;
    }
    CLEANUP(json_free) struct json *o = vnid_move_apply(nn, &s, &m);
    write_step(w, name, o);
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct vnids *v = ctx;
    const struct json *ns = informer_get(v->namespaces, key);
    const struct json *nn = informer_get(v->netnamespaces, key);
    struct entry *en = entry_get(v, key);
    switch (vnid_plan_make(key, ns, nn)) {
    case VNID_KEEP:
        move(v, w, key, en, nn);
        return;
    case VNID_NONE:
        if (en->has_id) { /* Its NetNamespace may have been written nevertheless. */
            delete_netnamespace(w, key);
            return;
        }
        smap_remove(&v->entries, key);
        work_done(w);
        return;
    case VNID_CREATE:
        create_netnamespace(v, w, key, en, ns);
        return;
    case VNID_GLOBAL:
        make_global(w, key, nn);
        return;
    case VNID_DELETE:
        log_info("net namespace deleted", "project=%s", key);
        delete_netnamespace(w, key);
        return;
    }
}

/* ---- informers ---- */

static void set_blind(struct vnids *v, const char *name, struct entry *en, bool blind)
{
    if (blind && !en->blind) {
        log_error("the netid of a NetNamespace cannot be read: none is given out", "project=%s",
                  name);
    }
    v->n_blind += (size_t) blind - (size_t) en->blind;
    en->blind = blind;
}

static void netnamespace_changed(void *ctx, const char *key, const struct json *old,
                                 const struct json *obj)
{
    struct vnids *v = ctx;
    struct entry *en = entry_get(v, key);
    struct vnid_state s;
    set_blind(v, key, en, vnid_state_read(obj, &s) < 0);
    if (!en->blind) {
        bool expected = en->id == s.id || (en->moves && en->other == s.id);
        en->edited = old ? en->edited || !expected : en->edited;
        hold(v, en, &s);
        en->asks = s.request != NULL;
    }
    workqueue_add(v->queue, key);
}

static void netnamespace_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct vnids *v = ctx;
    set_blind(v, key, entry_get(v, key), false);
    if (!informer_get(v->namespaces, key)) {
        give_up_ids(v, entry_get(v, key));
    }
    workqueue_add(v->queue, key);
}

struct newest {
    const char *created;
    uint32_t vnid;
};

/* Finds the NetNamespace that was made most recently: allocation continues behind its id. */
static void find_newest(void *ctx, const char *key, const struct json *obj)
{
    struct newest *newest = ctx;
    const char *created = json_path_string(obj, "metadata", "creationTimestamp", NULL);
    uint32_t vnid = 0;
    if (!created || netnamespace_vnid(obj, &vnid) < 0 || vnid < SDN_VNID_MIN) {
        return;
    }
    int r = newest->created ? strcmp(created, newest->created) : 1;
    if (r > 0 || (r == 0 && vnid > newest->vnid)) {
        *newest = (struct newest){created, vnid};
    }
}

static void synced(void *state)
{
    struct vnids *v = state;
    struct newest newest = {0};
    informer_each(v->netnamespaces, find_newest, &newest);
    vnid_alloc_seek(v->alloc, newest.vnid);
    log_info("synced", "namespaces=%zu netnamespaces=%zu", informer_count(v->namespaces),
             informer_count(v->netnamespaces));
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct vnids *v = NEW(struct vnids);
    v->loop = env->loop;
    v->cfg = *(const struct vnids_config *) config;
    v->cfg.pause_ms = v->cfg.pause_ms ? v->cfg.pause_ms : PAUSE_MS;
    v->cfg.give_up_ms = v->cfg.give_up_ms ? v->cfg.give_up_ms : GIVE_UP_MS;
    v->recorder = env->recorder;
    v->queue = env->queue;
    v->alloc = vnid_alloc_new();
    smap_init(&v->entries, entry_free);
    *ret = v;
    return 0;
}

static void stop(void *state)
{
    struct vnids *v = state;
    smap_done(&v->entries);
    vnid_alloc_free(v->alloc);
    free(v);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "namespaces",
     .informer = CONTROLLER_INFORMER(struct vnids, namespaces)},
    {.api_version = NETWORK_API_VERSION,
     .plural = "netnamespaces",
     .informer = CONTROLLER_INFORMER(struct vnids, netnamespaces),
     .changed = netnamespace_changed,
     .deleted = netnamespace_deleted},
};

const struct controller vnids_controller = {
    .name = "vnids",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 32,
    .start = start,
    .synced = synced,
    .reconcile = reconcile,
    .stop = stop,
};
