/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/uids.h"

#include "apiserver/access/authz.h"
#include "apiserver/cache/object.h"
#include "base/log.h"

LOG_MODULE("apiserver");

#define CLAIM_PREFIX "/registry/project-claims/"
#define FIRST_MS 1000
#define STEP_MS 5
#define STEP_KEYS 20

static const char *const keys[] = {SCC_UIDS_ANNOTATION, SCC_GROUPS_ANNOTATION,
                                   SCC_LEVEL_ANNOTATION};

struct uids {
    struct apiserver *server;
    struct scc_blocks blocks;
    const struct cache_kind *kind; /* The kind Namespace. */
    /* For each block, how many namespaces, claims and writes under way have it; 255: more. */
    uint8_t *holders;
    struct cache_subscriber subscriber;
    struct loop_timer *timer;
    char **bare; /* Keys of namespaces that had no annotations when the cache was loaded. */
    size_t n_bare, cap_bare;
};

/* ---- which blocks are taken ---- */

static void hold(struct uids *u, uint32_t block)
{
    if (u->holders[block] < UINT8_MAX) {
        u->holders[block]++;
    }
}

/* A block that was held more than 254 times at once stays taken. */
static void release(struct uids *u, uint32_t block)
{
    if (u->holders[block] > 0 && u->holders[block] < UINT8_MAX) {
        u->holders[block]--;
    }
}

static const char *range_of(const struct json *ns)
{
    return json_path_string(ns, "metadata", "annotations", SCC_UIDS_ANNOTATION, NULL);
}

static void count_namespace(struct uids *u, const struct object *o, bool there)
{
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    uint32_t block;
    if (scc_block_find(&u->blocks, range_of(obj), &block) == 0) {
        (there ? hold : release)(u, block);
    }
}

static int claim_parse(const struct uids *u, const char *key, uint32_t *ret)
{
    uint64_t n;
    if (!str_has_prefix(key, CLAIM_PREFIX) ||
        str_to_u64(key + sizeof CLAIM_PREFIX - 1, u->blocks.n - 1, &n) < 0) {
        return -EINVAL;
    }
    *ret = (uint32_t) n;
    return 0;
}

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    struct uids *u = ctx;
    if (ck == u->kind) {
        count_namespace(u, ev->old, false);
        count_namespace(u, ev->new, true);
    }
}

static void on_unknown_changed(void *ctx, const char *key, bool present)
{
    struct uids *u = ctx;
    uint32_t block;
    if (claim_parse(u, key, &block) == 0) {
        (present ? hold : release)(u, block);
    }
}

/* ---- claims ---- */

static char *claim_key(uint32_t block)
{
    return xasprintf(CLAIM_PREFIX "%u", block);
}

static struct blob *claim_value(const char *ns)
{
    CLEANUP(json_free) struct json *v = json_object();
    json_set_string(v, "namespace", ns);
    CLEANUP_FREE char *text = json_to_text(v);
    return blob_new(text, strlen(text));
}

/* The name of the namespace that the claim is of; owned, NULL: none. */
static char *claim_owner(const struct blob *value)
{
    CLEANUP(json_free) struct json *v = NULL;
    (void) json_parse(value->data, value->size, &v, NULL);
    const char *ns = json_path_string(v, "namespace", NULL);
    return ns ? xstrdup(ns) : NULL;
}

static void note_claim(struct uids_write *w, uint32_t block, const char *ns)
{
    w->claims[w->n_claims++] =
        (struct store_claim){.key = claim_key(block), .value = ns ? claim_value(ns) : NULL};
}

/* Gives up the claim of the range, if it is the namespace's. */
static void note_release(struct uids *u, struct uids_write *w, const char *range, const char *ns)
{
    uint32_t block;
    if (scc_block_find(&u->blocks, range, &block) < 0) {
        return;
    }
    CLEANUP_FREE char *key = claim_key(block);
    const struct blob *value = cache_unknown_value(&u->server->cache, key, NULL);
    CLEANUP_FREE char *owner = value ? claim_owner(value) : NULL;
    if (streq_null(owner, ns)) {
        note_claim(w, block, NULL);
    }
}

/* Takes the lowest block that is free after 'skip' others, or else the last free one, for a write;
 * -ENOSPC. */
