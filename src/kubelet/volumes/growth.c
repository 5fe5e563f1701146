/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/growth.h"

#include "api/obj.h"
#include "api/quantity.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubelet/csi/parts.h"
#include "kubelet/csi/translate.h"
#include "kubelet/volumes/csi_mount.h"

LOG_MODULE("volumes");

#define PERIOD_MS 60000
#define FIRST_MS 1000
#define MERGE "application/merge-patch+json"

struct growth {
    struct growth_config c;
    char *pods_dir, *ns, *name;
    struct json *claim;
    struct api_call *call;
    struct growth_job *job; /* NULL: none runs. */
    struct loop_timer *timer;
};

struct growth_job {
    struct growth *g; /* NULL: abandoned. */
    struct csi_drivers *drivers;
    char *pods_dir;
    struct json *pv, *source;
    int64_t bytes;
    bool here;
    int error;
    struct err err;
};

int64_t claim_growth(const struct json *claim, const struct json *pv)
{
    const char *size = json_path_string(pv, "spec", "capacity", "storage", NULL);
    const char *want = json_path_string(claim, "spec", "resources", "requests", "storage", NULL);
    const struct json *c;
    int64_t bytes = 0, requested = 0;
    bool pending = false;
    JSON_FOREACH (c, json_path(claim, "status", "conditions", NULL)) {
        pending |= streq(json_get_text(c, "type"), "FileSystemResizePending") &&
                   streq(json_get_text(c, "status"), "True");
    }
    bool bound = streq_null(json_path_string(pv, "spec", "claimRef", "uid", NULL), obj_uid(claim));
    /* The condition is written before the volume's new size. */
    bool ready = pending && bound && size && want &&
                 api_quantity_value(size, 0, &bytes, NULL) == 0 &&
                 api_quantity_value(want, 0, &requested, NULL) == 0 && bytes >= requested;
    return ready ? bytes : 0;
}

static void work(void *ctx)
{
    struct growth_job *j = ctx;
    j->error = csi_mount_expand(j->drivers, j->pods_dir, json_get(j->pv, "spec"), j->source,
                                j->bytes, &j->here, &j->err);
}

static void written(void *ctx, int error, const char *text, struct json *obj)
{
    struct growth *g = ctx;
    g->call = NULL;
    if (error < 0) {
        log_warn("the new size of a claim was not written", "claim=%s/%s error=\"%s\"", g->ns,
                 g->name, text);
    }
    loop_timer_arm(g->timer, PERIOD_MS);
}

static void ended(void *ctx)
{
    struct growth_job *j = ctx;
    struct growth *g = j->g;
    if (g) {
        g->job = NULL;
        loop_timer_arm(g->timer, PERIOD_MS);
    }
    if (g && j->error < 0) {
        log_warn("the file system of a volume was not grown", "claim=%s/%s error=\"%s\"", g->ns,
                 g->name, j->err.text);
    } else if (g && j->here) {
        CLEANUP(json_free) struct json *patch = csi_growth_status(false, j->bytes);
        CLEANUP_FREE char *path =
            api_path("v1", "persistentvolumeclaims", g->ns, g->name, "status");
        loop_timer_disarm(g->timer);
        g->call = api_request(g->c.client, "PATCH", path, MERGE, patch, written, g);
        log_info("the file system of a volume was grown", "claim=%s/%s bytes=%lld", g->ns, g->name,
                 (long long) j->bytes);
    }
    csi_drivers_unref(j->drivers);
    json_free(j->pv);
    json_free(j->source);
    free(j->pods_dir);
    free(j);
}

static void got_volume(void *ctx, int error, const char *text, struct json *obj)
{
    struct growth *g = ctx;
    int64_t bytes = error < 0 ? 0 : claim_growth(g->claim, obj);
    const struct json *csi = json_path(obj, "spec", "csi", NULL);
    g->call = NULL;
    if (bytes <= 0) {
        loop_timer_arm(g->timer, PERIOD_MS);
        return;
    }
    struct growth_job *j = NEW(struct growth_job);
    *j = (struct growth_job){.g = g,
                             .drivers = csi_drivers_ref(g->c.drivers),
                             .pods_dir = xstrdup(g->pods_dir),
                             .pv = json_clone(obj),
                             .source = csi ? json_clone(csi) : csi_translate(json_get(obj, "spec")),
                             .bytes = bytes};
    g->job = j;
    jobs_start(g->c.jobs, work, ended, j);
}

static bool is_pending(const struct json *claim)
{
    const struct json *c;
    JSON_FOREACH (c, json_path(claim, "status", "conditions", NULL)) {
        if (streq(json_get_text(c, "type"), "FileSystemResizePending")) {
            return true;
        }
    }
    return false;
}

static void got_claim(void *ctx, int error, const char *text, struct json *obj)
{
    struct growth *g = ctx;
    g->call = NULL;
    if (error < 0 || !is_pending(obj)) {
        loop_timer_arm(g->timer, PERIOD_MS);
        return;
    }
    json_free(g->claim);
    g->claim = json_clone(obj);
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumes", NULL,
                                       json_get_text(json_get(obj, "spec"), "volumeName"), NULL);
    g->call = api_request(g->c.client, "GET", path, NULL, NULL, got_volume, g);
}

static void request(void *ctx)
{
    struct growth *g = ctx;
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumeclaims", g->ns, g->name, NULL);
    g->call = api_request(g->c.client, "GET", path, NULL, NULL, got_claim, g);
}

struct growth *growth_new(const struct growth_config *c)
{
    struct growth *g = NEW(struct growth);
    g->c = *c;
    g->pods_dir = xstrdup(c->pods_dir);
    g->ns = xstrdup(c->ns);
    g->name = xstrdup(c->claim);
    g->timer = loop_timer_new(c->loop, request, g);
    loop_timer_arm(g->timer, FIRST_MS);
    return g;
}

struct growth *growth_free(struct growth *g)
{
    if (g) {
        if (g->call) {
            api_call_cancel(g->call);
        }
        if (g->job) {
            g->job->g = NULL;
        }
        loop_timer_free(g->timer);
        json_free(g->claim);
        free(g->pods_dir);
        free(g->ns);
        free(g->name);
        free(g);
    }
    return NULL;
}
