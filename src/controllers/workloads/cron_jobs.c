/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/cron_jobs.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/cronjob.h"

#include <stdio.h>

#define ZONES "/usr/share/zoneinfo/"
#define LOCAL "/etc/localtime"
#define MAX_ZONE (256u << 10) /* Bytes of a file. */
#define ZONE_AGE_MS 3600000   /* A file is read again after this time: packages are updated. */

/* A zone that was read, or why it could not be. */
struct zone {
    struct tzif *tzif;
    char *error;
    uint64_t until_ms;
};

struct cron_jobs {
    struct keeper keeper;
    struct smap zones; /* Name to 'struct zone'; "": the controller's own. */
};

static void free_zone(void *p)
{
    struct zone *z = p;
    tzif_free(z->tzif);
    free(z->error);
    free(z);
}

/* Reads the file, a small one on a local disk. */
static int read_zone(const char *path, struct tzif **ret, struct err *e)
{
    CLEANUP_FREE char *data = xmalloc(MAX_ZONE);
    FILE *f = fopen(path, "re");
    if (!f) {
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    }
    size_t size = fread(data, 1, MAX_ZONE, f);
    (void) fclose(f);
    return tzif_parse(data, size, time_wall_ms() / 1000, ret, e);
}

/* The zone of this name; a name can lead to no file outside of the database. */
static const struct zone *find_zone(struct cron_jobs *c, const char *name)
{
    struct zone *z = smap_get(&c->zones, name);
    uint64_t now = loop_now_ms(c->keeper.engine.env.loop);
    struct err e = {0};
    if (z && z->until_ms > now) {
        return z;
    }
    z = NEW(struct zone);
    z->until_ms = now + ZONE_AGE_MS;
    CLEANUP_FREE char *path = *name ? xasprintf(ZONES "%s", name) : xstrdup(LOCAL);
    if (streq(name, "UTC") || streq(name, "Etc/UTC")) {
        z->tzif = NULL;
    } else if (*name == '/' || strstr(name, "..")) {
        z->error = xstrdup("unknown time zone");
    } else if (read_zone(path, &z->tzif, &e) < 0 && *name) {
        z->error = xstrdup(e.text);
    } /* Without a zone of its own a host has UTC. */
    smap_set(&c->zones, name, z);
    return z;
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct cron_jobs *c = ctx;
    const struct json *cronjob = keeper_begin(&c->keeper, w, key);
    struct owned_list jobs = {0};
    if (!cronjob) {
        return;
    }
    const char *name = json_get_text(json_get(cronjob, "spec"), "timeZone");
    const struct zone *zone = find_zone(c, name);
    owned_find(&c->keeper.of_owner[0], c->keeper.children[0], cronjob, false, &jobs);
    engine_mark_leaving(&c->keeper.engine, &jobs);
    CLEANUP_PLAN struct workload_plan plan = {0};
    cronjob_plan(cronjob, jobs.list, jobs.n, zone->tzif, zone->error, time_wall_ms(), &plan);
    engine_run(&c->keeper.engine, w, cronjob, &plan);
    free(jobs.list);
}

/* Nothing is adopted. */
static struct json *selects_nothing(const struct keeper *k, const struct json *cronjob)
{
    (void) k;
    (void) cronjob;
    return NULL;
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_jobs};
    struct cron_jobs *c = NEW(struct cron_jobs);
    keeper_init(&c->keeper, env, &workload_cron_jobs, children);
    c->keeper.selector = selects_nothing;
    smap_init(&c->zones, free_zone);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct cron_jobs *c = state;
    keeper_done(&c->keeper);
    smap_done(&c->zones);
    free(c);
}

static const struct controller_watch watches[] = {
    KEEPER_OWNERS(struct cron_jobs, "batch/v1", "cronjobs"),
    KEEPER_FIRST(struct cron_jobs, "batch/v1", "jobs"),
    KEEPER_QUOTAS,
};

const struct controller cron_jobs_controller = {
    .name = "cron_jobs",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .account = "cronjob-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
