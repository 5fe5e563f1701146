/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/pods/measure.h"

#include "base/mem.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"
#include "pod/resources.h"
#include "pod/usage.h"

#include <fcntl.h>
#include <unistd.h>

#define CGROUPS "/sys/fs/cgroup"

/* A pod's paths; the numbers are in the same place of 'usages'. */
struct target {
    struct json *pod;
    const char *group;        /* Of the pod, below a hierarchy. */
    const char **ids;         /* Of its containers, in the order of the parts. */
    const char **log_dirs;    /* The same. */
    const char **volume_dirs; /* In the order of the parts. */
    struct evict_part *containers, *volumes;
    size_t n_containers, n_volumes;
};

struct measurement {
    struct loop *loop;
    const struct pod_node *node;
    const char *root_dir;
    bool disk, running, abandoned;
    struct arena arena;
    struct target *v;
    struct evict_usage *usages;
    size_t n;
    measurement_done_fn *done;
    void *ctx;
};

struct measurement *measurement_new(struct loop *l, const struct pod_node *node,
                                    const char *root_dir, bool disk)
{
    struct measurement *u = NEW(struct measurement);
    u->loop = l;
    u->node = node;
    u->root_dir = root_dir;
    u->disk = disk;
    return u;
}

static void release(struct measurement *u)
{
    for (size_t i = 0; i < u->n; i++) {
        json_free(u->v[i].pod);
    }
    arena_done(&u->arena);
    free(u->v);
    free(u->usages);
    free(u);
}

struct measurement *measurement_free(struct measurement *u)
{
    if (u && u->running) {
        u->abandoned = true;
    } else if (u) {
        release(u);
    }
    return NULL;
}

static const char *group_of(struct measurement *u, const struct json *pod)
{
    const char *name = pod_cgroup_parent(pod, u->node->cgroup_root, u->node->systemd, &u->arena);
    return u->node->systemd ? pod_slice_path(name, &u->arena) : name;
}

void measurement_add(struct measurement *u, const struct json *pod, const struct pod_observed *o)
{
    struct arena *a = &u->arena;
    const struct json *volumes = json_path(pod, "spec", "volumes", NULL), *volume;
    u->v = xreallocarray(u->v, u->n + 1, sizeof *u->v);
    struct target *t = &u->v[u->n++];
    *t = (struct target){.pod = json_clone(pod), .group = group_of(u, pod)};
    const char *logs = pod_log_directory(pod, u->node, a);
    size_t n = pod_count_containers(pod);
    t->containers = ARENA_NEW(a, struct evict_part, n);
    t->ids = ARENA_NEW(a, const char *, n);
    t->log_dirs = ARENA_NEW(a, const char *, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_get_text(pod_container_at(t->pod, i, NULL), "name");
        const struct observed_container *c = o ? pod_observed_newest(o, name) : NULL;
        if (c) {
            t->containers[t->n_containers] = (struct evict_part){name, -1, -1};
            t->ids[t->n_containers] = arena_strdup(a, c->id);
            t->log_dirs[t->n_containers++] = arena_printf(a, "%s/%s", logs, name);
        }
    }
    t->volumes = ARENA_NEW(a, struct evict_part, json_count(volumes));
    t->volume_dirs = ARENA_NEW(a, const char *, json_count(volumes));
    JSON_FOREACH (volume, json_path(t->pod, "spec", "volumes", NULL)) {
        const char *name = json_get_text(volume, "name");
        if (evict_measures_volume(volume)) {
            t->volumes[t->n_volumes] = (struct evict_part){name, -1, -1};
            t->volume_dirs[t->n_volumes++] =
                arena_printf(a, "%s/pods/%s/volumes/kubernetes.io~empty-dir/%s", u->root_dir,
                             pod_uid(pod), name);
        }
    }
}

size_t measurement_count(const struct measurement *u)
{
    return u->n;
}

/* ---- on the thread ---- */

/* The text of a file; NULL: there is none. */
static const char *text_of(const char *path, struct strbuf *b)
{
    return file_read(path, 65536, b, NULL) == 0 ? strbuf_cstr(b) : NULL;
}

