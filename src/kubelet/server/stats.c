/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/server/stats.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/process.h"
#include "pod/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FRESH_NS INT64_C(1000000000)
#define KEEP_MS 300000
#define MAX_FILE ((size_t) 1 << 20)
#define MAX_LINKS 16
#define CGROUP_ROOT "/sys/fs/cgroup"

/* What one group uses: the node (no pod), a pod (no container), or a container. */
struct entry {
    const char *namespace, *pod, *uid, *container, *id, *image;
    int64_t time_ns, started_ms;
    struct pod_usage usage;
    int64_t nano_cores;   /* -1: not known yet. */
    int64_t memory_limit; /* -1: none. */
    int64_t log_bytes, pids;
    const struct pod_link *links;
    size_t n_links;
    const struct stats_volume *volumes;
    size_t n_volumes;
};

/* One reading of everything: the node, and each pod followed by its containers. */
struct reading {
    struct arena arena;
    struct entry *list;
    size_t n, cap;
    struct smap by_id; /* Borrowed entries, by the id of a container or the UID of a pod. */
    int64_t time_ns;
    bool v2; /* Control groups are those of cgroup v2. */
    struct stats_node node;
};

struct stats {
    struct stats_config c;
    struct reading *last; /* NULL: nobody has asked. */
    struct loop_timer *forget;
};

/* ---- reading ---- */

static struct reading *reading_free(struct reading *r)
{
    if (r) {
        smap_done(&r->by_id);
        arena_done(&r->arena);
        free(r->list);
        free(r);
    }
    return NULL;
}

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The text of a file; NULL: there is none. */
static const char *text_of(const char *path, struct strbuf *b)
{
    strbuf_reset(b);
    return file_read(path, MAX_FILE, b, NULL) < 0 ? NULL : strbuf_cstr(b);
}

/* The group's directory in the hierarchy of a controller. */
static const char *group_dir(struct reading *r, const char *controller, const char *group)
{
    return r->v2 ? arena_printf(&r->arena, CGROUP_ROOT "%s", group)
                 : arena_printf(&r->arena, CGROUP_ROOT "/%s%s", controller, group);
}

static void read_group(struct reading *r, const char *group, struct pod_usage *ret)
{
    CLEANUP_STRBUF struct strbuf cpu = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf memory = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf stat = STRBUF_INIT;
    const char *dir = group_dir(r, "memory", group), *cpu_dir = group_dir(r, "cpuacct", group);
    CLEANUP_FREE char *cpu_path = xasprintf("%s/%s", cpu_dir, r->v2 ? "cpu.stat" : "cpuacct.usage");
    CLEANUP_FREE char *path = xasprintf("%s/memory.%s", dir, r->v2 ? "current" : "usage_in_bytes");
    CLEANUP_FREE char *stat_path = xasprintf("%s/memory.stat", dir);
    struct pod_usage_files f = {.cpu = text_of(cpu_path, &cpu),
                                .memory = text_of(path, &memory),
                                .memory_stat = text_of(stat_path, &stat)};
    pod_usage_read(&f, r->v2, ret);
}

/* The group of a container below that of its pod: runtimes put words before and behind the id.
 * CRI-O makes a group for conmon, too, with the container's id. */
