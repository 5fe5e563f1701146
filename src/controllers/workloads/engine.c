/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/engine.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "quota/quota.h"

#define STRATEGIC "application/strategic-merge-patch+json"
/* A key whose writes are not visible yet is looked at again when an object changes; this is for
 * what changes no object of the key, such as a write that was undone meanwhile. */
#define LOOK_AGAIN_MS 100
/* Creations of one plan that are under way at once: all controllers share one client. */
#define MAX_BATCH 64

/* The last write of each kind for a key. */
struct behind {
    uint64_t versions[ENGINE_COPIES];
    uint64_t lists[ENGINE_COPIES]; /* Lists that the copy had begun when the write was answered. */
};

/* Whether the copy number 'i' has the write: its version says so, or it was listed since.  After a
 * restore of an older registry the version would be reached much later, or never. */
static bool has_write(const struct engine *g, const struct behind *b, size_t i)
{
    const struct informer *copy = *g->copies[i].informer;
    return informer_version(copy) >= b->versions[i] || informer_list_complete(copy) > b->lists[i];
}

/* An object whose deletion was sent. */
struct leaving {
    struct informer *const *copy; /* The copy that has it; NULL: none. */
    uint64_t lists;               /* Lists that the copy had begun then. */
};

struct run;

/* A request under way. */
struct sent {
    struct list node;
    struct run *run;
    const struct workload_write *write; /* NULL: the owner is read, or its status written. */
    struct api_call *call;
};

/* A plan that is carried out. */
struct run {
    struct list node;
    struct engine *engine;
    struct work *work;
    struct json *owner;
    struct workload_plan plan;
    size_t next;  /* The first write that was not sent. */
    size_t batch; /* Creations sent at a time. */
    bool owner_read, status_sent, failed;
    struct list sent;
    int error;
    char *text; /* Of the first failure. */
};

/* ---- the engine ---- */

void engine_init(struct engine *g, const struct controller_env *env,
                 const struct workload_kind *kind)
{
    g->env = *env;
    g->kind = kind;
    smap_init(&g->behind, free);
    smap_init(&g->leaving, free);
    smap_init(&g->refused, NULL);
    list_init(&g->runs);
}

static void sent_free(struct sent *s)
{
    list_remove(&s->node);
    free(s);
}

static void run_free(struct run *r)
{
    struct sent *s;
    LIST_FOREACH (s, struct sent, node, &r->sent) {
        api_call_cancel(s->call);
        sent_free(s);
    }
    list_remove(&r->node);
    workload_plan_done(&r->plan);
    json_free(r->owner);
    free(r->text);
    free(r);
}

void engine_done(struct engine *g)
{
    struct run *r;
    LIST_FOREACH (r, struct run, node, &g->runs) {
        run_free(r);
    }
    smap_done(&g->behind);
    smap_done(&g->leaving);
    smap_done(&g->refused);
}

void engine_watch(struct engine *g, const struct workload_kind *kind,
                  struct informer *const *informer)
{
    assert(g->n_copies < ENGINE_COPIES);
    g->copies[g->n_copies++] = (struct engine_copy){kind, informer};
}

bool engine_is_current(struct engine *g, struct work *w)
{
    const struct behind *b = smap_get(&g->behind, work_key(w));
    for (size_t i = 0; b && i < g->n_copies; i++) {
        if (!has_write(g, b, i)) {
            work_wait(w, LOOK_AGAIN_MS);
            return false;
        }
    }
    (void) smap_remove(&g->behind, work_key(w));
    (void) smap_remove(&g->refused, work_key(w)); /* The next plan is another attempt. */
    return true;
}

void engine_mark_leaving(const struct engine *g, struct owned_list *children)
{
    for (size_t i = 0; i < children->n; i++) {
        const struct leaving *l = smap_get(&g->leaving, obj_uid(children->list[i].obj));
        /* A list that was begun after the deletion and has the object: it was restored. */
        children->list[i].going |= l && (!l->copy || informer_list_complete(*l->copy) <= l->lists);
    }
}

