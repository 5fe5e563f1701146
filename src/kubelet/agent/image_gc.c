/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/image_gc.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/pods/images.h"
#include "pod/image_gc.h"
#include "pod/image_name.h"

#include <sys/statvfs.h>

LOG_MODULE("images");

#define PERIOD_MS 300000
#define RETRY_MS 10000
#define RECLAIM_MS 60000

struct image_collector {
    struct image_collector_config c;
    struct image_gc gc;
    struct loop_timer *timer;
    struct runtime_call *call; /* Of a round; NULL: none is under way. */
    char *dir;
    bool started;
    bool all; /* The round removes all that is not used. */
    uint64_t reclaimed_ms;
    int64_t wanted;
    struct smap used; /* Of this round; values are not NULL. */
    struct json *ids; /* Images that are still to be removed. */
    int64_t found;    /* Bytes of the images to be removed. */
};

const char *image_collector_dir(const struct image_collector *g)
{
    return g->dir;
}

static void finish(struct image_collector *g)
{
    smap_done(&g->used);
    smap_init(&g->used, NULL);
    g->ids = json_free(g->ids);
    g->all = false;
    loop_timer_arm(g->timer, PERIOD_MS);
}

static void failed(struct image_collector *g, const char *what, const char *text)
{
    log_warn("images were not collected", "step=\"%s\" error=\"%s\"", what, text);
    finish(g);
    loop_timer_arm(g->timer, RETRY_MS);
}

/* ---- removing ---- */

static void remove_next(struct image_collector *g);

static void removed(void *ctx, int error, const char *text)
{
    struct image_collector *g = ctx;
    CLEANUP(json_free) struct json *id = json_take_at(g->ids, 0);
    g->call = NULL;
    if (error < 0 && error != -ENOENT) {
        log_warn("an image was not removed", "image=%s error=\"%s\"", json_get_string(id), text);
    } else {
        log_info("an image that is not used was removed", "image=%s", json_get_string(id));
    }
    remove_next(g);
}

static void remove_next(struct image_collector *g)
{
    if (json_count(g->ids)) {
        g->call =
            runtime_remove_image(g->c.runtime, json_get_string(json_at(g->ids, 0)), removed, g);
        return;
    }
    if (g->found < g->wanted && !g->all) {
        const struct json *node = g->c.node(g->c.ctx);
        CLEANUP_FREE char *text =
            xasprintf("Failed to garbage collect required amount of images. Attempted to free %lld "
                      "bytes, but only found %lld bytes eligible to free.",
                      (long long) g->wanted, (long long) g->found);
        log_warn("the images' file system stays nearly full", "wanted=%lld found=%lld",
                 (long long) g->wanted, (long long) g->found);
        if (node) {
            recorder_event(g->c.recorder, "v1", "Node", node, EVENT_WARNING, "FreeDiskSpaceFailed",
                           text);
        }
    }
    finish(g);
}

/* ---- a round: the file system, what is used, the images ---- */

static void use(struct image_collector *g, const char *name)
{
    if (name && *name) {
        smap_set(&g->used, name, g);
    }
}

/* Images that a pod names are kept for its next container, too. */
static void use_spec(void *ctx, const struct json *pod, const struct json *status)
{
    struct image_collector *g = ctx;
    size_t n = pod_count_containers(pod);
    for (size_t i = 0; i < n && !workers_has_ended(g->c.pods, pod_uid(pod)); i++) {
        CLEANUP_FREE char *normal = NULL;
        const char *image = json_get_text(pod_container_at(pod, i, NULL), "image");
        use(g, image_name_complete(image, &normal, NULL) == 0 ? normal : image);
    }
}

static void images_read(void *ctx, int error, const char *text, const struct runtime_image *images,
                        size_t n)
{
    struct image_collector *g = ctx;
    int64_t min_age = 0;
    g->call = NULL;
    if (error < 0) {
        failed(g, "the list of images", text);
        return;
    }
    time_parse_duration(g->c.cfg->image_min_age, &min_age);
    workers_each(g->c.pods, use_spec, g);
    struct image_gc_input in = {.images = images,
                                .n_images = n,
                                .used = &g->used,
                                .pause = g->c.cfg->pause_image,
                                .now_ns = (int64_t) time_mono_ns(),
                                .min_age_ns = min_age,
                                .wanted = g->all ? INT64_MAX : g->wanted};
    CLEANUP_FREE const char **ids = NULL;
    size_t count = image_gc_choose(&g->gc, &in, &ids, &g->found);
    g->ids = json_array();
    for (size_t i = 0; i < count; i++) {
        json_append(g->ids, json_string(ids[i]));
    }
    remove_next(g);
}

static void containers_read(void *ctx, int error, const char *text,
                            const struct runtime_container *c, size_t n)
{
    struct image_collector *g = ctx;
    g->call = NULL;
    if (error < 0) {
        failed(g, "the list of containers", text);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        use(g, c[i].image);
        use(g, c[i].image_ref);
    }
    g->call = runtime_list_images(g->c.runtime, images_read, g);
}

static void filesystems_read(void *ctx, int error, const char *text,
                             const struct runtime_filesystem *f, size_t n)
{
    struct image_collector *g = ctx;
    struct statvfs fs;
    g->call = NULL;
    if (error < 0 || n == 0) {
        failed(g, "the images' file system", error < 0 ? text : "the runtime names none");
        return;
    }
    free(g->dir);
    g->dir = xstrdup(f[0].mountpoint);
    g->wanted = 0;
    if (statvfs(g->dir, &fs) == 0) {
        g->wanted = image_gc_wanted((int64_t) (fs.f_bavail * fs.f_frsize),
                                    (int64_t) (fs.f_blocks * fs.f_frsize), g->c.cfg->image_gc_high,
                                    g->c.cfg->image_gc_low);
    }
    /* Also when nothing is to be removed the times of use are noted. */
    if (g->started) {
        g->call = runtime_list_containers(g->c.runtime, NULL, containers_read, g);
    } else {
        finish(g);
    }
}

static void begin(void *ctx)
{
    struct image_collector *g = ctx;
    if (!g->call) {
        g->call = runtime_image_filesystems(g->c.runtime, filesystems_read, g);
    }
}

/* ---- its life ---- */

void image_collector_start(struct image_collector *g)
{
    g->started = true;
    loop_timer_arm(g->timer, 0);
}

bool image_collector_reclaim(struct image_collector *g)
{
    uint64_t now = loop_now_ms(g->c.loop);
    if (g->call) {
        return true; /* The round that is under way may help. */
    }
    if (!g->started || (g->reclaimed_ms && now - g->reclaimed_ms < RECLAIM_MS)) {
        return false;
    }
    g->reclaimed_ms = now;
    g->all = true;
    begin(g);
    return true;
}

struct image_collector *image_collector_new(const struct image_collector_config *c)
{
    struct image_collector *g = NEW(struct image_collector);
    g->c = *c;
    image_gc_init(&g->gc);
    smap_init(&g->used, NULL);
    g->timer = loop_timer_new(c->loop, begin, g);
    loop_timer_arm(g->timer, 0);
    return g;
}

struct image_collector *image_collector_free(struct image_collector *g)
{
    if (g) {
        if (g->call) {
            runtime_cancel(g->call);
        }
        image_gc_done(&g->gc);
        smap_done(&g->used);
        json_free(g->ids);
        loop_timer_free(g->timer);
        free(g->dir);
        free(g);
    }
    return NULL;
}