static const char *find_group(struct reading *r, const char *pod_group, const char *id)
{
    const char *found = NULL;
    DIR *d = *id ? opendir(group_dir(r, "memory", pod_group)) : NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
        if (e->d_type == DT_DIR && strstr(e->d_name, id) && !strstr(e->d_name, "conmon")) {
            found = arena_printf(&r->arena, "%s/%s", pod_group, e->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
    return found;
}

static int64_t number_in(const char *path)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    uint64_t n;
    const char *s = text_of(path, &text);
    CLEANUP_FREE char *digits = s ? xstrndup(s, strspn(s, "0123456789")) : NULL;
    return digits && str_to_u64(digits, INT64_MAX, &n) == 0 ? (int64_t) n : -1;
}

/* The interfaces in the network namespace of the group's first process; false: it has none. */
static bool read_links(const char *group, struct reading *r, struct entry *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct pod_link links[MAX_LINKS];
    struct arena *a = &r->arena;
    int64_t pid = number_in(arena_printf(a, "%s/cgroup.procs", group_dir(r, "memory", group)));
    const char *s =
        pid > 0 ? text_of(arena_printf(a, "/proc/%" PRId64 "/net/dev", pid), &text) : NULL;
    size_t n = s ? pod_usage_links(s, links, MAX_LINKS) : 0;
    if (n) {
        struct pod_link *copy = ARENA_NEW(a, struct pod_link, n);
        memcpy(copy, links, n * sizeof *copy);
        e->links = copy;
        e->n_links = n;
    }
    return n > 0;
}

/* The interfaces of a pod: a container has those of the sandbox, which in CRI-O has no process. */
static void read_network(const struct stats_pod *p, struct reading *r, struct entry *e)
{
    const char *group = find_group(r, p->cgroup, p->sandbox);
    bool found = group && read_links(group, r, e);
    for (size_t i = 0; !found && i < p->n_containers; i++) {
        group = find_group(r, p->cgroup, p->containers[i].id);
        found = group && read_links(group, r, e);
    }
}

/* The size of the files of a container's log, the rotated ones included. */
static int64_t log_size(const char *log_path)
{
    const char *slash = strrchr(log_path, '/');
    CLEANUP_FREE char *dir = slash ? xstrndup(log_path, (size_t) (slash - log_path)) : NULL;
    DIR *d = dir ? opendir(dir) : NULL;
    int64_t sum = 0;
    if (!d) {
        return -1;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            sum += st.st_size;
        }
    }
    closedir(d);
    return sum;
}

static struct entry *add_entry(struct reading *r, const char *id)
{
    r->list = grow(r->list, &r->cap, r->n + 1, sizeof(struct entry));
    struct entry *e = &r->list[r->n++];
    *e = (struct entry){.id = arena_strdup(&r->arena, id),
                        .time_ns = wall_ns(),
                        .usage = pod_usage_unknown,
                        .nano_cores = -1,
                        .memory_limit = -1,
                        .log_bytes = -1,
                        .pids = -1};
    return e;
}

static void add_container(struct reading *r, const struct stats_pod *p,
                          const struct stats_container *c)
{
    struct arena *a = &r->arena;
    const char *group = find_group(r, p->cgroup, c->id);
    if (!group) {
        return; /* It has ended since the runtime was asked. */
    }
    struct entry *e = add_entry(r, c->id);
    e->namespace = arena_strdup(a, p->namespace);
    e->pod = arena_strdup(a, p->name);
    e->uid = arena_strdup(a, p->uid);
    e->container = arena_strdup(a, c->name);
    e->image = arena_strdup(a, c->image);
    e->started_ms = c->started_ms;
    e->memory_limit = c->memory_limit;
    e->log_bytes = log_size(c->log_path);
    read_group(r, group, &e->usage);
}

static void copy_volumes(struct reading *r, const struct stats_pod *p, struct entry *e)
{
    struct stats_volume *copy = ARENA_NEW(&r->arena, struct stats_volume, p->n_volumes + 1);
    for (size_t i = 0; i < p->n_volumes; i++) {
        copy[i] = p->volumes[i];
        copy[i].name = arena_strdup(&r->arena, copy[i].name);
        copy[i].claim = arena_strdup(&r->arena, copy[i].claim);
    }
    e->volumes = copy;
    e->n_volumes = p->n_volumes;
}

static void add_pod(void *stats, const struct stats_pod *p)
{
    struct reading *r = stats;
    struct arena *a = &r->arena;
    struct entry *e = add_entry(r, p->uid);
    e->namespace = arena_strdup(a, p->namespace);
    e->pod = arena_strdup(a, p->name);
    e->uid = e->id;
    e->started_ms = p->started_ms;
    read_group(r, p->cgroup, &e->usage);
    e->pids = number_in(arena_printf(a, "%s/pids.current", group_dir(r, "pids", p->cgroup)));
    if (!p->host_network) {
        read_network(p, r, e);
    }
    copy_volumes(r, p, e);
    for (size_t i = 0; i < p->n_containers; i++) {
        add_container(r, p, &p->containers[i]);
    }
}

