/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/usage.h"

#include "apiserver/request/flow.h"
#include "apiserver/request/respond.h"
#include "apiserver/stream/node.h"
#include "apiserver/verbs/read.h"
#include "apiserver/verbs/usage_sample.h"
#include "base/log.h"
#include "base/timeutil.h"

LOG_MODULE("usage");

#define GROUP "metrics.k8s.io"
#define PERIOD_MS 15000
#define SECOND_MS 1500    /* From the first round to the second. */
#define PATIENCE_MS 12000 /* The longest wait of a client. */
#define IDLE_MS 300000
#define VALID_MS 60000
#define MAX_CALLS 32
#define MAX_WAITING 500
/* 5,000 containers with the longest names. */
#define MAX_ANSWER ((size_t) 4 << 20)
#define CONNECT_MS 3000
#define RESPONSE_MS 5000

struct usage_node {
    struct usage *usage;
    struct list due; /* In usage->due while it waits for its turn. */
    bool is_due, seen;
    char *name;
    struct http_client *client; /* During a call; NULL. */
    struct usage_sample *before, *last;
    bool failing; /* It was told. */
};

/* A client that waits for the second round. */
struct asker {
    struct list node;
    struct usage *usage;
    struct request *q;
};

struct usage {
    struct apiserver *server;
    struct smap nodes; /* struct usage_node by name. */
    struct list due, askers;
    size_t n_askers, n_calls;
    unsigned rounds; /* Finished since nobody asked; 2 is enough to answer. */
    bool asking;     /* A round is under way. */
    uint64_t asked_ms;
    struct loop_timer *timer;    /* Of the next round. */
    struct loop_timer *patience; /* Of the clients that wait. */
};

static void node_free(void *p)
{
    struct usage_node *n = p;
    if (n->is_due) {
        list_remove(&n->due);
    }
    if (n->client) {
        n->usage->n_calls--;
    }
    http_client_free(n->client);
    usage_sample_free(n->before);
    usage_sample_free(n->last);
    free(n->name);
    free(n);
}

/* ---- answers ---- */

static const struct cache_kind *kind_of(const struct apiserver *a, const char *plural)
{
    return cache_find(&a->cache, api_kind_find("", "v1", plural));
}

/* The node's two samples, if they are new enough; else NULL. */
static const struct usage_node *find_node(const struct usage *u, const char *name)
{
    const struct usage_node *n = smap_get(&u->nodes, name);
    uint64_t now = loop_now_ms(u->server->loop);
    return n && n->before && now - n->last->read_ms <= VALID_MS ? n : NULL;
}

static void set_time(struct json *o, const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_format_s(ms, text);
    json_set_string(o, key, text);
}

/* An object for 'of', which is a node or a pod, without the usage itself; owned. */
static struct json *object_for(const struct request *q, const struct json *of,
                               const struct usage_window *w)
{
    struct json *o = json_object(), *metadata;
    char window[TIME_TEXT_SIZE];
    CLEANUP_FREE char *version = api_kind_api_version(q->kind);
    json_set_string(o, "kind", q->kind->kind);
    json_set_string(o, "apiVersion", version);
    metadata = json_ensure_object(o, "metadata");
    json_set_string(metadata, "name", json_path_string(of, "metadata", "name", NULL));
    json_set_string(metadata, "namespace", json_path_string(of, "metadata", "namespace", NULL));
    set_time(metadata, "creationTimestamp", time_wall_ms());
    const struct json *labels = json_path(of, "metadata", "labels", NULL);
    if (labels) {
        json_set(metadata, "labels", json_clone(labels));
    }
    set_time(o, "timestamp", w->end_ms);
    time_format_duration(w->length_ms * 1000000, window);
    json_set_string(o, "window", window);
    return o;
}

/* 'v' is taken over. */
static struct object *make_object(const struct request *q, const char *key, struct json *v)
{
    CLEANUP(json_free) struct json *owned = v;
    CLEANUP(blob_unref) struct blob *text = NULL;
    return object_encode(q->kind, owned, &text) < 0
               ? NULL
               : object_new(q->kind, q->ck->head, key, text, q->server->cache.revision);
}

