/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/pods/images.h"

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "pod/image_name.h"
#include "pod/pull_secret.h"

LOG_MODULE("images");

#define BACKOFF_MIN_MS 10000
#define BACKOFF_MAX_MS 300000
#define FORGET_MS 600000

/* One pull, or one wait for a pull, of an image with given credentials. */
struct pull {
    char *key; /* The image and a hash of the credentials. */
    char *image;
    struct images *images;
    struct list node;  /* In 'queue' while it waits for its turn. */
    struct list calls; /* struct image_call */
    struct runtime_call *call;
    struct json *credentials;
    size_t next_credential;
    uint64_t started_ms;
    bool running;
    /* After a failure. */
    unsigned failures;
    uint64_t due_ms;
    char *reason, *message;
};

struct image_call {
    struct images *images;
    struct list node; /* In images->calls, or in the pull's. */
    struct pull *pull;
    struct runtime_call *call;
    char *image, *normal, *policy, *key;
    struct json *credentials;
    image_pulling_fn *pulling;
    image_done_fn *done;
    void *ctx;
    struct loop_task task; /* An answer that needs no call. */
    char *reason, *message;
    bool pulled;
    uint64_t pull_ms;
};

struct images {
    struct loop *loop;
    struct runtime *runtime;
    unsigned parallel, running;
    struct smap pulls; /* By key; struct pull */
    struct smap got;   /* Images that this agent pulled, with the keys: "image" -> struct json. */
    struct list queue, calls;
    struct images_stats stats;
};

/* ---- calls ---- */

static void call_free(struct image_call *c)
{
    list_remove(&c->node);
    loop_task_cancel(&c->task);
    if (c->call) {
        runtime_cancel(c->call);
    }
    free(c->image);
    free(c->normal);
    free(c->policy);
    free(c->key);
    free(c->reason);
    free(c->message);
    json_free(c->credentials);
    free(c);
}

static void finish(struct image_call *c, const struct image_result *r)
{
    image_done_fn *done = c->done;
    void *ctx = c->ctx;
    struct image_result copy = *r;
    /* The texts of 'copy' may belong to the call. */
    struct image_call *keep = c;
    list_remove(&keep->node);
    done(ctx, &copy);
    call_free(keep);
}

static void fail(struct image_call *c, const char *reason, const char *message, uint64_t retry_ms)
{
    struct image_result r = {.reason = reason, .message = message, .retry_ms = retry_ms};
    finish(c, &r);
}

static void answer_later(void *ctx)
{
    struct image_call *c = ctx;
    fail(c, c->reason, c->message, BACKOFF_MIN_MS);
}

static void pull_free(void *p)
{
    struct pull *u = p;
    list_remove(&u->node);
    if (u->call) {
        runtime_cancel(u->call);
    }
    json_free(u->credentials);
    free(u->key);
    free(u->image);
    free(u->reason);
    free(u->message);
    free(u);
}

static void free_json(void *v)
{
    json_free(v);
}

static void pull_next(struct images *i);
static void pull_try(struct pull *u);

/* The status of the image after a pull, or before one. */
static void image_read(void *ctx, int error, const char *text, const struct runtime_image *image,
                       size_t n);

static void read_image(struct image_call *c)
{
    c->call = runtime_get_image(c->images->runtime, c->normal, image_read, c);
}

static void pull_failed(struct pull *u, const char *text)
{
    struct images *i = u->images;
    uint64_t now = loop_now_ms(i->loop);
    uint64_t delay = time_backoff_ms(u->failures, BACKOFF_MIN_MS, BACKOFF_MAX_MS, 0);
    u->failures++;
    u->due_ms = now + delay;
    free(u->message);
    u->message = xstrdup(text);
    i->stats.failures++;
    log_info("an image cannot be pulled", "image=%s error=\"%s\"", u->image, text);
    struct list *node;
    while ((node = list_pop_front(&u->calls))) {
        struct image_call *c = CONTAINER_OF(node, struct image_call, node);
        list_push_back(&i->calls, &c->node);
        c->pull = NULL;
        fail(c, "ErrImagePull", text, MIN(delay, UINT64_C(1000)));
    }
}