static void add_node(struct reading *r)
{
    CLEANUP_STRBUF struct strbuf stat = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf memory = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf net = STRBUF_INIT;
    struct pod_link links[MAX_LINKS];
    struct entry *e = add_entry(r, "");
    e->started_ms = r->node.started_ms;
    pod_usage_read_host(text_of("/proc/stat", &stat), text_of("/proc/meminfo", &memory),
                        sysconf(_SC_CLK_TCK), &e->usage);
    const char *dev = text_of("/proc/net/dev", &net);
    e->n_links = dev ? pod_usage_links(dev, links, MAX_LINKS) : 0;
    if (e->n_links) {
        struct pod_link *copy = ARENA_NEW(&r->arena, struct pod_link, e->n_links);
        memcpy(copy, links, e->n_links * sizeof *copy);
        e->links = copy;
    }
}

static void set_rates(struct reading *r, const struct reading *before)
{
    for (size_t i = 0; i < r->n; i++) {
        struct entry *e = &r->list[i];
        const struct entry *b = before ? smap_get(&before->by_id, e->id) : NULL;
        smap_set(&r->by_id, e->id, e);
        if (b && e->usage.cpu_ns >= 0) {
            e->nano_cores =
                pod_usage_rate(e->usage.cpu_ns, e->time_ns, b->usage.cpu_ns, b->time_ns);
        }
    }
}

static const struct reading *read_now(struct stats *s)
{
    int64_t now = wall_ns();
    int64_t age = s->last ? now - s->last->time_ns : -1;
    loop_timer_arm(s->forget, KEEP_MS);
    if (age >= 0 && age < FRESH_NS) {
        return s->last;
    }
    struct reading *r = NEW(struct reading);
    r->time_ns = now;
    r->v2 = access(CGROUP_ROOT "/cgroup.controllers", F_OK) == 0;
    smap_init(&r->by_id, NULL);
    s->c.get_node(s->c.ctx, &r->node);
    add_node(r);
    s->c.each_pod(s->c.ctx, add_pod, r);
    set_rates(r, s->last);
    reading_free(s->last);
    s->last = r;
    return r;
}

static void forget(void *ctx)
{
    struct stats *s = ctx;
    s->last = reading_free(s->last);
}

struct stats *stats_new(const struct stats_config *c)
{
    struct stats *s = NEW(struct stats);
    s->c = *c;
    s->forget = loop_timer_new(c->loop, forget, s);
    return s;
}

struct stats *stats_free(struct stats *s)
{
    if (s) {
        loop_timer_free(s->forget);
        reading_free(s->last);
        free(s);
    }
    return NULL;
}

/* ---- /stats/summary ---- */

static void set_time(struct json *o, const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_format_s(ms, text);
    json_set_string(o, key, text);
}

static void set_amount(struct json *o, const char *key, int64_t n)
{
    if (n >= 0) {
        json_set_int(o, key, n);
    }
}

static struct json *part(struct json *o, const char *key, const struct entry *e)
{
    struct json *v = json_ensure_object(o, key);
    set_time(v, "time", e->time_ns / 1000000);
    return v;
}

static void set_cpu_and_memory(struct json *o, const struct entry *e, int64_t memory_limit)
{
    const struct pod_usage *u = &e->usage;
    struct json *cpu = part(o, "cpu", e), *memory = part(o, "memory", e);
    set_amount(cpu, "usageNanoCores", e->nano_cores);
    set_amount(cpu, "usageCoreNanoSeconds", u->cpu_ns);
    if (memory_limit > 0 && u->working_set_bytes >= 0) {
        json_set_int(memory, "availableBytes",
                     MAX(memory_limit - u->working_set_bytes, INT64_C(0)));
    }
    set_amount(memory, "usageBytes", u->memory_bytes);
    set_amount(memory, "workingSetBytes", u->working_set_bytes);
    set_amount(memory, "rssBytes", u->rss_bytes);
    set_amount(memory, "pageFaults", u->page_faults);
    set_amount(memory, "majorPageFaults", u->major_page_faults);
}