/* NULL: nothing is known of it. */
static struct object *make_node(struct request *q, const struct object *of)
{
    const struct usage_node *n = find_node(q->server->usage, of->key);
    struct usage_window w;
    if (!n || !usage_between(&n->before->node, &n->last->node, &w)) {
        return NULL;
    }
    CLEANUP(json_free) struct json *node = object_parse(of);
    struct json *o = object_for(q, node, &w);
    json_set(o, "usage", usage_amounts(&w));
    return make_object(q, of->key, o);
}

static void add_containers(const struct json *list, const struct usage_node *n, const char *key,
                           struct json *out, struct usage_window *shown)
{
    const struct json *c;
    JSON_FOREACH (c, list) {
        const char *name = json_get_text(c, "name");
        CLEANUP_FREE char *path = xasprintf("%s/%s", key, name);
        struct usage_window w;
        if (!usage_between(smap_get(&n->before->containers, path),
                           smap_get(&n->last->containers, path), &w)) {
            continue;
        }
        struct json *item = json_append(out, json_object());
        json_set_string(item, "name", name);
        json_set(item, "usage", usage_amounts(&w));
        /* The window of the oldest reading stands for all. */
        if (!shown->length_ms || w.end_ms < shown->end_ms) {
            *shown = w;
        }
    }
}

/* NULL: it does not run, or nothing is known of it. */
static struct object *make_pod(struct request *q, const struct object *of)
{
    int node_field = api_field_find(api_kind_find("", "v1", "pods"), "spec.nodeName");
    const struct usage_node *n =
        find_node(q->server->usage, api_index_field(of->index, (size_t) node_field));
    if (!n) {
        return NULL;
    }
    CLEANUP(json_free) struct json *pod = object_parse(of);
    CLEANUP(json_free) struct json *containers = json_array();
    struct usage_window w = {0};
    if (!streq_null(json_path_string(pod, "status", "phase", NULL), "Running")) {
        return NULL;
    }
    add_containers(json_path(pod, "spec", "containers", NULL), n, of->key, containers, &w);
    add_containers(json_path(pod, "spec", "initContainers", NULL), n, of->key, containers, &w);
    if (!json_count(containers)) {
        return NULL;
    }
    struct json *o = object_for(q, pod, &w);
    json_set(o, "containers", TAKE(containers));
    return make_object(q, of->key, o);
}

static struct object *make(struct request *q, const struct object *of)
{
    return q->kind->namespaced ? make_pod(q, of) : make_node(q, of);
}

/* In the words of metrics-server. */
static void not_found(const struct request *q, const char *key, struct outcome *outcome)
{
    const char *kind = q->kind->namespaced ? "podmetrics" : "nodemetrics";
    outcome_error(outcome, 404, "NotFound", "%s." GROUP " \"%s\" not found", kind, key);
    outcome->name = xstrdup(key);
    outcome->kind = xstrdup(kind);
}

static void get_one(struct request *q, struct outcome *outcome)
{
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    const struct object *of = keyset_get(&kind_of(q->server, q->kind->plural)->objects, key);
    CLEANUP(object_unref) struct object *o = of ? make(q, of) : NULL;
    if (o) {
        outcome_object(outcome, 200, blob_ref(o->text));
    } else {
        not_found(q, key, outcome);
    }
}

/* The labels and names of the metrics are those of the nodes and pods, so that the selectors choose
 * among these. */