void engine_is_gone(struct engine *g, const struct json *obj)
{
    (void) smap_remove(&g->leaving, obj_uid(obj));
}

void engine_forget(struct engine *g, const char *key)
{
    (void) smap_remove(&g->refused, key);
    workqueue_add(g->env.queue, key); /* A plan under way may be refused after this. */
}

void engine_quota_changed(struct engine *g, const struct json *old, const struct json *now)
{
    const char *ns = obj_namespace(now ? now : old);
    size_t size = strlen(ns);
    struct smap_entry *e;
    if (!old || !quota_object_gives_room(old, now)) {
        return;
    }
    SMAP_FOREACH (e, &g->refused) {
        /* One of the cluster has no namespace, and bounds several. */
        if (!size || (strncmp(e->key, ns, size) == 0 && e->key[size] == '/')) {
            workqueue_add(g->env.queue, e->key);
        }
    }
}

/* Notes the resourceVersion of what the server answered. */
static void note(struct run *r, const struct workload_kind *kind, const struct json *obj)
{
    struct engine *g = r->engine;
    const char *text = json_path_string(obj, "metadata", "resourceVersion", NULL);
    uint64_t version;
    if (!text || str_to_u64(text, UINT64_MAX, &version) < 0) {
        return;
    }
    for (size_t i = 0; i < g->n_copies; i++) {
        if (g->copies[i].kind == kind) {
            struct behind *b = smap_get(&g->behind, work_key(r->work));
            if (!b) {
                b = NEW(struct behind);
                smap_set(&g->behind, work_key(r->work), b);
            }
            b->versions[i] = MAX(b->versions[i], version);
            b->lists[i] = informer_lists_begun(*g->copies[i].informer);
        }
    }
}

static void note_deletion(struct engine *g, const struct workload_write *w)
{
    struct leaving *l = NEW(struct leaving);
    for (size_t i = 0; i < g->n_copies; i++) {
        if (g->copies[i].kind == w->kind) {
            l->copy = g->copies[i].informer;
            l->lists = informer_lists_begun(*l->copy);
        }
    }
    smap_set(&g->leaving, w->uid, l);
}

/* ---- requests ---- */

static void go_on(struct run *r);

static struct sent *sent_new(struct run *r, const struct workload_write *w)
{
    struct sent *s = NEW(struct sent);
    s->run = r;
    s->write = w;
    list_push_back(&r->sent, &s->node);
    return s;
}

static char *path_of(const struct run *r, const struct workload_kind *kind, const char *name,
                     const char *part)
{
    return api_path(kind->api_version, kind->plural, obj_namespace(r->owner), name, part);
}

static void say(struct run *r, bool warning, const char *reason, const char *message)
{
    const struct workload_kind *kind = r->plan.about ? r->plan.about_kind : r->engine->kind;
    recorder_event(r->engine->env.recorder, kind->api_version, kind->kind,
                   r->plan.about ? r->plan.about : r->owner, warning ? EVENT_WARNING : EVENT_NORMAL,
                   reason, message);
}

static bool is_refused_by_quota(int error, const char *text)
{
    return error == -EACCES && strstr(text, "exceeded quota: ");
}

/* The namespace goes, and the owner with it: that is no failure to report. */
static bool is_end_of_namespace(int error, const char *text)
{
    return error == -EACCES && strstr(text, "because it is being terminated");
}

static void fail(struct run *r, const struct workload_write *w, int error, const char *text)
{
    if (w && w->fail_reason && !is_end_of_namespace(error, text)) {
        CLEANUP_FREE char *message = xasprintf("%s%s", w->fail_message, text);
        say(r, true, w->fail_reason, message);
    }
    if (w && r->plan.refused) {
        r->plan.refused(r->plan.refused_ctx, r->owner, w, error, text);
    }
    if (r->failed) {
        return;
    }
    r->failed = true;
    r->error = error;
    r->text = xstrdup(text);
    if (w && r->plan.status && r->plan.outcome && !is_end_of_namespace(error, text)) {
        r->plan.outcome(r->plan.status, w, text, time_wall_ms());
    }
}