static void set_link(struct json *o, const struct pod_link *l)
{
    json_set_string(o, "name", l->name);
    json_set_int(o, "rxBytes", l->rx_bytes);
    json_set_int(o, "rxErrors", l->rx_errors);
    json_set_int(o, "txBytes", l->tx_bytes);
    json_set_int(o, "txErrors", l->tx_errors);
}

/* The default interface is eth0, in pods, and otherwise the first. */
static void set_network(struct json *o, const struct entry *e)
{
    if (!e->n_links) {
        return;
    }
    struct json *network = part(o, "network", e);
    const struct pod_link *chosen = &e->links[0];
    for (size_t i = 0; i < e->n_links; i++) {
        chosen = streq(e->links[i].name, "eth0") ? &e->links[i] : chosen;
    }
    set_link(network, chosen);
    struct json *list = json_ensure_array(network, "interfaces");
    for (size_t i = 0; i < e->n_links; i++) {
        set_link(json_append(list, json_object()), &e->links[i]);
    }
}

static struct json *node_summary(const struct stats *s, const struct reading *r, bool brief)
{
    const struct entry *e = &r->list[0];
    const struct stats_node *n = &r->node;
    struct json *o = json_object();
    json_set_string(o, "nodeName", s->c.node);
    set_time(o, "startTime", e->started_ms);
    set_cpu_and_memory(o, e, n->memory_bytes);
    if (brief) {
        return o;
    }
    set_network(o, e);
    struct json *fs = part(o, "fs", e), *limits = part(o, "rlimit", e);
    json_set_int(fs, "availableBytes", n->disk_free);
    json_set_int(fs, "capacityBytes", n->disk_bytes);
    json_set_int(fs, "usedBytes", n->disk_bytes - n->disk_free);
    json_set_int(fs, "inodesFree", n->inodes_free);
    json_set_int(fs, "inodes", n->inodes);
    json_set_int(fs, "inodesUsed", n->inodes - n->inodes_free);
    json_set_int(limits, "maxpid", n->pids_max);
    json_set_int(limits, "curproc", n->pids);
    return o;
}

static void add_volume(struct json *list, const char *namespace, const struct stats_volume *v)
{
    struct json *o = json_append(list, json_object()), *ref = json_ensure_object(o, "pvcRef");
    set_time(o, "time", v->time_ms);
    json_set_string(o, "name", v->name);
    json_set_string(ref, "name", v->claim);
    json_set_string(ref, "namespace", namespace);
    json_set_int(o, "availableBytes", v->available);
    json_set_int(o, "capacityBytes", v->capacity);
    json_set_int(o, "usedBytes", v->used);
    json_set_int(o, "inodesFree", v->inodes_free);
    json_set_int(o, "inodes", v->inodes);
    json_set_int(o, "inodesUsed", v->inodes_used);
}

static struct json *pod_summary(const struct entry *e, bool brief)
{
    struct json *o = json_object(), *ref = json_ensure_object(o, "podRef");
    json_set_string(ref, "name", e->pod);
    json_set_string(ref, "namespace", e->namespace);
    json_set_string(ref, "uid", e->uid);
    set_time(o, "startTime", e->started_ms);
    json_ensure_array(o, "containers");
    set_cpu_and_memory(o, e, -1);
    if (!brief) {
        set_network(o, e);
        if (e->pids >= 0) {
            json_set_int(json_ensure_object(o, "process_stats"), "process_count", e->pids);
        }
        for (size_t i = 0; i < e->n_volumes; i++) {
            add_volume(json_ensure_array(o, "volume"), e->namespace, &e->volumes[i]);
        }
    }
    return o;
}