static void get_list(struct request *q, struct outcome *outcome)
{
    struct selection sel = {0};
    struct object **found = NULL, *of;
    size_t n = 0, cap = 0;
    struct cache_walk w;
    if (selection_parse(q, &sel, outcome) < 0) {
        return;
    }
    struct cache_range range = {.namespace = q->namespace,
                                .name = api_selector_value(sel.fields, 0)};
    cache_walk_init(&w, kind_of(q->server, q->kind->plural), &range, q->server->cache.revision);
    while ((of = cache_walk_next(&w))) {
        struct object *o = selection_matches(&sel, of) ? make(q, of) : NULL;
        if (o) {
            found = grow(found, &cap, n + 1, sizeof *found);
            found[n++] = o;
        }
    }
    cache_walk_done(&w);
    selection_done(&sel);
    list_answer(q, found, n, outcome);
    for (size_t i = 0; i < n; i++) {
        object_unref(found[i]);
    }
    free(found);
}

static void answer(struct request *q, struct outcome *outcome)
{
    if (q->verb == VERB_GET) {
        get_one(q, outcome);
    } else {
        get_list(q, outcome);
    }
}

/* ---- clients that wait ---- */

static struct request *asker_free(struct asker *k)
{
    struct request *q = k->q;
    list_remove(&k->node);
    k->usage->n_askers--;
    free(k);
    return q;
}

static void answer_askers(struct usage *u)
{
    while (!list_is_empty(&u->askers)) {
        CLEANUP(outcome_done) struct outcome outcome = {0};
        struct request *q = asker_free(CONTAINER_OF(u->askers.next, struct asker, node));
        answer(q, &outcome);
        request_answer(q, &outcome);
    }
    loop_timer_disarm(u->patience);
}

static void patience_ended(void *ctx)
{
    answer_askers(ctx);
}

static void asker_gone(void *ctx)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    struct request *q = asker_free(ctx);
    outcome_error(&outcome, 499, "Timeout", "the client has gone");
    request_answer(q, &outcome);
}

/* ---- asking nodes ---- */

static void go_on(struct usage *u);

static void told(struct usage_node *n, const char *why)
{
    if (why && !n->failing) {
        log_warn("a node does not say what it uses", "node=%s error=\"%s\"", n->name, why);
    }
    n->failing = why != NULL;
}

static void take_answer(struct usage_node *n, const struct http_result *r)
{
    struct usage_sample *s = NULL;
    struct err e = {0};
    if (r->error) {
        told(n, r->error_text);
    } else if (r->status != 200) {
        CLEANUP_FREE char *why = xasprintf("status %d: %.200s", r->status, r->body);
        told(n, why);
    } else if (usage_sample_read(r->body, r->size, time_wall_ms(), &s, &e) < 0) {
        told(n, e.text);
    } else {
        s->read_ms = loop_now_ms(n->usage->server->loop);
        usage_sample_free(n->before);
        n->before = n->last;
        n->last = s;
        told(n, NULL);
    }
}

static void on_answer(void *ctx, const struct http_result *r)
{
    struct usage_node *n = ctx;
    struct usage *u = n->usage;
    take_answer(n, r);
    n->client = http_client_free(n->client);
    u->n_calls--;
    go_on(u);
}

static void ask(struct usage_node *n)
{
    static const struct stream_node_limits limits = {
        .connect_ms = CONNECT_MS, .response_ms = RESPONSE_MS, .max_body = MAX_ANSWER};
    CLEANUP(outcome_done) struct outcome outcome = {0};
    struct apiserver *a = n->usage->server;
    if (stream_node_client(a, n->name, &limits, &n->client, &outcome) < 0) {
        told(n, outcome.message);
        return;
    }
    n->usage->n_calls++;
    http_call(n->client, "GET", "/metrics/resource", NULL, NULL, NULL, 0, on_answer, n);
}

static void end_round(struct usage *u)
{
    u->asking = false;
    u->rounds++;
    if (u->rounds >= 2) {
        answer_askers(u);
    }
    loop_timer_arm(u->timer, u->rounds < 2 ? SECOND_MS : PERIOD_MS);
}

static void go_on(struct usage *u)
{
    while (u->n_calls < MAX_CALLS && !list_is_empty(&u->due)) {
        struct usage_node *n = CONTAINER_OF(list_pop_front(&u->due), struct usage_node, due);
        n->is_due = false;
        ask(n);
    }
    if (u->asking && !u->n_calls) {
        end_round(u);
    }
}

