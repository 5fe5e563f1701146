/* SPDX-License-Identifier: Apache-2.0 */
/* How full the volumes of claims are.  A file server that is dead delays the figures of its own
 * volume alone, because each reading has a thread of its own. */
#include "kubelet/volumes/volumes_priv.h"

#include "base/timeutil.h"
#include "storage/fields.h"

#include <errno.h>
#include <sys/statvfs.h>

#define FRESH_MS 60000

struct volume_reading {
    struct volume *volume; /* NULL: the volume is gone. */
    char *path;
    struct statvfs fs;
    int error;
};

static void read_fs(void *ctx)
{
    struct volume_reading *r = ctx;
    r->error = statvfs(r->path, &r->fs) < 0 ? -errno : 0;
}

static int64_t bytes(uint64_t blocks, uint64_t size)
{
    uint64_t n;
    return __builtin_mul_overflow(blocks, size, &n) || n > INT64_MAX ? INT64_MAX : (int64_t) n;
}

static void read_ended(void *ctx)
{
    struct volume_reading *r = ctx;
    struct volume *vol = r->volume;
    if (vol) {
        vol->reading = NULL;
        vol->read_ms = time_mono_ms();
    }
    if (vol && r->error == 0) {
        const struct statvfs *f = &r->fs;
        vol->usage = (struct volume_usage){
            .time_ms = time_wall_ms(),
            .capacity = bytes(f->f_blocks, f->f_frsize),
            .available = bytes(f->f_bavail, f->f_frsize),
            .used = bytes(f->f_blocks - MIN(f->f_bfree, f->f_blocks), f->f_frsize),
            .inodes = bytes(f->f_files, 1),
            .inodes_free = bytes(f->f_ffree, 1),
            .inodes_used = bytes(f->f_files - MIN(f->f_ffree, f->f_files), 1)};
    }
    free(r->path);
    free(r);
}

void volume_usage_forget(struct volume *vol)
{
    if (vol->reading) {
        vol->reading->volume = NULL;
    }
}

static void refresh(struct volume *vol)
{
    if (vol->reading || (vol->read_ms && time_mono_ms() - vol->read_ms < FRESH_MS)) {
        return;
    }
    struct volume_reading *r = NEW(struct volume_reading);
    r->volume = vol;
    r->path = xstrdup(vol->path);
    vol->reading = r;
    jobs_start(vol->pod->all->jobs, read_fs, read_ended, r);
}

void volumes_each_usage(struct volumes *v, const char *uid, volume_usage_fn *fn, void *ctx)
{
    struct pod_volumes *p = smap_get(&v->pods, uid);
    struct volume *vol;
    if (!p || p->removing || !p->pod) {
        return;
    }
    LIST_FOREACH (vol, struct volume, node, &p->volumes) {
        CLEANUP_FREE char *claim =
            vol->ready && !vol->block ? storage_pod_claim(p->pod, vol->spec) : NULL;
        if (!claim) {
            continue;
        }
        refresh(vol);
        if (vol->usage.time_ms) {
            vol->usage.volume = json_path_string(vol->spec, "name", NULL);
            vol->usage.claim = claim;
            fn(ctx, &vol->usage);
            vol->usage.claim = NULL;
        }
    }
}