static struct json *container_summary(const struct entry *e, bool brief)
{
    struct json *o = json_object();
    json_set_string(o, "name", e->container);
    set_time(o, "startTime", e->started_ms);
    set_cpu_and_memory(o, e, e->memory_limit);
    if (!brief && e->log_bytes >= 0) {
        json_set_int(part(o, "logs", e), "usedBytes", e->log_bytes);
    }
    return o;
}

struct json *stats_summary(struct stats *s, bool only_cpu_and_memory)
{
    const struct reading *r = read_now(s);
    struct json *o = json_object(), *pod = NULL;
    json_set(o, "node", node_summary(s, r, only_cpu_and_memory));
    struct json *pods = json_ensure_array(o, "pods");
    for (size_t i = 1; i < r->n; i++) {
        const struct entry *e = &r->list[i];
        if (e->container) {
            json_append(json_ensure_array(pod, "containers"),
                        container_summary(e, only_cpu_and_memory));
        } else {
            pod = json_append(pods, pod_summary(e, only_cpu_and_memory));
        }
    }
    return o;
}

/* ---- Prometheus' text ---- */

static void write_label(struct strbuf *out, const char *name, const char *value)
{
    strbuf_addf(out, "%s%s=\"", out->data[out->size - 1] == '{' ? "" : ",", name);
    for (const char *p = value; *p; p++) {
        if (*p == '"' || *p == '\\') {
            strbuf_addc(out, '\\');
        }
        if (*p == '\n') {
            strbuf_adds(out, "\\n");
        } else {
            strbuf_addc(out, *p);
        }
    }
    strbuf_addc(out, '"');
}

/* The member of the usage at the row's offset. */
static int64_t member_of(const struct prom_metric *m, const struct entry *e)
{
    int64_t v;
    memcpy(&v, (const char *) e + m->offset, sizeof v);
    return v;
}

static void write_seconds(struct strbuf *out, int64_t ns)
{
    strbuf_addf(out, " %" PRId64 ".%09" PRId64, ns / 1000000000, ns % 1000000000);
}

/* What is nanoseconds or milliseconds in an entry is told in seconds. */
static void write_value(const struct prom_metric *m, const struct entry *e, bool timed,
                        struct strbuf *out)
{
    int64_t v = member_of(m, e);
    if (m->offset == offsetof(struct entry, started_ms)) {
        write_seconds(out, v * 1000000);
    } else if (m->offset == offsetof(struct entry, usage.cpu_ns)) {
        write_seconds(out, v);
    } else {
        strbuf_addf(out, " %" PRId64, v);
    }
    if (timed) {
        strbuf_addf(out, " %" PRId64, e->time_ns / 1000000);
    }
    strbuf_addc(out, '\n');
}

static void write_node(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct reading *r = facts;
    if (member_of(m, &r->list[0]) >= 0) {
        strbuf_adds(out, m->name);
        write_value(m, &r->list[0], true, out);
    }
}

/* Pods have the names without "container_"; their rows have no such label. */
static void write_resource(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct reading *r = facts;
    bool containers = str_has_prefix(m->name, "container_");
    for (size_t i = 1; i < r->n; i++) {
        const struct entry *e = &r->list[i];
        if ((e->container != NULL) != containers || member_of(m, e) < 0) {
            continue;
        }
        strbuf_addf(out, "%s{", m->name);
        if (containers) {
            write_label(out, "container", e->container);
        }
        write_label(out, "namespace", e->namespace);
        write_label(out, "pod", e->pod);
        strbuf_addc(out, '}');
        write_value(m, e, true, out);
    }
}

static void write_error(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct reading *r = facts;
    strbuf_addf(out, "%s %d\n", m->name, r->list[0].usage.cpu_ns < 0);
}

static void write_labels(const struct prom_metric *m, const struct entry *e, const char *interface,
                         struct strbuf *out)
{
    strbuf_addf(out, "%s{", m->name);
    write_label(out, "container", e->container ? e->container : "");
    if (m->offset == offsetof(struct entry, usage.cpu_ns)) {
        write_label(out, "cpu", "total");
    }
    write_label(out, "id", e->id);
    write_label(out, "image", e->image ? e->image : "");
    if (interface) {
        write_label(out, "interface", interface);
    }
    write_label(out, "name", e->container ? e->id : "");
    write_label(out, "namespace", e->namespace);
    write_label(out, "pod", e->pod);
    strbuf_addc(out, '}');
}

