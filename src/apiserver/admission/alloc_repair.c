/* SPDX-License-Identifier: Apache-2.0 */
/* Makes claims and services agree in a registry that was also written by other programs: an
 * import, a partial restore, another version.
 *
 * A missing claim of a service is made on the condition that the service is unchanged since it was
 * read; a claim without a service is deleted at the revision at which it was read.  As long as a
 * claim exists, no other service can get its number, so neither step can take a number from a
 * service.  The walk handles a few keys at a time, so that it does not block the loop. */
#include "apiserver/admission/alloc_repair.h"

#include "apiserver/admission/alloc_claims.h"
#include "base/log.h"

LOG_MODULE("apiserver");

#define PERIOD_MS (10 * 60 * UINT64_C(1000))
#define FIRST_MS 1000
#define STEP_MS 5
#define STEP_KEYS 100

struct alloc_repair {
    struct apiserver *server;
    const struct service_ranges *ranges;
    struct cache_kind *services;
    struct loop_timer *timer;
    char **todo; /* Keys of services, then of claims. */
    size_t n_todo, cap_todo, n_services, at;
};

static void step(void *ctx);

struct alloc_repair *alloc_repair_new(struct apiserver *a, const struct service_ranges *r)
{
    struct alloc_repair *p = NEW(struct alloc_repair);
    p->server = a;
    p->ranges = r;
    p->services = cache_find(&a->cache, api_kind_find("", "v1", "services"));
    p->timer = loop_timer_new(a->loop, step, p);
    return p;
}

static void forget(struct alloc_repair *p)
{
    for (size_t i = p->at; i < p->n_todo; i++) {
        free(p->todo[i]);
    }
    free(p->todo);
    p->todo = NULL;
    p->n_todo = p->cap_todo = p->n_services = p->at = 0;
}

struct alloc_repair *alloc_repair_free(struct alloc_repair *p)
{
    if (p) {
        loop_timer_free(p->timer);
        forget(p);
        free(p);
    }
    return NULL;
}

void alloc_repair_start(struct alloc_repair *p)
{
    forget(p);
    loop_timer_arm(p->timer, FIRST_MS);
}

static void add(void *ctx, const char *key)
{
    struct alloc_repair *p = ctx;
    p->todo = grow(p->todo, &p->cap_todo, p->n_todo + 1, sizeof *p->todo);
    p->todo[p->n_todo++] = xstrdup(key);
}

static void gather(struct alloc_repair *p)
{
    struct keyset_pos pos = keyset_seek(&p->services->objects, "");
    const struct object *o;
    while ((o = keyset_next(&p->services->objects, &pos))) {
        add(p, o->key);
    }
    p->n_services = p->n_todo;
    cache_each_unknown(&p->server->cache, CLAIM_PREFIX, add, p);
}

static void done(void *ctx, int error, uint64_t revision)
{
    /* After a conflict, another server has repaired the key, or the next walk repairs it. */
    if (error == 0) {
        log_info(ctx ? "claim without a service removed" : "missing claim of a service created",
                 "revision=%llu", (unsigned long long) revision);
    }
}

static void check_service(struct alloc_repair *p, const char *key)
{
    const struct object *o = keyset_get(&p->services->objects, key);
    if (!o) {
        return;
    }
    CLEANUP(json_free) struct json *obj = object_parse(o);
    CLEANUP_FREE char *guard = cache_store_key(p->services, key);
    struct store_terms terms = {.guard = guard, .guard_at = o->revision};
    char **claims = claims_of(p->ranges, obj);
    for (size_t i = 0; claims[i]; i++) {
        if (!cache_unknown_value(&p->server->cache, claims[i], NULL)) {
            CLEANUP(blob_unref) struct blob *value = claim_value(key);
            store_write(p->server->store, claims[i], value, STORE_ABSENT, &terms, done, NULL);
        }
    }
    claims_free(claims);
}

/* The key of the service that 'value' names; owned, NULL: none. */
static char *owner_of(const struct blob *value)
{
    CLEANUP(json_free) struct json *v = NULL;
    (void) json_parse(value->data, value->size, &v, NULL);
    const char *service = json_path_string(v, "service", NULL);
    return service ? xstrdup(service) : NULL;
}

static void check_claim(struct alloc_repair *p, const char *key)
{
    uint64_t revision;
    const struct blob *value = cache_unknown_value(&p->server->cache, key, &revision);
    if (!value) {
        return;
    }
    CLEANUP_FREE char *service = owner_of(value);
    const struct object *o = service ? keyset_get(&p->services->objects, service) : NULL;
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    char **claims = obj ? claims_of(p->ranges, obj) : NULL;
    if (!claims || !claims_have(claims, key)) {
        store_delete(p->server->store, key, revision, done, p);
    }
    claims_free(claims);
}

static void step(void *ctx)
{
    struct alloc_repair *p = ctx;
    if (p->server->lost || p->server->stopping) {
        loop_timer_arm(p->timer, FIRST_MS);
        return;
    }
    if (!p->todo) {
        gather(p);
    }
    for (unsigned n = 0; p->at < p->n_todo && n < STEP_KEYS; n++) {
        CLEANUP_FREE char *key = p->todo[p->at];
        (p->at < p->n_services ? check_service : check_claim)(p, key);
        p->at++;
    }
    bool more = p->at < p->n_todo;
    if (!more) {
        forget(p);
    }
    loop_timer_arm(p->timer, more ? STEP_MS : PERIOD_MS);
}