static int reserve(struct uids *u, struct uids_write *w, unsigned skip, const char *ns)
{
    const uint8_t *end = u->holders + u->blocks.n, *found = NULL, *next = u->holders;
    for (unsigned i = 0; i <= skip && next; i++) {
        next = memchr(next, 0, (size_t) (end - next));
        found = next ? next : found;
        next = next && next + 1 < end ? next + 1 : NULL;
    }
    if (!found) {
        return -ENOSPC;
    }
    w->block = (uint32_t) (found - u->holders);
    w->reserves = true;
    hold(u, w->block);
    note_claim(w, w->block, ns);
    return 0;
}

void uids_drop(struct uids *u, struct uids_write *w)
{
    if (w->reserves) {
        release(u, w->block); /* If the write succeeded, the cache holds the block. */
    }
    for (size_t i = 0; i < w->n_claims; i++) {
        free((char *) w->claims[i].key);
        blob_unref(w->claims[i].value);
    }
    *w = (struct uids_write){0};
}

/* ---- writes of namespaces ---- */

bool uids_concerns(const struct uids *u, const struct cache_kind *ck)
{
    return u && ck == u->kind;
}

/* Whether the namespace names user IDs of its own choice. */
static bool chooses(const struct json *obj)
{
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        found |= json_path(obj, "metadata", "annotations", keys[i], NULL) != NULL;
    }
    return found;
}

static int check_choice(struct request *q, const struct json *obj, const char *name,
                        struct outcome *outcome)
{
    if (!chooses(obj) ||
        authz_may(q->server->security, q->user, "update", "", "namespaces", name, name)) {
        return 0;
    }
    outcome_status(outcome, 403, "Forbidden", name,
                   "%s \"%s\" is forbidden: the annotations openshift.io/sa.scc.* are set by the "
                   "server; choosing them needs the right to update namespaces",
                   RESOURCE_TEXT(q->kind), name);
    return -EACCES;
}

/* An update that drops the annotations does not take the values away. */
static void keep(struct json *obj, const struct json *old)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct json *had = json_path(old, "metadata", "annotations", keys[i], NULL);
        if (had && !json_path(obj, "metadata", "annotations", keys[i], NULL)) {
            json_set(json_ensure_object(json_ensure_object(obj, "metadata"), "annotations"),
                     keys[i], json_clone(had));
        }
    }
}

int uids_settle(struct request *q, struct uids_write *w, unsigned attempts, struct json *obj,
                const struct json *old, struct outcome *outcome)
{
    struct uids *u = q->server->uids;
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    uids_drop(u, w);
    if (!uids_concerns(u, q->ck)) {
        return 0;
    }
    int r = old ? 0 : check_choice(q, obj, name, outcome);
    if (r < 0) {
        return r;
    }
    keep(obj, old);
    if (range_of(obj)) {
        bool same = streq_null(range_of(old), range_of(obj));
        if (old && !same) {
            note_release(u, w, range_of(old), name);
        }
        struct json *annotations = json_path(obj, "metadata", "annotations", NULL);
        uint32_t block;
        if (!same && scc_block_find(&u->blocks, range_of(obj), &block) == 0) {
            scc_block_annotate(&u->blocks, block, annotations);
        }
        return 0;
    }
    if (reserve(u, w, attempts, name) < 0) {
        outcome_error(outcome, 500, "InternalError",
                      "Internal error occurred: no block of user IDs is left for a namespace: "
                      "delete namespaces, or extend projectConfig.securityAllocator of the master");
        return -ENOSPC;
    }
    scc_block_annotate(&u->blocks, w->block,
                       json_ensure_object(json_ensure_object(obj, "metadata"), "annotations"));
    return 0;
}

void uids_settle_deletion(struct uids *u, struct uids_write *w, const struct cache_kind *ck,
                          const struct object *base)
{
    uids_drop(u, w);
    if (uids_concerns(u, ck)) {
        CLEANUP(json_free) struct json *old = object_parse(base);
        note_release(u, w, range_of(old), base->key);
    }
}

/* ---- after a start ---- */

static void repaired(void *ctx, int error, uint64_t revision)
{
    /* After a conflict, another server has repaired the key, or the next start repairs it. */
    if (error == 0) {
        log_info(ctx ? "claim of user IDs without a namespace removed"
                     : "namespace got its user IDs",
                 "revision=%llu", (unsigned long long) revision);
    }
}