/* Of containers and, without their names, of pods. */
static void write_cadvisor(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct reading *r = facts;
    for (size_t i = 1; i < r->n; i++) {
        const struct entry *e = &r->list[i];
        if (member_of(m, e) >= 0) {
            write_labels(m, e, NULL, out);
            write_value(m, e, true, out);
        }
    }
}

/* The row's offset is that of a member of struct pod_link. */
static void write_network(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct reading *r = facts;
    for (size_t i = 1; i < r->n; i++) {
        const struct entry *e = &r->list[i];
        for (size_t k = 0; k < e->n_links; k++) {
            int64_t v;
            memcpy(&v, (const char *) &e->links[k] + m->offset, sizeof v);
            write_labels(m, e, e->links[k].name, out);
            strbuf_addf(out, " %" PRId64 " %" PRId64 "\n", v, e->time_ns / 1000000);
        }
    }
}

/* The row's offset is that of a member of struct stats_volume.  A claim that several pods of the
 * node mount is written once. */
static void write_volumes(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct reading *r = facts;
    struct smap written;
    smap_init(&written, NULL);
    for (size_t i = 1; i < r->n; i++) {
        const struct entry *e = &r->list[i];
        for (size_t k = 0; k < e->n_volumes; k++) {
            const struct stats_volume *v = &e->volumes[k];
            CLEANUP_FREE char *key = xasprintf("%s/%s", e->namespace, v->claim);
            int64_t n;
            if (smap_get(&written, key)) {
                continue;
            }
            smap_set(&written, key, (void *) v);
            memcpy(&n, (const char *) v + m->offset, sizeof n);
            strbuf_addf(out, "%s{", m->name);
            write_label(out, "namespace", e->namespace);
            write_label(out, "persistentvolumeclaim", v->claim);
            strbuf_addf(out, "} %" PRId64 "\n", n);
        }
    }
    smap_done(&written);
}

static void write_cores(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    const struct reading *r = facts;
    strbuf_addf(out, "%s %" PRId64 "\n", m->name, r->node.milli_cpu / 1000);
}

#define ROW(metric, kind, text, labels, member, function)                               \
    {                                                                                   \
        .name = metric, .type = kind, .help = text, .label = labels, .write = function, \
        PROM_MEMBER(struct entry, member)                                               \
    }
#define LINK(metric, text, member)                                                \
    {                                                                             \
        .name = metric, .type = "counter", .help = text, .label = NETWORK_LABELS, \
        .write = write_network, PROM_MEMBER(struct pod_link, member)              \
    }
#define CONTAINER_LABELS "container, namespace, pod"
#define POD_LABELS "namespace, pod"
#define CADVISOR_LABELS "container, id, image, name, namespace, pod"
#define NETWORK_LABELS "container, id, image, interface, name, namespace, pod"

static const struct prom_metric resource_rows[] = {
    ROW("container_cpu_usage_seconds_total", "counter", "Seconds of CPU that the container used.",
        CONTAINER_LABELS, usage.cpu_ns, write_resource),
    ROW("container_memory_working_set_bytes", "gauge", "The container's working set.",
        CONTAINER_LABELS, usage.working_set_bytes, write_resource),
    ROW("container_start_time_seconds", "gauge", "When the container started, since 1970.",
        CONTAINER_LABELS, started_ms, write_resource),
    ROW("node_cpu_usage_seconds_total", "counter", "Seconds of CPU that the node used.", NULL,
        usage.cpu_ns, write_node),
    ROW("node_memory_working_set_bytes", "gauge", "The node's working set.", NULL,
        usage.working_set_bytes, write_node),
    ROW("pod_cpu_usage_seconds_total", "counter", "Seconds of CPU that the pod used.", POD_LABELS,
        usage.cpu_ns, write_resource),
    ROW("pod_memory_working_set_bytes", "gauge", "The pod's working set.", POD_LABELS,
        usage.working_set_bytes, write_resource),
    PROM_WRITTEN("resource_scrape_error", "gauge", "1 when the node's usage could not be read.",
                 NULL, write_error),
};