static void succeed(struct run *r, const struct workload_write *w, const struct json *obj)
{
    if (w->verb != WORKLOAD_DELETE) {
        note(r, w->kind, obj);
    }
    if (w->reason) {
        CLEANUP_FREE char *message = xasprintf("%s%s", w->message, w->names ? obj_name(obj) : "");
        say(r, false, w->reason, message);
    }
    /* The status is written on top of a change of the object itself. */
    if (w->kind == r->engine->kind && w->verb != WORKLOAD_DELETE && r->plan.status &&
        streq(obj_uid(obj), obj_uid(r->owner))) {
        json_set_string(json_ensure_object(r->plan.status, "metadata"), "resourceVersion",
                        json_path_string(obj, "metadata", "resourceVersion", NULL));
    }
}

/* The object that has the name already. */
static void met(void *ctx, int error, const char *text, struct json *obj)
{
    struct sent *s = ctx;
    struct run *r = s->run;
    const struct workload_write *w = s->write;
    sent_free(s);
    if (error < 0) {
        fail(r, NULL, error, text);
    } else {
        note(r, w->kind, obj);
        if (!r->plan.met(r->plan.status, w, obj)) {
            CLEANUP_FREE char *why = xasprintf("%s \"%s\" exists and belongs to another object",
                                               w->kind->plural, w->name);
            fail(r, w, -EEXIST, why);
        } else {
            fail(r, NULL, -EEXIST, "the name exists");
        }
    }
    go_on(r);
}

static void answered(void *ctx, int error, const char *text, struct json *obj)
{
    struct sent *s = ctx;
    struct run *r = s->run;
    const struct workload_write *w = s->write;
    if (error == -EEXIST && w->verb == WORKLOAD_CREATE && w->name && r->plan.met) {
        CLEANUP_FREE char *path = path_of(r, w->kind, w->name, NULL);
        s->call = api_request(r->engine->env.client, "GET", path, NULL, NULL, met, s);
        return;
    }
    sent_free(s);
    if (error < 0 && w->verb == WORKLOAD_DELETE) {
        (void) smap_remove(&r->engine->leaving, w->uid);
    }
    if (error == 0) {
        succeed(r, w, obj);
    } else if ((w->verb != WORKLOAD_DELETE && w->verb != WORKLOAD_PATCH) ||
               (error != -ENOENT && error != -ESTALE)) {
        fail(r, w, error, text ? text : "");
    }
    go_on(r);
}

static void send_write(struct run *r, const struct workload_write *w)
{
    static const char *const methods[] = {[WORKLOAD_CREATE] = "POST",
                                          [WORKLOAD_UPDATE] = "PUT",
                                          [WORKLOAD_PATCH] = "PATCH",
                                          [WORKLOAD_DELETE] = "DELETE"};
    CLEANUP_FREE char *path =
        path_of(r, w->kind, w->verb == WORKLOAD_CREATE ? NULL : w->name, NULL);
    struct sent *s = sent_new(r, w);
    if (w->verb == WORKLOAD_DELETE) {
        note_deletion(r->engine, w);
    }
    s->call = api_request(r->engine->env.client, methods[w->verb], path,
                          w->verb == WORKLOAD_PATCH ? STRATEGIC : NULL, w->body, answered, s);
}

/* ---- the owner ---- */

static void owner_read(void *ctx, int error, const char *text, struct json *obj)
{
    struct sent *s = ctx;
    struct run *r = s->run;
    sent_free(s);
    if (error < 0) {
        fail(r, NULL, error, text);
    } else if (!streq(obj_uid(obj), obj_uid(r->owner)) || obj_is_terminating(obj)) {
        fail(r, NULL, -ESTALE, "the owner is gone or goes, and adopts nothing");
    }
    go_on(r);
}

static void read_owner(struct run *r)
{
    CLEANUP_FREE char *path = path_of(r, r->engine->kind, obj_name(r->owner), NULL);
    struct sent *s = sent_new(r, NULL);
    r->owner_read = true;
    s->call = api_request(r->engine->env.client, "GET", path, NULL, NULL, owner_read, s);
}