static void pull_done(void *ctx, int error, const char *text, const char *id)
{
    struct pull *u = ctx;
    struct images *i = u->images;
    u->call = NULL;
    if (error < 0 && u->next_credential < json_count(u->credentials)) {
        pull_try(u);
        return;
    }
    u->running = false;
    i->running--;
    if (error < 0) {
        pull_failed(u, text);
        pull_next(i);
        return;
    }
    struct json *keys = smap_get(&i->got, u->image);
    if (!keys) {
        keys = json_object();
        smap_set(&i->got, u->image, keys);
    }
    json_set_bool(keys, u->key, true);
    uint64_t took = loop_now_ms(i->loop) - u->started_ms;
    struct list *node;
    while ((node = list_pop_front(&u->calls))) {
        struct image_call *c = CONTAINER_OF(node, struct image_call, node);
        list_push_back(&i->calls, &c->node);
        c->pull = NULL;
        c->pulled = true;
        c->pull_ms = took;
        read_image(c);
    }
    smap_remove(&i->pulls, u->key);
    pull_next(i);
}

/* Pulls with the next credential, or without one. */
static void pull_try(struct pull *u)
{
    struct runtime_auth auth = {0};
    const struct json *c = json_at(u->credentials, u->next_credential);
    if (c) {
        u->next_credential++;
        auth.username = json_get_text(c, "username");
        auth.password = json_get_text(c, "password");
        auth.identity_token = json_get_text(c, "identitytoken");
    }
    u->call =
        runtime_pull_image(u->images->runtime, u->image, c ? &auth : NULL, NULL, pull_done, u);
}

static void pull_next(struct images *i)
{
    while (i->running < i->parallel) {
        struct list *node = list_pop_front(&i->queue);
        if (!node) {
            return;
        }
        struct pull *u = CONTAINER_OF(node, struct pull, node);
        if (list_is_empty(&u->calls)) {
            continue; /* No container waits for it any more. */
        }
        u->running = true;
        u->next_credential = 0;
        u->started_ms = loop_now_ms(i->loop);
        i->running++;
        i->stats.pulls++;
        pull_try(u);
    }
}

static bool is_idle(const struct pull *u)
{
    return !u->running && list_is_empty(&u->calls);
}

/* Users choose the names of images: failures of which nobody has asked for long are forgotten. */
static void forget_failures(struct images *i)
{
    struct smap_entry *e;
    uint64_t now = loop_now_ms(i->loop);
    SMAP_FOREACH (e, &i->pulls) {
        const struct pull *u = e->value;
        if (is_idle(u) && now > u->due_ms + FORGET_MS) {
            smap_remove(&i->pulls, e->key);
        }
    }
}

static void join_pull(struct image_call *c)
{
    struct images *i = c->images;
    uint64_t now = loop_now_ms(i->loop);
    forget_failures(i);
    struct pull *u = smap_get(&i->pulls, c->key);
    if (u && is_idle(u) && now < u->due_ms) {
        CLEANUP_FREE char *text =
            xasprintf("Back-off pulling image \"%s\": ErrImagePull: %s", c->image, u->message);
        fail(c, "ImagePullBackOff", text, u->due_ms - now);
        return;
    }
    if (!u) {
        u = NEW(struct pull);
        u->key = xstrdup(c->key);
        u->image = xstrdup(c->normal);
        u->images = i;
        list_init(&u->node);
        list_init(&u->calls);
        smap_set(&i->pulls, c->key, u);
    }
    bool queued = u->running || !list_is_empty(&u->calls);
    list_remove(&c->node);
    list_push_back(&u->calls, &c->node);
    c->pull = u;
    if (c->pulling) {
        c->pulling(c->ctx, c->image);
    }
    if (!queued) {
        json_free(u->credentials);
        u->credentials = TAKE(c->credentials);
        list_remove(&u->node); /* It may be there for a container that gave up. */
        list_push_back(&i->queue, &u->node);
        pull_next(i);
    }
}