static const struct prom_metric cadvisor_rows[] = {
    ROW("container_cpu_usage_seconds_total", "counter",
        "Seconds of CPU that the container, or the pod, used.",
        "container, cpu, id, image, name, namespace, pod", usage.cpu_ns, write_cadvisor),
    ROW("container_memory_usage_bytes", "gauge", "Memory, caches of files included.",
        CADVISOR_LABELS, usage.memory_bytes, write_cadvisor),
    ROW("container_memory_working_set_bytes", "gauge", "Memory without inactive pages of files.",
        CADVISOR_LABELS, usage.working_set_bytes, write_cadvisor),
    ROW("container_memory_rss", "gauge", "Anonymous memory.", CADVISOR_LABELS, usage.rss_bytes,
        write_cadvisor),
    ROW("container_start_time_seconds", "gauge", "When it started, since 1970.", CADVISOR_LABELS,
        started_ms, write_cadvisor),
    ROW("container_processes", "gauge", "Processes and threads of the pod.", CADVISOR_LABELS, pids,
        write_cadvisor),
    LINK("container_network_receive_bytes_total", "Bytes that the pod received.", rx_bytes),
    LINK("container_network_receive_packets_total", "Packets that the pod received.", rx_packets),
    LINK("container_network_receive_errors_total", "Errors of receiving.", rx_errors),
    LINK("container_network_receive_packets_dropped_total", "Received packets that were dropped.",
         rx_dropped),
    LINK("container_network_transmit_bytes_total", "Bytes that the pod sent.", tx_bytes),
    LINK("container_network_transmit_packets_total", "Packets that the pod sent.", tx_packets),
    LINK("container_network_transmit_errors_total", "Errors of sending.", tx_errors),
    LINK("container_network_transmit_packets_dropped_total", "Sent packets that were dropped.",
         tx_dropped),
    PROM_WRITTEN("machine_cpu_cores", "gauge", "Processors of the node.", NULL, write_cores),
};

#define VOLUME(metric, text, member)                                         \
    {                                                                        \
        .name = metric, .type = "gauge", .help = text,                       \
        .label = "namespace, persistentvolumeclaim", .write = write_volumes, \
        PROM_MEMBER(struct stats_volume, member)                             \
    }
static const struct prom_metric volume_rows[] = {
    VOLUME("kubelet_volume_stats_available_bytes", "Bytes that users can still write.", available),
    VOLUME("kubelet_volume_stats_capacity_bytes", "Bytes of the volume's file system.", capacity),
    VOLUME("kubelet_volume_stats_used_bytes", "Bytes in use.", used),
    VOLUME("kubelet_volume_stats_inodes", "Inodes of the volume's file system.", inodes),
    VOLUME("kubelet_volume_stats_inodes_free", "Free inodes.", inodes_free),
    VOLUME("kubelet_volume_stats_inodes_used", "Inodes in use.", inodes_used),
};

const struct prom_table stats_resource_metrics = {resource_rows, ARRAY_SIZE(resource_rows)};
const struct prom_table stats_cadvisor_metrics = {cadvisor_rows, ARRAY_SIZE(cadvisor_rows)};
const struct prom_table stats_volume_metrics = {volume_rows, ARRAY_SIZE(volume_rows)};

void stats_write_resource(struct stats *s, struct strbuf *out)
{
    prom_write(&stats_resource_metrics, read_now(s), out);
}

void stats_write_cadvisor(struct stats *s, struct strbuf *out)
{
    prom_write(&stats_cadvisor_metrics, read_now(s), out);
}

void stats_write_volumes(struct stats *s, struct strbuf *out)
{
    prom_write(&stats_volume_metrics, read_now(s), out);
}