static void status_written(void *ctx, int error, const char *text, struct json *obj)
{
    struct sent *s = ctx;
    struct run *r = s->run;
    sent_free(s);
    if (error == 0) {
        note(r, r->engine->kind, obj);
    } else if (error != -ENOENT) {
        fail(r, NULL, error, text);
    }
    go_on(r);
}

/* Whether a request was sent. */
static bool send_status(struct run *r)
{
    struct json *o = r->plan.status;
    r->status_sent = true;
    if (o && !r->failed && r->plan.outcome) {
        r->plan.outcome(o, NULL, NULL, time_wall_ms());
    }
    const struct json *now = json_get(o, "status"), *was = json_get(r->owner, "status");
    if (!o || (r->failed && r->plan.only_success) ||
        (was ? json_equal(now, was) : json_count(now) == 0)) {
        return false;
    }
    json_set_string(o, "apiVersion", r->engine->kind->api_version);
    json_set_string(o, "kind", r->engine->kind->kind);
    CLEANUP_FREE char *path = path_of(r, r->engine->kind, obj_name(r->owner), "status");
    struct sent *s = sent_new(r, NULL);
    s->call = api_request(r->engine->env.client, "PUT", path, NULL, o, status_written, s);
    return true;
}

/* ---- one plan after the other ---- */

static void end(struct run *r)
{
    struct work *w = r->work;
    int64_t recheck_ms = r->plan.recheck_ms, now_ms = time_wall_ms();
    int error = r->error;
    bool failed = r->failed;
    CLEANUP_FREE char *text = TAKE(r->text);
    if (failed && is_refused_by_quota(error, text)) {
        smap_set(&r->engine->refused, work_key(w), r->engine);
    }
    run_free(r);
    if (failed) {
        work_retry(w, error, "carry out the plan of a workload", text);
    } else if (recheck_ms) {
        work_wait(w, (uint64_t) MAX(recheck_ms - now_ms, 1));
    } else {
        work_done(w);
    }
}

/* The writes that are sent together: those of one stage, creations slowly. */
static size_t batch_end(struct run *r)
{
    const struct workload_write *first = &r->plan.writes[r->next];
    size_t end = r->next;
    bool creates = first->verb == WORKLOAD_CREATE && first->stage == WORKLOAD_MAIN;
    while (end < r->plan.n_writes && r->plan.writes[end].stage == first->stage &&
           (!creates || end - r->next < r->batch)) {
        end++;
    }
    if (creates) {
        r->batch = MIN(r->batch * 2, MAX_BATCH);
    }
    return end;
}

static void go_on(struct run *r)
{
    if (!list_is_empty(&r->sent)) {
        return;
    }
    bool more = r->next < r->plan.n_writes && !r->failed;
    enum workload_stage stage = more ? r->plan.writes[r->next].stage : WORKLOAD_AFTER_STATUS;
    if (more && stage == WORKLOAD_ADOPT && !r->owner_read) {
        read_owner(r);
        return;
    }
    if (stage == WORKLOAD_AFTER_STATUS && !r->status_sent) {
        if (send_status(r)) {
            return;
        }
    }
    if (!more) {
        end(r);
        return;
    }
    size_t end = batch_end(r);
    while (r->next < end) {
        send_write(r, &r->plan.writes[r->next++]);
    }
}

void engine_run(struct engine *g, struct work *w, const struct json *owner,
                struct workload_plan *plan)
{
    struct run *r = NEW(struct run);
    r->engine = g;
    r->work = w;
    r->owner = json_clone(owner);
    r->plan = *plan;
    r->batch = 1;
    *plan = (struct workload_plan){0};
    list_init(&r->sent);
    list_push_back(&g->runs, &r->node);
    for (size_t i = 0; i < r->plan.n_events; i++) {
        const struct workload_event *e = &r->plan.events[i];
        say(r, e->warning, e->reason, e->message);
    }
    go_on(r);
}