static int64_t working_set(const char *group)
{
    static const struct {
        const char *hierarchy, *current;
        bool v2;
    } kinds[] = {{"/memory", "memory.usage_in_bytes", false}, {"", "memory.current", true}};
    struct pod_usage r = pod_usage_unknown;
    for (size_t i = 0; i < ARRAY_SIZE(kinds) && r.working_set_bytes < 0; i++) {
        CLEANUP_STRBUF struct strbuf memory = STRBUF_INIT, stat = STRBUF_INIT;
        CLEANUP_FREE char *current =
            xasprintf(CGROUPS "%s%s/%s", kinds[i].hierarchy, group, kinds[i].current);
        CLEANUP_FREE char *details =
            xasprintf(CGROUPS "%s%s/memory.stat", kinds[i].hierarchy, group);
        struct pod_usage_files files = {.memory = text_of(current, &memory),
                                        .memory_stat = text_of(details, &stat)};
        pod_usage_read(&files, kinds[i].v2, &r);
    }
    return r.working_set_bytes;
}

static int64_t processes(const char *group)
{
    static const char *const hierarchies[] = {"/pids", ""};
    for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        CLEANUP_FREE char *path = xasprintf(CGROUPS "%s%s/pids.current", hierarchies[i], group);
        uint64_t n;
        const char *text = text_of(path, &b);
        if (text) {
            CLEANUP_FREE char *digits = xstrndup(text, strcspn(text, "\n"));
            return str_to_u64(digits, INT64_MAX, &n) == 0 ? (int64_t) n : -1;
        }
    }
    return -1;
}

/* A container's group has its name as it is, with CRI-O's prefix, or in a scope of systemd. */
static int64_t container_memory(const char *group, const char *id)
{
    int64_t n = -1;
    CLEANUP_FREE char *plain = xasprintf("%s/%s", group, id);
    CLEANUP_FREE char *scope = xasprintf("%s/cri-containerd-%s.scope", group, id);
    CLEANUP_FREE char *crio = xasprintf("%s/crio-%s", group, id);
    CLEANUP_FREE char *crio_scope = xasprintf("%s/crio-%s.scope", group, id);
    const char *const paths[] = {plain, scope, crio, crio_scope};
    for (size_t i = 0; i < ARRAY_SIZE(paths) && n < 0; i++) {
        n = working_set(paths[i]);
    }
    return n;
}

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The bytes of a directory, which are added to what the pod uses; -1: it cannot be read. */
static int64_t directory(const char *path, struct evict_usage *u)
{
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int64_t bytes, inodes;
    if (fd < 0 || tree_measure(fd, &bytes, &inodes, NULL) < 0) {
        return -1;
    }
    u->disk = add(u->disk, bytes);
    u->inodes = add(u->inodes, inodes);
    return bytes;
}

static void measure(void *ctx)
{
    struct measurement *u = ctx;
    for (size_t i = 0; i < u->n; i++) {
        struct target *t = &u->v[i];
        struct evict_usage *e = &u->usages[i];
        *e = (struct evict_usage){.pod = t->pod,
                                  .memory = working_set(t->group),
                                  .pids = processes(t->group),
                                  .disk = u->disk ? 0 : -1,
                                  .inodes = u->disk ? 0 : -1,
                                  .containers = t->containers,
                                  .volumes = t->volumes,
                                  .n_containers = t->n_containers,
                                  .n_volumes = t->n_volumes};
        for (size_t k = 0; k < t->n_containers; k++) {
            t->containers[k].memory = container_memory(t->group, t->ids[k]);
            t->containers[k].disk = u->disk ? directory(t->log_dirs[k], e) : -1;
        }
        for (size_t k = 0; k < t->n_volumes && u->disk; k++) {
            t->volumes[k].disk = directory(t->volume_dirs[k], e);
        }
    }
}

static void measured(void *ctx)
{
    struct measurement *u = ctx;
    u->running = false;
    if (!u->abandoned) {
        u->done(u->ctx, u->usages, u->n);
    }
    release(u);
}

void measurement_start(struct measurement *u, measurement_done_fn *done, void *ctx)
{
    u->done = done;
    u->ctx = ctx;
    u->running = true;
    u->usages = xcalloc(u->n + 1, sizeof *u->usages);
    loop_work(u->loop, measure, measured, u);
}