static struct usage_node *node_for(struct usage *u, const char *name)
{
    struct usage_node *n = smap_get(&u->nodes, name);
    if (!n) {
        n = NEW(struct usage_node);
        n->usage = u;
        n->name = xstrdup(name);
        smap_set(&u->nodes, name, n);
    }
    return n;
}

static void begin_round(struct usage *u)
{
    const struct keyset *all = &kind_of(u->server, "nodes")->objects;
    struct keyset_pos pos = keyset_seek(all, "");
    const struct object *o;
    struct smap_entry *e;
    SMAP_FOREACH (e, &u->nodes) {
        ((struct usage_node *) e->value)->seen = false;
    }
    while ((o = keyset_next(all, &pos))) {
        struct usage_node *n = node_for(u, o->key);
        n->seen = true;
        n->is_due = true;
        list_push_back(&u->due, &n->due);
    }
    SMAP_FOREACH (e, &u->nodes) {
        if (!((struct usage_node *) e->value)->seen) {
            smap_remove(&u->nodes, e->key);
        }
    }
    u->asking = true;
    go_on(u);
}

static void on_timer(void *ctx)
{
    struct usage *u = ctx;
    if (list_is_empty(&u->askers) && loop_now_ms(u->server->loop) - u->asked_ms > IDLE_MS) {
        smap_clear(&u->nodes);
        u->rounds = 0;
    } else {
        begin_round(u);
    }
}

/* ---- requests ---- */

bool usage_is_asked(const struct request *q)
{
    return streq(q->kind->group, GROUP) && !q->kind->custom;
}

void handle_usage(struct request *q, struct outcome *outcome)
{
    struct usage *u = q->server->usage;
    if (!q->server->kubelets) {
        request_warn(q, "-",
                     "no node can be asked what it uses, because the master has no certificate for "
                     "nodes: set kubeletClientInfo");
        answer(q, outcome);
        return;
    }
    if (u->n_askers >= MAX_WAITING) {
        outcome_error(outcome, 429, "TooManyRequests",
                      "too many clients wait for metrics, please try again later");
        return;
    }
    u->asked_ms = loop_now_ms(u->server->loop);
    if (u->rounds >= 2) {
        answer(q, outcome);
        return;
    }
    struct asker *k = NEW(struct asker);
    *k = (struct asker){.usage = u, .q = q};
    list_push_back(&u->askers, &k->node);
    u->n_askers++;
    if (!loop_timer_armed(u->patience)) {
        loop_timer_arm(u->patience, PATIENCE_MS);
    }
    outcome_take_over(outcome);
    flow_release(q);
    http_on_gone(q->x, asker_gone, k);
    if (!u->asking && !loop_timer_armed(u->timer)) {
        loop_timer_arm(u->timer, 0);
    }
}

struct usage *usage_new(struct apiserver *a)
{
    struct usage *u = NEW(struct usage);
    u->server = a;
    smap_init(&u->nodes, node_free);
    list_init(&u->due);
    list_init(&u->askers);
    u->timer = loop_timer_new(a->loop, on_timer, u);
    u->patience = loop_timer_new(a->loop, patience_ended, u);
    return u;
}

void usage_end(struct usage *u)
{
    loop_timer_disarm(u->timer);
    loop_timer_disarm(u->patience);
    smap_clear(&u->nodes);
    u->asking = false;
    while (!list_is_empty(&u->askers)) {
        CLEANUP(outcome_done) struct outcome outcome = {0};
        struct request *q = asker_free(CONTAINER_OF(u->askers.next, struct asker, node));
        outcome_error(&outcome, 503, "ServiceUnavailable", "the server is shutting down");
        request_answer(q, &outcome);
    }
}

struct usage *usage_free(struct usage *u)
{
    if (u) {
        usage_end(u);
        smap_done(&u->nodes);
        loop_timer_free(u->timer);
        loop_timer_free(u->patience);
        free(u);
    }
    return NULL;
}