static void check_claim(void *ctx, const char *key)
{
    struct uids *u = ctx;
    uint64_t revision;
    uint32_t block, has;
    const struct blob *value = cache_unknown_value(&u->server->cache, key, &revision);
    if (!value || claim_parse(u, key, &block) < 0) {
        return;
    }
    CLEANUP_FREE char *owner = claim_owner(value);
    const struct object *o = owner ? keyset_get(&u->kind->objects, owner) : NULL;
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    if (scc_block_find(&u->blocks, range_of(obj), &has) < 0 || has != block) {
        store_delete(u->server->store, key, revision, repaired, u);
    }
}

/* Writes the namespace with annotations, on the condition that it is unchanged. */
static void annotate(struct uids *u, const char *key)
{
    const struct object *o = keyset_get(&u->kind->objects, key);
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    CLEANUP(blob_unref) struct blob *value = NULL;
    struct uids_write w = {0};
    if (!obj || range_of(obj) || reserve(u, &w, 0, key) < 0) {
        return;
    }
    struct json *meta = json_ensure_object(obj, "metadata");
    scc_block_annotate(&u->blocks, w.block, json_ensure_object(meta, "annotations"));
    json_remove(meta, "resourceVersion");
    if (object_encode(u->kind->kind, obj, &value) == 0) {
        CLEANUP_FREE char *place = cache_store_key(u->kind, key);
        const struct store_terms terms = {.claims = w.claims, .n_claims = w.n_claims};
        store_write(u->server->store, place, value, o->revision, &terms, repaired, NULL);
    }
    /* The number stays taken until the next start, also when the write fails. */
    w.reserves = false;
    uids_drop(u, &w);
}

static void step(void *ctx)
{
    struct uids *u = ctx;
    if (u->server->lost || u->server->stopping) {
        loop_timer_arm(u->timer, FIRST_MS);
        return;
    }
    for (unsigned n = 0; u->n_bare && n < STEP_KEYS; n++) {
        CLEANUP_FREE char *key = u->bare[--u->n_bare];
        annotate(u, key);
    }
    if (u->n_bare) {
        loop_timer_arm(u->timer, STEP_MS);
    } else {
        cache_each_unknown(&u->server->cache, CLAIM_PREFIX, check_claim, u);
    }
}

static void hold_claim(void *ctx, const char *key)
{
    on_unknown_changed(ctx, key, true);
}

static void forget(struct uids *u)
{
    while (u->n_bare) {
        free(u->bare[--u->n_bare]);
    }
    free(TAKE(u->bare));
    u->cap_bare = 0;
}

static void on_loaded(void *ctx)
{
    struct uids *u = ctx;
    const struct object *o;
    memset(u->holders, 0, u->blocks.n);
    forget(u);
    struct keyset_pos pos = keyset_seek(&u->kind->objects, "");
    while ((o = keyset_next(&u->kind->objects, &pos))) {
        CLEANUP(json_free) struct json *obj = object_parse(o);
        uint32_t block;
        if (scc_block_find(&u->blocks, range_of(obj), &block) == 0) {
            hold(u, block);
        } else if (!range_of(obj)) {
            u->bare = grow(u->bare, &u->cap_bare, u->n_bare + 1, sizeof *u->bare);
            u->bare[u->n_bare++] = xstrdup(o->key);
        }
    }
    cache_each_unknown(&u->server->cache, CLAIM_PREFIX, hold_claim, u);
    loop_timer_arm(u->timer, FIRST_MS);
}

/* ---- creation and end ---- */

struct uids *uids_new(struct apiserver *a, const struct scc_blocks *blocks)
{
    const struct cache_kind *kind = cache_find(&a->cache, api_kind_find("", "v1", "namespaces"));
    if (a->security->always_allow || !kind) {
        return NULL;
    }
    struct uids *u = NEW(struct uids);
    u->server = a;
    u->blocks = *blocks;
    u->kind = kind;
    u->holders = xcalloc(blocks->n, sizeof *u->holders);
    u->timer = loop_timer_new(a->loop, step, u);
    u->subscriber = (struct cache_subscriber){.rank = CACHE_RANK_ADMISSION,
                                              .ctx = u,
                                              .changed = on_changed,
                                              .unknown_changed = on_unknown_changed,
                                              .loaded = on_loaded};
    cache_subscribe(&a->cache, &u->subscriber);
    return u;
}

struct uids *uids_free(struct uids *u)
{
    if (u) {
        cache_unsubscribe(&u->subscriber);
        loop_timer_free(u->timer);
        forget(u);
        free(u->holders);
        free(u);
    }
    return NULL;
}