/* Whether the pod may use the present image: another pod's credentials may have pulled it. */
static bool may_use(const struct image_call *c)
{
    const struct json *keys = smap_get(&c->images->got, c->normal);
    CLEANUP_FREE char *open = xasprintf("%s 0", c->normal);
    return !keys || json_get(keys, c->key) || json_get(keys, open);
}

static void image_read(void *ctx, int error, const char *text, const struct runtime_image *image,
                       size_t n)
{
    struct image_call *c = ctx;
    c->call = NULL;
    bool there = error == 0 && n > 0;
    if (error < 0 && error != -ENOENT) {
        CLEANUP_FREE char *message =
            xasprintf("Failed to inspect image \"%s\": %s", c->image, text);
        fail(c, "ImageInspectError", message, 1000);
        return;
    }
    bool always = streq(c->policy, "Always"), never = streq(c->policy, "Never");
    if (there && (c->pulled || never || (!always && may_use(c)))) {
        const char *ref = image->id;
        struct image_result r = {
            .ref = ref, .image = image, .pulled = c->pulled, .pull_ms = c->pull_ms};
        finish(c, &r);
        return;
    }
    if (never) {
        CLEANUP_FREE char *message =
            xasprintf("Container image \"%s\" is not present with pull policy of Never", c->image);
        fail(c, "ErrImageNeverPull", message, BACKOFF_MIN_MS);
        return;
    }
    if (c->pulled) {
        fail(c, "ErrImagePull", "the image was pulled and is gone again", BACKOFF_MIN_MS);
        return;
    }
    join_pull(c);
}

struct image_call *images_get(struct images *i, const struct image_want *want,
                              image_pulling_fn *pulling, image_done_fn *done, void *ctx)
{
    struct image_call *c = NEW(struct image_call);
    struct err e = {0};
    c->images = i;
    c->image = xstrdup(want->image);
    c->pulling = pulling;
    c->done = done;
    c->ctx = ctx;
    loop_task_init(&c->task, i->loop, answer_later, c);
    list_push_back(&i->calls, &c->node);
    const char *policy =
        want->policy && *want->policy ? want->policy : image_name_pull_policy(want->image);
    c->policy = xstrdup(policy);
    c->credentials = pull_secret_credentials(want->image, want->secrets, want->n_secrets);
    if (image_name_complete(want->image, &c->normal, &e) < 0) {
        c->reason = xstrdup("InvalidImageName");
        c->message = xstrdup(e.text);
        loop_task_queue(&c->task);
        return c;
    }
    CLEANUP_FREE char *text = json_to_text(c->credentials);
    uint64_t hash = json_count(c->credentials) ? hash_bytes(text, strlen(text)) | 1 : 0;
    c->key = xasprintf("%s %llx", c->normal, (unsigned long long) hash);
    read_image(c);
    return c;
}

struct image_call *image_call_cancel(struct image_call *c)
{
    if (c) {
        call_free(c);
    }
    return NULL;
}

struct images *images_new(struct loop *l, struct runtime *r, unsigned parallel)
{
    struct images *i = NEW(struct images);
    i->loop = l;
    i->runtime = r;
    i->parallel = MAX(parallel, 1u);
    smap_init(&i->pulls, pull_free);
    smap_init(&i->got, free_json);
    list_init(&i->queue);
    list_init(&i->calls);
    return i;
}

struct images *images_free(struct images *i)
{
    if (i) {
        struct smap_entry *e;
        SMAP_FOREACH (e, &i->pulls) {
            struct pull *u = e->value;
            struct list *node;
            while ((node = list_pop_front(&u->calls))) {
                list_push_back(&i->calls, node);
            }
        }
        struct image_call *c;
        LIST_FOREACH (c, struct image_call, node, &i->calls) {
            call_free(c);
        }
        smap_done(&i->pulls);
        smap_done(&i->got);
        free(i);
    }
    return NULL;
}

void images_get_stats(const struct images *i, struct images_stats *ret)
{
    *ret = i->stats;
    ret->pulling = i->running;
    ret->kept = (unsigned) smap_size(&i->pulls);
}
